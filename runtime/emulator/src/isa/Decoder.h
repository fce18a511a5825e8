// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decoding one instruction at a time: its family takes the modifiers one by one and turns
// the operands into places in a warp's memories. A modifier that is left over is an error: an
// unknown instruction is never guessed at.

#ifndef FP8EMU_ISA_DECODER_H
#define FP8EMU_ISA_DECODER_H

#include "Registers.h"

#include "exec/Program.h"
#include "ptx/Ast.h"
#include "ptx/Parser.h"

#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace fp8emu {

/// Bytes of a register's value in a lane: 2 for 8-bit registers, 0 for predicates.
unsigned laneBytes(ptx::Type type);
bool isFloat(ptx::Type type);
bool isSigned(ptx::Type type);
bool isInteger(ptx::Type type);

/// An address operand: base + offset.
struct AddressOperand {
  /// Null where the base is an immediate or lies in the frame: `offset` has all of the address
  /// then.
  Ref base;
  /// Bytes of the base in a lane: 4 or 8.
  unsigned baseBytes = 8;
  int64_t offset = 0;
  /// Whether the base is a variable of the frame: local memory, or a parameter of a function or
  /// a call.
  bool inFrame = false;
  /// The operands that follow the base inside the brackets, as the coordinates of a tensor access.
  std::vector<ptx::Operand> rest;
};

class Decoder {
public:
  /// Code of `function` goes to the end of the program. Its `variableOffsets` hold
  /// the places of variables outside its frame.
  Decoder(Program &program, FunctionCode &function);

  /// Decodes all instructions of the function. With `missing`, instructions that
  /// are not known are listed there (text and line) instead of being errors.
  using Missing = std::vector<std::pair<std::string, ptx::Location>>;
  void decodeFunction(Missing *missing = nullptr);
  /// The registers that each instruction of the function reads and writes.
  const std::vector<RegisterAccess> &accesses() const { return registerAccesses; }

  // The instruction being decoded.
  const ptx::Instruction &instruction() const { return *inst; }
  const Program &program() const { return prog; }
  FunctionCode &function() { return code; }
  Op &op() { return current; }
  [[noreturn]] void fail(const std::string &message) const;
  [[noreturn]] void fail(const ptx::Operand &operand, const std::string &message) const;

  // Modifiers. Each may be taken once; those left over are an error.

  bool take(const char *modifier);
  /// Takes the modifier of `names` that the instruction has. Returns its index, or -1.
  int takeOneOf(std::initializer_list<const char *> names);
  /// As takeOneOf; where the instruction has none of them, an error that lists the names.
  int needOneOf(std::initializer_list<const char *> names);
  /// Takes the first modifier that is a fundamental type.
  ptx::Type takeType();
  bool hasType() const;
  /// Takes the first modifier that has not been taken, of any kind; empty for none.
  std::string takeAny();
  /// Takes modifiers that are hints for caches and change no value.
  void ignoreCacheHints();

  // Operands.

  unsigned operands() const { return unsigned(inst->operands.size()); }
  const ptx::Operand &operand(unsigned i) const;
  void expectOperands(unsigned least, unsigned most);
  void expectOperands(unsigned count) { expectOperands(count, count); }

  /// A value that is read as `type`: a register of that size, an immediate, an address.
  Ref source(const ptx::Operand &operand, ptx::Type type);
  Ref source(unsigned i, ptx::Type type) { return source(operand(i), type); }
  /// A register that is written; for the sink `_` a place that nobody reads.
  Ref destination(const ptx::Operand &operand, ptx::Type type);
  Ref destination(unsigned i, ptx::Type type) { return destination(operand(i), type); }
  /// As above for registers at least as wide as the type (PTX ISA 9.4.1: ld, st,
  /// cvt): `bytes` is that of the register in a lane.
  Ref wideSource(const ptx::Operand &operand, ptx::Type type, unsigned &bytes);
  Ref wideDestination(const ptx::Operand &operand, ptx::Type type, unsigned &bytes);
  /// A predicate. A negated one (!p) only where `negated` is given.
  Ref predicate(const ptx::Operand &operand, bool *negated = nullptr);
  Ref predicateDestination(const ptx::Operand &operand);
  AddressOperand address(const ptx::Operand &operand);
  /// An integer that is known when the instruction is decoded.
  int64_t integer(const ptx::Operand &operand);
  /// The same for integers from 0 on.
  int64_t count(const ptx::Operand &operand);
  bool isImmediate(const ptx::Operand &operand) const;

  /// 32 lanes that hold the value.
  Ref constant(uint64_t value, unsigned bytes);
  Ref special(Special special);
  /// The special register of that name; null where it is not one that is known when
  /// a block begins.
  Ref findSpecial(const std::string &text);
  Ref scratch(unsigned bytes);
  /// The carry flag of the condition code (PTX ISA 9.7.2), as a predicate. A call has
  /// its own: the flag is not preserved across calls.
  Ref carry();
  ptx::Type registerType(uint32_t index) const;
  /// Where the op of a label is.
  uint32_t target(uint32_t label) const;
  /// Appends operands to the op's list.
  void list(const std::vector<Ref> &refs);
  template <class T>
  const T *keep(std::shared_ptr<const T> payload) {
    code.payloads.push_back(payload);
    current.payload = payload.get();
    return payload.get();
  }
  /// Says that blocks may influence each other (Program::blocksCommunicate).
  void blocksCommunicate() { prog.blocksCommunicate = true; }

private:
  void decodeInstruction(const ptx::Instruction &instruction);
  void expectNoSink() const;
  void layOutFrame();
  /// An error where the register's type is not one that the type takes (OperandTypes.h).
  void expectRegister(const ptx::Operand &operand, ptx::Type type, bool wider) const;
  uint32_t registerOf(const ptx::Operand &operand, ptx::Type type) const;
  uint32_t wideRegisterOf(const ptx::Operand &operand, ptx::Type type, unsigned &bytes) const;
  uint32_t predicateOf(const ptx::Operand &operand) const;
  /// The place of a register, noted as read, or as written, by the instruction.
  Ref read(uint32_t index);
  Ref written(uint32_t index);
  Ref sourceSpecial(const ptx::Operand &operand, ptx::Type type);
  Ref sourceVariable(const ptx::Operand &operand, unsigned bytes);
  uint64_t immediateBits(const ptx::Operand &operand, ptx::Type type) const;
  Ref blockAddress(uint32_t offset, unsigned bytes);

  Program &prog;
  FunctionCode &code;
  const ptx::Function &tree;
  const ptx::Instruction *inst = nullptr;
  std::vector<bool> taken;
  Op current;
  std::vector<uint32_t> registerOffsets;
  std::vector<RegisterAccess> registerAccesses;
  std::map<std::pair<uint64_t, unsigned>, Ref> constantRefs;
  std::map<unsigned, Ref> scratches;
  Ref carryFlag;
};

/// Decodes one instruction into `decoder.op()`.
using DecodeFunction = void (*)(Decoder &decoder);

/// The decoder of an opcode; null where it is not known.
DecodeFunction findDecoder(const std::string &opcode);

} // namespace fp8emu

#endif // FP8EMU_ISA_DECODER_H
