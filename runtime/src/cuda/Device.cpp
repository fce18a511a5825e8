// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Opening and closing devices.

#include "Device.h"

#include "../core/Status.h"

#include <unistd.h>

using namespace fp8rt;
using namespace fp8rt::cuda;

std::string fp8rt::cuda::nameOf(const Driver &driver, CUdevice device) {
  char name[256] = "";
  driver.check(driver.deviceGetName(name, sizeof(name), device), "the GPU does not tell its name");
  return name;
}

Capability fp8rt::cuda::capabilityOf(const Driver &driver, CUdevice device) {
  constexpr int kMajor = 75, kMinor = 76; // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_…
  Capability chip;
  const char *what = "the GPU does not tell its compute capability";
  driver.check(driver.deviceGetAttribute(&chip.major, kMajor, device), what);
  driver.check(driver.deviceGetAttribute(&chip.minor, kMinor, device), what);
  return chip;
}

Device::Device(std::shared_ptr<const Driver> driver, int ordinal)
    : api(std::move(driver)), opener(getpid()), number(ordinal) {
  std::string subject = "GPU " + std::to_string(ordinal);
  api->check(api->deviceGet(&device, ordinal), "there is no " + subject);
  label = nameOf(*api, device);
  chip = capabilityOf(*api, device);
  api->check(api->primaryRetain(&context, device), subject + " (" + label + ") cannot be opened");
  constexpr unsigned kNonBlocking = 1; // no order between this stream and the default one
  try {
    Current current(*this);
    api->check(api->streamCreate(&queue, kNonBlocking, /*priority=*/0),
               subject + " (" + label + ") gives no stream");
  } catch (...) {
    api->primaryRelease(device);
    throw;
  }
}

Device::~Device() {
  if (Entered entered(*this); entered)
    api->streamDestroy(queue);
  if (!isForked())
    api->primaryRelease(device);
}

bool Device::isForked() const { return getpid() != opener; }

void Device::wait(const std::string &what) const { api->check(api->streamSynchronize(queue), what); }

Entered::Entered(const Device &device) noexcept
    : device(device),
      code(device.isForked() ? CUDA_ERROR_NOT_INITIALIZED : device.api->pushCurrent(device.context)) {}

Entered::~Entered() {
  CUcontext popped = nullptr;
  if (code == CUDA_SUCCESS)
    device.api->popCurrent(&popped);
}

Current::Current(const Device &device) : Entered(device) {
  if (device.isForked())
    fail(FP8RT_DEVICE, device.name() + " was opened before this process was forked: " + kForkAdvice);
  device.driver().check(code, "the context of " + device.name() + " is lost");
}
