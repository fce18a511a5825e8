# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Small programs without contractions, compiled and run: loops, buffers that loops exchange,
# narrow floats, scalars.

import json

import numpy as np
import pytest

from harness import Program

FIBONACCI = """
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r:2 = scf.for %i = %c0 to %c9 step %c1 iter_args(%a = %x, %b = %y) -> (tensor<4xf32>, tensor<4xf32>) {
    %empty = tensor.empty() : tensor<4xf32>
    %sum = linalg.add ins(%a, %b : tensor<4xf32>, tensor<4xf32>) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %b, %sum : tensor<4xf32>, tensor<4xf32>
  }
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}
"""

FIBONACCI_WHILE = """
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %start = arith.constant dense<0> : tensor<i32>
  %nine = arith.constant 9 : i32
  %one = arith.constant 1 : i32
  %r:3 = scf.while (%i = %start, %a = %x, %b = %y)
      : (tensor<i32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>, tensor<4xf32>) {
    %n = tensor.extract %i[] : tensor<i32>
    %more = arith.cmpi slt, %n, %nine : i32
    scf.condition(%more) %i, %a, %b : tensor<i32>, tensor<4xf32>, tensor<4xf32>
  } do {
  ^bb0(%i: tensor<i32>, %a: tensor<4xf32>, %b: tensor<4xf32>):
    %n = tensor.extract %i[] : tensor<i32>
    %next = arith.addi %n, %one : i32
    %j = tensor.from_elements %next : tensor<i32>
    %empty = tensor.empty() : tensor<4xf32>
    %sum = linalg.add ins(%a, %b : tensor<4xf32>, tensor<4xf32>) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %j, %b, %sum : tensor<i32>, tensor<4xf32>, tensor<4xf32>
  }
  return %r#1, %r#2 : tensor<4xf32>, tensor<4xf32>
}
"""


@pytest.mark.parametrize("program", [FIBONACCI, FIBONACCI_WHILE], ids=["for", "while"])
def test_loop_carried_values_change_places(execute, program):
    x, y = np.array([0, 1, 2, 3], np.float32), np.array([1, 1, -1, 0.5], np.float32)
    a, b = x, y
    for _ in range(9):
        a, b = b, a + b
    got = execute(program, [x, y])
    np.testing.assert_array_equal(got["0"], a)
    np.testing.assert_array_equal(got["1"], b)


# Ends where the data says so, and the slice it writes is that of a number it computed: the
# tensor stays in one buffer, rows 0 and 1 change places with what they are computed from.
ROWS = """
func.func @main(%x: tensor<6x4xf32>, %y: tensor<4xf32>) -> (tensor<6x4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %limit = arith.constant 100.0 : f32
  %r:4 = scf.while (%i = %c0, %a = %x, %b = %y, %c = %y)
      : (index, tensor<6x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, index, tensor<6x4xf32>, tensor<4xf32>) {
    %v = tensor.extract %b[%c0] : tensor<4xf32>
    %more = arith.cmpf olt, %v, %limit : f32
    scf.condition(%more) %c, %i, %a, %b : tensor<4xf32>, index, tensor<6x4xf32>, tensor<4xf32>
  } do {
  ^bb0(%c: tensor<4xf32>, %i: index, %a: tensor<6x4xf32>, %b: tensor<4xf32>):
    %next = arith.addi %i, %c1 : index
    %row = tensor.extract_slice %a[%next, 0] [1, 4] [1, 1] : tensor<6x4xf32> to tensor<4xf32>
    %empty = tensor.empty() : tensor<4xf32>
    %sum = linalg.add ins(%row, %b : tensor<4xf32>, tensor<4xf32>) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
    %changed = tensor.insert_slice %sum into %a[%i, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<6x4xf32>
    scf.yield %next, %changed, %sum, %b : index, tensor<6x4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  return %r#2, %r#3, %r#0 : tensor<6x4xf32>, tensor<4xf32>, tensor<4xf32>
}
"""


def test_a_loop_of_unknown_length_writes_slices(execute, run):
    x = np.array([[1], [2], [4], [90], [50], [3]], np.float32) * np.array([1, -1, 0.5, 3], np.float32)
    y = np.array([5, 6, 7, 8], np.float32)
    a, b, c, i = x.copy(), y, y, 0
    while b[0] < 100:
        a[i] = a[i + 1] + b
        b, c, i = a[i].copy(), b, i + 1
    assert i == 3
    got = execute(ROWS, [x, y])
    for number, want in enumerate([a, b, c]):
        np.testing.assert_array_equal(got[str(number)], want)
    # No iteration copies all rows.
    ir = run("fp8-compile", "-", "-o", "-", "--recipe=none", "--emit=bufferize", stdin=ROWS).stdout
    iteration = ir.split("scf.while")[1].split("scf.yield")[0]
    assert not [line for line in iteration.split("\n") if "memref.copy" in line and "6x4xf32>" in line]


