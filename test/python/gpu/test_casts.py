# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Casts, amaxes and transpositions bit for bit against a model in numpy: the rules of section "Cast" and "amax" of the
# dialect's documentation.

import json
import re
import subprocess

import numpy
import pytest
from compiled import CHIPS, PTXAS, TYPES, assemble
from producers import MASKED_SUM

FORMATS = {"f8E4M3FN": 448, "f8E5M2": 57344}
SPECIAL = [0.0, -0.0, numpy.nan, numpy.inf, -numpy.inf, 448.0, 464.0, 465.0, -500.0, 57344.0, 61440.0, -70000.0,
           2.0**-6, 2.0**-9, 2.0**-10, 1.5 * 2.0**-10, 2.0**-14, 2.0**-16, 2.0**-17, -(2.0**-18), 2.0**-126, 2.0**-130,
           1.0625, 1.1875, 1.125, -1.375, 3.3895e38]


def values(shape, dtype, seed, special=True):
    """Numbers of many magnitudes, special ones among them."""
    print("seed", seed)
    rng = numpy.random.default_rng(seed)
    x = rng.standard_normal(shape) * 2.0 ** rng.integers(-12, 12, shape)
    flat = x.reshape(-1)
    if special and flat.size > 4 * len(SPECIAL):
        flat[rng.choice(flat.size, len(SPECIAL), replace=False)] = SPECIAL
    with numpy.errstate(over="ignore"):
        return x.astype(dtype)


def cast(x, scale, format):
    """The bytes of x · scale."""
    with numpy.errstate(over="ignore"):
        scaled = numpy.asarray(x.astype(numpy.float32) * numpy.float32(scale))
    bytes = numpy.asarray(numpy.clip(scaled, -FORMATS[format], FORMATS[format]).astype(TYPES[format])).view(numpy.uint8)
    bytes[numpy.isnan(scaled)] = 0x7F
    return bytes


def unwritten(shape, element):
    """Memory for a result: the helper leaves arrays of NaN unwritten, so that reading it is an error."""
    return numpy.full(shape, numpy.nan, numpy.float32).astype(TYPES[element])


def same_bits(got, expected):
    got, expected = (numpy.asarray(a).view("u%d" % a.dtype.itemsize) for a in (got, expected))
    assert got.shape == expected.shape and (got == expected).all(), numpy.argwhere(got != expected)[:5]


def amax(x):
    wide = numpy.abs(x.astype(numpy.float32))
    return numpy.max(wide, initial=0, where=~numpy.isnan(wide)).astype(numpy.float32)


def memref(shape, element):
    return "memref<%s%s>" % ("".join("%dx" % size for size in shape), element)


class Cast:
    """A function with one cast of x by a scale. Results: data, data_t, scale_inv, amax."""

    def __init__(self, shape, element="bf16", format="f8E4M3FN", transposition=None, record=True):
        self.shape, self.element, self.format, self.transposition = shape, element, format, transposition
        self.results = [(shape, format)] + ([([shape[d] for d in transposition], format)] if transposition else [])
        self.results += [((), "f32")] * (2 if record else 1)
        self.record = record

    def source(self, arch):
        x, outs = memref(self.shape, self.element), [memref(*result) for result in self.results]
        return """module attributes {fp8.target = #fp8.chip<"%s">} {
  func.func @f(%%x: %s, %%s: memref<f32>, %s) {
    fp8.quantize %s ins(%%x : %s) scale(%%s : memref<f32>) outs(%s : %s) %s
    return
  }
}""" % (arch, x, ", ".join("%%o%d: %s" % out for out in enumerate(outs)), "record_amax" if self.record else "", x,
        ", ".join("%%o%d" % i for i in range(len(outs))), ", ".join(outs),
        "{transposition = array<i64: %s>}" % str(list(self.transposition))[1:-1] if self.transposition else "")

    def check(self, compile, arch, seed=1, scale=1.5):
        x = values(self.shape, TYPES[self.element], seed)
        function = compile(self.source(arch), arch)
        _, _, data, *rest = function(x, numpy.array(scale, numpy.float32), *(unwritten(*result) for result in self.results))
        expected = cast(x, scale, self.format)
        same_bits(data, expected)
        if self.transposition:
            same_bits(rest.pop(0), expected.transpose(self.transposition))
        same_bits(rest[0], numpy.float32(1) / numpy.float32(scale))
        if self.record:
            same_bits(rest[1], amax(x))


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("shape", [(1, 1), (10, 8), (100, 77), (128, 128), (300, 260), (130, 200)], ids=str)
@pytest.mark.parametrize("element", ["bf16", "f32"])
def test_rows_and_columns(compile, arch, shape, element):
    Cast(shape, element, transposition=(1, 0)).check(compile, arch)


