# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Casts with a scale per block or row, bit for bit against a model in numpy: the formulas of the recipes.

import numpy
import pytest
from compiled import CHIPS, TYPES
from test_casts import FORMATS, MODULE, amax, cast, memref, profile, same_bits, unwritten, values

TYPES["f8E8M0FNU"] = numpy.uint8
BLOCK, MX, ROW = "#fp8.block_scaling", "#fp8.mx_scaling", "#fp8.row_scaling"


def scales(amaxes, recipe, format, element):
    """The scale of each amax, and scale_inv as it is stored."""
    largest = numpy.float64(FORMATS[format])
    wide = amaxes.astype(numpy.float64)
    usable = (wide > 0) & numpy.isfinite(wide)
    if recipe == MX:  # 2^-ceil(log2(amax / largest)), of the exact quotient
        mantissa, exponent = numpy.frexp(numpy.where(usable, wide, 1) / largest)  # a quotient is exactly a power of two or not near one
        log = numpy.clip(numpy.where(mantissa == 0.5, exponent - 1, exponent), -127, 127)
        log = numpy.where(usable, log, numpy.where(wide > 0, 127, -127)).astype(int)
        return numpy.ldexp(numpy.ones_like(wide), -log).astype(numpy.float32), (log + 127).astype(numpy.uint8)
    limit = numpy.float32(3.3895314e38 if element == "bf16" and recipe == BLOCK else numpy.finfo(element.replace("f", "float") if element != "bf16" else "f4").max)
    if recipe == ROW:
        limit = numpy.finfo("f4").max
    with numpy.errstate(over="ignore"):
        scale = numpy.minimum((numpy.float32(largest) / numpy.where(usable, amaxes, 1).astype(numpy.float32)), limit)
    if recipe == BLOCK:
        scale = (scale.view(numpy.uint32) & 0x7F800000).view(numpy.float32)
    scale = numpy.where(usable, scale, numpy.float32(1)).astype(numpy.float32)
    return scale, (numpy.float32(1) / scale).astype(numpy.float32)


