// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Messages from rank to rank: through MPI or TCP.

#ifndef FP8RT_COLLECTIVES_MESSAGES_MESSENGER_H
#define FP8RT_COLLECTIVES_MESSAGES_MESSENGER_H

#include <cstdint>

namespace fp8rt::collectives {

/// Messages of a pair of ranks with equal tags arrive in the order in which they were sent. One thread at a
/// time calls. Functions throw FP8RT_RANKS if a message cannot be passed on.
class Messenger {
public:
  /// A message that is under way.
  using Request = void *;
  static constexpr int kAnyRank = -1;

  virtual ~Messenger() = default;

  virtual uint32_t rank() const = 0;
  virtual uint32_t size() const = 0;

  /// The memory must live until the message is complete.
  virtual Request send(const void *data, uint64_t bytes, uint32_t to, int tag) = 0;
  virtual Request receive(void *data, uint64_t bytes, int from, int tag) = 0;
  /// Returns whether the message is complete: then the request has ended.
  virtual bool test(Request &request) = 0;

  /// Returns whether it is certain that nothing more comes from a rank.
  virtual bool isGone(uint32_t rank) const = 0;
  /// Ends the connection once all ranks have come to this point; without it the others take this one for
  /// gone.
  virtual void end() = 0;
};

} // namespace fp8rt::collectives

#endif // FP8RT_COLLECTIVES_MESSAGES_MESSENGER_H
