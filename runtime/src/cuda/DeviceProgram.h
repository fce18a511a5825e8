// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A library whose kernels are loaded on a device.

#ifndef FP8RT_CUDA_DEVICEPROGRAM_H
#define FP8RT_CUDA_DEVICEPROGRAM_H

#include "../program/Library.h"
#include "Checks.h"
#include "DeviceMemory.h"

#include <optional>

namespace fp8rt::cuda {

/// The part that states and sessions on one device share. Only one thread may use it at a time.
class DeviceProgram {
public:
  /// Opens the device `name` ("cuda", "cuda:1" or "emulator") and loads the library's kernels. Of the
  /// emulator's devices it takes the one of the library's chip.
  DeviceProgram(const std::string &name, std::shared_ptr<const Library> library);
  DeviceProgram(const DeviceProgram &) = delete;
  DeviceProgram &operator=(const DeviceProgram &) = delete;
  ~DeviceProgram();

  const std::shared_ptr<const Library> &library() const { return program; }
  const Device &device() const { return *gpu; }
  const std::shared_ptr<DeviceMemory> &memory() const { return buffers; }

  /// A kernel by its number in the library's device code; throws if there is none.
  const fp8rt_device_kernel &kernel(uint32_t number) const;
  CUfunction function(uint32_t number) const { return functions[number]; }
  /// The address of a constant by its number.
  CUdeviceptr symbol(uint32_t number) const;
  /// The checks of work that is not waited for; null if the manifest says that there are none.
  const Checks *checks() const { return ofConditions ? &*ofConditions : nullptr; }

  /// Returns the name of a kernel and the sites that it works for, by its position in the library's list
  /// of kernels, which may be -1.
  std::string describeKernel(uint32_t number, int32_t line) const;

private:
  void load(const fp8rt_device_image &image);
  bool loadMachineCode(const fp8rt_device_image &image);
  void loadText(const fp8rt_device_image &image);
  void findKernels();
  void findSymbols();

  std::shared_ptr<const Library> program;
  std::shared_ptr<const Device> gpu;
  std::shared_ptr<DeviceMemory> buffers;
  CUmodule module = nullptr;
  std::vector<CUfunction> functions;
  std::vector<CUdeviceptr> symbols;
  std::optional<Checks> ofConditions;
};

/// Returns the capability of the GPU `name` ("cuda", "cuda:1") without opening it.
Capability capabilityOfGPU(const std::string &name);

} // namespace fp8rt::cuda

/// The C ABI's handle.
struct fp8rt_gpu {
  std::shared_ptr<const fp8rt::cuda::DeviceProgram> shared;
};

#endif // FP8RT_CUDA_DEVICEPROGRAM_H
