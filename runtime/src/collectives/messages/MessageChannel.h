// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pieces as messages from rank to rank. Every rank polls, so that it can give up at the deadline and say
// whose message has not arrived.

#ifndef FP8RT_COLLECTIVES_MESSAGES_MESSAGECHANNEL_H
#define FP8RT_COLLECTIVES_MESSAGES_MESSAGECHANNEL_H

#include "../Channel.h"
#include "Messenger.h"

#include <deque>
#include <memory>
#include <mutex>

namespace fp8rt::collectives {

class MessageChannel : public Channel {
public:
  MessageChannel(std::unique_ptr<Messenger> messenger, double deadline);
  /// Ends the messenger once all ranks have come to this point; if some do not come in time, leaves it as it
  /// is.
  ~MessageChannel() override;

  uint32_t rank() const override { return self; }
  uint32_t size() const override { return ranks; }
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
  std::string failure() override;

private:
  struct Message {
    Messenger::Request request;
    uint32_t rank; // from which, or to which
  };
  using Messages = std::vector<Message>;

  /// The memory and the messages of a piece.
  struct Buffer {
    std::vector<char> outgoing;                      // room for a description, then the rank's piece
    std::vector<std::vector<char>> firsts, incoming; // of each of the group's ranks
    Messages sent, receivedFirsts, received;
    bool isInUse = false; // from post to release
  };

  /// A wait for other ranks, for error messages: "arrive at" or "complete" a collective.
  struct Wait {
    const char *verb;
    const Description &collective;

    std::string text() const { return std::string(verb) + " " + collective.text(); }
  };

  /// A standing as a message, and whether the rank has waited for others beyond its deadline.
  struct Notice {
    uint32_t rank = 0, isLate = 0;
    Standing standing;
  };

  void send(Messages &messages, const void *data, uint64_t bytes, uint32_t to, int tag);
  void receive(Messages &messages, void *data, uint64_t bytes, uint32_t from, int tag);
  void postFirst(const Collective &collective, const Piece &piece, Buffer &buffer);
  bool areComplete(Messages &messages);
  void waitFor(Messages &messages, const Wait &wait);
  void checkAbsence(Messages &messages, const Wait &wait);
  void tellLateness(bool isLate);
  void checkLate(const Messages &messages, const Wait &wait, double late);
  Absence lookForAbsence(uint32_t rank);
  void checkSame(const Collective &collective, const Buffer &buffer) const;
  bool lookForFailure();
  void checkFailure();
  void takeNotices();
  void sayGoodbye();

  std::unique_ptr<Messenger> messenger;
  uint32_t self, ranks;
  double limit; // the deadline in seconds
  Buffer buffers[2];
  Description last = {};
  std::mutex mutex;   // the messenger is called by one thread at a time
  std::string reason; // of the first failure
  std::vector<char> failureReceived, failureSent;
  Messenger::Request failureRequest = nullptr;
  bool hasTold = false;

  /// A rank says goodbye after its last message: a message that has not come by then never comes.
  std::vector<char> goodbyes;
  Messages expectedGoodbyes;

  std::vector<Standing> standings;
  std::vector<bool> areLate;
  Notice noticeReceived, noticeSent;
  std::deque<Notice> latenesses; // stay where they are: messages of any of them may be under way
  Messenger::Request noticeRequest = nullptr;
  Messages noticesSent;
};

} // namespace fp8rt::collectives

#endif // FP8RT_COLLECTIVES_MESSAGES_MESSAGECHANNEL_H
