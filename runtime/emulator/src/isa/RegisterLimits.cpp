// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From what functions need to what a kernel gets: called functions, the limits of
// directives, setmaxnreg.

#include "Registers.h"

#include <algorithm>

using namespace fp8emu;
using ptx::Instruction;

namespace {

/// The registers that ptxas gives a kernel that does nothing.
constexpr unsigned kOverhead = 4;
constexpr unsigned kMinRegisters = 24, kMaxRegisters = 255;
/// ptxas takes blocks for whole warp groups, as the hardware does.
constexpr unsigned kRegisters = 65536, kThreadsAtATime = 128;

/// Adds what called functions need, along the call graph; a function that is under way
/// already is recursive and needs a stack instead.
class CallGraph {
public:
  CallGraph(const Program &program, const std::vector<RegisterNeed> &needs)
      : program(program), needs(needs), known(needs.size()), underWay(needs.size()) {}

  unsigned need(uint32_t function) {
    if (known[function] || underWay[function])
      return known[function];
    underWay[function] = true;
    unsigned most = needs[function].live;
    for (const RegisterNeed::Call &call : needs[function].calls)
      most = std::max(most, call.live + ofCallee(call.callee));
    underWay[function] = false;
    return known[function] = most;
  }

private:
  unsigned ofCallee(const std::string &callee) {
    if (!callee.empty()) {
      auto found = program.functionByName.find(callee);
      return found == program.functionByName.end() ? 0 : need(found->second);
    }
    unsigned most = 0;
    for (uint32_t i = 0; i < needs.size(); ++i)
      if (!program.functions[i].isEntry)
        most = std::max(most, need(i));
    return most;
  }

  const Program &program;
  const std::vector<RegisterNeed> &needs;
  std::vector<unsigned> known;
  std::vector<bool> underWay;
};

/// .maxnreg as ptxas takes it.
unsigned maxRegisters(const ptx::Function &tree) {
  const bool taken = tree.maxRegisters && tree.maxRegisters <= kMaxRegisters;
  return taken ? std::max(tree.maxRegisters, kMinRegisters) : kMaxRegisters;
}

uint64_t threads(const ptx::Function &tree) {
  const ptx::Dim3 &size = tree.requiredThreads[0] ? tree.requiredThreads : tree.maxThreads;
  return uint64_t(size[0]) * std::max(size[1], 1u) * std::max(size[2], 1u);
}

/// The registers that the kernel's own directives leave each thread of the block.
unsigned fromThreads(const ptx::Function &tree) {
  const uint64_t allocated = (threads(tree) + kThreadsAtATime - 1) / kThreadsAtATime * kThreadsAtATime;
  const uint64_t resident = allocated * std::max(tree.minBlocksPerSM, 1u);
  if (!resident)
    return kMaxRegisters;
  return unsigned(std::clamp<uint64_t>(kRegisters / resident / 8 * 8, kMinRegisters, kMaxRegisters));
}

void assign(FunctionCode &kernel, unsigned need, unsigned limit) {
  const ptx::Function &tree = *kernel.tree;
  const bool hasDirective = tree.maxRegisters || threads(tree);
  const unsigned most = hasDirective ? std::min(maxRegisters(tree), fromThreads(tree))
                        : limit      ? std::clamp(limit, kMinRegisters, kMaxRegisters)
                                     : kMaxRegisters;
  kernel.registers = std::min(need + kOverhead, most);
  bool changes = false;
  unsigned largest = 0;
  for (const Instruction &instruction : tree.instructions) {
    if (instruction.opcode != "setmaxnreg")
      continue;
    changes = true;
    if (instruction.modifiers[0] == "inc")
      largest = std::max(largest, unsigned(instruction.operands[0].value));
  }
  if (!changes)
    return;
  const bool known = tree.maxRegisters || (threads(tree) && tree.minBlocksPerSM) || (limit && !hasDirective);
  kernel.setmaxnreg = known ? Setmaxnreg::Obeyed : Setmaxnreg::Ignored;
  if (known)
    kernel.registers = largest ? std::min(most, largest) : most;
}

} // namespace

void fp8emu::assignRegisters(Program &program, const std::vector<RegisterNeed> &needs, unsigned limit) {
  CallGraph graph(program, needs);
  for (uint32_t i = 0; i < program.functions.size(); ++i)
    if (program.functions[i].isEntry)
      assign(program.functions[i], graph.need(i), limit);
}
