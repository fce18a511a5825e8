// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The instruction descriptor of tcgen05.mma (PTX ISA 9.7.16.4.2, tables 42 to 44), the
// shapes that there are (table 39), and the lanes that hold D (9.7.16.10.5).

#include "Tcgen05Product.h"

using namespace fp8emu;

namespace {

class Fields {
public:
  explicit Fields(uint32_t bits) : bits(bits) {}
  unsigned get(unsigned first, unsigned count) const { return bits >> first & ((1U << count) - 1); }
  bool operator[](unsigned bit) const { return bits >> bit & 1; }

private:
  uint32_t bits;
};

const num::Format *smallFormat(unsigned code) {
  switch (code) {
  case 0:
    return &num::E4M3;
  case 1:
    return &num::E5M2;
  case 3:
    return &num::E2M3;
  case 4:
    return &num::E3M2;
  case 5:
    return &num::E2M1;
  default:
    return nullptr;
  }
}

/// The element type of a code; false where the kind has none of that code.
bool setElement(ProductKind kind, unsigned code, TensorElement &element) {
  switch (kind) {
  case ProductKind::F16:
    element.format = code == 0 ? &num::F16 : &num::BF16;
    element.bits = element.place = 16;
    return code <= 1;
  case ProductKind::TF32:
    element.format = &num::TF32;
    element.bits = element.place = 32;
    return code == 2;
  case ProductKind::I8:
    element.isSigned = code == 1;
    return code <= 1;
  case ProductKind::F8F6F4:
  case ProductKind::MXF8F6F4:
    // Elements of 6 and 4 bits are packed from the beginning of each 16 bytes, for 16 of
    // them (PTX ISA 9.7.16.10.4.4).
    element.format = smallFormat(code);
    element.bits = element.format ? element.format->width() : 8;
    return element.format;
  default:
    element.format = &num::E2M1;
    element.bits = element.place = 4;
    return code == 1;
  }
}

class ShapeDecoder {
public:
  ShapeDecoder(const TensorProductCode &code, uint32_t bits, TensorProductShape &shape)
      : code(code), fields(bits), shape(shape) {}

  std::string decode() {
    if (fields[2])
      return "bit 2 names a sparse matrix, the instruction is a dense one";
    bool scaled = isScaled(code.kind),
         four = code.kind == ProductKind::MXF4 || code.kind == ProductKind::MXF4NVF4;
    if (!setElement(code.kind, fields.get(7, 3), shape.a))
      return "bits 7 to 9 name no type of A for this kind";
    if (!setElement(code.kind, fields.get(10, four ? 2 : 3), shape.b))
      return "bits 10 and on name no type of B for this kind";
    shape.a.negated = fields[13];
    shape.b.negated = fields[14];
    shape.a.transposed = fields[15];
    shape.b.transposed = fields[16];
    shape.n = fields.get(17, 6) * 8;
    shape.k = 256 / shape.a.place;
    std::string wrong = scaled ? decodeScaled(four) : decodePlain();
    return wrong.empty() ? checkShape() : wrong;
  }

private:
  /// Table 42.
  std::string decodePlain() {
    if (fields.get(0, 2) || fields[6] || fields[23] || fields[29])
      return "reserved bits (0, 1, 6, 23, 29) must be 0";
    bool integer = code.kind == ProductKind::I8;
    if (fields[3] && !integer)
      return "bit 3, saturation, is for integers";
    shape.satfinite = fields[3];
    if (integer && (shape.a.negated || shape.b.negated))
      return "bits 13 and 14, negation, are not for integers";
    unsigned d = fields.get(4, 2);
    bool half =
        code.kind == ProductKind::F8F6F4 || (code.kind == ProductKind::F16 && shape.a.format == &num::F16);
    if (integer ? d != 2 : d != 1 && !(d == 0 && half))
      return "bits 4 and 5 name no type of D for this kind";
    shape.d = TensorResult(d);
    shape.m = fields.get(24, 5) * 16;
    if (fields.get(30, 2) && !code.weightStationary)
      return "bits 30 and 31, the shift for reuse of B, are for .ws";
    return "";
  }

