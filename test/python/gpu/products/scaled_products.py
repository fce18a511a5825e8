# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Products with scales per row or block, compiled and run on the emulator, beside numpy in the order of K.

import dataclasses
import math

import numpy
from compiled import TYPES
from wide_products import Product, config_attribute

SEED = 0x5CA1E


@dataclasses.dataclass
class ScaledProduct(Product):
    """A product whose operands have a scale for each block of `blocks`: extents along rows and K, 0 for all of them."""

    blocks: tuple = ((1, 0), (1, 0))
    strict: bool = False  # --strict-accumulation

    def scale_shape(self, i):
        rows, k = (-(-size // extent) if extent else 1 for size, extent in zip((self.shape[i], self.shape[2]), self.blocks[i]))
        return self.dims(k, rows) if self.transposed[i] else self.dims(rows, k)

    def scale_type(self, i):
        return "memref<%sxf32>" % "x".join(map(str, self.scale_shape(i)))

    def block(self, i):
        extents = self.blocks[i][::-1] if self.transposed[i] else self.blocks[i]
        return "array<i64: %s>" % ", ".join(map(str, ((1,) if self.batch else ()) + tuple(extents)))

    def attributes(self):
        return config_attribute(self.config) + "lhs_block = %s, rhs_block = %s, " % (self.block(0), self.block(1))

    def source(self):
        m, n, _ = self.shape
        b = "b, " if self.batch else ""
        maps = ["(%s%s)" % (b, "k, " + rows if transposed else rows + ", k") for rows, transposed in zip("mn", self.transposed)]
        maps = ", ".join("affine_map<(%sm, n, k) -> %s>" % (b, map) for map in (*maps, "(%sm, n)" % b))
        types = dict(a=self.operand_type(0), b=self.operand_type(1), sa=self.scale_type(0), sb=self.scale_type(1),
                     d="memref<%sx%s>" % ("x".join(map(str, self.dims(m, n))), self.out))
        arguments = ", ".join("%%%s: %s" % pair for pair in types.items())
        return """module attributes {fp8.target = #fp8.chip<"%s">%s} {
  func.func @f(%s) {
    fp8.scaled_matmul site("fc") role(fprop) %s ins(%%a, %%b : %s, %s) scales(%%sa, %%sb : %s, %s) outs(%%d : %s)
        {%sindexing_maps = [%s]}
    return
  }
}
""" % (self.arch, ", fp8.strict_accumulation" if self.strict else "", arguments, self.accumulation, *types.values(), self.attributes(), maps)

    def make_scales(self, random, i):
        """With mantissas, so that every rounding shows."""
        shape = self.scale_shape(i)
        return (random.uniform(0.5, 2, shape) * 2.0 ** random.integers(-3, 4, shape)).astype(numpy.float32)

    def run_scaled(self, compile):
        """The operands as [batch, rows, K] in f32, their scales as [batch, rows, blocks], and the result."""
        random = numpy.random.default_rng([SEED, *self.shape, self.batch])
        data = [random.standard_normal(self.dims(self.shape[i], self.shape[2]), dtype=numpy.float32).astype(TYPES[self.kinds[i]])
                for i in (0, 1)]
        scales = [self.make_scales(random, i) for i in (0, 1)]
        empty = numpy.full(self.dims(*self.shape[:2]), math.nan, numpy.float32).astype(TYPES[self.out])
        self.function = compile(self.source(), self.arch)
        *_, result = self.function(*(self.in_memory(i, data[i]) for i in (0, 1)), *scales, empty)
        ordered = [scale.swapaxes(-1, -2) if self.transposed[i] and scale.ndim > 1 else scale for i, scale in enumerate(scales)]
        return [x.astype(numpy.float32) for x in data], ordered, result

    def per_row(self, i, scales):
        """A scale for each row, and for each block of K."""
        rows, extent = self.shape[i], self.blocks[i][0]
        return numpy.take(scales, numpy.arange(rows) // extent if extent else numpy.zeros(rows, int), axis=-2)

    def check(self, compile):
        (a, b), scales, result = self.run_scaled(compile)
        expected = self.expect(a, b, *(self.per_row(i, scales[i]) for i in (0, 1)))
        assert (result == expected.astype(TYPES[self.out])).all()

    def expect(self, a, b, sa, sb):
        """numerics of row and block scaling: f32 sums in the order of K, of blocks from zero where scales differ along K."""
        blocked = self.blocks[0][1] or self.blocks[1][1]
        part = blocked or (128 if self.accumulation == "split" else self.shape[2])
        lhs_last = self.blocks[0][0] != 1 and self.blocks[1][0] == 1
        total = None
        for number, first in enumerate(range(0, self.shape[2], part)):
            sums = numpy.zeros((*a.shape[:-1], b.shape[-2]), numpy.float32)
            for k in range(first, min(self.shape[2], first + part)):
                sums = sums + a[..., :, None, k] * b[..., None, :, k]
            if not blocked:
                total = sums if total is None else total + sums
                continue
            x, y = (s[..., min(number, s.shape[-1] - 1)] for s in (sa, sb))
            one, two = (y[..., None, :], x[..., :, None]) if lhs_last else (x[..., :, None], y[..., None, :])
            total = fma(sums * one, two, numpy.float32(0) if total is None else total)
        return total if blocked else (sa * sb.swapaxes(-1, -2)) * total


@dataclasses.dataclass
class PackedProduct(ScaledProduct):
    """A product with packed E8M0 scales, one for each 32 elements along K."""

    blocks: tuple = ((1, 32), (1, 32))
    accumulation: str = "fast"

    def packed_size(self, i):
        return max(self.batch, 1) * -(-self.shape[i] // 128) * -(-self.shape[2] // 128) * 512

    def scale_type(self, i):
        return "memref<%dxf8E8M0FNU>" % self.packed_size(i)

    def make_scales(self, random, i):
        """The packed scales; `exponents` keeps them as [batch, rows, blocks]."""
        shape = self.dims(self.shape[i], -(-self.shape[2] // 32))
        self.exponents = {**getattr(self, "exponents", {}), i: random.integers(120, 135, shape).astype(numpy.uint8)}
        return pack(self.exponents[i])

    def per_row(self, i, scales):
        return (2.0 ** (self.exponents[i].astype(numpy.int64) - 127)).astype(numpy.float32)

    def expect(self, a, b, sa, sb):
        a, b = a * numpy.repeat(sa, 32, -1)[..., :self.shape[2]], b * numpy.repeat(sb, 32, -1)[..., :self.shape[2]]
        part = 128 if self.accumulation == "split" else self.shape[2]
        total = None
        for first in range(0, self.shape[2], part):
            sums = numpy.zeros((*a.shape[:-1], b.shape[-2]), numpy.float32)
            for k in range(first, min(self.shape[2], first + part)):
                sums = sums + a[..., :, None, k] * b[..., None, :, k]
            total = sums if total is None else total + sums
        return total


def pack(scales):
    """fp8.pack_scales, from its definition."""
    *batches, rows, columns = scales.shape
    tiles_y, tiles_x = -(-rows // 128), -(-columns // 4)
    packed = numpy.zeros((math.prod(batches), tiles_y * tiles_x * 512), numpy.uint8)
    i, j = numpy.indices((rows, columns))
    place = ((i // 128) * tiles_x + j // 4) * 512 + i % 32 * 16 + i // 32 % 4 * 4 + j % 4
    packed[:, place] = scales.reshape(-1, rows, columns)
    return packed.reshape(-1)


def fma(a, b, c):
    """Rounded once: a product of two f32 is exact in f64; the sum's error decides where its f64 lies halfway between two f32."""
    product, addend = a.astype(numpy.float64) * b.astype(numpy.float64), numpy.asarray(c, numpy.float64)
    total = product + addend
    back = total - product
    error = (product - (total - back)) + (addend - back)
    # Round to odd: the last bit of the f64 tells that something is below it.
    bits = total.view(numpy.int64)
    inexact = (error != 0) & (bits & 1 == 0)
    toward = numpy.where((error > 0) == (total > 0), bits + 1, bits - 1)
    return numpy.where(inexact, toward, bits).view(numpy.float64).astype(numpy.float32)
