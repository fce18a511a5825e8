// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Cooperative groups: blocks, tiles, coalesced and labelled groups, reductions and scans,
// the whole grid.

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

extern "C" __global__ void tiles(const int *x, int *y) {
  cg::thread_block block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  auto tile = cg::tiled_partition<8>(warp);
  int n = block.size(), i = block.thread_rank(), value = x[i];
  y[0 * n + i] = cg::reduce(warp, value, cg::plus<int>());
  y[1 * n + i] = cg::reduce(tile, value, cg::greater<int>());
  y[2 * n + i] = cg::inclusive_scan(warp, value);
  y[3 * n + i] = cg::exclusive_scan(tile, value);
  y[4 * n + i] = tile.shfl(value, tile.size() - 1) + 100 * tile.meta_group_rank() + 10000 * tile.meta_group_size();
  y[5 * n + i] = tile.any(value > 50) + 2 * tile.all(value > -50) + 4 * (int)tile.ballot(value > 0);
  block.sync();
}

extern "C" __global__ void coalesced(const int *x, int *y) {
  int i = threadIdx.x, value = x[i], n = blockDim.x;
  y[i] = y[n + i] = y[2 * n + i] = -1;
  if (value > 0) {
    cg::coalesced_group group = cg::coalesced_threads();
    y[i] = group.thread_rank() + 100 * group.size();
    y[n + i] = cg::reduce(group, value, cg::plus<int>());
    y[2 * n + i] = group.shfl(value, 0);
  }
}

extern "C" __global__ void labels(const int *x, int *y) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  int i = cg::this_thread_block().thread_rank(), n = blockDim.x;
  auto same = cg::labeled_partition(warp, x[i] & 3);
  y[i] = same.size() + 100 * same.thread_rank();
  auto odd = cg::binary_partition(warp, x[i] & 1);
  y[n + i] = odd.size() + 100 * odd.thread_rank();
  cg::coalesced_group elected = cg::coalesced_threads();
  y[2 * n + i] = cg::reduce(same, x[i], cg::bit_xor<int>());
}

// A tile of several warps, through shared memory.
extern "C" __global__ void large_tile(const float *x, float *y) {
  __shared__ cg::block_tile_memory<128> memory;
  auto block = cg::this_thread_block(memory);
  auto tile = cg::tiled_partition<64>(block);
  y[block.thread_rank()] = cg::reduce(tile, x[block.thread_rank()], cg::less<float>());
}

// Rounds of a stencil with a grid-wide barrier between them.
extern "C" __global__ void stencil(int n, int rounds, int *from, int *to) {
  cg::grid_group grid = cg::this_grid();
  for (int round = 0; round < rounds; ++round) {
    for (int i = grid.thread_rank(); i < n; i += grid.size())
      to[i] = from[(i + n - 1) % n] + from[i] - from[(i + 1) % n];
    grid.sync();
    int *swap = from;
    from = to, to = swap;
  }
}
