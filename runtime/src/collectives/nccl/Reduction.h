// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels of the runtime's own: reductions in the order of ranks, and marks that tell the host how far the
// device is.

#ifndef FP8RT_COLLECTIVES_NCCL_REDUCTION_H
#define FP8RT_COLLECTIVES_NCCL_REDUCTION_H

#include "../../cuda/Device.h"

namespace fp8rt::collectives::nccl {

/// Where a device is, in host memory. The device writes, the host reads.
struct Marks {
  uint64_t arrived;   // counts the collectives to which the device has come
  uint64_t completed; // those that are complete
  uint64_t at;        // the number of the last one's description
};

class Kernels {
public:
  /// The device's context must be current, here and in every call.
  explicit Kernels(const cuda::Device &device);
  Kernels(const Kernels &) = delete;
  Kernels &operator=(const Kernels &) = delete;
  ~Kernels();

  /// Enqueues the reduction of `ranks` blocks of `count` elements, one block after the other, as
  /// communicator.h says for a type and a reduction.
  void reduce(uint32_t type, uint32_t reduction, const void *sources, void *target, uint64_t count,
              uint32_t ranks, cuda::CUstream stream) const;

  /// Enqueues the note that the device has come to a collective, or has completed it.
  void markArrival(uint64_t description, cuda::CUstream stream) const;
  void markCompletion(cuda::CUstream stream) const;
  Marks marks() const;

private:
  cuda::CUfunction find(const std::string &name) const;
  void launch(cuda::CUfunction function, uint64_t blocks, uint32_t threads, void **parameters,
              cuda::CUstream stream) const;

  const cuda::Device &device;
  cuda::CUmodule module = nullptr;
  cuda::CUfunction arrive = nullptr, complete = nullptr;
  cuda::CUfunction reductions[8][5] = {}; // by type and reduction
  void *record = nullptr;                 // the marks
  cuda::CUdeviceptr recordOnDevice = 0;
};

/// Returns the kernels as PTX.
std::string textOfKernels();

} // namespace fp8rt::collectives::nccl

#endif // FP8RT_COLLECTIVES_NCCL_REDUCTION_H
