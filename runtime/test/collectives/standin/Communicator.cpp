// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Communicators: how their ranks meet and split, and the list of all.

#include "Communicator.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <unistd.h>

using namespace fp8rt_test;
using namespace fp8rt::collectives::nccl;

ncclComm::~ncclComm() {
  if (connecting.joinable())
    connecting.join();
  if (place.file >= 0) {
    place.close();
    --live;
  }
  --live;
}

void ncclComm::move(std::vector<Transfer> &transfers, const std::atomic<bool> &givesUp) {
  while (!givesUp && !isAborted && !progress(exchange, rank, transfers))
    usleep(20);
}

void ncclComm::join(const Place &with) {
  if (!exchange.open(with, size)) {
    state = ncclSystemError;
    return;
  }
  ++exchange.joined();
  while (!isAborted && exchange.joined() < size)
    usleep(100);
  state = ncclSuccess;
}

static std::mutex commsMutex;
static std::map<ncclComm_t, Comm> comms;

Comm fp8rt_test::find(ncclComm_t handle) {
  std::lock_guard<std::mutex> lock(commsMutex);
  auto found = comms.find(handle);
  return found == comms.end() ? nullptr : found->second;
}

Comm fp8rt_test::add(uint32_t rank, uint32_t size) {
  auto comm = std::make_shared<ncclComm>();
  comm->rank = rank;
  comm->size = size;
  std::lock_guard<std::mutex> lock(commsMutex);
  comms[comm.get()] = comm;
  return comm;
}

ncclResult_t fp8rt_test::end(ncclComm_t handle, bool aborts) {
  Comm comm = find(handle);
  if (!comm)
    return ncclInvalidArgument;
  comm->isAborted = aborts;
  for (const auto &part : comm->splits) // those that are not complete have no handle yet
    if (Comm child = part.lock(); child && aborts && child->state != ncclSuccess)
      end(child.get(), aborts);
  // Work that is kept for graphs keeps the communicator, but its thread has nothing left to do.
  if (comm->connecting.joinable() && (aborts || comm->state == ncclSuccess))
    comm->connecting.join();
  std::lock_guard<std::mutex> lock(commsMutex);
  comms.erase(handle);
  return ncclSuccess;
}

void fp8rt_test::split(const Comm &parent, ncclComm_t child, Wish own, ncclComm_t *out) {
  std::vector<Wish> wishes(parent->size);
  std::vector<Transfer> transfers;
  for (uint32_t other = 0; other < parent->size; ++other) {
    transfers.push_back({true, other, reinterpret_cast<char *>(&own), sizeof(Wish)});
    transfers.push_back({false, other, reinterpret_cast<char *>(&wishes[other]), sizeof(Wish)});
  }
  parent->move(transfers, child->isAborted);
  if (parent->isAborted || child->isAborted)
    return;
  wishes.erase(
      std::remove_if(wishes.begin(), wishes.end(), [&](const Wish &wish) { return wish.color != own.color; }),
      wishes.end());
  std::sort(wishes.begin(), wishes.end(),
            [](const Wish &a, const Wish &b) { return std::pair(a.key, a.rank) < std::pair(b.key, b.rank); });
  child->size = static_cast<uint32_t>(wishes.size());
  for (uint32_t i = 0; i < wishes.size(); ++i)
    if (wishes[i].rank == own.rank)
      child->rank = i;
  __atomic_store_n(out, child, __ATOMIC_RELEASE);
  parent->state = ncclSuccess;
  child->join(wishes.front().place);
}
