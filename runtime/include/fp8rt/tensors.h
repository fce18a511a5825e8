// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sets of named tensors in host memory, and reading and writing them as
// safetensors files.

#ifndef FP8RT_TENSORS_H
#define FP8RT_TENSORS_H

#include "fp8rt/dlpack.h"
#include "fp8rt/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Tensors by name, and text metadata by key.
typedef struct fp8rt_tensors fp8rt_tensors;

/// Creates an empty set.
FP8RT_API fp8rt_status fp8rt_tensors_create(fp8rt_tensors **out_tensors);

/// Reads a whole safetensors file. Everything in the header is checked: a file
/// that is truncated, has overlapping or missing bytes, or BOOL elements other
/// than 0 and 1, is FP8RT_CORRUPT. The set owns the tensors' memory, which need
/// not be aligned to the element.
FP8RT_API fp8rt_status fp8rt_tensors_read(const char *path, fp8rt_tensors **out_tensors);

/// Writes a safetensors file under a temporary name beside `path` and renames
/// it at the end, so that a failure leaves `path` unchanged. (A `path` that is
/// not a regular file, such as a pipe, is written directly.) Equal sets give
/// equal bytes.
FP8RT_API fp8rt_status fp8rt_tensors_write(const fp8rt_tensors *tensors, const char *path);

/// Frees the set, and the memory of tensors that were read. NULL is allowed.
FP8RT_API void fp8rt_tensors_destroy(fp8rt_tensors *tensors);

/// Returns the number of tensors.
FP8RT_API uint64_t fp8rt_tensors_count(const fp8rt_tensors *tensors);

/// Returns the name of tensor `index`, in alphabetical order; NULL out of range.
FP8RT_API const char *fp8rt_tensors_name(const fp8rt_tensors *tensors, uint64_t index);

/// Returns the tensor of that name; NULL if there is none.
FP8RT_API const DLTensor *fp8rt_tensors_find(const fp8rt_tensors *tensors, const char *name);

/// Returns the name of tensor `index` of those of a file whose dtype this runtime does not have (F4, C64, …),
/// in alphabetical order, and its dtype; NULL out of range. They are counted and found nowhere else, and a
/// set with them is not written.
FP8RT_API const char *fp8rt_tensors_unsupported(const fp8rt_tensors *tensors, uint64_t index,
                                                const char **out_dtype);

/// Adds a view of `tensor` without a copy: its data must stay valid as long as
/// the set is used. It must be in host memory and row-major without gaps. A name
/// can be added once.
FP8RT_API fp8rt_status fp8rt_tensors_add(fp8rt_tensors *tensors, const char *name, const DLTensor *tensor);

/// Returns the metadata of that key; NULL if there is none.
FP8RT_API const char *fp8rt_tensors_metadata(const fp8rt_tensors *tensors, const char *key);

/// Sets one metadata text.
FP8RT_API fp8rt_status fp8rt_tensors_set_metadata(fp8rt_tensors *tensors, const char *key, const char *value);

/// Checks whether fp8rt_tensors_write could write `path`, without changing it,
/// to find out before a long computation.
FP8RT_API fp8rt_status fp8rt_check_writable(const char *path);

/// Writes the one element of `tensor` as a decimal number that reads back as
/// the same value. Every element type of the runtime; booleans are 0 and 1.
FP8RT_API fp8rt_status fp8rt_format_scalar(const DLTensor *tensor, char *out_text, uint64_t capacity);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // FP8RT_TENSORS_H
