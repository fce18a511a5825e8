// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Adds up what the profiler measured, and prints it.

#include "Profile.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

#include <tuple>

using namespace fp8run;
using llvm::format;

/// The name and the kind of the line for code outside kernels.
static constexpr llvm::StringLiteral kOutside = "outside kernels";
/// The table has this many lines; those after it become one.
static constexpr size_t kMostLines = 40;
static constexpr size_t kMostSites = 3;

static std::optional<double> addKnown(std::optional<double> a, std::optional<double> b) {
  return a && b ? std::optional<double>(*a + *b) : std::nullopt;
}

void ProfileLine::add(const ProfileLine &other) {
  calls += other.calls;
  milliseconds += other.milliseconds;
  read = addKnown(read, other.read);
  written = addKnown(written, other.written);
  operations = addKnown(operations, other.operations);
}

std::optional<double> ProfileLine::getGFlops() const {
  return operations && milliseconds > 0 ? std::optional<double>(*operations / milliseconds / 1e6)
                                        : std::nullopt;
}

std::optional<double> ProfileLine::getGBytes() const {
  std::optional<double> bytes = addKnown(read, written);
  return bytes && milliseconds > 0 ? std::optional<double>(*bytes / milliseconds / 1e6) : std::nullopt;
}

std::optional<double> ProfileLine::getShareOfLimit(const MachineLimits &limits) const {
  if (!getGFlops() || !getGBytes())
    return std::nullopt;
  return std::max(*getGFlops() * 1e9 / limits.operationsPerSecond,
                  *getGBytes() * 1e9 / limits.bytesPerSecond);
}

void Profile::addStep() {
  Step step;
  for (uint32_t i = 0; i < fp8rt_profiler_num_kernels(profiler); ++i) {
    fp8rt_kernel kernel = {};
    fp8rt_profiler_kernel(profiler, i, &kernel);
    step.calls.push_back(kernel.calls);
    step.seconds.push_back(kernel.seconds);
  }
  step.seconds.push_back(fp8rt_profiler_outside_seconds(profiler));
  for (double seconds : step.seconds)
    step.total += seconds;
  steps.push_back(std::move(step));
}

ProfileLine Profile::describeKernel(uint32_t index) const {
  fp8rt_kernel kernel = {};
  fp8rt_profiler_kernel(profiler, index, &kernel);
  ProfileLine line;
  line.name = kernel.name;
  line.kind = kernel.kind;
  line.sites.assign(kernel.sites, kernel.sites + kernel.num_sites);
  for (const Step &step : steps) {
    line.calls += double(step.calls[index]); // exact, so that equal numbers have an exact mean
    line.milliseconds += 1e3 * step.seconds[index] / double(steps.size());
  }
  line.calls /= double(steps.size());
  auto perStep = [&](int64_t count) {
    return count < 0 ? std::nullopt : std::optional<double>(double(count) * line.calls);
  };
  line.read = perStep(kernel.bytes_read);
  line.written = perStep(kernel.bytes_written);
  line.operations = perStep(kernel.operations);
  return line;
}

/// A line to which others can be added.
static ProfileLine emptyLine(llvm::StringRef name, llvm::StringRef kind) {
  ProfileLine line;
  line.name = name.str();
  line.kind = kind.str();
  line.read = line.written = line.operations = 0;
  return line;
}

static void sortByTime(std::vector<ProfileLine> &lines) {
  llvm::sort(lines, [](const ProfileLine &a, const ProfileLine &b) {
    return std::tie(b.milliseconds, a.name) < std::tie(a.milliseconds, b.name);
  });
}

void Profile::finish(const std::string &deviceName, std::optional<MachineLimits> measured) {
  device = deviceName;
  limits = measured;
  measuredSteps = steps.size();
  llvm::sort(steps, [](const Step &a, const Step &b) { return a.total < b.total; });
  steps.resize((steps.size() + 1) / 2);

  ProfileLine outside;
  outside.name = outside.kind = kOutside.str();
  for (const Step &step : steps)
    outside.milliseconds += 1e3 * step.seconds.back() / double(steps.size());
  lines.push_back(outside);
  for (uint32_t i = 0; i < fp8rt_profiler_num_kernels(profiler); ++i)
    if (ProfileLine line = describeKernel(i); line.calls > 0)
      lines.push_back(std::move(line));
  sortByTime(lines);
  whole = emptyLine("a step", "");
  for (const ProfileLine &line : lines)
    if (line.kind == kOutside)
      whole.milliseconds += line.milliseconds;
    else
      whole.add(line);
}

std::vector<ProfileLine> Profile::sumUpKinds() const {
  llvm::MapVector<llvm::StringRef, ProfileLine> kinds;
  for (const ProfileLine &line : lines) {
    auto [found, isNew] = kinds.try_emplace(line.kind, emptyLine(line.kind, line.kind));
    if (line.kind == kOutside)
      found->second = line;
    else
      found->second.add(line);
  }
  std::vector<ProfileLine> sums;
  for (auto &[kind, line] : kinds)
    sums.push_back(line);
  sortByTime(sums);
  return sums;
}

