// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Moving messages whenever one is asked about: a header with tag and size, then the data.

#include "TcpMessenger.h"
#include "../../core/Status.h"
#include "Rendezvous.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/uio.h>

using namespace fp8rt;
using namespace fp8rt::collectives;

/// A message cannot be larger: a header with a larger size is none of ours.
static constexpr uint64_t kMaxBytes = uint64_t(1) << 32;

TcpMessenger::TcpMessenger(const std::string &address, uint32_t rank, uint32_t size, double deadline)
    : self(rank) {
  for (tcp::Socket &socket : tcp::meet(address, rank, size, deadline)) {
    peers.emplace_back();
    peers.back().socket = std::move(socket);
  }
}

/// A connection that is closed with something unread would take back what this rank has sent last.
TcpMessenger::~TcpMessenger() { progress(); }

TcpMessenger::Message *TcpMessenger::add(Message message) {
  return messages.emplace_back(std::make_unique<Message>(message)).get();
}

Messenger::Request TcpMessenger::send(const void *data, uint64_t bytes, uint32_t to, int tag) {
  Message message = {{bytes, tag}, const_cast<char *>(static_cast<const char *>(data)), -1};
  message.isDone = peers[to].isGone; // nobody is there to take it
  Message *added = add(message);
  if (!added->isDone) {
    peers[to].outgoing.push_back(added);
    write(peers[to]);
  }
  return added;
}

Messenger::Request TcpMessenger::receive(void *data, uint64_t bytes, int from, int tag) {
  Message *added = add({{bytes, tag}, static_cast<char *>(data), from});
  expected.push_back(added);
  for (uint32_t peer = 0; peer < peers.size() && !added->isDone; ++peer)
    if (from == kAnyRank || from == static_cast<int>(peer))
      match(peers[peer], static_cast<int>(peer));
  return added;
}

bool TcpMessenger::test(Request &request) {
  auto *message = static_cast<Message *>(request);
  if (!message->isDone)
    progress();
  if (!message->isDone)
    return false;
  bool isTooLong = message->isTooLong;
  auto found =
      std::find_if(messages.begin(), messages.end(), [&](auto &one) { return one.get() == message; });
  messages.erase(found);
  request = nullptr;
  if (isTooLong)
    fail(FP8RT_RANKS, "another rank has sent more than was expected");
  return true;
}

void TcpMessenger::progress() {
  std::vector<pollfd> files;
  std::vector<uint32_t> ranks;
  for (uint32_t peer = 0; peer < peers.size(); ++peer)
    if (peers[peer].socket && !peers[peer].isGone) {
      files.push_back({peers[peer].socket.descriptor(),
                       static_cast<short>(peers[peer].outgoing.empty() ? POLLIN : POLLIN | POLLOUT), 0});
      ranks.push_back(peer);
    }
  if (poll(files.data(), files.size(), 0) <= 0)
    return;
  for (size_t i = 0; i < files.size(); ++i) {
    if (files[i].revents & POLLOUT)
      write(peers[ranks[i]]);
    if (files[i].revents & (POLLIN | POLLHUP | POLLERR))
      read(ranks[i]);
  }
}

/// Sends as much as the connection takes.
void TcpMessenger::write(Peer &peer) {
  while (!peer.outgoing.empty()) {
    Message &message = *peer.outgoing.front();
    uint64_t ofHeader = std::min<uint64_t>(message.moved, sizeof(Header)), ofData = message.moved - ofHeader;
    iovec parts[] = {{reinterpret_cast<char *>(&message.header) + ofHeader, sizeof(Header) - ofHeader},
                     {message.data + ofData, message.header.bytes - ofData}};
    msghdr both = {};
    both.msg_iov = parts;
    both.msg_iovlen = 2;
    ssize_t sent = sendmsg(peer.socket.descriptor(), &both, MSG_NOSIGNAL);
    if (sent < 0)
      return; // later; or the connection is broken, which reading finds out
    message.moved += static_cast<uint64_t>(sent);
    if (message.moved < sizeof(Header) + message.header.bytes)
      continue;
    message.isDone = true;
    peer.outgoing.pop_front();
  }
}

/// Takes what has arrived from a rank.
void TcpMessenger::read(uint32_t from) {
  Peer &peer = peers[from];
  while (true) {
    bool inHeader = peer.arrived < sizeof(Header);
    char *to = inHeader ? reinterpret_cast<char *>(&peer.header) + peer.arrived
                        : peer.arriving.data() + (peer.arrived - sizeof(Header));
    uint64_t left =
        inHeader ? sizeof(Header) - peer.arrived : sizeof(Header) + peer.header.bytes - peer.arrived;
    ssize_t got = left ? recv(peer.socket.descriptor(), to, left, 0) : 0;
    if (left && got < 0 && (errno == EAGAIN || errno == EINTR))
      return;
    if (left && got <= 0)
      break;
    peer.arrived += static_cast<uint64_t>(got);
    if (inHeader && peer.arrived == sizeof(Header)) {
      if (peer.header.bytes > kMaxBytes)
        break;
      peer.arriving.resize(peer.header.bytes);
    }
    if (peer.arrived < sizeof(Header) || peer.arrived < sizeof(Header) + peer.header.bytes)
      continue;
    peer.arrivals.push_back({static_cast<int>(peer.header.tag), std::move(peer.arriving)});
    peer.arriving.clear();
    peer.arrived = 0;
    match(peer, static_cast<int>(from));
  }
  peer.isGone = true;
  for (Message *message : peer.outgoing)
    message->isDone = true;
  peer.outgoing.clear();
}

void TcpMessenger::give(Message &message, const Arrival &arrival) {
  message.isTooLong = arrival.data.size() > message.header.bytes;
  if (!message.isTooLong && !arrival.data.empty())
    std::memcpy(message.data, arrival.data.data(), arrival.data.size());
  message.isDone = true;
}

/// Gives what has arrived from a rank to the requests for it, in order.
void TcpMessenger::match(Peer &peer, int from) {
  for (auto arrival = peer.arrivals.begin(); arrival != peer.arrivals.end();) {
    auto wants = [&](Message *message) {
      return message->header.tag == arrival->tag && (message->from == kAnyRank || message->from == from);
    };
    auto found = std::find_if(expected.begin(), expected.end(), wants);
    if (found == expected.end()) {
      ++arrival;
      continue;
    }
    give(**found, *arrival);
    expected.erase(found);
    arrival = peer.arrivals.erase(arrival);
  }
}
