# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Casts of rows, as of a norm: bit for bit against numpy. Sums are of small integers, exact in any order.

import re

import numpy
import pytest
from compiled import PTXAS, TYPES, assemble
from test_casts import CHIPS, amax, cast, memref, profile, same_bits, unwritten, values

F32, BF16 = numpy.float32, TYPES["bf16"]

# Two reductions, a factor per row, a weight per column, the row's index; results are a statistic, a stored row and a sum over
# rows. `part` of a row is the weight of its mean: a power of two, so that it is exact.
NORM = """module attributes {fp8.target = #fp8.chip<"{ARCH}">} {
  func.func @f(%x: {X}, %f: {F}, %g: memref<{N}xf32>, %s: memref<f32>, {PARAMETERS}) {
    %zero = arith.constant 0.0 : f32
    %part = arith.constant {PART} : f32
    fp8.quantize record_amax ins(%x, %f, %g : {X}, {F}, memref<{N}xf32>) scale(%s : memref<f32>)
        outs({OUTS} : {TYPES})
        {indexing_maps = [affine_map<({D}, n) -> ({D}, n)>, affine_map<({D}, n) -> ({D})>, affine_map<({D}, n) -> (n)>,
                          affine_map<({D}, n) -> ({D}, 0)>, affine_map<({D}, n) -> ({D}, n)>, affine_map<({D}, n) -> (n)>],
         rows = array<i64: {ROW}>{TRANSPOSITION}} producer {
      ^bb0({INDICES}, %e: vector<{N}x{E}>, %factor: f32, %weight: vector<{N}xf32>):
        %w = {WIDEN}
        %sum = vector.reduction <add>, %w, %zero : vector<{N}xf32> into f32
        %mean = arith.mulf %sum, %part : f32
        %means = vector.broadcast %mean : f32 to vector<{N}xf32>
        %centered = arith.subf %w, %means : vector<{N}xf32>
        %largest = vector.reduction <maximumf>, %centered : vector<{N}xf32> into f32
        %slope = arith.addf %largest, %factor : f32
        %slopes = vector.broadcast %slope : f32 to vector<{N}xf32>
        %scaled = arith.mulf %centered, %slopes : vector<{N}xf32>
        %weighted = arith.addf %scaled, %weight : vector<{N}xf32>
        %place = vector.step : vector<{N}xindex>
        %row = vector.broadcast %m : index to vector<{N}xindex>
        %later = arith.cmpi ugt, %place, %row : vector<{N}xindex>
        %masked = arith.select %later, %weighted, %centered : vector<{N}xi1>, vector<{N}xf32>
        %short = arith.truncf %masked : vector<{N}xf32> to vector<{N}xbf16>
        fp8.yield %masked, %mean, %short, %w : vector<{N}xf32>, f32, vector<{N}xbf16>, vector<{N}xf32>
    }
    return
  }
}"""