def blocks_of(x, block):
    """The number of blocks in each dimension, and for each block its place among them and among the elements."""
    extents = [size if extent == 0 else extent for size, extent in zip(x.shape, block)]
    counts = [1 if extent == 0 else -(-size // extent) for size, extent in zip(x.shape, block)]
    places = [(place, tuple(slice(i * extent, (i + 1) * extent) for i, extent in zip(place, extents))) for place in numpy.ndindex(*counts)]
    return counts, places


def quantize_blocks(x, block, recipe, format, element):
    """Bytes and scale_inv of one direction."""
    counts, places = blocks_of(x, block)
    amaxes = numpy.zeros(counts, numpy.float32)
    for place, part in places:
        amaxes[place] = amax(x[part])
    scale, inverse = scales(amaxes, recipe, format, element)
    bytes = numpy.zeros(x.shape, numpy.uint8)
    for place, part in places:
        bytes[part] = cast(x[part], scale[place], format)
    return bytes, inverse


def heavy(shape, dtype, seed):
    """Numbers with heavy tails; blocks of zeros, of NaN alone, and with Inf."""
    x = values(shape, numpy.float32, seed)
    rng = numpy.random.default_rng(seed + 100)
    x = x * 2.0 ** numpy.round(rng.standard_cauchy(shape)).clip(-60, 60)
    if x.ndim >= 2 and min(x.shape[-2:]) > 70:
        x[..., :32, :64] = 0
        x[..., 32:64, 32:64] = numpy.nan
        x[..., 64, 66] = -numpy.inf
        x[..., 65, :] *= 2.0**-100
    with numpy.errstate(over="ignore"):
        return x.astype(dtype)


class BlockCast:
    """A function with one cast by blocks. `directions`: pairs of a block and a permutation, or None."""

    def __init__(self, shape, directions, recipe=BLOCK, element="bf16", format="f8E4M3FN"):
        self.shape, self.directions, self.recipe, self.element, self.format = shape, directions, recipe, element, format

    def results(self):
        for block, order in self.directions:
            order = order or range(len(self.shape))
            counts = blocks_of(numpy.empty(self.shape), block)[0]
            yield [self.shape[d] for d in order], self.format
            yield [counts[d] for d in order], "f8E8M0FNU" if self.recipe == MX else "f32"

    def source(self, arch):
        x, outs = memref(self.shape, self.element), [memref(*result) for result in self.results()]

        def arrays(entries):
            return "[%s]" % ", ".join("array<i64: %s>" % ", ".join(map(str, entry)) for entry in entries)
        identity = list(range(len(self.shape)))
        orders = ", transpositions = " + arrays(order or identity for _, order in self.directions) if any(o for _, o in self.directions) else ""
        return MODULE % (arch, """  func.func @f(%%x: %s, %s) {
    fp8.quantize_blocks recipe(%s) ins(%%x : %s) outs(%s : %s) {blocks = %s%s}
    return
  }""" % (x, ", ".join("%%o%d: %s" % out for out in enumerate(outs)), self.recipe, x, ", ".join("%%o%d" % i for i in range(len(outs))),
          ", ".join(outs), arrays(block for block, _ in self.directions), orders))

    def check(self, compile, arch, seed=1, x=None):
        x = heavy(self.shape, TYPES[self.element], seed) if x is None else x
        _, *got = compile(self.source(arch), arch)(
            x, *(numpy.full(shape, 0xAA, numpy.uint8) if kind == "f8E8M0FNU" else unwritten(shape, kind) for shape, kind in self.results()))
        for i, (block, order) in enumerate(self.directions):
            order = order or range(len(self.shape))
            bytes, inverse = quantize_blocks(x, block, self.recipe, self.format, self.element)
            same_bits(got[2 * i + 1], inverse.transpose(order))
            same_bits(got[2 * i], bytes.transpose(order))


SHAPES = [(1, 1), (130, 77), (256, 128)]


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("extent, recipe", [(128, BLOCK), (32, MX)], ids=["block", "mx"])
def test_rows_and_columns(compile, arch, shape, extent, recipe):
    """One read of a tensor gives both directions; that of the columns in the layout that products read."""
    BlockCast(shape, [((1, extent), None), ((extent, 1), (1, 0))], recipe).check(compile, arch)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("extent, recipe", [(128, BLOCK), (32, MX)], ids=["block", "mx"])
def test_squares_in_both_layouts(compile, arch, extent, recipe):
    BlockCast((300, 260), [((extent, extent), None), ((extent, extent), (1, 0))], recipe).check(compile, arch)


@pytest.mark.parametrize("block", [(1, 128), (128, 1), (1, 32), (32, 1), (64, 1), (1, 16), (16, 1), (16, 16), (4, 32), (2, 64), (64, 2), (32, 4), (64, 64), (8, 8)], ids=str)
@pytest.mark.parametrize("order", [None, (1, 0)], ids=str)
def test_one_direction(compile, block, order):
    for recipe in (BLOCK, MX):
        case = BlockCast((140, 200), [(block, order)], recipe)
        if max(block) >= 16:
            case.check(compile, "sm_89", seed=2)


@pytest.mark.parametrize("element, format", [("f16", "f8E4M3FN"), ("f32", "f8E4M3FN"), ("f32", "f8E5M2"), ("bf16", "f8E5M2")])
@pytest.mark.parametrize("extent, recipe", [(128, BLOCK), (32, MX)], ids=["block", "mx"])
def test_formats(compile, element, format, extent, recipe):
    BlockCast((140, 136), [((1, extent), None), ((extent, 1), (1, 0))], recipe, element, format).check(compile, "sm_90a", seed=3)


@pytest.mark.parametrize("shape, directions", [
    ((4, 64, 130), [((1, 1, 128), None), ((2, 64, 1), (2, 0, 1))]),  # blocks of two sequences
    ((6, 64, 4, 32), [((1, 1, 4, 32), None), ((2, 64, 1, 1), (2, 3, 0, 1))]),  # the heads of attention are one row
    ((3, 100, 140), [((1, 128, 128), None), ((1, 128, 128), (0, 2, 1))]),  # a weight of each expert
    ((3, 100, 140), [((1, 1, 128), None), ((1, 128, 1), (0, 2, 1))]),
    ((200,), [((128,), None)]), ((0, 8), [((1, 128), None), ((128, 1), (1, 0))]), ((8, 0), [((1, 128), None)])], ids=str)
def test_ranks(compile, shape, directions):
    BlockCast(shape, directions).check(compile, "sm_89", seed=4)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("shape", [(1, 1), (100, 77), (130, 300), (300, 130)], ids=str)
def test_scale_per_row_and_column(compile, arch, shape):
    BlockCast(shape, [((1, 0), None), ((0, 1), (1, 0))], ROW).check(compile, arch, seed=5)


@pytest.mark.parametrize("shape, directions", [
    ((4, 50, 300), [((1, 1, 0), None), ((0, 0, 1), (2, 0, 1))]), ((3, 200, 140), [((1, 1, 0), None), ((1, 0, 1), (0, 2, 1))]),
    ((300, 50), [((0, 1), (1, 0))]), ((3, 17000), [((1, 0), None)]), ((0, 300), [((1, 0), None), ((0, 1), (1, 0))])], ids=str)
def test_ranks_of_rows(compile, shape, directions):
    BlockCast(shape, directions, ROW, "f32").check(compile, "sm_90a", seed=6)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("shape, element", [((20, 300), "bf16"), ((9, 1000), "f32"), ((1, 2050), "bf16"), ((5, 4097), "f16"), ((2, 3, 8192), "f32")], ids=str)
def test_rows_alone(compile, arch, shape, element):
    """One launch, which reads the tensor once: a row is one to eight warps, ragged or not."""
    case = BlockCast(shape, [((1,) * (len(shape) - 1) + (0,), None)], ROW, element)
    assert [call[0] for call in compile(case.source(arch), arch).calls] == ["kernel_quantize_by_rows"]
    case.check(compile, arch, seed=8)


@pytest.mark.parametrize("seed", range(4))
def test_any_case(compile, seed):
    """A random shape, recipe, format and choice of directions."""
    print("seed", seed)
    rng = numpy.random.default_rng(seed)
    recipe = [BLOCK, MX, ROW][rng.integers(3)]
    extent = {BLOCK: 128, MX: 32, ROW: 0}[recipe]
    directions = [((1, extent), None), ((extent, 1), (1, 0)), ((extent, 1), None), ((1, extent), (1, 0)), ((extent or 1, extent), None)]
    chosen = [directions[i] for i in rng.choice(5 if extent else 4, rng.integers(1, 4), replace=False)]
    BlockCast(tuple(rng.integers(1, 290, 2)), chosen, recipe, ["bf16", "f16", "f32"][rng.integers(3)],
              list(FORMATS)[rng.integers(2)]).check(compile, CHIPS[rng.integers(4)], seed)


# A gradient behind its producer, with a stored result, an index and a bias gradient.
PRODUCER = """func.func @f(%x: memref<{M}x{N}xf32>, %b: memref<{N}xf32>, {OUTS}, %e: memref<{M}x{N}xbf16>, %s: memref<{N}xf32>) {
  %zero = arith.constant 0.0 : bf16
  fp8.quantize_blocks recipe({RECIPE}) ins(%x, %b : memref<{M}x{N}xf32>, memref<{N}xf32>)
      outs(%d, %i, %t, %j, %e, %s : {TYPES}, memref<{M}x{N}xbf16>, memref<{N}xf32>)
      {blocks = {BLOCKS}, transpositions = [array<i64: 0, 1>, array<i64: 1, 0>], indexing_maps = [
        affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>]} producer {
    ^bb0(%v: f32, %bias: f32):
      %row = fp8.index 0
      %column = fp8.index 1
      %later = arith.cmpi ugt, %column, %row : index
      %p = arith.addf %v, %bias : f32
      %h = arith.truncf %p : f32 to bf16
      %m = arith.select %later, %zero, %h : bf16
      %w = arith.extf %h : bf16 to f32
      fp8.yield %m, %h, %w : bf16, bf16, f32
  }
  return
}"""


@pytest.mark.parametrize("extent, recipe", [(128, BLOCK), (32, MX), (0, ROW)], ids=["block", "mx", "row"])
@pytest.mark.parametrize("m, n", [(150, 140), (300, 128)])
def test_producer(compile, extent, recipe, m, n):
    case = BlockCast((m, n), [((1, extent), None), ((extent, 1), (1, 0))], recipe)
    results = list(case.results())
    types = [memref(*result) for result in results]
    text = {"M": m, "N": n, "OUTS": ", ".join("%%%s: %s" % pair for pair in zip("ditj", types)), "TYPES": ", ".join(types),
            "RECIPE": recipe, "BLOCKS": "[array<i64: 1, %d>, array<i64: %d, 1>]" % (extent, extent)}
    source = PRODUCER
    for key, value in text.items():
        source = source.replace("{%s}" % key, str(value))
    rng = numpy.random.default_rng(7)
    x, b = rng.integers(-8, 9, (m, n)).astype(numpy.float32) / 4, rng.integers(-8, 9, n).astype(numpy.float32) / 4
    x[3] *= 2.0**20
    h = (x + b).astype(TYPES["bf16"])
    yielded = numpy.where(numpy.arange(n) > numpy.arange(m)[:, None], TYPES["bf16"](0), h)
    _, _, d, i, t, j, e, s = compile(MODULE % ("sm_89", source), "sm_89")(
        x, b, *(numpy.full(shape, 0xAA, numpy.uint8) if kind == "f8E8M0FNU" else unwritten(shape, kind) for shape, kind in results),
        unwritten((m, n), "bf16"), unwritten(n, "f32"))
    same_bits(e, h)
    assert (s == h.astype(numpy.float64).sum(0)).all()  # exact in any order
    for block, data, inverse, order in ((1, extent), d, i, (0, 1)), ((extent, 1), t, j, (1, 0)):
        bytes, wanted = quantize_blocks(yielded, block, recipe, case.format, "bf16")
        same_bits(inverse, wanted.transpose(order))
        same_bits(data, bytes.transpose(order))


@pytest.mark.parametrize("extent, recipe, inverse", [(128, BLOCK, 4), (32, MX, 1)], ids=["block", "mx"])
def test_traffic(compile, bin_dir, tmp_path, extent, recipe, inverse):
    """Every sector of x, rows and columns is moved once, and no two lanes meet in a bank of shared memory."""
    case = BlockCast((512, 256), [((1, extent), None), ((extent, 1), (1, 0))], recipe)
    function = compile(case.source("sm_89"), "sm_89")
    names = {"bf16": "bf16", "f32": "f32", "f8E4M3FN": "u8", "f8E8M0FNU": "u8"}
    arguments = ["%s[%s]" % (names[kind], ",".join(map(str, shape))) for shape, kind in [(case.shape, "bf16"), *case.results()]]
    counts = profile(bin_dir / "fp8-ptx", tmp_path, function, "kernel_quantize_blocks", arguments)
    assert counts["bank_conflicts"] == 0
    # Beside the tensors: the scale_inv of a tile are in other sectors for each of its rows, and of its columns.
    tiles = 4 * 2
    assert counts["global_sectors"] <= 512 * 256 * (2 + 1 + 1) // 32 + tiles * 2 * 128
    assert counts["global_written_bytes"] == 512 * 256 * 2 + 2 * inverse * 512 * 256 // extent


def test_traffic_of_rows(compile, bin_dir, tmp_path):
    """A sector of x is read once, and one of the bytes written once; each row writes its scale_inv."""
    function = compile(BlockCast((64, 2048), [((1, 0), None)], ROW).source("sm_89"), "sm_89")
    counts = profile(bin_dir / "fp8-ptx", tmp_path, function, "kernel_quantize_by_rows", ["bf16[64,2048]", "u8[64,2048]", "f32[64]"])
    assert counts["bank_conflicts"] == 0
    assert counts["global_sectors"] == 64 * 2048 * (2 + 1) // 32 + 64


# The optimizer of a weight, whose new value takes the place of the old one.
IN_PLACE = """func.func @f(%x: memref<{M}x{N}xf32>, {OUTS}) {
  fp8.quantize_blocks recipe({RECIPE}) ins(%x : memref<{M}x{N}xf32>) outs(%d, %i, %t, %j, %x : {TYPES}, memref<{M}x{N}xf32>)
      {blocks = {BLOCKS}, indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>]} producer {
    ^bb0(%v: f32):
      %p = arith.addf %v, %v : f32
      fp8.yield %p, %p : f32, f32
  }
  return
}"""


@pytest.mark.parametrize("extent, recipe", [(128, BLOCK), (32, MX), (0, ROW)], ids=["block", "mx", "row"])
@pytest.mark.parametrize("m, n", [(150, 140), (100, 90), (100, 140)])
def test_a_stored_result_may_take_the_place_of_an_input(compile, extent, recipe, m, n):
    """As the bufferization allows it: no kernel reads an element after its new value was stored."""
    case = BlockCast((m, n), [((1, extent), None), ((extent, 1), None)], recipe, "f32")
    results = list(case.results())
    types = [memref(*result) for result in results]
    text = {"M": m, "N": n, "OUTS": ", ".join("%%%s: %s" % pair for pair in zip("ditj", types)), "TYPES": ", ".join(types),
            "RECIPE": recipe, "BLOCKS": "[array<i64: 1, %d>, array<i64: %d, 1>]" % (extent, extent)}
    source = IN_PLACE
    for key, value in text.items():
        source = source.replace("{%s}" % key, str(value))
    x = numpy.random.default_rng(11).standard_normal((m, n)).astype(numpy.float32)
    new, *got = compile(MODULE % ("sm_100a", source), "sm_100a")(
        x, *(numpy.full(shape, 0xAA, numpy.uint8) if kind == "f8E8M0FNU" else unwritten(shape, kind) for shape, kind in results))
    same_bits(new, x + x)
    for direction, (block, _) in enumerate(case.directions):
        bytes, inverse = quantize_blocks(x + x, block, recipe, case.format, "f32")
        same_bits(got[2 * direction + 1], inverse)
        same_bits(got[2 * direction], bytes)
