// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A stream beside the step's, for work that goes on while the step computes.

#ifndef FP8RT_CUDA_SIDESTREAM_H
#define FP8RT_CUDA_SIDESTREAM_H

#include "Device.h"

#include <map>
#include <vector>

namespace fp8rt::cuda {

/// A stream that branches off another one and joins it again, by events, so a capture of the other one
/// includes it. The device's context must be current, here and in every call.
class SideStream {
public:
  explicit SideStream(const Device &device);
  SideStream(const SideStream &) = delete;
  SideStream &operator=(const SideStream &) = delete;
  ~SideStream();

  CUstream handle() const { return stream; }

  /// Lets later work of this stream wait for the work that `main` holds so far.
  void follow(CUstream main);

  /// Remembers, as `ticket`, the work that this stream holds so far.
  void mark(uint64_t ticket);

  /// Lets later work of `main` wait for the work of `ticket`, and forgets the ticket. Does nothing for a
  /// ticket that was not marked.
  void join(uint64_t ticket, CUstream main);

private:
  CUevent record(CUstream of);
  void wait(CUstream later, CUevent event);

  const Device &device;
  CUstream stream = nullptr;
  std::map<uint64_t, CUevent> marks;
  std::vector<CUevent> unused;
};

} // namespace fp8rt::cuda

#endif // FP8RT_CUDA_SIDESTREAM_H
