// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operands: from names and numbers to places in a warp's memories.

#include "Decoder.h"

#include "OperandTypes.h"

#include "ptx/Names.h"

#include <algorithm>
#include <cstring>

using namespace fp8emu;
using ptx::Operand;
using ptx::Type;

Ref Decoder::read(uint32_t index) {
  registerAccesses.back().read.push_back(index);
  return {Ref::Registers, registerOffsets[index]};
}

Ref Decoder::written(uint32_t index) {
  // Families may ask for an operand's place more than once.
  std::vector<uint32_t> &all = registerAccesses.back().written;
  if (std::find(all.begin(), all.end(), index) == all.end())
    all.push_back(index);
  return {Ref::Registers, registerOffsets[index]};
}

Type Decoder::registerType(uint32_t index) const { return tree.registers[index].type; }

bool Decoder::isImmediate(const Operand &operand) const {
  return operand.kind == Operand::Kind::Integer || operand.kind == Operand::Kind::Float;
}

int64_t Decoder::integer(const Operand &operand) {
  if (operand.kind != Operand::Kind::Integer)
    fail(operand, "an integer constant is expected");
  return operand.value;
}

int64_t Decoder::count(const Operand &operand) {
  int64_t value = integer(operand);
  if (value < 0)
    fail(operand, "a number from 0 on is expected");
  return value;
}

Ref Decoder::constant(uint64_t value, unsigned bytes) {
  auto [it, isNew] = constantRefs.try_emplace({value, bytes});
  if (!isNew)
    return it->second;
  it->second = Ref(Ref::Constants, uint32_t(code.constants.size() * sizeof(uint64_t)));
  if (bytes == 0) {
    code.constants.push_back(value ? kAllLanes : 0);
    return it->second;
  }
  std::vector<uint64_t> lanes(bytes * kLanes / sizeof(uint64_t));
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    std::memcpy(reinterpret_cast<uint8_t *>(lanes.data()) + lane * bytes, &value, std::min(bytes, 8u));
    // A 128-bit value is sign-extended.
    if (bytes == 16)
      lanes[lane * 2 + 1] = int64_t(value) < 0 ? ~uint64_t(0) : 0;
  }
  code.constants.insert(code.constants.end(), lanes.begin(), lanes.end());
  return it->second;
}

Ref Decoder::special(Special special) { return {Ref::Specials, uint32_t(special) * kLanes * 4}; }

/// Names of the special registers that are known when a block begins; those with
/// components follow each other in Special.
static const std::pair<const char *, Special> kSpecials[] = {
    {"%tid", Special::TidX},
    {"%ntid", Special::NtidX},
    {"%ctaid", Special::CtaidX},
    {"%nctaid", Special::NctaidX},
    {"%clusterid", Special::ClusteridX},
    {"%nclusterid", Special::NclusteridX},
    {"%cluster_ctaid", Special::ClusterCtaidX},
    {"%cluster_nctaid", Special::ClusterNctaidX},
    {"%laneid", Special::LaneId},
    {"%warpid", Special::WarpId},
    {"%nwarpid", Special::NwarpId},
    {"%smid", Special::SmId},
    {"%nsmid", Special::NsmId},
    {"%lanemask_eq", Special::LanemaskEq},
    {"%lanemask_le", Special::LanemaskLe},
    {"%lanemask_lt", Special::LanemaskLt},
    {"%lanemask_ge", Special::LanemaskGe},
    {"%lanemask_gt", Special::LanemaskGt},
    {"%cluster_ctarank", Special::ClusterCtarank},
    {"%cluster_nctarank", Special::ClusterNctarank},
    {"%total_smem_size", Special::TotalSmemSize},
    {"%aggr_smem_size", Special::AggrSmemSize},
    {"%dynamic_smem_size", Special::DynamicSmemSize},
    {"%reserved_smem_offset_begin", Special::ReservedSmemBegin},
    {"%reserved_smem_offset_0", Special::ReservedSmemBegin},
    {"%reserved_smem_offset_1", Special::ReservedSmemBegin},
    {"%reserved_smem_offset_cap", Special::ReservedSmemEnd},
    {"%reserved_smem_offset_end", Special::ReservedSmemEnd},
    {"%envreg1", Special::Envreg1},
    {"%envreg2", Special::Envreg2}};

