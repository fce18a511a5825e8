// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads and launches a kernel on the emulated machine.

#include "LoadedKernel.h"

#include "Arguments.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <cstring>

using namespace fp8ptx;
using namespace fp8emu;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

Error fp8ptx::failureAt(StringRef file, Location where, const Twine &message) {
  std::string place = file.str() + ":";
  if (where.line)
    place += std::to_string(where.line) + ":";
  if (where.column)
    place += std::to_string(where.column) + ":";
  return llvm::createStringError(llvm::inconvertibleErrorCode(), place + " error: " + message);
}

Expected<std::string> fp8ptx::readText(StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(path, /*IsText=*/true);
  if (!buffer)
    return failureAt(path, {}, buffer.getError().message());
  return (*buffer)->getBuffer().str();
}

Expected<std::unique_ptr<LoadedKernel>> LoadedKernel::load(const RunOptions &options) {
  auto text = readText(options.file);
  if (!text)
    return text.takeError();
  std::unique_ptr<LoadedKernel> loaded(new LoadedKernel(options));
  try {
    Source source(*text);
    if (Error error = loaded->choose(source.target()))
      return error;
    loaded->module = loaded->machine.load(std::move(source));
  } catch (const PtxError &error) {
    return failureAt(options.file, error.where, error.message);
  }
  if (Error error = loaded->findKernel())
    return error;
  return loaded;
}

/// Chooses the chip in the options, else that of the module's target, else any that can run it.
Error LoadedKernel::choose(const std::string &target) {
  auto names = [] {
    return llvm::join(llvm::map_range(knownChips(), [](const Chip &known) { return known.target; }), ", ");
  };
  if (!options.chip.empty()) {
    chip = findChip(options.chip);
    if (!chip)
      return failure("--chip=" + options.chip + " is none of " + names());
  }
  for (const Chip &known : knownChips())
    if (!chip && known.target == target)
      chip = &known;
  for (const Chip &known : knownChips())
    if (!chip && runs(known, target))
      chip = &known;
  if (!chip || !runs(*chip, target))
    return failureAt(options.file, {},
                     "the module is for " + target + ", which " +
                         (chip ? chip->target : "none of " + names()) + (chip ? " does not run" : " runs"));
  return Error::success();
}

Error LoadedKernel::findKernel() {
  const std::vector<Kernel> &kernels = module->kernels();
  entry = options.kernel.empty() && kernels.size() == 1 ? &kernels[0] : module->find(options.kernel);
  if (entry)
    return Error::success();
  std::vector<std::string> names;
  for (const Kernel &kernel : kernels)
    names.push_back(kernel.name);
  std::string has = names.empty() ? "it has none" : "it has " + llvm::join(names, ", ");
  return failureAt(options.file, {},
                   options.kernel.empty() ? "--kernel=NAME is needed: " + has
                                          : "no kernel " + options.kernel + ": " + has);
}

Expected<uint64_t> LoadedKernel::allocate(uint64_t bytes, const std::string &what) {
  bytes = std::max<uint64_t>(bytes, 1);
  auto address = machine.allocate(bytes, what);
  if (!address)
    return failure("no device memory is left for " + what + " of " + Twine(bytes) + " bytes");
  machine.markWritten(*address, bytes);
  return *address;
}

Expected<LaunchConfig> LoadedKernel::configure(llvm::ArrayRef<std::vector<uint8_t>> parameters) const {
  LaunchConfig config;
  config.grid = options.grid;
  config.block = options.block;
  config.cluster = options.cluster;
  config.dynamicShared = options.shared;
  config.cooperative = options.cooperative;
  config.parameters.resize(entry->parameterBytes);
  for (size_t i = 0; i < parameters.size(); ++i)
    std::memcpy(config.parameters.data() + entry->parameters[i].offset, parameters[i].data(),
                parameters[i].size());
  Allowance allowance;
  allowance.dynamicShared = uint32_t(chip->sharedPerBlock);
  allowance.nonPortableClusters = true;
  if (auto refusal = refuse(*chip, *entry, allowance, config))
    return failureAt(options.file, entry->where, entry->name + ": " + refusal->message);
  return config;
}

Error LoadedKernel::describe(const Fault &fault) const {
  // The first line starts with the location; details, such as the position of every warp in a
  // deadlock, follow it.
  auto [first, rest] = StringRef(fault.message).split('\n');
  Fault line = fault;
  line.line = 0;
  line.message = first.str();
  std::string more = rest.empty() ? "" : "\n" + rest.rtrim().str();
  return failureAt(options.file, {fault.line, 0},
                   line.text() + " (--seed=" + Twine(options.seed) + ")" + more);
}

Error LoadedKernel::report(const ProfileReport &profile) const {
  if (!options.profile)
    return Error::success();
  if (options.profileFile.empty()) {
    llvm::outs() << profile.table();
    return Error::success();
  }
  Error error = llvm::writeToOutput(options.profileFile, [&](llvm::raw_ostream &os) {
    os << profile.json();
    return Error::success();
  });
  return error ? failure("--profile: " + llvm::toString(std::move(error))) : Error::success();
}

Settings LoadedKernel::settings() const {
  Settings out;
  out.checks = options.checks;
  out.seed = options.seed;
  out.sums = *findTensorSums(options.sums);
  out.multiprocessors = unsigned(chip->multiprocessors);
  out.print = [](const std::string &text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  };
  return out;
}

Error LoadedKernel::launch(llvm::ArrayRef<std::vector<uint8_t>> parameters) {
  auto config = configure(parameters);
  if (!config)
    return config.takeError();
  try {
    ProfileReport profile;
    auto fault = machine.launch(*entry, std::move(*config), settings(), options.profile ? &profile : nullptr);
    if (Error error = report(profile))
      return error;
    if (fault)
      return describe(*fault);
  } catch (const std::exception &error) {
    return failure(error.what());
  }
  return Error::success();
}
