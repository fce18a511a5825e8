# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# triton/kernels.py as Triton compiled it, launched as launches.json says, against numpy.

import json

import numpy
import pytest
from formats import BF16, E4M3, F16

from programs import HERE, on

LAUNCHES = json.loads((HERE / "triton/launches.json").read_text())
NUMBERS = {"i32": numpy.int32, "fp32": numpy.float32}


def launch(kernels, grid, **values):
    """Launches with arguments by name. Behind them come Triton's own two: scratch memory
    for all blocks, and none for a profiler."""
    how = LAUNCHES[kernels.file.name]
    arguments = []
    for name, kind in how["arguments"]:
        arguments.append(values.pop(name) if kind[0] == "*" else NUMBERS[kind](values.pop(name)))
    assert not values
    scratch = numpy.uint64(0)
    if how["global_scratch"]:
        scratch = kernels.empty(how["global_scratch"] * int(numpy.prod(grid)), numpy.uint8)
    kernels(how["kernel"], grid, how["threads"], *arguments, scratch, numpy.uint64(0), shared=how["shared"])


def small(shape, seed, limit=3):
    return numpy.random.default_rng(seed).integers(-limit, limit + 1, shape).astype(numpy.float64)


@on("softmax", "triton")
@pytest.mark.parametrize("columns", [1000, 1024, 3])
def test_softmax(kernels, columns):
    x = numpy.random.default_rng(1).normal(scale=3, size=(6, 1040)).astype(numpy.float32)
    y = kernels.upload(numpy.full_like(x, -7))
    launch(kernels, (6,), x=kernels.upload(x), y=y, columns=columns, stride=1040)
    wide = x[:, :columns].astype(numpy.float64)
    powers = numpy.exp(wide - wide.max(1, keepdims=True))
    actual = kernels.read(y)
    assert (actual[:, columns:] == -7).all()
    # ex2 of up to 35 in f32 and a division: a few units of 2^-23, times the exponent's error.
    assert numpy.allclose(actual[:, :columns], powers / powers.sum(1, keepdims=True), rtol=2e-5, atol=1e-12)


@on("layer_norm", "triton")
@pytest.mark.parametrize("columns", [512, 300])
def test_layer_norm(kernels, columns):
    random = numpy.random.default_rng(2)
    codes = BF16.encode(random.normal(loc=1, size=(5, columns)))
    weight, bias = random.normal(size=(2, columns)).astype(numpy.float32)
    y, mean = kernels.empty(codes.shape, numpy.uint16), kernels.empty(5, numpy.float32)
    launch(kernels, (5,), x=kernels.upload(codes), weight=kernels.upload(weight), bias=kernels.upload(bias), y=y,
           mean_out=mean, columns=columns, epsilon=1e-5)
    x = BF16.decode(codes)
    centred = x - x.mean(1, keepdims=True)
    expected = centred / numpy.sqrt((centred**2).mean(1, keepdims=True) + 1e-5) * weight + bias
    assert numpy.allclose(kernels.read(mean), x.mean(1), rtol=1e-5)
    # Half a unit of bf16, and what f32 loses before.
    assert numpy.allclose(BF16.decode(kernels.read(y)), expected, rtol=2.0**-8, atol=1e-4)


