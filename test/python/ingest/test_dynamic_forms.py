# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Forms of programs with dynamic sizes: carried arguments, control flow, slices, memory that is not there."""

import numpy as np
import pytest
from test_dynamic_shapes import error_of

from harness import F32, Program, assert_same_bits, load

FORMS = """
func.func @carried(%w: tensor<?xf32> {tf.aliasing_output = 0 : i32} loc("w"), %x: tensor<?xf32> loc("x"))
    -> (tensor<?xf32>, tensor<?xf32>) {
  %next = arith.addf %w, %x : tensor<?xf32>
  return %next, %w : tensor<?xf32>, tensor<?xf32>
}
func.func @grows(%w: tensor<?xf32> {tf.aliasing_output = 0 : i32} loc("w")) -> tensor<?xf32> {
  %twice = tensor.concat dim(0) %w, %w : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %twice : tensor<?xf32>
}
func.func @same_twice(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<4xf32>) {
  %y = arith.negf %x : tensor<?xf32>
  %four = tensor.cast %y : tensor<?xf32> to tensor<4xf32>
  return %y, %y, %x, %four : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<4xf32>
}
func.func @loop(%x: tensor<?xf32>, %n64: i64) -> tensor<?xf32> {
  %n = arith.index_cast %n64 : i64 to index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<?xf32> {
    %b = arith.addf %a, %x : tensor<?xf32>
    scf.yield %b : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}
func.func @while(%x: tensor<?xf32>, %n: tensor<i32>) -> tensor<?xf32> {
  %one = arith.constant 1 : i32
  %start = arith.constant 0 : i32
  %stop = tensor.extract %n[] : tensor<i32>
  %r:2 = scf.while (%i = %start, %a = %x) : (i32, tensor<?xf32>) -> (i32, tensor<?xf32>) {
    %more = arith.cmpi slt, %i, %stop : i32
    scf.condition(%more) %i, %a : i32, tensor<?xf32>
  } do {
  ^bb0(%i: i32, %a: tensor<?xf32>):
    %next = arith.addi %i, %one : i32
    %b = arith.addf %a, %a : tensor<?xf32>
    scf.yield %next, %b : i32, tensor<?xf32>
  }
  return %r#1 : tensor<?xf32>
}
func.func @branch(%x: tensor<?xf32>, %flag: tensor<i1>) -> tensor<?xf32> {
  %yes = tensor.extract %flag[] : tensor<i1>
  %r = scf.if %yes -> tensor<?xf32> {
    %twice = tensor.concat dim(0) %x, %x : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    scf.yield %twice : tensor<?xf32>
  } else {
    scf.yield %x : tensor<?xf32>
  }
  %y = arith.addf %r, %r : tensor<?xf32>
  return %y : tensor<?xf32>
}
func.func @slice(%x: tensor<?x3xf32>, %first64: i64, %count64: i64) -> tensor<?x3xf32> {
  %first = arith.index_cast %first64 : i64 to index
  %count = arith.index_cast %count64 : i64 to index
  %s = tensor.extract_slice %x[%first, 0] [%count, 3] [1, 1] : tensor<?x3xf32> to tensor<?x3xf32>
  return %s : tensor<?x3xf32>
}
func.func @element(%x: tensor<?xf32>, %i64: i64) -> f32 {
  %i = arith.index_cast %i64 : i64 to index
  %v = tensor.extract %x[%i] : tensor<?xf32>
  return %v : f32
}
func.func @huge(%x: tensor<?x0xf32> loc("x")) -> tensor<f32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x0xf32>
  %one = arith.constant 1.0 : f32
  %e = tensor.empty(%n, %n) : tensor<?x?xf32>
  %y = linalg.fill ins(%one : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %zero = arith.constant dense<0.0> : tensor<f32>
  %z = linalg.reduce { arith.addf } ins(%y : tensor<?x?xf32>) outs(%zero : tensor<f32>) dimensions = [0, 1]
  return %z : tensor<f32>
}
func.func @of_data(%n: tensor<i64>) -> tensor<?xf32> {
  %size = tensor.extract %n[] : tensor<i64>
  %count = arith.index_cast %size : i64 to index
  %one = arith.constant 1.0 : f32
  %e = tensor.empty(%count) : tensor<?xf32>
  %y = linalg.fill ins(%one : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %y : tensor<?xf32>
}
func.func @mean_of_rows(%x: tensor<?x?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %z = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<?xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.reduce { arith.addf } ins(%x : tensor<?x?xf32>) outs(%f : tensor<?xf32>) dimensions = [1]
  return %s : tensor<?xf32>
}
"""