@pytest.mark.parametrize("arch", CHIPS)
def test_rows_that_nobody_reads(compile, arch):
    """Only the columns are written."""
    case = Cast((100, 77), transposition=(1, 0))
    source = case.source(arch).replace("%o0: memref<100x77xf8E4M3FN>, ", "")
    function = compile(source.replace("{\n    fp8.quantize", "{\n    %o0 = memref.alloc() : memref<100x77xf8E4M3FN>\n    fp8.quantize"), arch)
    assert not function.allocations
    x = values(case.shape, TYPES["bf16"], 2)
    _, _, columns, inverse, largest = function(x, numpy.float32(1.5), *(unwritten(*result) for result in case.results[1:]))
    same_bits(columns, cast(x, 1.5, case.format).T)
    same_bits(inverse, numpy.float32(1) / numpy.float32(1.5))
    same_bits(largest, amax(x))


@pytest.mark.parametrize("shape, transposition", [
    ((), None), ((1,), None), ((300,), None), ((3, 20, 33), (2, 0, 1)), ((3, 20, 40), (0, 2, 1)),
    ((2, 3, 16, 24), (0, 1, 3, 2)), ((2, 3, 16, 24), (3, 0, 1, 2)), ((2, 3, 17, 9), (0, 3, 1, 2)),
    ((2, 3, 16, 24), (2, 0, 3, 1)), ((5, 3, 24), (1, 0, 2)), ((4, 1, 30), (1, 0, 2)), ((7, 1), (1, 0)), ((1, 50), (1, 0)),
    ((0, 8), (1, 0)), ((8, 0), (1, 0)), ((0, 5, 3), (0, 2, 1)), ((2, 0, 5, 9), (0, 1, 3, 2)), ((0, 128, 128), (0, 2, 1))], ids=str)
def test_ranks_and_transpositions(compile, shape, transposition):
    Cast(shape, transposition=transposition).check(compile, "sm_89")


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("element", ["f16", "bf16", "f32"])
def test_formats(compile, element, format):
    Cast((72, 96), element, format, (1, 0)).check(compile, "sm_90a", seed=2, scale=0.75)


def test_rows_alone(compile):
    Cast((72, 96), record=False).check(compile, "sm_89")


MODULE = """module attributes {fp8.target = #fp8.chip<"%s">} {
%s
}"""


def test_amax_alone(compile):
    x = values((5, 60, 70), TYPES["bf16"], 3)
    source = """func.func @f(%x: memref<5x60x70xbf16>, %a: memref<f32>) {
  fp8.amax ins(%x : memref<5x60x70xbf16>) outs(%a : memref<f32>)
  return
}"""
    for arch in CHIPS:
        same_bits(compile(MODULE % (arch, source), arch)(x, unwritten((), "f32"))[1], amax(x))


def test_amax_of_nothing_but_nan(compile):
    x = numpy.full((40, 50), numpy.nan, TYPES["bf16"])
    x[0, 0] = -0.0
    source = """func.func @f(%x: memref<40x50xbf16>, %a: memref<f32>) {
  fp8.amax ins(%x : memref<40x50xbf16>) outs(%a : memref<f32>)
  return
}"""
    same_bits(compile(MODULE % ("sm_89", source), "sm_89")(x, unwritten((), "f32"))[1], numpy.float32(0))


# Two tensors: their amaxes are elements of one vector, which is cleared once.
CURRENT_SCALING = """func.func @f(%x: memref<64x96xbf16>, %y: memref<33x40xf32>, %sx: memref<f32>, %sy: memref<f32>,
    %qx: memref<64x96xf8E4M3FN>, %ix: memref<f32>, %qy: memref<33x40xf8E5M2>, %iy: memref<f32>) {
  %ax = memref.alloc() : memref<f32>
  fp8.amax ins(%x : memref<64x96xbf16>) outs(%ax : memref<f32>)
  fp8.compute_scale recipe(#fp8.current_scaling) format(f8E4M3FN) ins(%ax : memref<f32>) outs(%sx : memref<f32>)
  %ay = memref.alloc() : memref<f32>
  fp8.amax ins(%y : memref<33x40xf32>) outs(%ay : memref<f32>)
  fp8.compute_scale recipe(#fp8.current_scaling<power_2_scale = true>) format(f8E5M2)
      ins(%ay : memref<f32>) outs(%sy : memref<f32>)
  fp8.quantize ins(%x : memref<64x96xbf16>) scale(%sx : memref<f32>) outs(%qx, %ix : memref<64x96xf8E4M3FN>, memref<f32>)
  fp8.quantize ins(%y : memref<33x40xf32>) scale(%sy : memref<f32>) outs(%qy, %iy : memref<33x40xf8E5M2>, memref<f32>)
  return
}"""


