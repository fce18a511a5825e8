// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Executing tcgen05.mma: multiplicands from shared and tensor memory, scale factors from
// tensor memory, one sum for each element of D.
//
// Each lane of tensor memory multiplies on its own: it takes its row of A, where that is
// in tensor memory, from the same lane, and scale factors from its own 32 lanes, to all of
// which they must have been copied (PTX ISA 9.7.16.10.7). With D's columns in parts,
// those of B's scale factors are too.

#include "Tcgen05Product.h"

#include "exec/Launch.h"
#include "isa/matrix/SumModel.h"
#include "num/Arith.h"
#include "num/DotColumns.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

using namespace fp8emu;

namespace {

/// Rows of A or columns of B, each along K.
struct Multiplicand {
  TensorElement element;
  /// Of each block.
  unsigned rows = 0, k = 0;
  SharedMatrix matrix;
  /// As floats, which hold integers of 8 bits too.
  std::vector<float> values;

  float *row(unsigned i) { return values.data() + size_t(i) * k; }
  /// How many elements lie in the direction in which they are contiguous, and across.
  unsigned length() const { return element.transposed ? rows : k; }
  unsigned across() const { return element.transposed ? k : rows; }
  /// Parts of 16 bytes that hold that length.
  unsigned parts() const { return (length() + element.perPart() - 1) / element.perPart(); }
  /// Bytes of a part that hold elements of the matrix; the ones behind them are padding, which
  /// is not read.
  unsigned bytesOf(unsigned part) const {
    const unsigned per = element.perPart(), count = std::min(per, length() - part * per);
    return (count * element.bits + 7) / 8;
  }
};

template <class T>
T load(const uint8_t *from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// Element `i` of those that begin at `bytes`, `bits` each, at the place that it has in a
/// byte or word in tensor memory where `spread`, else packed.
float elementAt(const TensorElement &element, const uint8_t *bytes, unsigned i, bool spread) {
  float value;
  if (element.bits == 32) {
    // tf32: the lower 13 bits are ignored.
    value = num::floatOf(load<uint32_t>(bytes + 4 * i) & 0xFFFFE000U);
  } else if (element.bits == 16) {
    uint16_t bits = load<uint16_t>(bytes + 2 * i);
    value = element.format == &num::F16 ? num::halfToFloat(bits) : num::bfloatToFloat(bits);
  } else if (!element.format) {
    value = element.isSigned ? float(int8_t(bytes[i])) : float(bytes[i]);
  } else {
    unsigned code = bytes[spread ? i : i * element.bits / 8];
    if (spread && element.bits == 4 && element.place == 8)
      code >>= 2;
    else if (!spread && element.bits < 8) {
      // An element may begin in one byte and end in the next, never in the padding.
      unsigned first = i * element.bits;
      if (first % 8 + element.bits > 8)
        code |= unsigned(bytes[first / 8 + 1]) << 8;
      code >>= first % 8;
    }
    value = num::floatTable(*element.format)[code & ((1U << element.bits) - 1)];
  }
  return element.negated ? -value : value;
}

class TensorProduct : public TensorOperation {
public:
  TensorProduct(Warp &warp, unsigned lane, const TensorProductCode &code)
      : TensorOperation(warp, lane, code.pair), code(code), model(sumModel(warp)),
        shape(decodeShape(warp, lane)), layout(code, shape), d(code.d.address(warp, lane)) {
    enableD = (warp.values<Mask>(code.enableD)[0] >> lane & 1) != unsigned(code.enableDNegated);
    rowsA = {shape.a, layout.rows, shape.k, {}, {}};
    columnsB = {shape.b, shape.n / unsigned(blocks.size()), shape.k, {}, {}};
    if (code.aInTensorMemory)
      a = code.a.address(warp, lane);
    else
      setMatrix(warp, lane, code.descriptorA, rowsA, "A");
    setMatrix(warp, lane, code.descriptorB, columnsB, "B");
    // The upper bits of these addresses may hold the first byte again.
    if (code.scales) {
      scaleA = code.scaleA.address(warp, lane) & 0x3FFFFFFF;
      scaleB = code.scaleB.address(warp, lane) & 0x3FFFFFFF;
    }
    for (Ref ref : code.disabled)
      disabled.push_back(warp.values<uint32_t>(ref)[lane]);
    setZeroColumns(warp, lane);
    checkTensorMemory();
    announce();
    setSum();
    countProduct(warp, shape.m, shape.n, shape.k);
  }

protected:
  void read() override {
    unsigned count = unsigned(blocks.size());
    rowsA.values.assign(size_t(count) * rowsA.rows * shape.k, 0);
    columnsB.values.assign(size_t(count) * columnsB.rows * shape.k, 0);
    for (unsigned i = 0; i < count; ++i) {
      if (!code.aInTensorMemory)
        readMatrix(*blocks[i], rowsA, i * rowsA.rows);
      readMatrix(*blocks[i], columnsB, i * columnsB.rows);
    }
    for (unsigned i = 0; i < zeros.size(); ++i)
      if (zeros[i])
        std::fill_n(columnsB.row(i), shape.k, 0.0f);
  }

  void write() override {
    checkTensorMemory();
    for (unsigned part = 0; part < layout.parts; ++part) {
      std::optional<num::DotColumns> together;
      if (shape.d == TensorResult::F32 && code.scales <= 1 &&
          num::DotColumns::has(sum, shape.k, code.scales != 0))
        together.emplace(sum, columnsB.row(part * columns()), columns(), shape.k);
      for (unsigned i = 0; i < blocks.size(); ++i)
        for (unsigned lane = 0; lane < kTensorLanes - tensorLane(d); ++lane)
          if (int row = layout.row(lane);
              row >= 0 && layout.part(lane) == part && !isDisabled(i, lane + tensorLane(d)))
            multiplyLane(i, lane, unsigned(row), together ? &*together : nullptr);
    }
  }

private:
  TensorProductShape decodeShape(Warp &warp, unsigned lane) const {
    TensorProductShape out;
    std::string wrong = out.decode(code, warp.values<uint32_t>(code.instruction)[lane]);
    if (!wrong.empty())
      fail(FaultKind::IllegalOperand, "instruction descriptor: " + wrong);
    return out;
  }

  /// A matrix in shared memory: that its swizzling and direction fit the type (table 54).
  void setMatrix(Warp &warp, unsigned lane, Ref ref, Multiplicand &to, const char *name) const {
    if (const char *wrong = to.matrix.decodeTensor(warp.values<uint64_t>(ref)[lane]))
      fail(FaultKind::IllegalOperand, std::string("matrix descriptor of ") + name + ": " + wrong);
    bool atoms32 = to.matrix.swizzle == MatrixSwizzle::Bytes128By32;
    if (to.element.transposed && atoms32 != (to.element.place == 32))
      fail(FaultKind::IllegalOperand,
           std::string("matrix ") + name + " is transposed, " +
               (atoms32 ? "swizzling in atoms of 32 bytes is for 32-bit elements then"
                        : "32-bit elements need the swizzling in atoms of 32 bytes then"));
  }

  void setZeroColumns(Warp &warp, unsigned lane) {
    if (!code.zeroColumns)
      return;
    uint64_t mask = warp.values<uint64_t>(code.zeroColumns)[lane];
    if (mask >> 56 & 0x3F)
      fail(FaultKind::IllegalOperand, "zero-column mask descriptor: a shift of columns is not supported");
    zeros = zeroColumns(mask, shape.m, shape.n);
  }

  /// Calls `f(across, part, address)` for all of a matrix that lies in a block.
  template <class F>
  void forParts(const Multiplicand &from, F f) const {
    for (unsigned i = 0; i < from.across(); ++i)
      for (unsigned j = 0; j < from.parts(); ++j)
        f(i, j, from.matrix.part(from.element.transposed, i, j));
  }

  /// Reads the part of a matrix that lies in a block, which begins at row `first`.
  void readMatrix(Block &block, Multiplicand &to, unsigned first) {
    unsigned per = to.element.perPart();
    forParts(to, [&](unsigned across, unsigned part, uint32_t address) {
      const uint8_t *bytes = shared(block, address, to.bytesOf(part));
      for (unsigned i = 0; i < per && part * per + i < to.length(); ++i) {
        unsigned along = part * per + i;
        unsigned row = to.element.transposed ? along : across, k = to.element.transposed ? across : along;
        to.row(first + row)[k] = elementAt(to.element, bytes, i, /*spread=*/false);
      }
    });
  }

  bool isDisabled(unsigned block, unsigned lane) const {
    unsigned bit = (code.pair ? block * kTensorLanes : 0) + lane;
    return !disabled.empty() && (disabled[bit / 32] >> bit % 32 & 1);
  }

  /// Columns of D in each lane.
  unsigned columns() const { return shape.n / layout.parts; }
  /// Columns of A in tensor memory: 32 bytes of K, as in shared memory.
  static constexpr unsigned kColumnsOfA = 8;

  void checkTensorMemory() const {
    unsigned lane = tensorLane(d);
    if (lane != 0 && !(layout.halves && lane == 16))
      fail(FaultKind::IllegalOperand,
           "the lane of D is " + std::to_string(lane) + ", it must be 0" + (layout.halves ? " or 16" : ""));
    if (code.aInTensorMemory && tensorLane(a) != lane)
      fail(FaultKind::IllegalOperand, "A and D are in different lanes");
    for (Block *block : blocks) {
      const TensorMemory &memory = block->tensorMemory();
      needs(memory, {0, tensorColumn(d), kTensorLanes, columns()});
      if (code.aInTensorMemory)
        needs(memory, {0, tensorColumn(a), kTensorLanes, kColumnsOfA});
      if (!code.scales)
        continue;
      needs(memory, {0, tensorColumn(scaleA), kTensorLanes, (layout.rows + 31) / 32});
      needs(memory, {0, tensorColumn(scaleB), kTensorLanes, (columns() + 31) / 32});
    }
  }

  /// Calls `f(range)` for the lanes that D has in these columns.
  template <class F>
  void forRanges(uint32_t address, unsigned count, F f) const {
    if (!layout.halves)
      return f(TensorRange{0, tensorColumn(address), kTensorLanes, count});
    for (unsigned quarter = 0; quarter < 4; ++quarter)
      f(TensorRange{quarter * 32 + tensorLane(address), tensorColumn(address), 16, count});
  }

  void announce() {
    for (Block *block : blocks) {
      auto announce = [&](const Multiplicand &matrix) {
        forParts(matrix,
                 [&](unsigned, unsigned part, uint32_t at) { willRead(*block, at, matrix.bytesOf(part)); });
      };
      if (!code.aInTensorMemory)
        announce(rowsA);
      announce(columnsB);
    }
    if (code.aInTensorMemory)
      forRanges(a, kColumnsOfA, [&](const TensorRange &range) { willRead(range); });
    if (code.scales) {
      willRead({0, tensorColumn(scaleA), kTensorLanes, (layout.rows + 31) / 32});
      willRead({0, tensorColumn(scaleB), kTensorLanes, (columns() + 31) / 32});
    }
    forRanges(d, columns(), [&](const TensorRange &range) { willWrite(range); });
  }

  void setSum() {
    sum.model = model;
    if (!shape.a.format)
      return;
    sum.leastExponentA = shape.a.format->minExponent();
    sum.leastExponentB = shape.b.format->minExponent();
    sum.truncation =
        num::truncation(num::TensorUnit::Blackwell, *shape.a.format, shape.d == TensorResult::F16);
    if (!code.scales)
      return;
    sum.leastExponentScale = shape.scaleFormat->minExponent();
    sum.truncation = num::scaledTruncation(shape.k);
  }

  /// The row of A that a lane multiplies with.
  const float *rowOfA(unsigned block, unsigned lane, unsigned row) {
    if (!code.aInTensorMemory)
      return rowsA.row(block * layout.rows + row);
    const auto *bytes = reinterpret_cast<const uint8_t *>(
        &blocks[block]->tensorMemory().cell(lane + tensorLane(a), tensorColumn(a)));
    bool packed = shape.a.place == 4;
    for (unsigned k = 0; k < shape.k; ++k)
      fromTensor[k] = elementAt(shape.a, bytes, k, /*spread=*/!packed);
    return fromTensor.data();
  }

  /// The scale factors of row or column `i`, as the quarter of `lane` has them.
  void scaleFactors(unsigned block, unsigned lane, uint32_t address, unsigned i, unsigned byte,
                    float *out) const {
    TensorMemory &memory = blocks[block]->tensorMemory();
    uint32_t word = memory.cell(lane / 32 * 32 + i % 32, tensorColumn(address) + i / 32);
    for (unsigned j = 0; j < code.scales; ++j)
      out[j] = num::floatTable(*shape.scaleFormat)[word >> 8 * (byte + j) & 0xFF];
  }

  void multiplyLane(unsigned block, unsigned lane, unsigned row, const num::DotColumns *together) {
    const float *rowA = rowOfA(block, lane, row);
    float factorsA[4], factorsB[4];
    if (code.scales)
      scaleFactors(block, lane, scaleA, row, shape.scaleByteA, factorsA);
    uint32_t *out = &blocks[block]->tensorMemory().cell(lane + tensorLane(d), tensorColumn(d));
    if (together)
      return multiplyTogether(*together, block, lane, rowA, factorsA, out);
    for (unsigned i = 0; i < columns(); ++i) {
      const float *columnB = columnsB.row(layout.part(lane) * columns() + i);
      if (code.scales)
        scaleFactors(block, lane, scaleB, i, shape.scaleByteB, factorsB);
      out[i] = element(enableD ? out[i] : 0, rowA, columnB, factorsA, factorsB);
    }
  }

  void multiplyTogether(const num::DotColumns &together, unsigned block, unsigned lane, const float *rowA,
                        const float *factorA, uint32_t *out) const {
    std::array<float, 256> sums, factorsB;
    for (unsigned i = 0; i < columns(); ++i) {
      sums[i] = enableD ? scaledAddend(out[i]) : 0.0f;
      if (code.scales)
        scaleFactors(block, lane, scaleB, i, shape.scaleByteB, &factorsB[i]);
    }
    together.dot(rowA, sums.data(), code.scales ? factorA : nullptr, code.scales ? factorsB.data() : nullptr);
    std::memcpy(out, sums.data(), columns() * sizeof *out);
  }

  float scaledAddend(uint32_t c) const {
    return code.scaleD ? std::ldexp(num::floatOf(c), -int(code.scaleD)) : num::floatOf(c);
  }

  uint32_t sumIntegers(int32_t c, const float *rowA, const float *columnB) const {
    std::array<int16_t, 32> integersA, integersB;
    std::copy_n(rowA, shape.k, integersA.begin());
    std::copy_n(columnB, shape.k, integersB.begin());
    return uint32_t(num::dotInteger(c, integersA.data(), integersB.data(), shape.k, shape.satfinite));
  }

  uint32_t element(uint32_t c, const float *rowA, const float *columnB, const float *factorsA,
                   const float *factorsB) const {
    switch (shape.d) {
    case TensorResult::S32:
      return sumIntegers(int32_t(c), rowA, columnB);
    case TensorResult::F16: {
      float addend = std::ldexp(num::halfToFloat(uint16_t(c)), -int(code.scaleD));
      return num::dotHalf(sum, num::floatToHalf(addend), rowA, columnB, shape.k);
    }
    default: {
      float addend = scaledAddend(c);
      if (code.scales)
        return num::bitsOf(
            num::dotScaled(sum, addend, rowA, columnB, shape.k, factorsA, factorsB, shape.k / code.scales));
      return num::bitsOf(num::dot(sum, addend, rowA, columnB, shape.k));
    }
    }
  }

  const TensorProductCode &code;
  num::SumModel model;
  TensorProductShape shape;
  TensorLayout layout;
  uint32_t d, a = 0, scaleA = 0, scaleB = 0;
  bool enableD = false;
  std::vector<uint32_t> disabled;
  std::vector<bool> zeros;
  num::Sum sum;
  Multiplicand rowsA, columnsB;
  std::array<float, 64> fromTensor{};
};

} // namespace

std::unique_ptr<Operation> fp8emu::startTensorProduct(Warp &warp, unsigned lane,
                                                      const TensorProductCode &code) {
  return std::make_unique<TensorProduct>(warp, lane, code);
}
