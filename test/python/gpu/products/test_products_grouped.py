# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Products of groups of rows (mixture of experts) on the emulator, all its checks on, bit for bit: each group as numpy multiplies it
# in the order of K.

import dataclasses
import math

import numpy
import pytest
from compiled import PTXAS, TYPES, assemble
from scaled_products import fma, pack
from test_products import ALL, MMA, empty, integers, memref, normal, padded

SEED = 0x609
TOKENS, GROUPS = 300, 5
# Of 300 rows: uneven groups and rows of none, one group with all, none with any, and numbers that are no ends.
ENDS = {"uneven": [7, 100, 100, 290, 290], "one has all": [0, 300, 300, 300, 300], "none has any": [0] * 5, "whole tiles": [128, 256, 256, 300, 300],
        "no ends": [40, 20, -5, 1000, 10]}
E4M3, E5M2 = "f8E4M3FN", "f8E5M2"
MX_CHIPS = ["sm_100a", "sm_120a"]


def spans(ends, rows):
    """The rows of each group, as fp8.group_rows has them."""
    begin, found = 0, []
    for end in ends:
        end = max(begin, min(int(end), rows))
        found.append(slice(begin, end))
        begin = end
    return found


def sum_in_order(a, b, part=None):
    """f32 sums in the order of K of a [m, k] and b [n, k], and its parts, each from zero."""
    parts = []
    for first in range(0, a.shape[1], part or max(a.shape[1], 1)):
        sums = numpy.zeros((a.shape[0], b.shape[0]), numpy.float32)
        for k in range(first, min(a.shape[1], first + (part or a.shape[1]))):
            sums = sums + a[:, None, k] * b[None, :, k]
        parts.append(sums)
    return parts


def total(parts, shape):
    result = parts[0] if parts else numpy.zeros(shape, numpy.float32)
    for part in parts[1:]:
        result = result + part
    return result


