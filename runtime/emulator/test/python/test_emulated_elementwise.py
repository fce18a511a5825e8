# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cuda/elementwise.cu against numpy, bit for bit.

import numpy
import pytest
from formats import BF16, float_samples, fma_odd, same_bits

from programs import on

N = 1000


@on("elementwise")
@pytest.mark.parametrize("grid", [1, 3, 16])
def test_saxpy(kernels, grid):
    random = numpy.random.default_rng(1)
    x, y = random.normal(size=(2, N)).astype(numpy.float32)
    out = kernels.upload(y)
    kernels("saxpy", grid, 128, N, 0.7, kernels.upload(x), out)
    same_bits(kernels.read(out), fma_odd(numpy.float32(0.7), x, y).astype(numpy.float32))


@on("elementwise")
def test_polynomial_rounds_every_step(kernels):
    x = float_samples(N)
    y = kernels.empty(N, numpy.float32)
    kernels("polynomial", 8, 128, N, kernels.upload(x), y)
    with numpy.errstate(all="ignore"):
        expected = (x * numpy.float32(0.5) + numpy.float32(1.25)) * x + numpy.float32(-3)
    same_bits(kernels.read(y), expected)


@on("elementwise")
def test_vectors_of_four(kernels):
    x, y = numpy.random.default_rng(2).normal(size=(2, 300, 4)).astype(numpy.float32)
    z = kernels.empty((300, 4), numpy.float32)
    kernels("vector4", 3, 128, 300, kernels.upload(x), kernels.upload(y), z)
    expected = numpy.stack([x[:, 0] + y[:, 3], x[:, 1] - y[:, 2], x[:, 2] * y[:, 1], numpy.maximum(x[:, 3], y[:, 0])], 1)
    same_bits(kernels.read(z), expected)


@on("elementwise")
def test_relu_of_pairs(kernels):
    x = numpy.arange(1 << 16, dtype=numpy.uint16).view(numpy.float16)
    y = kernels.empty(x.shape, numpy.float16)
    kernels("relu_half2", 128, 256, x.size // 2, kernels.upload(x), y)
    # max is defined without a NaN operand's value: the other one is taken.
    same_bits(kernels.read(y), numpy.where(x > 0, x, numpy.float16(0)))


@on("elementwise")
@pytest.mark.parametrize("rows, columns", [(16, 16), (37, 53), (1, 40)])
def test_transpose(kernels, rows, columns):
    x = numpy.random.default_rng(3).normal(size=(rows, columns + 5))
    y = kernels.empty((columns, rows), numpy.float64)
    kernels("transpose", (-(-columns // 16), -(-rows // 16)), (16, 16), rows, columns, numpy.int64(columns + 5),
            kernels.upload(x), y)
    same_bits(kernels.read(y), numpy.ascontiguousarray(x[:, :columns].T))


@on("elementwise")
def test_widen_bytes(kernels):
    x, y = numpy.meshgrid(numpy.arange(-128, 128), numpy.arange(256))
    x, y = x.ravel().astype(numpy.int8), y.ravel().astype(numpy.uint8)
    z, wide = kernels.empty(x.shape, numpy.int16), kernels.empty(x.shape, numpy.int64)
    kernels("widen_bytes", 256, 256, x.size, kernels.upload(x), kernels.upload(y), z, wide)
    assert (kernels.read(z) == (x.astype(numpy.int32) * y).astype(numpy.int16)).all()
    assert (kernels.read(wide) == x.astype(numpy.int64) << (y & 63).astype(numpy.int64)).all()


@on("elementwise")
def test_bf16_scale(kernels):
    x = numpy.arange(1 << 16, dtype=numpy.uint16)
    y = kernels.empty(x.shape, numpy.uint16)
    kernels("bf16_scale", 256, 256, x.size, 0.3, kernels.upload(x), y)
    with numpy.errstate(all="ignore"):
        scaled = BF16.decode(x).astype(numpy.float32) * numpy.float32(0.3)
    actual, expected = kernels.read(y), BF16.encode(scaled)
    nan = numpy.isnan(scaled)
    assert (actual[~nan] == expected[~nan]).all() and numpy.isnan(BF16.decode(actual[nan])).all()


@on("elementwise")
def test_mandelbrot_diverges(kernels):
    width, limit = 40, 50
    counts = kernels.empty((width, width), numpy.int32)
    corner = numpy.array([-2.0, -1.25], numpy.float32)
    kernels("mandelbrot", (3, 5), (16, 8), width, limit, kernels.upload(corner), counts)
    step = numpy.float32(0.0625) * numpy.arange(width, dtype=numpy.float32)
    cx, cy = numpy.meshgrid(corner[0] + step, corner[1] + step)
    x, y, expected = numpy.zeros_like(cx), numpy.zeros_like(cy), numpy.zeros(cx.shape, numpy.int32)
    inside = numpy.ones(cx.shape, bool)
    for _ in range(limit):
        inside &= x * x + y * y <= 4
        expected += inside
        x, y = numpy.where(inside, x * x - y * y + cx, x), numpy.where(inside, 2 * x * y + cy, y)
    assert (kernels.read(counts) == expected).all()
