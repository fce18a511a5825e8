# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Products whose configuration is given by the attribute fp8.config: right values with every tile and number of stages.

import pytest
from wide_products import Product

MMA = ["tile_m = %d, tile_n = %d, stages = %d" % tile for tile in [(64, 64, 2), (64, 128, 8), (128, 64, 4), (128, 128, 2), (128, 128, 6)]]
WIDE = ["tile_n = 32, stages = 2", "tile_n = 128, stages = 3, swapped = true", "tile_n = 256, stages = 2"]


@pytest.mark.parametrize("config", MMA)
@pytest.mark.parametrize("arch", ["sm_89", "sm_120a"])
def test_mma(compile, arch, config):
    Product(arch, (140, 150, 700), config=config, out="bf16").check_integers(compile)


@pytest.mark.parametrize("config", WIDE)
@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_wide(compile, arch, config):
    Product(arch, (140, 300, 700), config=config, out="bf16").check_integers(compile)


@pytest.mark.parametrize("kinds", [("f8E4M3FN", "f8E5M2"), ("bf16", "bf16")])
@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_mma_on_chips_with_other_instructions(compile, arch, kinds):
    product = Product(arch, (70, 130, 200), kinds, config="family = mma, tile_m = 64, stages = 5")
    product.check_integers(compile)


@pytest.mark.parametrize("stages", [2, 4, 8])
@pytest.mark.parametrize("arch", ["sm_89", "sm_90a"])
def test_stages_of_split_sums(compile, arch, stages):
    Product(arch, (70, 80, 900), accumulation="split", config="tile_n = 64, stages = %d" % stages).check_k_order(compile, 128)
