// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds groups inside of a kernel: every block reads the ends of all groups before its own, so that no size
// is read by the host and one launch computes all groups.

#include "GroupedMatmul.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace fp8;

GroupArguments::GroupArguments(KernelArguments &arguments, OpBuilder &host, Location loc,
                               const RowsOfGroups &groups)
    : ends(arguments.addPointer(groups.ends)),
      count(arguments.addI32(
          getValueOrCreateConstantIndexOp(host, loc, memref::getMixedSize(host, loc, groups.ends, 0)))),
      type(getElementTypeOrSelf(groups.ends)), ofResult(groups.ofResult) {}

/// Loads the end of `group`: at least `begin`, at most `rows`.
static Expr loadEnd(KernelBuilder &b, const GroupArguments &groups, Expr rows, Expr group, Expr begin) {
  bool isWide = groups.type.isInteger(64);
  Value pointer = b.at(b.globalPointer(groups.ends), widen(group) * (isWide ? 8 : 4));
  Expr end = b.load(groups.type, pointer);
  if (isWide)
    end = lowHalf(atLeast(atMost(end, widen(rows)), 0));
  return atLeast(atMost(end, rows), begin);
}

GroupOfTile fp8::findGroupOfTile(KernelBuilder &b, const GroupArguments &groups, Expr rows, Expr tile,
                                 int64_t tileRows) {
  Expr count = b.argument(groups.count), zero = b.number(0);
  // The end of the group before and its tiles; then the group that is found, its rows and its first tile.
  SmallVector<Value> inits{zero.getValue(), zero.getValue(), count.getValue(),
                           rows.getValue(), rows.getValue(), zero.getValue()};
  SmallVector<Value> found =
      b.loop(zero, count + 1, inits, [&](Expr group, ValueRange carried) -> SmallVector<Value> {
        Expr begin = b.expr(carried[0]), before = b.expr(carried[1]);
        Expr last = loadEnd(b, groups, rows, atMost(group, count - 1), begin);
        Expr end = select(group < count, last, rows);
        Expr next = before + (end - begin + (tileRows - 1)) / tileRows;
        Expr isHere = !(tile < before) & (tile < next);
        auto choose = [&](Expr value, unsigned i) {
          return select(isHere, value, b.expr(carried[i])).getValue();
        };
        return {end.getValue(),   next.getValue(), choose(group, 2),
                choose(begin, 3), choose(end, 4),  choose(before, 5)};
      });
  Expr group = b.expr(found[2]);
  return {atMost(group, count - 1), b.expr(found[3]), b.expr(found[4]), b.expr(found[5]), group < count};
}

RowsOfGroup fp8::findRowsOfGroup(KernelBuilder &b, const GroupArguments &groups, Expr rows, Expr group,
                                 int64_t step) {
  Expr zero = b.number(0);
  SmallVector<Value> inits(3, zero.getValue());
  SmallVector<Value> found =
      b.loop(zero, group + 1, inits, [&](Expr other, ValueRange carried) -> SmallVector<Value> {
        Expr begin = b.expr(carried[0]), end = b.expr(carried[1]), start = b.expr(carried[2]);
        Expr taken = (end - begin + (step - 1)) / step * step;
        return {end.getValue(), loadEnd(b, groups, rows, other, end).getValue(), (start + taken).getValue()};
      });
  return {b.expr(found[0]), b.expr(found[1]), b.expr(found[2])};
}
