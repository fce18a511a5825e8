// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A driver that fails, on a driver that records what it is asked (RecordingDriver.cpp): each call of a whole
// run in turn. Every failure is one sentence, and nothing is left with the driver.

#include "../../src/cuda/Driver.h"
#include "RecordingFixture.h"

#include <filesystem>

using namespace fp8rt_test;

namespace {

constexpr int kOutOfMemory = 2, kNoDevice = 100, kUnknown = 999;

/// The values that a run reads from the device: after training, after a saved state goes on, of a pair, of a
/// box.
struct Outcome {
  float loss = 0;
  std::vector<float> scale, w, resumed, gradient, box;

  bool operator==(const Outcome &other) const {
    return loss == other.loss && scale == other.scale && w == other.w && resumed == other.resumed &&
           gradient == other.gradient && box == other.box;
  }
};

class DeviceFailureTest : public WithRecordingDriver {
protected:
  fp8rt_status run(Outcome &outcome);
  fp8rt_status train(const GPU &gpu, const State &state, Outcome &outcome);
  fp8rt_status goOn(const GPU &gpu, Outcome &outcome);
  fp8rt_status makeRamps(const GPU &gpu);
  fp8rt_status trainPair(const GPU &gpu, Outcome &outcome);
  fp8rt_status loadBox(Outcome &outcome);
};

#define TRY(call)                                                                                            \
  if (fp8rt_status status = call)                                                                            \
  return status

/// Steps of all three ways, one that is measured, and what is saved.
fp8rt_status DeviceFailureTest::train(const GPU &gpu, const State &state, Outcome &outcome) {
  Session session;
  TRY(create(gpu, "main", state, session));
  MainArguments given;
  TRY(fp8rt_session_set_argument(session.get(), 0, &given.w.view));
  TRY(fp8rt_session_set_argument(session.get(), 2, &given.x.view));
  TRY(fp8rt_session_zero_missing(session.get()));
  for (int step = 0; step < 3; ++step)
    TRY(fp8rt_session_step(session.get()));
  fp8rt_profiler *created = nullptr;
  TRY(fp8rt_profiler_create(library.get(), &created));
  Profiler profiler(created);
  TRY(fp8rt_session_profile(session.get(), created));
  TRY(fp8rt_session_step(session.get()));
  const DLTensor *result = fp8rt_session_result(session.get(), 2);
  if (!result)
    return FP8RT_DEVICE;
  outcome.loss = values<float>(result)[0];
  Tensors saved = newTensors();
  TRY(fp8rt_state_export(state.get(), saved.get()));
  TRY(fp8rt_session_export_carried(session.get(), saved.get()));
  outcome.scale = values<float>(fp8rt_tensors_find(saved.get(), "scale"));
  outcome.w = values<float>(fp8rt_tensors_find(saved.get(), "carry.w"));
  return fp8rt_tensors_write(saved.get(), path("saved").c_str());
}

/// Loads the state that train() has saved and runs a step from it; then a prepared call on the session's
/// buffers.
fp8rt_status DeviceFailureTest::goOn(const GPU &gpu, Outcome &outcome) {
  fp8rt_state *created = nullptr;
  TRY(fp8rt_state_create_on(gpu.get(), &created));
  State state(created);
  Session session;
  TRY(create(gpu, "main", state, session));
  MainArguments given;
  for (auto [index, view] : {std::pair(1u, &given.m.view), std::pair(2u, &given.x.view)})
    TRY(fp8rt_session_set_argument(session.get(), index, view));
  Tensors saved = readTensors(path("saved"));
  TRY(fp8rt_state_import(state.get(), saved.get()));
  TRY(fp8rt_session_import_carried(session.get(), saved.get()));
  TRY(fp8rt_session_step(session.get()));
  fp8rt_prepared *out = nullptr;
  TRY(fp8rt_prepare_on(gpu.get(), "main", state.get(), nullptr, 4, nullptr, 4, &out));
  Prepared prepared(out);
  auto argument = [&](uint32_t i) { return fp8rt_session_argument_in_place(session.get(), i)->data; };
  auto result = [&](uint32_t i) { return fp8rt_session_result_in_place(session.get(), i)->data; };
  void *arguments[] = {argument(0), argument(1), argument(2), nullptr};
  void *results[] = {nullptr, result(1), result(2), nullptr};
  TRY(fp8rt_prepared_call(prepared.get(), arguments, results));
  const DLTensor *w = fp8rt_session_argument(session.get(), 0);
  if (!w)
    return FP8RT_DEVICE;
  outcome.resumed = values<float>(w);
  return FP8RT_OK;
}

/// Forward and backward, whose residual stays on the device.
fp8rt_status DeviceFailureTest::trainPair(const GPU &gpu, Outcome &outcome) {
  Session forward, backward;
  TRY(create(gpu, "forward", State(), forward));
  TRY(create(gpu, "backward", State(), backward));
  Literal<float> x(kF32, {3}, {1, 2, 3}), two(kF32, {}, {2}), g(kF32, {}, {10});
  TRY(fp8rt_session_set_argument(forward.get(), 0, &x.view));
  TRY(fp8rt_session_set_argument(forward.get(), 1, &two.view));
  TRY(fp8rt_session_set_argument(backward.get(), 1, &g.view));
  TRY(fp8rt_session_step(forward.get()));
  TRY(fp8rt_session_bind_argument(backward.get(), 0, fp8rt_session_result_in_place(forward.get(), 0)));
  TRY(fp8rt_session_step(backward.get()));
  const DLTensor *gradient = fp8rt_session_result(backward.get(), 0);
  if (!gradient)
    return FP8RT_DEVICE;
  outcome.gradient = values<float>(gradient);
  return FP8RT_OK;
}

/// Kernels with a tensor map and in clusters.
fp8rt_status DeviceFailureTest::loadBox(Outcome &outcome) {
  GPU gpu;
  TRY(open(gpu, hopper));
  Session session;
  TRY(create(gpu, "box", State(), session));
  Literal<float> x(kF32, {5, 12}, std::vector<float>(60, 2.0f));
  TRY(fp8rt_session_set_argument(session.get(), 0, &x.view));
  for (int step = 0; step < 2; ++step)
    TRY(fp8rt_session_step(session.get()));
  const DLTensor *box = fp8rt_session_result(session.get(), 0);
  if (!box)
    return FP8RT_DEVICE;
  outcome.box = values<float>(box);
  return FP8RT_OK;
}

/// Memory that compiled code allocates, new and used again.
fp8rt_status DeviceFailureTest::makeRamps(const GPU &gpu) {
  Session session;
  TRY(create(gpu, "dynamic", State(), session));
  for (int32_t size : {5, 5, 7}) {
    Literal<int32_t> n(kI32, {}, {size});
    TRY(fp8rt_session_set_argument(session.get(), 0, &n.view));
    TRY(fp8rt_session_step(session.get()));
  }
  return FP8RT_OK;
}

fp8rt_status DeviceFailureTest::run(Outcome &outcome) {
  GPU gpu;
  TRY(open(gpu));
  fp8rt_state *created = nullptr;
  TRY(fp8rt_state_create_on(gpu.get(), &created));
  State state(created);
  TRY(makeRamps(gpu));
  TRY(train(gpu, state, outcome));
  TRY(goOn(gpu, outcome));
  TRY(trainPair(gpu, outcome));
  return loadBox(outcome);
}

/// The entry points that only ranks with NCCL use: NcclFailureTest.cpp lets each of them fail.
bool isForRanks(const std::string &name) {
  for (const char *known : {"cuMemHostAlloc", "cuMemFreeHost", "cuMemHostGetDevicePointer_v2",
                            "cuStreamWaitEvent", "cuStreamIsCapturing"})
    if (name == known)
      return true;
  return false;
}

TEST_F(DeviceFailureTest, ARunReachesEveryEntryPoint) {
  Outcome outcome;
  ASSERT_FP8RT(run(outcome));
  EXPECT_EQ(outcome.gradient, (std::vector<float>{20, 40, 60}));
  EXPECT_EQ(outcome.box[0], 2.0f);
  failNext("cuGraphLaunch", kUnknown); // whose name and memory are asked for
  EXPECT_NE(run(outcome), FP8RT_OK);
  failNext("cuMemAlloc_v2", kOutOfMemory);
  EXPECT_NE(run(outcome), FP8RT_OK);
#define EXPECT_REACHED(name, symbol, parameters) EXPECT_NE(reached(#symbol), isForRanks(#symbol)) << #symbol;
  FP8RT_CUDA_FUNCTIONS(EXPECT_REACHED)
#undef EXPECT_REACHED
}

/// Returns whether a failure of the entry point changes nothing: it only ends something, which is ended, or
/// waits before that.
bool onlyEnds(const std::string &name) {
  for (const char *known :
       {"cuCtxSynchronize", "cuCtxPopCurrent_v2", "cuMemFree_v2", "cuModuleUnload", "cuStreamDestroy_v2",
        "cuEventDestroy_v2", "cuGraphDestroy", "cuGraphExecDestroy", "cuDevicePrimaryCtxRelease_v2"})
    if (name == known)
      return true;
  return false;
}

TEST_F(DeviceFailureTest, EachCallInTurn) {
  Outcome expected;
  ASSERT_FP8RT(run(expected));
  int64_t count = calls();
  ASSERT_GT(count, 100);
  for (int64_t call = 1; call <= count; ++call) {
    std::filesystem::remove(path("saved"));
    failAt(call, kUnknown);
    Outcome outcome;
    fp8rt_status status = run(outcome);
    std::string name = failed(), error = fp8rt_last_error();
    SCOPED_TRACE("call " + std::to_string(call) + ", " + name);
    if (status == FP8RT_OK) {
      // Machine code that no device loads is followed by PTX. A context that cannot be used when all is done
      // has taken with it what it had.
      EXPECT_TRUE(onlyEnds(name) || name == "cuModuleLoadDataEx" || name == "cuCtxPushCurrent_v2");
      EXPECT_EQ(outcome, expected);
      lost = name == "cuCtxPushCurrent_v2" ? live() : lost;
      ASSERT_EQ(live(), lost);
      continue;
    }
    ASSERT_EQ(live(), lost);
    EXPECT_FALSE(onlyEnds(name));
    if (std::filesystem::exists(path("saved"))) // whole, if at all
      EXPECT_EQ(values<float>(fp8rt_tensors_find(readTensors(path("saved")).get(), "carry.w")), expected.w);
    EXPECT_NE(error.find("(CUDA_ERROR_UNKNOWN)"), std::string::npos) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
}

/// Nothing is left of a device whose kernel has failed, whether steps wait for each kernel or not.
TEST_F(DeviceFailureTest, AKernelThatFailsLeavesNothing) {
  for (const char *waits : {"0", "1"}) {
    GPU gpu;
    ASSERT_FP8RT(open(gpu));
    setenv("FP8RT_SYNC", waits, /*overwrite=*/1);
    Session session;
    ASSERT_FP8RT(create(gpu, "faulting", State(), session));
    Literal<float> x(kF32, {6}, {0, 0, 0, 0, 0, 0});
    ASSERT_FP8RT(fp8rt_session_set_argument(session.get(), 0, &x.view));
    ASSERT_FP8RT(fp8rt_session_step(session.get()));
    x.data[0] = 1;
    ASSERT_FP8RT(fp8rt_session_set_argument(session.get(), 0, &x.view));
    EXPECT_NE(fp8rt_session_step(session.get()), FP8RT_OK);
    EXPECT_NE(std::string(fp8rt_last_error()).find("kernel 'poke' of head"), std::string::npos)
        << fp8rt_last_error();
  }
  unsetenv("FP8RT_SYNC");
  Outcome outcome;
  ASSERT_FP8RT(run(outcome));
}

TEST_F(DeviceFailureTest, OutOfMemorySaysHowMuchAndForWhat) {
  GPU gpu;
  ASSERT_FP8RT(open(gpu));
  State state = newStateOn(gpu);
  Session session;
  failNext("cuMemAlloc_v2", kOutOfMemory);
  EXPECT_FP8RT_ERROR(create(gpu, "main", state, session), FP8RT_OUT_OF_MEMORY,
                     "the workspace of entry 'main': ");
  EXPECT_NE(std::string(fp8rt_last_error()).find(" has no 24 bytes of memory left: "), std::string::npos)
      << fp8rt_last_error();
  EXPECT_NE(std::string(fp8rt_last_error()).find(" are free"), std::string::npos);
  ASSERT_FP8RT(create(gpu, "main", state, session));
  MainArguments given;
  failNext("cuMemAlloc_v2", kOutOfMemory);
  EXPECT_FP8RT_ERROR(fp8rt_session_set_argument(session.get(), 0, &given.w.view), FP8RT_OUT_OF_MEMORY,
                     "argument 0 'w': ");
  ASSERT_FP8RT(fp8rt_session_set_argument(session.get(), 0, &given.w.view));
}

/// Memory that was kept is given back before there is an error.
TEST_F(DeviceFailureTest, KeptMemoryIsGivenBackFirst) {
  GPU gpu;
  ASSERT_FP8RT(open(gpu));
  State state = newStateOn(gpu);
  int64_t before = live();
  newSessionOn(gpu, "main", state).reset();
  EXPECT_EQ(live() - before, 3) << "two results and the workspace are kept";
  Session again = newSessionOn(gpu, "main", state);
  EXPECT_EQ(live() - before, 3) << "and used again";
  again.reset();
  Session dynamic = newSessionOn(gpu, "dynamic", state);
  Literal<int32_t> n(kI32, {}, {1000});
  ASSERT_FP8RT(fp8rt_session_set_argument(dynamic.get(), 0, &n.view));
  failNext("cuMemAlloc_v2", kOutOfMemory);
  ASSERT_FP8RT(fp8rt_session_step(dynamic.get()));
  EXPECT_STREQ(failed(), "cuMemAlloc_v2");
  EXPECT_EQ(live() - before, 3) << "the argument, the result, and the zeros that the call allocated";
}

TEST_F(DeviceFailureTest, DriversThatWillNotDo) {
  GPU gpu;
  failNext("cuInit", kNoDevice);
  EXPECT_FP8RT_ERROR(open(gpu), FP8RT_DEVICE, "finds no GPU on this machine: use --device=cpu");
  setVersion(11080);
  EXPECT_FP8RT_ERROR(
      open(gpu), FP8RT_DEVICE,
      "CUDA driver is of version 11.8, the library's PTX 8.0 needs 12.0 or newer: update the driver");
  setVersion(0);
  setenv("FP8RT_CUDA_DRIVER", "libm.so.6", 1);
  EXPECT_FP8RT_ERROR(open(gpu), FP8RT_DEVICE, "libm.so.6 has no cuInit: a CUDA driver of version 12.0");
  setenv("FP8RT_CUDA_DRIVER", "none.so", 1);
  EXPECT_FP8RT_ERROR(open(gpu), FP8RT_DEVICE, "no CUDA driver was found (none.so: ");
  EXPECT_NE(std::string(fp8rt_last_error()).find("name its library with FP8RT_CUDA_DRIVER"),
            std::string::npos);
}

} // namespace
