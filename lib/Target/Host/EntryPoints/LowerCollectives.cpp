// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns collectives into calls of the communicator of a call (fp8rt/communicator.h). Kind, reduction, element
// type, root, group and name are known at compile time, and are constant data.

#include "../Memory.h"
#include "EntryPointHelpers.h"
#include "fp8/Dialect/FP8/IR/Boundary.h"
#include "fp8/Dialect/FP8/IR/FP8.h"
#include "fp8/Target/Host/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/Utils/Utils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace fp8 {
#define GEN_PASS_DEF_LOWERCOLLECTIVES
#include "fp8/Target/Host/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

/// The bytes of fp8rt_collective.
static constexpr int64_t kStepBytes = 56;

/// Returns the number of an element type in fp8rt/communicator.h; 0, bytes, for those that are only moved.
static int32_t getTypeNumber(Type type) {
  if (type.isInteger(8))
    return 1;
  if (type.isInteger(32))
    return 2;
  if (type.isInteger(64) || type.isIndex())
    return 3;
  return type.isF16() ? 4 : type.isBF16() ? 5 : type.isF32() ? 6 : type.isF64() ? 7 : 0;
}

namespace {
/// Lowers the collectives of one entry point, whose last argument is the frame.
class CollectiveLowering {
public:
  CollectiveLowering(func::FuncOp entry, llvm::StringMap<LLVM::GlobalOp> &constants)
      : entry(entry), module(entry->getParentOfType<ModuleOp>()), constants(constants),
        builder(entry.getContext()), frame(entry.getArguments().back()),
        pointer(LLVM::LLVMPointerType::get(entry.getContext())) {}

  void checkRankCount(ArrayRef<int64_t> grid);
  void lower(StartCollectiveOp op);
  void lower(WaitCollectiveOp op);
  void lowerNumber(Operation *op, StringRef helper);

private:
  Value integer(int64_t value) { return arith::ConstantIntOp::create(builder, loc, value, 64); }
  Value callHelper(StringRef name, Type result, ValueRange operands);
  /// Returns the address of constant data.
  Value addConstant(StringRef prefix, StringRef bytes);
  Value addGroup(ArrayRef<int64_t> grid, ArrayRef<int64_t> axes);
  LLVM::GlobalOp addGlobal(StringRef prefix, Type type, Attribute value);
  Value getRoom(Type type, int64_t count);
  Value getAddress(Value buffer);

  func::FuncOp entry;
  ModuleOp module;
  llvm::StringMap<LLVM::GlobalOp> &constants; ///< by prefix and content
  OpBuilder builder;
  Value frame;
  Type pointer;
  Location loc = builder.getUnknownLoc();
};
} // namespace

/// Calls a function that fp8-emit-entry-points will define.
Value CollectiveLowering::callHelper(StringRef name, Type result, ValueRange operands) {
  if (!module.lookupSymbol(name))
    func::createFnDecl(builder, module, name, builder.getFunctionType(operands.getTypes(), result),
                       /*setPrivate=*/true);
  return func::CallOp::create(builder, loc, name, result, operands).getResult(0);
}

LLVM::GlobalOp CollectiveLowering::addGlobal(StringRef prefix, Type type, Attribute value) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(entry);
  return LLVM::GlobalOp::create(builder, module.getLoc(), type, /*isConstant=*/true, LLVM::Linkage::Internal,
                                (prefix + "_" + Twine(constants.size())).str(), value, /*alignment=*/16);
}

Value CollectiveLowering::addConstant(StringRef prefix, StringRef bytes) {
  LLVM::GlobalOp &global = constants[(prefix + bytes).str()];
  if (!global)
    global = addGlobal(prefix, LLVM::LLVMArrayType::get(builder.getI8Type(), bytes.size()),
                       builder.getStringAttr(bytes));
  return LLVM::AddressOfOp::create(builder, loc, global);
}

