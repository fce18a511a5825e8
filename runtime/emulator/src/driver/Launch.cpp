// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entry points: kernels, their attributes, and launching them.

#include "Work.h"

#include <algorithm>
#include <cstring>

using namespace fp8emu;
using namespace fp8emu::driver;

namespace {

/// CUlaunchAttributeID, those that change anything here.
enum LaunchAttribute { Cooperative = 2, ClusterDimension = 4 };

CUresult codeOfRefusal(Refusal::Kind kind) {
  switch (kind) {
  case Refusal::Sizes:
    return CUDA_ERROR_INVALID_VALUE;
  case Refusal::Resources:
    return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  case Refusal::ClusterSize:
    return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  case Refusal::NoClusters:
    return CUDA_ERROR_NOT_SUPPORTED;
  case Refusal::CooperativeTooLarge:
    return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  }
  return CUDA_ERROR_UNKNOWN;
}

} // namespace

std::vector<uint8_t> fp8emu::driver::gatherParameters(const FunctionCode &code, void **pointers,
                                                      void **extra) {
  std::vector<uint8_t> bytes(code.parameterBytes);
  if (pointers) {
    for (size_t i = 0; i < code.parameters.size(); ++i) {
      require(pointers[i]);
      std::memcpy(bytes.data() + code.parameters[i].offset, pointers[i], code.parameters[i].bytes);
    }
    return bytes;
  }
  const void *buffer = nullptr;
  size_t size = 0;
  // CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE, CU_LAUNCH_PARAM_END
  for (; extra && reinterpret_cast<uintptr_t>(*extra) != 0; extra += 2) {
    if (reinterpret_cast<uintptr_t>(extra[0]) == 1)
      buffer = extra[1];
    else if (reinterpret_cast<uintptr_t>(extra[0]) == 2)
      size = *static_cast<size_t *>(extra[1]);
    else
      fail(CUDA_ERROR_INVALID_VALUE);
  }
  require(bytes.empty() || (buffer && size >= bytes.size()));
  if (!bytes.empty())
    std::memcpy(bytes.data(), buffer, bytes.size());
  return bytes;
}

void fp8emu::driver::checkSizes(Driver &driver, const KernelHandle &kernel, LaunchConfig &config) {
  const Context &context = driver.current();
  const Context *home = kernel.module->context;
  require(!home || home == &context, CUDA_ERROR_INVALID_HANDLE);
  const Chip &chip = driver.chip(context.device);
  // A library may be for other devices than this one.
  require(runs(chip, kernel.program().tree->target), CUDA_ERROR_NO_BINARY_FOR_GPU);
  auto refusal = refuse(chip, *kernel.loaded, kernel.allowance, config);
  if (!refusal)
    return;
  driver.report("launch of " + kernel.name + " refused: " + refusal->message);
  fail(codeOfRefusal(refusal->kind));
}

static CUresult launch(CUfunction function, LaunchConfig config, CUstream stream, void **pointers,
                       void **extra) {
  Work work;
  CUresult code = enter([&](Driver &driver) {
    Context &context = driver.current();
    require(isDefault(stream) || driver.check(stream).context == &context, CUDA_ERROR_INVALID_HANDLE);
    checkSizes(driver, driver.check(function), config);
    config.parameters = gatherParameters(function->code(), pointers, extra);
    work.kind = Work::Kernel;
    work.kernel = function;
    work.config = std::move(config);
  });
  return code == CUDA_SUCCESS ? submit(stream, std::move(work)) : code;
}

FP8EMU_API CUresult cuLaunchKernel(CUfunction function, unsigned gridX, unsigned gridY, unsigned gridZ,
                                   unsigned blockX, unsigned blockY, unsigned blockZ, unsigned shared,
                                   CUstream stream, void **pointers, void **extra) {
  LaunchConfig config;
  config.grid = {gridX, gridY, gridZ};
  config.block = {blockX, blockY, blockZ};
  config.dynamicShared = shared;
  return launch(function, std::move(config), stream, pointers, extra);
}

FP8EMU_API CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned gridX, unsigned gridY,
                                              unsigned gridZ, unsigned blockX, unsigned blockY,
                                              unsigned blockZ, unsigned shared, CUstream stream,
                                              void **pointers) {
  LaunchConfig config;
  config.grid = {gridX, gridY, gridZ};
  config.block = {blockX, blockY, blockZ};
  config.dynamicShared = shared;
  config.cooperative = true;
  return launch(function, std::move(config), stream, pointers, nullptr);
}

FP8EMU_API CUresult cuLaunchKernelEx(const CUlaunchConfig *wanted, CUfunction function, void **pointers,
                                     void **extra) {
  if (!wanted || (wanted->numAttrs && !wanted->attrs))
    return CUDA_ERROR_INVALID_VALUE;
  LaunchConfig config;
  config.grid = {wanted->gridDimX, wanted->gridDimY, wanted->gridDimZ};
  config.block = {wanted->blockDimX, wanted->blockDimY, wanted->blockDimZ};
  config.dynamicShared = wanted->sharedMemBytes;
  for (unsigned i = 0; i < wanted->numAttrs; ++i) {
    const CUlaunchAttribute &attribute = wanted->attrs[i];
    if (attribute.id == Cooperative)
      config.cooperative = attribute.value.flag;
    else if (attribute.id == ClusterDimension)
      config.cluster = {attribute.value.clusterDim.x, attribute.value.clusterDim.y,
                        attribute.value.clusterDim.z};
  }
  return launch(function, std::move(config), wanted->hStream, pointers, extra);
}

