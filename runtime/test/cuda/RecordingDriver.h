// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Controls the CUDA driver of RecordingDriver.cpp: a test finds these functions in its library by name.

#ifndef FP8RT_TEST_RECORDINGDRIVER_H
#define FP8RT_TEST_RECORDINGDRIVER_H

#include <cstdint>

extern "C" {

/// Counts calls from 0 again, and lets call number `call` (from 1) fail with a code of CUDA; 0 for none.
void recordingFailAt(int64_t call, int code);
/// Lets the next call of an entry point fail.
void recordingFailNext(const char *symbol, int code);
/// The number of calls since then, and the entry point that was made to fail; "" for none.
int64_t recordingCalls();
const char *recordingFailed();
/// Whether an entry point was called, since the counting began.
bool recordingReached(const char *symbol);
/// How many allocations, modules, streams, events, graphs, captures, contexts and uses of contexts have
/// not been given back.
int64_t recordingLive();
/// The version that the driver says it has; 0 for the emulator's.
void recordingSetVersion(int version);

} // extern "C"

#endif // FP8RT_TEST_RECORDINGDRIVER_H
