// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Building a program: layout first, so that every name has a place, then the code.

#include "Build.h"

#include "Requirements.h"
#include "SharedLayout.h"

#include <algorithm>
#include <cstring>

using namespace fp8emu;
using ptx::Space;

namespace {

uint64_t alignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

/// The largest shared memory of any block (sm_90 and later: 227 KiB), with room for
/// a cluster's addresses.
constexpr uint64_t kMaxShared = 228 * 1024;
/// PTX ISA 5.1.6.1, since 8.1.
constexpr uint64_t kMaxParameters = 32764;

class Builder {
public:
  Builder(Program &program, DeviceMemory &memory) : program(program), module(*program.tree), memory(memory) {}

  void layOut() {
    checkDirectives(module);
    program.constantWindow = memory.constantWindow();
    shared = layOutShared(module, kMaxShared);
    program.specialBytes = uint32_t(Special::Count) * kLanes * 4;
    for (const ptx::Variable &variable : module.variables) {
      size_t index = program.variableAddresses.size();
      program.variableByName.emplace(variable.name, uint32_t(index));
      program.variableAddresses.push_back(place(variable, shared.ofModule[index]));
    }
    for (size_t i = 0; i < module.functions.size(); ++i)
      if (!module.functions[i].isDeclaration)
        declare(module.functions[i], i);
    resolveAliases();
  }

  void decode(Decoder::Missing *missing) {
    for (FunctionCode &function : program.functions)
      decode(function, missing);
  }

  void assignRegisters(unsigned limit) { fp8emu::assignRegisters(program, needs, limit); }

  /// Initial values, once all addresses are known.
  void initialize() {
    for (size_t i = 0; i < module.variables.size(); ++i)
      fill(module.variables[i], program.variableAddresses[i]);
    for (FunctionCode &function : program.functions)
      for (size_t i = 0; i < function.tree->variables.size(); ++i)
        fill(function.tree->variables[i], function.variableOffsets[i]);
  }

private:
  void decode(FunctionCode &function, Decoder::Missing *missing) {
    Decoder decoder(program, function);
    decoder.decodeFunction(missing);
    if (!missing)
      needs.push_back(findRegisterNeed(*function.tree, decoder.accesses()));
  }

  /// The address of a variable; of one in shared memory its offset there.
  uint64_t place(const ptx::Variable &variable, uint64_t sharedOffset) {
    unsigned alignment = std::max(variable.alignment, 1u);
    if (variable.space == Space::Shared) {
      program.sharedAlignment = std::max(program.sharedAlignment, alignment);
      return sharedOffset;
    }
    if (variable.space != Space::Global && variable.space != Space::Const)
      return 0;
    if (variable.linkage == ptx::Linkage::Extern)
      throw PtxError(variable.where, "variable " + variable.name + " is not defined in this module");
    const bool isConstant = variable.space == Space::Const;
    const uint64_t bytes = std::max<uint64_t>(variable.bytes(), 1);
    auto address = isConstant ? memory.allocateConstant(bytes, alignment, "variable " + variable.name)
                              : memory.allocate(bytes, alignment, "variable " + variable.name);
    if (!address)
      throw PtxError(variable.where, "no device memory is left for " + variable.name);
    program.allocations.push_back(*address);
    memory.setInitialized(*address, variable.bytes(), true);
    if (isConstant)
      memory.setReadOnly(*address);
    return *address;
  }

