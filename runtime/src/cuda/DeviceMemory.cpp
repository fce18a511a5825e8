// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Allocating a device's memory, and moving data.

#include "DeviceMemory.h"

#include "../core/Status.h"

#include <cstdio>

using namespace fp8rt;
using namespace fp8rt::cuda;

DeviceMemory::DeviceMemory(std::shared_ptr<const Device> device, bool keepsReleased)
    : device(std::move(device)), keeps(keepsReleased) {}

DeviceMemory::~DeviceMemory() { trim(); }

/// As in "1.5 GiB".
static std::string describeBytes(uint64_t bytes) {
  static constexpr const char *kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = double(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  char text[64];
  std::snprintf(text, sizeof(text), unit ? "%.1f %s" : "%.0f %s", value, kUnits[unit]);
  return text;
}

void DeviceMemory::failToAllocate(CUresult code, uint64_t bytes) const {
  const Driver &driver = device->driver();
  std::string what = device->name() + " has no " + describeBytes(bytes) + " of memory left";
  size_t free = 0, total = 0;
  if (code == CUDA_ERROR_OUT_OF_MEMORY && driver.memGetInfo(&free, &total) == CUDA_SUCCESS)
    fail(FP8RT_OUT_OF_MEMORY,
         what + ": " + describeBytes(free) + " of " + describeBytes(total) + " are free");
  driver.check(code, what);
  fail(FP8RT_INTERNAL, what);
}

void DeviceMemory::expectUses() noexcept {
  std::lock_guard<std::mutex> lock(mutex);
  hasUses = true;
}

void *DeviceMemory::takeReleased(uint64_t bytes) {
  auto found = released.lower_bound(bytes);
  if (found == released.end() || found->first > 2 * bytes)
    return nullptr;
  if (hasUses) {
    Current current(*device);
    device->driver().check(device->driver().synchronize(), "work on " + device->name() + " failed");
    hasUses = false;
  }
  void *data = found->second;
  inUse[data] = found->first;
  released.erase(found);
  return data;
}

void *DeviceMemory::allocate(uint64_t bytes, uint64_t alignment) {
  if (alignment > kAlignment)
    fail(FP8RT_UNSUPPORTED, "memory of a device is aligned to " + std::to_string(kAlignment) +
                                " bytes, not " + std::to_string(alignment));
  std::lock_guard<std::mutex> lock(mutex);
  if (void *data = takeReleased(bytes))
    return data;
  Current current(*device);
  CUdeviceptr address = 0;
  CUresult code = device->driver().memAlloc(&address, bytes);
  if (code == CUDA_ERROR_OUT_OF_MEMORY && !released.empty()) {
    trim();
    code = device->driver().memAlloc(&address, bytes);
  }
  if (code != CUDA_SUCCESS)
    failToAllocate(code, bytes);
  inUse[toPointer(address)] = bytes;
  return toPointer(address);
}

void DeviceMemory::release(void *data) noexcept {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = inUse.find(data);
  if (keeps)
    released.emplace(found->second, data);
  else
    giveBack(data);
  inUse.erase(found);
}

void DeviceMemory::giveBack(void *data) noexcept {
  if (Entered entered(*device); entered)
    device->driver().memFree(toAddress(data));
}

void DeviceMemory::trim() noexcept {
  for (auto [bytes, data] : released)
    giveBack(data);
  released.clear();
}

void DeviceMemory::write(void *target, const void *host, uint64_t bytes) {
  Current current(*device);
  device->driver().check(device->driver().copyToDevice(toAddress(target), host, bytes, device->stream()),
                         "data cannot be copied to " + device->name());
  device->wait("data cannot be copied to " + device->name());
}

void DeviceMemory::read(void *host, const void *source, uint64_t bytes) {
  Current current(*device);
  device->driver().check(device->driver().copyToHost(host, toAddress(source), bytes, device->stream()),
                         "data cannot be copied from " + device->name());
  device->wait("data cannot be copied from " + device->name());
}

// Copies and zeros are waited for as well: the next user may be in a stream of the caller.
void DeviceMemory::copy(void *target, const void *source, uint64_t bytes) {
  Current current(*device);
  device->driver().check(
      device->driver().copyOnDevice(toAddress(target), toAddress(source), bytes, device->stream()),
      "data cannot be copied on " + device->name());
  device->wait("data cannot be copied on " + device->name());
}

void DeviceMemory::zero(void *target, uint64_t bytes) {
  Current current(*device);
  device->driver().check(device->driver().setBytes(toAddress(target), 0, bytes, device->stream()),
                         "memory of " + device->name() + " cannot be set to zero");
  device->wait("memory of " + device->name() + " cannot be set to zero");
}
