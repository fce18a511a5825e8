// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The element types that the runtime supports, with their names in MLIR,
// safetensors and DLPack.

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

/// Return the type of that name; null if there is none.
const DType *findMlirType(const std::string &name);
const DType *findSafetensorsType(const std::string &name);
const DType *findDLPackType(DLDataType type);

/// Returns the MLIR name of a type for messages, also of an unsupported one.
std::string typeName(DLDataType type);

/// Returns whether data of type `given` is valid for the declared type `wanted`:
/// the same type, or an unsigned integer for a signless one (DLPack has no
/// signless integers, so `wanted` is signed for these).
bool accepts(DLDataType wanted, DLDataType given);

/// Formats the element at `data` (any alignment) as text that reads back to the
/// same value.
std::string formatElement(const DType &type, const void *data);

/// A number from text; a whole one keeps all its digits.
struct Number {
  bool isWhole = true;
  int64_t whole = 0;
  double real = 0.0; // for a whole number the nearest double
};

/// Writes `value` as an element of `type` to `data`; returns false if it is not
/// a value of the type, or a nonzero 8-bit float, for which this is not
/// implemented.
bool encodeElement(const DType &type, const Number &value, void *data);

} // namespace fp8rt

#endif // FP8RT_CORE_DTYPE_H
