// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entry points: modules, their kernels and variables.

#include "Driver.h"
#include "image/Image.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

using namespace fp8emu;
using namespace fp8emu::driver;

namespace {

/// CUjit_option: the limit on registers; where an error is written, and how much fits.
enum JitOption { MaxRegisters = 0, ErrorBuffer = 5, ErrorBytes = 6 };

} // namespace

void JitOptions::log(const std::string &text) const {
  if (!buffer || !bytes)
    return;
  size_t count = std::min(text.size(), bytes - 1);
  std::memcpy(buffer, text.data(), count);
  buffer[count] = '\0';
}

JitOptions fp8emu::driver::readJitOptions(unsigned count, const int *options, void **values) {
  JitOptions out;
  for (unsigned i = 0; i < count; ++i) {
    // Numbers lie in the pointer itself.
    const auto number = reinterpret_cast<uintptr_t>(values[i]);
    if (options[i] == ErrorBuffer)
      out.buffer = static_cast<char *>(values[i]);
    else if (options[i] == ErrorBytes)
      out.bytes = size_t(number);
    else if (options[i] == MaxRegisters)
      out.maxRegisters = unsigned(number);
  }
  return out;
}

/// Whether the context's device runs a module, or any, of a library.
static bool isForUs(Driver &driver, const std::string &target, const Context *context) {
  if (context)
    return runs(driver.chip(context->device), target);
  return std::any_of(driver.devices.begin(), driver.devices.end(),
                     [&](const Chip &chip) { return runs(chip, target); });
}

std::string fp8emu::driver::readFile(const char *path) {
  std::ifstream file(path, std::ios::binary);
  require(file.good(), CUDA_ERROR_FILE_NOT_FOUND);
  return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
}

/// The reason goes to the log or, where the program takes none, to standard error: some try one image after
/// the other.
[[noreturn]] static void refuseImage(Driver &driver, const JitOptions &options, const ImageError &error) {
  if (options.buffer)
    options.log(error.what());
  else
    driver.report(error.what());
  fail(CUDA_ERROR_NO_BINARY_FOR_GPU);
}

Image fp8emu::driver::readImage(Driver &driver, const void *bytes, size_t size, const JitOptions &options,
                                const Context *context) {
  require(bytes);
  try {
    return readImage(static_cast<const char *>(bytes), size,
                     [&](const std::string &target) { return isForUs(driver, target, context); });
  } catch (const ImageError &error) {
    refuseImage(driver, options, error);
  }
}

LoadedModule *fp8emu::driver::loadModule(Driver &driver, const void *bytes, const JitOptions &options,
                                         Context *context) {
  const Image image = readImage(driver, bytes, kUnknownSize, options, context);
  auto module = std::make_unique<LoadedModule>();
  module->context = context;
  try {
    Source source{image.ptx};
    if (!isForUs(driver, source.target(), context)) {
      options.log("the module is for " + source.target() + ", which the device does not run");
      fail(CUDA_ERROR_NO_BINARY_FOR_GPU);
    }
    module->module = driver.machine.load(std::move(source), options.maxRegisters);
    checkIsCurrent(image, [&](const std::string &name) { return module->module->find(name); });
  } catch (const PtxError &error) {
    options.log(error.what());
    driver.report(std::string("PTX line ") + error.what());
    fail(CUDA_ERROR_INVALID_PTX);
  } catch (const ImageError &error) {
    refuseImage(driver, options, error);
  }
  for (const fp8emu::Kernel &loaded : module->module->kernels()) {
    KernelHandle &kernel = module->kernels[loaded.name];
    kernel.module = module.get();
    kernel.loaded = &loaded;
    kernel.name = loaded.name;
    if (loaded.code->setmaxnreg == Setmaxnreg::Ignored)
      driver.report(
          "setmaxnreg of " + loaded.name +
          " is ignored: without .maxnreg, or .maxntid and .minnctapersm, the number of registers that it "
          "begins with is not known");
  }
  return driver.track(std::move(module), context);
}

FP8EMU_API CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, int *options,
                                       void **values) {
  return enter([=](Driver &driver) {
    require(module && (count == 0 || (options && values)));
    Context &context = driver.current();
    *module = loadModule(driver, image, readJitOptions(count, options, values), &context);
  });
}

FP8EMU_API CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  return cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}

FP8EMU_API CUresult cuModuleLoad(CUmodule *module, const char *path) {
  return enter([=](Driver &driver) {
    require(module && path);
    Context &context = driver.current();
    *module = loadModule(driver, readFile(path).c_str(), JitOptions(), &context);
  });
}

FP8EMU_API CUresult cuModuleUnload(CUmodule module) {
  return enter([=](Driver &driver) {
    driver.check(module);
    driver.drop(module);
  });
}

FP8EMU_API CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  return enter([=](Driver &driver) {
    require(function && name);
    auto &kernels = driver.check(module).kernels;
    auto found = kernels.find(name);
    require(found != kernels.end(), CUDA_ERROR_NOT_FOUND);
    *function = &found->second;
  });
}

FP8EMU_API CUresult cuModuleGetFunctionCount(unsigned *count, CUmodule module) {
  return enter([=](Driver &driver) {
    require(count);
    *count = unsigned(driver.check(module).kernels.size());
  });
}

FP8EMU_API CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned count, CUmodule module) {
  return enter([=](Driver &driver) {
    require(functions);
    unsigned next = 0;
    for (auto &[name, kernel] : driver.check(module).kernels)
      if (next < count)
        functions[next++] = &kernel;
  });
}

FP8EMU_API CUresult cuModuleGetLoadingMode(int *mode) {
  return enter([=](Driver &) {
    require(mode);
    *mode = 1;
  });
}

FP8EMU_API CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule module,
                                         const char *name) {
  return enter([=](Driver &driver) {
    require(name);
    const Program &program = driver.check(module).module->program();
    auto found = program.variableByName.find(name);
    require(found != program.variableByName.end(), CUDA_ERROR_NOT_FOUND);
    const ptx::Variable &variable = program.tree->variables[found->second];
    require(variable.space == ptx::Space::Global || variable.space == ptx::Space::Const,
            CUDA_ERROR_NOT_FOUND);
    if (address)
      *address = program.variableAddresses[found->second];
    if (bytes)
      *bytes = variable.bytes();
  });
}

/// Some programs give PTX text to this one too.
FP8EMU_API CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image) {
  return cuModuleLoadData(module, image);
}
