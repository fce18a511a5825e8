// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions that pack a matrix into f32 panels, which the micro-kernel reads sequentially: one
// function per element type, panel width, and dimension along which the matrix is contiguous.
// Along the rows of a panel whole vectors are converted and stored; along K squares of
// lanes x lanes elements are transposed in registers, in parts of 128 bits where vectors have 256 bits
// or fewer. Or into panels of pairs of bf16 elements adjacent
// along K, in 32 bits each: then what is said of f32 elements and indices of K holds for pairs.

#include "PackedGemmDetail.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace fp8;

/// Vectors of so many lanes are stored in part by one masked store, which AVX-512 has; a part of a shorter
/// vector takes two or three stores, which are faster than the masked ones of AVX2.
static constexpr int64_t kMaskedLanes = 16;

/// The f32 elements of 128 bits, across which shuffles of AVX2 are slow.
static constexpr int64_t kPartLanes = 4;

/// Panels that are packed at the same time where the source is contiguous along its rows, so that long
/// pieces of each row are read.
static constexpr int64_t kGroup = 4;

/// The bytes of a cache line, and rows of the source ahead of which it is prefetched where it is contiguous
/// along its rows. The processor does not find these by itself: the pieces that are read are short and far
/// apart.
static constexpr int64_t kLineBytes = 64, kRowsAhead = 24;

/// Interleaves pieces of `piece` elements from the low or high half of every part of `first` and `second`.
static Value interleaveParts(OpBuilder &b, Location loc, Value first, Value second, int64_t piece,
                             bool isHigh) {
  int64_t lanes = cast<VectorType>(first.getType()).getNumElements();
  SmallVector<int64_t> mask;
  for (int64_t part = 0; part < lanes; part += kPartLanes)
    for (int64_t from = isHigh ? kPartLanes / 2 : 0, end = from + kPartLanes / 2; from < end; from += piece)
      for (int64_t vector : {0, 1})
        for (int64_t i = 0; i < piece; ++i)
          mask.push_back(vector * lanes + part + from + i);
  return vector::ShuffleOp::create(b, loc, first, second, mask);
}

/// Transposes 1, 2 or 4 rows within parts: lanes p·count … of vector v of the result have the elements of all
/// rows at one index.
static SmallVector<Value> transposeParts(OpBuilder &b, Location loc, ArrayRef<Value> rows) {
  SmallVector<Value> vectors(rows);
  for (size_t size = 1; size < rows.size(); size *= 2) {
    SmallVector<Value> next;
    for (size_t i = 0; i < rows.size(); i += 2 * size)
      for (size_t j = i; j < i + size; ++j)
        for (bool isHigh : {false, true})
          next.push_back(interleaveParts(b, loc, vectors[j], vectors[j + size], size, isHigh));
    vectors = std::move(next);
  }
  return vectors;
}

namespace {
/// Emits the body of one packing function.
class PackBuilder {
public:
  PackBuilder(Location loc, ValueRange operands, bool alongK, int64_t width,
              const PackedMatmulOptions &options)
      : loc(loc), source(operands[0]), panels(operands[1]), firstPanel(operands[2]), alongK(alongK),
        width(width), lanes(options.registers.lanes), pairs(options.hasPairs()), isFilled(options.hasTiles()),
        element(cast<MemRefType>(source.getType()).getElementType()) {}

