// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives of a program on a device through a communicator in host memory: data that is sent is copied
// to the host first, and received data is copied back. This waits for the device, so it cannot be captured.

#ifndef FP8RT_COLLECTIVES_STAGEDRANKS_H
#define FP8RT_COLLECTIVES_STAGEDRANKS_H

#include "../cuda/DeviceProgram.h"
#include "Ranks.h"

#include <map>

namespace fp8rt::cuda {

class StagedRanks : public collectives::Ranks {
public:
  StagedRanks(collectives::Ranks &host, std::shared_ptr<const DeviceProgram> program)
      : host(host), program(std::move(program)) {}

  uint32_t rank() const override { return host.rank(); }
  uint32_t size() const override { return host.size(); }
  uint64_t start(const fp8rt_collective &collective, void *stream) override;
  void wait(uint64_t ticket, void *stream) override;
  void gather(const void *send, uint64_t bytes, void *receive) override { host.gather(send, bytes, receive); }
  void tellFailure(const std::string &reason) noexcept override { host.tellFailure(reason); }
  bool usesHostMemory() const override { return false; }

private:
  struct Copy {
    std::vector<char> send, receive;
    void *target; // on the device
  };

  collectives::Ranks &host;
  std::shared_ptr<const DeviceProgram> program;
  std::map<uint64_t, Copy> underWay; // by ticket
};

} // namespace fp8rt::cuda

#endif // FP8RT_COLLECTIVES_STAGEDRANKS_H
