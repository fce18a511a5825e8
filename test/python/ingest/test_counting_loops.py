# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops that count become scf.for if the result is the same loop: with the first value below, at and
beyond the end, and with every type of a counter."""
import itertools

import numpy as np
import pytest

from harness import Program

# Element k of the result counts how often the counter was k; then the counter's last value.
PROGRAM = """
func.func @main(%first: tensor<TYPE>, %end: tensor<TYPE>) -> (tensor<40xi32>, tensor<i64>) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %step = arith.constant STEP : TYPE
  %e = tensor.empty() : tensor<40xi32>
  %none = linalg.fill ins(%zero : i32) outs(%e : tensor<40xi32>) -> tensor<40xi32>
  %f = tensor.extract %first[] : tensor<TYPE>
  %r:2 = scf.while (%i = %f, %a = %none) : (TYPE, tensor<40xi32>) -> (TYPE, tensor<40xi32>) {
    %n = tensor.extract %end[] : tensor<TYPE>
    %more = arith.cmpi PREDICATE, %i, %n : TYPE
    scf.condition(%more) %i, %a : TYPE, tensor<40xi32>
  } do {
  ^bb0(%i: TYPE, %a: tensor<40xi32>):
    %k = arith.index_cast %i : TYPE to index
    %old = tensor.extract %a[%k] : tensor<40xi32>
    %new = arith.addi %old, %one : i32
    %b = tensor.insert %new into %a[%k] : tensor<40xi32>
    %next = arith.addi %i, %step : TYPE
    scf.yield %next, %b : TYPE, tensor<40xi32>
  }
  %last = WIDEN
  %t = tensor.from_elements %last : tensor<i64>
  return %r#1, %t : tensor<40xi32>, tensor<i64>
}
"""
COMPARE = {"slt": np.less, "sle": np.less_equal, "ult": np.less, "ule": np.less_equal}


@pytest.mark.parametrize("name, dtype, predicate, step, counts", [
    ("i32", np.int32, "slt", 1, True),
    ("i32", np.int32, "slt", 3, False),  # INT_MAX may be the end
    ("i32", np.int32, "ult", 1, True),
    ("i64", np.int64, "slt", 1, True),
    ("i64", np.int64, "sle", 1, False),
    ("i64", np.int64, "ult", 1, False),  # an index has a sign
])
def test_ends(name, dtype, predicate, step, counts, bin_dir, tmp_path, run):
    widen = f"arith.extsi %r#0 : {name} to i64" if name == "i32" else "arith.addi %r#0, %z : i64"
    text = PROGRAM.replace("WIDEN", widen).replace("TYPE", name).replace("STEP", str(step)).replace("PREDICATE", predicate)
    text = text.replace("  %zero =", "  %z = arith.constant 0 : i64\n  %zero =", 1)
    program = Program(bin_dir, tmp_path, text, "--recipe=none")
    ir = run("fp8-compile", program.source, "-o", "-", "--emit=ingest", "--recipe=none").stdout
    assert ("scf.for" in ir, "scf.while" in ir) == (counts, not counts)
    for first, end in itertools.product([0, 1, 5], [0, 1, 4, 6, 30]):
        i, expected = first, np.zeros(40, np.int32)
        while COMPARE[predicate](i, end):
            expected[i] += 1
            i += step
        seen, last = program.call("main", np.array(first, dtype), np.array(end, dtype))
        np.testing.assert_array_equal(seen, expected)
        assert last == i


def test_the_loops_of_a_scan_count(run, source_dir):
    for name in ("scan", "fori", "jitted", "checkpoint"):
        ir = run("fp8-compile", source_dir / f"test/python/steps/same_step/{name}.mlir", "-o", "-", "--emit=ingest").stdout
        assert "scf.for" in ir and "scf.while" not in ir, name