  void build(OpBuilder &b);

private:
  Value index(OpBuilder &b, int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
  void loop(OpBuilder &b, Value begin, Value end, int64_t step, function_ref<void(OpBuilder &, Value)> body);
  /// Returns the first row of `panel`.
  Value firstRow(OpBuilder &b, Value panel) {
    Value position = arith::AddIOp::create(b, loc, firstPanel, panel);
    return arith::MulIOp::create(b, loc, position, index(b, width));
  }
  /// Stores the first `count` lanes of `vector`, which has as many or all, at panels[panel, k, lane...].
  void store(OpBuilder &b, Value vector, Value panel, Value k, int64_t lane, int64_t count);
  /// Loads `count` elements of the source as f32.
  Value load(OpBuilder &b, Value position, Value k, int64_t count);
  /// Loads the elements of panels for one index `k` and `count` rows from `row` on, or `lanes` indices from
  /// `k` on.
  Value loadAcrossK(OpBuilder &b, Value row, Value k, int64_t count);
  Value loadAlongK(OpBuilder &b, Value row, Value k);

  /// Returns the elements of the source in a cache line.
  int64_t lineElements() const { return kLineBytes * 8 / element.getIntOrFloatBitWidth(); }
  void prefetch(OpBuilder &b, Value row, Value k);

  void packAlongK(OpBuilder &b, Value panel);
  /// Packs `lanes` indices of K, from `k`, of up to `lanes` rows of a panel, from `lane`.
  void packSquare(OpBuilder &b, Value panel, ArrayRef<Value> rows, Value k, int64_t lane);
  void packParts(OpBuilder &b, Value panel, ArrayRef<Value> vectors, Value k, int64_t lane);
  /// Packs `count` panels from `panel` on, one index of K after the other; reads nothing behind them if
  /// `isExact`.
  void packAlongRows(OpBuilder &b, Value panel, int64_t count, bool isExact = false);
  /// Returns the number of leading panels, of `count`, that have all their rows; and `behind` rows follow.
  Value countWhole(OpBuilder &b, Value count, int64_t behind);
  /// Packs a panel of `valid` rows element by element; the other rows become zero.
  void packElements(OpBuilder &b, Value panel, Value valid);
  /// Writes zeros to what `count` panels have along K beyond the source.
  void fillBehind(OpBuilder &b, Value count);

  Location loc;
  Value source, panels, firstPanel;
  bool alongK;
  int64_t width, lanes;
  bool pairs, isFilled;
  Type element;
  Value outer, depth; ///< sizes of the source; of K, in elements of a panel
};
} // namespace

void PackBuilder::loop(OpBuilder &b, Value begin, Value end, int64_t step,
                       function_ref<void(OpBuilder &, Value)> body) {
  auto loop = scf::ForOp::create(b, loc, begin, end, index(b, step));
  OpBuilder inside = OpBuilder::atBlockTerminator(loop.getBody());
  body(inside, loop.getInductionVar());
}

void PackBuilder::store(OpBuilder &b, Value vector, Value panel, Value k, int64_t lane, int64_t count) {
  Value at[] = {panel, k, index(b, lane)};
  auto vectorType = dyn_cast<VectorType>(vector.getType());
  if (!vectorType) {
    memref::StoreOp::create(b, loc, vector, panels, at);
    return;
  }
  bool isPart = count < vectorType.getNumElements();
  if (isPart && lanes >= kMaskedLanes) {
    auto type = VectorType::get(lanes, b.getI1Type());
    SmallVector<bool> isStored(lanes, false);
    llvm::fill(MutableArrayRef(isStored).take_front(count), true);
    Value mask = arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, ArrayRef<bool>(isStored)));
    vector::MaskedStoreOp::create(b, loc, panels, at, mask, vector);
    return;
  }
  if (isPart) {
    SmallVector<int64_t> first = llvm::to_vector(llvm::seq<int64_t>(count));
    vector = vector::ShuffleOp::create(b, loc, vector, vector, first);
  }
  vector::StoreOp::create(b, loc, vector, panels, at);
}

Value PackBuilder::load(OpBuilder &b, Value position, Value k, int64_t count) {
  Value at[] = {position, k};
  if (!alongK)
    std::swap(at[0], at[1]);
  if (count == 1)
    return extendToF32(b, loc, memref::LoadOp::create(b, loc, source, at));
  return extendToF32(b, loc, vector::LoadOp::create(b, loc, VectorType::get(count, element), source, at));
}

Value PackBuilder::loadAcrossK(OpBuilder &b, Value row, Value k, int64_t count) {
  if (!pairs)
    return load(b, row, k, count);
  Value low = arith::MulIOp::create(b, loc, k, index(b, 2));
  Value high = arith::AddIOp::create(b, loc, low, index(b, 1));
  return buildPairs(b, loc, load(b, row, low, count), load(b, row, high, count));
}

Value PackBuilder::loadAlongK(OpBuilder &b, Value row, Value k) {
  if (!pairs)
    return load(b, row, k, lanes);
  Value at[] = {row, arith::MulIOp::create(b, loc, k, index(b, 2))};
  auto type = VectorType::get(2 * lanes, element);
  return buildAdjacentPairs(b, loc, vector::LoadOp::create(b, loc, type, source, ValueRange(at)));
}

/// Prefetches the line of the source at `row` and `k`, which may lie behind its end.
void PackBuilder::prefetch(OpBuilder &b, Value row, Value k) {
  if (pairs)
    k = arith::MulIOp::create(b, loc, k, index(b, 2));
  Value at[] = {row, k};
  if (!alongK)
    std::swap(at[0], at[1]);
  memref::PrefetchOp::create(b, loc, source, at, /*isWrite=*/false, /*localityHint=*/2, /*isDataCache=*/true);
}

