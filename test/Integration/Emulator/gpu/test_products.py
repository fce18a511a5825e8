# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Kernels of products on the emulator, all its checks on. Sums of small integers are exact in any order; others are compared bit
# for bit with f32 sums in the order of K.

import math

import compiled
import numpy
import pytest
from compiled import TYPES

SEED = 0x5EED
MMA = ["sm_89", "sm_120a"]
SHAPES = [(1, 1, 1), (100, 130, 77), (300, 260, 600)]


def pitch(k, dtype):
    return -(-k * numpy.dtype(dtype).itemsize // 16) * 16 // numpy.dtype(dtype).itemsize


def padded(values):
    """Rows of a multiple of 16 bytes. What lies behind a row is NaN: no product may read it."""
    rows = numpy.full((*values.shape[:-1], pitch(values.shape[-1], values.dtype)), math.nan, numpy.float32).astype(values.dtype)
    rows[..., :values.shape[-1]] = values
    return rows


def memref(shape, kind, k):
    """The type of the first `k` columns of padded rows."""
    strides = [math.prod(shape[i + 1:]) for i in range(len(shape))]
    return "memref<%sx%dx%s, strided<[%s]>>" % ("x".join(map(str, shape[:-1])), k, kind, ", ".join(map(str, strides)))


def scaled_product(arch, shape, kinds, out="f32", accumulation="fast", batch=0):
    """A scaled product of rows along K with rows along K."""
    m, n, k = shape
    b, lead = ("b, ", "%dx" % batch) if batch else ("", "")
    d = [batch] if batch else []
    lhs, rhs = (memref((*d, rows, pitch(k, TYPES[kind])), kind, k) for rows, kind in ((m, kinds[0]), (n, kinds[1])))
    result = "memref<%s%dx%dx%s>" % (lead, m, n, out)
    return """module attributes {fp8.target = #fp8.chip<"%s">} {
  func.func @f(%%a: %s, %%b: %s, %%sa: memref<f32>, %%sb: memref<f32>, %%d: %s) {
    fp8.scaled_matmul site("fc") role(fprop) %s ins(%%a, %%b : %s, %s) scales(%%sa, %%sb : memref<f32>, memref<f32>)
        outs(%%d : %s) {indexing_maps = [affine_map<(%sm, n, k) -> (%sm, k)>, affine_map<(%sm, n, k) -> (%sn, k)>,
                                         affine_map<(%sm, n, k) -> (%sm, n)>]}
    return
  }
}
""" % (arch, lhs, rhs, result, accumulation, lhs, rhs, result, *[b] * 6)


def integers(random, shape, kind):
    return random.integers(-3, 4, shape).astype(numpy.float32).astype(TYPES[kind])


def normal(random, shape, kind):
    return random.standard_normal(shape, dtype=numpy.float32).astype(TYPES[kind])


def empty(shape, kind):
    return numpy.full(shape, math.nan, numpy.float32).astype(TYPES[kind])


def scalar(value):
    return numpy.array(value, numpy.float32)


def in_k_order(a, b, part=None):
    """f32 sums in the order of K; with `part`, sums of that many from zero, added in order."""
    a, b = a.astype(numpy.float32), b.astype(numpy.float32)
    total, sums = None, None
    for k in range(a.shape[-1]):
        if k % (part or a.shape[-1]) == 0:
            total = sums if total is None else total + sums
            sums = numpy.zeros((*a.shape[:-1], b.shape[-2]), numpy.float32)
        sums = sums + a[..., :, None, k] * b[..., None, :, k]
    return sums if total is None else total + sums


def run_product(compile, arch, shape, kinds, make, batch=0, **options):
    m, n, k = shape
    random = numpy.random.default_rng([SEED, m, n, k])
    d = [batch] if batch else []
    a, b = make(random, (*d, m, k), kinds[0]), make(random, (*d, n, k), kinds[1])
    function = compile(scaled_product(arch, shape, kinds, batch=batch, **options), arch)
    results = function(padded(a), padded(b), scalar(0.5), scalar(0.375), empty((*d, m, n), options.get("out", "f32")))
    return a, b, results[-1]


@pytest.mark.parametrize("accumulation", ["fast", "split"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("arch", MMA)
def test_integers_are_exact(compile, arch, shape, accumulation):
    a, b, result = run_product(compile, arch, shape, ("f8E4M3FN", "f8E5M2"), integers, accumulation=accumulation)
    assert (result == 0.1875 * (a.astype(numpy.float64) @ b.astype(numpy.float64).T)).all()


@pytest.mark.parametrize("kinds", [("f8E4M3FN", "f8E4M3FN"), ("f8E5M2", "f8E4M3FN"), ("f8E5M2", "f8E5M2")])
@pytest.mark.parametrize("accumulation", ["fast", "split"])
@pytest.mark.parametrize("arch", MMA)
def test_sums_in_k_order(compile, arch, kinds, accumulation):
    a, b, result = run_product(compile, arch, (70, 100, 300), kinds, normal, accumulation=accumulation)
    sums = in_k_order(a, b, 128 if accumulation == "split" else None)
    assert (result == sums * numpy.float32(0.1875)).all()


@pytest.mark.parametrize("arch", MMA)
def test_batches(compile, arch):
    a, b, result = run_product(compile, arch, (70, 33, 48), ("f8E4M3FN", "f8E4M3FN"), integers, batch=3, out="bf16")
    exact = 0.1875 * (a.astype(numpy.float32) @ b.astype(numpy.float32).swapaxes(1, 2))
    assert (result == exact.astype(TYPES["bf16"])).all()


@pytest.mark.parametrize("kind", ["bf16", "f16"])
@pytest.mark.parametrize("arch", MMA)
def test_16_bit_operands(compile, arch, kind):
    m, n, k = 100, 70, 90
    random = numpy.random.default_rng([SEED, 16])
    a, b = (normal(random, (rows, k), kind) for rows in (m, n))
    lhs, rhs = (memref((rows, pitch(k, TYPES[kind])), kind, k) for rows in (m, n))
    source = """module attributes {fp8.target = #fp8.chip<"%s">} {
  func.func @f(%%a: %s, %%b: %s, %%d: memref<100x70xf32>) {
    fp8.matmul site("fc") role(fprop) ins(%%a, %%b : %s, %s) outs(%%d : memref<100x70xf32>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]}
    return
  }
}
""" % (arch, lhs, rhs, lhs, rhs)
    result = compile(source, arch)(padded(a), padded(b), empty((m, n), "f32"))[-1]
    assert (result == in_k_order(a, b)).all()


@pytest.mark.skipif(not compiled.PTXAS, reason="ptxas is not installed")
@pytest.mark.parametrize("accumulation", ["fast", "split"])
@pytest.mark.parametrize("arch", MMA)
def test_no_spills(compile, arch, accumulation):
    source = scaled_product(arch, (128, 128, 128), ("f8E4M3FN", "f8E4M3FN"), "bf16", accumulation)
    message = compiled.assemble(compile(source, arch).ptx, arch)
    assert "0 bytes spill stores, 0 bytes spill loads" in message and "warning" not in message, message
