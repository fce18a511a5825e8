// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Messages through TCP: a connection between every two ranks.

#ifndef FP8RT_COLLECTIVES_TCP_TCPMESSENGER_H
#define FP8RT_COLLECTIVES_TCP_TCPMESSENGER_H

#include "../messages/Messenger.h"
#include "Socket.h"

#include <deque>
#include <memory>
#include <vector>

namespace fp8rt::collectives {

class TcpMessenger : public Messenger {
public:
  /// Connects the ranks at "HOST:PORT", where rank 0 listens; throws FP8RT_RANKS if some do not come.
  TcpMessenger(const std::string &address, uint32_t rank, uint32_t size, double deadline);
  ~TcpMessenger() override;

  uint32_t rank() const override { return self; }
  uint32_t size() const override { return static_cast<uint32_t>(peers.size()); }
  Request send(const void *data, uint64_t bytes, uint32_t to, int tag) override;
  Request receive(void *data, uint64_t bytes, int from, int tag) override;
  bool test(Request &request) override;
  bool isGone(uint32_t rank) const override { return peers[rank].isGone; }
  void end() override {}

private:
  struct Header {
    uint64_t bytes;
    int64_t tag;
  };
  struct Message { // asked for: its address is the request
    Header header;
    char *data;         // of the program
    int from;           // of one that is received
    uint64_t moved = 0; // of the header and the data
    bool isDone = false, isTooLong = false;
  };
  struct Arrival { // whole, and not asked for yet
    int tag;
    std::vector<char> data;
  };
  struct Peer {
    tcp::Socket socket;
    bool isGone = false;
    std::deque<Message *> outgoing;
    Header header = {}; // of what is arriving
    std::vector<char> arriving;
    uint64_t arrived = 0; // bytes of both
    std::deque<Arrival> arrivals;
  };

  Message *add(Message message);
  void progress();
  void write(Peer &peer);
  void read(uint32_t from);
  void match(Peer &peer, int from);
  static void give(Message &message, const Arrival &arrival);

  uint32_t self;
  std::vector<Peer> peers;
  std::vector<std::unique_ptr<Message>> messages; // under way
  std::vector<Message *> expected;                // those that are received, in the order of the requests
};

} // namespace fp8rt::collectives

#endif // FP8RT_COLLECTIVES_TCP_TCPMESSENGER_H