  /// Tables 43 and 44.
  std::string decodeScaled(bool four) {
    if (fields.get(0, 2) || fields[3] || fields[6] || fields.get(24, 3) || (four && fields[12]))
      return "reserved bits (0, 1, 3, 6, 24 to 26) must be 0";
    if (fields[31])
      return four ? "bit 31, K = 96, is for sm_103a" : "bit 31 is reserved and must be 0";
    if (four && (shape.a.transposed || shape.b.transposed))
      return "bits 15 and 16, transposition, are not for this kind";
    shape.scaleFormat = fields[23] ? &num::UE8M0 : &num::UE4M3;
    if (!fields[23] && (code.kind != ProductKind::MXF4NVF4 || code.scales != 4))
      return "bit 23 must be 1 (UE8M0) for this kind and size of scale vectors";
    shape.scaleByteB = fields.get(4, 2);
    shape.scaleByteA = fields.get(29, 2);
    unsigned step = code.scales;
    if (shape.scaleByteA % step || shape.scaleByteB % step)
      return "the scale factors' first byte (bits 4, 5, 29, 30) must be a multiple of " +
             std::to_string(step);
    shape.m = fields.get(27, 2) * 128;
    return "";
  }

  std::string checkShape() const {
    unsigned m = shape.m, n = shape.n;
    bool scaled = isScaled(code.kind), fits = false;
    if (code.weightStationary)
      fits = (m == 32 || m == 64 || m == 128) && (n == 64 || n == 128 || n == 256);
    else if (code.pair)
      fits = (m == 128 || m == 256) && n % (code.kind == ProductKind::I8 ? 32 : 16) == 0;
    else
      fits = (m == 128 || (m == 64 && !scaled)) &&
             (code.kind != ProductKind::I8 || n % 16 == 0 || n == 8 || n == 24);
    // Table 52: elements of 8 bits in a transposed B.
    if (shape.b.transposed && shape.b.place == 8)
      fits &= n % (code.pair ? 32 : 16) == 0;
    if (fits && n >= 8 && n <= 256)
      return "";
    return "there is no shape " + std::to_string(m) + " x " + std::to_string(n) + " for this kind";
  }

  const TensorProductCode &code;
  Fields fields;
  TensorProductShape &shape;
};

} // namespace

std::string TensorProductShape::decode(const TensorProductCode &code, uint32_t bits) {
  return ShapeDecoder(code, bits, *this).decode();
}

/// Spans of columns that are used and of those that are zero take turns; each part of the
/// columns, of which there are as many as D has in a lane's row, begins with a span of its
/// own, of which some columns were left out. The lengths are those of the examples there.
std::vector<bool> fp8emu::zeroColumns(uint64_t bits, unsigned rows, unsigned columns) {
  std::vector<bool> out(columns);
  if (!(bits >> 39 & 1))
    return out;
  const unsigned lengths[] = {unsigned(bits >> 48 & 0xFF) + 1, unsigned(bits >> 40 & 0xFF) + 1};
  unsigned parts = kTensorLanes / rows;
  for (unsigned part = 0; part < parts; ++part) {
    bool zero = bits >> (32 + part) & 1;
    unsigned skipped = bits >> 8 * part & 0xFF, position = 0;
    for (unsigned i = 0; i < columns / parts + skipped; ++i, ++position) {
      if (position == lengths[zero]) {
        zero = !zero;
        position = 0;
      }
      if (i >= skipped)
        out[part * (columns / parts) + i - skipped] = zero;
    }
  }
  return out;
}

TensorLayout::TensorLayout(const TensorProductCode &code, const TensorProductShape &shape)
    : rows(shape.m / (code.pair ? 2 : 1)), parts(1),
      halves(rows == 64 && !code.pair && !code.weightStationary) {
  if (!halves)
    parts = kTensorLanes / rows;
}

int TensorLayout::row(unsigned lane) const {
  if (halves)
    return lane % 32 < 16 ? int(lane / 32 * 16 + lane % 32) : -1;
  return int(lane % rows);
}
