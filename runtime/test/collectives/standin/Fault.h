// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Faults of the stand-in for NCCL. The environment's FP8RT_STANDIN_NCCL asks for one of these, on one rank:
//   fail FUNCTION N RANK      call number N of a function, from 1, returns an error
//   error N RANK              transfer number N never happens, and polling returns an error
//   drop N RANK               what the rank sends in transfer number N is lost
//   delay N RANK MILLISECONDS the rank comes later to transfer number N
// A transfer is what one ncclGroupEnd has given to a stream; a replayed graph does it again.

#ifndef FP8RT_TEST_STANDIN_FAULT_H
#define FP8RT_TEST_STANDIN_FAULT_H

#include <cstdint>
#include <string>

namespace fp8rt_test {

struct Fault {
  std::string kind, function;
  uint64_t count = 0;
  uint32_t rank = 0;
  int milliseconds = 0;

  static Fault read();
};

/// Counts this call of a function, and returns whether it is to fail.
bool isToFail(const char *function, uint32_t rank);

} // namespace fp8rt_test

#endif // FP8RT_TEST_STANDIN_FAULT_H
