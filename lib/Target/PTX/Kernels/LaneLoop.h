// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An iteration of a kernel that lanes share. Private to the library.

#ifndef FP8_LIB_TARGET_PTX_KERNELS_LANELOOP_H
#define FP8_LIB_TARGET_PTX_KERNELS_LANELOOP_H

#include "LaneReduction.h"
#include "LaneTeam.h"
#include "SingleLoop.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/MapVector.h"

namespace fp8 {

/// Returns the buffer that a memref is a view of.
mlir::Value findBuffer(mlir::Value memref);

/// A value that a loop reduces: it carries it, or loads and stores an element in each iteration.
struct ReducedValue {
  mlir::Value before, after;
  unsigned carried = 0;             ///< which of the carried values, if there is no store
  mlir::memref::StoreOp store = {}; ///< in the loop, until that is rewritten
  // The element in memory, from then on.
  mlir::Value memref = {};
  llvm::SmallVector<mlir::Value> indices = {};
};

/// A reduction of a loop, and what it reduces.
struct LoopReduction {
  std::unique_ptr<LaneReduction> reduction;
  llvm::SmallVector<ReducedValue> places;
};

/// How the parallel loop accesses a buffer.
struct BufferAccesses {
  /// In loops, at the element of the iteration: the operations, all on one memref if one of them stores.
  llvm::SmallVector<mlir::Operation *> elements;
  bool storesElements = false;
  bool loadsOthers = false;  ///< in loops, at other elements
  bool reduces = false;      ///< in loops, into one element
  bool startsWithIt = false; ///< all lanes load that element before the loop
  bool loads = false;        ///< outside of loops
  bool stores = false;       ///< outside of loops
};

/// The parallel loop of a kernel, whose iterations lanes share.
class LaneLoop {
public:
  LaneLoop(mlir::scf::ParallelOp loop, const NestIndices &nests) : loop(loop), nests(nests) {}
  /// Returns whether lanes can share each iteration, and gain by it: their accesses are adjacent, or
  /// iterations long and few.
  bool analyze();
  /// Returns the lanes that share an iteration.
  int64_t getLanes() const { return lanes; }
  void rewrite();

private:
  bool analyzeLoop(mlir::scf::ForOp inner);
  bool addElement(mlir::scf::ForOp inner, mlir::Operation *op, mlir::Value memref, mlir::ValueRange indices,
                  bool isStore);
  bool isSafe(mlir::Value buffer, const BufferAccesses &access);
  bool matchReductions(mlir::scf::ForOp inner, llvm::ArrayRef<ReducedValue> places);
  bool chooseLanes();
  void shareLoop(mlir::scf::ForOp inner);
  void storeResults(mlir::OpBuilder &b, LoopReduction &found, mlir::scf::ForOp before,
                    mlir::ValueRange initial, mlir::ValueRange combined);
  void shrink(mlir::memref::AllocaOp alloca);
  mlir::scf::IfOp buildFirstLane(mlir::OpBuilder &b, mlir::Location loc);

  mlir::scf::ParallelOp loop;
  const NestIndices &nests;
  mlir::Value lane;
  int64_t lanes = kWarpLanes;
  llvm::SmallVector<mlir::scf::ForOp> loops;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<LoopReduction>> reductions; ///< per loop
  llvm::MapVector<mlir::Value, BufferAccesses> buffers;
  bool isAdjacent = false, readsApart = false;
};

} // namespace fp8

#endif // FP8_LIB_TARGET_PTX_KERNELS_LANELOOP_H
