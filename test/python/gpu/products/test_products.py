# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Kernels of products on the emulator, all its checks on. Sums of small integers are exact in any order; others are compared bit
# for bit with f32 sums in the order of K.

import math
import re

import compiled
import numpy
import pytest
from compiled import TYPES
from wide_products import Product

SEED = 0x5EED
MMA = ["sm_89", "sm_120a"]
ALL = [*MMA, "sm_90a", "sm_100a"]
SHAPES = [(1, 1, 1), (100, 130, 77), (300, 260, 600)]


def pitch(k, dtype):
    return -(-k * numpy.dtype(dtype).itemsize // 16) * 16 // numpy.dtype(dtype).itemsize


def padded(values):
    """Rows of a multiple of 16 bytes. Elements behind a row are NaN: no product may read them."""
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
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("arch", MMA)
def test_16_bit_operands(compile, arch, kind, transposed):
    """In the order of memory, [rows, K] or [K, rows]: one launch."""
    product = Product(arch, (100, 70, 90), (kind, kind), transposed=transposed)
    product.check_k_order(compile)
    assert len(product.function.calls) == 1


@pytest.mark.parametrize("shape", [(1, 1, 1), (60, 200, 33), (200, 60, 64)])
@pytest.mark.parametrize("arch", MMA)
def test_transposed_tiles(compile, arch, shape):
    Product(arch, shape, ("bf16", "bf16"), batch=2, transposed=(True, True)).check_integers(compile)


MNK = "affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>"


def module(arch, arguments, body):
    return """module attributes {fp8.target = #fp8.chip<"%s">} {
  func.func @f(%s) {
%s
    return
  }
}
""" % (arch, ", ".join("%%%s: memref<%s>" % pair for pair in arguments.items()), body)


def operands(m, n, k, seed):
    random = numpy.random.default_rng([SEED, seed])
    return normal(random, (m, k), "f8E4M3FN"), normal(random, (n, k), "f8E4M3FN")


SCALED = numpy.float32(0.1875)  # of scales 0.5 and 0.375


@pytest.mark.parametrize("arch", ALL)
def test_accumulate_and_epilogue(compile, arch):
    """C, a region with a row, a column, a matrix and indices, a transposed extra result."""
    m, n, k = 90, 70, 64
    a, b = operands(m, n, k, 1)
    random = numpy.random.default_rng([SEED, 2])
    column, row = normal(random, (n,), "bf16"), normal(random, (m, 1), "f32")
    matrix, c = normal(random, (m, n), "f32"), normal(random, (m, n), "f32")
    types = dict(a="90x64xf8E4M3FN", b="70x64xf8E4M3FN", sa="f32", sb="f32", column="70xbf16", row="90x1xf32",
                 matrix="90x70xf32", c="90x70xf32", extra="70x90xbf16")
    source = module(arch, types, """
    fp8.scaled_matmul fast accumulate ins(%%a, %%b : memref<90x64xf8E4M3FN>, memref<70x64xf8E4M3FN>)
        scales(%%sa, %%sb : memref<f32>, memref<f32>)
        epilogue_ins(%%column, %%row, %%matrix : memref<70xbf16>, memref<90x1xf32>, memref<90x70xf32>)
        outs(%%c, %%extra : memref<90x70xf32>, memref<70x90xbf16>)
        {indexing_maps = [%s], epilogue_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, 0)>, affine_map<(i, j) -> (i, j)>,
                                                affine_map<(i, j) -> (j, i)>]} epilogue {
      ^bb0(%%sum: f32, %%x: bf16, %%y: f32, %%z: f32):
        %%wide = arith.extf %%x : bf16 to f32
        %%one = arith.addf %%sum, %%wide : f32
        %%i = fp8.index 0
        %%j = fp8.index 1
        %%below = arith.cmpi ugt, %%i, %%j : index
        %%two = arith.select %%below, %%y, %%z : f32
        %%three = arith.mulf %%one, %%two : f32
        %%narrow = arith.truncf %%one : f32 to bf16
        fp8.yield %%three, %%narrow : f32, bf16
    }""" % MNK)
    results = compile(source, arch)(a, b, scalar(0.5), scalar(0.375), column, row, matrix, c, empty((n, m), "bf16"))
    one = in_k_order(a, b) * SCALED + c + column.astype(numpy.float32)
    below = numpy.arange(m)[:, None] > numpy.arange(n)
    assert (results[7] == one * numpy.where(below, row, matrix)).all()
    assert (results[8] == one.T.astype(TYPES["bf16"])).all()


@pytest.mark.parametrize("arch", ALL)
def test_dimensions_in_any_order(compile, arch):
    """Two dimensions of each kind; operands that are copied; a result whose rows are not contiguous."""
    # [b, s, h, t] = sum over k, l of [s, b, k, l, h] * [l, k, b, t, h]: batches b, h; rows s; columns t.
    random = numpy.random.default_rng([SEED, 3])
    a, b = integers(random, (9, 2, 4, 5, 3), "f8E4M3FN"), integers(random, (5, 4, 2, 7, 3), "f8E5M2")
    types = dict(a="9x2x4x5x3xf8E4M3FN", b="5x4x2x7x3xf8E5M2", sa="f32", sb="f32", d="2x9x3x7xf32")
    source = module(arch, types, """
    fp8.scaled_matmul fast ins(%a, %b : memref<9x2x4x5x3xf8E4M3FN>, memref<5x4x2x7x3xf8E5M2>)
        scales(%sa, %sb : memref<f32>, memref<f32>) outs(%d : memref<2x9x3x7xf32>)
        {indexing_maps = [affine_map<(b, h, s, t, k, l) -> (s, b, k, l, h)>, affine_map<(b, h, s, t, k, l) -> (l, k, b, t, h)>,
                          affine_map<(b, h, s, t, k, l) -> (b, s, h, t)>]}""")
    result = compile(source, arch)(a, b, scalar(0.5), scalar(0.375), empty((2, 9, 3, 7), "f32"))[-1]
    exact = numpy.einsum("sbklh,lkbth->bsht", a.astype(numpy.float32), b.astype(numpy.float32))
    assert (result == exact * SCALED).all()


@pytest.mark.parametrize("arch", ALL)
def test_rows_of_two_dimensions(compile, arch):
    """Nothing is copied: both dimensions of rows are one."""
    random = numpy.random.default_rng([SEED, 4])
    a, b = integers(random, (5, 30, 32), "f8E4M3FN"), integers(random, (20, 32), "f8E4M3FN")
    types = dict(a="5x30x32xf8E4M3FN", b="20x32xf8E4M3FN", sa="f32", sb="f32", d="5x20x30xbf16")
    source = module(arch, types, """
    fp8.scaled_matmul fast ins(%a, %b : memref<5x30x32xf8E4M3FN>, memref<20x32xf8E4M3FN>)
        scales(%sa, %sb : memref<f32>, memref<f32>) outs(%d : memref<5x20x30xbf16>)
        {indexing_maps = [affine_map<(b, s, n, k) -> (b, s, k)>, affine_map<(b, s, n, k) -> (n, k)>,
                          affine_map<(b, s, n, k) -> (b, n, s)>]}""")
    function = compile(source, arch)
    assert len(function.calls) == 1
    result = function(a, b, scalar(0.5), scalar(0.375), empty((5, 20, 30), "bf16"))[-1]
    exact = numpy.einsum("bsk,nk->bns", a.astype(numpy.float32), b.astype(numpy.float32))
    assert (result == (exact * SCALED).astype(TYPES["bf16"])).all()


@pytest.mark.parametrize("arch", ALL)
def test_padded_rows(compile, arch):
    """Casts write rows of 45 bytes, two dimensions, where the product reads them: three launches. The bytes behind the rows are never written."""
    random = numpy.random.default_rng([SEED, 9])
    a, b = integers(random, (70, 5, 9), "f32"), integers(random, (3, 5, 9, 20), "f32")
    types = dict(a="70x5x9xf32", b="3x5x9x20xf32", s="f32", d="3x70x20xf32", sa="f32", sb="f32")
    source = module(arch, types, """
    %qa = memref.alloc() : memref<70x5x9xf8E4M3FN>
    %qb = memref.alloc() : memref<3x5x9x20xf8E4M3FN>
    %qt = memref.alloc() : memref<3x20x5x9xf8E4M3FN>
    fp8.quantize ins(%a : memref<70x5x9xf32>) scale(%s : memref<f32>) outs(%qa, %sa : memref<70x5x9xf8E4M3FN>, memref<f32>)
    fp8.quantize ins(%b : memref<3x5x9x20xf32>) scale(%s : memref<f32>)
        outs(%qb, %qt, %sb : memref<3x5x9x20xf8E4M3FN>, memref<3x20x5x9xf8E4M3FN>, memref<f32>) {transposition = array<i64: 0, 3, 1, 2>}
    fp8.scaled_matmul fast ins(%qa, %qt : memref<70x5x9xf8E4M3FN>, memref<3x20x5x9xf8E4M3FN>) scales(%sa, %sb : memref<f32>, memref<f32>)
        outs(%d : memref<3x70x20xf32>)
        {indexing_maps = [affine_map<(b, m, n, j, k) -> (m, j, k)>, affine_map<(b, m, n, j, k) -> (b, n, j, k)>,
                          affine_map<(b, m, n, j, k) -> (b, m, n)>]}""")
    function = compile(source, arch)
    assert len(function.calls) == 3
    result = function(a, b, scalar(2), empty((3, 70, 20), "f32"), empty((), "f32"), empty((), "f32"))[3]
    assert (result == numpy.einsum("mjk,bjkn->bmn", a, b)).all()


@pytest.mark.parametrize("kind", ["f8E4M3FN", "bf16", "f32"])
@pytest.mark.parametrize("arch", ALL)
def test_batches_of_two_distances(compile, arch, kind):
    """The heads of attention, [batch, sequence, heads, size]: read in place, the right one as [K, N] where kernels can."""
    random = numpy.random.default_rng([SEED, 8])
    a, b = integers(random, (2, 70, 3, 32), kind), integers(random, (2, 32, 3, 48), kind)
    rows_along_k = kind == "f8E4M3FN"
    if rows_along_k:
        b = numpy.ascontiguousarray(b.transpose(0, 3, 2, 1))
    types = dict(a="2x70x3x32x" + kind, b="%dx%dx%dx%dx%s" % (*b.shape, kind), sa="f32", sb="f32", d="2x3x70x48xf32")
    scales = "scales(%sa, %sb : memref<f32>, memref<f32>)" if rows_along_k else ""
    source = module(arch, types, """
    fp8.%s ins(%%a, %%b : memref<%s>, memref<%s>) %s outs(%%d : memref<2x3x70x48xf32>)
        {indexing_maps = [affine_map<(b, h, s, t, k) -> (b, s, h, k)>, affine_map<(b, h, s, t, k) -> (b, %s)>,
                          affine_map<(b, h, s, t, k) -> (b, h, s, t)>]}""" % (
        "scaled_matmul fast" if rows_along_k else "matmul", types["a"], types["b"], scales, "t, h, k" if rows_along_k else "k, h, t"))
    function = compile(source, arch)
    assert len(function.calls) == 1
    result = function(a, b, scalar(0.5), scalar(0.375), empty((2, 3, 70, 48), "f32"))[-1]
    exact = numpy.einsum("bshk,bthk->bhst" if rows_along_k else "bshk,bkht->bhst", a.astype(numpy.float32), b.astype(numpy.float32))
    assert (result == exact * (SCALED if rows_along_k else 1)).all()


@pytest.mark.parametrize("arch", ALL)
def test_fp8_result_with_amax_and_sums(compile, arch):
    m, n, k = 60, 70, 45
    a, b = operands(m, n, k, 5)
    bias = normal(numpy.random.default_rng([SEED, 6]), (n,), "f32")
    types = dict(a="60x45xf8E4M3FN", b="70x45xf8E4M3FN", sa="f32", sb="f32", bias="70xf32", scale="f32", d="60x70xf8E4M3FN",
                 inv="f32", amax="f32", sums="70xf32")
    source = module(arch, types, """
    %%half = arith.constant 0.5 : f32
    fp8.scaled_matmul fast ins(%%a, %%b : memref<60x45xf8E4M3FN>, memref<70x45xf8E4M3FN>)
        scales(%%sa, %%sb : memref<f32>, memref<f32>) out_scale(%%scale : memref<f32>) epilogue_ins(%%bias : memref<70xf32>)
        outs(%%d, %%inv, %%amax, %%sums : memref<60x70xf8E4M3FN>, memref<f32>, memref<f32>, memref<70xf32>)
        {indexing_maps = [%s], epilogue_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (j)>]} epilogue {
      ^bb0(%%sum: f32, %%x: f32):
        %%w = arith.addf %%sum, %%x : f32
        %%v = arith.mulf %%w, %%half : f32
        fp8.yield %%v, %%v : f32, f32
    }""" % MNK)
    function = compile(source, arch)
    # A constant from outside of the region is no reason to leave the epilogue to generic code.
    names = {re.sub("_[0-9]+$", "", call[0]) for call in function.calls}
    assert names == {"kernel_transpose", "kernel_clear_amax", "kernel_product_other", "kernel_scalars", "kernel_sum_of_rows"}
    results = function(a, b, scalar(0.5), scalar(0.375), bias, scalar(100), empty((m, n), "f8E4M3FN"), empty((), "f32"),
                       empty((), "f32"), empty((n,), "f32"))
    value = (in_k_order(a, b) * SCALED + bias) * numpy.float32(0.5)
    scaled = numpy.clip(value * numpy.float32(100), -448, 448)
    assert (results[6] == scaled.astype(TYPES["f8E4M3FN"])).all()
    assert results[7] == numpy.float32(1) / numpy.float32(100) and results[8] == abs(value).max()
    # Sums over rows may be added in any order: m - 1 additions round.
    assert (abs(results[9] - value.astype(numpy.float64).sum(0)) <= m * 2.0**-24 * abs(value).sum(0)).all()


@pytest.mark.parametrize("kinds", [("f32", "f32"), ("bf16", "f32")])
@pytest.mark.parametrize("arch", MMA)
def test_without_tensor_cores(compile, arch, kinds):
    """Operands with any strides: fused multiply-adds in the order of K, with the sums of columns and an amax."""
    m, n, k = 70, 90, 37
    random = numpy.random.default_rng([SEED, 7])
    a, b = normal(random, (2, m, k), kinds[0]), normal(random, (2, k, n), kinds[1])
    types = dict(a="2x70x37x" + kinds[0], b="2x37x90x" + kinds[1], d="2x70x90xf32", amax="f32", sums="90xf32")
    source = module(arch, types, """
    fp8.matmul record_amax[0] ins(%%a, %%b : memref<%s>, memref<%s>) outs(%%d, %%amax, %%sums : memref<2x70x90xf32>, memref<f32>, memref<90xf32>)
        {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>],
         epilogue_maps = [affine_map<(b, i, j) -> (j)>]} epilogue {
      ^bb0(%%sum: f32):
        fp8.yield %%sum, %%sum : f32, f32
    }""" % (types["a"], types["b"]))
    results = compile(source, arch)(a, b, empty((2, m, n), "f32"), empty((), "f32"), empty((n,), "f32"))
    sums = numpy.zeros((2, m, n), numpy.float32)
    for i in range(k):  # products are exact in f64; the sum's own rounding shows once in 2^29
        product = a[:, :, i, None].astype(numpy.float64) * b[:, None, i].astype(numpy.float64)
        sums = (product + sums).astype(numpy.float32)
    assert (results[2] == sums).all()
    assert results[3] == abs(results[2]).max()
    assert (abs(results[4] - results[2].astype(numpy.float64).sum((0, 1))) <= 2 * m * 2.0**-24 * abs(results[2]).sum((0, 1))).all()


@pytest.mark.skipif(not compiled.PTXAS, reason="ptxas is not installed")
@pytest.mark.parametrize("arch", MMA)
@pytest.mark.parametrize("options", [dict(), dict(accumulation="split"), dict(kinds=("bf16", "bf16")),
                                     dict(kinds=("bf16", "bf16"), transposed=(True, True))])
def test_no_spills(compile, arch, options):
    source = Product(arch, (128, 128, 128), out="bf16", **options).source()
    message = compiled.assemble(compile(source, arch).ptx, arch)
    assert "0 bytes spill stores, 0 bytes spill loads" in message and "warning" not in message, message
