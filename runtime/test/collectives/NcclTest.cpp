// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives of devices through the stand-in for NCCL: the values of host memory bit for bit, graphs, what
// is given back.

#include "NcclSupport.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

using namespace fp8rt_test;

namespace {

constexpr uint64_t kWidths[] = {1, 1, 4, 8, 2, 2, 4, 8};

/// Numbers of a type, of very different size, some of them zero of either sign, denormal or infinite.
std::vector<char> numbersOf(uint32_t type, uint64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<char> data(count * kWidths[type]);
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t bits = random();
    double number = std::ldexp(static_cast<double>(static_cast<int64_t>(bits % 2001) - 1000),
                               static_cast<int>(bits >> 16 & 31) - 16);
    bool isTiny = (bits >> 32 & 7) == 0;
    auto single = static_cast<float>(number);
    if (type == FP8RT_F64)
      std::memcpy(&bits, &number, 8);
    if (type == FP8RT_F32 || type == FP8RT_BF16)
      std::memcpy(&bits, &single, 4);
    if (type == FP8RT_BF16)
      bits = bits >> 16 & 0xffff;
    if (type == FP8RT_F16)
      bits &= 0xbfff; // below 2
    if (isTiny)       // the sign and the lowest bits: a denormal, or zero
      bits &= (uint64_t(1) << (8 * kWidths[type] - 1)) | (bits >> 40 & 1 ? 0x1f : 0);
    std::memcpy(&data[i * kWidths[type]], &bits, kWidths[type]);
  }
  return data;
}

/// Performs a collective on data that depends on `seed` and the rank, in memory from `allocate`; returns a
/// line with a hash of what the rank received.
using Allocate = std::function<char *(uint64_t bytes)>;
std::string perform(fp8rt_communicator &communicator, const Allocate &allocate, Ask ask, uint64_t seed,
                    bool inPlace = false) {
  std::vector<char> data = numbersOf(ask.type, ask.count, 100 * seed + communicator.rank);
  uint64_t received = data.size() * (ask.kind == FP8RT_ALL_GATHER ? communicator.size : 1);
  char *send = allocate(data.size()), *receive = inPlace ? send : allocate(received);
  std::fill_n(receive, received, 0);
  std::copy(data.begin(), data.end(), send);
  ask.send = send;
  ask.receive = receive;
  std::string error = perform(communicator, ask);
  if (!error.empty())
    return error + "\n";
  uint64_t hash = 14695981039346656037u;
  for (uint64_t i = 0; i < received; ++i)
    hash = (hash ^ static_cast<unsigned char>(receive[i])) * 1099511628211u;
  char line[96];
  std::snprintf(line, sizeof(line), "kind %u reduction %u type %u count %llu: %016llx\n", ask.kind,
                ask.reduction, ask.type, static_cast<unsigned long long>(ask.count),
                static_cast<unsigned long long>(hash));
  return line;
}

/// Every kind of collective, type and reduction, with counts around the limits.
std::string performAll(fp8rt_communicator &communicator, const Allocate &allocate) {
  std::string lines;
  uint64_t seed = 1;
  auto add = [&](Ask ask, bool inPlace = false) {
    lines += perform(communicator, allocate, ask, seed++, inPlace);
  };
  auto make = [](uint32_t kind, uint32_t reduction, uint32_t type, uint64_t count) {
    Ask ask;
    ask.kind = kind;
    ask.reduction = reduction;
    ask.type = type;
    ask.count = count;
    return ask;
  };
  for (uint32_t type = FP8RT_INT8; type <= FP8RT_F64; ++type)
    for (uint32_t reduction = FP8RT_SUM; reduction <= FP8RT_PRODUCT; ++reduction)
      if (reduction != FP8RT_MEAN || type >= FP8RT_F16)
        for (uint64_t count : {12, 612})
          add(make(FP8RT_ALL_REDUCE, reduction, type, count), /*inPlace=*/count == 12);
  for (uint64_t count :
       {(96 << 10) / 4, (96 << 10) / 4 + 1, 30000, 30001, 30002, 30003}) // large ones, with a rest
    add(make(FP8RT_ALL_REDUCE, FP8RT_MEAN, FP8RT_F32, count), /*inPlace=*/count % 2);
  for (uint64_t count : {0, 12, 50000 * 12}) // more than a box of the stand-in holds
    for (uint32_t type : {FP8RT_BYTE, FP8RT_F32}) {
      if (count > 12 && type == FP8RT_F32)
        continue;
      for (uint32_t kind : {FP8RT_ALL_GATHER, FP8RT_ALL_TO_ALL, FP8RT_BROADCAST, FP8RT_SHIFT}) {
        Ask ask = make(kind, 0, type, count);
        ask.root = kind == FP8RT_BROADCAST ? static_cast<int32_t>(communicator.size) - 1
                   : kind == FP8RT_SHIFT   ? -1
                                           : 0;
        add(ask, kind == FP8RT_BROADCAST);
      }
      if (type == FP8RT_F32)
        add(make(FP8RT_REDUCE_SCATTER, FP8RT_SUM, type, count));
    }
  Ask byTwo = make(FP8RT_SHIFT, 0, FP8RT_F32, 5);
  byTwo.root = 2;
  add(byTwo);
  return lines;
}

