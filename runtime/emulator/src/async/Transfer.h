// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Common parts of the bulk engine's copies, which read first and write later. Copies to
// shared memory tell an mbarrier in each block that they write to, copies to global memory
// a group of their thread.

#ifndef FP8EMU_ASYNC_TRANSFER_H
#define FP8EMU_ASYNC_TRANSFER_H

#include "Mbarrier.h"
#include "check/Agent.h"
#include "exec/Access.h"
#include "exec/Operation.h"

#include <vector>

namespace fp8emu {

/// A copy to shared memory of one or several blocks, one after the other.
class TransferToShared : public Operation {
public:
  struct Destination {
    SharedPlace place, barrier;
    /// The copy to this destination, as the checks know it.
    check::Agent agent = {};
  };
  std::vector<Destination> destinations;

  bool step() override {
    if (!hasRead) {
      transferred = read();
      hasRead = true;
      return destinations.empty();
    }
    const Destination to = destinations.back();
    destinations.pop_back();
    write(to.place);
    to.agent.complete();
    Mbarrier(*to.barrier.block, to.barrier.offset).completeBytes(transferred);
    return destinations.empty();
  }

protected:
  /// Reads the source; how many bytes mbarriers are told of.
  virtual uint32_t read() = 0;
  virtual void write(const SharedPlace &to) = 0;

private:
  bool hasRead = false;
  uint32_t transferred = 0;
};

/// A copy from shared to global memory.
class TransferToGlobal : public Operation {
public:
  std::shared_ptr<Groups::Group> group;

  bool step() override {
    if (!hasRead) {
      read();
      --group->unread;
      hasRead = true;
      return false;
    }
    write();
    --group->unfinished;
    return true;
  }

protected:
  virtual void read() = 0;
  virtual void write() = 0;

private:
  bool hasRead = false;
};

} // namespace fp8emu

#endif // FP8EMU_ASYNC_TRANSFER_H
