// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What fp8-bench measures.

#ifndef FP8_TOOLS_FP8BENCH_BENCH_H
#define FP8_TOOLS_FP8BENCH_BENCH_H

namespace fp8bench {

/// How fast the PTX emulator is: a table on standard output. `threads` host threads, 0
/// for one per processor; each row is measured for at least `seconds`.
void benchEmulator(unsigned threads, double seconds);

/// Seconds that a 512 x 512 x 512 product by wgmma takes in it, wall clock and processor: a
/// table on standard output. False, with a line on standard error, where the product is
/// wrong. The fastest of the launches within `seconds`, of one at least.
bool benchProduct(unsigned threads, double seconds);

/// Of this process, all threads together.
double processorSeconds();

} // namespace fp8bench

#endif // FP8_TOOLS_FP8BENCH_BENCH_H
