// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The checkpoints of a run: saved while the next steps run, and kept as long as asked for.

#ifndef FP8RT_CHECKPOINTS_H
#define FP8RT_CHECKPOINTS_H

#include "fp8rt/tensors.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A series of checkpoints, and the thread that writes them. Only one thread may use it at a time.
typedef struct fp8rt_checkpoints fp8rt_checkpoints;

/// Creates a series whose newest checkpoint is always `path`. `keep_last` >= 1 is the number of checkpoints
/// to keep: older ones get the number of their step before the extension (step.safetensors,
/// step.400.safetensors, step.300.safetensors). Files of that form with smaller numbers are deleted;
/// with larger ones, of another run, they stay. `present_step` is the step of the file that is at `path`
/// already, or -1 if it is not part of the series: then the first checkpoint replaces it.
FP8RT_API fp8rt_status fp8rt_checkpoints_create(const char *path, uint32_t keep_last, int64_t present_step,
                                                fp8rt_checkpoints **out_checkpoints);

/// Copies the tensors and returns; the thread writes the copy, as fp8rt_tensors_write does. `step` is the
/// number of finished steps, larger than that of the checkpoint before. Waits only if two checkpoints are
/// still being written. Returns the error of an earlier checkpoint, if there is one, and saves nothing then.
FP8RT_API fp8rt_status fp8rt_checkpoints_save(fp8rt_checkpoints *checkpoints, const fp8rt_tensors *tensors,
                                              uint64_t step);

/// Returns the error of a checkpoint that was written meanwhile, without waiting.
FP8RT_API fp8rt_status fp8rt_checkpoints_check(fp8rt_checkpoints *checkpoints);

/// Waits until all checkpoints are on the disk. Returns the error of one that is not.
FP8RT_API fp8rt_status fp8rt_checkpoints_finish(fp8rt_checkpoints *checkpoints);

/// Waits as fp8rt_checkpoints_finish and releases the handle. NULL is allowed.
FP8RT_API void fp8rt_checkpoints_destroy(fp8rt_checkpoints *checkpoints);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // FP8RT_CHECKPOINTS_H