std::optional<double> Profile::getShareOfLimit(const ProfileLine &line) const {
  return limits ? line.getShareOfLimit(*limits) : std::nullopt;
}

static void printNumber(llvm::raw_ostream &os, std::optional<double> value, const char *unit = "") {
  if (value)
    os << format("%8.1f%s", *value, unit);
  else
    os << "       -" << (*unit ? " " : "");
}

void Profile::printLine(llvm::raw_ostream &os, const ProfileLine &line) const {
  os << format("%10.3f %5.1f%% ", line.milliseconds, 100 * line.milliseconds / whole.milliseconds);
  if (line.calls > 0)
    os << format("%8.6g ", line.calls);
  else
    os << "       - ";
  printNumber(os, line.getGFlops());
  os << " ";
  printNumber(os, line.getGBytes());
  std::optional<double> share = getShareOfLimit(line);
  printNumber(os, share ? std::optional<double>(100 * *share) : std::nullopt, "%");
  os << "  " << line.name;
  llvm::ArrayRef<std::string> sites = line.sites;
  if (!sites.empty())
    os << "  [" << llvm::join(sites.take_front(kMostSites), ", ");
  if (sites.size() > kMostSites)
    os << ", and " << sites.size() - kMostSites << " more";
  os << (sites.empty() ? "\n" : "]\n");
}

void Profile::printLines(llvm::raw_ostream &os, llvm::ArrayRef<ProfileLine> shown,
                         llvm::StringRef title) const {
  os << "\n   ms/step  share    calls  GFLOP/s     GB/s    limit  " << title << "\n";
  for (const ProfileLine &line : shown.take_front(kMostLines))
    printLine(os, line);
  if (shown.size() > kMostLines) {
    size_t left = shown.size() - kMostLines;
    ProfileLine rest = emptyLine((llvm::Twine(left) + " more, which --profile=FILE lists").str(), "");
    for (const ProfileLine &line : shown.drop_front(kMostLines))
      rest.add(line);
    printLine(os, rest);
  }
  printLine(os, whole);
}

/// Explains the columns.
void Profile::printHead(llvm::raw_ostream &os) const {
  if (!limits) {
    os << "On " << device << ", kernels timed by events, steps without graphs\n"
       << "calls: per step. GB/s: bytes read and written. -: not known\n";
    return;
  }
  os << format(
      "Limits of this machine, measured now on %u threads: %.0f GFLOP/s in f32 multiply-adds of %u bits, "
      "%.1f GB/s from memory to memory\n",
      limits->threads, limits->operationsPerSecond / 1e9, limits->vectorBits, limits->bytesPerSecond / 1e9);
  os << "calls: per step. GB/s: bytes read and written. limit: share of the nearer limit; above 100% the "
        "data were in a cache. -: not known\n";
}

void Profile::print(llvm::raw_ostream &os) const {
  if (measuredSteps == 1)
    os << "Profile of one step"
       << (skippedFirst ? " after the first" : ", the first, which is slower than others");
  else
    os << "Profile of " << measuredSteps << " steps after the first: means of the faster half";
  os << "\n";
  printHead(os);
  printLines(os, sumUpKinds(), "kind");
  printLines(os, lines, "kernel  [sites]");
}

llvm::json::Object Profile::lineToJSON(const ProfileLine &line) const {
  auto known = [](std::optional<double> value) { return value ? llvm::json::Value(*value) : nullptr; };
  return llvm::json::Object{{"name", line.name},
                            {"kind", line.kind},
                            {"sites", llvm::json::Array(line.sites)},
                            {"calls", line.calls},
                            {"ms", line.milliseconds},
                            {"share", line.milliseconds / whole.milliseconds},
                            {"bytes_read", known(line.read)},
                            {"bytes_written", known(line.written)},
                            {"operations", known(line.operations)},
                            {"gflops", known(line.getGFlops())},
                            {"gbytes_per_s", known(line.getGBytes())},
                            {"share_of_limit", known(getShareOfLimit(line))}};
}

llvm::json::Object Profile::toJSON() const {
  auto list = [&](llvm::ArrayRef<ProfileLine> shown) {
    llvm::json::Array array;
    for (const ProfileLine &line : shown)
      array.push_back(lineToJSON(line));
    return array;
  };
  llvm::json::Value measured = nullptr;
  if (limits)
    measured = llvm::json::Object{{"threads", limits->threads},
                                  {"vector_bits", limits->vectorBits},
                                  {"gflops", limits->operationsPerSecond / 1e9},
                                  {"gbytes_per_s", limits->bytesPerSecond / 1e9}};
  return llvm::json::Object{{"version", 1},
                            {"device", device.empty() ? "cpu" : device},
                            {"steps", int64_t(steps.size())},
                            {"measured_steps", int64_t(measuredSteps)},
                            {"skipped_first", skippedFirst},
                            {"limits", std::move(measured)},
                            {"step", lineToJSON(whole)},
                            {"kinds", list(sumUpKinds())},
                            {"kernels", list(lines)}};
}
