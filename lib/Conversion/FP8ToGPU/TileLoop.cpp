// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loop of a persistent kernel over its tiles.

#include "TileLoop.h"

using namespace mlir;
using namespace fp8;

SmallVector<Value>
TileSpace::buildLoop(KernelBuilder &b, ValueRange inits,
                     function_ref<SmallVector<Value>(const TileOrigin &, ValueRange)> body) const {
  Expr tilesM = (rows + (tileRows - 1)) / tileRows, tilesN = (columns + (tileColumns - 1)) / tileColumns;
  Expr first = b.block(0), step = b.numBlocks(0);
  // A grid has at most as many blocks as there are tiles.
  Expr count = (batches * tilesM * tilesN - first + step - 1) / step;
  return b.loop(b.number(0), count, inits, [&](Expr i, ValueRange carried) {
    Tile tile = findTile(b, first + i * step, tilesM, tilesN);
    return body({tile.batch, tile.m * tileRows, tile.n * tileColumns, tile.batch * tilesM + tile.m,
                 tile.batch * tilesN + tile.n},
                carried);
  });
}
