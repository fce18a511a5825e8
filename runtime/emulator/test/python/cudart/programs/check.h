// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The checks that the programs share. Each program checks its values and prints "ok"; with the argument
// "fault" it makes one mistake, in the line that says so.

#ifndef FP8EMU_TEST_CUDART_CHECK_H
#define FP8EMU_TEST_CUDART_CHECK_H

#include <cstdio>
#include <cstdlib>
#include <cstring>

#define FAIL_AT(line, ...)                                                                                   \
  (std::printf("line %d: ", line), std::printf(__VA_ARGS__), std::puts(""), std::exit(1))
/// The call returns this code.
#define RETURNS(wanted, call)                                                                                \
  do {                                                                                                       \
    const cudaError_t code_ = (call);                                                                        \
    if (code_ != (wanted))                                                                                   \
      FAIL_AT(__LINE__, "%s returned %s (%s)", #call, cudaGetErrorName(code_), cudaGetErrorString(code_));   \
  } while (0)
#define OK(call) RETURNS(cudaSuccess, call)
/// Two values are equal.
#define SAME(wanted, value)                                                                                  \
  do {                                                                                                       \
    const auto value_ = (value);                                                                             \
    if (!(value_ == (wanted)))                                                                               \
      FAIL_AT(__LINE__, "%s is %g", #value, double(value_));                                                 \
  } while (0)

/// Whether the program is to make its mistake.
inline bool wantsFault(int count, char **arguments) {
  return count > 1 && !std::strcmp(arguments[1], "fault");
}

#endif // FP8EMU_TEST_CUDART_CHECK_H
