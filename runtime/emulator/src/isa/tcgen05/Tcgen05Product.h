// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tcgen05.mma: what the text of the instruction says, and what the instruction descriptor adds
// when the instruction is executed (PTX ISA 9.7.16.4.2).

#ifndef FP8EMU_ISA_TCGEN05_TCGEN05PRODUCT_H
#define FP8EMU_ISA_TCGEN05_TCGEN05PRODUCT_H

#include "Tcgen05.h"

#include "memory/SharedMatrix.h"
#include "num/DotProduct.h"

#include <array>

namespace fp8emu {

enum class ProductKind : uint8_t { F16, TF32, F8F6F4, I8, MXF8F6F4, MXF4, MXF4NVF4 };

/// Whether rows and columns have scale factors.
constexpr bool isScaled(ProductKind kind) { return kind >= ProductKind::MXF8F6F4; }

/// An instruction, from its text.
struct TensorProductCode {
  ProductKind kind;
  /// .cta_group::2, .ws
  bool pair = false, weightStationary = false;
  /// Scale factors along K; 0 without.
  unsigned scales = 0;
  TensorOperand d, a, scaleA, scaleB;
  /// Whether A is in tensor memory; where it is in shared memory, it has a descriptor.
  bool aInTensorMemory = false;
  Ref descriptorA, descriptorB, instruction, enableD;
  bool enableDNegated = false;
  /// D is multiplied by 2 to the power of minus this before the product is added.
  unsigned scaleD = 0;
  /// The mask of columns of B that count as zero, of .ws; null where there is none.
  Ref zeroColumns;
  /// Lanes that are not written, 32 in each; none, 4 or 8 of them.
  std::vector<Ref> disabled;
};

/// The type of a multiplicand's elements.
struct TensorElement {
  /// Null for integers.
  const num::Format *format = nullptr;
  /// Of the element; of the place it has in 16 bytes of shared memory that hold 128 / `place`.
  unsigned bits = 8, place = 8;
  bool isSigned = false, negated = false, transposed = false;

  /// In 16 bytes.
  unsigned perPart() const { return 128 / place; }
};

enum class TensorResult : uint8_t { F16, F32, S32 };

/// An instruction descriptor in the light of the text.
struct TensorProductShape {
  unsigned m = 0, n = 0, k = 0;
  TensorElement a, b;
  TensorResult d = TensorResult::F32;
  bool satfinite = false;
  const num::Format *scaleFormat = nullptr;
  /// The first byte of the words that hold scale factors.
  unsigned scaleByteA = 0, scaleByteB = 0;

  /// Decodes the descriptor. Gives the error in it, in words; empty where there is none.
  std::string decode(const TensorProductCode &code, uint32_t bits);
};

/// The columns of B that a zero-column mask descriptor (PTX ISA 9.7.16.4.3) names, for as
/// many rows of A.
std::vector<bool> zeroColumns(uint64_t descriptor, unsigned rows, unsigned columns);

/// The elements of D that lanes hold (PTX ISA 9.7.16.10.5): in each block `rows` rows; a
/// row's columns in `parts` equal parts, in lanes as far apart as there are rows.
struct TensorLayout {
  unsigned rows, parts;
  /// Only half of the lanes are used: 16 of each 32 (layout F).
  bool halves;

  TensorLayout(const TensorProductCode &code, const TensorProductShape &shape);
  /// Of `lane` counted from the address's: its row, or -1 where it has none.
  int row(unsigned lane) const;
  unsigned part(unsigned lane) const { return halves ? 0 : lane / rows; }
};

/// Starts the product, for one thread.
std::unique_ptr<Operation> startTensorProduct(Warp &warp, unsigned lane, const TensorProductCode &code);

} // namespace fp8emu

#endif // FP8EMU_ISA_TCGEN05_TCGEN05PRODUCT_H
