// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A decoded module: what isa/ makes of a tree and what exec/ runs. A program does not
// change once it is made; a module that is loaded twice has two programs.

#ifndef FP8EMU_EXEC_PROGRAM_H
#define FP8EMU_EXEC_PROGRAM_H

#include "Op.h"
#include "ptx/Ast.h"

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace fp8emu {

class DeviceMemory;

/// The special registers that are known when a block begins. The first ones have
/// 32-bit values; each takes a place of 32 u32 in a warp's specials.
enum class Special : uint32_t {
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaidX,
  CtaidY,
  CtaidZ,
  NctaidX,
  NctaidY,
  NctaidZ,
  LaneId,
  WarpId,
  NwarpId,
  SmId,
  NsmId,
  LanemaskEq,
  LanemaskLe,
  LanemaskLt,
  LanemaskGe,
  LanemaskGt,
  ClusteridX,
  ClusteridY,
  ClusteridZ,
  NclusteridX,
  NclusteridY,
  NclusteridZ,
  ClusterCtaidX,
  ClusterCtaidY,
  ClusterCtaidZ,
  ClusterNctaidX,
  ClusterNctaidY,
  ClusterNctaidZ,
  ClusterCtarank,
  ClusterNctarank,
  TotalSmemSize,
  AggrSmemSize,
  DynamicSmemSize,
  ReservedSmemBegin,
  ReservedSmemEnd,
  Envreg1,
  Envreg2,
  Zero,
  Count
};

/// An address in shared memory, `offset` bytes behind the block's first, with a place in the
/// specials of the block's warps: it is known only when the block begins. It takes `width`
/// bytes a lane.
struct BlockAddress {
  uint32_t offset;
  uint8_t width;
  uint32_t place;
};

/// Where a parameter lies: in a kernel's parameter buffer, or, of a function, in
/// its frame.
struct ParameterPlace {
  uint32_t offset = 0, bytes = 0, alignment = 1;
};

/// The effect of a kernel's setmaxnreg (PTX ISA 9.7.19.5). It is obeyed in kernels that are
/// compiled for a known number of registers, and ignored in others.
enum class Setmaxnreg : uint8_t { Absent, Ignored, Obeyed };

/// A function: its code is ops [begin, end) of the program.
struct FunctionCode {
  std::string name;
  const ptx::Function *tree = nullptr;
  bool isEntry = false;
  uint32_t begin = 0, end = 0;
  uint32_t registerBytes = 0;
  /// The place of each register in a frame, and its bytes in a lane: 0 for predicates.
  std::vector<std::pair<uint32_t, uint32_t>> registerPlaces;
  std::vector<uint64_t> constants;
  std::vector<Ref> refs;
  std::vector<std::shared_ptr<const void>> payloads;
  /// The local memory that a lane needs for a frame: variables and parameters of calls.
  uint32_t frameBytes = 0;
  /// Whether the function takes more local memory while it runs, by alloca.
  bool allocatesOnStack = false;
  /// Of a kernel: its parameters, one after the other, and all of them together.
  std::vector<ParameterPlace> results, parameters;
  uint32_t parameterBytes = 0;
  /// Of a kernel: the bytes of its variables in shared memory. The memory that a launch adds
  /// begins behind them.
  uint32_t staticSharedBytes = 0;
  /// Of a kernel: the registers of 32 bits that a thread begins with (isa/Registers.h).
  uint32_t registers = 0;
  Setmaxnreg setmaxnreg = Setmaxnreg::Absent;
  /// The place of each variable, by its index in the tree: of local ones the offset in the
  /// frame, of shared ones the offset in the block's memory, of others the address.
  std::vector<uint64_t> variableOffsets;
};

struct Program {
  std::unique_ptr<const ptx::Module> tree;
  std::vector<Op> ops;
  /// The instruction that each op was decoded from; null for the return at a function's end.
  std::vector<const ptx::Instruction *> instructions;
  std::vector<FunctionCode> functions;
  std::unordered_map<std::string, uint32_t> functionByName;
  std::vector<BlockAddress> blockAddresses;
  uint32_t specialBytes = 0;
  uint32_t sharedAlignment = 1;
  /// Whether kernels ask for the shared memory that the system reserves, which cooperative
  /// groups use: 1 KiB behind all other.
  bool usesReservedShared = false;
  /// Addresses of the module's variables by their index in the tree; offsets for those in
  /// shared memory.
  std::vector<uint64_t> variableAddresses;
  /// DeviceMemory::constantWindow of the memory that the variables lie in.
  uint64_t constantWindow = 0;
  std::unordered_map<std::string, uint32_t> variableByName;
  /// Device memory that the program holds.
  std::vector<uint64_t> allocations;
  /// Whether blocks may influence each other while a kernel runs: acquire and release on
  /// global memory, or atomics but for reductions of integers whose result nobody reads.
  /// Where they do not, blocks run in any order on any number of threads with the same result.
  bool blocksCommunicate = false;

  const FunctionCode *find(const std::string &name) const;
};

constexpr uint32_t kReservedSharedBytes = 1024;

/// The value of a pointer to function `index`. No memory has such an address.
constexpr uint64_t kCodeBase = uint64_t(1) << 60;
inline uint64_t codeAddress(uint32_t index) { return kCodeBase + 16 * uint64_t(index); }

} // namespace fp8emu

#endif // FP8EMU_EXEC_PROGRAM_H