// CUfunction_attribute by number.
enum FunctionAttribute {
  MaxThreads,
  SharedSize,
  ConstSize,
  LocalSize,
  Registers,
  PtxVersion,
  BinaryVersion,
  CacheMode,
  MaxDynamicShared,
  Carveout,
  ClusterMustBeSet,
  ClusterWidth,
  ClusterHeight,
  ClusterDepth,
  NonPortableCluster,
  ClusterScheduling,
  kFunctionAttributes
};

static int functionAttribute(const KernelHandle &kernel, int which) {
  const Program &program = kernel.program();
  const ptx::Function &tree = *kernel.code().tree;
  switch (which) {
  case MaxThreads: {
    uint32_t most = tree.maxThreads[0] * std::max(tree.maxThreads[1], 1u) * std::max(tree.maxThreads[2], 1u);
    return most ? int(most) : 1024;
  }
  case SharedSize:
    return int(kernel.code().staticSharedBytes);
  case LocalSize:
    return int(kernel.code().frameBytes);
  case Registers:
    return int(kernel.code().registers);
  // The architecture that the PTX is for, as in 89; programs choose their kernels by it.
  case PtxVersion:
  case BinaryVersion:
    return int(std::strtol(program.tree->target.c_str() + 3, nullptr, 10));
  case MaxDynamicShared:
    return int(kernel.allowance.dynamicShared);
  case ClusterMustBeSet:
    return tree.requiredCluster[0] != 0;
  case ClusterWidth:
  case ClusterHeight:
  case ClusterDepth:
    return tree.requiredCluster[0] ? int(std::max(tree.requiredCluster[which - ClusterWidth], 1u)) : 0;
  case NonPortableCluster:
    return kernel.allowance.nonPortableClusters;
  default:
    return 0;
  }
}

FP8EMU_API CUresult cuFuncGetAttribute(int *value, int which, CUfunction function) {
  return enter([=](Driver &driver) {
    require(value && which >= 0 && which < kFunctionAttributes);
    *value = functionAttribute(driver.check(function), which);
  });
}

void fp8emu::driver::setAttribute(const Chip &chip, KernelHandle &kernel, int which, int value) {
  switch (which) {
  case MaxDynamicShared:
    require(value >= 0 && uint64_t(value) + kernel.code().staticSharedBytes <= uint64_t(chip.sharedPerBlock));
    kernel.allowance.dynamicShared = uint32_t(value);
    return;
  case NonPortableCluster:
    kernel.allowance.nonPortableClusters = value != 0;
    return;
  // Hints.
  case Carveout:
  case ClusterScheduling:
    return;
  // A cluster is given by the launch or by the PTX.
  case ClusterWidth:
  case ClusterHeight:
  case ClusterDepth:
    fail(CUDA_ERROR_NOT_SUPPORTED);
  default:
    fail(CUDA_ERROR_INVALID_VALUE);
  }
}

FP8EMU_API CUresult cuFuncSetAttribute(CUfunction function, int which, int value) {
  return enter([=](Driver &driver) {
    setAttribute(driver.chip(driver.current().device), driver.check(function), which, value);
  });
}

FP8EMU_API CUresult cuFuncSetCacheConfig(CUfunction function, int) {
  return enter([=](Driver &driver) { driver.check(function); });
}

FP8EMU_API CUresult cuFuncGetModule(CUmodule *module, CUfunction function) {
  return enter([=](Driver &driver) {
    require(module);
    *module = driver.check(function).module;
  });
}

FP8EMU_API CUresult cuFuncGetName(const char **name, CUfunction function) {
  return enter([=](Driver &driver) {
    require(name);
    *name = driver.check(function).name.c_str();
  });
}

FP8EMU_API CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *bytes) {
  return enter([=](Driver &driver) {
    driver.check(function);
    require(offset && index < function->code().parameters.size());
    *offset = function->code().parameters[index].offset;
    if (bytes)
      *bytes = function->code().parameters[index].bytes;
  });
}

FP8EMU_API CUresult cuFuncGetParamCount(CUfunction function, size_t *count) {
  return enter([=](Driver &driver) {
    require(count);
    *count = driver.check(function).code().parameters.size();
  });
}

FP8EMU_API CUresult cuFuncSetSharedMemConfig(CUfunction function, int) {
  return enter([=](Driver &driver) { driver.check(function); });
}
FP8EMU_API CUresult cuFuncIsLoaded(int *state, CUfunction function) {
  return enter([=](Driver &driver) {
    require(state);
    driver.check(function);
    *state = 1;
  });
}
FP8EMU_API CUresult cuFuncLoad(CUfunction function) {
  return enter([=](Driver &driver) { driver.check(function); });
}