@dataclasses.dataclass
class Grouped:
    """y[t] = x[t] · w[group of t], x [T, K] and w [G, N, K]; or with `gradient` dw[g] = x' · dy over the rows of g, x [M, T] and dy [N, T]."""

    arch: str
    shape: tuple  # rows of the result (forward: of all groups), columns, K (gradient: of all groups)
    kinds: tuple = (E4M3, E4M3)
    scales: str = "one"  # one, row, block, mx; none for operands in high precision
    accumulation: str = "fast"
    gradient: bool = False
    in_rows: bool = False  # of a gradient: whether the operands are [T, M] and [T, N]
    out: str = "f32"
    groups: int = GROUPS
    attribute: str = ""

    def operand(self, i):
        """The shape of an operand in memory, and its map."""
        m, n, k = self.shape
        rows = (m, n)[i]
        if self.gradient:
            return ((k, rows), ("(t, m)", "(t, n)")[i]) if self.in_rows else ((rows, k), ("(m, t)", "(n, t)")[i])
        return ((m, k), "(m, k)") if i == 0 else ((self.groups, n, k), "(g, n, k)")

    def type(self, i):
        shape, _ = self.operand(i)
        return memref((*shape[:-1], padded(numpy.zeros((1, shape[-1]), TYPES[self.kinds[i]])).shape[-1]), self.kinds[i], shape[-1])

    def block(self, i):
        """The extents of a block of operand i."""
        rows, k = {"row": (1, 0), "block": ((1, 128), (128, 128))[i], "mx": (1, 32)}[self.scales]
        if self.gradient:
            return [0, 1] if self.in_rows else [1, 0]
        return [rows, k] if i == 0 else [1, rows, k]

    def scale_shape(self, i):
        return [] if self.scales == "one" else [-(-size // extent) if extent else 1 for size, extent in zip(self.operand(i)[0], self.block(i))]

    def scale_type(self, i):
        if self.scales == "mx":
            *batch, rows, k = self.scale_shape(i)
            return "memref<%dxf8E8M0FNU>" % (math.prod(batch) * -(-rows // 128) * -(-k // 4) * 512)
        return "memref<%s>" % "x".join([*map(str, self.scale_shape(i)), "f32"])

    def source(self):
        m, n, k = self.shape
        result = (self.groups, m, n) if self.gradient else (m, n)
        dims = "(g, m, n, t)" if self.gradient else "(m, n, k, g)"
        maps = ", ".join("affine_map<%s -> %s>" % (dims, to) for to in (self.operand(0)[1], self.operand(1)[1], "(g, m, n)" if self.gradient else "(m, n)"))
        types = dict(a=self.type(0), b=self.type(1), ends="memref<%dxi32>" % self.groups)
        out = "memref<%sx%s>" % ("x".join(map(str, result)), self.out)
        name, scales, blocks = "grouped_matmul", "", ""
        if self.scales != "none":
            name = "scaled_grouped_matmul"
            scales = "scales(%%sa, %%sb : %s, %s)" % (self.scale_type(0), self.scale_type(1))
            if self.scales != "one":
                blocks = "".join(", %shs_block = array<i64: %s>" % ("lr"[i], ", ".join(map(str, self.block(i)))) for i in (0, 1))
        head = ", ".join("%%%s: %s" % pair for pair in dict(types, sa=self.scale_type(0), sb=self.scale_type(1), d=out).items()) if scales else ", ".join(
            "%%%s: %s" % pair for pair in dict(types, d=out).items())
        return """module attributes {fp8.target = #fp8.chip<"%s">} {
  func.func @f(%s) {
    fp8.%s site("moe") role(%s) %s ins(%%a, %%b, %%ends : %s) %s outs(%%d : %s) {indexing_maps = [%s]%s%s}
    return
  }
}
""" % (self.arch, head, name, "wgrad" if self.gradient else "fprop", self.accumulation if scales else "", ", ".join(types.values()), scales, out, maps, blocks,
            self.attribute)

    def make_scales(self, random, i):
        """The scales that the kernel reads, and the scale of each element along rows and K of the operand in
        that order."""
        if self.scales == "mx":
            exponents = random.integers(122, 132, self.scale_shape(i)).astype(numpy.uint8)
            return pack(exponents), (2.0 ** (exponents.astype(numpy.int64) - 127)).astype(numpy.float32)
        scale = (random.uniform(0.5, 2, self.scale_shape(i)) * 2.0 ** random.integers(-3, 4, self.scale_shape(i))).astype(numpy.float32)
        return scale, scale

    def run(self, compile, ends, make=normal):
        print(f"seed {SEED}")
        random = numpy.random.default_rng([SEED, *self.shape])
        operands = [make(random, self.operand(i)[0], self.kinds[i]) for i in (0, 1)]
        scales = [self.make_scales(random, i) for i in (0, 1)] if self.scales != "none" else []
        m, n, _ = self.shape
        d = empty((self.groups, m, n) if self.gradient else (m, n), self.out)
        self.function = compile(self.source(), self.arch)
        *_, result = self.function(*map(padded, operands), numpy.array(ends, numpy.int32), *(scale for scale, _ in scales), d)
        return [x.astype(numpy.float32) for x in operands], [scale for _, scale in scales], result

    def part(self):
        """The elements of a part of a split sum; tcgen05 sums in f32, without parts."""
        return 128 if self.accumulation == "split" and self.arch != "sm_100a" else None

    def expect(self, operands, scales, ends):
        m, n, k = self.shape
        if self.gradient:
            a, b = (x.T if self.in_rows else x for x in operands)
            sums = numpy.stack([total(sum_in_order(a[:, rows], b[:, rows], self.part()), (m, n)) for rows in spans(ends, k)])
            sa, sb = scales or (1, 1)
            return (sa if self.scales == "none" else numpy.float32(1) * sa.reshape(-1, 1) * sb.reshape(1, -1)) * sums
        result = numpy.zeros((m, n), numpy.float32)
        for group, rows in enumerate(spans(ends, m)):
            a, b = operands[0][rows], operands[1][group]
            if self.scales in ("none", "one", "row"):
                sums = total(sum_in_order(a, b, self.part()), result[rows].shape)
                if self.scales == "one":
                    sums = (scales[0] * scales[1]) * sums
                if self.scales == "row":
                    sums = (scales[0][rows] * scales[1][group].reshape(1, -1)) * sums
            elif self.scales == "mx":
                a, b = (x * numpy.repeat(s, 32, axis=-1)[:, :k] for x, s in ((a, scales[0][rows]), (b, scales[1][group])))
                sums = total(sum_in_order(a, b, self.part()), result[rows].shape)
            else:
                sums = numpy.zeros(result[rows].shape, numpy.float32)
                for number, part in enumerate(sum_in_order(a, b, 128)):
                    columns = numpy.repeat(scales[1][group][:, number], 128)[:n]
                    sums = fma(part * scales[0][rows, number, None], columns[None, :], sums)
            result[rows] = sums
        return result

    def check(self, compile, ends, make=normal):
        operands, scales, result = self.run(compile, ends, make)
        expected = self.expect(operands, scales, ends)
        assert (result == expected.astype(TYPES[self.out])).all()


@pytest.mark.parametrize("ends", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("scales", ["one", "row", "block"])
@pytest.mark.parametrize("arch", ALL)
def test_forward(compile, arch, scales, ends):
    """One launch."""
    product = Grouped(arch, (TOKENS, 140, 200), scales=scales)
    product.check(compile, ends)
    assert len(product.function.calls) == 1


@pytest.mark.parametrize("ends", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("columns", [40, 140])
@pytest.mark.parametrize("arch", MX_CHIPS)
def test_mx_scales(compile, arch, columns, ends):
    """One launch. Groups begin anywhere among the rows whose scales are packed together."""
    product = Grouped(arch, (TOKENS, columns, 200), (E5M2, E4M3), scales="mx")
    product.check(compile, ends)
    assert len(product.function.calls) == 1


@pytest.mark.parametrize("ends", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("scales", ["one", "row"])
@pytest.mark.parametrize("arch", ALL)
def test_weight_gradient(compile, arch, scales, ends):
    """Sums over the rows of each group, in parts that begin with the group; the copies are three launches before it."""
    product = Grouped(arch, (90, 140, TOKENS), (E4M3, E5M2), scales=scales, accumulation="split", gradient=True)
    product.check(compile, ends)
    assert len(product.function.calls) == 4


@pytest.mark.parametrize("arch", ALL)
def test_other_forms(compile, arch):
    Grouped(arch, (TOKENS, 60, 77), (E5M2, E4M3), scales="row", accumulation="split", out="bf16").check(compile, ENDS["uneven"])
    Grouped(arch, (1, 1, 1), scales="row", groups=2).check(compile, [0, 1])
    Grouped(arch, (40, 300, 33), scales="row", groups=1).check(compile, [17])
    Grouped(arch, (33, 70, 50), (E4M3, E5M2), scales="row", gradient=True, in_rows=True).check(compile, [1, 1, 20, 21, 50])
    Grouped(arch, (TOKENS, 20, 40), (E4M3, E5M2), groups=70).check(compile, sorted(numpy.random.default_rng(SEED).integers(0, TOKENS, 70)), integers)


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("kind", ["bf16", "f16"])
@pytest.mark.parametrize("arch", MMA)
def test_16_bit_operands(compile, arch, kind, gradient):
    shape = (60, 70, TOKENS) if gradient else (TOKENS, 70, 60)
    Grouped(arch, shape, (kind, kind), scales="none", gradient=gradient, in_rows=gradient).check(compile, ENDS["uneven"])


@pytest.mark.skipif(not PTXAS, reason="ptxas is not installed")
@pytest.mark.parametrize("options", [dict(scales="row"), dict(scales="block", accumulation="split"), dict(scales="row", accumulation="split", gradient=True),
                                     dict(scales="mx")])
@pytest.mark.parametrize("arch", ALL)
def test_no_spills(compile, arch, options):
    if options["scales"] == "mx" and arch not in MX_CHIPS:
        pytest.skip("no MX tensor cores")
    message = assemble(compile(Grouped(arch, (256, 256, 256), out="bf16", **options).source(), arch).ptx, arch)
    assert "spill stores" in message and "warning" not in message, message
    assert all("0 bytes spill stores, 0 bytes spill loads" in line for line in message.splitlines() if "spill" in line), message
