// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The arguments of a kernel in --arg: the bytes of a scalar, or a tensor of the inputs or of the
// outputs.

#ifndef FP8_TOOLS_FP8PTX_ARGUMENTS_H
#define FP8_TOOLS_FP8PTX_ARGUMENTS_H

#include "fp8rt/dlpack.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace fp8ptx {

/// Creates an error without a location in a file; its line starts with the tool's name.
llvm::Error failure(const llvm::Twine &message);

struct Argument {
  enum Kind {
    /// `bytes`.
    Scalar,
    /// The address of tensor `name` of the inputs.
    In,
    /// As In, and the tensor is written to the outputs afterwards.
    InOut,
    /// The address of a zeroed tensor `name` of `type` and `shape`, written to the
    /// outputs.
    Out,
    /// The bytes of tensor `name` of the inputs, for a parameter that is a structure.
    Value,
  };
  Kind kind = Scalar;
  /// The argument as the user wrote it.
  std::string text;
  std::string name;
  DLDataType type{};
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;
};

/// Parses `KEY`, `in:KEY`, `inout:KEY`, `value:KEY`, `out:NAME:TYPE[SHAPE]` or
/// `TYPE:NUMBER`.
llvm::Expected<Argument> parseArgument(llvm::StringRef text);

uint64_t byteSize(DLDataType type, llvm::ArrayRef<int64_t> shape);

} // namespace fp8ptx

#endif // FP8_TOOLS_FP8PTX_ARGUMENTS_H
