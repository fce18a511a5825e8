// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Running a grid: each host thread keeps some clusters resident and gives them turns,
// so that blocks may wait for each other; most end in their first.

#include "Launch.h"

#include "Block.h"
#include "Places.h"
#include "memory/DeviceMemory.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <thread>

using namespace fp8emu;

namespace {
/// Instructions a cluster runs before another of the worker's gets a turn.
constexpr uint64_t kTurn = uint64_t(1) << 20;
} // namespace

Launch::Launch(const Program &program, const FunctionCode &kernel, LaunchConfig config, DeviceMemory &memory,
               const Settings &settings, uint64_t number, ObserverFactory observe)
    : code(program), entry(kernel), sizes(std::move(config)), device(memory), options(settings),
      launchNumber(number), observe(std::move(observe)) {
  localBytes = kernel.frameBytes;
  bool needsStack =
      std::any_of(program.functions.begin(), program.functions.end(), [](const FunctionCode &function) {
        return !function.isEntry || function.allocatesOnStack;
      });
  if (needsStack)
    localBytes += 4 * settings.stackBytes;
  localBytes = (localBytes + 15) / 16 * 16;
}

std::array<uint32_t, 3> Launch::clusterGrid() const {
  std::array<uint32_t, 3> out;
  for (unsigned i = 0; i < 3; ++i)
    out[i] = sizes.grid[i] / sizes.cluster[i];
  return out;
}

uint64_t Launch::clusters() const {
  auto grid = clusterGrid();
  return uint64_t(grid[0]) * grid[1] * grid[2];
}

/// Device memory of the launch itself.
bool Launch::allocate() {
  uint64_t bytes = std::max<uint64_t>(sizes.parameters.size(), 1);
  auto address = device.allocate(bytes, 64, "parameters of " + entry.name);
  if (!address)
    return false;
  parameters = *address;
  std::copy(sizes.parameters.begin(), sizes.parameters.end(), reinterpret_cast<uint8_t *>(parameters));
  device.setInitialized(parameters, bytes, true);
  device.setReadOnly(parameters);
  if (!sizes.cooperative)
    return true;
  constexpr uint64_t workspaceBytes = 64;
  address = device.allocate(workspaceBytes, 64, "workspace of a cooperative grid");
  if (!address)
    return false;
  workspace = *address;
  device.setInitialized(workspace, workspaceBytes, true);
  return true;
}

std::optional<Fault> Launch::run(Profile *profile) {
  total = profile;
  if (!allocate()) {
    Fault fault;
    fault.kind = FaultKind::IllegalOperand;
    fault.message = "no device memory is left for the kernel's parameters";
    return fault;
  }
  unsigned workers = options.threads ? options.threads : std::max(1u, std::thread::hardware_concurrency());
  // Blocks that wait for each other are interleaved in one order, which the seed
  // decides; without checks, speed is worth more than that order.
  if (code.blocksCommunicate && options.checks)
    workers = 1;
  workers = unsigned(std::min<uint64_t>(workers, clusters()));
  unsigned resident = std::max(1u, options.multiprocessors / std::max(1u, workers));
  if (sizes.cooperative)
    resident = unsigned(clusters() / std::max(1u, workers) + 1);
  if (observe)
    watching = observe(*this, workers > 1);
  std::vector<std::thread> others;
  for (unsigned i = 1; i < workers; ++i)
    others.emplace_back([this, resident] { work(resident); });
  if (workers)
    work(resident);
  for (std::thread &thread : others)
    thread.join();
  device.release(parameters);
  if (workspace)
    device.release(workspace);
  watching.reset();
  return firstFault;
}

/// Runs clusters until none is left. One that does not end in its turn goes to the
/// end of the queue, and another joins it.
void Launch::work(unsigned resident) {
  Profile counts(total ? code.ops.size() : 0);
  std::deque<std::unique_ptr<Cluster>> running;
  const uint64_t all = clusters();
  try {
    while (!stopped) {
      if (running.size() < resident || running.empty()) {
        uint64_t index = nextCluster++;
        if (index < all)
          running.push_front(std::make_unique<Cluster>(*this, index, total ? &counts : nullptr));
      }
      if (running.empty())
        break;
      std::unique_ptr<Cluster> cluster = std::move(running.front());
      running.pop_front();
      cluster->run(kTurn);
      if (!cluster->done())
        running.push_back(std::move(cluster));
    }
  } catch (const Fault &fault) {
    fail(fault);
  }
  finish(counts);
}

void Launch::count(uint64_t instructions) {
  if (!options.instructionLimit || (executed += instructions) <= options.instructionLimit)
    return;
  Fault fault;
  fault.kind = FaultKind::Timeout;
  fault.kernel = entry.name;
  fault.message = "more than " + std::to_string(options.instructionLimit) + " instructions were run";
  throw fault;
}

std::optional<std::array<uint32_t, 3>> Launch::cancelCluster() {
  const uint64_t index = nextCluster++;
  if (index >= clusters())
    return std::nullopt;
  const auto grid = clusterGrid();
  return std::array<uint32_t, 3>{uint32_t(index % grid[0]) * sizes.cluster[0],
                                 uint32_t(index / grid[0] % grid[1]) * sizes.cluster[1],
                                 uint32_t(index / grid[0] / grid[1]) * sizes.cluster[2]};
}

void Launch::finish(const Profile &counts) {
  std::lock_guard<std::mutex> lock(mutex);
  if (total)
    total->add(counts);
}

void Launch::fail(const Fault &fault) {
  std::lock_guard<std::mutex> lock(mutex);
  if (!firstFault)
    firstFault = fault;
  stopped = true;
}

void Launch::find(const Fault &fault) const {
  if (!options.found)
    throw fault;
  std::lock_guard<std::mutex> lock(mutex);
  options.found(fault);
}

void Launch::locate(Fault &fault, uint32_t pc) const {
  fault.kernel = entry.name;
  fault.pc = pc;
  const ptx::Instruction *instruction = pc < code.instructions.size() ? code.instructions[pc] : nullptr;
  if (!instruction)
    return;
  fault.line = instruction->where.line;
  fault.instruction = textOf(*instruction);
  fault.source = sourceOf(*code.tree, *instruction);
}
