# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Kernels in Triton: rows (softmax, layer norm), products in bf16 and FP8, scaled dots,
# atomic sums and scans. make_ptx.py compiles them; the tests run what came out.

import triton
import triton.language as tl


@triton.jit
def softmax(x, y, columns, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * stride + at, mask=at < columns, other=-float("inf"))
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(y + row * stride + at, values / tl.sum(values, axis=0), mask=at < columns)


@triton.jit
def layer_norm(x, weight, bias, y, mean_out, columns, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    values = tl.load(x + row * columns + at, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(values, axis=0) / columns
    centred = tl.where(mask, values - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + epsilon)
    result = centred * scale * tl.load(weight + at, mask=mask) + tl.load(bias + at, mask=mask)
    tl.store(y + row * columns + at, result.to(tl.bfloat16), mask=mask)
    tl.store(mean_out + row, mean)


@triton.jit
def matmul(a, b, c, M, N, K, stride_a, stride_b, stride_c, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """c = a x b: a is M x K, b is K x N, both row by row; sums in f32."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, K, BK):
        left = tl.load(a + rows[:, None] * stride_a + (step + inner)[None, :], mask=rows[:, None] < M, other=0.0)
        right = tl.load(b + (step + inner)[:, None] * stride_b + columns[None, :], mask=columns[None, :] < N, other=0.0)
        total = tl.dot(left, right, total)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c + rows[:, None] * stride_c + columns[None, :], total.to(c.dtype.element_ty), mask=mask)


@triton.jit
def matmul_fp8(a, b, c, scale, M, N, K, stride_a, stride_b, stride_c,
               BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """c = scale * a x b^T in FP8: a is M x K, b is N x K, both row by row."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, K, BK):
        left = tl.load(a + rows[:, None] * stride_a + (step + inner)[None, :])
        right = tl.load(b + (step + inner)[:, None] + columns[None, :] * stride_b)
        total = tl.dot(left, right, total)
    total *= tl.load(scale)
    tl.store(c + rows[:, None] * stride_c + columns[None, :], total.to(tl.bfloat16))


@triton.jit
def matmul_descriptor(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """The same product through tensor descriptors that the kernel makes: TMA where there is one."""
    of_a = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    of_b = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    of_c = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, K, BK):
        total = tl.dot(of_a.load([row, step]), of_b.load([column, step]).T, total)
    of_c.store([row, column], total.to(tl.bfloat16))


@triton.jit
def scaled_dot(a, a_scale, b, b_scale, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """One tile of c = (a * 2^(a_scale - 127)) x (b * 2^(b_scale - 127)), scales per 32 along K."""
    rows, columns, inner = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    groups = tl.arange(0, BK // 32)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, K, BK):
        left = tl.load(a + rows[:, None] * K + (step + inner)[None, :])
        right = tl.load(b + (step + inner)[:, None] + columns[None, :] * K)
        at = (step // 32 + groups)[None, :]
        left_scale = tl.load(a_scale + rows[:, None] * (K // 32) + at)
        right_scale = tl.load(b_scale + columns[:, None] * (K // 32) + at)
        total = tl.dot_scaled(left, left_scale, "e4m3", right, right_scale, "e4m3", total)
    tl.store(c + rows[:, None] * BN + columns[None, :], total)


@triton.jit
def quantize(x, y, amax, scale, n, BLOCK: tl.constexpr):
    """y = x * scale in e4m3, saturated; the greatest |x| goes into amax."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at, mask=at < n, other=0.0).to(tl.float32)
    scaled = tl.clamp(values * tl.load(scale), -448.0, 448.0)
    tl.store(y + at, scaled.to(tl.float8e4nv), mask=at < n)
    tl.atomic_max(amax, tl.max(tl.abs(values), axis=0))


@triton.jit
def running_sum(x, y, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.cumsum(tl.load(x + at), axis=0))
