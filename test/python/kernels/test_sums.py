# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Float sums are taken in the order of the program, also where their addends are computed as vectors first:
results have the bits of numpy's running sums."""
import numpy as np
import pytest

from harness import F32, Program, assert_same_bits, random_generator, tensor_type


def run_sums(terms, axis):
    """Sums along `axis` in f32, from 0 in the order of the elements."""
    zero = np.zeros_like(np.take(terms, [0], axis=axis))
    return np.take(np.cumsum(np.concatenate([zero, terms], axis), axis=axis, dtype=F32), -1, axis=axis)


def generic(name, ins, outs, types, maps, iterators, body):
    arguments = ", ".join(f"%in{i}: f32" for i in range(len(ins)))
    sums = ", ".join(f"%out{i}: f32" for i in range(len(outs)))
    return f"""
    {name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}}
        ins({', '.join(ins)} : {', '.join(types[:len(ins)])}) outs({', '.join(outs)} : {', '.join(types[len(ins):])}) {{
    ^bb0({arguments}, {sums}):
      {body}
    }} -> {', '.join(types[len(ins):]) if len(outs) == 1 else '(' + ', '.join(types[len(ins):]) + ')'}"""


DISTANCE = """%d = arith.subf %in0, %in1 : f32
      %square = arith.mulf %d, %d : f32
      %sum = arith.addf %out0, %square : f32
      linalg.yield %sum : f32"""

# More terms than a chunk of addends, a last chunk that is shorter, one chunk, one term, and none.
SIZES = [3000, 2048, 131, 1, 0]


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("size", SIZES)
def test_total(bin_dir, tmp_path, size, dynamic):
    shape = (3, size)
    type = "tensor<?x?xf32>" if dynamic else tensor_type(shape, F32)
    code = generic("%s", ["%x", "%y"], ["%zero"], [type, type, "tensor<f32>"],
                   "affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>", '"reduction", "reduction"',
                   DISTANCE)
    program = f"""func.func @main(%x: {type}, %y: {type}) -> tensor<f32> {{
    %zero = arith.constant dense<0.0> : tensor<f32>{code}
    return %s : tensor<f32>
    }}"""
    rng = random_generator(45, size, dynamic)
    x, y = (rng.standard_normal(shape).astype(F32) for _ in range(2))
    (total,) = Program(bin_dir, tmp_path, program, "--recipe=none").call("main", x, y)
    terms = ((x - y) * (x - y)).reshape(-1)
    assert_same_bits(total, run_sums(terms, 0) if size else F32.type(0))


@pytest.mark.parametrize("rows", [3, 8, 500])
@pytest.mark.parametrize("size", SIZES)
def test_two_sums_of_a_row(bin_dir, tmp_path, rows, size):
    full, line = tensor_type((rows, size), F32), tensor_type((rows,), F32)
    body = """%product = arith.mulf %in0, %in1 : f32
      %next = arith.addf %product, %out0 : f32
      %square = arith.mulf %in0, %in0 : f32
      %both = arith.addf %square, %in1 : f32
      %other = arith.addf %out1, %both : f32
      linalg.yield %next, %other : f32, f32"""
    maps = ", ".join(["affine_map<(i, j) -> (i, j)>"] * 2 + ["affine_map<(i, j) -> (i)>"] * 2)
    code = generic("%s:2", ["%x", "%y"], ["%z", "%z"], [full, full, line, line], maps, '"parallel", "reduction"', body)
    program = f"""func.func @main(%x: {full}, %y: {full}) -> ({line}, {line}) {{
    %z = arith.constant dense<0.0> : {line}{code}
    return %s#0, %s#1 : {line}, {line}
    }}"""
    rng = random_generator(46, rows, size)
    x, y = (rng.standard_normal((rows, size)).astype(F32) for _ in range(2))
    results = Program(bin_dir, tmp_path, program, "--recipe=none").call("main", x, y)
    for actual, terms in zip(results, [x * y, x * x + y], strict=True):
        assert_same_bits(actual, run_sums(terms, 1) if size else np.zeros(rows, F32))


def test_a_sum_beside_its_terms(bin_dir, tmp_path):
    """A loop that stores what it adds, in place: the store stays in front of the loads of the next chunk."""
    full = tensor_type((2500,), F32)
    body = """%double = arith.addf %in0, %in0 : f32
      %square = arith.mulf %double, %double : f32
      %sum = arith.addf %out1, %square : f32
      linalg.yield %double, %sum : f32, f32"""
    code = generic("%s:2", ["%x"], ["%e", "%zero"], [full, full, "tensor<f32>"],
                   "affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> ()>", '"reduction"', body)
    program = f"""func.func @main(%x: {full}) -> ({full}, tensor<f32>) {{
    %zero = arith.constant dense<0.0> : tensor<f32>
    %e = tensor.empty() : {full}{code}
    return %s#0, %s#1 : {full}, tensor<f32>
    }}"""
    x = random_generator(47).standard_normal(2500).astype(F32)
    double, total = Program(bin_dir, tmp_path, program, "--recipe=none").call("main", x)
    assert_same_bits(double, x + x)
    assert_same_bits(total, run_sums((x + x) * (x + x), 0))


def test_a_sum_that_its_terms_read_through_a_slice(bin_dir, tmp_path):
    """Each term depends on the sum so far, so the terms cannot be computed first."""
    program = """func.func @main(%t: tensor<8xf32>, %x: tensor<50xf32>, %o: tensor<i32>) -> tensor<8xf32> {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c50 = arith.constant 50 : index
      %number = tensor.extract %o[] : tensor<i32>
      %offset = arith.index_cast %number : i32 to index
      %r = scf.for %i = %c0 to %c50 step %c1 iter_args(%u = %t) -> (tensor<8xf32>) {
        %factor = tensor.extract %x[%i] : tensor<50xf32>
        %slice = tensor.extract_slice %u[%offset] [4] [1] : tensor<8xf32> to tensor<4xf32>
        %seen = tensor.extract %slice[%c0] : tensor<4xf32>
        %square = arith.mulf %seen, %seen : f32
        %term = arith.mulf %square, %factor : f32
        %old = tensor.extract %u[%c1] : tensor<8xf32>
        %new = arith.addf %old, %term : f32
        %next = tensor.insert %new into %u[%c1] : tensor<8xf32>
        scf.yield %next : tensor<8xf32>
      }
      return %r : tensor<8xf32>
    }"""
    rng = random_generator(48)
    t, x = rng.standard_normal(8).astype(F32), (rng.standard_normal(50) / 8).astype(F32)
    (result,) = Program(bin_dir, tmp_path, program, "--recipe=none").call("main", t, x, np.int32(1))
    for factor in x:
        t[1] += t[1] * t[1] * factor
    assert_same_bits(result, t)