Ref Decoder::findSpecial(const std::string &text) {
  std::string name = text;
  unsigned component = 0;
  if (size_t dot = text.find('.'); dot != std::string::npos) {
    component = unsigned(std::string("xyzw").find(text.back()));
    name = text.substr(0, dot);
    // The fourth component is always 0 (PTX ISA 10.1), 1 for sizes.
    if (component == 3)
      return name[1] == 'n' || name == "%cluster_nctaid" ? constant(1, 4) : special(Special::Zero);
  }
  if (name.rfind("%reserved_smem", 0) == 0)
    prog.usesReservedShared = true;
  for (const auto &[known, first] : kSpecials)
    if (name == known)
      return special(Special(uint32_t(first) + component));
  // The other registers of the environment hold what a driver chooses: nothing.
  return name.rfind("%envreg", 0) == 0 ? special(Special::Zero) : Ref();
}

Ref Decoder::scratch(unsigned bytes) {
  auto [it, isNew] = scratches.try_emplace(bytes);
  if (isNew) {
    code.registerBytes = (code.registerBytes + 63) / 64 * 64;
    it->second = Ref(Ref::Registers, code.registerBytes);
    code.registerBytes += bytes ? bytes * kLanes : 4;
  }
  return it->second;
}

Ref Decoder::carry() {
  if (!carryFlag) {
    carryFlag = Ref(Ref::Registers, (code.registerBytes + 3) / 4 * 4);
    code.registerBytes = carryFlag.offset + 4;
    code.registerPlaces.emplace_back(uint32_t(carryFlag.offset), 0);
  }
  return carryFlag;
}

uint64_t Decoder::immediateBits(const Operand &operand, Type type) const {
  if (operand.kind == Operand::Kind::Integer) {
    if (!takesInteger(type))
      fail(operand, "an integer stands where ." + std::string(ptx::name(type)) + " is expected: a register" +
                        (takesFloat(type, /*isSingle=*/true) ? ", or a number as 1.0 or 0f3F800000" : ""));
    return uint64_t(operand.value);
  }
  if (!takesFloat(type, operand.isSingle))
    fail(operand, "a floating-point number stands where ." + std::string(ptx::name(type)) + " is expected" +
                      (takesInteger(type) ? ": a register or an integer" : ": a register"));
  if (operand.isSingle) {
    if (type == Type::F64) {
      float single;
      uint32_t bits = uint32_t(operand.value);
      std::memcpy(&single, &bits, 4);
      double wide = double(single);
      uint64_t out;
      std::memcpy(&out, &wide, 8);
      return out;
    }
    return uint32_t(operand.value);
  }
  if (ptx::byteSize(type) == 8)
    return uint64_t(operand.value);
  double wide;
  std::memcpy(&wide, &operand.value, 8);
  float single = float(wide);
  uint32_t bits;
  std::memcpy(&bits, &single, 4);
  return bits;
}

Ref Decoder::blockAddress(uint32_t offset, unsigned bytes) {
  for (const BlockAddress &known : prog.blockAddresses)
    if (known.offset == offset && known.width == bytes)
      return {Ref::Specials, known.place};
  uint32_t place = prog.specialBytes;
  prog.blockAddresses.push_back({offset, uint8_t(bytes), place});
  prog.specialBytes += bytes * kLanes;
  return {Ref::Specials, place};
}

