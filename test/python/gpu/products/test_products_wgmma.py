# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Kernels of wgmma on the emulator, all its checks on.

import re

import pytest
from compiled import PTXAS, assemble
from wide_products import Product

ARCH = "sm_90a"
SHAPES = [(1, 1, 1), (100, 130, 77), (300, 260, 600)]
FP8 = [("f8E4M3FN", "f8E4M3FN"), ("f8E5M2", "f8E4M3FN"), ("f8E4M3FN", "f8E5M2"), ("f8E5M2", "f8E5M2")]


@pytest.mark.parametrize("accumulation", ["fast", "split"])
@pytest.mark.parametrize("shape", SHAPES)
def test_integers_are_exact(compile, shape, accumulation):
    Product(ARCH, shape, FP8[1], accumulation=accumulation).check_integers(compile)


@pytest.mark.parametrize("columns", [16, 32, 64, 128, 256])
def test_tiles(compile, columns):
    Product(ARCH, (140, 270, 150), config="tile_n = %d" % columns, out="bf16").check_integers(compile)


@pytest.mark.parametrize("columns", [64, 128])
def test_split_tiles(compile, columns):
    Product(ARCH, (140, 130, 200), accumulation="split", config="tile_n = %d" % columns).check_integers(compile)


@pytest.mark.parametrize("kinds", FP8)
@pytest.mark.parametrize("accumulation", ["fast", "split"])
def test_sums_in_k_order(compile, kinds, accumulation, monkeypatch):
    monkeypatch.setenv("FP8EMU_SUMS", "korder")
    Product(ARCH, (70, 100, 300), kinds, accumulation=accumulation).check_k_order(compile, 128 if accumulation == "split" else None)


@pytest.mark.parametrize("kind", ["bf16", "f16"])
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
def test_16_bits(compile, kind, transposed, monkeypatch):
    monkeypatch.setenv("FP8EMU_SUMS", "korder")
    Product(ARCH, (100, 130, 77), (kind, kind), transposed=transposed).check_k_order(compile)


def test_swapped(compile):
    Product(ARCH, (10, 300, 200), FP8[2], config="tile_n = 16, swapped = true").check_integers(compile)


@pytest.mark.parametrize("kinds, transposed", [(FP8[0], (False, False)), (("bf16", "bf16"), (True, True))])
def test_batches(compile, kinds, transposed):
    Product(ARCH, (140, 33, 48), kinds, batch=3, out="bf16", transposed=transposed).check_integers(compile)


@pytest.mark.skipif(not PTXAS, reason="no ptxas")
@pytest.mark.parametrize("accumulation, columns", [("fast", 64), ("fast", 128), ("fast", 256), ("split", 128)])
def test_registers(compile, accumulation, columns):
    product = Product(ARCH, (100, 130, 77), accumulation=accumulation, config="tile_n = %d" % columns, out="bf16")
    said = assemble(compile(product.source(), ARCH).ptx, ARCH)
    assert "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in said
    assert not re.search(r"C75\d\d|warning", said), said
