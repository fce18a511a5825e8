// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C ABI between a library whose kernels run on a device and the program that runs them. The library's
// host code launches kernels through the functions of fp8rt_device, which its caller passes in fp8rt_call;
// it contains no other reference to a driver. Beside the functions of call.h, such a library exports
//
//   const fp8rt_device_code *fp8_device_code(void);  // constant; never freed

#ifndef FP8RT_DEVICE_H
#define FP8RT_DEVICE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The version of `fp8rt_device` and `fp8rt_device_code` that this header describes.
#define FP8RT_DEVICE_VERSION 2

//===----------------------------------------------------------------------===//
// Provided by the library
//===----------------------------------------------------------------------===//

/// The kernels of a library, compiled for one chip.
typedef struct fp8rt_device_image {
  /// "sm_90a": the chip that the code needs.
  const char *chip;
  /// The version of the PTX text, times ten: 84. A driver for an older version cannot load the text.
  uint32_t ptx_version;
  /// Unused, 0.
  uint32_t reserved;
  /// PTX, ending in a NUL; `ptx_bytes` counts the NUL.
  const char *ptx;
  uint64_t ptx_bytes;
  /// Machine code that an assembler has made of the PTX; NULL and 0 without.
  const void *cubin;
  uint64_t cubin_bytes;
} fp8rt_device_image;

/// A kernel; host code refers to a kernel by its number in `fp8rt_device_code.kernels`.
typedef struct fp8rt_device_kernel {
  /// Its name in the image.
  const char *name;
  /// The threads of a block, along x.
  uint32_t threads;
  /// Dynamic shared memory of a block in bytes, which the launch must ask for; static shared memory of the
  /// image is not included.
  uint32_t shared_bytes;
  /// The blocks of a cluster, along x; 1 without clusters. The image states it too (.reqnctapercluster).
  uint32_t cluster;
  /// Unused, 0.
  uint32_t reserved;
} fp8rt_device_kernel;

/// The device code of a library.
typedef struct fp8rt_device_code {
  uint32_t version; ///< FP8RT_DEVICE_VERSION
  uint32_t num_images;
  const fp8rt_device_image *images;
  uint32_t num_kernels;
  uint32_t num_symbols;
  const fp8rt_device_kernel *kernels;
  /// The names in the image of the program's constants.
  const char *const *symbols;
} fp8rt_device_code;

/// The type of `fp8_device_code`.
typedef const fp8rt_device_code *(*fp8rt_device_code_fn)(void);

//===----------------------------------------------------------------------===//
// Provided by the caller
//===----------------------------------------------------------------------===//

/// The element types of tensor maps.
enum {
  FP8RT_MAP_UINT8 = 0, ///< FP8, and anything else of one byte
  FP8RT_MAP_BFLOAT16 = 1,
  FP8RT_MAP_FLOAT16 = 2,
  FP8RT_MAP_FLOAT32 = 3,
};

/// A device on which a call enqueues its work, in order: all functions but `read` may return before the work
/// is done. Every function returns 0, or another value if it failed; `error` then returns the reason.
/// `context` is passed to each of them. Pointers to memory are addresses on the device unless stated
/// otherwise.
typedef struct fp8rt_device {
  uint32_t version;  ///< FP8RT_DEVICE_VERSION
  uint32_t reserved; ///< unused, 0
  void *context;

  /// Launches kernel number `kernel` with grid_x · grid_y · grid_z blocks; none of them launches nothing.
  /// `parameters` holds one pointer per parameter of the kernel, to its value in host memory, which the
  /// function copies. `line` is the position of the launch in the list of `fp8_kernels`, for profiles; -1 if
  /// it has none.
  int (*launch)(void *context, uint32_t kernel, int32_t line, uint64_t grid_x, uint64_t grid_y,
                uint64_t grid_z, void **parameters);

  /// Copies `bytes` from `source` to `target`, which do not overlap.
  int (*copy)(void *context, void *target, const void *source, uint64_t bytes);

  /// Sets `bytes` at `target` to `value`.
  int (*fill)(void *context, void *target, uint8_t value, uint64_t bytes);

  /// Waits for the work enqueued so far and copies `bytes` from `source` to `host`, which is host memory.
  /// Entries whose manifest says "capturable" never call it.
  int (*read)(void *context, void *host, const void *source, uint64_t bytes);

  /// Returns the address of symbol number `symbol` of `fp8_device_code`.
  int (*symbol)(void *context, uint32_t symbol, void **out_address);

  /// Allocates memory of a dynamic size, aligned to 256 bytes, and frees it once the work enqueued before is
  /// done. NULL for 0 bytes. Memory that a call has not released when it returns, because it failed, is
  /// released then.
  int (*allocate)(void *context, uint64_t bytes, void **out_memory);
  int (*release)(void *context, void *memory);

  /// Writes the 128 bytes of a tensor map (CUtensorMap, aligned to 64) to `out_map`, in host memory.
  /// `type` is one of FP8RT_MAP_…; `sizes` (elements) and `strides` (bytes) are those of `rank` dimensions,
  /// the innermost first; strides[0] is the size of an element. `box` is what one load transfers, in
  /// elements; `swizzle` is 0, 32, 64 or 128 bytes. Elements outside of the tensor read as zero.
  int (*tensor_map)(void *context, void *out_map, uint32_t type, uint32_t rank, void *base,
                    const uint64_t *sizes, const uint64_t *strides, const uint32_t *box, uint32_t swizzle);

  /// The reason of the last failure: one line of text, valid until the next call of one of the functions.
  const char *(*error)(void *context);

  /// Since version 2. Fails with `message` unless the byte at `flag` is 1: waits for the work enqueued so
  /// far, or, while it is captured, enqueues a kernel that ends the work of the whole context where the byte
  /// is 0. `message` lives as long as the library.
  int (*check)(void *context, const void *flag, const char *message);
} fp8rt_device;

#ifdef __cplusplus
} // extern "C"
#endif

#endif // FP8RT_DEVICE_H
