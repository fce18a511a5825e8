# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Reductions and rows that the lanes of a warp or of a block share, and long reductions, which are divided into parts, on small integers, whose
# sums are exact in any order.

import math

import numpy
import pytest
from compiled import CHIPS, TYPES

SOURCE = """module attributes {fp8.target = #fp8.chip<"sm_89">} {
  func.func @f(%x: memref<{M}x{N}xf32>, %s: memref<{M}xf32>, %t: memref<{M}xf32>, %y: memref<{M}x{N}xf32>, %o: memref<{M}xf32>) {
    linalg.reduce {arith.addf} ins(%x : memref<{M}x{N}xf32>) outs(%s : memref<{M}xf32>) dimensions = [1]
    linalg.reduce {arith.maximumf} ins(%x : memref<{M}x{N}xf32>) outs(%t : memref<{M}xf32>) dimensions = [1]
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %m = arith.constant {M} : index
    %n = arith.constant {N} : index
    %zero = arith.constant 0.0 : f32
    %two = arith.constant 2.0 : f32
    scf.parallel (%i) = (%c0) to (%m) step (%c1) {
      %row = memref.alloca() : memref<{N}xf32>
      %sum = scf.for %j = %c0 to %n step %c1 iter_args(%so_far = %zero) -> (f32) {
        %v = memref.load %x[%i, %j] : memref<{M}x{N}xf32>
        %double = arith.mulf %v, %two : f32
        memref.store %double, %row[%j] : memref<{N}xf32>
        %next = arith.addf %so_far, %double : f32
        scf.yield %next : f32
      }
      memref.store %sum, %o[%i] : memref<{M}xf32>
      scf.for %j = %c0 to %n step %c1 {
        %v = memref.load %row[%j] : memref<{N}xf32>
        %shifted = arith.subf %v, %sum : f32
        memref.store %shifted, %y[%i, %j] : memref<{M}x{N}xf32>
      }
      scf.reduce
    } {fp8.kernel}
    return
  }
}"""


@pytest.mark.parametrize("m, n", [(2, 32), (7, 77), (40, 300)])
def test_rows_and_reductions(compile, m, n):
    function = compile(SOURCE.replace("{M}", str(m)).replace("{N}", str(n)), "sm_89")
    assert function.ptx.count("shfl.sync.bfly") == 15
    rng = numpy.random.default_rng(n)
    x, s, t = (rng.integers(-9, 10, shape).astype(numpy.float32) for shape in ((m, n), m, m))
    nothing = numpy.full((m, n), numpy.nan, numpy.float32)
    _, sums, most, y, o = function(x, s, t, nothing, nothing[:, 0].copy())
    assert (sums == s + x.sum(1)).all()
    assert (most == numpy.maximum(t, x.max(1))).all()
    assert (o == 2 * x.sum(1)).all()
    assert (y == 2 * x - 2 * x.sum(1, keepdims=True)).all()


WHOLE = """module attributes {fp8.target = #fp8.chip<"sm_89">} {
  func.func @f(%x: memref<{S}xf32>, %s: memref<f32>, %y: memref<{S}xf32>) {
    linalg.generic {indexing_maps = [affine_map<({D}) -> ({D})>, affine_map<({D}) -> ()>, affine_map<({D}) -> ({D})>],
                    iterator_types = [{R}]} ins(%x : memref<{S}xf32>) outs(%s, %y : memref<f32>, memref<{S}xf32>) {
    ^bb0(%e: f32, %so_far: f32, %out: f32):
      %square = arith.mulf %e, %e : f32
      %sum = arith.addf %so_far, %square : f32
      linalg.yield %sum, %square : f32, f32
    }
    return
  }
}"""


@pytest.mark.parametrize("shape, lanes", [((1000,), 64), ((16, 64), 128), ((3, 5, 33), 32)])
def test_reductions_to_one_element(compile, shape, lanes):
    """A warp or some, which also store an element each time."""
    dims = ["d%d" % i for i in range(len(shape))]
    source = WHOLE.replace("{S}", "x".join(map(str, shape))).replace("{D}", ", ".join(dims))
    function = compile(source.replace("{R}", ", ".join(['"reduction"'] * len(shape))), "sm_89")
    assert function.ptx.count("shfl.sync.bfly") == math.log2(lanes)
    rng = numpy.random.default_rng(len(shape))
    x = rng.integers(-9, 10, shape).astype(numpy.float32)
    _, total, squares = function(x, numpy.array(7, numpy.float32), numpy.full(shape, numpy.nan, numpy.float32))
    assert total == 7 + (x * x).sum() and (squares == x * x).all()


LONG = """module attributes {fp8.target = #fp8.chip<"{ARCH}">} {
  func.func @f(%x: memref<{IN}>, %s: memref<{OUT}>) {
    linalg.reduce {{COMBINER}} ins(%x : memref<{IN}>) outs(%s : memref<{OUT}>) dimensions = [{DIMS}]
    return
  }
}"""


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("shape, dims, element, combiner, launches", [
    ((65536,), [0], "f32", "arith.addf", [(1, 1024)]),  # a block
    ((140000,), [0], "f32", "arith.addf", [(1, 64), (56, 256), (1, 32)]),  # 56 parts with a block each, then a warp
    ((300, 401), [0, 1], "f32", "arith.addf", [(1, 64), (50, 256), (1, 32)]),  # as one dimension
    ((2000, 70), [0], "f32", "arith.addf", [(7, 256), (7, 256), (1, 96)]),  # a thread per column and part
    ((8, 5, 60, 60), [0, 2, 3], "f32", "arith.addf", [(5, 1024)]),  # a nest of loops in each block
    ((20, 5, 60, 60), [0, 2, 3], "f32", "arith.addf", [(1, 128), (100, 256), (1, 32)]),  # a part for each of the first dimension
    ((3, 32768), [1], "bf16", "arith.maximumf", [(3, 1024)]), ((3, 5000), [1], "f16", "arith.addf", [(3, 512)]),
    ((40000,), [0], "i8", "arith.addi", None), ((100, 4, 90), [0, 2], "i32", "arith.maxsi", None),
    ((400, 100), [0], "f32", "arith.maximumf", None), ((0, 5), [0], "f32", "arith.addf", None)], ids=str)
def test_long_reductions(compile, arch, shape, dims, element, combiner, launches):
    kept = [size for dim, size in enumerate(shape) if dim not in dims]
    source = LONG.replace("{IN}", "x".join([*map(str, shape), element])).replace("{OUT}", "x".join([*map(str, kept), element]))
    source = source.replace("{COMBINER}", combiner).replace("{DIMS}", ", ".join(map(str, dims)))
    function = compile(source.replace("{ARCH}", arch), arch)
    if launches:
        assert [tuple(function.constants[part.split(",")[0]][0] for part in call[1:3]) for call in function.calls] == launches
    rng = numpy.random.default_rng(len(shape))
    wide = rng.integers(-9, 10, shape)
    before = rng.integers(-9, 10, kept)
    x, s = wide.astype(TYPES[element]), numpy.asarray(before.astype(TYPES[element]))
    _, result = function(x, s)
    reduced = wide.max(tuple(dims), initial=-99) if "max" in combiner else wide.sum(tuple(dims))
    expected = numpy.maximum(before, reduced) if "max" in combiner else before + reduced
    assert (result == expected.astype(TYPES[element])).all()
