// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prepared calls on a device, on the buffers of a session, which the test reads: the same values as a session
// on the CPU, and what preparation and calls refuse.

#include "DeviceSupport.h"

using namespace fp8rt_test;

namespace {

class DevicePreparedTest : public ::testing::Test {
protected:
  void SetUp() override {
    library = load(DEVICE_FIXTURE);
    gpu = openGPU(testDevice().c_str(), library);
    ASSERT_TRUE(gpu);
    state = newStateOn(gpu);
    buffers = newSessionOn(gpu, "main", state);
    ASSERT_TRUE(buffers);
    given.setIn(buffers);
  }

  fp8rt_status prepare(const GPU &where, fp8rt_state *used, const DLTensor *first = nullptr) {
    const DLTensor *arguments[4] = {first};
    fp8rt_prepared *out = nullptr;
    fp8rt_status status = fp8rt_prepare_on(where.get(), "main", used, arguments, 4, nullptr, 4, &out);
    EXPECT_EQ(out == nullptr, status != FP8RT_OK);
    prepared.reset(out);
    return status;
  }

  void *argument(uint32_t index) { return fp8rt_session_argument_in_place(buffers.get(), index)->data; }
  void *result(uint32_t index) { return fp8rt_session_result_in_place(buffers.get(), index)->data; }

  /// Calls 'main': w and the state are written in place.
  template <typename Call>
  fp8rt_status call(Call function, ptrdiff_t offset = 0) {
    void *arguments[] = {argument(0), argument(1), static_cast<char *>(argument(2)) + offset, nullptr};
    void *results[] = {nullptr, result(1), result(2), nullptr};
    return function(prepared.get(), arguments, results);
  }

