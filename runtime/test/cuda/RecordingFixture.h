// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tests on the driver that records what it is asked (RecordingDriver.cpp).

#ifndef FP8RT_TEST_RECORDINGFIXTURE_H
#define FP8RT_TEST_RECORDINGFIXTURE_H

#include "DeviceSupport.h"
#include "RecordingDriver.h"

#include <cstdlib>
#include <dlfcn.h>

namespace fp8rt_test {

/// The device "cuda" is the recording driver's. In the end nothing may be left with it.
class WithRecordingDriver : public WithFolder {
protected:
  void SetUp() override {
    WithFolder::SetUp();
    setenv("FP8RT_CUDA_DRIVER", RECORDING_DRIVER, /*overwrite=*/1);
    void *driver = dlopen(RECORDING_DRIVER, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(driver, nullptr) << dlerror();
    failAt = reinterpret_cast<decltype(failAt)>(dlsym(driver, "recordingFailAt"));
    failNext = reinterpret_cast<decltype(failNext)>(dlsym(driver, "recordingFailNext"));
    calls = reinterpret_cast<decltype(calls)>(dlsym(driver, "recordingCalls"));
    reached = reinterpret_cast<decltype(reached)>(dlsym(driver, "recordingReached"));
    failed = reinterpret_cast<decltype(failed)>(dlsym(driver, "recordingFailed"));
    live = reinterpret_cast<decltype(live)>(dlsym(driver, "recordingLive"));
    setVersion = reinterpret_cast<decltype(setVersion)>(dlsym(driver, "recordingSetVersion"));
    failAt(0, 0);
    lost = live();
    library = load(DEVICE_FIXTURE);
    hopper = load(HOPPER_FIXTURE);
  }
  void TearDown() override {
    EXPECT_EQ(live(), lost);
    unsetenv("FP8RT_CUDA_DRIVER");
    WithFolder::TearDown();
  }

  fp8rt_status open(GPU &gpu) { return open(gpu, library); }
  fp8rt_status open(GPU &gpu, const Library &its) {
    fp8rt_gpu *opened = nullptr;
    fp8rt_status status = fp8rt_gpu_open("cuda", its.get(), &opened);
    gpu.reset(opened);
    return status;
  }
  fp8rt_status create(const GPU &gpu, const char *entry, const State &state, Session &session) {
    fp8rt_session *created = nullptr;
    fp8rt_status status = fp8rt_session_create_on(gpu.get(), entry, state.get(), &created);
    session.reset(created);
    return status;
  }

  Library library, hopper;
  int64_t lost = 0; // of contexts that could not be used any more
  decltype(&recordingFailAt) failAt = nullptr;
  decltype(&recordingFailNext) failNext = nullptr;
  decltype(&recordingCalls) calls = nullptr;
  decltype(&recordingReached) reached = nullptr;
  decltype(&recordingFailed) failed = nullptr;
  decltype(&recordingLive) live = nullptr;
  decltype(&recordingSetVersion) setVersion = nullptr;
};

} // namespace fp8rt_test

#endif // FP8RT_TEST_RECORDINGFIXTURE_H
