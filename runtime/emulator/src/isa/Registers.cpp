// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Liveness of registers, by the usual equations over basic blocks: live before an
// instruction is what it reads, and what is live after it and not written by it.

#include "Registers.h"

#include <algorithm>
#include <set>

using namespace fp8emu;
using ptx::Instruction;
using ptx::Operand;

namespace {

/// In halves of a register: pairs of 16-bit values share one.
unsigned halvesOf(ptx::Type type) {
  return type == ptx::Type::Pred ? 0 : std::max(1u, ptx::byteSize(type) / 2);
}

/// Registers that are live, and how many of 32 bits they take.
class LiveSet {
public:
  explicit LiveSet(const std::vector<unsigned> &halves) : halves(&halves), words((halves.size() + 63) / 64) {}

  bool has(uint32_t reg) const { return words[reg / 64] >> reg % 64 & 1; }
  void add(uint32_t reg) {
    if (!has(reg))
      words[reg / 64] |= uint64_t(1) << reg % 64, sum += (*halves)[reg];
  }
  void remove(uint32_t reg) {
    if (has(reg))
      words[reg / 64] &= ~(uint64_t(1) << reg % 64), sum -= (*halves)[reg];
  }
  /// Whether that changed it.
  bool add(const LiveSet &other) {
    bool changed = false;
    for (size_t w = 0; w < words.size(); ++w)
      for (uint64_t fresh = other.words[w] & ~words[w]; fresh; fresh &= fresh - 1, changed = true)
        add(uint32_t(w * 64) + uint32_t(__builtin_ctzll(fresh)));
    return changed;
  }
  unsigned inHalves() const { return sum; }
  unsigned total() const { return (sum + 1) / 2; }

private:
  const std::vector<unsigned> *halves;
  std::vector<uint64_t> words;
  unsigned sum = 0;
};

struct BasicBlock {
  uint32_t begin, end;
  std::vector<uint32_t> successors;
  LiveSet liveIn;
};

class Liveness {
public:
  Liveness(const ptx::Function &function, const std::vector<RegisterAccess> &accesses)
      : function(function), accesses(accesses) {
    for (const ptx::Register &reg : function.registers)
      halves.push_back(halvesOf(reg.type));
    findKept();
  }

  RegisterNeed run() {
    makeBlocks();
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t b = blocks.size(); b-- > 0;) {
        LiveSet live = liveOut(blocks[b]);
        for (uint32_t i = blocks[b].end; i-- > blocks[b].begin;)
          before(i, live);
        changed |= blocks[b].liveIn.add(live);
      }
    }
    return measure();
  }

