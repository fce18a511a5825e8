// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// No rank waits for ever: others that are killed, stopped, slow, failed or elsewhere are named on every rank.

#include "RankSupport.h"

#include <chrono>
#include <csignal>
#include <thread>

using namespace fp8rt_test;

namespace {

/// Sums over all ranks, again and again.
std::string sumRounds(fp8rt_communicator &communicator, int rounds, uint64_t count = 10) {
  std::vector<float> data(count, 1);
  Ask ask;
  ask.count = count;
  ask.send = ask.receive = data.data();
  ask.name = "grads";
  std::string error;
  for (int round = 0; round < rounds && error.empty(); ++round)
    error = perform(communicator, ask);
  return error;
}

void expectPart(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

class RankFailure : public ::testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Sizes, RankFailure, ::testing::Values(10, 400000));

TEST_P(RankFailure, AKilledRankIsNamedAtOnce) {
  auto start = std::chrono::steady_clock::now();
  std::vector<std::string> texts = runProcesses(4, [](fp8rt_communicator &communicator) {
    std::string error = sumRounds(communicator, 3, GetParam());
    if (communicator.rank == 2)
      raise(SIGKILL);
    return error + sumRounds(communicator, 1, GetParam());
  });
  for (uint32_t rank : {0u, 1u, 3u})
    EXPECT_EQ(texts[rank], "rank 2 did not arrive at all_reduce sum of " + std::to_string(GetParam()) +
                               " f32 'grads': the process is gone");
  EXPECT_EQ(texts[2], "signal 9");
  std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  EXPECT_LT(taken.count(), 10) << "far less than the deadline of 20 s";
}

TEST_P(RankFailure, AStoppedRankIsNamedAfterTheDeadline) {
  std::vector<std::string> texts = runProcesses(
      3,
      [](fp8rt_communicator &communicator) {
        std::string error = sumRounds(communicator, 3, GetParam());
        if (communicator.rank == 1)
          raise(SIGSTOP);
        return error + sumRounds(communicator, 1, GetParam());
      },
      /*deadline=*/0.4,
      [](const std::vector<pid_t> &processes) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1500));
        kill(processes[1], SIGCONT);
      });
  for (const std::string &text : texts) { // rank 1 learns it too, when it goes on
    expectPart(text, "rank 1 did not arrive at all_reduce sum of " + std::to_string(GetParam()) +
                         " f32 'grads' within 0.4 s");
    if (!isThroughTcp())
      expectPart(text, " is stopped)");
  }
}

/// As by Ctrl-Z and fg: no rank waits while it is stopped itself.
TEST_P(RankFailure, RanksThatWereAllStoppedGoOn) {
  std::vector<std::string> texts = runProcesses(
      2,
      [](fp8rt_communicator &communicator) {
        std::string error = sumRounds(communicator, 3, GetParam());
        for (int i = 0; i < 100 && communicator.rank == 1; ++i)
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
        return error + sumRounds(communicator, 1, GetParam());
      },
      /*deadline=*/2.5,
      [](const std::vector<pid_t> &processes) {
        std::this_thread::sleep_for(std::chrono::milliseconds(500)); // rank 0 waits for rank 1
        for (pid_t process : processes)
          kill(process, SIGSTOP);
        std::this_thread::sleep_for(std::chrono::seconds(3));
        for (pid_t process : processes)
          kill(process, SIGCONT);
      });
  for (const std::string &text : texts)
    EXPECT_EQ(text, "");
}

TEST(RankFailure, SlowRanksAreNamedTogether) {
  std::vector<std::string> texts = runThreads(
      4,
      [](fp8rt_communicator &communicator) {
        if (communicator.rank % 2)
          std::this_thread::sleep_for(std::chrono::milliseconds(1200));
        return sumRounds(communicator, 1);
      },
      /*deadline=*/0.3);
  for (const std::string &text : texts)
    EXPECT_EQ(text, "ranks 1 and 3 did not arrive at all_reduce sum of 10 f32 'grads' within 0.3 s");
}

/// Rank 2 waits for rank 0, and ranks 1 and 3 for both: only rank 0 is to blame.
TEST(RankFailure, ARankThatWaitsForAnotherIsNotNamed) {
  for (int round = 0; round < 5; ++round) {
    std::vector<std::string> texts = runThreads(
        4,
        [](fp8rt_communicator &communicator) {
          if (communicator.rank == 0)
            std::this_thread::sleep_for(std::chrono::milliseconds(1500));
          float element = 1;
          Ask columns;
          columns.count = 1;
          columns.send = columns.receive = &element;
          columns.grid = {2, 2};
          columns.axes = 1; // ranks 0 and 2, 1 and 3
          columns.name = "columns";
          std::string error = perform(communicator, columns);
          return error.empty() ? sumRounds(communicator, 1) : error;
        },
        /*deadline=*/0.3);
    for (const std::string &text : texts)
      EXPECT_EQ(text.rfind("rank 0 did not arrive at all_reduce sum of ", 0), 0u) << text;
  }
}

