// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The view of an operation as a matmul of matrices, and the order of its tiles.

#include "MatmulView.h"
#include "fp8/Dialect/FP8/IR/MatmulMarks.h"
#include "fp8/Dialect/FP8/IR/MixedPrecision.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace fp8;

BatchArguments::BatchArguments(KernelArguments &arguments, const MatmulOperand &operand)
    : stride(arguments.addI64(operand.batchStride)) {
  if (!operand.innerBatches)
    return;
  innerBatches = arguments.addI32(operand.innerBatches);
  innerStride = arguments.addI64(operand.innerStride);
}

Value BatchArguments::findStart(KernelBuilder &b, Value pointer, Expr batch) const {
  if (!innerBatches)
    return b.at(pointer, widen(batch) * b.argument(stride));
  Expr count = b.argument(*innerBatches);
  return b.at(pointer,
              widen(batch / count) * b.argument(stride) + widen(batch % count) * b.argument(*innerStride));
}

/// Returns the position of `dim` in the results of `map`.
static std::optional<unsigned> findPosition(AffineMap map, unsigned dim) {
  return map.getResultPosition(getAffineDimExpr(dim, map.getContext()));
}

/// Returns the extent of blocks along K; 0 if none ends within K.
static int64_t findBlockOfK(ArrayRef<int64_t> block, AffineMap map, const ContractionDims &dims) {
  int64_t extent = 0;
  for (auto [position, size] : llvm::enumerate(block))
    if (llvm::is_contained(dims.k, map.getDimPosition(position)))
      extent = std::max(extent, size);
  return extent;
}

static ContractionDims getDims(Operation *op) {
  if (auto matmulOp = dyn_cast<MatmulOp>(op))
    return matmulOp.getContractionDims();
  return cast<ScaledMatmulOp>(op).getContractionDims();
}

MatmulView::MatmulView(Operation *op) : MatmulView(op, getDims(op)) {}

MatmulView::MatmulView(Operation *op, const ContractionDims &dimensions) : op(op), dims(dimensions) {
  auto read = [&](auto matmul) {
    lhs = matmul.getLhs();
    rhs = matmul.getRhs();
    out = matmul.getInit();
    maps = matmul.getIndexingMapsArray();
    site = matmul.getSite().value_or("").str();
    role = stringifyRole(matmul.getRole().value_or(Role::other)).str();
  };
  if (auto matmulOp = dyn_cast<MatmulOp>(op)) {
    read(matmulOp);
    isTF32 = op->hasAttr(kTF32AttrName);
  } else {
    auto scaled = cast<ScaledMatmulOp>(op);
    read(scaled);
    lhsScaleInv = scaled.getLhsScaleInv();
    rhsScaleInv = scaled.getRhsScaleInv();
    split = scaled.getAccumulation() == Accumulation::split;
    lhsBlock = llvm::to_vector(scaled.getLhsBlock().value_or(ArrayRef<int64_t>()));
    rhsBlock = llvm::to_vector(scaled.getRhsBlock().value_or(ArrayRef<int64_t>()));
    if (getBlockOfK())
      scalesAlongK = isa<Float8E8M0FNUType>(getElementTypeOrSelf(lhsScaleInv)) ? ScalesAlongK::packed
                                                                               : ScalesAlongK::blocks;
  }
  for (auto *group : {&dims.batch, &dims.m, &dims.n})
    llvm::sort(*group,
               [&](unsigned x, unsigned y) { return *findPosition(maps[2], x) < *findPosition(maps[2], y); });
}

int64_t MatmulView::getBlockOfK() const {
  return std::max(findBlockOfK(lhsBlock, maps[0], dims), findBlockOfK(rhsBlock, maps[1], dims));
}

bool MatmulView::scalesRhsFirst() const {
  auto spansRows = [](ArrayRef<int64_t> block, AffineMap map, ArrayRef<unsigned> rows) {
    return llvm::any_of(llvm::enumerate(block), [&](auto entry) {
      return entry.value() != 1 && llvm::is_contained(rows, map.getDimPosition(entry.index()));
    });
  };
  return spansRows(lhsBlock, maps[0], dims.m) && !spansRows(rhsBlock, maps[1], dims.n);
}

void MatmulView::swap() {
  std::swap(lhs, rhs);
  std::swap(lhsScaleInv, rhsScaleInv);
  std::swap(lhsBlock, rhsBlock);
  std::swap(maps[0], maps[1]);
  std::swap(dims.m, dims.n);
}

