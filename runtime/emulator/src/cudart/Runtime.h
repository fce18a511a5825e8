// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The common ground of all entry points of the runtime: the thread's device and last error, and a current
// context.

#ifndef FP8EMU_CUDART_RUNTIME_H
#define FP8EMU_CUDART_RUNTIME_H

#include "Abi.h"
#include "DriverApi.h"

#include <exception>
#include <new>

/// Marks an entry point: exported, with C's name.
#define FP8CUDART_API extern "C" __attribute__((visibility("default")))

namespace fp8emu::cudart {

/// An error that an entry point returns.
struct Error {
  cudaError_t code;
};
inline void require(bool holds, cudaError_t code = cudaErrorInvalidValue) {
  if (!holds)
    throw Error{code};
}
/// Throws what a call of the driver returned, unless that is success.
inline void check(CUresult code) { require(code == CUDA_SUCCESS, cudaError_t(code)); }

/// Notes the code as the thread's last error, unless it is success, and returns it.
cudaError_t record(cudaError_t code);
/// Makes the primary context of the thread's device current, unless a context is.
void needContext();
/// The device of the current context or, without one, the one that cudaSetDevice has chosen.
int currentDevice();
/// Says on standard error, once for each `name`, that it is missing and why; the code to return.
cudaError_t missing(const char *name, const char *reason);

/// Runs an entry point's body, which returns a code of the runtime or of the driver.
template <class Body>
cudaError_t enterWithoutContext(const Body &body) {
  try {
    return record(cudaError_t(body()));
  } catch (const Error &error) {
    return record(error.code);
  } catch (const std::bad_alloc &) {
    return record(cudaErrorMemoryAllocation);
  } catch (const std::exception &) {
    return record(cudaErrorUnknown);
  }
}
/// The same, with a current context.
template <class Body>
cudaError_t enter(const Body &body) {
  return enterWithoutContext([&] {
    needContext();
    return body();
  });
}
/// An entry point that is one of the driver's.
template <class Entry, class... Arguments>
cudaError_t forward(Entry entry, Arguments... arguments) {
  return enter([&] { return entry(arguments...); });
}

inline CUdeviceptr number(const void *pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }
inline void *pointer(CUdeviceptr number) { return reinterpret_cast<void *>(number); }

/// The box of a copy as the driver takes it.
CUDA_MEMCPY3D boxOf(const cudaMemcpy3DParms &copy);
/// The same the other way round.
cudaMemcpy3DParms copyOf(const CUDA_MEMCPY3D &box);
/// One row.
CUDA_MEMCPY3D rowOf(void *to, const void *from, size_t bytes, cudaMemcpyKind kind);

// The differences between the two libraries, in names and forms (Version12.cpp, Version13.cpp):

/// The version of CUDA, as in 13000.
extern const int kVersion;
cudaError_t getProperties(cudaDeviceProp12 *out, int device);
cudaError_t getProperties(cudaDeviceProp13 *out, int device);
/// Tells the memory that an address belongs to.
cudaError_t getAttributes(cudaPointerAttributes12 *out, const void *address);
/// Adds a node of any kind to a graph.
cudaError_t addNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                    const CUgraphEdgeData *edges, size_t count, const cudaGraphNodeParams *params);

} // namespace fp8emu::cudart

#endif // FP8EMU_CUDART_RUNTIME_H