class Norm:
    """Results: data, data_t, scale_inv, amax, means, rows in bf16, sums of x over the rows."""

    def __init__(self, shape, element="bf16", format="f8E4M3FN", transposition=None):
        self.shape, self.element, self.format, self.transposition = shape, element, format, transposition
        *outer, n = shape
        self.results = [(shape, format)] + ([([shape[d] for d in transposition], format)] if transposition else [])
        self.results += [((), "f32"), ((), "f32"), ((*outer, 1), "f32"), (shape, "bf16"), ((n,), "f32")]
        self.part = 2.0 ** -int(numpy.log2(n))

    def source(self, arch):
        *outer, n = self.shape
        dims = ["m", "k", "l"][:len(outer)]
        wide = "vector<%dxf32>" % n
        widen = "arith.extf %%e : vector<%dx%s> to %s" % (n, self.element, wide)
        if self.element == "f32":
            widen = "arith.addf %%weight, %%e : %s" % wide
        words = {"ARCH": arch, "X": memref(self.shape, self.element), "F": memref(outer, "f32"), "N": n, "E": self.element,
                 "PARAMETERS": ", ".join("%%o%d: %s" % (i, memref(*result)) for i, result in enumerate(self.results)),
                 "OUTS": ", ".join("%%o%d" % i for i in range(len(self.results))),
                 "TYPES": ", ".join(memref(*result) for result in self.results), "PART": "%.20f" % self.part, "D": ", ".join(dims),
                 "ROW": len(outer), "INDICES": ", ".join("%%%s: index" % dim for dim in dims), "WIDEN": widen,
                 "TRANSPOSITION": ", transposition = array<i64: %s>" % str(list(self.transposition))[1:-1] if self.transposition else ""}
        return re.sub(r"\{([A-Z]+)\}", lambda found: str(words[found[1]]), NORM)

    def check(self, compile, arch, seed=1, scale=1.5):
        print("seed", seed)
        rng = numpy.random.default_rng(seed)
        *outer, n = self.shape
        x = rng.integers(-8, 9, self.shape).astype(TYPES[self.element])
        factor, weight = values(outer, F32, seed + 1, special=False), rng.integers(-4, 5, n).astype(F32)
        function = compile(self.source(arch), arch)
        _, _, _, _, data, *rest = function(x, factor, weight, F32(scale).reshape(()), *(unwritten(*result) for result in self.results))
        wide = x.astype(F32) + (weight if self.element == "f32" else F32(0))
        mean = (wide.sum(-1, keepdims=True, dtype=F32) * F32(self.part)).astype(F32)
        centered = wide - mean
        slope = centered.max(-1, keepdims=True, initial=-numpy.inf) + factor[..., None]
        later = numpy.arange(n) > numpy.arange(self.shape[0]).reshape(-1, *[1] * len(outer))
        masked = numpy.where(later, centered * slope + weight, centered)
        expected = cast(masked, scale, self.format)
        same_bits(data, expected)
        if self.transposition:
            same_bits(rest.pop(0), expected.transpose(self.transposition))
        inverse, largest, means, rows, sums = rest
        same_bits(inverse, F32(1) / F32(scale))
        same_bits(largest, amax(masked))
        same_bits(means, mean)
        same_bits(rows, masked.astype(BF16))
        same_bits(sums + F32(0), wide.reshape(-1, n).sum(0, dtype=F32) + F32(0))
        return function


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("shape", [(40, 128), (33, 100), (5, 3000)], ids=str)
def test_norm(compile, arch, shape):
    Norm(shape, transposition=(1, 0)).check(compile, arch)


@pytest.mark.parametrize("shape, transposition", [
    ((1, 2), None), ((5, 3), (1, 0)), ((7, 33), (1, 0)), ((300, 64), (1, 0)), ((64, 1024), (1, 0)), ((9, 1030), (1, 0)), ((20, 4096), None),
    ((3, 20, 40), (2, 0, 1)), ((3, 37, 40), (0, 2, 1)), ((2, 32, 24), (1, 2, 0)), ((2, 3, 5, 16), (3, 0, 1, 2)), ((0, 8), (1, 0)),
    ((2, 0, 8), (0, 2, 1)), ((0, 3, 8), (0, 2, 1))], ids=str)
def test_shapes(compile, shape, transposition):
    Norm(shape, transposition=transposition).check(compile, "sm_89", seed=2)


@pytest.mark.parametrize("element, format", [("f16", "f8E5M2"), ("f32", "f8E4M3FN")])
def test_types(compile, element, format):
    Norm((50, 260), element, format, (1, 0)).check(compile, "sm_100a", seed=3, scale=0.5)


