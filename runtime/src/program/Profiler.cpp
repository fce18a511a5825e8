// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parses the list of kernels, adds up their times, and the C ABI of profiler.h.

#include "Profiler.h"
#include "../core/Status.h"

#include <algorithm>
#include <nlohmann/json.hpp>

using namespace fp8rt;
using nlohmann::json;

Profiler::Profiler(std::shared_ptr<const Library> library)
    : fp8rt_profile{recordKernel}, program(std::move(library)) {
  if (!program->kernelsText())
    fail(FP8RT_UNSUPPORTED, "the library has no list of kernels: compile the program again");
  try {
    parse();
  } catch (const json::exception &error) {
    fail(FP8RT_CORRUPT, std::string("the library's list of kernels: ") + error.what());
  }
}

/// A count of the list; -1 for null.
static int64_t countOf(const json &kernel, const char *key) {
  const json &value = kernel.at(key);
  return value.is_null() ? -1 : value.get<int64_t>();
}

void Profiler::parse() {
  json list = json::parse(program->kernelsText());
  sites = list.at("sites").get<std::vector<std::string>>();
  for (const json &described : list.at("kernels")) {
    ProfiledKernel kernel;
    kernel.name = described.at("name").get<std::string>();
    kernel.kind = described.at("kind").get<std::string>();
    for (size_t site : described.at("sites").get<std::vector<size_t>>()) {
      if (site >= sites.size())
        fail(FP8RT_CORRUPT, "the library's list of kernels has no site " + std::to_string(site));
      kernel.sites.push_back(sites[site].c_str());
    }
    kernel.bytesRead = countOf(described, "read");
    kernel.bytesWritten = countOf(described, "written");
    kernel.operations = countOf(described, "operations");
    kernels.push_back(std::move(kernel));
  }
}

Profiler::Clock::duration Profiler::takeTime() {
  Clock::time_point now = Clock::now();
  Clock::duration taken = std::max(now - last, Clock::duration(0)); // devices have clocks of their own
  last = now;
  return taken;
}

void Profiler::recordKernel(fp8rt_profile *profile, int32_t kernel) {
  auto &self = static_cast<Profiler &>(*profile);
  Clock::duration taken = self.takeTime();
  if (!self.isKernel(kernel)) {
    self.outside += taken;
    return;
  }
  self.kernels[static_cast<size_t>(kernel)].time += taken;
  ++self.kernels[static_cast<size_t>(kernel)].calls;
}

void Profiler::addKernel(int32_t index, double seconds) {
  if (!isKernel(index))
    return;
  auto taken = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  kernels[static_cast<size_t>(index)].time += taken;
  ++kernels[static_cast<size_t>(index)].calls;
  last += taken; // what is left of the step is outside kernels
}

void Profiler::reset() {
  outside = Clock::duration(0);
  for (ProfiledKernel &kernel : kernels) {
    kernel.calls = 0;
    kernel.time = Clock::duration(0);
  }
}

fp8rt_status fp8rt_profiler_create(const fp8rt_library *library, fp8rt_profiler **out_profiler) {
  return guarded([&] {
    fp8rt_profiler *&out = required(out_profiler, "out_profiler");
    out = new fp8rt_profiler{std::make_shared<Profiler>(required(library, "library").shared)};
  });
}

void fp8rt_profiler_destroy(fp8rt_profiler *profiler) { delete profiler; }

fp8rt_profile *fp8rt_profiler_begin(fp8rt_profiler *profiler) {
  profiler->shared->begin();
  return profiler->shared.get();
}

void fp8rt_profiler_end(fp8rt_profiler *profiler) { profiler->shared->end(); }

void fp8rt_profiler_reset(fp8rt_profiler *profiler) {
  if (profiler)
    profiler->shared->reset();
}

uint32_t fp8rt_profiler_num_kernels(const fp8rt_profiler *profiler) {
  return profiler ? static_cast<uint32_t>(profiler->shared->list().size()) : 0;
}

fp8rt_status fp8rt_profiler_kernel(const fp8rt_profiler *profiler, uint32_t index, fp8rt_kernel *out_kernel) {
  return guarded([&] {
    const std::vector<ProfiledKernel> &kernels = required(profiler, "profiler").shared->list();
    fp8rt_kernel &out = required(out_kernel, "out_kernel");
    if (index >= kernels.size())
      fail(FP8RT_INVALID_ARGUMENT, "kernel " + std::to_string(index) + " is out of range");
    const ProfiledKernel &kernel = kernels[index];
    out.name = kernel.name.c_str();
    out.kind = kernel.kind.c_str();
    out.sites = kernel.sites.data();
    out.num_sites = static_cast<uint32_t>(kernel.sites.size());
    out.bytes_read = kernel.bytesRead;
    out.bytes_written = kernel.bytesWritten;
    out.operations = kernel.operations;
    out.calls = kernel.calls;
    out.seconds = std::chrono::duration<double>(kernel.time).count();
  });
}

double fp8rt_profiler_outside_seconds(const fp8rt_profiler *profiler) {
  return profiler ? profiler->shared->outsideSeconds() : 0;
}