def test_carried_arguments_change_places(execute):
    program = """
func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 1 : i32}, %b: tensor<4xf32> {tf.aliasing_output = 0 : i32})
    -> (tensor<4xf32>, tensor<4xf32>) {
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}
"""
    a, b = np.arange(4, dtype=np.float32), -np.ones(4, np.float32)
    for steps in (1, 2):
        got = execute(program, [a, b], steps)
        first, second = (a, b) if steps % 2 else (b, a)
        np.testing.assert_array_equal(got["0"], first)
        np.testing.assert_array_equal(got["1"], second)


def test_scalars(execute):
    program = """
func.func @main(%x: f32, %n: i32) -> (f32, i32) {
  %y = arith.mulf %x, %x : f32
  return %y, %n : f32, i32
}
"""
    got = execute(program, [np.array(3, np.float32), np.array(7, np.int32)])
    assert got["0"] == 9 and got["1"] == 7


BRANCHES = """
func.func @main(%x0: tensor<4x4xf32>, %w: tensor<4x4xf32>, %count: i64) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %e = tensor.empty() : tensor<4x4xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  cf.br ^head(%c0, %x0, %w : i64, tensor<4x4xf32>, tensor<4x4xf32>)
^head(%k: i64, %x: tensor<4x4xf32>, %v: tensor<4x4xf32>):
  %more = arith.cmpi slt, %k, %count : i64
  cf.cond_br %more, ^body, ^exit
^body:
  %y = linalg.matmul ins(%x, %v : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) -> tensor<4x4xf32>
  %k1 = arith.addi %k, %c1 : i64
  cf.br ^head(%k1, %y, %v : i64, tensor<4x4xf32>, tensor<4x4xf32>)
^exit:
  return %x : tensor<4x4xf32>
}
"""


def test_blocks_and_branches(bin_dir, tmp_path):
    """A loop of blocks: the weight goes round it as a block argument, and is one."""
    program = Program(bin_dir, tmp_path, BRANCHES, "--recipe=none", f"--report=json:{tmp_path / 'report'}")
    (site,) = json.loads((tmp_path / "report").read_text())["sites"]
    assert site["role"] == "fprop"
    rng = np.random.default_rng(7)
    x, w = (rng.integers(-2, 3, (4, 4)).astype(np.float32) for _ in range(2))
    for count in (0, 1, 3):
        (got,) = program.call("main", x, w, np.array(count, np.int64))
        np.testing.assert_array_equal(got, x @ np.linalg.matrix_power(w, count))


def test_tensor_operations(execute):
    """Operations that bufferize to copies, views and fills."""
    program = """
func.func @main(%x: tensor<4x6xf32>, %i: tensor<i32>)
    -> (tensor<6x9xf32>, tensor<8x6xf32>, tensor<2x6xf32>, tensor<4xf32>,
        tensor<4x6xf32>, tensor<6x4xf32>, tensor<4x6xi1>) {
  %z = arith.constant 1.5 : f32
  %p = tensor.pad %x low[1, 2] high[1, 1] { ^bb0(%a: index, %b: index): tensor.yield %z : f32 } : tensor<4x6xf32> to tensor<6x9xf32>
  %c = tensor.concat dim(0) %x, %x : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %iv = tensor.extract %i[] : tensor<i32>
  %ix = arith.index_cast %iv : i32 to index
  %s = tensor.extract_slice %x[%ix, 0] [2, 6] [1, 1] : tensor<4x6xf32> to tensor<2x6xf32>
  %e = tensor.empty() : tensor<4xf32>
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %r = linalg.reduce { arith.addf } ins(%x : tensor<4x6xf32>) outs(%f : tensor<4xf32>) dimensions = [1]
  %m = arith.mulf %x, %x : tensor<4x6xf32>
  %et = tensor.empty() : tensor<6x4xf32>
  %t = linalg.transpose ins(%x : tensor<4x6xf32>) outs(%et : tensor<6x4xf32>) permutation = [1, 0]
  %cmp = arith.cmpf ogt, %x, %m : tensor<4x6xf32>
  return %p, %c, %s, %r, %m, %t, %cmp : tensor<6x9xf32>, tensor<8x6xf32>, tensor<2x6xf32>, tensor<4xf32>,
    tensor<4x6xf32>, tensor<6x4xf32>, tensor<4x6xi1>
}
"""
    x = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    got = execute(program, [x, np.array(1, np.int32)])
    sums = np.zeros(4, np.float32)
    for column in x.T:
        sums = sums + column
    want = [np.pad(x, ((1, 1), (2, 1)), constant_values=1.5), np.concatenate([x, x]), x[1:3], sums, x * x, x.T,
            x > x * x]
    for index, value in enumerate(want):
        np.testing.assert_array_equal(got[str(index)], value)