@pytest.mark.parametrize("seed", range(3))
def test_current_scaling(compile, seed):
    x, y = values((64, 96), TYPES["bf16"], seed, special=False), values((33, 40), numpy.float32, seed + 10, special=False)
    function = compile(MODULE % ("sm_89", CURRENT_SCALING), "sm_89")
    assert [call[0] for call in function.calls].count("kernel_clear_amax") == 1
    results = [((), "f32"), ((), "f32"), ((64, 96), "f8E4M3FN"), ((), "f32"), ((33, 40), "f8E5M2"), ((), "f32")]
    _, _, sx, sy, qx, ix, qy, iy = function(x, y, *(unwritten(*result) for result in results))
    wanted = numpy.float32(448) / amax(x), numpy.float32(57344) / amax(y)
    power = numpy.float32(2.0 ** numpy.floor(numpy.log2(wanted[1].astype(numpy.float64))))
    same_bits(sx, wanted[0])
    same_bits(sy, power)
    same_bits(qx, cast(x, sx, "f8E4M3FN"))
    same_bits(qy, cast(y, sy, "f8E5M2"))
    same_bits(ix, numpy.float32(1) / sx)


# A producer with a broadcast row, a transposed and a repeated input, indices, and two stored results.
PRODUCER = """func.func @f(%x: memref<{M}x{N}xf32>, %b: memref<{N}xf32>, %r: memref<{M}xf32>, %y: memref<{N}x{M}xbf16>,
    %s: memref<f32>, %d: memref<{M}x{N}xf8E4M3FN>, %t: memref<{N}x{M}xf8E4M3FN>, %i: memref<f32>, %a: memref<f32>,
    %e: memref<{M}x{N}xbf16>, %g: memref<{N}x{M}xi1>) {
  %zero = arith.constant 0.0 : f32
  fp8.quantize record_amax ins(%x, %b, %r, %y : memref<{M}x{N}xf32>, memref<{N}xf32>, memref<{M}xf32>, memref<{N}x{M}xbf16>)
      scale(%s : memref<f32>)
      outs(%d, %t, %i, %a, %e, %g : memref<{M}x{N}xf8E4M3FN>, memref<{N}x{M}xf8E4M3FN>, memref<f32>, memref<f32>,
           memref<{M}x{N}xbf16>, memref<{N}x{M}xi1>)
      {transposition = array<i64: 1, 0>, indexing_maps = [
        affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m)>, affine_map<(m, n) -> (n, m)>,
        affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n, m)>]} producer {""" + MASKED_SUM + """  }
  return
}"""


@pytest.mark.parametrize("arch", ["sm_89", "sm_90a"])
@pytest.mark.parametrize("m, n", [(60, 90), (128, 136), (3, 5)])
def test_producer(compile, arch, m, n):
    f32, bf16 = numpy.float32, TYPES["bf16"]
    x, b, r, y = (values(shape, dtype, 4 + i, special=False)
                  for i, (shape, dtype) in enumerate([((m, n), f32), (n, f32), (m, f32), ((n, m), bf16)]))
    source = PRODUCER.replace("{M}", str(m)).replace("{N}", str(n))
    results = [((m, n), "f8E4M3FN"), ((n, m), "f8E4M3FN"), ((), "f32"), ((), "f32"), ((m, n), "bf16")]
    later = numpy.zeros((n, m), numpy.int8)
    *_, d, t, i, a, e, g = compile(MODULE % (arch, source), arch)(
        x, b, r, y, f32(0.5).reshape(()), *(unwritten(*result) for result in results), later)
    h = (x * r[:, None] + b - y.T.astype(f32)).astype(bf16)
    mask = numpy.arange(n) > numpy.arange(m)[:, None]
    yielded = numpy.where(mask, f32(0), h.astype(f32))
    same_bits(e, h)
    same_bits(g, mask.T.astype(numpy.int8))
    same_bits(a, amax(yielded))
    same_bits(d, cast(yielded, 0.5, "f8E4M3FN"))
    same_bits(t, cast(yielded, 0.5, "f8E4M3FN").T)


