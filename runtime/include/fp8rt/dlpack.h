// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// DLPack's DLTensor, the form of every tensor in the C ABI. If DLPack is
// installed its header is used; otherwise the few types that are needed are
// defined here, with the ABI of DLPack 1.1 and under DLPack's own include
// guard. To use more of DLPack, include it before this header.

#ifndef FP8RT_DLPACK_H
#define FP8RT_DLPACK_H

#if defined(__has_include)
#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#endif
#endif

#include <stdint.h>

#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_

#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

/// The kind of memory that holds the data.
#ifdef __cplusplus
typedef enum : int32_t {
#else
typedef enum {
#endif
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3,
  kDLCUDAManaged = 13
} DLDeviceType;

typedef struct {
  DLDeviceType device_type;
  int32_t device_id;
} DLDevice;

/// The kind of an element; with its width it is the element type.
typedef enum {
  kDLInt = 0U,
  kDLUInt = 1U,
  kDLFloat = 2U,
  kDLOpaqueHandle = 3U,
  kDLBfloat = 4U,
  kDLComplex = 5U,
  kDLBool = 6U,
  kDLFloat8_e3m4 = 7U,
  kDLFloat8_e4m3 = 8U,
  kDLFloat8_e4m3b11fnuz = 9U,
  kDLFloat8_e4m3fn = 10U,
  kDLFloat8_e4m3fnuz = 11U,
  kDLFloat8_e5m2 = 12U,
  kDLFloat8_e5m2fnuz = 13U,
  kDLFloat8_e8m0fnu = 14U
} DLDataTypeCode;

/// `code` is a DLDataTypeCode; `lanes` is 1 here.
typedef struct {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} DLDataType;

/// A view of memory that it does not own. `strides` counts elements; NULL means
/// that the tensor is row-major without gaps.
typedef struct {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides;
  uint64_t byte_offset;
} DLTensor;

/// A tensor with its owner: whoever holds it calls `deleter` once.
typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

#ifdef __cplusplus
} // extern "C"
#endif

#endif // DLPACK_DLPACK_H_

/// DLPack's type codes for the FP8 formats, as numbers because DLPack before
/// 1.1 has no names for them.
#define FP8RT_DTYPE_CODE_F8E4M3FN 10
#define FP8RT_DTYPE_CODE_F8E5M2 12
#define FP8RT_DTYPE_CODE_F8E8M0FNU 14

#endif // FP8RT_DLPACK_H
