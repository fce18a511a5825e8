// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rendezvous. Rank 0 waits for a greeting of each rank, and answers all of them with the list of
// addresses, or with the reason of a failure. Then each rank connects to those of lower number.

#include "Rendezvous.h"
#include "../../core/Status.h"
#include "../Missing.h"

#include <algorithm>
#include <cstring>
#include <thread>

using namespace fp8rt;
using namespace fp8rt::collectives;
using namespace fp8rt::collectives::tcp;
using std::chrono::steady_clock;

namespace {

constexpr uint64_t kMagic = 0x31706374726d3846; // of these messages

struct Greeting {
  uint64_t magic = kMagic;
  uint32_t rank = 0, size = 0;
  uint16_t port = 0; // at which the rank listens
  uint16_t reserved[3] = {};
};

struct Answer {
  uint32_t hasFailed = 0;
  char reason[1020] = ""; // else addresses follow
};

Time after(double seconds) {
  return steady_clock::now() +
         std::chrono::duration_cast<steady_clock::duration>(std::chrono::duration<double>(seconds));
}

/// The seconds for the greeting of a new connection: the other end might be no rank at all.
constexpr double kGreetingTime = 2;
/// For how many seconds beyond the deadline the others wait for what rank 0 says.
constexpr double kAnswerTime = 2;

class Meeting {
public:
  Meeting(const std::string &name, uint32_t rank, uint32_t size, double deadline)
      : name(name), rank(rank), size(size), deadline(deadline), address(resolve(name)), end(after(deadline)),
        sockets(size), addresses(size) {}

  std::vector<Socket> lead();
  std::vector<Socket> follow();

private:
  bool takeGreeting(const Socket &from, Greeting &greeting, Time until) const {
    return from.read(&greeting, sizeof(greeting), until) && greeting.magic == kMagic;
  }
  std::string admit(Socket from, const Greeting &greeting);
  std::string waitForAll(const Socket &listener);
  Socket findLeader() const;
  void hearAnswer(const Socket &leader);
  void connectToLower(uint16_t port);
  void acceptHigher(const Socket &listener);
  [[noreturn]] void failFor(std::vector<uint32_t> ranks, const char *what) const {
    fail(FP8RT_RANKS, describeRanks(ranks) + what + name + " within " + describeSeconds(deadline));
  }

