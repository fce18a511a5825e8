// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sessions on a device: the same values, state files and uses as on the CPU, and errors that say what to
// do. The device is the emulator, or with FP8RT_TEST_DEVICE=cuda a GPU, which a kernel that fails disables
// for the process: ctest runs each test in one of its own.

#include "DeviceSupport.h"

#include <fstream>

using namespace fp8rt_test;

namespace {

class DeviceSessionTest : public WithFolder {
protected:
  void SetUp() override {
    WithFolder::SetUp();
    library = load(DEVICE_FIXTURE);
    gpu = openGPU(testDevice().c_str(), library);
    ASSERT_TRUE(gpu);
    state = newStateOn(gpu);
    session = newSessionOn(gpu, "main", state);
    ASSERT_TRUE(session);
  }

  std::string readFile(const std::string &name) const {
    std::ifstream file(path(name), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  Library library;
  GPU gpu;
  State state;
  Session session;
};

TEST_F(DeviceSessionTest, TheEmulatorsDeviceIsTheOneOfTheLibrarysChip) {
  if (!isEmulator())
    GTEST_SKIP() << "a GPU is of any chip that runs the library";
  EXPECT_NE(std::string(fp8rt_gpu_name(gpu.get())).find("sm_89"), std::string::npos)
      << fp8rt_gpu_name(gpu.get());
}

/// Steps 1, 2 and 3 take three ways: eager, captured, replayed.
TEST_F(DeviceSessionTest, StepsComputeAndCarryAsOnTheCPU) {
  Library cpu = load(CPU_FIXTURE);
  State cpuState = newState(cpu);
  Session cpuSession = newSession(cpu, "main", cpuState);
  MainArguments given;
  given.setIn(session);
  given.setIn(cpuSession);
  for (int step = 1; step <= 5; ++step) {
    given.x.data[0] = 0.1f * float(step);
    for (const Session *each : {&session, &cpuSession}) {
      ASSERT_FP8RT(fp8rt_session_set_argument(each->get(), 2, &given.x.view));
      ASSERT_FP8RT(fp8rt_session_step(each->get()));
    }
    for (uint32_t i : {0, 2, 3})
      EXPECT_EQ(values<float>(fp8rt_session_result(session.get(), i)),
                values<float>(fp8rt_session_result(cpuSession.get(), i)))
          << "result " << i << " of step " << step;
    EXPECT_EQ(values<float>(fp8rt_session_argument(session.get(), 0)),
              values<float>(fp8rt_session_result(session.get(), 0)));
    EXPECT_EQ(values<int32_t>(fp8rt_session_argument(session.get(), 1)),
              (std::vector<int32_t>{10 + step, 20 + step, 30 + step, 40 + step}))
        << "carried by copying";
  }
}

/// A state saved on one device is read on the other, and the files have the same bytes.
TEST_F(DeviceSessionTest, StateFilesAreTheCPUs) {
  Library cpu = load(CPU_FIXTURE);
  State cpuState = newState(cpu);
  Session cpuSession = newSession(cpu, "main", cpuState);
  MainArguments given;
  given.setIn(session);
  given.setIn(cpuSession);
  auto stepAndSave = [&](const Session &of, const State &its, const std::string &name) {
    for (int i = 0; i < 3; ++i)
      ASSERT_FP8RT(fp8rt_session_step(of.get()));
    Tensors saved = newTensors();
    ASSERT_FP8RT(fp8rt_state_export(its.get(), saved.get()));
    ASSERT_FP8RT(fp8rt_session_export_carried(of.get(), saved.get()));
    ASSERT_FP8RT(fp8rt_tensors_write(saved.get(), path(name).c_str()));
  };
  auto restore = [&](const Session &of, const State &its, const std::string &name) {
    Tensors read = readTensors(path(name));
    ASSERT_FP8RT(fp8rt_state_import(its.get(), read.get()));
    ASSERT_FP8RT(fp8rt_session_import_carried(of.get(), read.get()));
  };
  stepAndSave(session, state, "device");
  stepAndSave(cpuSession, cpuState, "cpu");
  EXPECT_EQ(readFile("device"), readFile("cpu"));
  restore(cpuSession, cpuState, "device");
  restore(session, state, "cpu");
  stepAndSave(session, state, "device6");
  stepAndSave(cpuSession, cpuState, "cpu6");
  EXPECT_EQ(readFile("device6"), readFile("cpu6"));
  EXPECT_NE(readFile("cpu6"), readFile("cpu"));
}

TEST_F(DeviceSessionTest, SessionsShareTheStateOnTheDevice) {
  Session other = newSessionOn(gpu, "main", state);
  MainArguments given;
  given.setIn(session);
  given.setIn(other);
  ASSERT_FP8RT(fp8rt_session_step(session.get()));
  ASSERT_FP8RT(fp8rt_session_step(other.get()));
  EXPECT_EQ(values<float>(fp8rt_session_result(other.get(), 3)), std::vector<float>{0.25f});
  EXPECT_EQ(fp8rt_state_tensor(state.get(), "scale")->device.device_type, kDLCUDA);
}

TEST_F(DeviceSessionTest, ResultsOfDynamicShape) {
  Session dynamic = newSessionOn(gpu, "dynamic", State());
  for (int32_t size : {4, 0, 7, 7, 7, 2}) {
    Literal<int32_t> n(kI32, {}, {size});
    ASSERT_FP8RT(fp8rt_session_set_argument(dynamic.get(), 0, &n.view));
    ASSERT_FP8RT(fp8rt_session_step(dynamic.get()));
    std::vector<int32_t> ramp = values<int32_t>(fp8rt_session_result(dynamic.get(), 0));
    ASSERT_EQ(ramp.size(), size_t(size));
    for (int32_t i = 0; i < size; ++i)
      EXPECT_EQ(ramp[size_t(i)], i);
  }
}

TEST_F(DeviceSessionTest, ResidualsStayOnTheDevice) {
  Session forward = newSessionOn(gpu, "forward", State());
  Session backward = newSessionOn(gpu, "backward", State());
  Literal<float> x(kF32, {3}, {1, 2, 3}), two(kF32, {}, {2}), g(kF32, {}, {10});
  ASSERT_FP8RT(fp8rt_session_set_argument(forward.get(), 0, &x.view));
  ASSERT_FP8RT(fp8rt_session_set_argument(forward.get(), 1, &two.view));
  ASSERT_FP8RT(fp8rt_session_set_argument(backward.get(), 1, &g.view));
  for (int step = 0; step < 4; ++step) {
    x.data[0] = float(step);
    ASSERT_FP8RT(fp8rt_session_set_argument(forward.get(), 0, &x.view));
    ASSERT_FP8RT(fp8rt_session_step(forward.get()));
    const DLTensor *saved = fp8rt_session_result_in_place(forward.get(), 0);
    ASSERT_TRUE(saved);
    EXPECT_EQ(saved->device.device_type, kDLCUDA);
    ASSERT_FP8RT(fp8rt_session_bind_argument(backward.get(), 0, saved));
    ASSERT_FP8RT(fp8rt_session_step(backward.get()));
    EXPECT_EQ(values<float>(fp8rt_session_result(backward.get(), 0)),
              (std::vector<float>{20 * float(step), 40, 60}));
  }
  EXPECT_FP8RT_ERROR(fp8rt_session_bind_argument(backward.get(), 0, &x.view), FP8RT_INVALID_ARGUMENT,
                     "not in the memory of the session's device");
  // A tensor of the device can be copied too.
  ASSERT_FP8RT(
      fp8rt_session_set_argument(forward.get(), 0, fp8rt_session_result_in_place(backward.get(), 0)));
  EXPECT_EQ(values<float>(fp8rt_session_argument(forward.get(), 0)), (std::vector<float>{60, 40, 60}));
}

TEST_F(DeviceSessionTest, MissingArgumentsAreZeros) {
  ASSERT_FP8RT(fp8rt_session_zero_missing(session.get()));
  ASSERT_FP8RT(fp8rt_session_step(session.get()));
  EXPECT_EQ(values<float>(fp8rt_session_result(session.get(), 0)), std::vector<float>(6));
  EXPECT_EQ(values<int32_t>(fp8rt_session_result(session.get(), 1)), std::vector<int32_t>(4, 1));
}

TEST_F(DeviceSessionTest, ASessionOutlivesItsHandles) {
  MainArguments().setIn(session);
  state.reset();
  gpu.reset();
  library.reset();
  ASSERT_FP8RT(fp8rt_session_step(session.get()));
  EXPECT_EQ(values<float>(fp8rt_session_result(session.get(), 3)), std::vector<float>{0.5f});
}

TEST_F(DeviceSessionTest, KernelsAreMeasured) {
  fp8rt_profiler *created = nullptr;
  ASSERT_FP8RT(fp8rt_profiler_create(library.get(), &created));
  Profiler profiler(created);
  MainArguments().setIn(session);
  ASSERT_FP8RT(fp8rt_session_step(session.get()));
  ASSERT_FP8RT(fp8rt_session_profile(session.get(), created));
  for (int step = 0; step < 3; ++step)
    ASSERT_FP8RT(fp8rt_session_step(session.get()));
  fp8rt_kernel kernel = {};
  for (uint32_t i = 0; i < 3; ++i) {
    ASSERT_FP8RT(fp8rt_profiler_kernel(created, i, &kernel));
    EXPECT_EQ(kernel.calls, i < 2 ? 3u : 0u) << kernel.name;
    EXPECT_EQ(kernel.seconds > 0, i < 2) << kernel.name;
  }
  EXPECT_GT(fp8rt_profiler_outside_seconds(created), 0);
  // Afterwards steps are replayed again, with the same values.
  ASSERT_FP8RT(fp8rt_session_profile(session.get(), nullptr));
  for (int step = 0; step < 3; ++step)
    ASSERT_FP8RT(fp8rt_session_step(session.get()));
  ASSERT_FP8RT(fp8rt_profiler_kernel(created, 0, &kernel));
  EXPECT_EQ(kernel.calls, 3u);
  EXPECT_EQ(values<float>(fp8rt_session_result(session.get(), 3)), std::vector<float>{1.0f / 128});
}

TEST_F(DeviceSessionTest, AFailingKernelIsNamed) {
  Session faulting = newSessionOn(gpu, "faulting", State());
  Literal<float> x(kF32, {6}, {1, 0, 0, 0, 0, 0});
  ASSERT_FP8RT(fp8rt_session_set_argument(faulting.get(), 0, &x.view));
  EXPECT_FP8RT_ERROR(fp8rt_session_step(faulting.get()), FP8RT_CALL_FAILED,
                     "entry 'faulting' failed: kernel 'poke' of head failed: ");
  EXPECT_NE(std::string(fp8rt_last_error()).find("(CUDA_ERROR_ILLEGAL_ADDRESS)"), std::string::npos);
  EXPECT_FP8RT_ERROR(fp8rt_session_step(faulting.get()), FP8RT_INVALID_ARGUMENT, "an earlier step");
}

/// After the first step kernels are not waited for one by one.
TEST_F(DeviceSessionTest, AKernelThatFailsLaterIsNamedAsFarAsCanBe) {
  Session faulting = newSessionOn(gpu, "faulting", State());
  Literal<float> x(kF32, {6}, {0, 0, 0, 0, 0, 0});
  ASSERT_FP8RT(fp8rt_session_set_argument(faulting.get(), 0, &x.view));
  ASSERT_FP8RT(fp8rt_session_step(faulting.get()));
  x.data[0] = 1;
  ASSERT_FP8RT(fp8rt_session_set_argument(faulting.get(), 0, &x.view));
  EXPECT_FP8RT_ERROR(
      fp8rt_session_step(faulting.get()), FP8RT_DEVICE,
      "entry 'faulting' failed: one of 2 kernels, the last of them kernel 'poke' of head, failed: ");
  EXPECT_NE(std::string(fp8rt_last_error()).find("FP8RT_SYNC=1"), std::string::npos);
}

TEST_F(DeviceSessionTest, WrongLaunchesAndCapturesAreErrors) {
  Session refused = newSessionOn(gpu, "refused", State());
  EXPECT_FP8RT_ERROR(fp8rt_session_step(refused.get()), FP8RT_CALL_FAILED,
                     "kernel 'sum' of fc, head cannot be launched with 1 x 65536 x 1 blocks of 32 threads");
  Session reading = newSessionOn(gpu, "reading", State());
  ASSERT_FP8RT(fp8rt_session_zero_missing(reading.get()));
  ASSERT_FP8RT(fp8rt_session_step(reading.get()));
  EXPECT_FP8RT_ERROR(fp8rt_session_step(reading.get()), FP8RT_CALL_FAILED,
                     "calls the entry capturable, but it reads memory of the device");
}

TEST_F(DeviceSessionTest, TensorMapsAndClusters) {
  Library hopper = load(HOPPER_FIXTURE);
  fp8rt_gpu *opened = nullptr;
  fp8rt_status status = fp8rt_gpu_open(testDevice().c_str(), hopper.get(), &opened);
  if (status == FP8RT_MISMATCH && !isEmulator())
    GTEST_SKIP() << fp8rt_last_error();
  ASSERT_FP8RT(status);
  GPU its(opened);
  Session boxes = newSessionOn(its, "box", State());
  Literal<float> x(kF32, {5, 12}, std::vector<float>(60));
  for (size_t i = 0; i < x.data.size(); ++i)
    x.data[i] = float(i);
  ASSERT_FP8RT(fp8rt_session_set_argument(boxes.get(), 0, &x.view));
  for (int step = 0; step < 3; ++step) {
    ASSERT_FP8RT(fp8rt_session_step(boxes.get()));
    // Rows 3 to 6 and columns 8 to 15 of [5, 12]: zeros out of bounds.
    std::vector<float> box = values<float>(fp8rt_session_result(boxes.get(), 0));
    ASSERT_EQ(box.size(), 32u);
    for (size_t i = 0; i < 32; ++i) {
      size_t row = 3 + i / 8, column = 8 + i % 8;
      EXPECT_EQ(box[i], row < 5 && column < 12 ? x.data[row * 12 + column] : 0) << row << ", " << column;
    }
    EXPECT_EQ(values<int32_t>(fp8rt_session_result(boxes.get(), 1)), (std::vector<int32_t>{0, 1, 0, 1}));
  }
  Session wrong = newSessionOn(its, "wrong_box", State());
  ASSERT_FP8RT(fp8rt_session_set_argument(wrong.get(), 0, &x.view));
  EXPECT_FP8RT_ERROR(fp8rt_session_step(wrong.get()), FP8RT_CALL_FAILED,
                     "there is no tensor map for sizes 12,5, strides 4,44 and box 8,4 on ");
}

TEST_F(DeviceSessionTest, LibrariesAndDevicesMustFit) {
  fp8rt_gpu *opened = nullptr;
  fp8rt_session *created = nullptr;
  Library cpu = load(CPU_FIXTURE);
  EXPECT_FP8RT_ERROR(fp8rt_gpu_open("emulator", cpu.get(), &opened), FP8RT_UNSUPPORTED,
                     "compiled for the CPU: run it with --device=cpu");
  State hostState = newState(library);
  EXPECT_FP8RT_ERROR(fp8rt_session_create(library.get(), "main", hostState.get(), &created),
                     FP8RT_UNSUPPORTED, "kernels are for sm_89: run it on a GPU");
  EXPECT_FP8RT_ERROR(fp8rt_session_create_on(gpu.get(), "main", hostState.get(), &created),
                     FP8RT_INVALID_ARGUMENT, "the state is not where the calls run");
  EXPECT_FP8RT_ERROR(fp8rt_session_create_on(gpu.get(), "main", nullptr, &created), FP8RT_INVALID_ARGUMENT,
                     "needs a state");
  EXPECT_FP8RT_ERROR(fp8rt_gpu_open("emulator", load(UNKNOWN_CHIP_FIXTURE).get(), &opened), FP8RT_MISMATCH,
                     "kernels are for sm_130a, which none of the emulator's devices runs: FP8EMU_CHIP");
  fp8rt_prepared *prepared = nullptr;
  EXPECT_FP8RT_ERROR(fp8rt_prepare(library.get(), "forward", nullptr, nullptr, 2, nullptr, 1, &prepared),
                     FP8RT_UNSUPPORTED, "kernels are for sm_89");
  for (const char *name : {"tpu", "cuda:", "cuda:x", "cuda:-1", "cuda1", ""})
    EXPECT_FP8RT_ERROR(fp8rt_gpu_open(name, library.get(), &opened), FP8RT_INVALID_ARGUMENT,
                       "use cuda, cuda:N or emulator");
  EXPECT_FP8RT_ERROR(fp8rt_gpu_open(nullptr, library.get(), &opened), FP8RT_INVALID_ARGUMENT, "name is null");
  EXPECT_FP8RT_ERROR(fp8rt_gpu_open("cuda", nullptr, &opened), FP8RT_INVALID_ARGUMENT, "library is null");
  EXPECT_FP8RT_ERROR(fp8rt_state_create_on(nullptr, nullptr), FP8RT_INVALID_ARGUMENT, "null");
  EXPECT_EQ(opened, nullptr);
  EXPECT_EQ(created, nullptr);
  fp8rt_gpu_close(nullptr);
}

} // namespace
