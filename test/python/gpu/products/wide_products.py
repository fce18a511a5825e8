# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Products by wgmma and tcgen05, compiled and run on the emulator: what the tests of both share.

import dataclasses
import math

import numpy
from compiled import TYPES

SEED = 0x5EED


def config_attribute(config):
    """The attribute that gives a product's configuration, as "tile_n = 64"; without a word on it, it is not swapped."""
    if not config:
        return ""
    return "fp8.config = #fp8.product_config<%s>, " % (config if "swapped" in config else config + ", swapped = false")


@dataclasses.dataclass
class Product:
    """A product of [batch, m, k] and [batch, n, k], FP8 with scales or 16-bit operands without."""

    arch: str
    shape: tuple
    kinds: tuple = ("f8E4M3FN", "f8E4M3FN")
    out: str = "f32"
    accumulation: str = "fast"
    batch: int = 0
    transposed: tuple = (False, False)  # whether an operand is [batch, k, rows] in memory
    config: str = ""
    tf32: bool = False  # whether operands of f32 have the precision of TF32

    def is_scaled(self):
        return self.kinds[0].startswith("f8")

    def dims(self, *sizes):
        return (self.batch, *sizes) if self.batch else sizes

    def operand_shape(self, i):
        rows, k = self.shape[i], self.shape[2]
        return self.dims(k, rows) if self.transposed[i] else self.dims(rows, k)

    def pitch(self, i):
        bytes = numpy.dtype(TYPES[self.kinds[i]]).itemsize
        return -(-self.operand_shape(i)[-1] * bytes // 16) * 16 // bytes

    def operand_type(self, i):
        shape = self.operand_shape(i)
        padded = (*shape[:-1], self.pitch(i))
        strides = [math.prod(padded[d + 1:]) for d in range(len(padded))]
        return "memref<%sx%s, strided<%s>>" % ("x".join(map(str, shape)), self.kinds[i], strides)

    def source(self):
        m, n, _ = self.shape
        b = "b, " if self.batch else ""
        maps = ["(%s%s)" % (b, "k, " + rows if transposed else rows + ", k") for rows, transposed in zip("mn", self.transposed)]
        maps = ", ".join("affine_map<(%sm, n, k) -> %s>" % (b, map) for map in (*maps, "(%sm, n)" % b))
        lhs, rhs = self.operand_type(0), self.operand_type(1)
        out = "memref<%sx%s>" % ("x".join(map(str, self.dims(m, n))), self.out)
        op, scales = ("fp8.matmul site(\"fc\")", "")
        if self.is_scaled():
            op = "fp8.scaled_matmul site(\"fc\") role(fprop) " + self.accumulation
            scales = "scales(%sa, %sb : memref<f32>, memref<f32>)"
        config = config_attribute(self.config) + ("fp8.tf32, " if self.tf32 else "")
        return """module attributes {fp8.target = #fp8.chip<"%s">} {
  func.func @f(%%a: %s, %%b: %s, %%sa: memref<f32>, %%sb: memref<f32>, %%d: %s) {
    %s ins(%%a, %%b : %s, %s) %s outs(%%d : %s) {%sindexing_maps = [%s]}
    return
  }
}
""" % (self.arch, lhs, rhs, out, op, lhs, rhs, scales, out, config, maps)

    def in_memory(self, i, values):
        """Elements behind a row are NaN: no product may read them."""
        values = values.swapaxes(-1, -2) if self.transposed[i] else values
        rows = numpy.full((*values.shape[:-1], self.pitch(i)), math.nan, numpy.float32).astype(values.dtype)
        rows[..., :values.shape[-1]] = values
        return rows

    def run(self, compile, make, scales=(0.5, 0.375)):
        """The operands as f32, and the result."""
        m, n, k = self.shape
        random = numpy.random.default_rng([SEED, *self.shape, self.batch])
        a, b = (make(random, self.dims(rows, k)).astype(TYPES[kind]) for rows, kind in zip((m, n), self.kinds))
        if self.tf32:
            a, b = ((x.view(numpy.uint32) & 0xFFFFE000).view(numpy.float32) for x in (a, b))
        empty = numpy.full(self.dims(m, n), math.nan, numpy.float32).astype(TYPES[self.out])
        self.function = compile(self.source(), self.arch)
        *_, result = self.function(self.in_memory(0, a), self.in_memory(1, b), *map(numpy.float32, scales), empty)
        return a.astype(numpy.float32), b.astype(numpy.float32), result

    def scale(self):
        return numpy.float32(0.1875 if self.is_scaled() else 1)

    def check_integers(self, compile):
        """Sums of small integers are exact in every model of the tensor cores."""
        a, b, result = self.run(compile, lambda random, shape: random.integers(-3, 4, shape).astype(numpy.float32))
        assert (result == (self.scale() * (a @ b.swapaxes(-1, -2))).astype(TYPES[self.out])).all()

    def check_k_order(self, compile, part=None):
        """With FP8EMU_SUMS=korder, sums are f32 sums in the order of K; with `part`, sums of that many from zero, added."""
        a, b, result = self.run(compile, lambda random, shape: random.standard_normal(shape, dtype=numpy.float32))
        total = numpy.zeros(result.shape, numpy.float32)
        for first in range(0, self.shape[2], part or self.shape[2]):
            sums = numpy.zeros(result.shape, numpy.float32)
            for k in range(first, min(self.shape[2], first + (part or self.shape[2]))):
                sums = sums + a[..., :, None, k] * b[..., None, :, k]
            total = total + sums
        assert (result == total * self.scale()).all()
