// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Running kernels from PTX text: a machine with memory, modules loaded on it, launches.
//
//   fp8emu::Machine machine;
//   auto module = machine.load(fp8emu::Source(text));
//   const uint64_t y = machine.allocate(1024, "y").value();
//   fp8emu::LaunchConfig config;
//   config.block = {256, 1, 1};
//   config.parameters.resize(8);
//   std::memcpy(config.parameters.data(), &y, 8);
//   if (auto fault = machine.launch(*module->find("k"), config, fp8emu::Settings()))
//     std::puts(fault->text().c_str());
//
// A device address is the host's address of the same byte. A machine is for one thread at a
// time; a launch runs blocks on threads of its own (Settings::threads).

#ifndef FP8EMU_MACHINE_H
#define FP8EMU_MACHINE_H

#include "fp8emu/Profile.h"
#include "fp8emu/Types.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fp8emu {

class DeviceMemory;
namespace ptx {
struct Module;
} // namespace ptx

/// An instruction of a PTX text.
struct ListedInstruction {
  Location where;
  /// With its modifiers, as in "ld.global.f32".
  std::string text;
  /// Why the emulator cannot run it; empty where it can.
  std::string unsupported;
};

/// PTX text that was read and not yet decoded.
class Source {
public:
  /// Throws PtxError where the text does not parse. An image of several texts that
  /// cuLinkComplete gave is read as one module.
  explicit Source(std::string_view text);
  Source(Source &&) noexcept;
  ~Source();

  /// As .target says: "sm_90a".
  const std::string &target() const;
  /// As .version says.
  std::pair<unsigned, unsigned> version() const;
  /// All instructions of all functions, in the order of the text.
  std::vector<ListedInstruction> instructions() const;

private:
  friend class Machine;
  std::unique_ptr<ptx::Module> tree;
};

/// A kernel of a loaded module.
struct Kernel {
  struct Parameter {
    /// In LaunchConfig::parameters.
    uint32_t offset = 0, bytes = 0;
    Location where;
  };
  std::string name;
  Location where;
  std::vector<Parameter> parameters;
  /// Of all parameters together.
  uint32_t parameterBytes = 0;
  /// Its decoded form, internal to the emulator (src/exec/Program.h).
  const Program *program = nullptr;
  const FunctionCode *code = nullptr;
};

/// A module loaded on a machine, which must live longer. Its end gives back the memory of its
/// variables.
class Module {
public:
  ~Module();
  Module(const Module &) = delete;
  Module &operator=(const Module &) = delete;

  /// As .target says: "sm_90a".
  const std::string &target() const;
  /// In the order of the text.
  const std::vector<Kernel> &kernels() const { return entries; }
  /// Null where the module has no kernel of that name.
  const Kernel *find(const std::string &name) const;
  /// Its decoded form, internal to the emulator (src/exec/Program.h).
  const Program &program() const { return *code; }

private:
  friend class Machine;
  Module(std::unique_ptr<Program> program, DeviceMemory &memory);

  std::unique_ptr<Program> code;
  DeviceMemory &memory;
  std::vector<Kernel> entries;
};

/// Why the chip would not launch the kernel with these sizes; nothing where it would. A
/// cluster size that the kernel declares is put into `config` before.
std::optional<Refusal> refuse(const Chip &chip, const Kernel &kernel, const Allowance &allowance,
                              LaunchConfig &config);

class Machine {
public:
  Machine();
  ~Machine();
  Machine(const Machine &) = delete;
  Machine &operator=(const Machine &) = delete;

  /// Memory of `bytes`, zero-filled, none of it counted as written: kernels may not read
  /// it before. `what` names it in reports. Nothing where there is no memory left.
  std::optional<uint64_t> allocate(uint64_t bytes, const std::string &what, uint64_t alignment = 512);
  /// Gives memory back; its addresses are never used again. False where no allocation
  /// begins there, or it was given back before.
  bool release(uint64_t address);
  uint64_t bytesInUse() const;
  /// Counts bytes as written, as those that the host has put there.
  void markWritten(uint64_t address, uint64_t bytes);

  /// Decodes a module and places its variables. Throws PtxError: for instructions that are
  /// not known or that .target and .version do not have, names without a definition, no
  /// memory left. Threads of its kernels get at most `maxRegisters` (CU_JIT_MAX_REGISTERS),
  /// 0 for any number.
  std::unique_ptr<Module> load(Source source, unsigned maxRegisters = 0);

  /// Runs a kernel to its end. The first fault by which it stopped; nothing where it ended
  /// well. The counts of the launch are added to `report`, where there is one. Sizes that
  /// every chip refuses (`refuse`) must not be given.
  std::optional<Fault> launch(const Kernel &kernel, LaunchConfig config, const Settings &settings,
                              ProfileReport *report = nullptr);

  /// Of the emulator itself (src/memory/DeviceMemory.h).
  DeviceMemory &memory();

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace fp8emu

#endif // FP8EMU_MACHINE_H
