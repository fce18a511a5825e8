// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A module decoded: what isa/ makes of a tree and what exec/ runs. It does not
// change once made; modules that are loaded twice have two.

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

/// An address that is known when a block begins only, with a place in its warps'
/// specials: of shared memory, where `offset` is that in the block's own, or of the
/// kernel's parameters. `width` bytes a lane.
struct BlockAddress {
  enum Kind : uint8_t { Shared, Parameter } kind;
  uint32_t offset;
  uint8_t width;
  uint32_t place;
};

/// Where a parameter lies: in a kernel's parameter buffer, or, of a function, in
/// its frame.
struct ParameterPlace {
  uint32_t offset = 0, bytes = 0, alignment = 1;
};

/// What becomes of a kernel's setmaxnreg (PTX ISA 9.7.19.5): it needs a kernel that is
/// compiled for a known number of registers, and is ignored in others.
enum class Setmaxnreg : uint8_t { Absent, Ignored, Obeyed };

/// A function: its code is ops [begin, end) of the program.
struct FunctionCode {
  std::string name;
  const ptx::Function *tree = nullptr;
  bool isEntry = false;
  uint32_t begin = 0, end = 0;
  uint32_t registerBytes = 0;
  /// Of each register, where it lies in a frame and its bytes in a lane: 0 for
  /// predicates.
  std::vector<std::pair<uint32_t, uint32_t>> registerPlaces;
  std::vector<uint64_t> constants;
  std::vector<Ref> refs;
  std::vector<std::shared_ptr<const void>> payloads;
  /// Local memory a lane needs for a frame: variables and parameters of calls.
  uint32_t frameBytes = 0;
  /// Whether it takes more of it while it runs, by alloca.
  bool allocatesOnStack = false;
  /// Of a kernel: its parameters, one after the other, and all of them together.
  std::vector<ParameterPlace> results, parameters;
  uint32_t parameterBytes = 0;
  /// Of a kernel: the registers of 32 bits that a thread begins with (isa/Registers.h).
  uint32_t registers = 0;
  Setmaxnreg setmaxnreg = Setmaxnreg::Absent;
  /// Where each of its variables lies, by its index in the tree: in local memory
  /// after the frame's begin, in shared memory after the block's, else its address.
  std::vector<uint64_t> variableOffsets;
};

struct Program {
  std::unique_ptr<const ptx::Module> tree;
  std::vector<Op> ops;
  /// Of each op, the instruction it was decoded from.
  std::vector<const ptx::Instruction *> instructions;
  std::vector<FunctionCode> functions;
  std::unordered_map<std::string, uint32_t> functionByName;
  std::vector<BlockAddress> blockAddresses;
  uint32_t specialBytes = 0;
  /// Bytes of shared memory declared anywhere in the module, and where the memory
  /// that a launch adds begins.
  uint32_t staticSharedBytes = 0;
  uint32_t sharedAlignment = 1;
  /// Whether kernels ask for shared memory that the system keeps for itself (which
  /// cooperative groups use): 1 KiB behind all other.
  bool usesReservedShared = false;
  /// Addresses of the module's variables by their index in the tree; in shared
  /// memory, offsets.
  std::vector<uint64_t> variableAddresses;
  std::unordered_map<std::string, uint32_t> variableByName;
  /// Device memory it holds.
  std::vector<uint64_t> allocations;
  /// Whether blocks may influence each other while a kernel runs: acquire and release on
  /// global memory, or atomics but for reductions of integers whose result nobody reads.
  /// Where not, they run in any order on any number of threads with the same result.
  bool blocksCommunicate = false;

  const FunctionCode *find(const std::string &name) const;
};

constexpr uint32_t kReservedSharedBytes = 1024;

/// The value of a pointer to function `index`: no address of any memory.
constexpr uint64_t kCodeBase = uint64_t(1) << 60;
inline uint64_t codeAddress(uint32_t index) { return kCodeBase + 16 * uint64_t(index); }

} // namespace fp8emu

#endif // FP8EMU_EXEC_PROGRAM_H