# A gradient with its bias gradient: sums over all rows.
SUMS = """func.func @f(%x: memref<{SHAPE}xbf16>, %s: memref<f32>, %d: memref<{SHAPE}xf8E5M2>, %i: memref<f32>, %a: memref<f32>,
    %b: memref<{N}xf32>, %c: memref<{N}xf32>) {
  fp8.quantize record_amax ins(%x : memref<{SHAPE}xbf16>) scale(%s : memref<f32>)
      outs(%d, %i, %a, %b, %c : memref<{SHAPE}xf8E5M2>, memref<f32>, memref<f32>, memref<{N}xf32>, memref<{N}xf32>)
      {indexing_maps = [affine_map<({DIMS}) -> ({DIMS})>, affine_map<({DIMS}) -> (n)>, affine_map<({DIMS}) -> (n)>]} producer {
    ^bb0(%v: bf16):
      %w = arith.extf %v : bf16 to f32
      %n = arith.negf %w : f32
      fp8.yield %v, %w, %n : bf16, f32, f32
  }
  return
}"""


@pytest.mark.parametrize("shape", [(5, 3), (300, 260), (2, 150, 24), (0, 140), (2000, 40)], ids=str)
def test_sums_over_rows(compile, shape):
    """Sums of small integers are exact in any order; those of other numbers are the same in every run."""
    n, dims = shape[-1], "b, m, n" if len(shape) == 3 else "m, n"
    source = SUMS.replace("{SHAPE}", "x".join(map(str, shape))).replace("{N}", str(n)).replace("{DIMS}", dims)
    function = compile(MODULE % ("sm_89", source), "sm_89")
    results = [(shape, "f8E5M2"), ((), "f32"), ((), "f32"), (n, "f32"), (n, "f32")]
    rng = numpy.random.default_rng(6)
    x = rng.integers(-8, 9, shape).astype(TYPES["bf16"])
    _, _, d, i, a, b, c = function(x, numpy.float32(2).reshape(()), *(unwritten(*result) for result in results))
    sums = x.astype(numpy.float32).reshape(-1, n).sum(0)
    same_bits(b + numpy.float32(0), sums + numpy.float32(0))
    assert (c == -sums).all()
    same_bits(d, cast(x, 2, "f8E5M2"))
    same_bits(a, amax(x))
    y = values(shape, TYPES["bf16"], 7, special=False)
    first, second = (function(y, numpy.float32(2).reshape(()), *(unwritten(*result) for result in results))[5] for _ in range(2))
    same_bits(first, second)
    # A sum of n rounded additions differs from the exact one by at most n units of the sum of magnitudes.
    wide = y.astype(numpy.float64).reshape(-1, n)
    assert (abs(first - wide.sum(0)) <= len(wide) * 2.0**-24 * abs(wide).sum(0)).all()


def profile(fp8_ptx, tmp_path, function, kernel, arguments):
    """The counts of the kernel by `fp8-ptx run`, on tensors of zeros."""
    (tmp_path / "kernel.ptx").write_text(function.ptx)
    _, grid, block, _ = next(call for call in function.calls if call[0] == kernel)
    grid, block = (",".join(str(function.constants[name.strip()][0]) for name in part.split(",")) for part in (grid, block))
    subprocess.run([fp8_ptx, "run", tmp_path / "kernel.ptx", "--kernel=" + kernel, "--grid=" + grid, "--block=" + block,
                    "--profile=json:%s" % (tmp_path / "profile.json"), *("--arg=out:x%d:%s" % one for one in enumerate(arguments))],
                   check=True, capture_output=True)
    return json.loads((tmp_path / "profile.json").read_text())["kernels"][0]["total"]


def test_traffic(compile, bin_dir, tmp_path):
    """Every sector of 32 bytes of x, rows and columns is moved once, and no two lanes meet in a bank of shared memory."""
    function = compile(Cast((512, 256), transposition=(1, 0)).source("sm_89"), "sm_89")
    counts = profile(bin_dir / "fp8-ptx", tmp_path, function, "kernel_quantize",
                     ["bf16[512,256]", "u8[512,256]", "u8[256,512]", "f32[1]", "f32[1]", "f32[1]"])
    warps = 8 * 8
    assert counts["bank_conflicts"] == 0
    # Beside the tensors: every warp reads the scale and takes the maximum of the amax, and one writes scale_inv.
    assert counts["global_sectors"] <= 512 * 256 * (2 + 1 + 1) // 32 + 2 * warps + 1


@pytest.mark.skipif(not PTXAS, reason="needs ptxas")
@pytest.mark.parametrize("arch", CHIPS)
def test_registers(compile, arch):
    """Nothing spills, and four blocks of 256 threads share a multiprocessor of 65,536 registers."""
    for shape in ((256, 256), (300, 261)):
        text = assemble(compile(Cast(shape, transposition=(1, 0)).source(arch), arch).ptx, arch)
        assert all(count == "0" for count in re.findall(r"(\d+) bytes spill", text))
        assert max(map(int, re.findall(r"Used (\d+) registers", text))) <= 64