@pytest.fixture(scope="module")
def forms(bin_dir, tmp_path_factory):
    return Program(bin_dir, tmp_path_factory.mktemp("forms"), FORMS, "--recipe=none")


RAMPS = [np.arange(n, dtype=F32) for n in (4, 0, 9)]


@pytest.mark.parametrize("x", RAMPS, ids=len)
def test_carried_argument_keeps_its_size(forms, x):
    forms.run("carried", [x, x], "--steps=3", f"--outputs={forms.folder / 'outputs'}")
    results = load(forms.folder / "outputs")
    assert_same_bits(results["0"], 4 * x)
    assert_same_bits(results["1"], 3 * x)


def test_carried_argument_of_another_size(forms):
    assert "argument 1 'x': size 0 must be size 0 of argument 0 'w'" in error_of(forms, "carried", RAMPS[0], RAMPS[2])
    assert "result 0 has another size than argument 0 'w', which becomes it" in error_of(forms, "grows", RAMPS[0])
    assert_same_bits(forms.call("grows", RAMPS[1])[0], RAMPS[1])


def test_results_that_share_a_value(forms):
    first, second, x, four = forms.call("same_twice", RAMPS[0])
    for result in (first, second, four):
        assert_same_bits(result, -RAMPS[0])
    assert_same_bits(x, RAMPS[0])
    assert "argument 0 'arg0': size 0 must be 4" in error_of(forms, "same_twice", RAMPS[2])


@pytest.mark.parametrize("x", RAMPS, ids=len)
def test_control_flow(forms, x):
    assert_same_bits(forms.call("loop", x, np.int64(3))[0], 4 * x)
    assert_same_bits(forms.call("while", x, np.int32(3))[0], 8 * x)
    assert_same_bits(forms.call("branch", x, np.bool_(False))[0], 2 * x)
    assert_same_bits(forms.call("branch", x, np.bool_(True))[0], np.tile(2 * x, 2))


def test_slices_and_elements_stay_within(forms):
    x = np.arange(15, dtype=F32).reshape(5, 3)
    for first, count in [(0, 5), (1, 3), (5, 0), (0, 0)]:
        assert_same_bits(forms.call("slice", x, np.int64(first), np.int64(count))[0], x[first : first + count])
    for first, count in [(-1, 2), (1, 5), (6, 0), (0, -1), (2**62, 2**62)]:
        assert "a slice is outside of dimension 0 of argument 0 'arg0'" in error_of(forms, "slice", x, np.int64(first), np.int64(count))
    assert_same_bits(forms.call("element", RAMPS[2], np.int64(8))[0], np.float32(8))
    for index in (9, -1):
        assert "an index is outside of dimension 0 of argument 0 'arg0'" in error_of(forms, "element", RAMPS[2], np.int64(index))


def test_memory_that_is_not_there(forms):
    """No elements, so that the argument itself can have any number of rows."""
    assert_same_bits(forms.call("huge", np.zeros([3, 0], F32))[0], np.float32(9))
    for rows in (2**31, 2**40):  # 2**80 elements do not even count
        assert "out of memory for a temporary" in error_of(forms, "huge", np.zeros([rows, 0], F32))


def test_size_of_data(forms):
    for n in (0, 6):
        assert_same_bits(forms.call("of_data", np.int64(n))[0], np.ones(n, F32))
    assert "no memory for result 0" in error_of(forms, "of_data", np.int64(-1))


def test_reductions_of_nothing(forms):
    for rows, columns in [(3, 4), (0, 4), (3, 0)]:
        x = np.arange(rows * columns, dtype=F32).reshape(rows, columns)
        assert_same_bits(forms.call("mean_of_rows", x)[0], x.sum(1))
