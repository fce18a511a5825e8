// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a compiled program takes and gives: the description that every compiled library
// carries and that scripts read.

#ifndef FP8_PIPELINES_MANIFEST_H
#define FP8_PIPELINES_MANIFEST_H

#include "fp8/Pipelines/Report.h"
#include "fp8/Target/Host/HostCode.h"

namespace fp8 {

/// An argument or result of an entry.
struct ManifestValue {
  std::string name, type, kind; ///< kind: user, state or residual
  llvm::SmallVector<int64_t> shape;
  /// Of an argument: the result that is its value in the next step. Of a result: the
  /// argument whose memory it is.
  std::optional<int64_t> alias;
};

struct ManifestEntry {
  std::string name;
  std::vector<ManifestValue> arguments, results;
  int64_t workspaceBytes = 0;
};

/// Everything but the sites; read from a module after the recipe stage.
struct Manifest {
  std::string recipe, target;
  /// What the machine that loads the library needs; no name where no code is made.
  RequiredProcessor processor;
  OptionValues options; ///< what was in force, defaults included
  std::vector<ManifestEntry> entries;
  llvm::json::Object state;
  int64_t stateBytes = 0;
};

/// Describes the public functions and the state of `module`, whose functions still have
/// the user's signature followed by the state.
Manifest describeModule(mlir::ModuleOp module, llvm::StringRef recipe, llvm::StringRef target);

/// Fills in the workspace sizes that stage 7 noted on the functions it emitted.
void addWorkspaceSizes(Manifest &manifest, mlir::ModuleOp module);

llvm::json::Object manifestToJSON(const Manifest &manifest, const std::vector<SiteRecord> &sites);

} // namespace fp8

#endif // FP8_PIPELINES_MANIFEST_H
