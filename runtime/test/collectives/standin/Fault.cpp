// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading what is to go wrong, and counting calls.

#include "Fault.h"

#include <cstdlib>
#include <map>
#include <mutex>
#include <sstream>
#include <utility>

using namespace fp8rt_test;

Fault Fault::read() {
  Fault fault;
  const char *text = std::getenv("FP8RT_STANDIN_NCCL");
  std::istringstream words(text ? text : "");
  words >> fault.kind;
  if (fault.kind == "fail")
    words >> fault.function;
  words >> fault.count >> fault.rank >> fault.milliseconds;
  return fault;
}

bool fp8rt_test::isToFail(const char *function, uint32_t rank) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, uint32_t>, uint64_t> calls;
  std::lock_guard<std::mutex> lock(mutex);
  uint64_t call = ++calls[{function, rank}];
  Fault fault = Fault::read();
  return fault.kind == "fail" && fault.function == function && fault.rank == rank && fault.count == call;
}
