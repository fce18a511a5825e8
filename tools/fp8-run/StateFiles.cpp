// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loading and saving state files.

#include "StateFiles.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/raw_ostream.h"

using namespace fp8run;
using llvm::Error;
using llvm::StringRef;

static Error newTensors(Tensors &tensors) {
  fp8rt_tensors *created = nullptr;
  Error error = check(fp8rt_tensors_create(&created));
  tensors.reset(created);
  return error;
}

/// Adds the carried arguments of all functions; arguments without a value are an error.
static Error exportCarried(Program &program, fp8rt_tensors *tensors) {
  for (Function &function : program.functions())
    if (Error error = check(fp8rt_session_export_carried(function.session.get(), tensors)))
      return error;
  return Error::success();
}

static fp8rt_history historyOf(const Options &options) {
  if (options.history.empty())
    return FP8RT_HISTORY_EXACT;
  return options.history == "newest" ? FP8RT_HISTORY_NEWEST : FP8RT_HISTORY_OLDEST;
}

void StateFiles::warn(StringRef difference) const {
  if (options.warns)
    llvm::errs() << "fp8-run: warning: " << options.state << ": " << difference << "\n";
}

Error StateFiles::rename(fp8rt_tensors *tensors) {
  llvm::SmallVector<const char *> from, to;
  for (const Rename &rename : options.renames) {
    from.push_back(rename.from.c_str());
    to.push_back(rename.to.c_str());
  }
  return from.empty() ? Error::success()
                      : check(fp8rt_tensors_rename_sites(tensors, from.data(), to.data(),
                                                         static_cast<uint32_t>(from.size())));
}

Error StateFiles::importCarried(fp8rt_tensors *tensors) {
  for (Function &function : program.functions())
    if (Error error = check(fp8rt_session_import_carried(function.session.get(), tensors)))
      return error;
  Tensors taken;
  if (Error error = newTensors(taken))
    return error;
  if (Error error = exportCarried(program, taken.get()))
    return error;
  for (uint64_t i = 0; i < fp8rt_tensors_count(tensors); ++i) {
    StringRef name = fp8rt_tensors_name(tensors, i);
    if (!name.starts_with("carry.") || fp8rt_tensors_find(taken.get(), name.data()))
      continue;
    std::string difference = "tensor '" + name.str() + "' is no carried argument of the program";
    if (options.strict)
      return failure(options.state + ": " + difference);
    warn(difference);
  }
  return Error::success();
}

/// Warns where the file has carried arguments and the run starts from others: a later save would replace
/// them.
void StateFiles::warnOfCarried(fp8rt_tensors *tensors) {
  auto hasCarried = [&](const Function &function) {
    return llvm::any_of(llvm::enumerate(function.arguments), [&](auto item) {
      auto [i, argument] = item;
      std::string name = "carry." + std::string(argument.name), number = "carry." + std::to_string(i);
      return argument.carry >= 0 &&
             (fp8rt_tensors_find(tensors, name.c_str()) || fp8rt_tensors_find(tensors, number.c_str()));
    });
  };
  if (llvm::any_of(program.functions(), hasCarried))
    warn("its carried arguments are left out: --with-carry takes them");
}

Error StateFiles::load() {
  if (options.state.empty())
    return Error::success();
  fp8rt_tensors *read = nullptr;
  if (Error error = check(fp8rt_tensors_read(options.state.c_str(), &read)))
    return error;
  Tensors tensors(read);
  if (Error error = rename(read))
    return failure("--rename: " + llvm::toString(std::move(error)));
  fp8rt_import_options how = {};
  how.history = historyOf(options);
  how.strict = options.strict;
  how.report = [](void *context, const char *difference) {
    static_cast<const StateFiles *>(context)->warn(difference);
  };
  how.report_context = this;
  if (Error error = check(fp8rt_state_import_matching(program.state(), read, &how)))
    return error;
  if (options.withCarry)
    return importCarried(read);
  warnOfCarried(read);
  return Error::success();
}

Error StateFiles::start() {
  if (checkpoints)
    return Error::success();
  // The file that the run goes on from is the checkpoint before its first.
  bool isPresent = options.state == options.saveState;
  fp8rt_checkpoints *created = nullptr;
  Error error =
      check(fp8rt_checkpoints_create(options.saveState.c_str(), options.keepLast,
                                     isPresent ? static_cast<int64_t>(options.firstStep) : -1, &created));
  checkpoints.reset(created);
  return error;
}

Error StateFiles::save(uint64_t finished) {
  if (Error error = program.compareRanks())
    return error;
  Tensors tensors;
  if (Error error = newTensors(tensors))
    return error;
  if (Error error = check(fp8rt_state_export(program.state(), tensors.get())))
    return error;
  if (options.withCarry)
    if (Error error = exportCarried(program, tensors.get()))
      return error;
  if (!options.writesState)
    return Error::success();
  if (Error error = start())
    return error;
  return check(fp8rt_checkpoints_save(checkpoints.get(), tensors.get(), options.firstStep + finished));
}

Error StateFiles::saveEvery(uint64_t finished) {
  if (checkpoints)
    if (Error error = check(fp8rt_checkpoints_check(checkpoints.get())))
      return error;
  bool isDue = options.saveEvery && finished % options.saveEvery == 0 && finished < options.steps;
  return isDue ? save(finished) : Error::success();
}

Error StateFiles::saveLast(uint64_t finished) {
  if (options.saveState.empty())
    return Error::success();
  if (Error error = save(finished))
    return error;
  return options.writesState ? check(fp8rt_checkpoints_finish(checkpoints.get())) : Error::success();
}