  const std::string &name;
  uint32_t rank, size;
  double deadline;
  Address address;
  Time end;
  std::vector<Socket> sockets;
  std::vector<Address> addresses;
};

/// Returns why a rank cannot take part; empty if it can.
std::string Meeting::admit(Socket from, const Greeting &greeting) {
  std::string other = std::to_string(greeting.rank), reason;
  if (greeting.size != size)
    reason = "rank " + other + " was started as one of " + std::to_string(greeting.size) +
             " ranks, rank 0 as one of " + std::to_string(size);
  else if (greeting.rank >= size)
    reason = "rank " + other + " of " + std::to_string(size) + " ranks";
  else if (greeting.rank == 0 || sockets[greeting.rank])
    reason = "two processes were started as rank " + other;
  if (!reason.empty()) {
    Answer answer;
    answer.hasFailed = 1;
    std::strncpy(answer.reason, reason.c_str(), sizeof(answer.reason) - 1);
    from.write(&answer, sizeof(answer), after(kAnswerTime));
    return reason;
  }
  addresses[greeting.rank] = from.other();
  addresses[greeting.rank].setPort(greeting.port);
  sockets[greeting.rank] = std::move(from);
  return "";
}

/// Returns why not all ranks come together; empty if all have come.
std::string Meeting::waitForAll(const Socket &listener) {
  for (uint32_t come = 1; come < size;) {
    Socket from = listener.accept(end);
    if (!from && steady_clock::now() < end)
      continue;
    if (!from)
      break;
    Greeting greeting;
    if (!takeGreeting(from, greeting, std::min(end, after(kGreetingTime))))
      continue; // no rank of this runtime
    std::string reason = admit(std::move(from), greeting);
    if (!reason.empty())
      return reason;
    ++come;
  }
  std::vector<uint32_t> missing;
  for (uint32_t other = 1; other < size; ++other)
    if (!sockets[other])
      missing.push_back(other);
  return missing.empty()
             ? ""
             : describeRanks(missing) + " did not come to " + name + " within " + describeSeconds(deadline);
}

std::vector<Socket> Meeting::lead() {
  Socket listener = Socket::listen(address, name);
  std::string reason = waitForAll(listener);
  Answer answer;
  answer.hasFailed = !reason.empty();
  std::strncpy(answer.reason, reason.c_str(), sizeof(answer.reason) - 1);
  std::vector<uint32_t> gone;
  for (uint32_t other = 1; other < size; ++other) {
    Time until = std::max(end, after(kAnswerTime));
    bool isTold =
        !sockets[other] ||
        (sockets[other].write(&answer, sizeof(answer), until) &&
         (answer.hasFailed || sockets[other].write(addresses.data(), size * sizeof(Address), until)));
    if (!isTold)
      gone.push_back(other);
  }
  if (!reason.empty())
    fail(FP8RT_RANKS, reason);
  if (!gone.empty())
    fail(FP8RT_RANKS, describeRanks(gone) + " came to " + name + ", and went");
  return std::move(sockets);
}

Socket Meeting::findLeader() const {
  while (true) {
    Socket leader = Socket::connect(address, end);
    if (leader)
      return leader;
    if (steady_clock::now() >= end)
      fail(FP8RT_RANKS, "rank 0 did not listen at " + name + " within " + describeSeconds(deadline));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void Meeting::hearAnswer(const Socket &leader) {
  Answer answer;
  Time until = end + std::chrono::seconds(static_cast<int>(kAnswerTime));
  if (!leader.read(&answer, sizeof(answer), until))
    fail(FP8RT_RANKS, "rank 0 at " + name + " gave no answer: it is gone, or no rank of this runtime");
  answer.reason[sizeof(answer.reason) - 1] = '\0';
  if (answer.hasFailed)
    fail(FP8RT_RANKS, answer.reason);
  if (!leader.read(addresses.data(), size * sizeof(Address), until))
    fail(FP8RT_RANKS, "rank 0 at " + name + " is gone");
}

void Meeting::connectToLower(uint16_t port) {
  Greeting greeting;
  greeting.rank = rank;
  greeting.size = size;
  greeting.port = port;
  for (uint32_t other = 1; other < rank; ++other) {
    Address to = addresses[other];
    if (to.isLoopback()) { // the machine of rank 0, as rank 0 sees it
      to = sockets[0].other();
      to.setPort(addresses[other].port());
    }
    Time until = std::max(end, after(kAnswerTime));
    sockets[other] = Socket::connect(to, until);
    if (!sockets[other] || !sockets[other].write(&greeting, sizeof(greeting), until))
      fail(FP8RT_RANKS, "rank " + std::to_string(rank) + " cannot connect to rank " + std::to_string(other));
  }
}

void Meeting::acceptHigher(const Socket &listener) {
  Time until = std::max(end, after(kAnswerTime));
  for (uint32_t left = size - rank - 1; left;) {
    Socket from = listener.accept(until);
    Greeting greeting;
    bool isRank = from && takeGreeting(from, greeting, until) && greeting.rank > rank &&
                  greeting.rank < size && !sockets[greeting.rank];
    if (isRank) {
      sockets[greeting.rank] = std::move(from);
      --left;
    } else if (steady_clock::now() >= until) {
      std::vector<uint32_t> missing;
      for (uint32_t other = rank + 1; other < size; ++other)
        if (!sockets[other])
          missing.push_back(other);
      fail(FP8RT_RANKS, describeRanks(missing) + " did not connect to rank " + std::to_string(rank));
    }
  }
}

std::vector<Socket> Meeting::follow() {
  sockets[0] = findLeader();
  Address any = sockets[0].own(); // where the others reach this rank, if they reach rank 0 there
  any.setPort(0);
  Socket listener = Socket::listen(any, "a port of its own");
  Greeting greeting;
  greeting.rank = rank;
  greeting.size = size;
  greeting.port = listener.own().port();
  sockets[0].write(&greeting, sizeof(greeting), end);
  hearAnswer(sockets[0]);
  connectToLower(greeting.port);
  acceptHigher(listener);
  return std::move(sockets);
}

} // namespace

std::vector<Socket> collectives::tcp::meet(const std::string &address, uint32_t rank, uint32_t size,
                                           double deadline) {
  if (size < 1 || size > 1024 || rank >= size)
    fail(FP8RT_INVALID_ARGUMENT,
         "rank " + std::to_string(rank) + " of " + std::to_string(size) + " ranks: expected up to 1024");
  Meeting meeting(address, rank, size, deadline);
  return rank == 0 ? meeting.lead() : meeting.follow();
}
