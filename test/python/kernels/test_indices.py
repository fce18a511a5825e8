# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Indices that a program computes: in range they give numpy's values, out of range an error of the call.

Indices that are proved to be in range, such as clamped ones of front ends, are not checked.
"""
import subprocess

import numpy as np
import pytest

from harness import F32, Program, assert_same_bits, random_generator, save

PROGRAM = """
#ids = affine_map<(i, j) -> (i)>
#row = affine_map<(i, j) -> (j)>
#both = affine_map<(i, j) -> (i, j)>
#all = affine_map<(i) -> (i)>

func.func @embedding(%ids: tensor<6xi32> loc("ids"), %table: tensor<11x8xf32> loc("table")) -> tensor<6x8xf32> {
  %e = tensor.empty() : tensor<6x8xf32>
  %y = linalg.generic {indexing_maps = [#ids, #both], iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<6xi32>) outs(%e : tensor<6x8xf32>) {
  ^bb0(%id: i32, %out: f32):
    %row = arith.index_cast %id : i32 to index
    %column = linalg.index 1 : index
    %v = tensor.extract %table[%row, %column] : tensor<11x8xf32> loc("embed"("model.py":7:3))
    linalg.yield %v : f32
  } -> tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}

func.func @two_tables(%ids: tensor<6xi64> loc("ids"), %order: tensor<9xi64> loc("order"), %table: tensor<4x?xf32> loc("table"),
                      %columns: tensor<?xi64> loc("columns")) -> tensor<6x?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %columns, %c0 : tensor<?xi64>
  %e = tensor.empty(%n) : tensor<6x?xf32>
  %y = linalg.generic {indexing_maps = [#ids, #row, #both], iterator_types = ["parallel", "parallel"]}
      ins(%ids, %columns : tensor<6xi64>, tensor<?xi64>) outs(%e : tensor<6x?xf32>) {
  ^bb0(%id: i64, %c: i64, %out: f32):
    %place = arith.index_cast %id : i64 to index
    %row64 = tensor.extract %order[%place] : tensor<9xi64>
    %row = arith.index_cast %row64 : i64 to index
    %column = arith.index_cast %c : i64 to index
    %v = tensor.extract %table[%row, %column] : tensor<4x?xf32>
    linalg.yield %v : f32
  } -> tensor<6x?xf32>
  return %y : tensor<6x?xf32>
}

func.func @where(%ids: tensor<6xi64> loc("ids"), %table: tensor<5xf32>) -> tensor<6xf32> {
  %zero = arith.constant 0 : i64
  %ten = arith.constant 10 : i64
  %none = arith.constant -1.0 : f32
  %e = tensor.empty() : tensor<6xf32>
  %y = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel"]}
      ins(%ids : tensor<6xi64>) outs(%e : tensor<6xf32>) {
  ^bb0(%id: i64, %out: f32):
    %some = arith.cmpi sge, %id, %zero : i64
    %v = scf.if %some -> f32 {
      %less = arith.cmpi slt, %id, %ten : i64
      %w = scf.if %less -> f32 {
        %i = arith.index_cast %id : i64 to index
        %u = tensor.extract %table[%i] : tensor<5xf32>
        scf.yield %u : f32
      } else {
        scf.yield %none : f32
      }
      scf.yield %w : f32
    } else {
      scf.yield %none : f32
    }
    linalg.yield %v : f32
  } -> tensor<6xf32>
  return %y : tensor<6xf32>
}

func.func @generated(%ids: tensor<6xi64> loc("ids"), %table: tensor<5xf32>) -> tensor<6xf32> {
  %y = tensor.generate {
  ^bb0(%i: index):
    %id = tensor.extract %ids[%i] : tensor<6xi64>
    %j = arith.index_cast %id : i64 to index
    %v = tensor.extract %table[%j] : tensor<5xf32>
    tensor.yield %v : f32
  } : tensor<6xf32>
  return %y : tensor<6xf32>
}

func.func @slice(%x: tensor<5x3xf32> loc("x"), %first: tensor<i32> loc("first")) -> tensor<2x3xf32> {
  %i32 = tensor.extract %first[] : tensor<i32>
  %i = arith.index_cast %i32 : i32 to index
  %s = tensor.extract_slice %x[%i, 0] [2, 3] [1, 1] : tensor<5x3xf32> to tensor<2x3xf32>
  return %s : tensor<2x3xf32>
}

func.func @update(%x: tensor<5x3xf32> loc("x"), %rows: tensor<2x3xf32>, %first: tensor<4xi32> loc("first")) -> tensor<5x3xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %y = scf.for %k = %c0 to %c4 step %c1 iter_args(%a = %x) -> tensor<5x3xf32> {
    %i32 = tensor.extract %first[%k] : tensor<4xi32>
    %i = arith.index_cast %i32 : i32 to index
    %s = tensor.insert_slice %rows into %a[%i, 0] [2, 3] [1, 1] : tensor<2x3xf32> into tensor<5x3xf32>
    scf.yield %s : tensor<5x3xf32>
  }
  return %y : tensor<5x3xf32>
}

func.func @element(%x: tensor<5xf32>, %place: tensor<i64> loc("place"), %v: tensor<f32>) -> (tensor<f32>, tensor<5xf32>) {
  %i64 = tensor.extract %place[] : tensor<i64>
  %i = arith.index_cast %i64 : i64 to index
  %old = tensor.extract %x[%i] : tensor<5xf32>
  %new = tensor.extract %v[] : tensor<f32>
  %y = tensor.insert %new into %x[%i] : tensor<5xf32>
  %t = tensor.from_elements %old : tensor<f32>
  return %t, %y : tensor<f32>, tensor<5xf32>
}
"""


@pytest.fixture(scope="module")
def program(bin_dir, tmp_path_factory):
    return Program(bin_dir, tmp_path_factory.mktemp("indices"), PROGRAM, "--recipe=none")


def error_of(program, entry, *inputs):
    """The one line in which a step that must fail says why."""
    save(program.folder / "inputs", {str(i): np.asarray(a) for i, a in enumerate(inputs)})
    done = subprocess.run([program.bin_dir / "fp8-run", program.library, f"--inputs={program.folder / 'inputs'}",
                           f"--entry={entry}"], capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), (done.returncode, done.stderr)
    return done.stderr


TABLE = random_generator(70).standard_normal([11, 8]).astype(F32)


def test_rows_of_a_table(program):
    ids = np.array([3, 0, 10, 10, 7, 1], np.int32)
    (got,) = program.call("embedding", ids, TABLE)
    assert_same_bits(got, TABLE[ids])


@pytest.mark.parametrize("wrong", [11, -1, 2**31 - 1, -(2**31)])
def test_a_token_beyond_the_vocabulary(program, wrong):
    error = error_of(program, "embedding", np.array([3, 0, 10, 10, 7, wrong], np.int32), TABLE)
    assert "an index is outside of dimension 0 of argument 1 'table', of size 11; it follows from argument 0 'ids'" in error
    assert "(embed (model.py:7:3))" in error


def test_an_index_that_is_looked_up(program):
    ids, order, columns = np.array([8, 0, 3, 3, 1, 2]), np.array([3, 2, 1, 0, 0, 1, 2, 3, 3]), np.array([2, 0, 1, 1])
    table = TABLE[:4, :3].copy()
    (got,) = program.call("two_tables", ids, order, table, columns)
    assert_same_bits(got, table[order[ids]][:, columns])
    error = error_of(program, "two_tables", ids + 1, order, table, columns)
    assert "an index is outside of dimension 0 of argument 1 'order', of size 9; it follows from argument 0 'ids'" in error
    error = error_of(program, "two_tables", ids, order - 1, table, columns)
    assert "outside of dimension 0 of argument 2 'table', of size 4; it follows from argument 0 'ids', argument 1 'order'" in error
    error = error_of(program, "two_tables", ids, order, table, columns + 1)
    assert "an index is outside of dimension 1 of argument 2 'table'; it follows from argument 3 'columns'" in error
    (got,) = program.call("two_tables", ids, order, table[:, :0].copy(), columns[:0].copy())
    assert got.shape == (6, 0)


def test_what_a_branch_leaves_out_may_be_anything(program):
    table = TABLE[0, :5].copy()
    (got,) = program.call("where", np.array([0, 4, -1, -(2**63), 10, 2**63 - 1]), table)
    assert_same_bits(got, np.array([table[0], table[4], -1, -1, -1, -1], F32))
    assert "it follows from argument 0 'ids'" in error_of(program, "where", np.array([0, 4, 5, -1, -1, -1]), table)


def test_generated_elements(program):
    table, ids = TABLE[0, :5].copy(), np.array([0, 4, 1, 1, 3, 2])
    (got,) = program.call("generated", ids, table)
    assert_same_bits(got, table[ids])
    assert "it follows from argument 0 'ids'" in error_of(program, "generated", ids + 1, table)


def test_slices(program):
    x = TABLE[:5, :3].copy()
    for first in range(4):
        (got,) = program.call("slice", x, np.array(first, np.int32))
        assert_same_bits(got, x[first : first + 2])
    for first in (4, 5, -1, 2**31 - 1, -(2**31)):
        error = error_of(program, "slice", x, np.array(first, np.int32))
        assert "a slice is outside of dimension 0 of argument 0 'x', of size 5; it follows from argument 1 'first'" in error


def test_updates_in_a_loop(program):
    x, rows = TABLE[:5, :3].copy(), TABLE[5:7, :3].copy()
    expected = x.copy()
    for first in (3, 0, 2, 2):
        expected[first : first + 2] = rows
    (got,) = program.call("update", x, rows, np.array([3, 0, 2, 2], np.int32))
    assert_same_bits(got, expected)
    assert "argument 2 'first'" in error_of(program, "update", x, rows, np.array([3, 0, 2, 4], np.int32))


@pytest.mark.parametrize("wrong", [5, -1, 2**63 - 1, -(2**63)])
def test_single_elements(program, wrong):
    x = TABLE[0, :5].copy()
    old, new = program.call("element", x, np.array(4), np.array(2, F32))
    assert old == x[4] and new[4] == 2
    assert "argument 1 'place'" in error_of(program, "element", x, np.array(wrong), np.array(2, F32))
