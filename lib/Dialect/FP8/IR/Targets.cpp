// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The target of a module, targets by name, and the CPU target.

#include "Recipes/RecipeParts.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "fp8/Dialect/FP8/IR/TargetNames.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace fp8;

TargetAttrInterface fp8::getTarget(Operation *op) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  if (module)
    if (auto target = module->getAttrOfType<TargetAttrInterface>(kTargetAttrName))
      return target;
  return CPUAttr::get(op->getContext());
}

SmallVector<TargetAttrInterface> fp8::listTargets(MLIRContext &context) {
  SmallVector<TargetAttrInterface> targets;
  for (Dialect *dialect : context.getLoadedDialects())
    if (auto *interface = dialect->getRegisteredInterface<TargetDialectInterface>())
      targets.append(interface->getTargets());
  llvm::sort(targets, [](TargetAttrInterface a, TargetAttrInterface b) {
    return a.getTargetName() < b.getTargetName();
  });
  return targets;
}

llvm::Expected<TargetAttrInterface> fp8::findTarget(StringRef text, MLIRContext &context) {
  SmallVector<TargetAttrInterface> targets = listTargets(context);
  for (TargetAttrInterface target : targets)
    if (target.getTargetName() == text)
      return target;
  if (text.starts_with("#")) {
    ScopedDiagnosticHandler silent(&context, [](Diagnostic &) {});
    if (auto target = dyn_cast_or_null<TargetAttrInterface>(parseAttribute(text, &context)))
      return target;
  }
  auto names = llvm::map_range(targets, [](TargetAttrInterface target) { return target.getTargetName(); });
  return llvm::createStringError("--target=" + text.str() + " is none of " + llvm::join(names, ", ") +
                                 " and no attribute of a target");
}

//===----------------------------------------------------------------------===//
// #fp8.cpu
//===----------------------------------------------------------------------===//

StringRef CPUAttr::getTargetName() const { return "cpu"; }

LogicalResult CPUAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t vectorBits,
                              int64_t vectorRegisters) {
  if (vectorBits < 64 || vectorBits > 2048 || !llvm::isPowerOf2_64(vectorBits))
    return emitError() << "vectorBits is a power of two from 64 to 2048, not " << vectorBits;
  if (vectorRegisters < 4 || vectorRegisters > 1024)
    return emitError() << "vectorRegisters is a number from 4 to 1024, not " << vectorRegisters;
  return success();
}

std::string CPUAttr::getUnsupportedReason(RecipeAttrInterface recipe) const {
  FloatType type = recipe.getScaleType();
  if (type.isF32() || isa<Float8E8M0FNUType>(type))
    return "";
  std::string text;
  llvm::raw_string_ostream(text) << recipe.getRecipeName() << " scales are of " << type
                                 << ", but cpu has kernels for f32 and f8E8M0FNU";
  return text;
}

MatmulSupport CPUAttr::describeMatmul(RecipeAttrInterface recipe, Role role) const {
  if (!recipe)
    return {"packed f32 products (CPU)", ""};
  if (std::string reason = getUnsupportedReason(recipe); !reason.empty())
    return {"", reason};
  return {"packed f32 products of decoded FP8" + fp8::detail::describeSums(recipe, role) + " (CPU)", ""};
}

/// Two multiply-adds of a vector of f32 per clock, whatever the operands are decoded from, in 16 cores of
/// 3 GHz.
double CPUAttr::getMatmulRate(RecipeAttrInterface, Role) const {
  return 2.0 * static_cast<double>(getVectorBits()) / 32 * 16 * 3e9;
}

/// Two channels of DDR5-5600.
double CPUAttr::getMemoryRate() const { return 90e9; }

/// The temporaries of a row are on the stack of a thread, which may be as small as 1 MiB, and
/// should fit into the L2 cache of a core.
int64_t CPUAttr::getMaxRowBytes() const { return 256 * 1024; }

/// Loops that read more arrays than this run out of registers and prefetch streams.
unsigned CPUAttr::getMaxFusedInputs() const { return 16; }

/// The summands of a chunk then take a buffer of 128 KiB, which fits into the L2 cache of a core.
int64_t CPUAttr::getRowChunkElements() const { return 32768; }

/// Blocks of scores take 4 MiB in f32, about what the caches of the cores that compute them hold.
int64_t CPUAttr::getScoreBlockElements() const { return int64_t(1) << 20; }

/// A cache line: vector loads and stores that cross none are fastest.
int64_t CPUAttr::getBufferAlignment() const { return 64; }
