// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Choosing a device and an image for it, and loading the image.

#include "DeviceProgram.h"

#include "../core/Status.h"
#include "../program/Profiler.h"

#include <algorithm>
#include <cctype>

using namespace fp8rt;
using namespace fp8rt::cuda;

namespace {

struct Request {
  Driver::Kind kind = Driver::Kind::GPU;
  int ordinal = 0;
};

Request parseName(const std::string &name) {
  if (name == "emulator")
    return {Driver::Kind::Emulator, 0};
  if (name == "cuda")
    return {};
  std::string digits = name.rfind("cuda:", 0) == 0 ? name.substr(5) : "";
  if (digits.empty() || digits.size() > 4 || digits.find_first_not_of("0123456789") != std::string::npos)
    fail(FP8RT_INVALID_ARGUMENT, "there is no device " + inQuotes(name) + ": use cuda, cuda:N or emulator");
  return {Driver::Kind::GPU, std::stoi(digits)};
}

/// "sm_90a", or "sm_89 and sm_90a".
std::string chipsOf(const fp8rt_device_code &code) {
  std::string chips = code.images[0].chip;
  for (uint32_t i = 1; i < code.num_images; ++i)
    chips += std::string(i + 1 == code.num_images ? " and " : ", ") + code.images[i].chip;
  return chips;
}

/// fp8-compile's targets by capability; empty for a chip that it has no code for.
std::string targetFor(Capability device) {
  for (const char *target : {"sm_89", "sm_90a", "sm_100a", "sm_120a"})
    if (isExactly(device, target))
      return target;
  return "";
}

[[noreturn]] void failForChip(const fp8rt_device_code &code, const std::string &name, Capability device) {
  std::string target = targetFor(device);
  fail(FP8RT_MISMATCH, "the library's kernels are for " + chipsOf(code) + ", " + name + " is " +
                           chipName(device) + ": " +
                           (target.empty() ? "compile the program for a chip that you have"
                                           : "compile the program with --target=" + target));
}

int countDevices(const Driver &driver) {
  int count = 0;
  driver.check(driver.deviceGetCount(&count), "the driver does not count its GPUs");
  return count;
}

void checkOrdinal(const Driver &driver, int ordinal) {
  int count = countDevices(driver);
  if (ordinal >= count)
    fail(FP8RT_NOT_FOUND, "there is no GPU " + std::to_string(ordinal) + ": this machine has " +
                              std::to_string(count) + ", counted from 0");
}

/// The number of the emulator's device for these kernels: one of their very chip, else one that runs them.
int chooseEmulated(const Driver &driver, const fp8rt_device_code &code) {
  int count = countDevices(driver), runsIt = -1;
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    driver.check(driver.deviceGet(&device, i), "the emulator has no device " + std::to_string(i));
    Capability chip = capabilityOf(driver, device);
    const fp8rt_device_image *image = chooseImage(code, chip);
    if (image && isExactly(chip, image->chip))
      return i;
    if (image && runsIt < 0)
      runsIt = i;
  }
  if (runsIt < 0)
    fail(FP8RT_MISMATCH, "the library's kernels are for " + chipsOf(code) +
                             ", which none of the emulator's devices runs: FP8EMU_CHIP chooses them");
  return runsIt;
}

std::shared_ptr<const Device> openDevice(const Request &request, const fp8rt_device_code &code) {
  auto driver = std::make_shared<const Driver>(request.kind);
  if (request.kind == Driver::Kind::Emulator)
    return std::make_shared<const Device>(driver, chooseEmulated(*driver, code));
  checkOrdinal(*driver, request.ordinal);
  return std::make_shared<const Device>(driver, request.ordinal);
}

/// As in "12.4", of 12040.
std::string versionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// The options by which a driver writes the reason of an error to a buffer.
struct JitLog {
  template <size_t Size>
  explicit JitLog(char (&buffer)[Size]) : values{buffer, reinterpret_cast<void *>(Size - 1)} {}

  static constexpr unsigned kCount = 2;
  int options[kCount] = {5, 6}; // CU_JIT_ERROR_LOG_BUFFER, …_SIZE_BYTES
  void *values[kCount];
};

void checkDriver(const Driver &driver, uint32_t ptxVersion) {
  int needed = driverForPtx(ptxVersion), present = driver.version();
  if (present < needed)
    fail(FP8RT_DEVICE, "the CUDA driver is of version " + versionText(present) + ", the library's PTX " +
                           std::to_string(ptxVersion / 10) + "." + std::to_string(ptxVersion % 10) +
                           " needs " + versionText(needed) + " or newer: update the driver");
}

} // namespace

Capability fp8rt::cuda::capabilityOfGPU(const std::string &name) {
  Request request = parseName(name);
  if (request.kind == Driver::Kind::Emulator)
    fail(FP8RT_INVALID_ARGUMENT, "the emulator has devices of all chips: say which chip you mean");
  Driver driver(request.kind);
  checkOrdinal(driver, request.ordinal);
  CUdevice device = 0;
  driver.check(driver.deviceGet(&device, request.ordinal),
               "GPU " + std::to_string(request.ordinal) + " is not found");
  return capabilityOf(driver, device);
}

