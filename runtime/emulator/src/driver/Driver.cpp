// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The driver's state, its settings from the environment, and running kernels.

#include "Driver.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>

using namespace fp8emu;
using namespace fp8emu::driver;

static std::string variable(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

static uint64_t number(const char *name, uint64_t otherwise) {
  std::string text = variable(name);
  char *end = nullptr;
  uint64_t value = std::strtoull(text.c_str(), &end, 0);
  if (*end)
    std::fprintf(stderr, "fp8emu: %s=%s is no number\n", name, text.c_str());
  return text.empty() || *end ? otherwise : value;
}

static std::vector<Chip> chosenChips() {
  std::string wanted = variable("FP8EMU_CHIP");
  if (wanted.empty())
    return knownChips();
  std::vector<Chip> out;
  for (size_t begin = 0; begin <= wanted.size();) {
    size_t end = std::min(wanted.find(',', begin), wanted.size());
    std::string name = wanted.substr(begin, end - begin);
    if (const Chip *chip = findChip(name))
      out.push_back(*chip);
    else
      std::fprintf(stderr, "fp8emu: FP8EMU_CHIP: there is no chip '%s'\n", name.c_str());
    begin = end + 1;
  }
  return out;
}

static TensorSums chosenSums() {
  std::string wanted = variable("FP8EMU_SUMS");
  if (wanted.empty())
    return TensorSums::Hardware;
  if (auto model = findTensorSums(wanted))
    return *model;
  std::fprintf(stderr, "fp8emu: FP8EMU_SUMS=%s is none of hardware, exact, korder\n", wanted.c_str());
  return TensorSums::Hardware;
}

/// FP8EMU_CHECKS: 0 for none, memory for all but data races, 1 for all, strict for all with tensor
/// memory ordered by its own fences alone.
static void chooseChecks(Settings &settings) {
  std::string wanted = variable("FP8EMU_CHECKS");
  settings.checks = wanted != "0";
  settings.races = settings.checks && wanted != "memory";
  settings.tensorFences = wanted == "strict";
  if (!wanted.empty() && wanted != "0" && wanted != "memory" && wanted != "1" && wanted != "strict")
    std::fprintf(stderr, "fp8emu: FP8EMU_CHECKS=%s is none of 0, memory, 1, strict\n", wanted.c_str());
}

/// FP8EMU_FAULTS: whether faults are only to be reported.
static bool choosesReports() {
  std::string wanted = variable("FP8EMU_FAULTS");
  if (!wanted.empty() && wanted != "stop" && wanted != "report")
    std::fprintf(stderr, "fp8emu: FP8EMU_FAULTS=%s is none of stop, report\n", wanted.c_str());
  return wanted == "report";
}

/// The process ends: a status of 0 becomes 1 where there were findings. (The C library goes on with
/// the other functions that are called at the end.)
static void atEnd(int status, void *) {
  if (Driver::get().finish() && status == 0)
    std::exit(1);
}

Driver::Driver() {
  devices = chosenChips();
  settings.seed = number("FP8EMU_SEED", 0);
  chooseChecks(settings);
  settings.threads = unsigned(number("FP8EMU_THREADS", 0));
  settings.sums = chosenSums();
  settings.print = [](const std::string &text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  };
  reportsOnly = choosesReports();
  if (reportsOnly)
    settings.found = [this](const Fault &fault) { report(fault, ""); };
  showsSummary = number("FP8EMU_SUMMARY", 0) != 0;
  if (reportsOnly || showsSummary)
    on_exit(atEnd, nullptr);
  reportFile = variable("FP8EMU_REPORT");
  profileFile = variable("FP8EMU_PROFILE");
  if (!profileFile.empty())
    std::atexit([] { Driver::get().writeProfile(); });
  for (size_t i = 0; i < devices.size(); ++i) {
    auto own = std::make_unique<Context>();
    own->device = int(i);
    own->isPrimary = true;
    primary.push_back(track(std::move(own)));
  }
}

Driver &Driver::get() {
  // Never destroyed: programs call the API from their own destructors.
  static Driver *driver = new Driver();
  return *driver;
}

std::vector<Context *> &fp8emu::driver::contextStack() {
  thread_local std::vector<Context *> stack;
  return stack;
}

Context &Driver::current() {
  auto &stack = contextStack();
  require(!stack.empty() && stack.back(), CUDA_ERROR_INVALID_CONTEXT);
  Context &context = check(stack.back(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  require(!context.isPrimary || context.references > 0, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  require(context.broken == CUDA_SUCCESS, context.broken);
  return context;
}

void Driver::clear(Context &context) {
  // They end together at the end, and take back the handles of their own.
  std::vector<Handle> ended;
  for (auto at = live.begin(); at != live.end();) {
    bool ends = at->second.context == &context;
    if (ends)
      ended.push_back(std::move(at->second));
    at = ends ? live.erase(at) : std::next(at);
  }
  for (auto at = allocations.begin(); at != allocations.end();) {
    bool ends = at->second == &context;
    if (ends)
      memory.release(at->first);
    at = ends ? allocations.erase(at) : std::next(at);
  }
  for (auto at = registered.begin(); at != registered.end();) {
    bool ends = at->second == &context;
    if (ends)
      memory.removeHosts(at->first);
    at = ends ? registered.erase(at) : std::next(at);
  }
}

const Chip &Driver::chip(CUdevice device) {
  require(device >= 0 && size_t(device) < devices.size(), CUDA_ERROR_INVALID_DEVICE);
  return devices[size_t(device)];
}

void Driver::report(const std::string &text) {
  std::fprintf(stderr, "fp8emu: %s\n", text.c_str());
  if (reportFile.empty())
    return;
  if (FILE *file = std::fopen(reportFile.c_str(), "a")) {
    std::fprintf(file, "%s\n", text.c_str());
    std::fclose(file);
  }
}

void Driver::writeProfile() {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  std::string text = profiles.json();
  FILE *file = std::fopen(profileFile.c_str(), "w");
  if (!file || std::fwrite(text.data(), 1, text.size(), file) != text.size())
    std::fprintf(stderr, "fp8emu: FP8EMU_PROFILE=%s cannot be written\n", profileFile.c_str());
  if (file)
    std::fclose(file);
}

void Driver::launch(KernelHandle &kernel, LaunchConfig config) {
  Context &context = current();
  Settings used = settings;
  used.multiprocessors = unsigned(devices[size_t(context.device)].multiprocessors);
  used.stackBytes = context.stackBytes;
  const auto start = std::chrono::steady_clock::now();
  auto fault =
      machine.launch(*kernel.loaded, std::move(config), used, profileFile.empty() ? nullptr : &profiles);
  summary.addLaunch(kernel.name,
                    std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  if (!fault)
    return;
  report(*fault, reportsOnly ? "; the launch ends here, and the process goes on" : "");
  if (!reportsOnly)
    context.broken = codeOf(fault->kind);
}

/// Reports a fault where it is new. With several workers, Settings::found comes from one at a time.
void Driver::report(const Fault &fault, const char *consequence) {
  if (summary.add(fault))
    report(fault.text() + " (FP8EMU_SEED=" + std::to_string(settings.seed) + ")" + consequence);
}

bool Driver::finish() {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  if (showsSummary)
    std::fprintf(stderr, "fp8emu: %s\n", summary.text().c_str());
  return reportsOnly && summary.findings() > 0;
}

CUresult fp8emu::driver::enter(const std::function<void(Driver &)> &body, bool needsInit) {
  Driver &driver = Driver::get();
  std::lock_guard<std::recursive_mutex> lock(driver.mutex);
  try {
    require(driver.initialized || !needsInit, CUDA_ERROR_NOT_INITIALIZED);
    body(driver);
    return CUDA_SUCCESS;
  } catch (const Error &error) {
    return error.code;
  } catch (const std::bad_alloc &) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (const std::exception &error) {
    driver.report(error.what());
    return CUDA_ERROR_UNKNOWN;
  }
}

CUresult fp8emu::driver::codeOf(FaultKind kind) {
  switch (kind) {
  case FaultKind::OutOfBounds:
  case FaultKind::UseAfterFree:
  case FaultKind::ReadOnlyWrite:
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  case FaultKind::Misaligned:
    return CUDA_ERROR_MISALIGNED_ADDRESS;
  case FaultKind::IllegalInstruction:
    return CUDA_ERROR_ILLEGAL_INSTRUCTION;
  case FaultKind::Assertion:
    return CUDA_ERROR_ASSERT;
  case FaultKind::StackOverflow:
    return CUDA_ERROR_HARDWARE_STACK_ERROR;
  case FaultKind::Deadlock:
  case FaultKind::Timeout:
    return CUDA_ERROR_LAUNCH_TIMEOUT;
  case FaultKind::TensorMemoryLeak:
    return CUDA_ERROR_TENSOR_MEMORY_LEAK;
  default:
    return CUDA_ERROR_LAUNCH_FAILED;
  }
}
