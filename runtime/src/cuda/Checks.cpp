// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The kernel of a check, and what it tells of its failure.

#include "Checks.h"

#include <atomic>
#include <new>

using namespace fp8rt;
using namespace fp8rt::cuda;

/// sm_89 is the oldest chip that there is code for; its PTX runs on all later ones. The fence makes the
/// message visible to the host before the context ends.
static constexpr char kKernel[] = R"(.version 7.8
.target sm_89
.address_size 64
.visible .entry fp8rt_check(.param .u64 flag, .param .u64 message, .param .u64 record)
{
  .reg .pred %holds;
  .reg .b32 %byte;
  .reg .b64 %flag, %message, %record;
  ld.param.u64 %flag, [flag];
  ld.u8 %byte, [%flag];
  setp.ne.u32 %holds, %byte, 0;
  @%holds ret;
  ld.param.u64 %message, [message];
  ld.param.u64 %record, [record];
  st.u64 [%record], %message;
  fence.sc.sys;
  trap;
}
)";

Checks::Checks(std::shared_ptr<const Device> device) : device(std::move(device)) {
  const Driver &driver = this->device->driver();
  std::string name = this->device->name();
  try {
    driver.check(driver.moduleLoadDataEx(&module, kKernel, 0, nullptr, nullptr),
                 "the kernel of checks cannot be loaded on " + name);
    driver.check(driver.moduleGetFunction(&kernel, module, "fp8rt_check"), "there is no kernel of checks");
    constexpr unsigned kPortable = 1, kMapped = 2; // CU_MEMHOSTALLOC_PORTABLE, …_DEVICEMAP
    driver.check(driver.memHostAlloc(&record, sizeof(const char *), kPortable | kMapped),
                 "there is no memory of the host for " + name);
    auto *failed = new (record) std::atomic<const char *>(nullptr);
    driver.check(driver.memHostGetDevicePointer(&recordOnDevice, record, 0),
                 name + " does not reach the host's memory");
    driver.lookForChecksAt(failed);
  } catch (...) {
    release();
    throw;
  }
}

Checks::~Checks() {
  device->driver().lookForChecksAt(nullptr);
  if (Entered entered(*device); entered)
    release();
}

void Checks::release() noexcept {
  if (record)
    device->driver().memFreeHost(record);
  if (module)
    device->driver().moduleUnload(module);
}

void Checks::enqueue(const void *flag, const char *message, CUstream stream) const {
  CUdeviceptr flagOnDevice = toAddress(flag), target = recordOnDevice;
  void *parameters[] = {&flagOnDevice, &message, &target};
  CUlaunchConfig config = {};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  const Driver &driver = device->driver();
  driver.check(driver.launchKernelEx(&config, kernel, parameters, nullptr), "a check cannot be launched");
}