  Library library;
  GPU gpu;
  State state;
  Session buffers;
  Prepared prepared;
  MainArguments given;
};

TEST_F(DevicePreparedTest, CallsComputeAsOnTheCPU) {
  Library cpu = load(CPU_FIXTURE);
  State cpuState = newState(cpu);
  Session cpuSession = newSession(cpu, "main", cpuState);
  given.setIn(cpuSession);
  ASSERT_FP8RT(prepare(gpu, state.get()));
  for (int step = 0; step < 3; ++step) {
    ASSERT_FP8RT(fp8rt_session_step(cpuSession.get()));
    ASSERT_FP8RT(call(fp8rt_prepared_call));
  }
  EXPECT_EQ(values<float>(fp8rt_session_argument(buffers.get(), 0)),
            values<float>(fp8rt_session_argument(cpuSession.get(), 0)));
  EXPECT_EQ(values<float>(fp8rt_session_result(buffers.get(), 2)),
            values<float>(fp8rt_session_result(cpuSession.get(), 2)));
  EXPECT_EQ(values<int32_t>(fp8rt_session_result(buffers.get(), 1)), (std::vector<int32_t>{11, 21, 31, 41}))
      << "values of the next step are the caller's to pass";
}

/// On the stream of the caller, here the default one: nothing is waited for.
TEST_F(DevicePreparedTest, CallsOnTheCallersStream) {
  if (!isEmulator())
    GTEST_SKIP() << "waiting for the default stream takes the driver";
  ASSERT_FP8RT(prepare(gpu, state.get()));
  auto enqueue = [](auto... all) { return fp8rt_prepared_enqueue(all..., /*stream=*/nullptr); };
  ASSERT_FP8RT(call(enqueue));
  EXPECT_EQ(values<int32_t>(fp8rt_session_result(buffers.get(), 1)), (std::vector<int32_t>{11, 21, 31, 41}));
}

/// A tensor on the device with the bytes of one in host memory.
ManagedTensor put(const GPU &gpu, const DLTensor &host, uint64_t bytes) {
  auto tensor = make<ManagedTensor>(
      [&](auto *out) { return fp8rt_gpu_tensor_create(gpu.get(), host.dtype, host.shape, host.ndim, out); });
  EXPECT_EQ(fp8rt_gpu_write(gpu.get(), tensor->dl_tensor.data, host.data, bytes, nullptr), FP8RT_OK);
  return tensor;
}

TEST_F(DevicePreparedTest, CallsInAWorkspaceOfTheCaller) {
  ASSERT_FP8RT(prepare(gpu, state.get()));
  Literal<uint8_t> bytes{{kDLUInt, 8, 1}, {256}, std::vector<uint8_t>(256)};
  ManagedTensor workspace = put(gpu, bytes.view, 256);
  auto *data = static_cast<char *>(workspace->dl_tensor.data);
  auto enqueueAt = [&](void *where) {
    return [=](auto... all) { return fp8rt_prepared_enqueue_in(all..., where, /*stream=*/nullptr); };
  };
  EXPECT_FP8RT_ERROR(call(enqueueAt(data + 16)), FP8RT_INVALID_ARGUMENT,
                     "the workspace of entry 'main' is not aligned to 256 bytes");
  ASSERT_FP8RT(call(enqueueAt(data)));
  ASSERT_FP8RT(fp8rt_gpu_wait(gpu.get(), nullptr));
  // The entry point's first kernel writes w there, then it is copied.
  std::vector<float> left(6);
  ASSERT_FP8RT(fp8rt_gpu_read(gpu.get(), left.data(), data, 24, nullptr));
  EXPECT_EQ(left, values<float>(fp8rt_session_argument(buffers.get(), 0)));
}

TEST_F(DevicePreparedTest, CallsFromTheHost) {
  Library cpu = load(CPU_FIXTURE);
  State cpuState = newState(cpu);
  Session cpuSession = newSession(cpu, "main", cpuState);
  given.setIn(cpuSession);
  ASSERT_FP8RT(prepare(gpu, state.get()));
  std::vector<int32_t> ints(4);
  std::vector<float> sums(values<float>(fp8rt_session_result(cpuSession.get(), 2)).size());
  void *arguments[] = {given.w.view.data, given.m.view.data, given.x.view.data, nullptr};
  void *results[] = {nullptr, ints.data(), sums.data(), nullptr};
  for (int step = 0; step < 3; ++step) {
    ASSERT_FP8RT(fp8rt_session_step(cpuSession.get()));
    ASSERT_FP8RT(fp8rt_prepared_call_from_host(prepared.get(), arguments, results));
  }
  EXPECT_EQ(given.w.data, values<float>(fp8rt_session_argument(cpuSession.get(), 0)))
      << "a result without memory is written to its argument's";
  EXPECT_EQ(sums, values<float>(fp8rt_session_result(cpuSession.get(), 2)));
  EXPECT_EQ(ints, (std::vector<int32_t>{11, 21, 31, 41}));
  EXPECT_EQ(given.x.data, (std::vector<float>{0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f})) << "arguments stay";
}

/// A result in an argument's memory, or in the state's, goes where the caller wants it.
TEST_F(DevicePreparedTest, CallsFromTheHostWithMemoryForEveryResult) {
  ASSERT_FP8RT(prepare(gpu, state.get()));
  std::vector<float> w(6), sums(values<float>(fp8rt_session_result(buffers.get(), 2)).size()), scale(1);
  std::vector<int32_t> ints(4);
  std::vector<float> before = given.w.data;
  void *arguments[] = {given.w.view.data, given.m.view.data, given.x.view.data, nullptr};
  void *results[] = {w.data(), ints.data(), sums.data(), scale.data()};
  ASSERT_FP8RT(fp8rt_prepared_call_from_host(prepared.get(), arguments, results));
  EXPECT_EQ(given.w.data, before);
  EXPECT_EQ(w, (std::vector<float>{1.1f, -1.8f, 3.3f, -3.6f, 5.5f, -5.4f}));
  std::vector<float> kept(1);
  const DLTensor *tensor = fp8rt_state_tensor(state.get(), "scale");
  ASSERT_FP8RT(fp8rt_gpu_read(gpu.get(), kept.data(), tensor->data, 4, nullptr));
  EXPECT_EQ(scale, kept);
  EXPECT_EQ(scale, (std::vector<float>{0.5f}));
}

TEST_F(DevicePreparedTest, TensorsOnTheDevice) {
  ManagedTensor tensor = put(gpu, given.x.view, 24);
  EXPECT_EQ(tensor->dl_tensor.device.device_type, kDLCUDA);
  EXPECT_EQ(tensor->dl_tensor.device.device_id, fp8rt_gpu_place(gpu.get()).device_id);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor->dl_tensor.data) % 256, 0u);
  EXPECT_EQ(std::vector<int64_t>(tensor->dl_tensor.shape, tensor->dl_tensor.shape + 1), given.x.shape);
  auto copy = make<ManagedTensor>(
      [&](auto *out) { return fp8rt_gpu_tensor_create(gpu.get(), kF32, given.x.shape.data(), 1, out); });
  ASSERT_FP8RT(fp8rt_gpu_copy(gpu.get(), copy->dl_tensor.data, tensor->dl_tensor.data, 24, nullptr));
  std::vector<float> read(6);
  ASSERT_FP8RT(fp8rt_gpu_read(gpu.get(), read.data(), copy->dl_tensor.data, 24, nullptr));
  EXPECT_EQ(read, given.x.data);
  // The handle is closed first.
  gpu.reset();
  tensor.reset();
  copy.reset();
}