std::string onHost(fp8rt_communicator &communicator,
                   std::string (*body)(fp8rt_communicator &, const Allocate &)) {
  std::vector<std::unique_ptr<char[]>> memory;
  return body(communicator,
              [&](uint64_t bytes) { return memory.emplace_back(std::make_unique<char[]>(bytes + 1)).get(); });
}

std::string onDevice(fp8rt_communicator &communicator,
                     std::string (*body)(fp8rt_communicator &, const Allocate &)) {
  RankOnDevice device(communicator);
  if (!device.error.empty())
    return device.error;
  return body(communicator, [&](uint64_t bytes) { return device.allocate(bytes); });
}

/// The lines of all ranks are those of ranks in host memory.
void expectSame(uint32_t ranks, std::string (*body)(fp8rt_communicator &, const Allocate &)) {
  auto host = runThreads(ranks, [&](fp8rt_communicator &communicator) { return onHost(communicator, body); });
  auto device = runThreads(
      ranks, [&](fp8rt_communicator &communicator) { return onDevice(communicator, body); }, 20,
      kThroughNccl);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    EXPECT_EQ(device[rank], host[rank]) << "rank " << rank;
    EXPECT_NE(host[rank].find("kind 0 "), std::string::npos);
    EXPECT_EQ(host[rank].find("rank"), std::string::npos) << host[rank]; // errors name ranks
  }
}

class NcclRanks : public ::testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Ranks, NcclRanks, ::testing::Values(1, 2, 3, 4));

TEST_P(NcclRanks, EveryCollectiveHasTheBitsOfHostMemory) { expectSame(GetParam(), performAll); }

TEST(Nccl, GroupsAreAlongAxesOfTheGrid) {
  expectSame(6, [](fp8rt_communicator &communicator, const Allocate &allocate) {
    std::string lines;
    uint64_t seed = 1;
    for (int round = 0; round < 2; ++round)
      for (uint32_t axes : {0u, 1u, 2u, 3u}) {
        Ask ask;
        ask.grid = {2, 0};
        ask.axes = axes;
        ask.count = 12;
        lines += perform(communicator, allocate, ask, seed++);
        ask.kind = FP8RT_SHIFT;
        ask.root = 1;
        lines += perform(communicator, allocate, ask, seed++);
      }
    return lines;
  });
}

TEST(Nccl, ANaNIsTheMaximumAndTheMinimum) {
  auto texts = runThreads(
      2,
      [](fp8rt_communicator &communicator) {
        RankOnDevice device(communicator);
        std::string text = device.error;
        for (uint32_t reduction : {FP8RT_MAX, FP8RT_MIN})
          for (uint32_t first : {0u, 1u}) {
            auto *data = reinterpret_cast<float *>(device.allocate(4));
            *data = communicator.rank == first ? std::nanf("") : 1;
            Ask ask;
            ask.reduction = reduction;
            ask.count = 1;
            ask.send = ask.receive = data;
            text += perform(communicator, ask) + (std::isnan(*data) ? "NaN " : "number ");
          }
        return text;
      },
      20, kThroughNccl);
  EXPECT_EQ(texts, std::vector<std::string>(2, "NaN NaN NaN NaN "));
}

/// Four steps: one that is enqueued, one that is captured, two that replay the graph.
std::string fourSteps(fp8rt_communicator &communicator) {
  RankOnDevice device(communicator);
  std::string text;
  for (int step = 0; step < 4; ++step)
    text += device.step(communicator.rank == 0 ? 1.0f : 10.0f, static_cast<float>(step));
  return text;
}

const char *const kFourSums = "11 22 0 11 22 11 11 22 22 11 22 33 ";

TEST(Nccl, StepsWithCollectivesAreReplayedAsGraphs) {
  std::string error = standin("standinLive") ? "something is left of a test before" : "";
  EXPECT_EQ(error, "");
  EXPECT_EQ(runThreads(2, fourSteps, 20, kThroughNccl), std::vector<std::string>(2, kFourSums));
  // The work of each rank's stream while it was captured, once; nothing else is left.
  EXPECT_EQ(standin("standinCaptured"), 2);
  standin("standinForgetGraphs");
  EXPECT_EQ(standin("standinLive"), 0);
}

