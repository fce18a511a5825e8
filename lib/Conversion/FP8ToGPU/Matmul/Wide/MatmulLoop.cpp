// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loop of a persistent kernel over its tiles.

#include "MatmulLoop.h"

using namespace mlir;
using namespace fp8;

/// A place along K behind every operand, where TMA reads zeros. A tile without anything to sum has one step
/// from there on, so that kernels need no other code for it.
static constexpr int64_t kNowhere = kMostOfDimension;

/// Makes `tile` a tile of rows of one group, or of rows of none; `blockOfRows` numbers those of all groups.
void ResultTiles::moveToGroup(KernelBuilder &b, TileOrigin &tile, Expr blockOfRows) const {
  GroupOfTile found = findGroupOfTile(b, *groups, rows, blockOfRows, tileRows);
  tile.batch = found.group;
  tile.row = found.begin + (blockOfRows - found.firstTile) * tileRows;
  tile.endRow = found.end;
  tile.depth = select(found.isGroup, b.number(0), b.number(kNowhere));
  tile.numSteps = select(found.isGroup, tile.numSteps, b.number(1));
}

/// Makes `tile` a sum over the rows of its group.
void ResultTiles::sumGroup(KernelBuilder &b, TileOrigin &tile) const {
  RowsOfGroup found = findRowsOfGroup(b, *groups, depth, tile.batch, stepDepth);
  Expr steps = (found.end - found.begin + (stepDepth - 1)) / stepDepth;
  tile.depth = select(steps > 0, found.start, b.number(kNowhere));
  tile.numSteps = atLeast(steps, 1);
}

SmallVector<Value>
ResultTiles::buildLoop(KernelBuilder &b, ValueRange inits,
                       function_ref<SmallVector<Value>(const TileOrigin &, ValueRange)> body) const {
  Expr tilesM = (rows + (tileRows - 1)) / tileRows, tilesN = (columns + (tileColumns - 1)) / tileColumns;
  Expr numSteps = (depth + (stepDepth - 1)) / stepDepth;
  bool areRowsDivided = groups && groups->ofResult;
  if (areRowsDivided) // each group, and the rows of none, may end in a part of a tile
    tilesM = tilesM + b.argument(groups->count) + 1;
  Expr first = b.block(0), step = b.numBlocks(0);
  // A grid has at most as many blocks as there are tiles.
  Expr count = (batches * tilesM * tilesN - first + step - 1) / step;
  return b.loop(b.number(0), count, inits, [&](Expr i, ValueRange carried) {
    Tile tile = findTile(b, first + i * step, tilesM, tilesN);
    TileOrigin origin{tile.batch,
                      tile.m * tileRows,
                      tile.n * tileColumns,
                      tile.batch * tilesM + tile.m,
                      tile.batch * tilesN + tile.n,
                      rows,
                      b.number(0),
                      numSteps};
    if (areRowsDivided)
      moveToGroup(b, origin, tile.m);
    else if (groups)
      sumGroup(b, origin);
    return body(origin, carried);
  });
}
