// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decoding a function: its frame, then one op for each instruction.

#include "Decoder.h"

#include "Families.h"
#include "Modifiers.h"
#include "Requirements.h"

#include <algorithm>
#include <cstring>

using namespace fp8emu;
using ptx::Operand;
using ptx::Type;

unsigned fp8emu::laneBytes(Type type) {
  if (type == Type::Pred)
    return 0;
  return std::max(2u, ptx::byteSize(type));
}

bool fp8emu::isFloat(Type type) {
  switch (type) {
  case Type::F16:
  case Type::F16x2:
  case Type::BF16:
  case Type::BF16x2:
  case Type::F32:
  case Type::F64:
    return true;
  default:
    return false;
  }
}

bool fp8emu::isSigned(Type type) {
  return type == Type::S8 || type == Type::S16 || type == Type::S32 || type == Type::S64;
}

bool fp8emu::isInteger(Type type) {
  return isSigned(type) || type == Type::U8 || type == Type::U16 || type == Type::U32 || type == Type::U64;
}

Decoder::Decoder(Program &program, FunctionCode &function)
    : prog(program), code(function), tree(*function.tree) {}

static uint32_t alignUp(uint32_t value, uint32_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

/// Places of registers, and of local variables and parameters in local memory.
void Decoder::layOutFrame() {
  registerOffsets.clear();
  for (const ptx::Register &reg : tree.registers) {
    unsigned bytes = laneBytes(reg.type);
    // Aligned for the host's vector instructions; predicates are small.
    code.registerBytes = alignUp(code.registerBytes, bytes ? 64 : 4);
    registerOffsets.push_back(code.registerBytes);
    code.registerPlaces.emplace_back(code.registerBytes, bytes);
    code.registerBytes += bytes ? bytes * kLanes : 4;
  }
  // CUDA C++ guide, Technical Specifications per Compute Capability.
  constexpr uint64_t kMaxLocal = 512 * 1024;
  uint32_t offset = 0;
  code.variableOffsets.resize(tree.variables.size());
  for (size_t i = 0; i < tree.variables.size(); ++i) {
    const ptx::Variable &variable = tree.variables[i];
    const bool kernelParameter = code.isEntry && i < tree.parameters.size();
    if (kernelParameter || (variable.space != ptx::Space::Local && variable.space != ptx::Space::Param))
      continue;
    offset = alignUp(offset, std::max(variable.alignment, ptx::byteSize(variable.type)));
    if (offset + variable.bytes() > kMaxLocal)
      throw PtxError(variable.where, "the function has more than " + std::to_string(kMaxLocal) +
                                         " bytes of local variables and parameters of calls");
    code.variableOffsets[i] = offset;
    offset += uint32_t(variable.bytes());
  }
  // Functions need some of the stack even where they have no variables.
  code.frameBytes = std::max(alignUp(offset, 16), code.isEntry ? 0u : 16u);
  if (code.isEntry)
    return;
  auto place = [&](size_t i) {
    const ptx::Variable &variable = tree.variables[i];
    return ParameterPlace{uint32_t(code.variableOffsets[i]), uint32_t(variable.bytes()), variable.alignment};
  };
  code.parameters.clear();
  for (size_t i = 0; i < tree.results.size(); ++i)
    code.results.push_back(place(i));
  for (size_t i = 0; i < tree.parameters.size(); ++i)
    code.parameters.push_back(place(tree.results.size() + i));
}

void Decoder::decodeFunction(Missing *missing) {
  layOutFrame();
  code.begin = uint32_t(prog.ops.size());
  for (const ptx::Instruction &instruction : tree.instructions) {
    try {
      decodeInstruction(instruction);
    } catch (const PtxError &error) {
      if (!missing)
        throw;
      missing->push_back({error.message, instruction.where});
    }
    prog.ops.push_back(current);
    prog.instructions.push_back(&instruction);
  }
  // Running past the end returns (PTX ISA 9.7.12.6 leaves it open; nvcc relies on it
  // after calls that do not return).
  current = Op();
  current.handler = returnHandler();
  prog.ops.push_back(current);
  prog.instructions.push_back(nullptr);
  code.end = uint32_t(prog.ops.size());
}

void Decoder::decodeInstruction(const ptx::Instruction &instruction) {
  inst = &instruction;
  current = Op();
  taken.assign(instruction.modifiers.size(), false);
  registerAccesses.emplace_back();
  DecodeFunction decode = findDecoder(instruction.opcode);
  if (!decode)
    fail("unknown instruction " + instruction.opcode);
  if (auto unmet = findUnmet(*prog.tree, instruction))
    fail(*unmet);
  if (auto wrong = findWrongModifier(*prog.tree, instruction))
    fail(*wrong);
  if (instruction.guard >= 0) {
    current.guard = read(uint32_t(instruction.guard));
    current.guardNegated = instruction.guardNegated;
  }
  expectNoSink();
  decode(*this);
  for (size_t i = 0; i < taken.size(); ++i)
    if (!taken[i])
      fail("." + instruction.modifiers[i] + " is not known here");
}

/// The sink `_` is a destination of few instructions, alone, in a pair or in braces: the rest
/// have results that are written.
void Decoder::expectNoSink() const {
  static constexpr const char *kWithSinks[] = {"atom",     "clusterlaunchcontrol",
                                               "elect",    "ld",
                                               "ldmatrix", "lop3",
                                               "match",    "mbarrier",
                                               "mma",      "mov",
                                               "multimem", "setp",
                                               "shfl",     "st",
                                               "wmma"};
  if (std::find(std::begin(kWithSinks), std::end(kWithSinks), inst->opcode) != std::end(kWithSinks))
    return;
  for (const Operand &operand : inst->operands) {
    const auto isSink = [](const Operand &part) { return part.kind == Operand::Kind::Sink; };
    if (isSink(operand) || std::any_of(operand.parts.begin(), operand.parts.end(), isSink))
      fail(operand, "the sink _ stands where a register is written");
  }
}

void Decoder::fail(const std::string &message) const {
  std::string text = inst->opcode;
  for (const std::string &modifier : inst->modifiers)
    text += "." + modifier;
  throw PtxError(inst->where, text + ": " + message);
}

void Decoder::fail(const Operand &operand, const std::string &message) const {
  std::string text = inst->opcode;
  for (const std::string &modifier : inst->modifiers)
    text += "." + modifier;
  throw PtxError(operand.where.line ? operand.where : inst->where, text + ": " + message);
}

bool Decoder::take(const char *modifier) {
  for (size_t i = 0; i < taken.size(); ++i)
    if (!taken[i] && inst->modifiers[i] == modifier)
      return taken[i] = true;
  return false;
}

int Decoder::takeOneOf(std::initializer_list<const char *> names) {
  int index = 0;
  for (const char *name : names) {
    if (take(name))
      return index;
    ++index;
  }
  return -1;
}

int Decoder::needOneOf(std::initializer_list<const char *> names) {
  int index = takeOneOf(names);
  if (index >= 0)
    return index;
  std::string text;
  for (const char *name : names)
    text += (text.empty() ? "." : ", .") + std::string(name);
  fail("one of " + text + " is missing");
}

static const std::pair<const char *, Type> kTypes[] = {
    {"pred", Type::Pred}, {"b8", Type::B8},         {"b16", Type::B16}, {"b32", Type::B32},
    {"b64", Type::B64},   {"b128", Type::B128},     {"u8", Type::U8},   {"u16", Type::U16},
    {"u32", Type::U32},   {"u64", Type::U64},       {"s8", Type::S8},   {"s16", Type::S16},
    {"s32", Type::S32},   {"s64", Type::S64},       {"f16", Type::F16}, {"f16x2", Type::F16x2},
    {"bf16", Type::BF16}, {"bf16x2", Type::BF16x2}, {"f32", Type::F32}, {"f64", Type::F64}};

static const Type *findType(const std::string &name) {
  for (const auto &[text, type] : kTypes)
    if (name == text)
      return &type;
  return nullptr;
}

bool Decoder::hasType() const {
  for (size_t i = 0; i < taken.size(); ++i)
    if (!taken[i] && findType(inst->modifiers[i]))
      return true;
  return false;
}

Type Decoder::takeType() {
  for (size_t i = 0; i < taken.size(); ++i)
    if (!taken[i])
      if (const Type *type = findType(inst->modifiers[i])) {
        taken[i] = true;
        return *type;
      }
  fail("a type is missing");
}

std::string Decoder::takeAny() {
  for (size_t i = 0; i < taken.size(); ++i)
    if (!taken[i]) {
      taken[i] = true;
      return inst->modifiers[i];
    }
  return "";
}

void Decoder::ignoreCacheHints() {
  takeOneOf({"ca", "cg", "cs", "lu", "cv", "wb", "wt"});
  for (size_t i = 0; i < taken.size(); ++i) {
    const std::string &m = inst->modifiers[i];
    if (m.rfind("L1::", 0) == 0 || m.rfind("L2::", 0) == 0 || m.rfind("level::", 0) == 0)
      taken[i] = true;
  }
}

const Operand &Decoder::operand(unsigned i) const {
  if (i >= inst->operands.size())
    fail("operand " + std::to_string(i + 1) + " is missing");
  return inst->operands[i];
}

void Decoder::expectOperands(unsigned least, unsigned most) {
  if (operands() >= least && operands() <= most)
    return;
  std::string count =
      least == most ? std::to_string(least) : std::to_string(least) + " to " + std::to_string(most);
  fail(count + " operands are expected, there are " + std::to_string(operands()));
}

uint32_t Decoder::target(uint32_t label) const { return code.begin + tree.labels[label].instruction; }

void Decoder::list(const std::vector<Ref> &refs) {
  if (current.count == 0)
    current.list = uint32_t(code.refs.size());
  code.refs.insert(code.refs.end(), refs.begin(), refs.end());
  current.count += uint32_t(refs.size());
}
