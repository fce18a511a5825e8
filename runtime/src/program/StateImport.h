// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tensors that a program takes from a state that it, or another program, has saved.

#ifndef FP8RT_PROGRAM_STATEIMPORT_H
#define FP8RT_PROGRAM_STATEIMPORT_H

#include "../core/Tensors.h"
#include "StateColumns.h"

#include "fp8rt/state.h"

namespace fp8rt {

struct Manifest;

/// The new value of a state tensor: one of the file, one that was put together, or none.
struct ImportedTensor {
  const Tensor *fromFile = nullptr;
  std::optional<Tensor> made;

  const Tensor *get() const { return made ? &*made : fromFile; }
};

/// Checks everything, reports the differences, and returns the new values in the manifest's order.
std::vector<ImportedTensor> prepareImport(const Manifest &manifest, const fp8rt_tensors &tensors,
                                          const fp8rt_import_options &options);

/// Renames the sites of the columns, and the tensors that are called after them.
void renameSites(fp8rt_tensors &tensors, const Renames &renames);

} // namespace fp8rt

#endif // FP8RT_PROGRAM_STATEIMPORT_H