  void declare(const ptx::Function &function, size_t index) {
    FunctionCode code;
    code.name = function.name;
    code.tree = &function;
    code.isEntry = function.isEntry;
    code.staticSharedBytes = shared.bytes[index];
    for (size_t i = 0; i < function.variables.size(); ++i) {
      const ptx::Variable &variable = function.variables[i];
      bool isPlaced = variable.space != Space::Local && variable.space != Space::Param;
      code.variableOffsets.push_back(isPlaced ? place(variable, shared.ofFunctions[index][i]) : 0);
    }
    uint64_t offset = 0;
    for (const ptx::Variable &parameter : function.parameters) {
      if (parameter.space == Space::Reg)
        throw PtxError(parameter.where, "parameters in registers are not known here");
      offset = alignUp(offset, std::max(parameter.alignment, ptx::byteSize(parameter.type)));
      if (function.isEntry && offset + parameter.bytes() > kMaxParameters)
        throw PtxError(parameter.where,
                       "the kernel has more than " + std::to_string(kMaxParameters) + " bytes of parameters");
      code.parameters.push_back({uint32_t(offset), uint32_t(parameter.bytes()), parameter.alignment});
      offset += parameter.bytes();
    }
    code.parameterBytes = uint32_t(offset);
    program.functionByName[function.name] = uint32_t(program.functions.size());
    program.functions.push_back(std::move(code));
  }

  void resolveAliases() {
    for (const auto &[alias, target] : module.aliases)
      if (auto found = program.functionByName.find(target); found != program.functionByName.end())
        program.functionByName[alias] = found->second;
  }

  uint64_t addressOf(const ptx::Variable &variable, const ptx::Relocation &relocation) {
    if (auto found = program.variableByName.find(relocation.symbol); found != program.variableByName.end()) {
      uint64_t address = program.variableAddresses[found->second];
      const Space space = module.variables[found->second].space;
      if (space == Space::Shared)
        return address + (relocation.generic ? memory.sharedWindow() : 0);
      return address - (space == Space::Const && !relocation.generic ? memory.constantWindow() : 0);
    }
    if (auto found = program.functionByName.find(relocation.symbol); found != program.functionByName.end())
      return codeAddress(found->second);
    throw PtxError(variable.where, variable.name + " holds the address of " + relocation.symbol +
                                       ", which is not defined in this module");
  }

  void fill(const ptx::Variable &variable, uint64_t address) {
    if (variable.space != Space::Global && variable.space != Space::Const)
      return;
    auto *bytes = reinterpret_cast<uint8_t *>(address);
    std::copy_n(variable.init.begin(), std::min<uint64_t>(variable.init.size(), variable.bytes()), bytes);
    for (const ptx::Relocation &relocation : variable.relocations) {
      uint64_t value = (addressOf(variable, relocation) + uint64_t(relocation.addend)) >> relocation.shift;
      if (relocation.offset + relocation.size <= variable.bytes())
        std::memcpy(bytes + relocation.offset, &value, std::min(relocation.size, 8u));
    }
  }

  Program &program;
  const ptx::Module &module;
  DeviceMemory &memory;
  SharedLayout shared;
  std::vector<RegisterNeed> needs;
};

} // namespace

std::unique_ptr<Program> fp8emu::build(ptx::Module module, DeviceMemory &memory, unsigned maxRegisters) {
  auto program = std::make_unique<Program>();
  program->tree = std::make_unique<const ptx::Module>(std::move(module));
  try {
    Builder builder(*program, memory);
    builder.layOut();
    builder.decode(nullptr);
    builder.assignRegisters(maxRegisters);
    builder.initialize();
  } catch (...) {
    release(*program, memory);
    throw;
  }
  return program;
}

std::vector<UnknownInstruction> fp8emu::findUnknown(const ptx::Module &module) {
  DeviceMemory memory;
  Program program;
  program.tree = std::make_unique<const ptx::Module>(module);
  Builder builder(program, memory);
  builder.layOut();
  Decoder::Missing missing;
  builder.decode(&missing);
  std::vector<UnknownInstruction> out;
  for (const auto &[message, where] : missing)
    out.push_back({message, where});
  return out;
}

void fp8emu::release(Program &program, DeviceMemory &memory) {
  for (uint64_t address : program.allocations)
    memory.release(address);
  program.allocations.clear();
}

const FunctionCode *Program::find(const std::string &name) const {
  auto found = functionByName.find(name);
  return found == functionByName.end() ? nullptr : &functions[found->second];
}
