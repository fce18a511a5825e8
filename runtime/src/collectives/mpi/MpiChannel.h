// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pieces as messages of MPI from rank to rank. Every rank polls, so that it can give up at the deadline and
// say whose message has not arrived.

#ifndef FP8RT_COLLECTIVES_MPI_MPICHANNEL_H
#define FP8RT_COLLECTIVES_MPI_MPICHANNEL_H

#include "../Channel.h"
#include "Mpi.h"

#include <functional>
#include <mutex>

namespace fp8rt::collectives {

class MpiChannel : public Channel {
public:
  explicit MpiChannel(double deadline);
  /// Ends MPI once all ranks have come to this point; if some do not come in time, leaves it as it is.
  ~MpiChannel() override;

  uint32_t rank() const override { return self; }
  uint32_t size() const override { return ranks; }
  uint64_t capacity() const override;
  char *outgoing(const Piece &piece, bool waits) override;
  void post(const Collective &collective, const Piece &piece) override;
  void await(const Collective &collective, const Piece &piece) override;
  const char *incoming(const Collective &collective, const Piece &piece, uint32_t member) override;
  void release(const Collective &collective, const Piece &piece) override;
  void tellFailure(const std::string &reason) noexcept override;

private:
  struct Message {
    mpi::Request request;
    uint32_t rank; // from which, or to which
  };
  using Messages = std::vector<Message>;

  /// The memory and the messages of a piece.
  struct Buffer {
    std::vector<char> outgoing;
    std::vector<std::vector<char>> incoming; // of each of the group's ranks
    std::vector<Description> descriptions;   // the same
    Description own = {};
    Messages sent, received, receivedDescriptions;
    bool isInUse = false; // from post to release
  };

  void send(Messages &messages, const void *data, uint64_t bytes, uint32_t to, int tag);
  void receive(Messages &messages, void *data, uint64_t bytes, uint32_t from, int tag);
  void postDescriptions(const Collective &collective, Buffer &buffer);
  bool areComplete(Messages &messages);
  void waitFor(Messages &messages, const char *verb, const Description &collective);
  void checkSame(const Collective &collective, const Buffer &buffer) const;
  void checkFailure();
  void listenForFailure();

  mpi::Mpi &mpi;
  mpi::Comm comm = nullptr;
  uint32_t self = 0, ranks = 0;
  double deadline;
  Buffer buffers[2];
  Description last = {};
  std::mutex mutex; // MPI is called by one thread at a time
  std::string failure;
  std::vector<char> failureReceived, failureSent;
  mpi::Request failureRequest = nullptr;
  bool hasTold = false;
};

} // namespace fp8rt::collectives

#endif // FP8RT_COLLECTIVES_MPI_MPICHANNEL_H
