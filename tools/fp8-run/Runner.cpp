// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs steps, prints results and saves files.

#include "Runner.h"
#include "Inputs.h"
#include "Monitor.h"
#include "Profile.h"
#include "Program.h"
#include "StateFiles.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>

using namespace fp8run;
using llvm::Error;
using llvm::Expected;

namespace {

using Clock = std::chrono::steady_clock;

class Runner {
public:
  Runner(const Options &options, const Ranks &ranks) : options(options), ranks(ranks) {}
  Error run();

private:
  Error prepare();
  Error connectRanks();
  Error checkArguments();
  Error checkOutputs() const;
  Error findPrinted();
  Error saveOutputs();
  Error printResult(uint64_t step);
  Error showReadings(uint64_t step);
  Error step(uint64_t step);
  void reportTiming();
  Error reportProfile();

  const Options &options;
  const Ranks &ranks;
  Program program;
  Inputs inputs;
  StateFiles stateFiles{options, program};
  std::optional<Place> printed;
  std::vector<double> seconds; // of every step
  std::optional<Profile> profile;
  std::optional<Monitor> monitor;
};

Error newTensors(Tensors &tensors) {
  fp8rt_tensors *created = nullptr;
  Error error = check(fp8rt_tensors_create(&created));
  tensors.reset(created);
  return error;
}

/// Checks before the first step that the output files can be written after the last.
Error Runner::checkOutputs() const {
  const std::pair<const std::string &, bool> files[] = {{options.outputs, options.writesOutputs},
                                                        {options.saveState, options.writesState},
                                                        {options.profileFile, options.profile},
                                                        {options.monitorFile, options.monitor}};
  for (const auto &[path, writes] : files)
    if (!path.empty() && writes)
      if (Error error = check(fp8rt_check_writable(path.c_str())))
        return error;
  return Error::success();
}

Error Runner::findPrinted() {
  if (options.print.empty())
    return Error::success();
  Expected<Place> place = program.findResult(options.print);
  if (!place)
    return failure("--print=" + options.print + ": " + llvm::toString(place.takeError()));
  const fp8rt_value &value = place->result();
  for (int32_t i = 0; i < value.ndim; ++i)
    if (value.shape[i] != 1)
      return failure("--print=" + options.print + ": the result is not a scalar");
  printed = *place;
  return Error::success();
}

Error Runner::saveOutputs() {
  if (options.outputs.empty())
    return Error::success();
  Tensors tensors;
  if (Error error = newTensors(tensors))
    return error;
  bool isPair = program.functions().size() > 1;
  for (Function &function : program.functions()) {
    uint64_t number = 0; // among the user's results
    for (uint32_t i = 0; i < function.results.size(); ++i) {
      if (function.results[i].kind != FP8RT_KIND_USER)
        continue;
      std::string key = (isPair ? function.name + "." : "") + std::to_string(number++);
      if (Error error =
              check(fp8rt_session_add_whole_result(function.session.get(), i, key.c_str(), tensors.get())))
        return error;
    }
  }
  return options.writesOutputs ? check(fp8rt_tensors_write(tensors.get(), options.outputs.c_str()))
                               : Error::success();
}

Error Runner::printResult(uint64_t step) {
  if (!printed)
    return Error::success();
  char text[64];
  Expected<const DLTensor *> value = printed->getResultValue();
  if (!value)
    return value.takeError();
  if (Error error = check(fp8rt_format_scalar(*value, text, sizeof(text))))
    return error;
  // Flush, so that the reader of a pipe can follow the run.
  if (std::printf("%llu\t%s\n", static_cast<unsigned long long>(step), text) < 0 || std::fflush(stdout))
    return failure("cannot write to standard output");
  return Error::success();
}

Error Runner::showReadings(uint64_t step) {
  const DLTensor *value = nullptr;
  if (printed) {
    Expected<const DLTensor *> found = printed->getResultValue();
    if (!found)
      return found.takeError();
    value = *found;
  }
  return monitor->addStep(step, value);
}

Error Runner::step(uint64_t step) {
  if (Error error = inputs.advance(step))
    return error;
  Clock::time_point start = Clock::now();
  if (Error error = program.step())
    return failure("step " + llvm::Twine(step) + ": " + llvm::toString(std::move(error)));
  std::chrono::duration<double> taken = Clock::now() - start;
  seconds.push_back(taken.count());
  if (Error error = printResult(step))
    return error;
  return monitor ? showReadings(step) : Error::success();
}

void Runner::reportTiming() {
  if (!options.timing)
    return;
  double sum = 0;
  for (double taken : seconds)
    sum += taken;
  std::sort(seconds.begin(), seconds.end());
  llvm::errs() << llvm::format("%zu steps in %.3f s; ms per step: mean %.3f, min %.3f, median %.3f, "
                               "max %.3f\n",
                               seconds.size(), sum, 1e3 * sum / static_cast<double>(seconds.size()),
                               1e3 * seconds.front(), 1e3 * seconds[seconds.size() / 2],
                               1e3 * seconds.back());
}

Error Runner::reportProfile() {
  if (!options.profile)
    return Error::success();
  std::string device = program.deviceName();
  profile->finish(device, device.empty() ? std::optional(measureLimits(program.manifest())) : std::nullopt);
  if (options.profileFile.empty()) {
    profile->print(llvm::errs());
    return Error::success();
  }
  std::error_code failed;
  llvm::raw_fd_ostream file(options.profileFile, failed);
  if (!failed) {
    file << llvm::formatv("{0:2}\n", llvm::json::Value(profile->toJSON()));
    file.close();
    failed = file.error();
    file.clear_error();
  }
  return failed ? failure(options.profileFile + ": cannot write: " + failed.message()) : Error::success();
}

/// Checks that all arguments have values. The error mentions ignored tensors, because a key with a
/// typing error is a likely reason for a missing argument.
Error Runner::checkArguments() {
  for (Function &function : program.functions())
    for (uint32_t i = 0; i < function.arguments.size(); ++i) {
      if (function.arguments[i].kind == FP8RT_KIND_RESIDUAL ||
          fp8rt_session_argument_in_place(function.session.get(), i))
        continue;
      std::string ignored = inputs.describeIgnored();
      return failure("argument " + llvm::Twine(i) + " '" + function.arguments[i].name + "' of entry '" +
                     function.name +
                     "' has no value: give it in --inputs, or all such zeros with --zero-missing" +
                     (ignored.empty() ? "" : " (" + ignored + ")"));
    }
  return Error::success();
}

/// Checks that all ranks run the same, and gives them to the program.
Error Runner::connectRanks() {
  if (!ranks.areSeveral())
    return Error::success();
  if (Error error = check(fp8rt_communicator_compare_libraries(ranks.get(), program.compiled())))
    return error;
  std::string steps = "--steps=" + std::to_string(options.steps);
  std::string entries = "--entry=" + llvm::join(options.entries, ",");
  std::string every = "--save-every=" + std::to_string(options.saveEvery);
  const char *lines[] = {steps.c_str(), entries.c_str(), every.c_str()};
  if (Error error =
          check(fp8rt_communicator_compare(ranks.get(), "the ranks have different options", lines, 3)))
    return error;
  return program.connect(ranks.get());
}

Error Runner::prepare() {
  if (Error error = program.load(options.library, options.entries, options.device))
    return error;
  if (Error error = connectRanks())
    return error;
  if (Error error = findPrinted())
    return error;
  if (Error error = checkOutputs())
    return error;
  if (Error error = inputs.load(options, program))
    return error;
  if (Error error = stateFiles.load())
    return error;
  if (Error error = inputs.advance(options.firstStep))
    return error;
  if (options.zeroMissing)
    for (Function &function : program.functions())
      if (Error error = check(fp8rt_session_zero_missing(function.session.get())))
        return error;
  if (Error error = checkArguments())
    return error;
  if (Error error = program.compareRanks())
    return error;
  if (std::string ignored = inputs.describeIgnored(); !ignored.empty() && ranks.isFirst())
    llvm::errs() << "fp8-run: warning: " << ignored << "\n";
  if (options.monitor)
    if (Error error = monitor.emplace(options, program).start())
      return error;
  if (!options.profile)
    return Error::success();
  if (Error error = program.startProfile())
    return error;
  profile.emplace(program.profiler(), /*skippedFirst=*/options.steps > 1);
  return Error::success();
}

Error Runner::run() {
  if (Error error = prepare())
    return error;
  for (uint64_t i = 0; i < options.steps; ++i) {
    if (Error error = step(options.firstStep + i))
      return error;
    if (profile && (i != 0 || options.steps == 1))
      profile->addStep();
    fp8rt_profiler_reset(program.profiler());
    if (Error error = stateFiles.saveEvery(i + 1))
      return error;
  }
  if (Error error = saveOutputs())
    return error;
  if (Error error = stateFiles.saveLast(options.steps))
    return error;
  reportTiming();
  return reportProfile();
}

} // namespace

Error fp8run::run(const Options &options, const Ranks &ranks) { return Runner(options, ranks).run(); }
