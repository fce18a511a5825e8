// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls of the system's sockets: none of them blocks.

#include "Socket.h"
#include "../../core/Status.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

using namespace fp8rt;
using namespace fp8rt::collectives::tcp;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

constexpr int kFlags = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

sockaddr *pointer(Address &address) { return reinterpret_cast<sockaddr *>(&address.storage); }
const sockaddr *pointer(const Address &address) {
  return reinterpret_cast<const sockaddr *>(&address.storage);
}

/// Small messages are not held back.
void sendAtOnce(int file) {
  int yes = 1;
  setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

} // namespace

uint16_t Address::port() const {
  return ntohs(storage.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6 &>(storage).sin6_port
                                             : reinterpret_cast<const sockaddr_in &>(storage).sin_port);
}

void Address::setPort(uint16_t port) {
  if (storage.ss_family == AF_INET6)
    reinterpret_cast<sockaddr_in6 &>(storage).sin6_port = htons(port);
  else
    reinterpret_cast<sockaddr_in &>(storage).sin_port = htons(port);
}

bool Address::isLoopback() const {
  if (storage.ss_family == AF_INET6)
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6 &>(storage).sin6_addr);
  return ntohl(reinterpret_cast<const sockaddr_in &>(storage).sin_addr.s_addr) >> 24 == 127;
}

Address collectives::tcp::resolve(const std::string &text) {
  size_t colon = text.rfind(':');
  std::string host = text.substr(0, colon), port = colon == std::string::npos ? "" : text.substr(colon + 1);
  bool isNumber = !port.empty() && port.size() <= 5 &&
                  port.find_first_not_of("0123456789") == std::string::npos && std::stoi(port) <= 65535;
  if (host.empty() || !isNumber || std::stoi(port) == 0)
    fail(FP8RT_INVALID_ARGUMENT, inQuotes(text) + ": expected HOST:PORT");
  if (host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (int code = getaddrinfo(host.c_str(), port.c_str(), &hints, &found))
    fail(FP8RT_NOT_FOUND, inQuotes(text) + ": " + gai_strerror(code));
  Address address;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  address.size = found->ai_addrlen;
  freeaddrinfo(found);
  return address;
}

Socket::~Socket() {
  if (file >= 0)
    close(file);
}

Socket Socket::listen(const Address &at, const std::string &name) {
  Socket made(socket(at.storage.ss_family, kFlags, 0));
  int yes = 1;
  setsockopt(made.file, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)); // a port of a run before is free again
  if (!made || bind(made.file, pointer(at), at.size) || ::listen(made.file, 1024))
    fail(FP8RT_IO, "rank 0 cannot listen at " + name + ": " + std::strerror(errno));
  return made;
}

Socket Socket::connect(const Address &to, Time end) {
  Socket made(socket(to.storage.ss_family, kFlags, 0));
  int code = 0;
  socklen_t size = sizeof(code);
  if (!made || (::connect(made.file, pointer(to), to.size) && errno != EINPROGRESS) ||
      !made.isReady(POLLOUT, end) || getsockopt(made.file, SOL_SOCKET, SO_ERROR, &code, &size) || code)
    return Socket();
  sendAtOnce(made.file);
  return made;
}

/// Waits until one of the events is possible.
bool Socket::isReady(short events, Time end) const {
  while (true) {
    auto left = std::chrono::duration_cast<milliseconds>(end - steady_clock::now()).count();
    pollfd one = {file, events, 0};
    int count = poll(&one, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 1000)));
    if (count > 0)
      return true;
    if (left <= 0 || (count < 0 && errno != EINTR))
      return false;
  }
}

Socket Socket::accept(Time end) const {
  if (!isReady(POLLIN, end))
    return Socket();
  Socket made(accept4(file, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (made)
    sendAtOnce(made.file);
  return made;
}

bool Socket::write(const void *data, uint64_t bytes, Time end) const {
  const char *next = static_cast<const char *>(data);
  while (bytes) {
    ssize_t sent = isReady(POLLOUT, end) ? send(file, next, bytes, MSG_NOSIGNAL) : -1;
    if (sent < 0)
      return false;
    next += sent;
    bytes -= static_cast<uint64_t>(sent);
  }
  return true;
}

bool Socket::read(void *data, uint64_t bytes, Time end) const {
  char *next = static_cast<char *>(data);
  while (bytes) {
    ssize_t received = isReady(POLLIN, end) ? recv(file, next, bytes, 0) : -1;
    if (received <= 0)
      return false;
    next += received;
    bytes -= static_cast<uint64_t>(received);
  }
  return true;
}

Address Socket::own() const {
  Address address;
  address.size = sizeof(address.storage);
  getsockname(file, pointer(address), &address.size);
  return address;
}

Address Socket::other() const {
  Address address;
  address.size = sizeof(address.storage);
  getpeername(file, pointer(address), &address.size);
  return address;
}
