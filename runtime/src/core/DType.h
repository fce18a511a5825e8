// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The element types the runtime knows, under their three names: MLIR's,
// safetensors' and DLPack's.

#ifndef FP8RT_CORE_DTYPE_H
#define FP8RT_CORE_DTYPE_H

#include "fp8rt/dlpack.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace fp8rt {

struct DType {
  const char *mlir;
  const char *safetensors;
  DLDataType dlpack;

  size_t bytes() const { return dlpack.bits / 8; }
};

/// The type of that name; null if there is none.
const DType *findMlirType(const std::string &name);
const DType *findSafetensorsType(const std::string &name);
const DType *findDLPackType(DLDataType type);

/// A type's MLIR name for messages, whether known or not.
std::string typeName(DLDataType type);

/// Whether data of type `given` may serve where `wanted` is declared: the same
/// type, or an unsigned integer for a signless one (MLIR's i8 says nothing of
/// its sign, and DLPack has no signless integers).
bool accepts(DLDataType wanted, DLDataType given);

/// The element at `data` (any alignment) as text that reads back the same.
std::string formatElement(const DType &type, const void *data);

/// A number from text: whole ones keep all their digits.
struct Number {
  bool isWhole = true;
  int64_t whole = 0;
  double real = 0.0; // of a whole one the nearest
};

/// Writes `value` as an element of `type` to `data`; false where it is none of
/// the type's values, or that is not implemented (8-bit floats but for zero).
bool encodeElement(const DType &type, const Number &value, void *data);

} // namespace fp8rt

#endif // FP8RT_CORE_DTYPE_H
