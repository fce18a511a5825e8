// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The machine: device memory, the checks' memory of accesses to it, launches.

#include "fp8emu/Machine.h"

#include "check/Races.h"
#include "exec/Chip.h"
#include "exec/Launch.h"
#include "isa/Build.h"
#include "memory/DeviceMemory.h"
#include "ptx/Ast.h"

using namespace fp8emu;

struct Machine::State {
  DeviceMemory memory;
  /// Made for the first launch whose memory order is checked: it takes much address space.
  std::unique_ptr<check::GlobalShadow> shadow;
  uint64_t launches = 0;

  check::GlobalShadow &accesses() {
    if (!shadow) {
      shadow = std::make_unique<check::GlobalShadow>(memory.base(), memory.capacity());
      memory.onRelease([this](uint64_t address, uint64_t bytes) { shadow->forget(address, bytes); });
    }
    return *shadow;
  }

  ObserverFactory observers(const Settings &settings) {
    if (!settings.checks || !settings.races)
      return {};
    return [&shadow = accesses()](const Launch &launch, bool severalThreads) {
      return std::make_unique<check::LaunchRaces>(launch, shadow, severalThreads);
    };
  }
};

Machine::Machine() : state(std::make_unique<State>()) {}
Machine::~Machine() = default;

DeviceMemory &Machine::memory() { return state->memory; }

std::optional<uint64_t> Machine::allocate(uint64_t bytes, const std::string &what, uint64_t alignment) {
  return memory().allocate(bytes, alignment, what);
}

bool Machine::release(uint64_t address) { return memory().release(address); }

uint64_t Machine::bytesInUse() const { return state->memory.bytesInUse(); }

void Machine::markWritten(uint64_t address, uint64_t bytes) { memory().setInitialized(address, bytes, true); }

std::unique_ptr<Module> Machine::load(Source source, unsigned maxRegisters) {
  return std::unique_ptr<Module>(
      new Module(build(std::move(*source.tree), memory(), maxRegisters), memory()));
}

std::optional<Fault> Machine::launch(const Kernel &kernel, LaunchConfig config, const Settings &settings,
                                     ProfileReport *report) {
  Launch launch(*kernel.program, *kernel.code, std::move(config), memory(), settings, state->launches++,
                state->observers(settings));
  if (!report)
    return launch.run();
  Profile profile(kernel.program->ops.size());
  auto fault = launch.run(&profile);
  report->add(*kernel.program, *kernel.code, profile);
  return fault;
}

std::optional<Refusal> fp8emu::refuse(const Chip &chip, const Kernel &kernel, const Allowance &allowance,
                                      LaunchConfig &config) {
  return refuse(chip, *kernel.code, allowance, config);
}

std::optional<TensorSums> fp8emu::findTensorSums(const std::string &name) {
  if (name == "hardware")
    return TensorSums::Hardware;
  if (name == "exact")
    return TensorSums::Exact;
  if (name == "korder")
    return TensorSums::KOrder;
  return std::nullopt;
}
