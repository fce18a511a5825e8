// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Concatenation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace fp8::detail;

namespace {
/// Reads the code of a linalg.generic that chooses, by an index, which tensor to read an element of.
class ChoiceReader {
public:
  explicit ChoiceReader(linalg::GenericOp generic)
      : type(cast<RankedTensorType>(generic.getResult(0).getType())) {}

  /// Reads the code of the elements from `start` to `end` along the dimension.
  bool read(Value element, int64_t start, int64_t end);
  std::optional<Concatenation> finish() const {
    return dim && found.parts.size() > 1 ? std::optional(found) : std::nullopt;
  }
  int64_t getSize() const { return dim ? type.getDimSize(*dim) : ShapedType::kDynamic; }

private:
  /// An index of the iteration, less a constant.
  struct Index {
    unsigned loop;
    int64_t subtracted;
  };
  static std::optional<Index> readIndex(Value value);
  bool readPart(tensor::ExtractOp extract, int64_t start, int64_t end);
  bool isDim(unsigned loop) {
    found.dim = dim.value_or(loop);
    dim = found.dim;
    return loop == *dim;
  }

  RankedTensorType type;
  std::optional<unsigned> dim;
  Concatenation found;
};
} // namespace

std::optional<ChoiceReader::Index> ChoiceReader::readIndex(Value value) {
  if (auto index = value.getDefiningOp<linalg::IndexOp>())
    return Index{static_cast<unsigned>(index.getDim()), 0};
  auto difference = value.getDefiningOp<arith::SubIOp>();
  IntegerAttr constant;
  if (!difference || !matchPattern(difference.getRhs(), m_Constant(&constant)))
    return std::nullopt;
  std::optional<Index> index = readIndex(difference.getLhs());
  if (index)
    index->subtracted += constant.getInt();
  return index;
}

bool ChoiceReader::readPart(tensor::ExtractOp extract, int64_t start, int64_t end) {
  RankedTensorType part = extract.getTensor().getType();
  if (part.getRank() != type.getRank())
    return false;
  for (auto [at, value] : llvm::enumerate(extract.getIndices())) {
    std::optional<Index> index = readIndex(value);
    bool isAlong = index && at == *dim;
    if (!index || index->loop != at || index->subtracted != (isAlong ? start : 0) ||
        part.getDimSize(at) != (isAlong ? end - start : type.getDimSize(at)))
      return false;
  }
  found.parts.push_back({extract.getTensor(), end - start});
  return true;
}

bool ChoiceReader::read(Value element, int64_t start, int64_t end) {
  auto choice = element.getDefiningOp<scf::IfOp>();
  if (!choice) {
    auto extract = element.getDefiningOp<tensor::ExtractOp>();
    return extract && dim && readPart(extract, start, end);
  }
  auto compare = choice.getCondition().getDefiningOp<arith::CmpIOp>();
  IntegerAttr bound;
  if (choice.getNumResults() != 1 || !compare || compare.getPredicate() != arith::CmpIPredicate::ult ||
      !matchPattern(compare.getRhs(), m_Constant(&bound)))
    return false;
  std::optional<Index> index = readIndex(compare.getLhs());
  if (!index || !isDim(index->loop) || ShapedType::isDynamic(getSize()))
    return false;
  int64_t middle = bound.getInt() + index->subtracted;
  end = std::min(end, getSize());
  return start < middle && middle < end && index->subtracted <= start &&
         read(choice.thenYield().getOperand(0), start, middle) &&
         read(choice.elseYield().getOperand(0), middle, end);
}

static std::optional<Concatenation> matchChoice(linalg::GenericOp generic) {
  if (generic.getNumDpsInputs() != 0 || generic.getNumResults() != 1 ||
      generic.getNumParallelLoops() != generic.getNumLoops() ||
      !generic.getIndexingMapsArray().front().isIdentity())
    return std::nullopt;
  ChoiceReader reader(generic);
  Value element = generic.getBody()->getTerminator()->getOperand(0);
  return reader.read(element, 0, std::numeric_limits<int64_t>::max()) ? reader.finish() : std::nullopt;
}

static std::optional<Concatenation> matchConcat(tensor::ConcatOp concat) {
  Concatenation found{static_cast<unsigned>(concat.getDim()), {}};
  for (Value part : concat.getInputs()) {
    int64_t size = cast<RankedTensorType>(part.getType()).getDimSize(found.dim);
    if (ShapedType::isDynamic(size))
      return std::nullopt;
    if (size != 0)
      found.parts.push_back({part, size});
  }
  return found.parts.size() > 1 ? std::optional(found) : std::nullopt;
}

static std::optional<Concatenation> matchPad(tensor::PadOp pad) {
  Value padding = pad.getConstantPaddingValue();
  if (!padding || !pad.getResultType().hasStaticShape() || !pad.getSourceType().hasStaticShape())
    return std::nullopt;
  std::optional<Concatenation> found;
  for (int64_t dim = 0; dim < pad.getResultType().getRank(); ++dim) {
    std::optional<int64_t> low = getConstantIntValue(pad.getMixedLowPad()[dim]),
                           high = getConstantIntValue(pad.getMixedHighPad()[dim]);
    if (!low || !high || *low < 0 || *high < 0 || (found && *low + *high != 0))
      return std::nullopt;
    if (*low + *high == 0)
      continue;
    found.emplace(Concatenation{static_cast<unsigned>(dim), {}});
    std::pair<Value, int64_t> parts[] = {
        {padding, *low}, {pad.getSource(), pad.getSourceType().getDimSize(dim)}, {padding, *high}};
    for (auto [value, size] : parts)
      if (size != 0)
        found->parts.push_back({value, size});
  }
  return found && found->parts.size() > 1 ? found : std::nullopt;
}

static std::optional<Concatenation> matchInsert(tensor::InsertSliceOp insert) {
  RankedTensorType whole = insert.getType(), part = insert.getSourceType();
  if (!whole.hasStaticShape() || !part.hasStaticShape() || whole.getRank() != part.getRank() ||
      !insert.hasUnitStride() || insert.getSourceType().getNumElements() == 0)
    return std::nullopt;
  std::optional<Concatenation> found;
  for (int64_t dim = 0; dim < whole.getRank(); ++dim) {
    int64_t size = part.getDimSize(dim);
    if (size == whole.getDimSize(dim))
      continue;
    std::optional<int64_t> low = getConstantIntValue(insert.getMixedOffsets()[dim]);
    if (found || !low)
      return std::nullopt;
    found.emplace(Concatenation{static_cast<unsigned>(dim), {}});
    std::pair<Value, int64_t> parts[] = {{insert.getDest(), *low},
                                         {insert.getSource(), size},
                                         {insert.getDest(), whole.getDimSize(dim) - size - *low}};
    for (auto [value, length] : parts)
      if (length != 0)
        found->parts.push_back({value, length});
  }
  return found;
}

std::optional<Concatenation> fp8::detail::matchConcatenation(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto concat = dyn_cast_or_null<tensor::ConcatOp>(op))
    return matchConcat(concat);
  if (auto pad = dyn_cast_or_null<tensor::PadOp>(op))
    return matchPad(pad);
  if (auto insert = dyn_cast_or_null<tensor::InsertSliceOp>(op))
    return matchInsert(insert);
  if (auto generic = dyn_cast_or_null<linalg::GenericOp>(op))
    return matchChoice(generic);
  return std::nullopt;
}