/// The nodes of a captured graph that set memory, in their order, each with the number of nodes that come
/// before.
std::string fillsIn(void *graph) {
  constexpr int kFill = 2; // CU_GRAPH_NODE_TYPE_MEMSET
  auto list = [](const char *function, void *of) {
    size_t count = 0;
    drive(function, of, static_cast<void **>(nullptr), &count);
    std::vector<void *> nodes(count);
    drive(function, of, nodes.data(), &count);
    return nodes;
  };
  std::string text;
  for (void *node : list("cuGraphGetNodes", graph)) {
    int type = 0;
    drive("cuGraphNodeGetType", node, &type);
    if (type != kFill)
      continue;
    std::vector<void *> before = list("cuGraphNodeGetDependencies", node);
    for (size_t i = 0; i < before.size(); ++i)
      for (void *earlier : list("cuGraphNodeGetDependencies", before[i]))
        if (std::find(before.begin(), before.end(), earlier) == before.end())
          before.push_back(earlier);
    text +=
        std::to_string(before.size()) + " of " + std::to_string(list("cuGraphGetNodes", graph).size()) + " ";
  }
  return text;
}

/// Captures fill, start, fill, wait, fill: the first fill is before the collective, the second beside it.
std::string captureOverlap(fp8rt_communicator &communicator) {
  RankOnDevice device(communicator);
  Ask ask;
  ask.count = 4;
  ask.send = ask.receive = device.allocate(16);
  auto *beside = reinterpret_cast<unsigned long long *>(device.allocate(16));
  fp8rt_group group{ask.grid.data(), 1, 1};
  fp8rt_collective sum{ask.kind, ask.reduction, ask.type, 0, &group, ask.send, ask.receive, ask.count, "x"};
  void *stream = nullptr, *graph = nullptr;
  drive("cuStreamCreate", &stream, 1u);
  auto fill = [&](const void *memory) {
    drive("cuMemsetD8Async", reinterpret_cast<unsigned long long>(memory), static_cast<unsigned char>(0),
          size_t(16), stream);
  };
  int code = 0;
  auto enqueue = [&] {
    uint64_t ticket = 0;
    fill(ask.send);
    code |= communicator.start(communicator.context, &sum, stream, &ticket);
    if (code)
      std::fprintf(stderr, "%s\n", communicator.error(communicator.context));
    fill(beside);
    code |= communicator.wait(communicator.context, ticket, stream);
    fill(ask.receive);
  };
  enqueue(); // communicators of groups and memory are made
  drive("cuStreamBeginCapture_v2", stream, 1);
  enqueue();
  drive("cuStreamEndCapture", stream, &graph);
  std::string text = code ? communicator.error(communicator.context) : fillsIn(graph);
  drive("cuGraphDestroy", graph);
  drive("cuStreamDestroy_v2", stream);
  return text;
}

TEST(Nccl, TheStepGoesOnBesideACollective) {
  // Notes of arrival and of completion, a copy to the host, a transfer, a copy back and a sum; and three
  // fills.
  auto texts = runThreads(2, captureOverlap, 20, kThroughNccl);
  EXPECT_EQ(texts, std::vector<std::string>(2, "0 of 11 1 of 11 10 of 11 "));
  standin("standinForgetGraphs");
}

TEST(Nccl, RanksAreProcesses) {
  EXPECT_EQ(runProcesses(2, fourSteps, 20, nullptr, kThroughNccl), std::vector<std::string>(2, kFourSums));
}

TEST(Nccl, RanksMeetThroughTcp) {
  setenv("FP8RT_TEST_RANKS", "tcp", 1);
  EXPECT_EQ(runProcesses(2, fourSteps, 20, nullptr, kThroughNccl), std::vector<std::string>(2, kFourSums));
  unsetenv("FP8RT_TEST_RANKS");
}

TEST(Nccl, SeveralSessionsShareACommunicator) {
  auto body = [](fp8rt_communicator &communicator) {
    RankOnDevice first(communicator), second(communicator);
    std::string text;
    for (int step = 0; step < 3; ++step)
      text += first.step(1, 1) + second.step(2, 2);
    return text;
  };
  EXPECT_EQ(runThreads(2, body, 20, kThroughNccl),
            std::vector<std::string>(2, "2 4 2 4 8 8 2 4 2 4 8 8 2 4 2 4 8 8 "));
}

TEST(Nccl, ItIsForDevices) {
  auto texts = runThreads(
      1,
      [](fp8rt_communicator &communicator) {
        Library library = loadFixture();
        Session session = newSession(library, "main", newState(library));
        EXPECT_FP8RT_ERROR(
            fp8rt_session_set_communicator(session.get(), &communicator), FP8RT_UNSUPPORTED,
            "NCCL moves memory of GPUs: for a program on the CPU, use a communicator in host memory");
        return perform(communicator, Ask());
      },
      20, kThroughNccl);
  EXPECT_EQ(texts[0], "the communicator has no device yet: fp8rt_session_set_communicator gives it one");
}

TEST(Nccl, ItIsOnTopOfHostMemory) {
  auto texts = runThreads(
      1,
      [](fp8rt_communicator &communicator) {
        fp8rt_communicator *other = nullptr;
        return std::string(fp8rt_communicator_create_nccl(&communicator, &other) ? fp8rt_last_error() : "");
      },
      20, kThroughNccl);
  EXPECT_EQ(texts[0], "the communicator beside NCCL is not in host memory");
}

} // namespace

int main(int argc, char **argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
