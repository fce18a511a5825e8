# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numba, which compiles Python to PTX and links it with cuLink…: kernels against numpy. Prints "ok".

    LD_LIBRARY_PATH=build/lib/fp8emu python numba_kernels.py

It needs numba-cuda and nvidia-nvvm, and no nvJitLink: where that is found, Numba makes machine code with it.
"""
import math

import numpy as np
from numba import cuda, float32

rng = np.random.default_rng(0)
THREADS = 128


@cuda.jit(device=True)
def weighted(a, x, y):
    return a * x + y


@cuda.jit
def axpy(a, x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = weighted(a, x[i], y[i])


@cuda.jit
def block_sums(x, out):
    """Sums of a block's elements in shared memory."""
    parts = cuda.shared.array(THREADS, float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    parts[t] = x[i] if i < x.size else 0
    cuda.syncthreads()
    width = THREADS // 2
    while width:
        if t < width:
            parts[t] += parts[t + width]
        cuda.syncthreads()
        width //= 2
    if t == 0:
        out[cuda.blockIdx.x] = parts[0]


@cuda.jit
def histogram(x, out):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(out, x[i], 1)


@cuda.jit
def warp_sums(x, out):
    i = cuda.grid(1)
    value = x[i]
    for distance in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, distance)
    if cuda.laneid == 0:
        out[i // 32] = value


@cuda.jit
def matmul(a, b, c):
    """Tiles of 8 x 8 in shared memory."""
    tile_a, tile_b = cuda.shared.array((8, 8), float32), cuda.shared.array((8, 8), float32)
    column, row = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for k in range(0, a.shape[1], 8):
        tile_a[ty, tx], tile_b[ty, tx] = a[row, k + tx], b[k + ty, column]
        cuda.syncthreads()
        for i in range(8):
            total += tile_a[ty, i] * tile_b[i, tx]
        cuda.syncthreads()
    c[row, column] = total


@cuda.jit
def gelu(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = 0.5 * x[i] * (1 + math.erf(x[i] / math.sqrt(2.0)))


def blocks(size):
    return -(-size // THREADS)


x, y = (rng.integers(-64, 65, 1000).astype(np.float32) for _ in range(2))
out = np.zeros_like(x)
axpy[blocks(x.size), THREADS](np.float32(0.5), x, y, out)
assert (out == 0.5 * x + y).all()

# Small integers: every order of a sum is exact.
sums = np.zeros(blocks(x.size), np.float32)
block_sums[sums.size, THREADS](x, sums)
assert (sums == np.pad(x, (0, sums.size * THREADS - x.size)).reshape(sums.size, -1).sum(1)).all()

values, counts = rng.integers(0, 10, 1000).astype(np.int32), np.zeros(10, np.int32)
histogram[blocks(values.size), THREADS](values, counts)
assert (counts == np.bincount(values, minlength=10)).all()

numbers, totals = np.arange(256, dtype=np.int32), np.zeros(8, np.int32)
warp_sums[2, THREADS](numbers, totals)
assert (totals == numbers.reshape(8, 32).sum(1)).all()

a, b = (rng.integers(-8, 9, (32, 32)).astype(np.float32) for _ in range(2))
c = np.zeros((32, 32), np.float32)
matmul[(4, 4), (8, 8)](a, b, c)
assert (c == a @ b).all()

doubles = rng.standard_normal(1000)
result = np.zeros_like(doubles)
gelu[blocks(doubles.size), THREADS](doubles, result)
wanted = 0.5 * doubles * (1 + np.array([math.erf(v / math.sqrt(2.0)) for v in doubles]))
# erf in f64 has an error of two units of the last place.
assert np.abs(result - wanted).max() < 1e-15 * np.abs(wanted).max() * 4
print("ok")