template <typename T>
static void append(std::string &bytes, T value) {
  bytes.append(reinterpret_cast<const char *>(&value), sizeof(T));
}

/// Adds an fp8rt_group. An extent that is not known at compile time is 0.
Value CollectiveLowering::addGroup(ArrayRef<int64_t> grid, ArrayRef<int64_t> axes) {
  std::string extents;
  uint32_t mask = 0;
  for (int64_t size : grid)
    append<int64_t>(extents, ShapedType::isDynamic(size) ? 0 : size);
  for (int64_t axis : axes)
    mask |= uint32_t(1) << axis;
  LLVM::GlobalOp &group = constants["fp8_group" + extents + std::to_string(mask)];
  if (!group) {
    addConstant("fp8_grid", extents);
    LLVM::GlobalOp gridGlobal = constants["fp8_grid" + extents];
    Type word = builder.getI32Type();
    auto type = LLVM::LLVMStructType::getLiteral(builder.getContext(), {pointer, word, word});
    group = addGlobal("fp8_group", type, Attribute());
    OpBuilder::InsertionGuard guard(builder);
    builder.createBlock(&group.getInitializerRegion());
    Value value = LLVM::UndefOp::create(builder, loc, type);
    Value fields[] = {LLVM::AddressOfOp::create(builder, loc, gridGlobal),
                      LLVM::ConstantOp::create(builder, loc, word, builder.getI32IntegerAttr(grid.size())),
                      LLVM::ConstantOp::create(builder, loc, word, builder.getI32IntegerAttr(mask))};
    for (auto [i, field] : llvm::enumerate(fields))
      value = LLVM::InsertValueOp::create(builder, loc, value, field, i);
    LLVM::ReturnOp::create(builder, loc, value);
  }
  return LLVM::AddressOfOp::create(builder, loc, group);
}

/// Returns stack memory, which is taken once per call of the entry point.
Value CollectiveLowering::getRoom(Type type, int64_t count) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&entry.front());
  return LLVM::AllocaOp::create(builder, loc, pointer, type, integer(count), /*alignment=*/16);
}

/// Builds the address of the first element of `buffer`.
Value CollectiveLowering::getAddress(Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  Value address = memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, buffer);
  if (!type.getLayout().isIdentity()) {
    auto parts = memref::ExtractStridedMetadataOp::create(builder, loc, buffer);
    Value width = arith::ConstantIndexOp::create(builder, loc, getElementBytes(type.getElementType()));
    Value offset = arith::MulIOp::create(builder, loc, parts.getOffset(), width);
    address = arith::AddIOp::create(builder, loc, address, offset);
  }
  Value number = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), address);
  return LLVM::IntToPtrOp::create(builder, loc, pointer, number);
}

/// Ends the call unless there are as many ranks as the grid has places.
void CollectiveLowering::checkRankCount(ArrayRef<int64_t> grid) {
  loc = entry.getLoc();
  builder.setInsertionPointToStart(&entry.front());
  int64_t known = 1;
  std::string shape;
  for (int64_t size : grid) {
    shape += (shape.empty() ? "" : "x") + (ShapedType::isDynamic(size) ? "?" : std::to_string(size));
    known *= ShapedType::isDynamic(size) ? 1 : size;
  }
  bool isFixed = llvm::none_of(grid, ShapedType::isDynamic);
  if (!isFixed && known == 1)
    return;
  Value count = callHelper(kRankCountHelper, builder.getI64Type(), frame);
  Value rest = isFixed ? count : arith::RemUIOp::create(builder, loc, count, integer(known)).getResult();
  Value fits =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, rest, integer(isFixed ? known : 0));
  cf::AssertOp::create(builder, loc, fits,
                       "this program runs on " + std::string(isFixed ? "" : "a multiple of ") +
                           std::to_string(known) + " ranks (grid " + shape +
                           "), and the call's communicator has another number");
}

