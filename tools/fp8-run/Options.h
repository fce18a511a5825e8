// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The options of the command line.

#ifndef FP8_TOOLS_FP8RUN_OPTIONS_H
#define FP8_TOOLS_FP8RUN_OPTIONS_H

#include <cstdint>
#include <string>
#include <vector>

namespace fp8run {

/// --stream=ARG=KEY.
struct Stream {
  std::string argument;
  std::string key;
};

/// --rename=FROM=TO.
struct Rename {
  std::string from;
  std::string to;
};

/// Empty strings and 0 stand for options that were not given.
struct Options {
  std::string library;
  std::string inputs;
  std::vector<std::string> entries; // one, or the two of a pair
  uint64_t steps = 1;
  uint64_t firstStep = 0;
  std::vector<Stream> streams;
  bool zeroMissing = false;
  std::string outputs;
  std::string print;
  std::string state;
  std::string history; // newest or oldest
  std::string saveState;
  uint64_t saveEvery = 0;
  uint32_t keepLast = 1;
  std::vector<Rename> renames; // of sites in the state file
  bool strict = false;
  bool withCarry = false;
  std::string device = "cpu"; // or cuda, cuda:N, emulator
  std::string comm = "none";  // or local, mpi, tcp, nccl
  std::string rendezvous;     // HOST:PORT, where rank 0 listens
  uint32_t ranks = 1;
  double deadline = 30; // seconds
  /// Whether each rank has inputs of its own ({rank} in the name): they hold its parts of tensors.
  bool inputsAreOwn = false;
  /// Whether this rank writes the files: each, where each has its own; else rank 0.
  bool writesState = true, writesOutputs = true;
  /// Whether this rank tells what is noticeable about its state file: each, where each has its own; else rank
  /// 0.
  bool warns = true;
  bool timing = false;
  bool monitor = false;
  std::string monitorFile; // without one a table in the terminal, or lines on standard error
  uint64_t monitorEvery = 1;
  bool profile = false;
  std::string profileFile; // without one the profile is a table
};

} // namespace fp8run

#endif // FP8_TOOLS_FP8RUN_OPTIONS_H