void PackBuilder::packElements(OpBuilder &b, Value panel, Value valid) {
  Value zero = index(b, 0);
  Value nothing = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
  Value first = firstRow(b, panel);
  loop(b, zero, depth, 1, [&](OpBuilder &overK, Value k) {
    loop(overK, zero, valid, 1, [&](OpBuilder &body, Value row) {
      Value position = arith::AddIOp::create(body, loc, first, row);
      Value value = loadAcrossK(body, position, k, /*count=*/1);
      memref::StoreOp::create(body, loc, value, panels, ValueRange{panel, k, row});
    });
    loop(overK, valid, index(overK, width), 1, [&](OpBuilder &body, Value row) {
      memref::StoreOp::create(body, loc, nothing, panels, ValueRange{panel, k, row});
    });
  });
}

void PackBuilder::packSquare(OpBuilder &b, Value panel, ArrayRef<Value> rows, Value k, int64_t lane) {
  SmallVector<Value> vectors = llvm::map_to_vector(rows, [&](Value row) { return loadAlongK(b, row, k); });
  if (lanes < kMaskedLanes)
    return packParts(b, panel, vectors, k, lane);
  vectors.resize(lanes, vectors.back()); // lanes that are not stored
  for (auto [position, vector] : llvm::enumerate(transposeSquare(b, loc, vectors)))
    store(b, vector, panel, arith::AddIOp::create(b, loc, k, index(b, position)), lane, rows.size());
}

/// Packs the rows `vectors` four at a time, then two, then one.
void PackBuilder::packParts(OpBuilder &b, Value panel, ArrayRef<Value> vectors, Value k, int64_t lane) {
  while (!vectors.empty()) {
    int64_t count = std::min<int64_t>(llvm::bit_floor(vectors.size()), kPartLanes);
    for (auto [v, vector] : llvm::enumerate(transposeParts(b, loc, vectors.take_front(count))))
      for (int64_t from = 0; from < lanes; from += count) {
        int64_t part = from / kPartLanes * kPartLanes;
        int64_t position = part + static_cast<int64_t>(v) * (kPartLanes / count) + (from - part) / count;
        SmallVector<int64_t> piece = llvm::to_vector(llvm::seq(from, from + count));
        Value at[] = {panel, arith::AddIOp::create(b, loc, k, index(b, position)), index(b, lane)};
        vector::StoreOp::create(b, loc, vector::ShuffleOp::create(b, loc, vector, vector, piece), panels, at);
      }
    vectors = vectors.drop_front(count);
    lane += count;
  }
}

/// Rows beyond the last one repeat it: nothing reads their sums.
void PackBuilder::packAlongK(OpBuilder &b, Value panel) {
  Value zero = index(b, 0);
  Value first = firstRow(b, panel);
  Value lastRow = arith::SubIOp::create(b, loc, outer, index(b, 1));
  Value lastSquare = arith::SubIOp::create(b, loc, depth, index(b, lanes));
  for (int64_t lane = 0; lane < width; lane += lanes) {
    SmallVector<Value> rows;
    for (int64_t row = lane; row < std::min(width, lane + lanes); ++row) {
      Value position = arith::AddIOp::create(b, loc, first, index(b, row));
      rows.push_back(arith::MinSIOp::create(b, loc, position, lastRow));
    }
    // A line of each row at a time, while those of the next panel are prefetched. The last square ends at the
    // end of K, so that it may repeat part of the one before.
    int64_t step = std::max(lineElements() / (pairs ? 2 : 1), lanes);
    loop(b, zero, depth, step, [&](OpBuilder &line, Value begin) {
      for (Value row : rows)
        prefetch(line, arith::AddIOp::create(line, loc, row, index(line, width)), begin);
      Value end = arith::MinSIOp::create(line, loc, depth,
                                         arith::AddIOp::create(line, loc, begin, index(line, step)));
      loop(line, begin, end, lanes, [&](OpBuilder &body, Value k) {
        packSquare(body, panel, rows, arith::MinSIOp::create(body, loc, k, lastSquare), lane);
      });
    });
  }
}

void PackBuilder::packAlongRows(OpBuilder &b, Value panel, int64_t count, bool isExact) {
  Value first = firstRow(b, panel);
  loop(b, index(b, 0), depth, 1, [&](OpBuilder &body, Value k) {
    Value ahead = arith::AddIOp::create(body, loc, k, index(body, kRowsAhead / (pairs ? 2 : 1)));
    // From the last row that is read on: panels before have read the line of the first one, if it is not
    // aligned.
    int64_t last = count * width - 1 + (isExact ? 0 : llvm::alignTo(width, lanes) - width);
    for (int64_t row = last; row >= 0; row -= lineElements())
      prefetch(body, arith::AddIOp::create(body, loc, first, index(body, row)), ahead);
    for (int64_t i = 0; i < count; ++i) {
      Value target = arith::AddIOp::create(body, loc, panel, index(body, i));
      for (int64_t lane = 0, size; lane < width; lane += size) {
        size = std::min(lanes, width - lane);
        if (isExact)
          size = llvm::bit_floor<uint64_t>(size);
        Value position = arith::AddIOp::create(body, loc, first, index(body, i * width + lane));
        Value vector = loadAcrossK(body, position, k, isExact ? size : lanes);
        store(body, vector, target, k, lane, size);
      }
    }
  });
}

