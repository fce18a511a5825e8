// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For tests of single instructions: a kernel whose threads each load their operands,
// execute a few lines of PTX, and store what they leave in %d.

#ifndef FP8EMU_TEST_EACHTHREAD_H
#define FP8EMU_TEST_EACHTHREAD_H

#include "fp8emu/Types.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace fp8emu::test {

/// A value for each thread in a register of the type, as its bits.
struct Values {
  std::string type;
  std::vector<uint64_t> bits;
};

struct Outcome {
  /// The value that each thread left in %d; nothing where the kernel stopped with a fault.
  std::vector<uint64_t> d;
  std::optional<Fault> fault;
};

/// Runs `body` in as many threads as there are values, in one block of at most 1024
/// threads or several of 128. It finds its operands in %a, %b, %c and %e in that order
/// and %d with zero in it; it may use the registers %p0 to %p7, %h0 to %h7 (16 bits),
/// %r0 to %r7 and %l0 to %l7 (64 bits), %f0 to %f7, %g0 to %g7 (f64), the number of its
/// thread in %n, and 256 bytes of zeros in global memory at %m and in shared memory at
/// `shared`, unless it sets those itself.
struct EachThread {
  std::string resultType;
  std::string body;
  std::vector<Values> operands;
  unsigned threads = 32;
  uint64_t seed = 0;
  bool oneBlock = false;
  std::vector<uint8_t> memory = std::vector<uint8_t>(256);

  /// `memory` is then what is in it afterwards.
  Outcome run();
};

/// All pairs, or triples, of values: the k-th of each operand.
std::vector<Values> product(const std::vector<Values> &values);

/// Runs `body` on all combinations of the operands' values and compares with the
/// reference, which gets their bits.
using Reference = std::function<uint64_t(const std::vector<uint64_t> &)>;
void expectEach(const std::string &body, const std::string &resultType, const std::vector<Values> &operands,
                const Reference &reference);

/// The error in the body; empty where there is none.
std::string decodeError(const std::string &body);

/// Numbers at which integer instructions change what they do.
std::vector<uint64_t> edges16();
std::vector<uint64_t> edges32();
std::vector<uint64_t> edges64();
/// Positions and lengths of bit fields, amounts of shifts.
std::vector<uint64_t> amounts();

} // namespace fp8emu::test

#endif // FP8EMU_TEST_EACHTHREAD_H