TEST_F(DevicePreparedTest, TensorsThatThereAreNot) {
  DLManagedTensor *out = nullptr;
  int64_t negative[] = {2, -1}, large[] = {1ll << 40, 1ll << 40};
  EXPECT_FP8RT_ERROR(fp8rt_gpu_tensor_create(gpu.get(), kF32, negative, 2, &out), FP8RT_INVALID_ARGUMENT,
                     "the tensor is larger than memory, or a size is negative");
  EXPECT_FP8RT_ERROR(fp8rt_gpu_tensor_create(gpu.get(), kF32, large, 2, &out), FP8RT_INVALID_ARGUMENT,
                     "the tensor is larger than memory");
  EXPECT_FP8RT_ERROR(fp8rt_gpu_tensor_create(gpu.get(), {kDLFloat, 32, 4}, large, 1, &out),
                     FP8RT_INVALID_ARGUMENT, "no tensors are of type");
  int64_t huge[] = {1ll << 40};
  EXPECT_FP8RT_ERROR(fp8rt_gpu_tensor_create(gpu.get(), kF32, huge, 1, &out), FP8RT_OUT_OF_MEMORY,
                     "of memory left");
  int32_t major = 0, minor = 0;
  EXPECT_FP8RT_ERROR(fp8rt_gpu_capability("emulator", &major, &minor), FP8RT_INVALID_ARGUMENT,
                     "say which chip you mean");
}

TEST_F(DevicePreparedTest, HandlesKeepTheirLibraryAndDevice) {
  ASSERT_FP8RT(prepare(gpu, state.get()));
  state.reset();
  gpu.reset();
  library.reset();
  ASSERT_FP8RT(call(fp8rt_prepared_call));
  EXPECT_EQ(values<int32_t>(fp8rt_session_result(buffers.get(), 1)), (std::vector<int32_t>{11, 21, 31, 41}));
}

TEST_F(DevicePreparedTest, ResultsOfDynamicShape) {
  Literal<int32_t> n{kI32, {}, {4}};
  Session holder = newSessionOn(gpu, "dynamic", state);
  ASSERT_FP8RT(fp8rt_session_set_argument(holder.get(), 0, &n.view));
  ASSERT_FP8RT(fp8rt_session_step(holder.get()));
  const DLTensor *ramp = fp8rt_session_result_in_place(holder.get(), 0);
  const DLTensor *results[] = {ramp};
  fp8rt_prepared *out = nullptr;
  ASSERT_FP8RT(fp8rt_prepare_on(gpu.get(), "dynamic", nullptr, nullptr, 1, results, 1, &out));
  prepared.reset(out);
  void *arguments[] = {fp8rt_session_argument_in_place(holder.get(), 0)->data}, *data[] = {ramp->data};
  ASSERT_FP8RT(fp8rt_prepared_enqueue(prepared.get(), arguments, data, nullptr));
  EXPECT_EQ(values<int32_t>(fp8rt_session_result(holder.get(), 0)), (std::vector<int32_t>{0, 1, 2, 3}));
  n.data[0] = 5;
  ASSERT_FP8RT(fp8rt_session_set_argument(holder.get(), 0, &n.view));
  arguments[0] = fp8rt_session_argument_in_place(holder.get(), 0)->data;
  EXPECT_FP8RT_ERROR(fp8rt_prepared_call(prepared.get(), arguments, data), FP8RT_CALL_FAILED,
                     "entry 'dynamic' failed: result 0 'ramp' is i32[5], prepared for i32[4]");
}

TEST_F(DevicePreparedTest, WhatIsRefused) {
  EXPECT_FP8RT_ERROR(prepare(gpu, state.get(), &given.w.view), FP8RT_INVALID_ARGUMENT,
                     "argument 0 'w': the tensor is not in the memory of the device");
  GPU other = openGPU(testDevice().c_str(), library);
  EXPECT_FP8RT_ERROR(prepare(other, state.get()), FP8RT_INVALID_ARGUMENT,
                     "the state is not where the calls run: create both on one device");
  fp8rt_prepared *out = nullptr;
  EXPECT_FP8RT_ERROR(fp8rt_prepare(library.get(), "main", nullptr, nullptr, 4, nullptr, 4, &out),
                     FP8RT_UNSUPPORTED, "--device");
  ASSERT_FP8RT(prepare(gpu, state.get()));
  EXPECT_FP8RT_ERROR(call(fp8rt_prepared_call, 4), FP8RT_INVALID_ARGUMENT,
                     "argument 2 'x' is not aligned to 16 bytes");
  Library cpu = load(CPU_FIXTURE);
  ASSERT_FP8RT(fp8rt_prepare(cpu.get(), "main", nullptr, nullptr, 4, nullptr, 4, &out));
  prepared.reset(out);
  auto enqueue = [](auto... all) { return fp8rt_prepared_enqueue(all..., /*stream=*/nullptr); };
  EXPECT_FP8RT_ERROR(call(enqueue), FP8RT_INVALID_ARGUMENT, "prepared for the CPU, which has no streams");
  EXPECT_FP8RT_ERROR(call(fp8rt_prepared_call_from_host), FP8RT_INVALID_ARGUMENT,
                     "prepared for the CPU, which has no other memory");
}

} // namespace