TEST(RankFailure, ARankWithinTheDeadlineIsWaitedFor) {
  std::vector<std::string> texts = runThreads(
      2,
      [](fp8rt_communicator &communicator) {
        if (communicator.rank == 1)
          std::this_thread::sleep_for(std::chrono::milliseconds(300));
        return sumRounds(communicator, 1);
      },
      /*deadline=*/10);
  for (const std::string &text : texts)
    EXPECT_EQ(text, "");
}

TEST(RankFailure, ARankThatFailsSaysWhy) {
  std::vector<std::string> texts = runThreads(3, [](fp8rt_communicator &communicator) {
    if (communicator.rank == 1) {
      fp8rt_communicator_fail(&communicator, "in1.safetensors: no such file");
      return std::string();
    }
    return sumRounds(communicator, 1) + "; " + sumRounds(communicator, 1);
  });
  const std::string reason = "rank 1 failed: in1.safetensors: no such file";
  for (uint32_t rank : {0u, 2u})
    EXPECT_EQ(texts[rank], reason + "; " + reason); // and again
}

TEST(RankFailure, ARankThatHasEndedIsNamed) {
  std::vector<std::string> texts = runThreads(2, [](fp8rt_communicator &communicator) {
    return sumRounds(communicator, communicator.rank == 0 ? 2 : 1);
  });
  EXPECT_EQ(texts[0], "rank 1 did not arrive at all_reduce sum of 10 f32 'grads': the run there has ended");
  EXPECT_EQ(texts[1], "");
}

/// A small piece travels with the description of its collective, a large one after it.
TEST(RankFailure, DifferentCollectivesAreNamed) {
  for (auto [first, second] : {std::pair(10, 11), std::pair(10, 20000), std::pair(20000, 10),
                               std::pair(400000, 10), std::pair(20000, 400000)}) {
    uint64_t counts[] = {static_cast<uint64_t>(first), static_cast<uint64_t>(second)};
    std::vector<std::string> texts = runThreads(2, [&](fp8rt_communicator &communicator) {
      Ask ask;
      ask.count = counts[communicator.rank];
      std::vector<float> data(ask.count);
      ask.send = ask.receive = data.data();
      ask.name = communicator.rank == 0 ? "loss" : "grads";
      return perform(communicator, ask);
    });
    for (const std::string &text : texts)
      EXPECT_EQ(text, "the ranks are in different collectives: rank 0 in all_reduce sum of " +
                          std::to_string(first) + " f32 'loss', rank 1 in all_reduce sum of " +
                          std::to_string(second) + " f32 'grads'");
  }
}

TEST(RankFailure, TheParentTellsTheRanks) {
  int file = -1;
  ASSERT_FP8RT(fp8rt_local_memory_create(2, &file));
  fp8rt_communicator *created = nullptr;
  ASSERT_FP8RT(fp8rt_communicator_create_local(file, 0, 20, &created));
  Communicator communicator(created);
  ASSERT_FP8RT(fp8rt_local_memory_fail(file, "rank 1 ended with exit code 2"));
  close(file);
  EXPECT_EQ(sumRounds(*communicator, 1), "rank 1 ended with exit code 2");
}

TEST(RankFailure, ARankIsThereOnce) {
  int file = -1;
  ASSERT_FP8RT(fp8rt_local_memory_create(2, &file));
  fp8rt_communicator *created = nullptr;
  ASSERT_FP8RT(fp8rt_communicator_create_local(file, 0, 20, &created));
  Communicator communicator(created);
  EXPECT_FP8RT_ERROR(fp8rt_communicator_create_local(file, 0, 20, &created), FP8RT_INVALID_ARGUMENT,
                     "rank 0 is there already");
  EXPECT_FP8RT_ERROR(fp8rt_communicator_create_local(file, 2, 20, &created), FP8RT_INVALID_ARGUMENT,
                     "rank 2 of 2 ranks");
  EXPECT_FP8RT_ERROR(fp8rt_communicator_create_local(file, 1, -1, &created), FP8RT_INVALID_ARGUMENT,
                     "a deadline of");
  close(file);
  EXPECT_FP8RT_ERROR(fp8rt_communicator_create_local(0, 1, 20, &created), FP8RT_INVALID_ARGUMENT,
                     "no memory of fp8rt_local_memory_create");
}

} // namespace
