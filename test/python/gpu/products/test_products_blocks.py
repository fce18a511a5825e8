# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Products with a scale per row or block on the emulator, all its checks on, bit for bit.

import numpy
import pytest
from compiled import PTXAS, TYPES, assemble
from scaled_products import PackedProduct, ScaledProduct

MX_CHIPS = ["sm_100a", "sm_120a"]
CHIPS = ["sm_89", "sm_90a", "sm_100a", "sm_120a"]
SHAPES = [(1, 1, 1), (100, 130, 300), (70, 260, 77)]
ROWS = ((1, 0), (1, 0))
# Activation and weight, gradient and activation, weight and gradient, one scale for all of a column.
BLOCKS = [((1, 128), (128, 128)), ((1, 128), (1, 128)), ((128, 128), (1, 128)), ((1, 128), (1, 0))]


@pytest.mark.parametrize("accumulation", ["fast", "split"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("arch", CHIPS)
def test_rows(compile, arch, shape, accumulation):
    if accumulation == "split" and arch == "sm_100a":
        pytest.skip("tcgen05 sums in f32, without parts")
    ScaledProduct(arch, shape, blocks=ROWS, accumulation=accumulation).check(compile)


@pytest.mark.parametrize("arch", CHIPS)
def test_rows_of_one_operand(compile, arch):
    ScaledProduct(arch, (40, 50, 60), blocks=((0, 0), (1, 0)), out="bf16").check(compile)


@pytest.mark.parametrize("arch", CHIPS)
def test_rows_of_batches(compile, arch):
    ScaledProduct(arch, (40, 33, 48), ("f8E5M2", "f8E4M3FN"), blocks=ROWS, batch=3).check(compile)


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_rows_swapped(compile, arch):
    """The kernel computes the transposed product."""
    ScaledProduct(arch, (10, 300, 200), blocks=ROWS, config="tile_n = 16, swapped = true").check(compile)


@pytest.mark.parametrize("arch", CHIPS)
def test_rows_of_two_dimensions(compile, arch):
    """Each has its scale; the epilogue adds a vector and records the amax."""
    source = """module attributes {fp8.target = #fp8.chip<"%s">} {
  func.func @f(%%a: memref<5x30x32xf8E4M3FN>, %%b: memref<20x32xf8E4M3FN>, %%sa: memref<5x30x1xf32>, %%sb: memref<20x1xf32>,
               %%v: memref<20xf32>, %%d: memref<5x30x20xf32>, %%amax: memref<f32>) {
    fp8.scaled_matmul fast record_amax[0] ins(%%a, %%b : memref<5x30x32xf8E4M3FN>, memref<20x32xf8E4M3FN>)
        scales(%%sa, %%sb : memref<5x30x1xf32>, memref<20x1xf32>) epilogue_ins(%%v : memref<20xf32>)
        outs(%%d, %%amax : memref<5x30x20xf32>, memref<f32>)
        {lhs_block = array<i64: 1, 1, 0>, rhs_block = array<i64: 1, 0>, epilogue_maps = [affine_map<(b, s, n) -> (n)>],
         indexing_maps = [affine_map<(b, s, n, k) -> (b, s, k)>, affine_map<(b, s, n, k) -> (n, k)>,
                          affine_map<(b, s, n, k) -> (b, s, n)>]} epilogue {
      ^bb0(%%sum: f32, %%x: f32):
        %%y = arith.addf %%sum, %%x : f32
        fp8.yield %%y : f32
    }
    return
  }
}
""" % arch
    random = numpy.random.default_rng([7])
    a, b = (random.integers(-3, 4, shape).astype(TYPES["f8E4M3FN"]) for shape in ((5, 30, 32), (20, 32)))
    sa, sb, v = (random.standard_normal(shape, dtype=numpy.float32) for shape in ((5, 30, 1), (20, 1), (20,)))
    empty = numpy.full((5, 30, 20), numpy.nan, numpy.float32)
    *_, d, amax = compile(source, arch)(a, b, sa, sb, v, empty, numpy.array(numpy.nan, numpy.float32))
    expected = (sa * sb[:, 0]) * numpy.einsum("bsk,nk->bsn", a.astype(numpy.float32), b.astype(numpy.float32)) + v
    assert (d == expected).all() and amax == abs(expected).max()


@pytest.mark.parametrize("shape, blocks", [*((shape, BLOCKS[0]) for shape in SHAPES), *((SHAPES[1], blocks) for blocks in BLOCKS[1:])])
@pytest.mark.parametrize("arch", CHIPS)
def test_blocks(compile, arch, shape, blocks):
    ScaledProduct(arch, shape, ("f8E4M3FN", "f8E5M2"), blocks=blocks, accumulation="split").check(compile)


@pytest.mark.parametrize("operands", ["weight", "both", "left"])
@pytest.mark.parametrize("extent", [32, 64, 96, 256, 512])
@pytest.mark.parametrize("arch", CHIPS)
def test_blocks_of_other_sizes(compile, arch, extent, operands):
    """By mma.sync: the others load 128 at a time."""
    blocks = {"weight": ((1, extent), (extent, extent)), "both": ((1, extent), (1, extent)), "left": ((1, extent), (1, 0))}[operands]
    product = ScaledProduct(arch, (100, 130, 300), ("f8E4M3FN", "f8E5M2"), blocks=blocks, accumulation="split")
    product.check(compile)
    assert "mma.sync" in product.function.lowered and "scaled sums of blocks of %d" % extent in product.function.lowered


@pytest.mark.parametrize("arch", CHIPS)
def test_blocks_of_batches(compile, arch):
    ScaledProduct(arch, (40, 33, 150), blocks=BLOCKS[1], batch=3, accumulation="split", out="bf16").check(compile)


@pytest.mark.parametrize("arch", CHIPS)
def test_blocks_in_other_orders(compile, arch):
    """Scales as they lie in memory; operands are copied where the tensor cores cannot read them."""
    ScaledProduct(arch, (80, 64, 260), blocks=BLOCKS[0], transposed=(True, True), accumulation="split").check(compile)


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize("config", ["tile_n = 16", "tile_n = 64, swapped = true"])
def test_tiles_with_blocks(compile, arch, config):
    ScaledProduct(arch, (70, 140, 200), blocks=BLOCKS[0], accumulation="split", config=config).check(compile)


@pytest.mark.parametrize("accumulation", ["fast", "split"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (100, 130, 300), (70, 260, 77)])
@pytest.mark.parametrize("arch", MX_CHIPS)
def test_packed_scales(compile, arch, shape, accumulation):
    """On sm_100a, sums are taken in parts only where the program's order is asked for."""
    PackedProduct(arch, shape, ("f8E4M3FN", "f8E5M2"), accumulation=accumulation, strict=True).check(compile)


@pytest.mark.parametrize("arch", MX_CHIPS)
def test_packed_scales_of_batches(compile, arch):
    PackedProduct(arch, (140, 33, 150), batch=3, out="bf16").check(compile)


@pytest.mark.parametrize("config", ["tile_n = 64", "tile_n = 64, swapped = true", "tile_n = 128"])
def test_tiles_with_packed_scales(compile, config):
    PackedProduct("sm_100a", (70, 200, 200), config=config).check(compile)


def test_packed_scales_of_transposed_operands(compile):
    PackedProduct("sm_100a", (70, 200, 200), transposed=(True, True)).check(compile)


@pytest.mark.skipif(not PTXAS, reason="no ptxas")
@pytest.mark.parametrize("arch", MX_CHIPS)
def test_packed_scales_do_not_spill(compile, arch):
    product = PackedProduct(arch, (256, 256, 256), out="bf16")
    said = assemble(compile(product.source(), arch).ptx, arch)
    assert "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in said and "warning" not in said, said


@pytest.mark.skipif(not PTXAS, reason="no ptxas")
@pytest.mark.parametrize("blocks, accumulation", [(ROWS, "fast"), (ROWS, "split"), (BLOCKS[0], "split"), (BLOCKS[1], "split")])
@pytest.mark.parametrize("arch", CHIPS)
def test_no_spills(compile, arch, blocks, accumulation):
    product = ScaledProduct(arch, (256, 256, 256), blocks=blocks, out="bf16", accumulation=accumulation)
    said = assemble(compile(product.source(), arch).ptx, arch)
    assert "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in said and "warning" not in said, said
