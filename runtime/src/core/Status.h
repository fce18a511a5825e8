// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the runtime fails inside: an exception that carries a status and a line
// of text, turned into the C ABI's status and last error at the border.

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

/// Throws FP8RT_INVALID_ARGUMENT if a pointer that the caller must give is
/// null.
template <typename T>
T &required(T *pointer, const char *name) {
  if (!pointer)
    fail(FP8RT_INVALID_ARGUMENT, std::string(name) + " is null");
  return *pointer;
}

/// The status of the exception in flight, its text kept for fp8rt_last_error.
fp8rt_status recordException() noexcept;

/// Runs the body of a C ABI function.
template <typename Fn>
fp8rt_status guarded(Fn &&body) noexcept {
  try {
    std::forward<Fn>(body)();
    return FP8RT_OK;
  } catch (...) {
    return recordException();
  }
}

/// Runs `body`; an Error in it gets `where: ` in front of its text.
template <typename Fn>
auto within(const std::string &where, Fn &&body) {
  try {
    return std::forward<Fn>(body)();
  } catch (Error &error) {
    fail(error.status, where + ": " + error.message);
  }
}

/// `text` in quotes, for messages.
std::string inQuotes(const std::string &text);

} // namespace fp8rt

#endif // FP8RT_CORE_STATUS_H
