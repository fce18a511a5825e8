// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The measurements of fp8-bench.

#ifndef FP8_TOOLS_FP8BENCH_BENCH_H
#define FP8_TOOLS_FP8BENCH_BENCH_H

namespace fp8bench {

/// Measures the speed of the PTX emulator and prints a table to standard output. Uses `threads` host
/// threads (0: one per processor) and measures each row for at least `seconds`.
void benchEmulator(unsigned threads, double seconds);

/// Measures a 512 x 512 x 512 product by wgmma in the emulator, and prints its wall-clock and
/// processor time in seconds: the fastest of the launches within `seconds`, of at least one. Returns
/// false, with a line on standard error, if the product is wrong.
bool benchMatmul(unsigned threads, double seconds);

/// Returns the processor time of this process, of all threads together, in seconds.
double processorSeconds();

} // namespace fp8bench

#endif // FP8_TOOLS_FP8BENCH_BENCH_H
