// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Refuses kernels that LLVM has no code for. LLVM ends the process where it cannot select an instruction,
// and some functions that it does select are not exact; here they are errors at the operation.

#include "DeviceCode.h"
#include "fp8/Target/PTX/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/Support/FormatVariadic.h"

namespace fp8 {
#define GEN_PASS_DEF_CHECKKERNELS
#include "fp8/Target/PTX/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

/// The chips that have an operation or intrinsic, by the start of its name: those of which upstream states
/// none.
namespace {
struct Requirement {
  StringLiteral prefix;
  bool (*isMet)(const Chip &chip);
};
} // namespace

static const Requirement kRequirements[] = {
    {"nvvm.wgmma.", [](const Chip &chip) { return chip.family == MatmulFamily::wgmma; }},
    {"nvvm.tcgen05.", [](const Chip &chip) { return chip.family == MatmulFamily::tcgen05; }},
    {"nvvm.cluster.", [](const Chip &chip) { return chip.hasTensorMaps; }},
    {"nvvm.cp.async.bulk", [](const Chip &chip) { return chip.hasTensorMaps; }},
    {"nvvm.prefetch.tensormap", [](const Chip &chip) { return chip.hasTensorMaps; }},
    {"nvvm.setmaxregister", [](const Chip &chip) { return chip.hasTensorMaps; }},
    {"nvvm.mma.block_scale", [](const Chip &chip) { return chip.hasBlockScaledMma; }},
};

/// The functions of the math dialect that are instructions, or exact sequences of them.
static bool hasInstruction(Operation *op) {
  return isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::FloorOp, math::TruncOp, math::RoundOp,
             math::RoundEvenOp, math::CopySignOp, math::SqrtOp, math::FmaOp, math::CountLeadingZerosOp,
             math::CountTrailingZerosOp, math::CtPopOp, math::IsFiniteOp, math::IsInfOp, math::IsNaNOp,
             math::IsNormalOp>(op);
}

/// Returns the problem with an operation of any kind; empty if there is none.
static std::string describeProblem(Operation *op) {
  if (isa<math::MathDialect>(op->getDialect()) && !hasInstruction(op))
    return ("on " + llvm::formatv("{0}", op->getResult(0).getType()) +
            " has no code on GPUs; fp8-expand-math knows functions of f32")
        .str();
  if (isa<arith::RemFOp>(op))
    return ("on " + llvm::formatv("{0}", op->getResult(0).getType()) +
            " has no exact code on GPUs; fp8-expand-math knows it on f32")
        .str();
  if (isa<cf::AssertOp>(op))
    return "has no code in a kernel: check before the launch";
  if (isa<memref::AllocOp, memref::DeallocOp>(op))
    return "has no code in a kernel: pass the memory as an argument";
  if (isa<func::FuncOp, func::CallOp, func::ReturnOp, gpu::GPUModuleOp, UnrealizedConversionCastOp>(op))
    return "";
  return isa<NVVM::NVVMDialect, LLVM::LLVMDialect, memref::MemRefDialect, vector::VectorDialect,
             arith::ArithDialect, scf::SCFDialect, cf::ControlFlowDialect, math::MathDialect, ub::UBDialect>(
             op->getDialect())
             ? ""
             : "has no code on GPUs";
}

/// Returns the name by which requirements know an operation: that of the intrinsic which it calls.
static StringRef getInstructionName(Operation *op) {
  if (auto call = dyn_cast<LLVM::CallIntrinsicOp>(op))
    return call.getIntrin();
  return op->getName().getStringRef();
}

/// Begins an error at `op`, or where that has no place, as in the bodies of named operations, at what it is
/// in.
static InFlightDiagnostic emitErrorAt(Operation *op) {
  Operation *placed = op;
  while (placed && isa<UnknownLoc>(placed->getLoc()))
    placed = placed->getParentOp();
  return emitError(placed ? placed->getLoc() : op->getLoc());
}

static LogicalResult checkInstruction(Operation *op, const Chip &chip) {
  StringRef name = getInstructionName(op);
  auto refuse = [&] { return emitErrorAt(op) << "'" << name << "' is no instruction of " << chip.name; };
  if (isa<LLVM::CallIntrinsicOp>(op) &&
      llvm::Intrinsic::lookupIntrinsicID(name) == llvm::Intrinsic::not_intrinsic)
    return op->emitError() << "'" << name << "' is no intrinsic of LLVM";
  for (const Requirement &requirement : kRequirements)
    if (name.starts_with(requirement.prefix) && !requirement.isMet(chip))
      return refuse();
  auto required = dyn_cast<NVVM::RequiresSMInterface>(op);
  if (required && !required.getRequiredMinSMVersion().isCompatibleWith(
                      NVVM::NVVMCheckSMVersion::getTargetSMVersionFromStr(chip.name)))
    return refuse();
  return success();
}

static LogicalResult checkCall(func::CallOp call, const SymbolTable &symbols) {
  auto callee = symbols.lookup<FunctionOpInterface>(call.getCallee());
  if (callee && !callee.isExternal())
    return success();
  return call.emitError() << "'" << call.getCallee() << "' is no function of this gpu.module";
}

static LogicalResult checkOperation(Operation *op, const Chip &chip, const SymbolTable &symbols) {
  if (!op->getDialect())
    return emitErrorAt(op) << "'" << op->getName() << "' has no code on GPUs";
  std::string problem = describeProblem(op);
  if (!problem.empty())
    return emitErrorAt(op) << "'" << op->getName() << "' " << problem;
  if (auto call = dyn_cast<func::CallOp>(op))
    return checkCall(call, symbols);
  return checkInstruction(op, chip);
}

static LogicalResult checkKernel(FunctionOpInterface kernel, const Chip &chip) {
  auto threads = kernel->getAttrOfType<IntegerAttr>(kThreadsAttrName);
  if (!threads || threads.getInt() < 1 || threads.getInt() > 1024)
    return kernel.emitError() << "kernel '" << kernel.getName() << "' needs " << kThreadsAttrName
                              << ", the threads of a block: 1 to 1024";
  auto shared = kernel->getAttrOfType<IntegerAttr>(kSharedBytesAttrName);
  if (shared && shared.getInt() > chip.sharedBytes)
    return kernel.emitError() << "kernel '" << kernel.getName() << "' needs " << shared.getInt()
                              << " bytes of shared memory: a block of " << chip.name << " has "
                              << chip.sharedBytes;
  return success();
}

namespace {
struct CheckKernelsPass : public fp8::impl::CheckKernelsBase<CheckKernelsPass> {
  void runOnOperation() override {
    gpu::GPUModuleOp kernels = getOperation();
    FailureOr<ChipAttr> attribute = getChipOf(kernels);
    if (failed(attribute))
      return signalPassFailure();
    const Chip &chip = getChip(*attribute);
    SymbolTable symbols(kernels);
    bool isGood = true;
    for (FunctionOpInterface kernel : getKernels(kernels))
      isGood &= succeeded(checkKernel(kernel, chip));
    kernels.walk([&](Operation *op) { isGood &= succeeded(checkOperation(op, chip, symbols)); });
    if (!isGood)
      signalPassFailure();
  }
};
} // namespace
