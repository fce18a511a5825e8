// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rewrites the loops of convolutions: loops of one iteration go, operands that are views are read where the
// views read them, and of operands with zeros between their elements only the elements are read.

#include "WindowReads.h"
#include "fp8/Analysis/FloatContraction.h"
#include "fp8/Analysis/Zeros.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fp8;
using namespace fp8::detail;

SmallVector<unsigned> LoopSum::loops() const {
  return llvm::filter_to_vector(llvm::seq<unsigned>(factors.size()),
                                [&](unsigned l) { return factors[l] != 0; });
}

/// Returns `index`, a sum of the dimensions of a view, in the loops that read the view at `read`.
static LoopSum compose(const LoopSum &index, ArrayRef<LoopSum> read, unsigned numLoops) {
  LoopSum result{SmallVector<int64_t>(numLoops, 0), index.constant};
  for (unsigned d : index.loops()) {
    result.constant += index.factors[d] * read[d].constant;
    for (unsigned l : read[d].loops())
      result.factors[l] += index.factors[d] * read[d].factors[l];
  }
  return result;
}

namespace {

/// Rewrites loops, and gives up where a step does not fit.
class Rewriter {
public:
  explicit Rewriter(WindowLoops &loops) : loops(loops) {}

  /// Takes all steps.
  void run() {
    do {
      dropSingleLoops();
    } while (readBehindView(loops.operands[0]) || readBehindView(loops.operands[1]));
  }

private:
  void dropSingleLoops();
  bool readBehindView(WindowRead &read);
  bool readBehind(WindowRead &read, linalg::GenericOp copy);
  bool readBehind(WindowRead &read, tensor::ExtractSliceOp slice);
  bool readBehind(WindowRead &read, tensor::PadOp pad);
  bool readZeros(WindowRead &read, tensor::PadOp pad);
  bool readBehind(WindowRead &read, tensor::InsertSliceOp spread);
  bool readElements(WindowRead &read, Value source, ArrayRef<int64_t> offsets, ArrayRef<int64_t> strides);
  bool spreadLoop(unsigned loop, int64_t offset, int64_t stride, int64_t count);
  bool divideLoop(WindowRead &read, unsigned dim, int64_t offset, int64_t stride, int64_t count);
  std::pair<int64_t, int64_t> boundsOf(const LoopSum &index) const;
  WindowResult *findResult(unsigned loop);

  WindowLoops &loops;
};

} // namespace

