// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The manifest: the arguments, results and state of a compiled program. Every compiled library
// contains it, and scripts read it.

#ifndef FP8_REPORT_MANIFEST_H
#define FP8_REPORT_MANIFEST_H

#include "fp8/Report/Report.h"
#include "fp8/Target/Host/HostCode.h"

namespace fp8 {

/// An argument or result of an entry point.
struct ManifestValue {
  std::string name, type, kind; ///< kind: user, state or residual
  llvm::SmallVector<int64_t> shape;
  std::optional<int64_t> bytes; ///< unset if the size is dynamic
  /// For an argument: the result that is its value in the next step. For a result: the
  /// argument whose memory holds it.
  std::optional<int64_t> alias;
  /// Whether it is a rank's part of the batch (--data-parallel), or without `shards` a value of its own.
  bool isBatch = false;
  /// Axes of the grid, and the dimensions of which each rank has a part by its place along them.
  llvm::SmallVector<std::pair<int64_t, int64_t>> shards;
};

/// A cast of a weight that an entry point leaves to the step before: it reads state tensors, which are
/// computed from arguments.
struct ManifestCast {
  llvm::SmallVector<int64_t> arguments; ///< indices in the entry
  llvm::SmallVector<std::string> tensors;
};

struct ManifestEntry {
  std::string name;
  std::vector<ManifestValue> arguments, results;
  /// The entry point that computes the tensors of `casts`, and the arguments of this one that it takes;
  /// empty without such casts.
  std::string initializer;
  llvm::SmallVector<int64_t> initializerArguments;
  std::vector<ManifestCast> casts;
  int64_t workspaceBytes = 0;
  /// Whether a call can be captured as a graph; unset on the CPU.
  std::optional<bool> isCapturable;
  /// How many conditions of the program a call checks on a device.
  int64_t checks = 0;
};

/// The manifest without the sites.
struct Manifest {
  std::string recipe, target;
  /// The processor features that the machine which loads the library needs; without a name if no code
  /// is generated.
  RequiredProcessor processor;
  /// The version of fp8rt_call that entry points take.
  int64_t callVersion = 1;
  int64_t workspaceAlignment = 0;
  OptionValues options; ///< all options with their values, defaults included
  std::vector<ManifestEntry> entries;
  llvm::json::Object state;
  /// The extents and names of the axes of the grid of ranks; null in a program for one rank.
  llvm::json::Value grid = nullptr;
  llvm::SmallVector<int64_t> gridShape; ///< the extents alone
  /// A hash of the program after stage 4, which ranks compare; empty in a program for one rank.
  std::string programHash;
  std::vector<CollectiveRecord> collectives;
  int64_t stateBytes = 0;
};

/// Describes the public functions and the state of `module` after stage 2, when functions have
/// the user's arguments and results followed by the state.
Manifest describeModule(mlir::ModuleOp module, llvm::StringRef recipe, llvm::StringRef target);

/// Fills in what is known of a program for several ranks after stage 4.
void describeCollectives(Manifest &manifest, mlir::ModuleOp module,
                         const std::vector<CollectiveRecord> &collectives);

/// Fills in what is known after stage 7: the version of calls, and what attributes of `module`'s functions
/// tell of workspaces and graphs.
void describeCode(Manifest &manifest, mlir::ModuleOp module);

llvm::json::Object manifestToJSON(const Manifest &manifest, const std::vector<SiteRecord> &sites);

} // namespace fp8

#endif // FP8_REPORT_MANIFEST_H
