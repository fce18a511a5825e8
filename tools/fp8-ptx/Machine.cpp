// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loading and launching with the emulator.

#include "Machine.h"

#include "Arguments.h"

#include "exec/ProfileReport.h"
#include "isa/Build.h"
#include "ptx/Parser.h"

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

Error fp8ptx::failureAt(StringRef file, ptx::Location where, const Twine &message) {
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

Expected<std::unique_ptr<Machine>> Machine::load(const RunOptions &options) {
  auto text = readText(options.file);
  if (!text)
    return text.takeError();
  std::unique_ptr<Machine> machine(new Machine(options));
  try {
    ptx::Module module = ptx::parse(*text);
    if (Error error = machine->choose(module))
      return error;
    machine->program = build(std::move(module), machine->memory);
  } catch (const PtxError &error) {
    return failureAt(options.file, error.where, error.message);
  }
  if (Error error = machine->findKernel())
    return error;
  return machine;
}

Machine::~Machine() {
  if (program)
    release(*program, memory);
}

/// The chip asked for, else the one of the module's target, else any that runs it.
Error Machine::choose(const ptx::Module &module) {
  auto names = [] {
    return llvm::join(llvm::map_range(knownChips(), [](const Chip &chip) { return chip.target; }), ", ");
  };
  if (!options.chip.empty()) {
    standsFor = findChip(options.chip);
    if (!standsFor)
      return failure("--chip=" + options.chip + " is none of " + names());
  }
  for (const Chip &chip : knownChips())
    if (!standsFor && chip.target == module.target)
      standsFor = &chip;
  for (const Chip &chip : knownChips())
    if (!standsFor && runs(chip, module.target))
      standsFor = &chip;
  if (!standsFor || !runs(*standsFor, module.target))
    return failureAt(options.file, {},
                     "the module is for " + module.target + ", which " +
                         (standsFor ? standsFor->target : "none of " + names()) +
                         (standsFor ? " does not run" : " runs"));
  return Error::success();
}

Error Machine::findKernel() {
  entry = program->find(options.kernel);
  if (entry && entry->isEntry)
    return Error::success();
  std::vector<std::string> names;
  for (const FunctionCode &code : program->functions)
    if (code.isEntry)
      names.push_back(code.name);
  if (options.kernel.empty() && names.size() == 1) {
    entry = program->find(names[0]);
    return Error::success();
  }
  std::string has = names.empty() ? "it has none" : "it has " + llvm::join(names, ", ");
  return failureAt(options.file, {},
                   options.kernel.empty() ? "--kernel=NAME is needed: " + has
                                          : "no kernel " + options.kernel + ": " + has);
}

Expected<uint64_t> Machine::allocate(uint64_t bytes, const std::string &what) {
  bytes = std::max<uint64_t>(bytes, 1);
  auto address = memory.allocate(bytes, 512, what);
  if (!address)
    return failure("no device memory is left for " + what + " of " + Twine(bytes) + " bytes");
  memory.setInitialized(*address, bytes, true);
  return *address;
}

Expected<LaunchConfig> Machine::configure(llvm::ArrayRef<std::vector<uint8_t>> parameters) const {
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
  allowance.dynamicShared = uint32_t(standsFor->sharedPerBlock);
  allowance.nonPortableClusters = true;
  if (auto refusal = refuse(*standsFor, *program, *entry, allowance, config))
    return failureAt(options.file, entry->tree->where, entry->name + ": " + refusal->message);
  return config;
}

Error Machine::describe(const Fault &fault) const {
  // The place leads; what more there is to say, as where every warp of a deadlock
  // is, follows the line.
  auto [first, rest] = StringRef(fault.message).split('\n');
  Fault line = fault;
  line.line = 0;
  line.message = first.str();
  std::string more = rest.empty() ? "" : "\n" + rest.rtrim().str();
  return failureAt(options.file, {fault.line, 0},
                   line.text() + " (--seed=" + Twine(options.seed) + ")" + more);
}

Error Machine::report(const Profile &profile) const {
  if (!options.profile)
    return Error::success();
  ProfileReport report;
  report.add(*program, *entry, profile);
  if (options.profileFile.empty()) {
    llvm::outs() << report.table();
    return Error::success();
  }
  Error error = llvm::writeToOutput(options.profileFile, [&](llvm::raw_ostream &os) {
    os << report.json();
    return Error::success();
  });
  return error ? failure("--profile: " + llvm::toString(std::move(error))) : Error::success();
}

Error Machine::launch(llvm::ArrayRef<std::vector<uint8_t>> parameters) {
  auto config = configure(parameters);
  if (!config)
    return config.takeError();
  Settings settings;
  settings.checks = options.checks;
  settings.seed = options.seed;
  settings.sums = *findSumModel(options.sums);
  settings.multiprocessors = unsigned(standsFor->multiprocessors);
  settings.print = [](const std::string &text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  };
  try {
    Launch launch(*program, *entry, std::move(*config), memory, settings, 0);
    Profile profile(options.profile ? program->ops.size() : 0);
    auto fault = launch.run(options.profile ? &profile : nullptr);
    if (Error error = report(profile))
      return error;
    if (fault)
      return describe(*fault);
  } catch (const std::exception &error) {
    return failure(error.what());
  }
  return Error::success();
}
