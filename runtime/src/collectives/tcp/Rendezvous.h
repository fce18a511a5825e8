// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How ranks find each other: all come to the address at which rank 0 listens, and learn there where the
// others listen.

#ifndef FP8RT_COLLECTIVES_TCP_RENDEZVOUS_H
#define FP8RT_COLLECTIVES_TCP_RENDEZVOUS_H

#include "Socket.h"

#include <vector>

namespace fp8rt::collectives::tcp {

/// Returns a connection to each rank, an empty one to itself. Throws FP8RT_RANKS if not all have come after
/// `deadline` seconds, and names those that did not, on all ranks; the same if they were not started alike.
std::vector<Socket> meet(const std::string &address, uint32_t rank, uint32_t size, double deadline);

} // namespace fp8rt::collectives::tcp

#endif // FP8RT_COLLECTIVES_TCP_RENDEZVOUS_H