private:
  /// An assembler keeps no registers for constants, addresses of variables and a kernel's
  /// parameters, which instructions read where they lie; and of integers that are computed
  /// from one other value it may keep that one, as for addresses that are a constant apart.
  void findKept() {
    std::vector<unsigned> writes(halves.size());
    for (size_t i = 0; i < accesses.size(); ++i)
      for (uint32_t reg : accesses[i].written)
        // Guarded: it may keep the value that it had.
        writes[reg] += function.instructions[i].guard < 0 ? 1 : 2;
    for (uint32_t reg = 0; reg < halves.size(); ++reg)
      kept.push_back(halves[reg] ? reg : kNothing);
    for (size_t i = 0; i < accesses.size(); ++i) {
      const std::vector<uint32_t> &written = accesses[i].written;
      if (!std::all_of(written.begin(), written.end(), [&](uint32_t reg) { return writes[reg] == 1; }) ||
          !isComputed(function.instructions[i]))
        continue;
      std::set<uint32_t> from;
      for (uint32_t reg : accesses[i].read)
        from.insert(kept[reg]);
      from.erase(kNothing);
      unsigned room = 0;
      for (uint32_t reg : written)
        room += halves[reg];
      const bool one = from.size() == 1 && writes[*from.begin()] == 1 && halves[*from.begin()] <= room;
      for (uint32_t reg : written)
        if (from.empty() || one)
          kept[reg] = one ? *from.begin() : kNothing;
    }
  }

  /// Whether it is one of those with which integers and addresses are computed, or reads a
  /// kernel's parameter.
  bool isComputed(const Instruction &instruction) const {
    static constexpr std::string_view opcodes[] = {"mov", "cvta", "cvt", "add", "sub", "mul",
                                                   "mad", "shl",  "shr", "and", "or",  "xor"};
    const auto &modifiers = instruction.modifiers;
    if (instruction.opcode == "ld")
      return function.isEntry && !modifiers.empty() && modifiers[0] == "param";
    if (instruction.opcode == "mov" && instruction.operands[1].kind == Operand::Kind::Special)
      return false;
    return std::count(std::begin(opcodes), std::end(opcodes), instruction.opcode) &&
           std::none_of(modifiers.begin(), modifiers.end(), [](const std::string &modifier) {
             return modifier[0] == 'f' || modifier.rfind("bf", 0) == 0 || modifier.rfind("tf", 0) == 0;
           });
  }

  bool ends(uint32_t i) const {
    static constexpr std::string_view opcodes[] = {"bra", "brx", "ret", "exit", "trap"};
    return std::count(std::begin(opcodes), std::end(opcodes), function.instructions[i].opcode);
  }

  uint32_t labelPlace(uint32_t label) const { return function.labels[label].instruction; }

  /// Where it goes on behind an instruction that ends a block.
  std::vector<uint32_t> targets(uint32_t i) const {
    const Instruction &instruction = function.instructions[i];
    std::vector<uint32_t> out;
    if (instruction.opcode == "bra")
      out.push_back(labelPlace(instruction.operands[0].index));
    if (instruction.opcode == "brx")
      for (uint32_t label : function.targetLists[instruction.operands[1].index].labels)
        out.push_back(labelPlace(label));
    if (instruction.guard >= 0)
      out.push_back(i + 1);
    return out;
  }

  void makeBlocks() {
    const uint32_t count = uint32_t(function.instructions.size());
    std::set<uint32_t> leaders = {0};
    for (const ptx::Label &label : function.labels)
      leaders.insert(label.instruction);
    for (uint32_t i = 0; i < count; ++i)
      if (ends(i))
        leaders.insert(i + 1);
    leaders.insert(count);
    // The last one is the function's end.
    for (auto at = leaders.begin(); at != leaders.end(); ++at) {
      auto next = std::next(at);
      blockAt.resize(*at + 1);
      blockAt[*at] = uint32_t(blocks.size());
      blocks.push_back({*at, next == leaders.end() ? *at : *next, {}, LiveSet(halves)});
    }
    for (BasicBlock &block : blocks) {
      if (block.begin == block.end)
        continue;
      const uint32_t last = block.end - 1;
      for (uint32_t place : ends(last) ? targets(last) : std::vector<uint32_t>{block.end})
        block.successors.push_back(blockAt[place]);
    }
  }

  LiveSet liveOut(const BasicBlock &block) const {
    LiveSet out(halves);
    for (uint32_t successor : block.successors)
      out.add(blocks[successor].liveIn);
    return out;
  }

  /// From live after an instruction to live before it. A guarded one keeps the old value
  /// where its guard is false.
  void before(uint32_t i, LiveSet &live) const {
    if (function.instructions[i].guard < 0)
      for (uint32_t reg : accesses[i].written)
        live.remove(reg);
    for (uint32_t reg : accesses[i].read)
      if (kept[reg] != kNothing)
        live.add(kept[reg]);
  }

  RegisterNeed measure() const {
    RegisterNeed need;
    for (const BasicBlock &block : blocks) {
      LiveSet live = liveOut(block);
      for (uint32_t i = block.end; i-- > block.begin;) {
        unsigned after = live.inHalves();
        // A register that nobody reads has a place as well when it is written.
        for (uint32_t reg : accesses[i].written)
          after += live.has(reg) || kept[reg] != reg ? 0 : halves[reg];
        need.live = std::max(need.live, (after + 1) / 2);
        before(i, live);
        if (function.instructions[i].opcode == "call")
          need.calls.push_back({callee(function.instructions[i]), live.total()});
      }
      need.live = std::max(need.live, live.total());
    }
    return need;
  }

  static std::string callee(const Instruction &instruction) {
    for (const Operand &operand : instruction.operands)
      if (operand.kind != Operand::Kind::List)
        return operand.kind == Operand::Kind::Symbol ? operand.text : "";
    return "";
  }

  const ptx::Function &function;
  const std::vector<RegisterAccess> &accesses;
  static constexpr uint32_t kNothing = UINT32_MAX;
  std::vector<unsigned> halves;
  /// Of each register, which one has to be live for its value to be had.
  std::vector<uint32_t> kept;
  std::vector<BasicBlock> blocks;
  /// By the instruction it begins with.
  std::vector<uint32_t> blockAt;
};

} // namespace

RegisterNeed fp8emu::findRegisterNeed(const ptx::Function &function,
                                      const std::vector<RegisterAccess> &accesses) {
  return Liveness(function, accesses).run();
}
