// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops over tasks. Private to the library.

#ifndef FP8_LIB_TARGET_CPU_TASKS_H
#define FP8_LIB_TARGET_CPU_TASKS_H

#include "fp8/Dialect/FP8/IR/Marks.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace fp8 {

/// Returns the loops of type `Loop` in `function` whose iterations are tasks, or take them.
template <typename Loop>
llvm::SmallVector<Loop> findTasks(mlir::func::FuncOp function) {
  llvm::SmallVector<Loop> loops;
  function.walk([&](Loop loop) {
    if (loop->hasAttr(kTasksAttrName))
      loops.push_back(loop);
  });
  return loops;
}

} // namespace fp8

#endif // FP8_LIB_TARGET_CPU_TASKS_H
