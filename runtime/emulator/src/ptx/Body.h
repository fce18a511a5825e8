// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The statements of a function's body (ISA 4.3, 6, 11.6), name by name.

#ifndef FP8EMU_PTX_BODY_H
#define FP8EMU_PTX_BODY_H

#include "Cursor.h"
#include "Names.h"
#include "variables/Declaration.h"

namespace fp8emu::ptx {

/// The state that the parsers of a module's parts share.
struct Context {
  Cursor &cursor;
  Module &module;
  Scope &names;
  Budget &budget;
};

/// .loc (ISA 11.5.2): an entry of Module::sourceLines that still has the file's
/// number instead of its index.
void parseLoc(Cursor &cursor, Module &module);
void parseFile(Cursor &cursor, Module &module);

class Body {
public:
  Body(Context context, Function &function);

  /// From `{` to the `}` that ends the function.
  void parse();

private:
  /// A use of a label or of a list of targets, which may stand after it.
  struct Use {
    Token name;
    enum class Where : uint8_t { Instruction, TargetList } in;
    bool ofList;
    /// The instruction or list, the operand or entry in it.
    uint32_t index, position;
  };

  // Scopes.cpp: braces, declarations, labels.
  void openScope();
  void closeScope();
  bool resolve(const Use &use);
  void declareParameters(const std::vector<Variable> &parameters);
  void declare(std::string_view name, Location where, Name meaning);
  void declareVariable(Variable variable, std::string_view name);
  void parseRegisters();
  void parseRegister(const Variable &specifiers);
  void addRegisters(const Variable &specifiers, std::string name);
  void takeRegisters(uint64_t count, Location where);
  void parseMemory();
  void parseLabel();

  // Targets.cpp: .branchtargets, .calltargets, .callprototype.
  bool parseTargetList(const Token &label);
  void parseBranchTargets(TargetList &list);
  void parseCallTargets(TargetList &list);
  void parsePrototype(TargetList &list);

  // Statements.cpp
  void parseStatement();
  void parseDirective();
  void parseInstruction();
  void parseGuard(Instruction &instruction);
  void parseOperands(Instruction &instruction);

  // Operands.cpp
  Operand parseOperand(const Instruction &instruction);
  Operand parseSimple(const Instruction &instruction);
  Operand parseAddress(const Instruction &instruction);
  Operand parseSequence(const Instruction &instruction, Operand::Kind kind, const char *close);
  Operand parseConstantOperand();
  Operand parseNegated();
  Operand parseName();
  Operand parseElement(Operand variable);
  Operand namedRegister(const Token &name, uint32_t index);
  Operand namedVariable(Operand operand, const Name &meaning);
  Operand specialRegister(const Token &name);
  Operand parseLabelUse(bool ofList, uint32_t position);

  Context context;
  Cursor &cursor;
  Function &function;
  Scopes scopes;
  /// Per scope, what was used in it and not found yet.
  std::vector<std::vector<Use>> uses;
  uint32_t sourceLine = 0;
};

} // namespace fp8emu::ptx

#endif // FP8EMU_PTX_BODY_H
