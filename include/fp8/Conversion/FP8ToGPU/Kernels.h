// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The form of GPU kernels between stages 6 and 7: func.func with gpu.kernel in the gpu.module `kernels`,
// launched by gpu.launch_func.

#ifndef FP8_CONVERSION_FP8TOGPU_KERNELS_H
#define FP8_CONVERSION_FP8TOGPU_KERNELS_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace fp8 {

/// The gpu.module that holds all kernels of a program.
inline constexpr llvm::StringLiteral kKernelModuleName = "kernels";

/// Address spaces of pointers.
inline constexpr unsigned kGlobalSpace = 1, kSharedSpace = 3;

/// Attributes of a kernel: the threads of a block along x (i32, required), its dynamic shared memory in bytes
/// (i32), the blocks of a cluster along x (i32), the blocks that must fit on a multiprocessor at once (i32;
/// limits the registers of a thread), and the instruction that computes its matmuls (a string, for the
/// report).
inline constexpr llvm::StringLiteral kThreadsAttrName = "fp8.threads";
inline constexpr llvm::StringLiteral kSharedBytesAttrName = "fp8.shared_bytes";
inline constexpr llvm::StringLiteral kClusterAttrName = "fp8.cluster";
inline constexpr llvm::StringLiteral kBlocksAttrName = "fp8.blocks";
inline constexpr llvm::StringLiteral kInstructionAttrName = "fp8.instruction";

/// Attribute of a kernel's argument of type !llvm.ptr: the host passes a tensor map of the memref that the
/// launch names. A dictionary of `box` (array<i64>, elements of a transfer, innermost dimension first) and
/// `swizzle` (i32, bytes).
inline constexpr llvm::StringLiteral kTensorMapAttrName = "fp8.tensor_map";

/// Attribute of a kernel's only argument, of type !llvm.ptr: the kernel takes a table of this many slots of 8
/// bytes (i32), one for each operand of the launch in order: the address of a memref's first element, or a
/// number.
inline constexpr llvm::StringLiteral kOperandTableAttrName = "fp8.operand_table";

/// The most that a kernel counts, of rows, columns, batches or bytes along K: in 32 bits, up to a tile beyond
/// the last. Host code that narrows a larger number for a kernel ends with an error.
inline constexpr int64_t kMostOfDimension = (int64_t(1) << 31) - 512;

/// Attribute of a matmul, a MatmulConfigAttr: how its kernel computes it, instead of as the compiler
/// chooses.
inline constexpr llvm::StringLiteral kConfigAttrName = "fp8.config";

} // namespace fp8

#endif // FP8_CONVERSION_FP8TOGPU_KERNELS_H