DeviceProgram::DeviceProgram(const std::string &name, std::shared_ptr<const Library> library)
    : program(std::move(library)) {
  Request request = parseName(name);
  const fp8rt_device_code *code = program->deviceCode();
  if (!code)
    fail(FP8RT_UNSUPPORTED, "the library was compiled for the CPU: run it with --device=cpu, or compile the "
                            "program with --target=sm_89, sm_90a, sm_100a or sm_120a");
  gpu = openDevice(request, *code);
  const fp8rt_device_image *image = chooseImage(*code, gpu->capability());
  if (!image)
    failForChip(*code, gpu->name(), gpu->capability());
  buffers = std::make_shared<DeviceMemory>(gpu, /*keepsReleased=*/request.kind == Driver::Kind::GPU);
  Current current(*gpu);
  load(*image);
  try {
    findKernels();
    findSymbols();
    for (const Entry &entry : program->manifest().entries)
      if (entry.checks && !ofConditions)
        ofConditions.emplace(gpu);
  } catch (...) {
    gpu->driver().moduleUnload(module);
    throw;
  }
}

DeviceProgram::~DeviceProgram() {
  Entered entered(*gpu);
  if (!entered)
    return;
  gpu->driver().synchronize(); // kernels in a stream of the caller may run
  gpu->driver().moduleUnload(module);
}

void DeviceProgram::load(const fp8rt_device_image &image) {
  if (image.cubin && loadMachineCode(image))
    return;
  if (!image.ptx)
    fail(FP8RT_DEVICE, gpu->name() + " does not load the machine code of the library for " + image.chip +
                           ": compile the program again, with PTX");
  checkDriver(gpu->driver(), image.ptx_version);
  loadText(image);
}

/// Returns false if the device or the driver is not one for this machine code; PTX may do then.
bool DeviceProgram::loadMachineCode(const fp8rt_device_image &image) {
  char reason[256] = ""; // Not for users: where it is left out, the emulator writes it to standard error.
  JitLog log(reason);
  CUresult code =
      gpu->driver().moduleLoadDataEx(&module, image.cubin, JitLog::kCount, log.options, log.values);
  if (code == CUDA_ERROR_OUT_OF_MEMORY)
    gpu->driver().check(code, "the kernels cannot be loaded on " + gpu->name());
  return code == CUDA_SUCCESS;
}

void DeviceProgram::loadText(const fp8rt_device_image &image) {
  char text[4096] = "";
  JitLog log(text);
  CUresult code = gpu->driver().moduleLoadDataEx(&module, image.ptx, JitLog::kCount, log.options, log.values);
  if (code == CUDA_SUCCESS)
    return;
  std::string reason = text;
  while (!reason.empty() && std::isspace(static_cast<unsigned char>(reason.back())))
    reason.pop_back();
  gpu->driver().check(code, "the driver cannot compile the library's kernels for " + gpu->name() +
                                (reason.empty() ? "" : " (" + reason + ")"));
}

void DeviceProgram::findKernels() {
  constexpr int kMaxDynamicShared = 8; // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
  const Driver &driver = gpu->driver();
  const fp8rt_device_code &code = *program->deviceCode();
  for (uint32_t i = 0; i < code.num_kernels; ++i) {
    const fp8rt_device_kernel &kernel = code.kernels[i];
    std::string subject = "kernel " + inQuotes(kernel.name);
    CUfunction function = nullptr;
    driver.check(driver.moduleGetFunction(&function, module, kernel.name),
                 subject + " of the library is not in its device code");
    if (kernel.shared_bytes)
      driver.check(
          driver.funcSetAttribute(function, kMaxDynamicShared, static_cast<int>(kernel.shared_bytes)),
          subject + " does not get " + std::to_string(kernel.shared_bytes) + " bytes of shared memory on " +
              gpu->name());
    functions.push_back(function);
  }
}

/// All at once: a driver may have to load something for it, which it does not do during a capture.
void DeviceProgram::findSymbols() {
  const fp8rt_device_code &code = *program->deviceCode();
  for (uint32_t i = 0; i < code.num_symbols; ++i) {
    CUdeviceptr address = 0;
    size_t bytes = 0;
    gpu->driver().check(gpu->driver().moduleGetGlobal(&address, &bytes, module, code.symbols[i]),
                        "constant " + inQuotes(code.symbols[i]) +
                            " of the library is not in its device code");
    symbols.push_back(address);
  }
}

const fp8rt_device_kernel &DeviceProgram::kernel(uint32_t number) const {
  if (number >= functions.size())
    fail(FP8RT_CALL_FAILED, "the compiled code launches kernel " + std::to_string(number) + " of " +
                                std::to_string(functions.size()));
  return program->deviceCode()->kernels[number];
}

CUdeviceptr DeviceProgram::symbol(uint32_t number) const {
  if (number >= symbols.size())
    fail(FP8RT_CALL_FAILED, "the compiled code asks for constant " + std::to_string(number) + " of " +
                                std::to_string(symbols.size()));
  return symbols[number];
}

std::string DeviceProgram::describeKernel(uint32_t number, int32_t line) const {
  std::string text = "kernel " + inQuotes(program->deviceCode()->kernels[number].name);
  if (line < 0 || !program->kernelsText())
    return text;
  Profiler list(program);
  if (static_cast<size_t>(line) >= list.list().size())
    return text;
  std::string sites;
  for (const char *site : list.list()[static_cast<size_t>(line)].sites)
    sites += (sites.empty() ? "" : ", ") + std::string(site);
  return sites.empty() ? text : text + " of " + sites;
}