void CollectiveLowering::lower(StartCollectiveOp op) {
  loc = op.getLoc();
  builder.setInsertionPoint(op);
  auto type = cast<MemRefType>(op.getSend().getType());
  int32_t typeNumber = getTypeNumber(type.getElementType());
  std::string what;
  append<uint32_t>(what, static_cast<uint32_t>(op.getKind()));
  append<uint32_t>(what, static_cast<uint32_t>(op.getReduction()));
  append<uint32_t>(what, typeNumber);
  append<int32_t>(what, op.getRoot());

  Value count = integer(1);
  for (int64_t d = 0; d < type.getRank(); ++d) {
    Value size = memref::DimOp::create(builder, loc, op.getSend(), d);
    Value wide = type.isDynamicDim(d) ? arith::IndexCastOp::create(builder, loc, builder.getI64Type(), size)
                                      : integer(type.getDimSize(d));
    count = builder.createOrFold<arith::MulIOp>(loc, count, wide);
  }
  Value bytes =
      builder.createOrFold<arith::MulIOp>(loc, count, integer(getElementBytes(type.getElementType())));
  Value ticket = getRoom(builder.getI64Type(), 1);
  Value good = callHelper(kStartHelper, builder.getI1Type(),
                          {frame, getRoom(builder.getI8Type(), kStepBytes), addConstant("fp8_step", what),
                           addGroup(op.getGrid(), op.getAxes()), getAddress(op.getSend()),
                           getAddress(op.getReceive()), typeNumber == 0 ? bytes : count, bytes,
                           addConstant("fp8_name", op.getLabel().str() + '\0'), ticket});
  cf::AssertOp::create(builder, loc, good, "");
  op.getTicket().replaceAllUsesWith(
      LLVM::LoadOp::create(builder, loc, builder.getI64Type(), ticket).getResult());
  op.erase();
}

void CollectiveLowering::lower(WaitCollectiveOp op) {
  loc = op.getLoc();
  builder.setInsertionPoint(op);
  Value good = callHelper(kWaitHelper, builder.getI1Type(), {frame, op.getTicket()});
  cf::AssertOp::create(builder, loc, good, "");
  op.erase();
}

void CollectiveLowering::lowerNumber(Operation *op, StringRef helper) {
  loc = op->getLoc();
  builder.setInsertionPoint(op);
  Value number = callHelper(helper, builder.getI64Type(), frame);
  op->getResult(0).replaceAllUsesWith(
      arith::IndexCastOp::create(builder, loc, builder.getIndexType(), number).getResult());
  op->erase();
}

namespace {
struct LowerCollectivesPass : public fp8::impl::LowerCollectivesBase<LowerCollectivesPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::StringMap<LLVM::GlobalOp> constants;
    for (auto entry : module.getOps<func::FuncOp>()) {
      SmallVector<Operation *> ops;
      entry.walk([&](Operation *op) {
        if (isa<StartCollectiveOp, WaitCollectiveOp, RankOp, RankCountOp>(op))
          ops.push_back(op);
      });
      if (ops.empty())
        continue;
      if (entry.getNumArguments() == 0 || !isa<LLVM::LLVMPointerType>(entry.getArgumentTypes().back())) {
        entry.emitError() << "'" << entry.getName() << "' has no frame: run fp8-allocate-dynamic first";
        return signalPassFailure();
      }
      CollectiveLowering lowering(entry, constants);
      if (auto grid = module->getAttrOfType<DenseI64ArrayAttr>(kGridAttrName))
        lowering.checkRankCount(grid);
      for (Operation *op : ops) {
        if (auto start = dyn_cast<StartCollectiveOp>(op))
          lowering.lower(start);
        else if (auto wait = dyn_cast<WaitCollectiveOp>(op))
          lowering.lower(wait);
        else
          lowering.lowerNumber(op, isa<RankOp>(op) ? kRankHelper : kRankCountHelper);
      }
    }
  }
};
} // namespace
