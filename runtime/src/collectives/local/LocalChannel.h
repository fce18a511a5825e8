// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pieces in the memory that the ranks of one machine share: a rank reads them where the others wrote them.

#ifndef FP8RT_COLLECTIVES_LOCAL_LOCALCHANNEL_H
#define FP8RT_COLLECTIVES_LOCAL_LOCALCHANNEL_H

#include "../Channel.h"
#include "SharedMemory.h"

#include <functional>

namespace fp8rt::collectives {

class LocalChannel : public Channel {
public:
  /// Enters as `rank`. `deadline` is the longest time in seconds that a rank is waited for.
  LocalChannel(int file, uint32_t rank, double deadline);

  uint32_t rank() const override { return self; }
  uint32_t size() const override { return memory.size(); }
  double deadline() const override { return limit; }
  uint64_t capacity() const override;
  char *outgoing(const Piece &piece, bool waits) override;
  void post(const Collective &collective, const Piece &piece) override;
  void await(const Collective &collective, const Piece &piece) override;
  const char *incoming(const Collective &collective, const Piece &piece, uint32_t member) override;
  void release(const Collective &collective, const Piece &piece) override;
  void tellFailure(const std::string &reason) noexcept override;
  void announce(const Standing &own) override;
  Standing standing(uint32_t rank) override;
  Absence absence(uint32_t rank) override;
  std::string failure() override { return memory.failure(); }

private:
  /// The ranks that may still read a buffer.
  struct Use {
    std::vector<uint32_t> readers;
    uint64_t stamp = 0;
  };
  using Condition = std::function<bool(const SharedMemory::Rank &)>;

  bool isFree(const Use &use) const;
  void waitFor(const std::vector<uint32_t> &ranks, const char *verb, const Description &collective,
               const Condition &isThere);
  void checkMissing(const std::vector<uint32_t> &ranks, const std::string &what, const Condition &isThere,
                    double late);
  void checkSame(const Collective &collective, const Piece &piece) const;

  SharedMemory memory;
  uint32_t self;
  double limit; // the deadline in seconds
  Use uses[2];
  Description last = {}; // the collective that was completed last, for messages
};

} // namespace fp8rt::collectives

#endif // FP8RT_COLLECTIVES_LOCAL_LOCALCHANNEL_H