def multiply(kernels, a, b, out, m, n, k, tile, **more):
    strides = dict(stride_a=k, stride_b=n, stride_c=n)
    strides.update(more.pop("strides", {}))
    launch(kernels, (-(-m // tile[0]), -(-n // tile[1])), a=kernels.upload(a), b=kernels.upload(b), c=out, M=m, N=n, K=k,
           **strides, **more)
    return kernels.read(out)


@on("matmul_bf16", "triton")
@pytest.mark.parametrize("m, n, k", [(64, 64, 32), (112, 80, 160)])
def test_matmul_bf16(kernels, m, n, k):
    a, b = small((m, k), 3), small((k, n), 4)
    actual = multiply(kernels, BF16.encode(a), BF16.encode(b), kernels.empty((m, n), numpy.uint16), m, n, k, (64, 64))
    assert (actual == BF16.encode(a @ b)).all()


@on("matmul_f16_wide", "triton")
def test_matmul_f16(kernels):
    m, n, k = 144, 96, 192
    a, b = small((m, k), 5), small((k, n), 6)
    actual = multiply(kernels, F16.encode(a), F16.encode(b), kernels.empty((m, n), numpy.float32), m, n, k, (128, 64))
    assert (actual == a @ b).all()
    random = numpy.random.default_rng(7)
    codes = [F16.encode(random.normal(size=shape)) for shape in ((m, k), (k, n))]
    actual = multiply(kernels, *codes, kernels.empty((m, n), numpy.float32), m, n, k, (128, 64))
    a, b = map(F16.decode, codes)
    # Products of f16 are exact; each of k sums may lose a unit of 2^-22.
    assert (numpy.abs(actual - a @ b) <= k * 2.0**-22 * (numpy.abs(a) @ numpy.abs(b))).all()


@on("matmul_tf32", "triton")
def test_matmul_tf32(kernels):
    m, n, k = 64, 48, 96
    a, b = small((m, k), 8).astype(numpy.float32), small((k, n), 9).astype(numpy.float32)
    actual = multiply(kernels, a, b, kernels.empty((m, n), numpy.float32), m, n, k, (32, 32))
    assert (actual == a @ b).all()


def multiply_fp8(kernels, tile, m, n, k, make):
    codes = [E4M3.encode(make(shape, seed)) for seed, shape in enumerate([(m, k), (n, k)])]
    scale = kernels.upload(numpy.array([0.125], numpy.float32))
    actual = multiply(kernels, *codes, kernels.empty((m, n), numpy.uint16), m, n, k, tile, scale=scale, strides=dict(stride_b=k))
    return actual, *map(E4M3.decode, codes)


@on("matmul_fp8", "triton")
def test_matmul_fp8(kernels):
    actual, a, b = multiply_fp8(kernels, (64, 64), 128, 64, 256, small)
    assert (actual == BF16.encode(a @ b.T / 8)).all()

    def normal(shape, seed):
        return numpy.random.default_rng(seed).normal(size=shape)

    actual, a, b = multiply_fp8(kernels, (64, 64), 64, 128, 192, normal)
    # Summands cut 13 bits below the greatest, then one rounding to bf16.
    limit = 2.0**-13 * 192 * (numpy.abs(a) @ numpy.abs(b.T)) / 8 + 2.0**-8 * numpy.abs(a @ b.T) / 8
    assert (numpy.abs(BF16.decode(actual) - a @ b.T / 8) <= limit).all()


@on("matmul_fp8_large", "triton")
def test_matmul_fp8_of_two_warpgroups(kernels):
    actual, a, b = multiply_fp8(kernels, (128, 128), 128, 256, 512, small)
    assert (actual == BF16.encode(a @ b.T / 8)).all()


@on("matmul_descriptor", "triton")
def test_matmul_through_descriptors(kernels):
    m, n, k = 128, 64, 192
    a, b = small((m, k), 10), small((n, k), 11)
    c = kernels.empty((m, n), numpy.uint16)
    launch(kernels, (m // 64, n // 64), a=kernels.upload(BF16.encode(a)), b=kernels.upload(BF16.encode(b)), c=c, M=m, N=n, K=k)
    assert (kernels.read(c) == BF16.encode(a @ b.T)).all()


@on("scaled_dot", "triton")
def test_scaled_dot(kernels):
    k = 128
    a, b = small((64, k), 12), small((64, k), 13)
    powers = numpy.random.default_rng(14).integers(-2, 3, (2, 64, k // 32))
    c = kernels.empty((64, 64), numpy.float32)
    scales = [kernels.upload((p + 127).astype(numpy.uint8)) for p in powers]
    launch(kernels, (1,), a=kernels.upload(E4M3.encode(a)), a_scale=scales[0], b=kernels.upload(E4M3.encode(b)),
           b_scale=scales[1], c=c, K=k)
    wide = [x * numpy.repeat(numpy.ldexp(1.0, p), 32, 1) for x, p in zip((a, b), powers)]
    assert (kernels.read(c) == wide[0] @ wide[1].T).all()


@on("quantize", "triton")
@pytest.mark.parametrize("n", [4096, 3000, 1])
def test_quantize(kernels, n):
    codes = BF16.encode(numpy.random.default_rng(15).normal(scale=40, size=n))
    y, amax = kernels.upload(numpy.full(n, 0x55, numpy.uint8)), kernels.zeros(1, numpy.float32)
    launch(kernels, (-(-n // 1024),), x=kernels.upload(codes), y=y, amax=amax,
           scale=kernels.upload(numpy.array([7.3], numpy.float32)), n=n)
    x = BF16.decode(codes)
    scaled = x.astype(numpy.float32) * numpy.float32(7.3)
    assert (kernels.read(y) == E4M3.encode(scaled, saturate=True)).all()
    assert kernels.read(amax)[0] == numpy.abs(x).max()


@on("running_sum", "triton")
def test_running_sum(kernels):
    x = numpy.random.default_rng(16).integers(-1000, 1000, (3, 256)).astype(numpy.int32)
    y = kernels.empty(x.shape, numpy.int32)
    launch(kernels, (3,), x=kernels.upload(x), y=y)
    assert (kernels.read(y) == numpy.cumsum(x, 1)).all()
