// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entry points: how many blocks of a kernel the chip holds at a time.

#include "Driver.h"

#include <algorithm>

using namespace fp8emu;
using namespace fp8emu::driver;

FP8EMU_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads,
                                                                size_t dynamicShared) {
  return enter([=](Driver &driver) {
    require(blocks && threads > 0);
    driver.check(function);
    const Chip &chip = driver.chip(driver.current().device);
    *blocks = residentBlocks(chip, function->code(), threads, dynamicShared);
  });
}

FP8EMU_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function,
                                                                         int threads, size_t dynamicShared,
                                                                         unsigned) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, dynamicShared);
}

/// The block size with which most threads are resident, the largest of equals.
FP8EMU_API CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction function,
                                                              size_t (*sharedOf)(int), size_t shared,
                                                              int limit, unsigned) {
  return enter([=](Driver &driver) {
    require(grid && block);
    driver.check(function);
    const Chip &chip = driver.chip(driver.current().device);
    const ptx::Function &tree = *function->code().tree;
    int most =
        tree.maxThreads[0]
            ? int(tree.maxThreads[0] * std::max(tree.maxThreads[1], 1u) * std::max(tree.maxThreads[2], 1u))
            : 1024;
    if (limit > 0)
      most = std::min(most, limit);
    int best = 0;
    for (int threads = most; threads > 0; threads -= threads % 32 ? threads % 32 : 32) {
      int blocks = residentBlocks(chip, function->code(), threads, sharedOf ? sharedOf(threads) : shared);
      if (blocks * threads <= best)
        continue;
      best = blocks * threads;
      *block = threads;
      *grid = blocks * chip.multiprocessors;
    }
    require(best > 0);
  });
}
FP8EMU_API CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function,
                                                     size_t (*sharedOf)(int), size_t shared, int limit) {
  return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, function, sharedOf, shared, limit, 0);
}

/// The most dynamic shared memory with which so many blocks still fit.
FP8EMU_API CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, CUfunction function, int blocks,
                                                            int threads) {
  return enter([=](Driver &driver) {
    require(bytes && blocks > 0 && threads > 0);
    driver.check(function);
    const Chip &chip = driver.chip(driver.current().device);
    require(residentBlocks(chip, function->code(), threads, 0) >= blocks);
    uint64_t most = uint64_t(chip.sharedPerBlock) - function->code().staticSharedBytes;
    while (most && residentBlocks(chip, function->code(), threads, most) < blocks)
      --most;
    *bytes = most;
  });
}

FP8EMU_API CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction function,
                                                 const CUlaunchConfig *config) {
  return enter([=](Driver &driver) {
    require(clusters && config);
    driver.check(function);
    const Chip &chip = driver.chip(driver.current().device);
    unsigned blocks = 1;
    for (unsigned i = 0; i < config->numAttrs; ++i)
      // CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
      if (config->attrs[i].id == 4)
        blocks = config->attrs[i].value.clusterDim.x * config->attrs[i].value.clusterDim.y *
                 config->attrs[i].value.clusterDim.z;
    int threads = int(config->blockDimX * config->blockDimY * config->blockDimZ);
    int held = residentBlocks(chip, function->code(), threads, config->sharedMemBytes);
    require(blocks > 0);
    *clusters = chip.clusters || blocks == 1 ? held * chip.multiprocessors / int(blocks) : 0;
  });
}

FP8EMU_API CUresult cuOccupancyMaxPotentialClusterSize(int *blocks, CUfunction function,
                                                       const CUlaunchConfig *config) {
  return enter([=](Driver &driver) {
    require(blocks && config);
    driver.check(function);
    *blocks = !driver.chip(driver.current().device).clusters ? 1
              : function->allowance.nonPortableClusters      ? 16
                                                             : 8;
  });
}