/// Returns the first of the operands and the result that has `dim`, and its position there.
static std::pair<Value, unsigned> findMemRef(const MatmulView &matmul, unsigned dim) {
  for (auto [value, map] : llvm::zip_equal(std::array{matmul.lhs, matmul.rhs, matmul.out}, matmul.maps))
    if (std::optional<unsigned> position = findPosition(map, dim))
      return {value, *position};
  llvm_unreachable("every dimension is in a map");
}

OpFoldResult MatmulView::getSize(OpBuilder &builder, unsigned dim) const {
  auto [memref, position] = findMemRef(*this, dim);
  return memref::getMixedSize(builder, op->getLoc(), memref, position);
}

int64_t MatmulView::knownSize(ArrayRef<unsigned> group) const {
  int64_t count = 1;
  for (unsigned dim : group) {
    auto [memref, position] = findMemRef(*this, dim);
    int64_t size = cast<MemRefType>(memref.getType()).getDimSize(position);
    if (ShapedType::isDynamic(size))
      return ShapedType::kDynamic;
    count *= size;
  }
  return count;
}

Value MatmulView::buildSize(OpBuilder &builder, ArrayRef<unsigned> group) const {
  Location loc = op->getLoc();
  Value count = arith::ConstantIndexOp::create(builder, loc, 1);
  for (unsigned dim : group)
    count = builder.createOrFold<arith::MulIOp>(
        loc, count, getValueOrCreateConstantIndexOp(builder, loc, getSize(builder, dim)));
  return count;
}

void MatmulView::addNote(const Twine &note) const {
  Builder builder(op->getContext());
  SmallVector<Attribute> notes;
  if (auto others = op->getAttrOfType<ArrayAttr>(kOperandNotesAttrName))
    llvm::append_range(notes, others);
  notes.push_back(builder.getStringAttr(note));
  op->setAttr(kOperandNotesAttrName, builder.getArrayAttr(notes));
}

ArrayAttr MatmulView::mark(const Twine &code) const {
  std::string all = code.str();
  if (auto notes = op->getAttrOfType<ArrayAttr>(kOperandNotesAttrName))
    for (Attribute note : notes)
      if (auto text = dyn_cast<StringAttr>(note)) // an attribute of a file may be anything
        all += ("; " + text.getValue()).str();
  if (auto matmulOp = dyn_cast<MatmulOp>(op))
    return markMatmul(matmulOp, all);
  return markMatmul(cast<ScaledMatmulOp>(op), all);
}

KernelSpec fp8::describeKernel(const MatmulView &matmul, const KernelArguments &arguments) {
  KernelSpec spec;
  spec.name = "product_" + matmul.role + "_" + matmul.site;
  spec.arguments = arguments.types;
  spec.kind = "products";
  return spec;
}

gpu::LaunchFuncOp fp8::launchMatmul(OpBuilder &builder, const MatmulView &matmul, func::FuncOp kernel,
                                    Value blocks, const KernelArguments &arguments, bool inParts) {
  auto launch = launchKernel(builder, matmul.op->getLoc(), kernel, blocks, arguments.operands);
  auto instruction = kernel->getAttrOfType<StringAttr>(kInstructionAttrName);
  std::string code = instruction.getValue().str();
  if (matmul.scalesAlongK == ScalesAlongK::blocks)
    code += ", scaled sums of blocks of " + std::to_string(matmul.getPart());
  if (matmul.scalesAlongK == ScalesAlongK::packed)
    code += ", scales of 32 elements";
  if (matmul.split && matmul.scalesAlongK != ScalesAlongK::blocks)
    code += inParts ? kSplitSums : kOneSum;
  markLaunch(launch, matmul.site, matmul.mark(code));
  return launch;
}

Tile fp8::findTile(KernelBuilder &b, Expr number, Expr tilesM, Expr tilesN) {
  constexpr int64_t groupRows = 8;
  Expr perBatch = tilesM * tilesN;
  Expr batch = number / perBatch, inBatch = number % perBatch;
  Expr perGroup = tilesN * groupRows;
  Expr first = inBatch / perGroup * groupRows, inGroup = inBatch % perGroup;
  Expr rows = atMost(tilesM - first, groupRows);
  return {batch, first + inGroup % rows, inGroup / rows};
}
