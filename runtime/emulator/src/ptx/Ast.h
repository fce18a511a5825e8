// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A PTX module as a tree, names resolved: what the parser makes of the text and
// all that the decoder sees of it. Instructions stay what they are in the text,
// an opcode with modifiers; their meaning is the business of isa/.

#ifndef FP8EMU_PTX_AST_H
#define FP8EMU_PTX_AST_H

#include "fp8emu/Types.h"

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace fp8emu::ptx {

using fp8emu::Location;

/// The fundamental types of PTX (ISA 5.2), as declarations may have them, and behind .f64 those
/// that only instructions have.
enum class Type : uint8_t {
  Pred,
  B8,
  B16,
  B32,
  B64,
  B128,
  U8,
  U16,
  U32,
  U64,
  S8,
  S16,
  S32,
  S64,
  F16,
  F16x2,
  F32,
  F64,
  BF16,
  BF16x2,
  U16x2,
  S16x2,
  F32x2
};

/// Bytes of a value of the type; 1 for predicates.
unsigned byteSize(Type type);
/// As in "f32", without a dot.
const char *name(Type type);

/// State spaces (ISA 5.1) that variables are declared in.
enum class Space : uint8_t { Reg, Const, Global, Local, Param, Shared };

enum class Linkage : uint8_t { None, Extern, Visible, Weak, Common };

/// A register. All those of a function stand in one list, those of inner scopes
/// and of parameterized declarations (%r<100>) each on its own.
struct Register {
  std::string name;
  Type type = Type::B32;
  /// 1, or 2 and 4 for the first element of `.reg .v2` and `.v4`: the elements
  /// follow each other in the list, named v.x, v.y, v.z and v.w. An operand that
  /// names the whole vector becomes the Vector of its elements.
  unsigned vectorWidth = 1;
};

/// An address that an initialiser holds: of `symbol` plus `addend`, in
/// `size` bytes at `offset`, shifted right by `shift` and masked to the size for
/// initialisers such as 0xFF00(var).
struct Relocation {
  uint64_t offset = 0;
  std::string symbol;
  int64_t addend = 0;
  unsigned size = 8;
  unsigned shift = 0;
  /// Of `generic(symbol)`: the generic address instead of that in its space.
  bool generic = false;
};

/// A variable in memory: global, constant, shared, local, or a parameter.
struct Variable {
  std::string name;
  Location where;
  Space space = Space::Global;
  Linkage linkage = Linkage::None;
  Type type = Type::B8;
  unsigned vectorWidth = 1;
  /// In bytes, of its type where the text gives none.
  unsigned alignment = 1;
  /// Number of elements over all array dimensions (1 for a scalar); 0 for an
  /// array without a size, as of `extern .shared`.
  uint64_t count = 1;
  bool isArray = false;
  /// The initial bytes, shorter than the variable where the rest is zero.
  std::vector<uint8_t> init;
  std::vector<Relocation> relocations;
  /// Of a parameter with `.ptr`: it points to memory of this alignment.
  unsigned pointerAlignment = 0;

  uint64_t bytes() const { return count * vectorWidth * byteSize(type); }
};

/// An operand of an instruction, names resolved by the parser.
struct Operand {
  enum class Kind : uint8_t {
    /// `index` into Function::registers. `text` is the part that a video
    /// instruction selects (ISA 9.7.18): "b0" to "b3", "h0", "h1"; else empty.
    Register,
    /// A special register such as %tid.x: `text` is its name with %.
    Special,
    /// A variable in memory, by value its address, plus `value` bytes: `index`
    /// into Function::variables where `local`, else into Module::variables.
    /// mov's b[2] is one with the bytes up to that element, ld's is an Address.
    Variable,
    /// `index` into Function::labels.
    Label,
    /// A function: `text` is its name. Where `local`, the label of a
    /// .callprototype, .calltargets or .branchtargets: `index` into
    /// Function::targetLists.
    Symbol,
    /// `value`, two's complement; `isUnsigned` where the text says U.
    Integer,
    /// `value` holds the bits of an f64, or of an f32 (0f...) where `isSingle`.
    Float,
    /// The sink `_`.
    Sink,
    /// [base + value]: parts[0] is the base (Register, Variable or Integer), the
    /// rest what follows it inside the brackets, as a tensor's coordinates.
    Address,
    /// {a, b, ...}
    Vector,
    /// a|b, as of setp and shfl.
    Pair,
    /// (a, b, ...), as of call.
    List,
  };

  Kind kind = Kind::Sink;
  Location where;
  /// Of a predicate written !p, also of a number or register written with a minus
  /// where PTX allows it.
  bool negated = false;
  bool local = false;
  bool isUnsigned = false;
  bool isSingle = false;
  uint32_t index = 0;
  int64_t value = 0;
  std::string text;
  std::vector<Operand> parts;
};

struct Instruction {
  Location where;
  /// Index into Module::sourceLines plus 1 of the .loc before it; 0 for none.
  uint32_t sourceLine = 0;
  /// The predicate it is guarded by (@p, @!p): an index into
  /// Function::registers, -1 for none.
  int32_t guard = -1;
  bool guardNegated = false;
  /// "ld"; the modifiers follow without their dots: "global", "v4", "f32",
  /// "L2::128B".
  std::string opcode;
  std::vector<std::string> modifiers;
  std::vector<Operand> operands;
};

/// The targets of an indirect branch or call, or a call's prototype.
struct TargetList {
  std::string name;
  /// Label indices of .branchtargets.
  std::vector<uint32_t> labels;
  /// Function names of .calltargets.
  std::vector<std::string> functions;
  /// Of .callprototype: the bytes and alignment of results and parameters.
  bool isPrototype = false;
  std::vector<Variable> results, parameters;
};

struct Label {
  std::string name;
  Location where;
  /// The instruction it stands before: an index into Function::instructions,
  /// their number for a label at the end.
  uint32_t instruction = 0;
};

using Dim3 = std::array<uint32_t, 3>;

struct Function {
  std::string name;
  Location where;
  bool isEntry = false;
  bool isDeclaration = false;
  bool isNoReturn = false;
  Linkage linkage = Linkage::None;
  /// Parameters in the text's order; of a .func they may also be registers, and
  /// are then `Space::Reg`.
  std::vector<Variable> results, parameters;
  /// Of a definition: first the results, then the parameters, as
  /// Operand::Variable finds them; then the memory declared inside: local, shared,
  /// parameters of calls.
  std::vector<Variable> variables;
  /// First those that are results and parameters, in that order.
  std::vector<Register> registers;
  std::vector<Label> labels;
  std::vector<TargetList> targetLists;
  std::vector<Instruction> instructions;

  /// Performance directives (ISA 11.4); zero where absent.
  Dim3 maxThreads{}, requiredThreads{}, requiredCluster{};
  uint32_t minBlocksPerSM = 0, maxRegisters = 0, maxClusterRank = 0;
  bool explicitCluster = false, blocksAreClusters = false;
  /// The line of `}`.
  Location end;
};

/// A source line as .loc names it: an index into Module::files plus 1, a line.
struct SourceLine {
  uint32_t file = 0, line = 0, column = 0;
};

struct Module {
  /// "8.6" is {8, 6}.
  std::pair<unsigned, unsigned> version{0, 0};
  /// As in "sm_90a".
  std::string target;
  unsigned addressSize = 64;
  std::vector<std::pair<uint32_t, std::string>> files;
  std::vector<SourceLine> sourceLines;
  std::vector<Variable> variables;
  std::vector<Function> functions;
  /// .alias a, b
  std::vector<std::pair<std::string, std::string>> aliases;
  /// Of .pragma at module level, as text.
  std::vector<std::string> pragmas;
};

/// The function of that name, a definition before a declaration; null for none.
const Function *find(const Module &module, const std::string &name);

} // namespace fp8emu::ptx

#endif // FP8EMU_PTX_AST_H