/// Returns the least and the greatest value of `index`; a loop of unknown size makes the greatest unknown.
std::pair<int64_t, int64_t> Rewriter::boundsOf(const LoopSum &index) const {
  int64_t least = index.constant, greatest = index.constant;
  for (unsigned l : index.loops()) {
    int64_t size = loops.sizes[l];
    if (ShapedType::isDynamic(size))
      return {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
    (index.factors[l] < 0 ? least : greatest) += index.factors[l] * (size - 1);
  }
  return {least, greatest};
}

WindowResult *Rewriter::findResult(unsigned loop) {
  auto *found = llvm::find_if(loops.result,
                              [&](const WindowResult &dim) { return llvm::is_contained(dim.loops, loop); });
  return found == loops.result.end() ? nullptr : found;
}

/// Drops loops of one iteration that are added to others.
void Rewriter::dropSingleLoops() {
  for (WindowRead &read : loops.operands)
    for (LoopSum &index : read.indices)
      if (SmallVector<unsigned> added = index.loops(); added.size() > 1)
        for (unsigned loop : added)
          if (loops.sizes[loop] == 1) {
            for (WindowRead &other : loops.operands)
              for (LoopSum &sum : other.indices)
                sum.factors[loop] = 0;
            if (WindowResult *result = findResult(loop))
              llvm::erase(result->loops, loop);
          }
}

bool Rewriter::readBehindView(WindowRead &read) {
  Operation *op = read.tensor.getDefiningOp();
  if (!op)
    return false;
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<linalg::GenericOp, tensor::ExtractSliceOp, tensor::PadOp, tensor::InsertSliceOp>(
          [&](auto view) { return readBehind(read, view); })
      .Default(false);
}

bool Rewriter::readBehind(WindowRead &read, linalg::GenericOp op) {
  std::optional<WindowRead> copy = matchCopy(op);
  if (!copy || !isa<RankedTensorType>(copy->tensor.getType()) || !isReordering(*copy, op.getNumLoops()))
    return false;
  WindowRead behind{copy->tensor, {}};
  for (const LoopSum &index : copy->indices)
    behind.indices.push_back(compose(index, read.indices, loops.sizes.size()));
  // A dimension of the copy that reads nothing has one element, or repeats some.
  for (auto [d, size] : llvm::enumerate(read.type().getShape()))
    if (size != 1 &&
        llvm::none_of(copy->indices, [d = d](const LoopSum &index) { return index.factors[d] != 0; }))
      return false;
  read = std::move(behind);
  return true;
}

bool Rewriter::readBehind(WindowRead &read, tensor::ExtractSliceOp slice) {
  if (slice.getSourceType().getRank() != slice.getType().getRank() ||
      llvm::any_of(slice.getStaticOffsets(), ShapedType::isDynamic) ||
      llvm::any_of(slice.getStaticStrides(), ShapedType::isDynamic))
    return false;
  for (auto [index, offset, stride] :
       llvm::zip_equal(read.indices, slice.getStaticOffsets(), slice.getStaticStrides())) {
    index.constant = offset + stride * index.constant;
    for (int64_t &factor : index.factors)
      factor *= stride;
  }
  read.tensor = slice.getSource();
  return true;
}

/// Reads only the elements of what is padded with zeros.
bool Rewriter::readZeros(WindowRead &read, tensor::PadOp pad) {
  Value zero = pad.getConstantPaddingValue();
  SmallVector<int64_t> ones(pad.getStaticLow().size(), 1);
  return zero && isFilledWithZeros(zero) && readElements(read, pad.getSource(), pad.getStaticLow(), ones);
}

/// Reads what is padded if no element of the pad is read.
bool Rewriter::readBehind(WindowRead &read, tensor::PadOp pad) {
  for (auto [index, low, size] :
       llvm::zip_equal(read.indices, pad.getStaticLow(), pad.getSourceType().getShape())) {
    auto [least, greatest] = boundsOf(index);
    if (low == 0 && index.loops().size() == 1 && index.constant == 0 && ShapedType::isDynamic(size))
      continue; // as wide as the loop, which the pad does not widen
    if (ShapedType::isDynamic(low) || ShapedType::isDynamic(size) || least < low || greatest >= low + size)
      return readZeros(read, pad);
  }
  for (auto [index, low] : llvm::zip_equal(read.indices, pad.getStaticLow()))
    index.constant -= low;
  read.tensor = pad.getSource();
  return true;
}

/// Makes `loop` count only those of its iterations that are at a stride, as others add zeros.
bool Rewriter::spreadLoop(unsigned loop, int64_t offset, int64_t stride, int64_t count) {
  if (loops.iterators[loop] == utils::IteratorType::parallel) {
    WindowResult *result = findResult(loop);
    if (!result || result->loops.size() != 1 || result->offset != 0 || result->stride != 1)
      return false;
    result->offset = offset;
    result->stride = stride;
    result->hasZeros = true;
  }
  loops.sizes[loop] = count;
  for (WindowRead &read : loops.operands)
    for (LoopSum &index : read.indices) {
      index.constant += index.factors[loop] * offset;
      index.factors[loop] *= stride;
    }
  return true;
}

/// Divides the loop i in `i + k`, the index along `dim`, in two, of which the second one counts k backwards:
/// each i meets one element of those at offset + stride · j, at one k, where k counts to the stride.
bool Rewriter::divideLoop(WindowRead &read, unsigned dim, int64_t offset, int64_t stride, int64_t count) {
  LoopSum &index = read.indices[dim];
  SmallVector<unsigned> added = index.loops();
  if (added.size() != 2 || index.constant != 0 || index.factors[added[0]] != 1 ||
      index.factors[added[1]] != 1)
    return false;
  if (loops.iterators[added[0]] != utils::IteratorType::parallel)
    std::swap(added[0], added[1]);
  auto [i, k] = std::pair(added[0], added[1]);
  if (count == 1) // at any stride
    stride = loops.sizes[k];
  WindowResult *result = findResult(i);
  bool fits = result && result->loops.size() == 1 && result->stride == 1 && result->offset == 0 &&
              loops.iterators[k] == utils::IteratorType::reduction && loops.sizes[k] == stride &&
              offset == stride - 1 && loops.sizes[i] >= count * stride;
  for (WindowRead &other : loops.operands)
    for (LoopSum &sum : other.indices)
      fits &= &sum == &index || sum.factors[i] == 0;
  if (!fits)
    return false;
  result->loops.push_back(k);
  result->hasZeros |= loops.sizes[i] != count * stride;
  loops.sizes[i] = count;
  loops.iterators[k] = utils::IteratorType::parallel;
  index.factors[k] = 0;
  for (WindowRead &other : loops.operands)
    for (LoopSum &sum : other.indices) {
      sum.constant += sum.factors[k] * (stride - 1);
      sum.factors[k] = -sum.factors[k];
    }
  return true;
}

/// Reads only the elements of `source` in a tensor of zeros, in which they are at offsets and strides.
bool Rewriter::readElements(WindowRead &read, Value source, ArrayRef<int64_t> offsets,
                            ArrayRef<int64_t> strides) {
  WindowLoops before = loops;
  ArrayRef<int64_t> counts = cast<RankedTensorType>(source.getType()).getShape();
  for (auto [d, offset, stride, count, size] :
       llvm::enumerate(offsets, strides, counts, read.type().getShape())) {
    if (offset == 0 && stride == 1 && count == size && !ShapedType::isDynamic(count))
      continue;
    LoopSum &index = read.indices[d];
    SmallVector<unsigned> counting = index.loops();
    bool isKnown = llvm::none_of(std::array{offset, stride, count}, ShapedType::isDynamic);
    bool isPlain = counting.size() == 1 && index.constant == 0 && index.factors[counting[0]] == 1;
    if (isKnown && isPlain && spreadLoop(counting[0], offset, stride, count)) {
      index.constant = 0; // of the elements again
      index.factors[counting[0]] = 1;
    } else if (!isKnown || !divideLoop(read, d, offset, stride, count)) {
      loops = std::move(before);
      return false;
    }
  }
  read.tensor = source;
  return true;
}

bool Rewriter::readBehind(WindowRead &read, tensor::InsertSliceOp spread) {
  return spread.getSourceType().getRank() == spread.getDestType().getRank() &&
         isFilledWithZeros(spread.getDest()) &&
         readElements(read, spread.getSource(), spread.getStaticOffsets(), spread.getStaticStrides());
}

//===----------------------------------------------------------------------===//
// Matmuls
//===----------------------------------------------------------------------===//

std::optional<CountedDim> fp8::countDim(const LoopSum &index, ArrayRef<int64_t> sizes, int64_t size) {
  SmallVector<unsigned> loops = index.loops();
  CountedDim dim;
  dim.offset = index.constant;
  if (loops.empty())
    return dim;
  if (loops.size() == 1 && index.factors[loops[0]] == 1 && index.constant == 0 && sizes[loops[0]] == size) {
    dim.inner = loops[0];
    return dim;
  }
  if (loops.size() > 2 || index.constant < 0 || ShapedType::isDynamic(size) ||
      llvm::any_of(
          loops, [&](unsigned l) { return index.factors[l] <= 0 || ShapedType::isDynamic(sizes[l]); }))
    return std::nullopt;
  llvm::sort(loops, [&](unsigned a, unsigned b) { return index.factors[a] > index.factors[b]; });
  dim.inner = loops.back();
  dim.stride = index.factors[*dim.inner];
  int64_t count = sizes[*dim.inner];
  if (loops.size() == 2) {
    dim.outer = loops[0];
    dim.width = index.factors[loops[0]] / dim.stride;
    if (index.factors[loops[0]] % dim.stride != 0 || dim.width < count)
      return std::nullopt;
    count = dim.width * sizes[loops[0]];
  }
  return count > 0 && dim.offset + dim.stride * (count - 1) < size ? std::optional(dim) : std::nullopt;
}

/// Returns whether the loops are those of a matmul: each operand has a loop that the result has and
/// the other operand has not, no operand reads a loop twice, and all loops of sums are in both.
static bool isMatmul(const WindowLoops &loops) {
  SmallVector<unsigned> uses[2];
  for (auto [count, read] : llvm::zip_equal(uses, loops.operands)) {
    count.resize(loops.sizes.size());
    for (auto [index, size] : llvm::zip_equal(read.indices, read.type().getShape())) {
      if (!countDim(index, loops.sizes, size))
        return false;
      for (unsigned l : index.loops())
        ++count[l];
    }
  }
  bool own[2] = {false, false}, shared = false;
  for (auto [l, iterator] : llvm::enumerate(loops.iterators)) {
    if (uses[0][l] > 1 || uses[1][l] > 1)
      return false;
    bool isParallel = iterator == utils::IteratorType::parallel;
    own[0] |= isParallel && uses[0][l] && !uses[1][l];
    own[1] |= isParallel && uses[1][l] && !uses[0][l];
    shared |= !isParallel && uses[0][l] && uses[1][l];
    if (!isParallel && uses[0][l] != uses[1][l])
      return false;
  }
  return own[0] && own[1] && shared;
}

std::optional<WindowLoops> WindowLoops::of(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics() || op.getNumDpsInputs() != 2 || op.getNumDpsInits() != 1 ||
      !isa<FloatType>(getElementTypeOrSelf(op.getDpsInits()[0])) || !sumsFloatProducts(op))
    return std::nullopt;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  // Matmuls without windows are contractions already.
  if (!maps[2].isProjectedPermutation() ||
      (maps[0].isProjectedPermutation() && maps[1].isProjectedPermutation()))
    return std::nullopt;
  WindowLoops loops;
  loops.iterators = op.getIteratorTypesArray();
  loops.sizes = op.getStaticLoopRanges();
  for (unsigned i : {0, 1}) {
    std::optional<SmallVector<LoopSum>> indices = flatten(maps[i]);
    if (!indices || !isa<RankedTensorType>(op.getDpsInputs()[i].getType()))
      return std::nullopt;
    loops.operands[i] = {op.getDpsInputs()[i], std::move(*indices)};
  }
  auto type = cast<RankedTensorType>(op.getDpsInits()[0].getType());
  for (auto [i, size] : llvm::enumerate(type.getShape()))
    loops.result.push_back({{maps[2].getDimPosition(i)}, 0, 1, size});
  Rewriter(loops).run();
  return isMatmul(loops) ? std::optional(std::move(loops)) : std::nullopt;
}
