// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matrix descriptors.

#include "SharedMatrix.h"

using namespace fp8emu;

static uint32_t field(uint64_t bits, unsigned first, unsigned count) {
  return uint32_t(bits >> first & ((uint64_t(1) << count) - 1));
}

const char *SharedMatrix::decodeTensor(uint64_t bits) {
  start = field(bits, 0, 14) << 4;
  leading = field(bits, 16, 14) << 4;
  stride = field(bits, 32, 14) << 4;
  baseOffset = field(bits, 49, 3);
  if (field(bits, 46, 3) != 1)
    return "bits 46 to 48 must be 0b001";
  if (field(bits, 52, 1))
    return "bit 52, an absolute address for the leading dimension, is for sm_103a";
  if (field(bits, 53, 8))
    return "bits 53 to 60 must be 0";
  switch (field(bits, 61, 3)) {
  case 0:
    swizzle = MatrixSwizzle::None;
    return nullptr;
  case 1:
    swizzle = MatrixSwizzle::Bytes128By32;
    return nullptr;
  case 2:
    swizzle = MatrixSwizzle::Bytes128;
    return nullptr;
  case 4:
    swizzle = MatrixSwizzle::Bytes64;
    return nullptr;
  case 6:
    swizzle = MatrixSwizzle::Bytes32;
    return nullptr;
  default:
    return "bits 61 to 63 name no swizzling mode";
  }
}

/// The canonical layouts (PTX ISA 9.7.16.3.3), in units of 16 bytes:
///   K     none        ((8,m),(1,2k)) : ((1,SBO),(1,LBO))
///         swizzled    ((8,m),2k)     : ((W,SBO),1)
///   M, N  none        (m,(8,k))      : (SBO,(1,LBO))
///         swizzled    ((W,m),(8,k))  : ((1,LBO),(W,SBO))
/// with a pattern of W units; with 32 bytes for atoms it has 4 rows, else 8.
uint32_t SharedMatrix::part(bool transposed, unsigned across, unsigned along) const {
  unsigned row = swizzleBytes(swizzle), units = row / 16;
  uint32_t address = start;
  if (!transposed) {
    address += across % 8 * row + across / 8 * stride;
    address += swizzle == MatrixSwizzle::None ? along * leading : along * 16;
  } else if (swizzle == MatrixSwizzle::None) {
    address += along * stride + across % 8 * 16 + across / 8 * leading;
  } else {
    unsigned rows = swizzle == MatrixSwizzle::Bytes128By32 ? 4 : 8;
    address += along % units * 16 + along / units * leading + across % rows * row + across / rows * stride;
  }
  return swizzled(swizzle, address, address - (baseOffset << 7));
}
