// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A process with more users of the GPU than one thread of this runtime: streams of the caller, other threads,
// forks, and work of others that fails.

#include "RecordingFixture.h"

#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace fp8rt_test;

namespace {

constexpr int kNotInitialized = 3, kInvalidHandle = 400, kIllegalAddress = 700;

class DeviceProcessTest : public WithRecordingDriver {
protected:
  void SetUp() override {
    WithRecordingDriver::SetUp();
    ASSERT_FP8RT(open(gpu));
    state = newStateOn(gpu);
    session = newSessionOn(gpu, "main", state);
    given.setIn(session);
  }
  void TearDown() override {
    session.reset();
    state.reset();
    gpu.reset();
    WithRecordingDriver::TearDown();
  }

  Prepared prepare(const char *entry, uint32_t count) {
    return make<Prepared>([&](auto *out) {
      return fp8rt_prepare_on(gpu.get(), entry, nullptr, nullptr, count, nullptr, count, out);
    });
  }

  /// Calls 'main' on the buffers of the session; `function` takes what fp8rt_prepared_call does.
  template <typename Call>
  fp8rt_status call(const Prepared &prepared, Call function) {
    auto argument = [&](uint32_t i) { return fp8rt_session_argument_in_place(session.get(), i)->data; };
    auto result = [&](uint32_t i) { return fp8rt_session_result_in_place(session.get(), i)->data; };
    void *arguments[] = {argument(0), argument(1), argument(2), argument(3)};
    void *results[] = {nullptr, result(1), result(2), nullptr};
    return function(prepared.get(), arguments, results);
  }
  static fp8rt_status enqueue(fp8rt_prepared *prepared, void *const *arguments, void *const *results) {
    return fp8rt_prepared_enqueue(prepared, arguments, results, /*stream=*/nullptr);
  }

  /// Whether memory that was released is waited for before the next session uses it.
  bool waitsBeforeReuse() {
    failAt(0, 0); // forgets what was reached
    newSessionOn(gpu, "main", state);
    EXPECT_FALSE(reached("cuMemAlloc_v2")) << "released memory is used again";
    return reached("cuCtxSynchronize");
  }

  GPU gpu;
  State state;
  Session session;
  MainArguments given;
};

/// The workspace of a prepared entry point that is destroyed while its work runs in a stream of the caller.
TEST_F(DeviceProcessTest, MemoryThatIsInUseIsWaitedFor) {
  newSessionOn(gpu, "main", state).reset(); // which leaves what the next needs
  Prepared waited = prepare("main", 4);
  ASSERT_FP8RT(call(waited, fp8rt_prepared_call));
  waited.reset();
  EXPECT_FALSE(waitsBeforeReuse()) << "the work was done";
  Prepared enqueued = prepare("main", 4);
  ASSERT_FP8RT(call(enqueued, enqueue));
  enqueued.reset();
  EXPECT_TRUE(waitsBeforeReuse());
  EXPECT_FALSE(waitsBeforeReuse()) << "once is enough";
}

/// A stream of the caller may read memory as soon as a function that wrote it has returned.
TEST_F(DeviceProcessTest, ZerosAreThereAtOnce) {
  Session zeros = newSessionOn(gpu, "main", state);
  failAt(0, 0);
  ASSERT_FP8RT(fp8rt_session_zero_missing(zeros.get()));
  EXPECT_TRUE(reached("cuMemsetD8Async"));
  EXPECT_TRUE(reached("cuStreamSynchronize"));
}

TEST_F(DeviceProcessTest, PreparedCallsWaitForEachKernelOnRequest) {
  Literal<float> x(kF32, {6}, {1, 0, 0, 0, 0, 0});
  Session holder = newSessionOn(gpu, "faulting", State());
  ASSERT_FP8RT(fp8rt_session_set_argument(holder.get(), 0, &x.view));
  setenv("FP8RT_SYNC", "1", /*overwrite=*/1);
  Prepared faulting = prepare("faulting", 1);
  unsetenv("FP8RT_SYNC");
  void *arguments[] = {fp8rt_session_argument_in_place(holder.get(), 0)->data};
  void *results[] = {fp8rt_session_result_in_place(holder.get(), 0)->data};
  EXPECT_FP8RT_ERROR(enqueue(faulting.get(), arguments, results), FP8RT_CALL_FAILED,
                     "entry 'faulting' failed: kernel 'poke' of head failed: ");
}

TEST_F(DeviceProcessTest, WorkOfOthersThatFailsIsNotBlamedOnAStep) {
  failNext("cuLaunchKernelEx", kIllegalAddress);
  EXPECT_FP8RT_ERROR(fp8rt_session_step(session.get()), FP8RT_CALL_FAILED,
                     " cannot be launched: earlier work");
  EXPECT_NE(std::string(fp8rt_last_error()).find(", which is not of this step, failed: "), std::string::npos)
      << fp8rt_last_error();
}

TEST_F(DeviceProcessTest, AStreamOfAnotherDevice) {
  Prepared prepared = prepare("main", 4);
  failNext("cuLaunchKernelEx", kInvalidHandle);
  EXPECT_FP8RT_ERROR(call(prepared, enqueue), FP8RT_CALL_FAILED,
                     "the given stream is none of the primary context of ");
}

/// A fork makes no call of a driver, which might wait for a thread that the fork has not.
TEST_F(DeviceProcessTest, AForkIsToldWhatToDo) {
  pid_t child = fork();
  if (child == 0) {
    failAt(0, 0);
    bool isRefused = fp8rt_session_step(session.get()) == FP8RT_DEVICE;
    std::string error = fp8rt_last_error();
    session.reset();
    state.reset();
    gpu.reset();
    bool isTold = error.find(" was opened before this process was forked: ") != std::string::npos &&
                  error.find("multiprocessing's 'spawn'") != std::string::npos;
    _exit(!isRefused ? 1 : !isTold ? 2 : calls() != 0 ? 3 : 0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  ASSERT_FP8RT(fp8rt_session_step(session.get())); // of the process that opened the device
  failNext("cuInit", kNotInitialized);             // as a driver says that another has opened before a fork
  GPU second;
  EXPECT_FP8RT_ERROR(open(second), FP8RT_DEVICE, "multiprocessing's 'spawn'");
}

/// Two threads, each with handles of its own; then handles that one thread has created and another uses.
TEST(DeviceThreads, EachThreadHasADeviceOfItsOwnOrTakesTurns) {
  Library library = load(DEVICE_FIXTURE);
  auto train = [&](GPU &gpu, Session &session, std::vector<float> &w) {
    gpu = openGPU(testDevice().c_str(), library);
    session = newSessionOn(gpu, "main", newStateOn(gpu));
    MainArguments given;
    given.setIn(session);
    for (int step = 0; step < 20; ++step)
      ASSERT_FP8RT(fp8rt_session_step(session.get()));
    w = values<float>(fp8rt_session_argument(session.get(), 0));
  };
  GPU gpus[2];
  Session sessions[2];
  std::vector<float> w[2];
  std::thread other([&] { train(gpus[1], sessions[1], w[1]); });
  train(gpus[0], sessions[0], w[0]);
  other.join();
  EXPECT_EQ(w[0], w[1]);
  for (Session &session : sessions) // the second was the other thread's
    ASSERT_FP8RT(fp8rt_session_step(session.get()));
  EXPECT_EQ(values<float>(fp8rt_session_argument(sessions[0].get(), 0)),
            values<float>(fp8rt_session_argument(sessions[1].get(), 0)));
  EXPECT_NE(values<float>(fp8rt_session_argument(sessions[0].get(), 0)), w[0]);
}

} // namespace
