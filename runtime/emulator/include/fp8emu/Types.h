// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The plain types of the emulator's interface: chips, settings, sizes of a launch, and what
// may go wrong. Machine.h runs kernels with them.

#ifndef FP8EMU_TYPES_H
#define FP8EMU_TYPES_H

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace fp8emu {

/// A place in the PTX text, line and column counted from 1. Line 0: no place, or all of the
/// text; column 0: all of the line.
struct Location {
  uint32_t line = 0;
  uint32_t column = 0;
};

/// An error in PTX text, thrown when the text is read or decoded. what() is
/// "line:column: message", or "line: message" where the column is 0.
class PtxError : public std::runtime_error {
public:
  PtxError(Location where, const std::string &message);
  Location where;
  std::string message;
};

/// Kinds of faults. Each has one error code of the driver (codeOf in driver/Driver.cpp) and
/// one name in reports.
enum class FaultKind : uint8_t {
  OutOfBounds,
  Misaligned,
  UseAfterFree,
  UninitializedRead,
  ReadOnlyWrite,
  BarrierDivergence,
  Deadlock,
  BarrierMisuse,
  RegistersInFlight,
  MissingProxyFence,
  Race,
  AsyncOverwrite,
  IllegalInstruction,
  IllegalOperand,
  Trap,
  Assertion,
  StackOverflow,
  Timeout,
  TensorMemoryLeak,
};

/// The name of a kind, as in "out-of-bounds access".
const char *describe(FaultKind kind);

/// A kernel's error, and its place. The message says what was done and what would have
/// been right.
struct Fault {
  FaultKind kind;
  std::string message;
  std::string kernel;
  /// The number of the instruction in the decoded module.
  uint32_t pc = 0;
  /// The line of the PTX text; 0 where it is unknown.
  uint32_t line = 0;
  /// The source line, as in "gemm.cu:42", from .loc; empty where there is none.
  std::string source;
  /// The instruction, as in "st.global.b32".
  std::string instruction;
  std::array<uint32_t, 3> block{}, thread{};
  bool hasThread = false;

  /// All of it in one line.
  std::string text() const;
};

/// How tensor cores add products: as the chip of the module's .target does; exactly, with
/// one rounding at the end; in f32, in the order of K.
enum class TensorSums : uint8_t { Hardware, Exact, KOrder };

/// The model of that name: "hardware", "exact", "korder".
std::optional<TensorSums> findTensorSums(const std::string &name);

/// How kernels are run.
struct Settings {
  /// Whether kernels are checked for mistakes besides being run.
  bool checks = true;
  /// Whether the checks include those of memory order: data races, missing proxy fences.
  bool races = true;
  /// Whether tensor memory is ordered between threads by tcgen05.fence alone. Otherwise barriers
  /// and what releases and acquires order it too (check/README.md).
  bool tensorFences = false;
  /// Is told of faults after which a kernel can go on, by one thread at a time; where it is
  /// empty, these faults stop the launch as others do.
  std::function<void(const Fault &)> found;
  TensorSums sums = TensorSums::Hardware;
  /// Decides the order of warps, blocks and asynchronous completions.
  uint64_t seed = 0;
  /// Host threads that run blocks; 0 for one per processor.
  unsigned threads = 0;
  /// Multiprocessors of the chip: the value of %nsmid, and the blocks that are resident at a
  /// time.
  unsigned multiprocessors = 132;
  /// Instructions that the warps of a launch may run, all together and about, before it
  /// stops with FaultKind::Timeout; 0 for any number.
  uint64_t instructionLimit = 0;
  /// Bytes of call stack that each thread has beyond what its kernel declares, as
  /// CU_LIMIT_STACK_SIZE gives them. Frames of PTX are larger than those of machine code,
  /// which keeps more in registers: four times as many bytes are provided.
  uint32_t stackBytes = 1024;
  /// Receives what kernels print by printf; where it is empty, the text is dropped.
  std::function<void(const std::string &)> print;
};

/// The sizes of a launch, and its parameters.
struct LaunchConfig {
  /// Blocks of the grid, threads of a block, blocks of a cluster.
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  /// Dynamic shared memory of a block, in bytes.
  uint32_t dynamicShared = 0;
  /// Whether the grid may synchronise as a whole.
  bool cooperative = false;
  /// The kernel's parameters, laid out as the kernel declares them.
  std::vector<uint8_t> parameters;
};

/// A chip that is emulated: which PTX it runs, which launches it refuses.
struct Chip {
  /// As PTX names it: "sm_90a".
  std::string target;
  std::string name;
  int major, minor;
  int multiprocessors;
  /// Shared memory in bytes: a multiprocessor's, and what a block may have after opting in
  /// (a block may have 48 KiB without).
  int sharedPerMultiprocessor, sharedPerBlock;
  int warpsPerMultiprocessor, blocksPerMultiprocessor;
  /// Whether a cluster may have more than one block.
  bool clusters;
};

/// All chips that can be emulated.
const std::vector<Chip> &knownChips();
/// The chip of that name, with or without the suffix; null where it is not known.
const Chip *findChip(const std::string &name);

/// Whether a chip runs PTX of that target: the same architecture for targets with a suffix,
/// at least as new for others (PTX ISA 11.1.2).
bool runs(const Chip &chip, const std::string &target);

/// Limits that a kernel may have raised above these defaults (cuFuncSetAttribute).
struct Allowance {
  uint32_t dynamicShared = 48 * 1024;
  bool nonPortableClusters = false;
};

/// Why a chip refuses a launch.
struct Refusal {
  enum Kind { Sizes, Resources, ClusterSize, NoClusters, CooperativeTooLarge } kind;
  std::string message;
};

} // namespace fp8emu

#endif // FP8EMU_TYPES_H
