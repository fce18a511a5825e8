// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The environment of the tests: the emulator's driver, and the stand-in.

#include "NcclSupport.h"

#include <cstdlib>
#include <dlfcn.h>
#include <mutex>

using namespace fp8rt_test;

namespace {

std::mutex opening; // gtest's checks are of one thread at a time

const bool kIsPrepared = [] {
  setenv("FP8RT_NCCL", STANDIN_NCCL, 1);
  return true;
}();

} // namespace

const Wrap fp8rt_test::kThroughNccl = [](fp8rt_communicator *made, fp8rt_communicator **out) {
  return fp8rt_communicator_create_nccl(made, out);
};

void *fp8rt_test::findIn(const char *library, const char *name) {
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  void *found = handle ? dlsym(handle, name) : nullptr;
  EXPECT_NE(found, nullptr) << library << ": " << name;
  return found;
}

int64_t fp8rt_test::standin(const char *function) {
  return reinterpret_cast<int64_t (*)()>(findIn(STANDIN_NCCL, function))();
}

RankOnDevice::RankOnDevice(fp8rt_communicator &communicator, const char *device,
                           const std::function<void()> &beforeConnection) {
  {
    std::lock_guard<std::mutex> lock(opening);
    library = load(DEVICE_FIXTURE);
    gpu = openGPU(device, library);
    session = newSessionOn(gpu, "ranks", nullptr);
  }
  if (beforeConnection)
    beforeConnection();
  if (fp8rt_session_set_communicator(session.get(), &communicator))
    error = fp8rt_last_error();
}

RankOnDevice::~RankOnDevice() {
  for (char *address : memory)
    reinterpret_cast<int (*)(char *)>(findIn(EMULATOR, "cuMemFree_v2"))(address);
}

std::string RankOnDevice::step(float factor, float third) {
  if (!error.empty())
    return error;
  float x[] = {1, 2, third};
  int64_t shape[] = {3};
  DLTensor values = {x, {kDLCPU, 0}, 1, kF32, shape, nullptr, 0}, one = values;
  one.data = &factor;
  one.ndim = 0;
  if (fp8rt_session_set_argument(session.get(), 0, &values) ||
      fp8rt_session_set_argument(session.get(), 1, &one) || fp8rt_session_step(session.get()))
    return error = fp8rt_last_error();
  const DLTensor *result = fp8rt_session_result(session.get(), 0);
  if (!result)
    return error = "the result cannot be read";
  const float *sum = static_cast<const float *>(result->data);
  std::string text;
  for (int i = 0; i < 3; ++i)
    text += std::to_string(static_cast<int>(sum[i])) + " ";
  return text;
}

/// Returns the number of the emulator's device that the session is on: the first of the fixture's chip.
static int fixtureDevice() {
  int count = 0;
  drive("cuDeviceGetCount", &count);
  for (int device = 0; device < count; ++device) {
    int major = 0, minor = 0;
    drive("cuDeviceGetAttribute", &major, 75, device);
    drive("cuDeviceGetAttribute", &minor, 76, device);
    if (major == 8 && minor == 9)
      return device;
  }
  ADD_FAILURE() << "the emulator has no sm_89";
  return 0;
}

void RankOnDevice::makeCurrent() {
  void *context = nullptr;
  std::lock_guard<std::mutex> lock(opening);
  drive("cuDevicePrimaryCtxRetain", &context, fixtureDevice());
  drive("cuCtxPushCurrent_v2", context);
}

char *RankOnDevice::allocate(uint64_t bytes) {
  char *address = nullptr;
  makeCurrent();
  std::lock_guard<std::mutex> lock(opening);
  drive("cuMemAllocManaged", &address, size_t(bytes + 1), 1u);
  memory.push_back(address);
  return address;
}