COMPLEX = """
#id = affine_map<(i) -> (i)>
func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
  %empty = tensor.empty() : tensor<64xcomplex<f32>>
  %c = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%empty : tensor<64xcomplex<f32>>) {
  ^bb0(%a: f32, %o: complex<f32>):
    %z = complex.create %a, %a : complex<f32>
    linalg.yield %z : complex<f32>
  } -> tensor<64xcomplex<f32>>
  %out = tensor.empty() : tensor<64xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (63 - i)>, #id], iterator_types = ["parallel"]}
      ins(%c : tensor<64xcomplex<f32>>) outs(%out : tensor<64xf32>) {
  ^bb0(%z: complex<f32>, %o: f32):
    %re = complex.re %z : complex<f32>
    %im = complex.im %z : complex<f32>
    %s = arith.addf %re, %im : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  return %y : tensor<64xf32>
}
"""


def test_complex_temporaries(execute):
    x = np.random.default_rng(5).standard_normal(64).astype(np.float32)
    np.testing.assert_array_equal(execute(COMPLEX, [x])["0"], (x + x)[::-1])


@pytest.mark.parametrize("bits", [8, 32, 64])
def test_integer_division_by_anything(execute, bits):
    """Where there is no quotient it is -1, the remainder the dividend, as in XLA; -2^(n-1) / -1 wraps."""
    kind, dtype = f"tensor<64xi{bits}>", np.dtype(f"int{bits}")
    program = f"""
func.func @main(%x: {kind}, %y: {kind}) -> ({kind}, {kind}, {kind}, {kind}) {{
  %0 = arith.divsi %x, %y : {kind}
  %1 = arith.remsi %x, %y : {kind}
  %2 = arith.divui %x, %y : {kind}
  %3 = arith.remui %x, %y : {kind}
  return %0, %1, %2, %3 : {kind}, {kind}, {kind}, {kind}
}}
"""
    ends = [np.iinfo(dtype).min, np.iinfo(dtype).max, 0, -1, 1, 7, -7, 100]
    x, y = (a.reshape(-1).astype(dtype) for a in np.meshgrid(ends, ends))
    got = execute(program, [x, y])
    for first, unsigned in ((0, False), (2, True)):
        wrap = (lambda v: v % 2**bits) if unsigned else int
        pairs = [(wrap(int(a)), wrap(int(b))) for a, b in zip(x, y)]
        quotients = [-1 if b == 0 else abs(a) // abs(b) * (1 if a * b >= 0 else -1) for a, b in pairs]
        remainders = [a if b == 0 else a - q * b for (a, b), q in zip(pairs, quotients)]
        for key, values in ((first, quotients), (first + 1, remainders)):
            expected = np.array([v % 2**bits for v in values], f"u{dtype.itemsize}").view(dtype)
            np.testing.assert_array_equal(got[str(key)], expected)


# A slice of a tensor that moves to another, overlapping place of it.
MOVED_SLICE = """
func.func @main(%x: tensor<2x6x6xf32>) -> tensor<6x6xf32> {
  %s = tensor.extract_slice %x[1, 0, 0] [1, 6, 6] [1, 1, 1] : tensor<2x6x6xf32> to tensor<6x6xf32>
  %t = tensor.extract_slice %s[1, 1] [2, 3] [1, 1] : tensor<6x6xf32> to tensor<2x3xf32>
  %r = tensor.insert_slice %t into %s[2, 2] [2, 3] [1, 1] : tensor<2x3xf32> into tensor<6x6xf32>
  return %r : tensor<6x6xf32>
}
"""


def test_a_slice_moves_to_an_overlapping_place(execute):
    x = np.arange(72, dtype=np.float32).reshape(2, 6, 6)
    want = x[1].copy()
    want[2:4, 2:5] = x[1, 1:3, 1:4]
    np.testing.assert_array_equal(execute(MOVED_SLICE, [x])["0"], want)


# The first result becomes the argument; the second is the argument with a slice of it moved; a loop reads it, too.
CHANGED_ARGUMENT = """
func.func @main(%y: tensor<6x8xf32> {tf.aliasing_output = 0 : i32}, %x: tensor<6x8xf32>, %n: i32)
    -> (tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = arith.index_cast %n : i32 to index
  %t = tensor.extract_slice %y[%i, 1] [2, 3] [1, 1] : tensor<6x8xf32> to tensor<2x3xf32>
  %r = tensor.insert_slice %t into %y[%i, 2] [2, 3] [1, 1] : tensor<2x3xf32> into tensor<6x8xf32>
  %w = scf.for %k = %c0 to %i step %c1 iter_args(%a = %y) -> tensor<6x8xf32> {
    %b = linalg.add ins(%a, %x : tensor<6x8xf32>, tensor<6x8xf32>) outs(%a : tensor<6x8xf32>) -> tensor<6x8xf32>
    scf.yield %b : tensor<6x8xf32>
  }
  return %x, %r, %w : tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>
}
"""


def test_a_changed_argument_beside_the_result_that_it_becomes(execute):
    y, x = np.arange(48, dtype=np.float32).reshape(6, 8), np.full((6, 8), 100, np.float32)
    moved = y.copy()
    moved[3:5, 2:5] = y[3:5, 1:4]
    results = execute(CHANGED_ARGUMENT, [y, x, np.array(3, np.int32)])
    for index, want in enumerate([x, moved, y + 3 * x]):
        np.testing.assert_array_equal(results[str(index)], want)