/// The address of a variable in its state space. Null for one in the frame: its address is
/// known only when the frame is.
Ref Decoder::sourceVariable(const Operand &operand, unsigned bytes) {
  const ptx::Variable &variable =
      operand.local ? tree.variables[operand.index] : prog.tree->variables[operand.index];
  if (operand.local && variable.space == ptx::Space::Param && code.isEntry) {
    // Parameters of the kernel itself come first; the rest are parameters of calls.
    if (operand.index < tree.parameters.size())
      return constant(code.parameters[operand.index].offset + uint64_t(operand.value), bytes);
    return Ref();
  }
  if (operand.local && (variable.space == ptx::Space::Local || variable.space == ptx::Space::Param))
    return Ref();
  uint64_t address =
      operand.local ? code.variableOffsets[operand.index] : prog.variableAddresses[operand.index];
  address += uint64_t(operand.value);
  if (variable.space == ptx::Space::Shared)
    return blockAddress(uint32_t(address), bytes);
  return constant(address - (variable.space == ptx::Space::Const ? prog.constantWindow : 0), bytes);
}

void Decoder::expectRegister(const Operand &operand, Type type, bool wider) const {
  const ptx::Register &found = tree.registers[operand.index];
  if (!takesRegister(type, found.type, wider))
    fail(operand, found.name + " is a ." + ptx::name(found.type) + " register, ." + ptx::name(type) +
                      " is expected: " + registersFor(type, wider));
}

/// The register that an operand names, which must be as wide as the type.
uint32_t Decoder::registerOf(const Operand &operand, Type type) const {
  if (operand.kind != Operand::Kind::Register)
    fail(operand, "a register is expected");
  if (operand.negated)
    fail(operand, "a negated operand is not allowed here");
  if (!operand.text.empty())
    fail(operand, "." + operand.text + ", a part of a register, is not known here");
  expectRegister(operand, type, /*wider=*/false);
  return operand.index;
}

/// Only mov and cvt read special registers (PTX ISA 10).
Ref Decoder::sourceSpecial(const Operand &operand, Type type) {
  if (inst->opcode != "mov" && inst->opcode != "cvt")
    fail(operand, operand.text + " is a special register: mov it to a register first");
  const auto isFloatOrPacked = [](const std::string &m) { return m[0] == 'f' || m == "bf16" || m == "pack"; };
  if (inst->opcode == "cvt" && std::any_of(inst->modifiers.begin(), inst->modifiers.end(), isFloatOrPacked))
    fail(operand, operand.text + " is a special register: only a conversion between integers reads it");
  if (ptx::isSpecialVector(operand.text))
    fail(operand, operand.text + " has four parts: " + operand.text + ".x, .y, .z and .w");
  const Ref ref = findSpecial(operand.text);
  if (!ref || !takesRegister(type, Type::U32))
    fail(operand,
         operand.text + (ref ? " is a .u32 register, ." + std::string(ptx::name(type)) + " is expected"
                             : " is not known here"));
  return ref;
}

Ref Decoder::source(const Operand &operand, Type type) {
  unsigned bytes = laneBytes(type);
  switch (operand.kind) {
  case Operand::Kind::Register:
    return read(registerOf(operand, type));
  case Operand::Kind::Integer:
  case Operand::Kind::Float:
    return constant(immediateBits(operand, type), bytes);
  case Operand::Kind::Variable:
    if (inst->opcode != "mov" && inst->opcode != "cvta")
      fail(operand, "a register or a constant is expected, mov gives the address of a variable");
    if (!takesInteger(type))
      fail(operand, "an address is an integer, ." + std::string(ptx::name(type)) + " is expected");
    if (Ref ref = sourceVariable(operand, bytes))
      return ref;
    fail(operand, "the address of a variable in local memory is allowed in mov and addresses only");
  case Operand::Kind::Symbol: {
    auto found = prog.functionByName.find(operand.text);
    if (found == prog.functionByName.end())
      fail(operand, "function " + operand.text + " is not defined in this module");
    return constant(codeAddress(found->second), bytes);
  }
  case Operand::Kind::Special:
    return sourceSpecial(operand, type);
  default:
    fail(operand, "a register or a constant is expected");
  }
}

