// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of CUDA's runtime that nccl.h needs, to be compared without CUDA.

#ifndef FP8RT_TEST_STANDIN_CUDARUNTIME_H
#define FP8RT_TEST_STANDIN_CUDARUNTIME_H

// NOLINTBEGIN(readability-identifier-naming): CUDA's names
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
// NOLINTEND(readability-identifier-naming)

#endif // FP8RT_TEST_STANDIN_CUDARUNTIME_H
