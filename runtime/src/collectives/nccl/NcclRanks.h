// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives of device memory through NCCL, enqueued on a stream beside the step's: they can be captured in
// graphs. NCCL only moves bytes; sums are the runtime's own, in the order of ranks.

#ifndef FP8RT_COLLECTIVES_NCCL_NCCLRANKS_H
#define FP8RT_COLLECTIVES_NCCL_NCCLRANKS_H

#include "../../cuda/DeviceProgram.h"
#include "../../cuda/SideStream.h"
#include "Watch.h"

namespace fp8rt::collectives {

class NcclRanks : public Ranks {
public:
  /// `host` connects the ranks beside NCCL: they find each other, compare their programs, and say who is
  /// where.
  explicit NcclRanks(std::unique_ptr<HostRanks> host);
  ~NcclRanks() override;

  uint32_t rank() const override { return host->rank(); }
  uint32_t size() const override { return host->size(); }
  uint64_t start(const fp8rt_collective &collective, void *stream) override;
  void wait(uint64_t ticket, void *stream) override;
  void gather(const void *send, uint64_t bytes, void *receive) override {
    host->gather(send, bytes, receive);
  }
  void tellFailure(const std::string &reason) noexcept override;
  bool usesHostMemory() const override { return false; }
  void useDevice(std::shared_ptr<const cuda::DeviceProgram> program) override;
  void check() override;

private:
  /// Everything that is on the device.
  struct OnDevice {
    OnDevice(HostRanks &host, std::shared_ptr<const cuda::DeviceProgram> program);

    std::shared_ptr<const cuda::DeviceProgram> program;
    nccl::Kernels kernels;
    cuda::SideStream stream; // of all collectives, one after the other
    nccl::NcclGroups groups;
    nccl::Watch watch;
    /// Memory for what ranks send each other, by the step's stream. Graphs may refer to it, so all is kept.
    std::map<cuda::CUstream, std::vector<std::pair<uint64_t, Buffer>>> scratch;
  };
  class Move;

  char *scratchFor(const Collective &collective, cuda::CUstream stream, bool isCapturing);

  std::unique_ptr<HostRanks> host;
  std::unique_ptr<OnDevice> device; // once a session has named it
  uint64_t tickets = 0;
};

} // namespace fp8rt::collectives

#endif // FP8RT_COLLECTIVES_NCCL_NCCLRANKS_H
