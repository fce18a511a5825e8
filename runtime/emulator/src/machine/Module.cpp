// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PTX text as it was read, and modules as they were decoded.

#include "exec/Places.h"
#include "fp8emu/Machine.h"
#include "isa/Build.h"
#include "memory/DeviceMemory.h"
#include "ptx/Link.h"

#include <map>

using namespace fp8emu;

Source::Source(std::string_view text) : tree(std::make_unique<ptx::Module>(ptx::parseImage(text))) {}
Source::Source(Source &&) noexcept = default;
Source::~Source() = default;

const std::string &Source::target() const { return tree->target; }
std::pair<unsigned, unsigned> Source::version() const { return tree->version; }

std::vector<ListedInstruction> Source::instructions() const {
  std::map<std::pair<uint32_t, uint32_t>, std::string> unknown;
  for (UnknownInstruction &one : findUnknown(*tree))
    unknown[{one.where.line, one.where.column}] = std::move(one.message);
  std::vector<ListedInstruction> out;
  for (const ptx::Function &function : tree->functions)
    for (const ptx::Instruction &instruction : function.instructions) {
      auto found = unknown.find({instruction.where.line, instruction.where.column});
      out.push_back(
          {instruction.where, textOf(instruction), found == unknown.end() ? std::string() : found->second});
    }
  return out;
}

static Kernel kernelOf(const Program &program, const FunctionCode &code) {
  Kernel kernel;
  kernel.name = code.name;
  kernel.where = code.tree->where;
  for (size_t i = 0; i < code.parameters.size(); ++i)
    kernel.parameters.push_back(
        {code.parameters[i].offset, code.parameters[i].bytes, code.tree->parameters[i].where});
  kernel.parameterBytes = code.parameterBytes;
  kernel.program = &program;
  kernel.code = &code;
  return kernel;
}

Module::Module(std::unique_ptr<Program> program, DeviceMemory &memory)
    : code(std::move(program)), memory(memory) {
  for (const FunctionCode &function : code->functions)
    if (function.isEntry)
      entries.push_back(kernelOf(*code, function));
}

Module::~Module() { release(*code, memory); }

const std::string &Module::target() const { return code->tree->target; }

const Kernel *Module::find(const std::string &name) const {
  for (const Kernel &kernel : entries)
    if (kernel.name == name)
      return &kernel;
  return nullptr;
}