Value PackBuilder::countWhole(OpBuilder &b, Value count, int64_t behind) {
  Value zero = index(b, 0);
  if (alongK) {
    Value isLong = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, depth, index(b, lanes));
    return arith::SelectOp::create(b, loc, isLong, count, zero);
  }
  Value left = arith::SubIOp::create(b, loc, outer, firstRow(b, zero));
  left = arith::SubIOp::create(b, loc, left, index(b, behind));
  left = arith::MaxSIOp::create(b, loc, left, zero);
  Value whole = arith::DivUIOp::create(b, loc, left, index(b, width));
  return arith::MinSIOp::create(b, loc, whole, count);
}

void PackBuilder::fillBehind(OpBuilder &b, Value count) {
  Value zero = index(b, 0), one = index(b, 1), end = memref::DimOp::create(b, loc, panels, 1);
  auto fill = [&](OpBuilder &body, Location, ValueRange at) {
    for (int64_t lane = 0, size; lane < width; lane += size) {
      size = std::min<int64_t>(lanes, llvm::bit_floor<uint64_t>(width - lane));
      auto type = VectorType::get(size, body.getF32Type());
      Value zeros = arith::ConstantOp::create(body, loc, body.getZeroAttr(type));
      vector::StoreOp::create(body, loc, zeros, panels, ValueRange{at[0], at[1], index(body, lane)});
    }
  };
  scf::buildLoopNest(b, loc, {zero, depth}, {count, end}, {one, one}, fill);
}

void PackBuilder::build(OpBuilder &b) {
  Value zero = index(b, 0);
  outer = memref::DimOp::create(b, loc, source, alongK ? 0 : 1);
  depth = memref::DimOp::create(b, loc, source, alongK ? 1 : 0);
  if (pairs)
    depth = arith::DivUIOp::create(b, loc, depth, index(b, 2));
  Value count = memref::DimOp::create(b, loc, panels, 0);
  int64_t behind = llvm::alignTo(width, lanes) - width; // rows that the last vector of a panel reads, too
  Value whole = countWhole(b, count, behind);
  if (alongK) {
    loop(b, zero, whole, 1, [&](OpBuilder &body, Value panel) { packAlongK(body, panel); });
  } else {
    Value rest = arith::RemUIOp::create(b, loc, whole, index(b, kGroup));
    Value grouped = arith::SubIOp::create(b, loc, whole, rest);
    loop(b, zero, grouped, kGroup, [&](OpBuilder &body, Value panel) { packAlongRows(body, panel, kGroup); });
    loop(b, grouped, whole, 1, [&](OpBuilder &body, Value panel) { packAlongRows(body, panel, 1); });
    if (behind) {
      Value full = countWhole(b, count, 0);
      loop(b, whole, full, 1, [&](OpBuilder &body, Value panel) { packAlongRows(body, panel, 1, true); });
      whole = full;
    }
  }
  loop(b, whole, count, 1, [&](OpBuilder &body, Value panel) {
    Value left = arith::SubIOp::create(body, loc, outer, firstRow(body, panel));
    packElements(body, panel, arith::MinSIOp::create(body, loc, left, index(body, width)));
  });
  if (isFilled)
    fillBehind(b, count);
}

void fp8::buildPack(OpBuilder &builder, Location loc, const OperandMatrix &matrix, Value panels,
                    const PackedMatmulOptions &options, OpFoldResult first) {
  int64_t width = cast<MemRefType>(panels.getType()).getShape().back();
  Type element = cast<MemRefType>(matrix.view.getType()).getElementType();
  std::string name = "fp8_cpu_pack_";
  llvm::raw_string_ostream(name) << element
                                 << (options.hasTiles()   ? "_filled_pairs"
                                     : options.hasPairs() ? "_pairs"
                                                          : "")
                                 << (matrix.alongK ? "_k_" : "_rows_") << width;
  Type inputs[] = {getStridedType(element, 2), getStridedType(builder.getF32Type(), 3, width),
                   builder.getIndexType()};
  func::FuncOp pack = getOrCreateFunction(builder, name, inputs, [&](OpBuilder &body, ValueRange arguments) {
    PackBuilder(body.getUnknownLoc(), arguments, matrix.alongK, width, options).build(body);
  });
  if (!first)
    first = builder.getIndexAttr(0);
  callFunction(builder, loc, pack,
               ValueRange{matrix.view, panels, getValueOrCreateConstantIndexOp(builder, loc, first)});
}
