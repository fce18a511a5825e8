// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The fat binaries that nvcc's host code registers when a program begins, with their kernels and
// variables. One is loaded into a context when something of it is first needed there.

#ifndef FP8EMU_CUDART_REGISTRY_H
#define FP8EMU_CUDART_REGISTRY_H

#include "Runtime.h"

namespace fp8emu::cudart {

/// The function of the current context that is meant by the address of a __global__ function, or by a
/// cudaKernel_t. An Error (cudaErrorInvalidDeviceFunction, or why its fat binary cannot be loaded)
/// where there is none.
CUfunction functionOf(const void *kernel);
/// The address of the __global__ function that became `function`; the handle itself for others.
const void *kernelOf(CUfunction function);

struct Variable {
  CUdeviceptr address;
  size_t bytes;
};
/// The variable of the current context that is meant by the address of a __device__, __constant__ or
/// __managed__ one. An Error (cudaErrorInvalidSymbol) where there is none.
Variable variableOf(const void *symbol);

/// The copy of a row to or from a variable, `offset` bytes into it. An Error where it would leave the
/// variable.
CUDA_MEMCPY3D rowToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset,
                          cudaMemcpyKind kind);
CUDA_MEMCPY3D rowFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset, cudaMemcpyKind kind);

/// Whether an address lies in a __managed__ variable.
bool isManaged(CUdeviceptr address);

/// Forgets what was loaded into a context, which has ended; managed variables are loaded again.
void forgetContext(CUcontext context);

} // namespace fp8emu::cudart

#endif // FP8EMU_CUDART_REGISTRY_H
