// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The rates of a chip decide on the tiles of its matmuls, each chip's own. The header is private to the
// library.

#include "../../lib/Conversion/FP8ToGPU/Matmul/MatmulConfig.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>

using namespace fp8;

namespace {

Chip find(llvm::StringRef name) {
  return *llvm::find_if(listChips(), [&](const Chip &chip) { return chip.name == name; });
}

/// The columns of the tile that `chip` has for a matmul of 4096 x 1536 FP8 elements: twice as many tiles of
/// 128 columns take 3 rounds of 132 or 148 multiprocessors, tiles of 256 take 2. Loads of 128 columns are 2 /
/// 3 of those of 256, products half of them.
int64_t chooseColumns(const Chip &chip) {
  mlir::MLIRContext context;
  auto type = mlir::Float8E4M3FNType::get(&context);
  MatmulProblem problem{type,        type,       /*split=*/false, /*strict=*/false, ScalesAlongK::none,
                        /*batch=*/1, /*m=*/4096, /*n=*/1536,      /*k=*/4096};
  return chooseMatmulConfig(chip, problem).tileN;
}

TEST(MatmulConfigTest, ACacheThatIsFastEnoughLeavesTheChoiceToTheProducts) {
  Chip chip = find("sm_90a");
  EXPECT_EQ(chooseColumns(chip), 256);
  chip.l2BytesPerClock = 64;
  EXPECT_EQ(chooseColumns(chip), 128);
  chip.fp8Rate *= 2; // loads take longer again
  EXPECT_EQ(chooseColumns(chip), 256);
}

TEST(MatmulConfigTest, EveryChipOfWideKernelsHasTheRateOfItsCache) {
  EXPECT_EQ(find("sm_90a").l2BytesPerClock, 46.6);
  for (const Chip &chip : listChips()) {
    EXPECT_EQ(chip.l2BytesPerClock > 0, chip.family != MatmulFamily::mma) << chip.name.str();
    EXPECT_LE(chip.l2BytesPerClock, 64) << chip.name.str();
  }
}

TEST(MatmulConfigTest, TheChipWithTwiceTheRateOfProductsWaitsForLoads) {
  Chip chip = find("sm_100a");
  EXPECT_EQ(chooseColumns(chip), 256);
  chip.fp8Rate /= 2;
  EXPECT_EQ(chooseColumns(chip), 128);
  chip.l2BytesPerClock /= 2;
  EXPECT_EQ(chooseColumns(chip), 256);
}

} // namespace
