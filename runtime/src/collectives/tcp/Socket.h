// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// TCP sockets with deadlines.

#ifndef FP8RT_COLLECTIVES_TCP_SOCKET_H
#define FP8RT_COLLECTIVES_TCP_SOCKET_H

#include <chrono>
#include <cstdint>
#include <string>
#include <sys/socket.h>
#include <utility>

namespace fp8rt::collectives::tcp {

using Time = std::chrono::steady_clock::time_point;

/// An address with its port.
struct Address {
  sockaddr_storage storage = {};
  socklen_t size = 0;

  uint16_t port() const;
  void setPort(uint16_t port);
  bool isLoopback() const;
};

/// Returns the address of "HOST:PORT", or "[HOST]:PORT" for one with colons. Throws FP8RT_INVALID_ARGUMENT
/// or, if there is no such host, FP8RT_NOT_FOUND.
Address resolve(const std::string &text);

/// A socket, closed at its end. Functions return false if the other side is gone or the time is over.
class Socket {
public:
  Socket() = default;
  explicit Socket(int file) : file(file) {}
  Socket(Socket &&other) noexcept : file(std::exchange(other.file, -1)) {}
  Socket &operator=(Socket &&other) noexcept {
    std::swap(file, other.file);
    return *this;
  }
  ~Socket();

  /// Returns a socket that waits for others; throws FP8RT_IO if that is not possible at this address.
  static Socket listen(const Address &at, const std::string &name);
  /// Returns a connection; an empty socket if nobody listens there.
  static Socket connect(const Address &to, Time end);

  explicit operator bool() const { return file >= 0; }
  int descriptor() const { return file; }
  /// Returns a connection that another has made to this one; an empty socket after `end`.
  Socket accept(Time end) const;
  bool write(const void *data, uint64_t bytes, Time end) const;
  bool read(void *data, uint64_t bytes, Time end) const;
  /// The address of this or of the other side.
  Address own() const;
  Address other() const;

private:
  bool isReady(short events, Time end) const;

  int file = -1;
};

} // namespace fp8rt::collectives::tcp

#endif // FP8RT_COLLECTIVES_TCP_SOCKET_H
