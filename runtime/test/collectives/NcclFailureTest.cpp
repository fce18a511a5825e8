// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// No device waits for ever: ranks that are killed, stopped, late, failed or elsewhere are named on every
// rank, whether a step is enqueued or replayed; and what NCCL refuses is told to all.

#include "NcclSupport.h"
#include "cuda/RecordingDriver.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

using namespace fp8rt_test;

namespace {

using Texts = std::vector<std::string>;
constexpr const char *kSum = "all_reduce sum of 3 f32 'sum'";
constexpr const char *kOfStep = "entry 'ranks' failed: ";

/// Steps until one fails, which it must within 10 s of `misbehave`, called on rank 1 before step number `at`;
/// step 0 is enqueued, 1 is captured, later ones are replayed.
RankBody stepping(int steps, int at, void (*misbehave)(fp8rt_communicator &)) {
  return [=](fp8rt_communicator &communicator) {
    RankOnDevice device(communicator);
    for (int step = 0; step < steps && device.error.empty(); ++step) {
      if (step == at && communicator.rank == 1)
        misbehave(communicator);
      device.step(1);
    }
    return device.error;
  };
}

/// Runs as processes; `wanted` is the end of the others' errors.
void expectOnOthers(const RankBody &body, double deadline, const std::string &wanted,
                    const std::function<void(const std::vector<pid_t> &)> &onStart = nullptr,
                    uint32_t ranks = 3) {
  auto start = std::chrono::steady_clock::now();
  Texts texts = runProcesses(ranks, body, deadline, onStart, kThroughNccl);
  for (uint32_t rank = 0; rank < ranks; ++rank)
    if (rank != 1) {
      size_t begin = texts[rank].rfind(wanted); // of a step, or of the connection before the first
      EXPECT_TRUE(begin == 0 || begin == std::string(kOfStep).size())
          << "rank " << rank << ": " << texts[rank];
      EXPECT_EQ(texts[rank].substr(std::min(begin, texts[rank].size())), wanted) << "rank " << rank;
    }
  std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  EXPECT_LT(taken.count(), 15);
}

class NcclFailure : public ::testing::TestWithParam<int> {}; // the step
INSTANTIATE_TEST_SUITE_P(Steps, NcclFailure, ::testing::Values(0, 1, 3));

TEST_P(NcclFailure, AKilledRankIsNamedAtOnce) {
  expectOnOthers(stepping(6, GetParam(), [](fp8rt_communicator &) { raise(SIGKILL); }), 60,
                 std::string("rank 1 did not arrive at ") + kSum + ": the process is gone");
}

TEST_P(NcclFailure, AStoppedRankIsNamedAfterTheDeadline) {
  auto goOn = [](const std::vector<pid_t> &processes) {
    std::this_thread::sleep_for(std::chrono::seconds(4));
    kill(processes[1], SIGCONT);
  };
  std::string wanted = std::string("rank 1 did not arrive at ") + kSum + " within 0.6 s";
  if (GetParam() < 2) { // the ranks of steps that are not replayed meet in host memory
    Texts texts = runProcesses(3, stepping(6, GetParam(), [](fp8rt_communicator &) { raise(SIGSTOP); }), 0.6,
                               goOn, kThroughNccl);
    for (const std::string &text : texts)
      EXPECT_EQ(text.find(kOfStep + wanted), 0u) << text;
    return;
  }
  expectOnOthers(stepping(6, GetParam(), [](fp8rt_communicator &) { raise(SIGSTOP); }), 0.6, wanted, goOn);
}

TEST_P(NcclFailure, ARankThatFailsSaysWhy) {
  auto fails = [](fp8rt_communicator &communicator) {
    fp8rt_communicator_fail(&communicator, "no more data");
  };
  expectOnOthers(stepping(6, GetParam(), fails), 60, "rank 1 failed: no more data");
}

TEST(NcclFailure, ARankThatHasEndedIsNamed) {
  RankBody body = [](fp8rt_communicator &communicator) {
    RankOnDevice device(communicator);
    for (int step = 0; step < (communicator.rank == 1 ? 3 : 4) && device.error.empty(); ++step)
      device.step(1);
    return device.error;
  };
  expectOnOthers(body, 60, std::string("rank 1 did not arrive at ") + kSum + ": the run there has ended");
}

TEST(NcclFailure, ARankThatIsKilledWithThoseThatMeetThroughTcp) {
  setenv("FP8RT_TEST_RANKS", "tcp", 1);
  expectOnOthers(stepping(6, 3, [](fp8rt_communicator &) { raise(SIGKILL); }), 60,
                 std::string("rank 1 did not arrive at ") + kSum + ": the process is gone");
  expectOnOthers(stepping(6, 3,
                          [](fp8rt_communicator &communicator) {
                            fp8rt_communicator_fail(&communicator, "no more data");
                          }),
                 60, "rank 1 failed: no more data");
  unsetenv("FP8RT_TEST_RANKS");
}

TEST(NcclFailure, DifferentCollectivesAreNamed) {
  for (bool areKnown : {false, true}) {
    Texts texts = runProcesses(
        2,
        [&](fp8rt_communicator &communicator) {
          RankOnDevice device(communicator);
          std::string error = device.error;
          Ask ask;
          ask.send = ask.receive = device.allocate(80);
          auto sumOf = [&](uint64_t count, const char *name) {
            ask.count = count;
            ask.name = name;
            return error.empty() ? perform(communicator, ask) : error;
          };
          if (areKnown)
            error = sumOf(10, "loss") + sumOf(11, "grads");
          return communicator.rank == 0 ? sumOf(10, "loss") : sumOf(11, "grads");
        },
        1, nullptr, kThroughNccl);
    EXPECT_EQ(
        texts,
        Texts(2, "the ranks are in different collectives: rank 0 in all_reduce sum of 10 f32 'loss', rank 1 "
                 "in all_reduce sum of 11 f32 'grads'"))
        << areKnown;
  }
}

/// Runs steps of two ranks with the stand-in's fault.
Texts stepsWith(const char *fault, double deadline, int steps = 4) {
  setenv("FP8RT_STANDIN_NCCL", fault, 1);
  auto nothing = [](fp8rt_communicator &) {};
  Texts texts = runProcesses(2, stepping(steps, -1, nothing), deadline, nullptr, kThroughNccl);
  unsetenv("FP8RT_STANDIN_NCCL");
  return texts;
}

TEST(NcclFailure, ALostMessageEndsAtTheDeadline) {
  // Of a step that is replayed; else the one that lost it may be the first to wait too long, in its next
  // step.
  EXPECT_EQ(stepsWith("drop 4 1", 0.6)[0],
            std::string(kOfStep) + kSum +
                " was not complete within 0.6 s, though all of its ranks had arrived");
  EXPECT_NE(stepsWith("drop 1 1", 0.6)[0].find(" within 0.6 s"), std::string::npos);
  EXPECT_NE(stepsWith("drop 2 0", 0.6)[1].find(" within 0.6 s"), std::string::npos);
}

TEST(NcclFailure, ADelayWithinTheDeadlineIsNone) {
  EXPECT_EQ(stepsWith("delay 1 1 300", 10), Texts(2, ""));
  EXPECT_EQ(stepsWith("delay 3 0 300", 10), Texts(2, ""));
}

TEST(NcclFailure, ADelayBeyondTheDeadlineIsAFailure) {
  for (const std::string &text : stepsWith("delay 3 1 4000", 0.5))
    EXPECT_EQ(text, std::string(kOfStep) + kSum +
                        " was not complete within 0.5 s, though all of its ranks had arrived");
}

TEST(NcclFailure, WhatNcclFindsLaterIsTold) {
  for (const char *fault :
       {"error 1 1", "error 3 1"}) // of a step that is enqueued, and of one that is replayed
    EXPECT_EQ(stepsWith(fault, 60)[0],
              std::string(kOfStep) +
                  "rank 1 failed: NCCL: remote process exited or there was a network error")
        << fault;
}

struct Call {
  const char *fault, *own, *others;
};

TEST(NcclFailure, WhatNcclRefusesIsTold) {
  const std::string error = ": unhandled system error";
  for (const char *function : {"ncclCommInitRankConfig", "ncclCommGetAsyncError"}) {
    Texts texts = stepsWith((std::string("fail ") + function + " 1 1").c_str(), 60);
    EXPECT_EQ(texts[1], function + error);
    EXPECT_NE(texts[0].find(std::string("rank 1 failed: ") + function + error), std::string::npos)
        << texts[0];
  }
  Texts texts = stepsWith("fail ncclAllGather 1 1", 60);
  EXPECT_EQ(texts[1], kOfStep + ("ncclAllGather" + error));
  EXPECT_EQ(texts[0], kOfStep + ("rank 1 failed: " + texts[1]));
  texts = stepsWith("fail ncclGroupEnd 2 1", 60); // of the step that is captured
  EXPECT_EQ(texts[1], kOfStep + (kSum + error));
  EXPECT_EQ(texts[0], kOfStep + ("rank 1 failed: " + texts[1]));
  EXPECT_EQ(stepsWith("fail ncclGetUniqueId 1 0", 60),
            (Texts{"ncclGetUniqueId" + error, "rank 0 failed: ncclGetUniqueId" + error}));
}

TEST(NcclFailure, ASplitThatFailsIsTold) {
  setenv("FP8RT_STANDIN_NCCL", "fail ncclCommSplit 1 1", 1);
  Texts texts = runProcesses(
      4,
      [](fp8rt_communicator &communicator) {
        RankOnDevice device(communicator);
        Ask ask;
        ask.grid = {2, 2};
        ask.count = 1;
        ask.send = ask.receive = device.allocate(4);
        std::string error = device.error.empty() ? perform(communicator, ask) : device.error;
        if (!error.empty())
          fp8rt_communicator_fail(&communicator, error.c_str());
        return error;
      },
      60, nullptr, kThroughNccl);
  unsetenv("FP8RT_STANDIN_NCCL");
  EXPECT_EQ(texts[1], "ncclCommSplit: unhandled system error");
  for (uint32_t rank : {0, 2, 3})
    EXPECT_EQ(texts[rank], "rank 1 failed: ncclCommSplit: unhandled system error");
}

TEST(NcclFailure, NoStepComesAfterAFailure) {
  Texts texts = runProcesses(
      2,
      [](fp8rt_communicator &communicator) {
        RankOnDevice first(communicator), second(communicator);
        for (int step = 0; step < 3; ++step) {
          first.step(1);
          second.step(1);
        }
        if (communicator.rank == 1)
          raise(SIGKILL);
        first.step(1);
        return second.step(1); // whose graph refers to a communicator that has ended
      },
      60, nullptr, kThroughNccl);
  EXPECT_EQ(texts[0], std::string(kOfStep) + "rank 1 did not arrive at " + kSum + ": the process is gone");
}

/// One rank on the recording driver: its calls fail one after the other.
TEST(NcclFailure, NothingIsLeftWhateverCallOfTheDriverFails) {
  setenv("FP8RT_CUDA_DRIVER", RECORDING_DRIVER, 1);
  auto failAt = reinterpret_cast<decltype(&recordingFailAt)>(findIn(RECORDING_DRIVER, "recordingFailAt"));
  auto live = reinterpret_cast<decltype(&recordingLive)>(findIn(RECORDING_DRIVER, "recordingLive"));
  auto failed = reinterpret_cast<decltype(&recordingFailed)>(findIn(RECORDING_DRIVER, "recordingFailed"));
  setenv("FP8EMU_CHIP", "sm_89", 1); // before the driver is initialised
  int64_t number = 0, lost = 0;
  do {
    constexpr int kInvalidValue = 1;
    std::string text, name;
    runThreads(
        1,
        [&](fp8rt_communicator &communicator) {
          RankOnDevice device(communicator, "cuda:0", [&] { failAt(++number, kInvalidValue); });
          for (int step = 0; step < 4; ++step)
            text = device.step(1);
          name = failed();
          return text;
        },
        20, kThroughNccl);
    std::string end = failed(); // it may have been one that gives back
    failAt(0, 0);
    // A context that cannot be used when all is done takes with it what it had.
    lost = end == "cuCtxPushCurrent_v2" && name.empty() ? live() : lost;
    EXPECT_EQ(live(), lost) << end;
    standin("standinForgetGraphs");
    EXPECT_EQ(standin("standinLive"), 0) << end;
    if (!name.empty()) {
      EXPECT_NE(text, "4 8 0 ") << name;
    }
    if (end.empty())
      break;
  } while (number < 1000);
  EXPECT_GT(number, 50);
  EXPECT_LT(number, 1000);
  unsetenv("FP8RT_CUDA_DRIVER");
}

} // namespace
