// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Performs every kind of collective on this rank and prints a hash of each result: the bits must be the same
// through every communicator.
//
//     fp8rt-rank-trace local N [FAULT]      N processes
//     mpirun -n N fp8rt-rank-trace mpi [FAULT]      writes to trace.RANK
//
// FAULT: sleep, stop, fail, fail-first or other: what rank 1 does before the last collective. With
// fail-first, the other ranks come there later.

#include "RankSupport.h"

#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>
#include <random>
#include <unistd.h>

using namespace fp8rt_test;

namespace {

constexpr double kDeadline = 2;

uint64_t hashOf(const std::vector<char> &data) {
  uint64_t hash = 14695981039346656037u;
  for (char byte : data)
    hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211u;
  return hash;
}

/// Random floats of all sizes, or bytes for other types.
std::vector<char> dataFor(uint32_t type, uint64_t bytes, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<char> data(bytes);
  for (uint64_t i = 0; i + 4 <= bytes && type == FP8RT_F32; i += 4) {
    float number = std::ldexp(static_cast<float>(static_cast<int64_t>(random() % 2001) - 1000),
                              static_cast<int>(random() % 40) - 20);
    std::memcpy(&data[i], &number, 4);
  }
  for (uint64_t i = 0; i < bytes && type != FP8RT_F32; ++i)
    data[i] = static_cast<char>(random() & (i % 2 && type != FP8RT_BYTE ? 0x3f : 0xff)); // halves without NaN
  return data;
}

struct Trace {
  fp8rt_communicator &communicator;
  std::string lines;
  uint64_t seed = 1;

  /// Returns false after a failure.
  bool add(uint32_t kind, uint32_t reduction, uint32_t type, uint64_t count, std::vector<int64_t> grid,
           uint32_t axes, int32_t root = 0) {
    const uint64_t widths[] = {1, 1, 4, 8, 2, 2, 4, 8};
    std::vector<char> send = dataFor(type, count * widths[type], 1000 * seed++ + communicator.rank);
    uint64_t received = kind == FP8RT_ALL_GATHER ? send.size() * communicator.size : send.size();
    std::vector<char> receive(received);
    Ask ask;
    ask.kind = kind;
    ask.reduction = reduction;
    ask.type = type;
    ask.count = count;
    ask.grid = std::move(grid);
    ask.axes = axes;
    ask.root = root;
    ask.send = send.data();
    ask.receive = receive.data();
    std::string error = perform(communicator, ask);
    char line[64];
    std::snprintf(line, sizeof(line), "%u %u %u %llu: %016llx\n", kind, reduction, type,
                  static_cast<unsigned long long>(count), static_cast<unsigned long long>(hashOf(receive)));
    lines += "rank " + std::to_string(communicator.rank) + ": " + (error.empty() ? line : error + "\n");
    return error.empty();
  }
};

/// Sums of several sizes, all started before the first is waited for. Returns a hash of the results.
std::string addOverlapped(fp8rt_communicator &communicator) {
  constexpr uint64_t kCollectives = 12;
  std::vector<std::vector<char>> data;
  std::vector<Ask> asks(kCollectives);
  fp8rt_group groups[kCollectives];
  uint64_t tickets[kCollectives];
  for (uint64_t i = 0; i < kCollectives; ++i) {
    asks[i].count = i % 4 == 3 ? 300000 : 10 * (i + 1);
    data.push_back(dataFor(FP8RT_F32, 4 * asks[i].count, 50 * i + communicator.rank));
    asks[i].send = asks[i].receive = data[i].data();
  }
  for (uint64_t i = 0; i < kCollectives; ++i)
    tickets[i] = begin(communicator, asks[i], groups[i]);
  std::string line = "rank " + std::to_string(communicator.rank) + " overlapped:";
  for (uint64_t i = 0; i < kCollectives; ++i) {
    if (communicator.wait(communicator.context, tickets[i], nullptr))
      return communicator.error(communicator.context);
    line += " " + std::to_string(hashOf(data[i]) % 100000);
  }
  return line + "\n";
}

void misbehave(fp8rt_communicator &communicator, const std::string &fault) {
  if (fault == "sleep")
    sleep(4);
  if (fault == "stop")
    raise(SIGSTOP);
  if (fault == "fail" || fault == "fail-first")
    fp8rt_communicator_fail(&communicator, "of its own will");
}

std::string traceRank(fp8rt_communicator &communicator, const std::string &fault) {
  uint64_t size = communicator.size;
  Trace trace{communicator, {}};
  for (uint64_t count : {uint64_t(0), uint64_t(12), uint64_t(12000), uint64_t(120000), uint64_t(1200000)}) {
    for (uint32_t reduction : {FP8RT_SUM, FP8RT_MAX, FP8RT_MIN, FP8RT_MEAN, FP8RT_PRODUCT})
      trace.add(FP8RT_ALL_REDUCE, reduction, FP8RT_F32, count, {0}, 1);
    for (uint32_t type : {FP8RT_INT8, FP8RT_INT32, FP8RT_INT64, FP8RT_F16, FP8RT_BF16})
      trace.add(FP8RT_ALL_REDUCE, FP8RT_SUM, type, count, {0}, 1);
    trace.add(FP8RT_ALL_GATHER, 0, FP8RT_BYTE, count, {0}, 1);
    trace.add(FP8RT_REDUCE_SCATTER, FP8RT_SUM, FP8RT_F32, count, {0}, 1);
    trace.add(FP8RT_BROADCAST, 0, FP8RT_F32, count, {0}, 1, static_cast<int32_t>(size - 1));
    trace.add(FP8RT_SHIFT, 0, FP8RT_F32, count, {0}, 1, 1);
    trace.add(FP8RT_SHIFT, 0, FP8RT_BF16, count, {0}, 1, -1);
    trace.add(FP8RT_ALL_TO_ALL, 0, FP8RT_BYTE, count, {0}, 1);
    if (size % 2 == 0)
      for (uint32_t axes : {1u, 2u})
        trace.add(FP8RT_ALL_REDUCE, FP8RT_SUM, FP8RT_F32, count, {2, 0}, axes);
  }
  trace.lines += addOverlapped(communicator);
  if (communicator.rank == 1 % size)
    misbehave(communicator, fault);
  else if (fault == "fail-first")
    usleep(300000);
  trace.add(FP8RT_ALL_REDUCE, FP8RT_SUM, FP8RT_F32, communicator.rank == 1 && fault == "other" ? 6 : 12, {0},
            1);
  return trace.lines;
}

int runMpi(const std::string &fault) {
  fp8rt_communicator *created = nullptr;
  if (fp8rt_communicator_create_mpi(kDeadline, &created)) {
    std::fprintf(stderr, "%s\n", fp8rt_last_error());
    return 1;
  }
  Communicator communicator(created);
  // mpirun mixes what ranks print.
  std::ofstream("trace." + std::to_string(communicator->rank)) << traceRank(*communicator, fault);
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty())
    return 2;
  if (arguments[0] == "mpi")
    return runMpi(arguments.size() > 1 ? arguments[1] : "");
  std::string fault = arguments.size() > 2 ? arguments[2] : "";
  auto body = [&](fp8rt_communicator &communicator) { return traceRank(communicator, fault); };
  for (const std::string &lines :
       runProcesses(static_cast<uint32_t>(std::stoul(arguments[1])), body, kDeadline))
    std::fputs(lines.c_str(), stdout);
  return 0;
}