def test_rows_that_nobody_reads(compile):
    """Only the columns are written."""
    case = Norm((40, 128), transposition=(1, 0))
    source = case.source("sm_89").replace("%o0: memref<40x128xf8E4M3FN>, ", "", 1)
    source = source.replace("    %zero =", "    %o0 = memref.alloc() : memref<40x128xf8E4M3FN>\n    %zero =")
    assert not [memref for _, memref in compile(source, "sm_89").allocations if "f8E4M3FN" in memref]


AMAX = """module attributes {fp8.target = #fp8.chip<"sm_90a">} {
  func.func @f(%x: memref<30x48xf32>, %a: memref<f32>) {
    fp8.amax ins(%x : memref<30x48xf32>) outs(%a : memref<f32>) {indexing_maps = [affine_map<(m, n) -> (m, n)>], rows = array<i64: 1>} producer {
      ^bb0(%m: index, %e: vector<48xf32>):
        %sum = vector.reduction <add>, %e : vector<48xf32> into f32
        %sums = vector.broadcast %sum : f32 to vector<48xf32>
        %y = arith.addf %e, %sums : vector<48xf32>
        fp8.yield %y : vector<48xf32>
    }
    return
  }
}"""


def test_amax(compile):
    x = numpy.random.default_rng(4).integers(-8, 9, (30, 48)).astype(F32)
    same_bits(compile(AMAX, "sm_90a")(x, unwritten((), "f32"))[1], amax(x + x.sum(-1, keepdims=True)))


def test_amax_ignores_nan(compile):
    x = numpy.full((30, 48), numpy.nan, F32)
    x[3] = 0.25
    same_bits(compile(AMAX, "sm_90a")(x, unwritten((), "f32"))[1], F32(12.25))


@pytest.mark.parametrize("shape", [(128, 256), (64, 4096)], ids=str)
def test_traffic(compile, bin_dir, tmp_path, shape):
    """Every sector of 32 bytes of the operands is moved once, and no two lanes meet in a bank of shared memory."""
    case = Norm(shape, transposition=(1, 0))
    function = compile(case.source("sm_89"), "sm_89")
    m, n = shape
    in_kernel = n <= 1024
    types = {"f8E4M3FN": "u8", "bf16": "bf16", "f32": "f32"}
    buffers = [(shape, "bf16"), ((m,), "f32"), ((n,), "f32"), ((m, 1), "f32"), (shape, "bf16"), ((m, n), "f32"), (shape, "f8E4M3FN")]
    buffers += [((n, m), "f8E4M3FN")] if in_kernel else []
    arguments = ["%s[%s]" % (types[element], ",".join(map(str, size))) for size, element in buffers] + ["f32[1]"] * 3
    counts = profile(bin_dir / "fp8-ptx", tmp_path, function, "kernel_quantize_rows", arguments)
    assert counts["bank_conflicts"] == 0
    blocks = m // 32 if in_kernel else m
    # x, the rows in bf16, the bytes; the sums of each block. Each row reads the weights; each warp of a row reads a factor, and
    # one writes a mean. Each warp reads the scale, each block raises the amax, and one writes scale_inv.
    least = m * n * (2 + 2 + 1 + in_kernel) + 4 * n * blocks + 4 * n * m
    (threads,) = {function.constants[block.split(",")[0].strip()][0] for name, _, block, _ in function.calls if "quantize_rows" in name}
    warps_of_row = 1 if in_kernel else threads // 32
    warps = 8 * blocks if in_kernel else blocks * warps_of_row
    assert counts["global_sectors"] == least // 32 + m * warps_of_row + m + warps + blocks + 1


@pytest.mark.skipif(not PTXAS, reason="needs ptxas")
@pytest.mark.parametrize("arch", CHIPS)
def test_registers(compile, arch):
    """Nothing spills."""
    for shape in ((256, 128), (256, 1024), (256, 4096), (100, 3001)):
        text = assemble(compile(Norm(shape, transposition=(1, 0)).source(arch), arch).ptx, arch)
        assert all(count == "0" for count in re.findall(r"(\d+) bytes spill", text)), (shape, text)
