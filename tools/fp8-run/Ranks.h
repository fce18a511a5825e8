// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// This process as one of several ranks, and the processes of --ranks.

#ifndef FP8_TOOLS_FP8RUN_RANKS_H
#define FP8_TOOLS_FP8RUN_RANKS_H

#include "Options.h"
#include "Program.h"

#include <functional>
#include <optional>

namespace fp8run {

/// This process's place among the ranks. Without --comm it is the only one.
class Ranks {
public:
  /// Rank `number` of the processes that share the memory `file`.
  static llvm::Expected<Ranks> join(int file, uint32_t number, double deadline);
  /// The rank that mpirun gave to this process.
  static llvm::Expected<Ranks> joinMpi(double deadline);
  /// The rank that the environment's FP8RT_RANK and FP8RT_SIZE give; rank 0 listens at HOST:PORT.
  static llvm::Expected<Ranks> joinTcp(const std::string &address, double deadline);
  Ranks() = default;

  /// Communicates through NCCL from now on.
  llvm::Error useNccl();

  uint32_t number() const { return communicator ? communicator->rank : 0; }
  uint32_t size() const { return communicator ? communicator->size : 1; }
  bool areSeveral() const { return communicator != nullptr; }
  /// Whether this rank prints, and writes the files that are common to all.
  bool isFirst() const { return number() == 0; }
  fp8rt_communicator *get() const { return communicator.get(); }

  /// Replaces {rank} in file names by the number. Names of files that only the first rank writes become
  /// empty elsewhere.
  void fillIn(Options &options) const;
  /// Tells the other ranks of an error.
  void tell(llvm::StringRef error) const;

private:
  Communicator communicator;
  std::optional<uint32_t> onMachine; // counts the ranks of this machine, where that is known
};

/// Runs `body` in options.ranks processes, with the file descriptor of their memory and the rank. Returns the
/// exit code: 0 if it is that of all of them.
int runInProcesses(const Options &options, const std::function<int(int file, uint32_t rank)> &body);

} // namespace fp8run

#endif // FP8_TOOLS_FP8RUN_RANKS_H
