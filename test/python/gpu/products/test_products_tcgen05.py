# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Kernels of tcgen05 on the emulator, all its checks on.

import re

import pytest
from compiled import PTXAS, assemble
from wide_products import Product

ARCH = "sm_100a"
SHAPES = [(1, 1, 1), (100, 130, 77), (300, 260, 600)]
FP8 = [("f8E4M3FN", "f8E4M3FN"), ("f8E5M2", "f8E4M3FN"), ("f8E4M3FN", "f8E5M2"), ("f8E5M2", "f8E5M2")]


@pytest.mark.parametrize("shape", SHAPES)
def test_integers_are_exact(compile, shape):
    Product(ARCH, shape, FP8[1]).check_integers(compile)


@pytest.mark.parametrize("columns", [16, 32, 64, 128, 256])
def test_tiles(compile, columns):
    Product(ARCH, (140, 270, 150), config="tile_n = %d" % columns, out="bf16").check_integers(compile)


@pytest.mark.parametrize("kinds", FP8)
@pytest.mark.parametrize("accumulation", ["fast", "split"])
def test_sums_in_k_order(compile, kinds, accumulation, monkeypatch):
    """The tensor core sums in f32: split sums are the same."""
    monkeypatch.setenv("FP8EMU_SUMS", "korder")
    Product(ARCH, (70, 100, 300), kinds, accumulation=accumulation).check_k_order(compile)


@pytest.mark.parametrize("transposed", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("columns", [16, 256])
def test_transposed(compile, transposed, columns):
    product = Product(ARCH, (100, 270, 150), FP8[1], transposed=transposed, config="tile_n = %d" % columns)
    product.check_integers(compile)
    assert "memref.alloc" not in product.function.lowered


@pytest.mark.parametrize("kind", ["bf16", "f16"])
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
def test_16_bits(compile, kind, transposed, monkeypatch):
    monkeypatch.setenv("FP8EMU_SUMS", "korder")
    Product(ARCH, (100, 130, 77), (kind, kind), transposed=transposed).check_k_order(compile)


def test_swapped(compile):
    Product(ARCH, (10, 300, 200), FP8[2], config="tile_n = 16, swapped = true").check_integers(compile)


@pytest.mark.parametrize("kinds, transposed", [(FP8[0], (False, True)), (("bf16", "bf16"), (True, True))])
def test_batches(compile, kinds, transposed):
    Product(ARCH, (140, 33, 48), kinds, batch=3, out="bf16", transposed=transposed).check_integers(compile)


@pytest.mark.skipif(not PTXAS, reason="no ptxas")
@pytest.mark.parametrize("columns", [64, 128, 256])
def test_registers(compile, columns):
    product = Product(ARCH, (100, 130, 77), config="tile_n = %d" % columns, out="bf16")
    said = assemble(compile(product.source(), ARCH).ptx, ARCH)
    assert "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in said
    assert not re.search(r"C75\d\d|warning", said), said