Ref Decoder::destination(const Operand &operand, Type type) {
  if (operand.kind == Operand::Kind::Sink)
    return scratch(laneBytes(type));
  return written(registerOf(operand, type));
}

/// The register that an operand names, which must be at least as wide as the type.
uint32_t Decoder::wideRegisterOf(const Operand &operand, Type type, unsigned &bytes) const {
  if (operand.kind != Operand::Kind::Register)
    fail(operand, "a register is expected");
  if (operand.negated)
    fail(operand, "a negated operand is not allowed here");
  if (!operand.text.empty())
    fail(operand, "." + operand.text + ", a part of a register, is not known here");
  expectRegister(operand, type, /*wider=*/true);
  bytes = laneBytes(registerType(operand.index));
  return operand.index;
}

Ref Decoder::wideSource(const Operand &operand, Type type, unsigned &bytes) {
  bytes = operand.kind == Operand::Kind::Special ? 4 : laneBytes(type);
  if (operand.kind == Operand::Kind::Special && takesRegister(type, Type::U32, /*wider=*/true))
    return sourceSpecial(operand, Type::U32);
  if (operand.kind != Operand::Kind::Register)
    return source(operand, type);
  return read(wideRegisterOf(operand, type, bytes));
}

Ref Decoder::wideDestination(const Operand &operand, Type type, unsigned &bytes) {
  bytes = laneBytes(type);
  if (operand.kind == Operand::Kind::Sink)
    return scratch(bytes);
  return written(wideRegisterOf(operand, type, bytes));
}

uint32_t Decoder::predicateOf(const Operand &operand) const {
  if (operand.kind != Operand::Kind::Register || registerType(operand.index) != Type::Pred)
    fail(operand, "a predicate is expected");
  return operand.index;
}

Ref Decoder::predicate(const Operand &operand, bool *negated) {
  if (negated)
    *negated = operand.negated;
  else if (operand.negated)
    fail(operand, "a negated predicate is not allowed here");
  if (operand.kind == Operand::Kind::Integer)
    return constant(operand.value != 0, 0);
  return read(predicateOf(operand));
}

Ref Decoder::predicateDestination(const Operand &operand) {
  if (operand.kind == Operand::Kind::Sink)
    return scratch(0);
  if (operand.negated)
    fail(operand, "a negated predicate is not allowed here");
  return written(predicateOf(operand));
}

/// Addresses wrap, as registers do.
static int64_t wrappedSum(int64_t a, int64_t b) { return int64_t(uint64_t(a) + uint64_t(b)); }

AddressOperand Decoder::address(const Operand &operand) {
  if (operand.kind != Operand::Kind::Address || operand.parts.empty())
    fail(operand, "an address in brackets is expected");
  AddressOperand out;
  out.rest.assign(operand.parts.begin() + 1, operand.parts.end());
  const Operand &base = operand.parts[0];
  out.offset = operand.value;
  switch (base.kind) {
  case Operand::Kind::Integer:
    out.offset = wrappedSum(out.offset, base.value);
    return out;
  case Operand::Kind::Register:
    out.baseBytes = laneBytes(registerType(base.index));
    if (!takesRegister(Type::U32, registerType(base.index)) &&
        !takesRegister(Type::U64, registerType(base.index)))
      fail(base, tree.registers[base.index].name + " is a ." + ptx::name(registerType(base.index)) +
                     " register, an address is an integer of 32 or 64 bits");
    out.base = read(base.index);
    return out;
  case Operand::Kind::Variable:
    out.base = sourceVariable(base, 8);
    if (!out.base) {
      out.inFrame = true;
      out.offset = wrappedSum(out.offset, wrappedSum(base.value, int64_t(code.variableOffsets[base.index])));
    }
    return out;
  default:
    fail(base, "a register, a variable or a constant is expected");
  }
}
