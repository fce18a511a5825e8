// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Errors inside the runtime: an exception with a status and a line of text,
// which the functions of the C ABI turn into a status and the last error.

#ifndef FP8RT_CORE_STATUS_H
#define FP8RT_CORE_STATUS_H

#include "fp8rt/status.h"

#include <string>
#include <utility>

namespace fp8rt {

struct Error {
  fp8rt_status status;
  std::string message;
};

/// Throws an Error.
[[noreturn]] void fail(fp8rt_status status, std::string message);

/// Returns `*pointer`; throws FP8RT_INVALID_ARGUMENT if it is null.
template <typename T>
T &required(T *pointer, const char *name) {
  if (!pointer)
    fail(FP8RT_INVALID_ARGUMENT, std::string(name) + " is null");
  return *pointer;
}

/// Stores the text of the current exception for fp8rt_last_error and returns its
/// status.
fp8rt_status recordException() noexcept;

/// Runs the body of a C ABI function and turns exceptions into a status.
template <typename Fn>
fp8rt_status guarded(Fn &&body) noexcept {
  try {
    std::forward<Fn>(body)();
    return FP8RT_OK;
  } catch (...) {
    return recordException();
  }
}

/// Runs `body`; prefixes the text of an Error in it with `where: `.
template <typename Fn>
auto within(const std::string &where, Fn &&body) {
  try {
    return std::forward<Fn>(body)();
  } catch (Error &error) {
    fail(error.status, where + ": " + error.message);
  }
}

/// Returns `text` in quotes, for messages.
std::string inQuotes(const std::string &text);

} // namespace fp8rt

#endif // FP8RT_CORE_STATUS_H
