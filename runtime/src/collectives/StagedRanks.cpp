// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies around collectives.

#include "StagedRanks.h"
#include "Collective.h"

using namespace fp8rt;
using namespace fp8rt::cuda;

/// Returns how many elements a rank receives.
static uint64_t receivedCount(const collectives::Collective &collective) {
  uint64_t count = collective.description.count;
  switch (collective.description.kind) {
  case FP8RT_ALL_GATHER:
    return count * collective.groupSize();
  case FP8RT_REDUCE_SCATTER:
    return count / collective.groupSize();
  default:
    return count;
  }
}

uint64_t StagedRanks::start(const fp8rt_collective &given, void *stream) {
  collectives::Collective collective(given, rank(), size());
  const Driver &driver = program->device().driver();
  driver.check(driver.streamSynchronize(static_cast<CUstream>(stream)),
               "waiting for what a collective sends");
  Copy copy;
  copy.send.resize(collective.bytes());
  copy.receive.resize(receivedCount(collective) * collective.elementBytes);
  copy.target = given.receive;
  if (!copy.send.empty())
    program->memory()->read(copy.send.data(), given.send, copy.send.size());
  fp8rt_collective staged = given;
  staged.send = copy.send.data(); // moving a vector does not move its elements
  staged.receive = copy.receive.data();
  uint64_t ticket = host.start(staged, nullptr);
  underWay[ticket] = std::move(copy);
  return ticket;
}

void StagedRanks::wait(uint64_t ticket, void *) {
  host.wait(ticket, nullptr);
  auto found = underWay.find(ticket);
  Copy &copy = found->second;
  if (!copy.receive.empty())
    program->memory()->write(copy.target, copy.receive.data(), copy.receive.size());
  underWay.erase(found);
}
