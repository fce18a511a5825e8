# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fusion of other code than arithmetic into products: the amax of their result, and transposes of operands.

`test_fusion.py` compares random programs; these tests also count the remaining memory traffic.
"""
import json
import re
import subprocess

import numpy as np
import pytest
from test_fusion import cast, function

import reference
from harness import BF16, E4M3, F32, Program, assert_same_bits, random_generator, tensor_type

MAPS = "indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]"


def compile_one(bin_dir, folder, program):
    """The program, its traffic and its IR after stage 3."""
    report = folder / "report.json"
    compiled = Program(bin_dir, folder, program, "--recipe=none", f"--report=json:{report}")
    ir = subprocess.run([bin_dir / "fp8-compile", compiled.source, "-o", "-", "--emit=fusion", "--recipe=none"],
                        capture_output=True, text=True, check=True).stdout
    return compiled, json.loads(report.read_text())["memory"]["traffic"][0], ir


def product(kind, lhs, rhs, out):
    """%y, of %a and %b."""
    ins = f"ins(%a, %b : {lhs}, {rhs})"
    if kind == "scaled":
        return f"""
  %one = arith.constant dense<1.0> : tensor<f32>
  %y = fp8.scaled_matmul fast {ins} scales(%one, %one : tensor<f32>, tensor<f32>) outs(%e : {out}) {{{MAPS}}} -> {out}"""
    return f"""
  %none = arith.constant 0.0 : bf16
  %f = linalg.fill ins(%none : bf16) outs(%e : {out}) -> {out}
  %y = linalg.matmul {ins} outs(%f : {out}) -> {out}"""


@pytest.mark.parametrize("shape", [(6, 16, 8), (1, 1, 1), (300, 70, 200), (0, 3, 5)], ids=str)
@pytest.mark.parametrize("kind", ["scaled", "kept"])
def test_a_product_takes_the_amax_of_its_result(bin_dir, tmp_path, kind, shape):
    """Current scaling reads the result once, to cast it: the amax costs no second read."""
    m, k, n = shape
    rng = random_generator(51, m)
    dtype = E4M3 if kind == "scaled" else BF16
    a, b = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)
    lhs, rhs, out = (tensor_type(s, d) for s, d in (((m, k), dtype), ((k, n), dtype), ((m, n), BF16)))
    text = f"""
  %e = tensor.empty() : {out}""" + product(kind, lhs, rhs, out) + cast("%y", out, (m, n), E4M3, True)
    results = [("%q", tensor_type((m, n), E4M3)), ("%i", "tensor<f32>"), ("%own", "tensor<f32>"), ("%y", out)]
    program = function("main", [("%a", lhs), ("%b", rhs), ("%s", "tensor<f32>")], text, results)
    compiled, traffic, ir = compile_one(bin_dir, tmp_path, program)
    assert "record_amax" in ir and "fp8.amax" not in ir
    assert traffic["before_fusion"]["read"] - traffic["after_fusion"]["read"] == 2 * m * n
    assert traffic["after_fusion"]["written"] <= traffic["before_fusion"]["written"]

    data, scale_inv, amax, y = compiled.call("main", a, b, np.float32(1))
    expected = reference.dot(a, b.T).astype(BF16)
    assert_same_bits(y, expected)
    largest = np.float32(np.abs(expected.astype(F32)).max(initial=0))
    assert_same_bits(amax, largest)
    scale = np.float32(448) / largest if largest else np.float32(1)
    assert_same_bits(scale_inv, np.float32(1) / scale)
    assert_same_bits(data, np.clip(expected.astype(F32) * scale, -448, 448).astype(E4M3))


@pytest.mark.parametrize("form", ["linalg.transpose", "linalg.generic"])
def test_transposed_bytes_are_read_where_they_lie(bin_dir, tmp_path, form):
    """A transposed copy of FP8 bytes that two products share is not made."""
    m, k, n = 7, 40, 19
    rng = random_generator(52)
    a, w = rng.standard_normal((m, k)).astype(E4M3), rng.standard_normal((n, k)).astype(E4M3)
    lhs, stored, rhs, out = (tensor_type(s, d) for s, d in (((m, k), E4M3), ((n, k), E4M3), ((k, n), E4M3), ((m, n), BF16)))
    if form == "linalg.transpose":
        turn = f"%b = linalg.transpose ins(%w : {stored}) outs(%t : {rhs}) permutation = [1, 0]"
    else:
        turn = f"""%b = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}} ins(%w : {stored}) outs(%t : {rhs}) {{
  ^bb0(%in: f8E4M3FN, %old: f8E4M3FN):
    linalg.yield %in : f8E4M3FN
  }} -> {rhs}"""
    text = f"""
  %e = tensor.empty() : {out}
  %t = tensor.empty() : {rhs}
  %one = arith.constant dense<1.0> : tensor<f32>
  %two = arith.constant dense<2.0> : tensor<f32>
  {turn}""" + "".join(f"""
  {name} = fp8.scaled_matmul fast ins(%a, %b : {lhs}, {rhs}) scales(%one, {scale} : tensor<f32>, tensor<f32>) outs(%e : {out}) {{{MAPS}}} -> {out}"""
                      for name, scale in (("%y", "%one"), ("%z", "%two")))
    program = function("main", [("%a", lhs), ("%w", stored)], text, [("%y", out), ("%z", out)])
    compiled, traffic, ir = compile_one(bin_dir, tmp_path, program)
    assert "linalg" not in ir
    # The bytes that the copy read and wrote; two reads of it stay two reads.
    assert traffic["before_fusion"]["read"] - traffic["after_fusion"]["read"] == n * k
    assert traffic["before_fusion"]["written"] - traffic["after_fusion"]["written"] == n * k
    y, z = compiled.call("main", a, w)
    expected = reference.dot(a, w)
    assert_same_bits(y, expected.astype(BF16))
    assert_same_bits(z, (expected * np.float32(2)).astype(BF16))


def test_named_operations_fuse(bin_dir, tmp_path):
    """linalg.broadcast, add, map, exp and transpose around a cast are all in its region."""
    shape, t = (5, 9), tensor_type((5, 9), F32)
    rng = random_generator(53)
    x, b = rng.standard_normal((9, 5)).astype(F32), rng.standard_normal(9).astype(F32)
    text = f"""
  %e = tensor.empty() : {t}
  %xt = linalg.transpose ins(%x : tensor<9x5xf32>) outs(%e : {t}) permutation = [1, 0]
  %wide = linalg.broadcast ins(%b : tensor<9xf32>) outs(%e : {t}) dimensions = [0]
  %sum = linalg.add ins(%xt, %wide : {t}, {t}) outs(%e : {t}) -> {t}
  %neg = linalg.map {{ arith.negf }} ins(%sum : {t}) outs(%e : {t})
  %v = linalg.abs ins(%neg : {t}) outs(%e : {t}) -> {t}""" + cast("%v", t, shape, E4M3, False)
    results = [("%q", tensor_type(shape, E4M3)), ("%i", "tensor<f32>"), ("%amax", "tensor<f32>")]
    program = function("main", [("%x", "tensor<9x5xf32>"), ("%b", "tensor<9xf32>"), ("%s", "tensor<f32>")], text, results)
    compiled, traffic, ir = compile_one(bin_dir, tmp_path, program)
    assert "linalg" not in ir
    assert traffic["after_fusion"] == {"read": 45 * 4 + 9 * 4 + 4, "written": 45 + 8}
    data, _, amax = compiled.call("main", x, b, np.float32(16))
    expected = np.abs(-(x.T + b))
    assert_same_bits(amax, np.float32(expected.max()))
    assert_same_bits(data, np.clip(expected * np.float32(16), -448, 448).astype(E4M3))


RESHAPES = {
    "collapsed": ("2x3x", "6x", "tensor.collapse_shape %y [[0, 1], [2]] : {out} into {read}", (6, 8)),
    "expanded": ("6x", "2x3x", "tensor.expand_shape %y [[0, 1], [2]] output_shape [2, 3, 8] : {out} into {read}", (2, 3, 8)),
}


@pytest.mark.parametrize("form", RESHAPES)
@pytest.mark.parametrize("current", [False, True], ids=["known_scale", "own_scale"])
def test_readers_fuse_through_reshapes(bin_dir, tmp_path, current, form):
    """A product whose bias and cast read it with other dimensions: all in one operation."""
    lead, other, reshape, shape = RESHAPES[form]
    rng = random_generator(54)
    a, b, bias = rng.standard_normal((6, 16)).astype(E4M3), rng.standard_normal((16, 8)).astype(E4M3), rng.standard_normal(8).astype(BF16)
    lhs, out, read = f"tensor<{lead}16xf8E4M3FN>", f"tensor<{lead}8xbf16>", f"tensor<{other}8xbf16>"
    m, i = ", ".join("bm"[: lead.count("x")]), ", ".join("ih"[: other.count("x")])
    maps = f"indexing_maps = [affine_map<({m}, n, k) -> ({m}, k)>, affine_map<({m}, n, k) -> (k, n)>, affine_map<({m}, n, k) -> ({m}, n)>]"
    loops = ", ".join(['"parallel"'] * len(shape))
    text = f"""
  %e = tensor.empty() : {out}
  %fe = tensor.empty() : {read}
  %one = arith.constant dense<1.0> : tensor<f32>
  %y = fp8.scaled_matmul fast ins(%a, %b : {lhs}, tensor<16x8xf8E4M3FN>) scales(%one, %one : tensor<f32>, tensor<f32>) outs(%e : {out}) {{{maps}}} -> {out}
  %f = {reshape.format(out=out, read=read)}
  %z = linalg.generic {{indexing_maps = [affine_map<({i}, j) -> ({i}, j)>, affine_map<({i}, j) -> (j)>, affine_map<({i}, j) -> ({i}, j)>], iterator_types = [{loops}]}}
      ins(%f, %bias : {read}, tensor<8xbf16>) outs(%fe : {read}) {{
  ^bb0(%v: bf16, %c: bf16, %old: bf16):
    %r = arith.addf %v, %c : bf16
    linalg.yield %r : bf16
  }} -> {read}""" + cast("%z", read, shape, E4M3, current)
    results = [("%q", tensor_type(shape, E4M3)), ("%i", "tensor<f32>")]
    arguments = [("%a", lhs), ("%b", "tensor<16x8xf8E4M3FN>"), ("%bias", "tensor<8xbf16>"), ("%s", "tensor<f32>")]
    compiled, traffic, ir = compile_one(bin_dir, tmp_path, function("main", arguments, text, results))
    assert "linalg" not in ir and "fp8.amax" not in ir
    # Without the reads of y, and of z by its cast or, with current scaling, by its amax.
    assert traffic["before_fusion"]["read"] - traffic["after_fusion"]["read"] == 2 * 48 * 2

    data, scale_inv = compiled.call("main", a.reshape(*map(int, lead.split("x")[:-1]), 16), b, bias, np.float32(4))
    product = reference.dot(a, b.T).astype(BF16)
    z = (product.astype(F32) + bias.astype(F32)).astype(BF16).astype(F32)
    scale = np.float32(448) / np.abs(z).max() if current else np.float32(4)
    assert_same_bits(scale_inv, np.float32(1) / scale)
    assert_same_bits(data, np.clip(z * scale, -448, 448).astype(E4M3).reshape(shape))


@pytest.mark.parametrize("current", [False, True], ids=["known_scale", "own_scale"])
def test_the_result_that_is_cast_comes_first(bin_dir, tmp_path, current):
    """A gradient that is cast, and added to another: the sum is the extra result, not the one with the amax."""
    rng = random_generator(56)
    m, k, n = 6, 16, 8
    a, b = rng.standard_normal((m, k)).astype(E4M3), rng.standard_normal((k, n)).astype(E4M3)
    other = rng.standard_normal((m, n)).astype(F32)
    lhs, rhs, out, wide = (tensor_type(s, d) for s, d in (((m, k), E4M3), ((k, n), E4M3), ((m, n), BF16), ((m, n), F32)))
    text = f"""
  %e = tensor.empty() : {out}
  %we = tensor.empty() : {wide}""" + product("scaled", lhs, rhs, out) + f"""
  %z = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
      ins(%y, %c : {out}, {wide}) outs(%we : {wide}) {{
  ^bb0(%v: bf16, %d: f32, %old: f32):
    %w = arith.extf %v : bf16 to f32
    %r = arith.addf %w, %d : f32
    linalg.yield %r : f32
  }} -> {wide}""" + cast("%y", out, (m, n), E4M3, current)
    results = [("%q", tensor_type((m, n), E4M3)), ("%i", "tensor<f32>"), ("%z", wide)]
    arguments = [("%a", lhs), ("%b", rhs), ("%c", wide), ("%s", "tensor<f32>")]
    compiled, traffic, ir = compile_one(bin_dir, tmp_path, function("main", arguments, text, results))
    assert "linalg" not in ir and "fp8.amax" not in ir and ("record_amax" in ir) == current
    # y is read by nothing; with current scaling by its cast.
    assert traffic["before_fusion"]["read"] - traffic["after_fusion"]["read"] == 2 * m * n * 2

    data, scale_inv, z = compiled.call("main", a, b, other, np.float32(4))
    y = reference.dot(a, b.T).astype(BF16).astype(F32)
    scale = np.float32(448) / np.abs(y).max() if current else np.float32(4)
    assert_same_bits(z, y + other)
    assert_same_bits(scale_inv, np.float32(1) / scale)
    assert_same_bits(data, np.clip(y * scale, -448, 448).astype(E4M3))


def elementwise(name, inputs, shape, code):
    """`name` of tensors of bf16, by one line of code over %v0, %v1, ..."""
    t, n = tensor_type(shape, BF16), len(inputs)
    maps = ", ".join(["affine_map<(i, j) -> (i, j)>"] * (n + 1))
    arguments = ", ".join(f"%v{i}: bf16" for i in range(n))
    return f"""
  {name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}
      ins({", ".join(inputs)} : {", ".join([t] * n)}) outs(%e : {t}) {{
  ^bb0({arguments}, %old: bf16):
    %r = {code} : bf16
    linalg.yield %r : bf16
  }} -> {t}"""


def named_cast(x, shape, format, current):
    """cast() of %x with the results %q_x and %i_x."""
    text = cast(x, tensor_type(shape, BF16), shape, format, current)
    return re.sub(r"%(ae|own|ce|scale|qe|ie|me|q|i|amax)\b", rf"%\1_{x[1:]}", text)


def gates(kind, shape, seed, casts, others):
    """A product y, u = y * c and v = y - d; `casts` is what is cast, and whether with its own scale, `others` what is
    returned as it is. Returns arguments, program and the values of y, u and v."""
    m, k, n = shape
    rng = random_generator(57, m, seed)
    dtype = E4M3 if kind == "scaled" else BF16
    a, b = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)
    c, d = (rng.standard_normal((m, n)).astype(BF16) for _ in range(2))
    lhs, rhs, out = (tensor_type(s, t) for s, t in (((m, k), dtype), ((k, n), dtype), ((m, n), BF16)))
    text = f"""
  %e = tensor.empty() : {out}""" + product(kind, lhs, rhs, out)
    for x, other, code in (("%u", "%c", "mulf"), ("%v", "%d", "subf")):
        if x in casts or x in others:
            text += elementwise(x, ["%y", other], (m, n), f"arith.{code} %v0, %v1")
    results = []
    for x, current in casts.items():
        text += named_cast(x, (m, n), E4M3, current)
        results += [(f"%q_{x[1:]}", tensor_type((m, n), E4M3)), (f"%i_{x[1:]}", "tensor<f32>")]
    arguments = [("%a", lhs), ("%b", rhs), ("%c", out), ("%d", out), ("%s", "tensor<f32>")]
    program = function("main", arguments, text, [*results, *((x, out) for x in others)])
    y = reference.dot(a, b.T).astype(BF16)
    values = {"%y": y, "%u": (y.astype(F32) * c.astype(F32)).astype(BF16), "%v": (y.astype(F32) - d.astype(F32)).astype(BF16)}
    return [a, b, c, d, np.float32(4)], program, values


def check_gates(compiled, arguments, values, casts, others):
    actual = list(compiled.call("main", *arguments))
    for x, current in casts.items():
        data, scale_inv = actual.pop(0), actual.pop(0)
        value = values[x].astype(F32)
        largest = np.abs(value).max(initial=0)
        scale = arguments[-1] if not current else np.float32(448) / largest if largest else np.float32(1)
        assert_same_bits(scale_inv, np.float32(1) / scale)
        assert_same_bits(data, np.clip(value * scale, -448, 448).astype(E4M3))
    for x, array in zip(others, actual, strict=True):
        assert_same_bits(array, values[x])


@pytest.mark.parametrize("shape", [(6, 16, 8), (300, 70, 200), (0, 3, 5)], ids=str)
@pytest.mark.parametrize("kind", ["scaled", "kept"])
@pytest.mark.parametrize("order", ["uv", "yuv", "vy"])
def test_every_result_has_its_amax(bin_dir, tmp_path, kind, shape, order):
    """Current scaling of several results of one product: none is read but by its cast."""
    casts = {f"%{x}": True for x in order}
    arguments, program, values = gates(kind, shape, 0, casts, others=[])
    compiled, traffic, ir = compile_one(bin_dir, tmp_path, program)
    assert "linalg" not in ir and "fp8.amax" not in ir
    # Without the reads of y by u and v, and of each by its amax.
    computed = len({*order} & {*"uv"})
    assert traffic["before_fusion"]["read"] - traffic["after_fusion"]["read"] == (computed + len(order)) * 2 * shape[0] * shape[2]
    check_gates(compiled, arguments, values, casts, others=[])


@pytest.mark.parametrize("kind", ["scaled", "kept"])
def test_known_and_own_scales_of_one_product(bin_dir, tmp_path, kind):
    """One result is FP8 at once, the other one has its amax taken: both in one epilogue."""
    shape, casts = (6, 16, 8), {"%u": True, "%v": False}
    arguments, program, values = gates(kind, shape, 1, casts, others=[])
    compiled, traffic, ir = compile_one(bin_dir, tmp_path, program)
    assert "linalg" not in ir and "fp8.amax" not in ir and "out_scale" in ir and "record_amax[1]" in ir
    # Without the reads of y by u and v, of u by its amax, of v by its cast.
    assert traffic["before_fusion"]["read"] - traffic["after_fusion"]["read"] == 4 * 2 * 48
    check_gates(compiled, arguments, values, casts, others=[])


def test_a_cast_that_reads_a_kept_result_keeps_its_code(bin_dir, tmp_path):
    """With known scales v lives in the region of its cast: y is returned and written anyway, v would be as well."""
    shape, casts, others = (6, 16, 8), {"%u": False, "%v": False}, ["%y"]
    arguments, program, values = gates("scaled", shape, 2, casts, others)
    compiled, traffic, ir = compile_one(bin_dir, tmp_path, program)
    assert "linalg" not in ir
    # y is read by the cast of v alone; u and v are nowhere, nor is the amax of v, which nothing reads.
    assert traffic["before_fusion"]["written"] - traffic["after_fusion"]["written"] == 2 * 2 * 48 + 4
    assert traffic["before_fusion"]["read"] - traffic["after_fusion"]["read"] == 3 * 2 * 48
    check_gates(compiled, arguments, values, casts, others)


def test_a_causal_mask_of_rows(bin_dir, tmp_path):
    """Rows less their maximum, above the diagonal 0: the region works on rows, and knows both indices."""
    shape, t = (7, 9), tensor_type((7, 9), F32)
    x = random_generator(55).standard_normal(shape).astype(F32)
    text = f"""
  %e = tensor.empty() : {t}
  %re = tensor.empty() : tensor<7xf32>
  %low = arith.constant 0xFF800000 : f32
  %f = linalg.fill ins(%low : f32) outs(%re : tensor<7xf32>) -> tensor<7xf32>
  %m = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}}
      ins(%x : {t}) outs(%f : tensor<7xf32>) {{
  ^bb0(%v: f32, %old: f32):
    %r = arith.maximumf %old, %v : f32
    linalg.yield %r : f32
  }} -> tensor<7xf32>
  %z = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
      ins(%x, %m : {t}, tensor<7xf32>) outs(%e : {t}) {{
  ^bb0(%v: f32, %n: f32, %old: f32):
    %zero = arith.constant 0.0 : f32
    %row = linalg.index 0 : index
    %column = linalg.index 1 : index
    %later = arith.cmpi ugt, %column, %row : index
    %d = arith.subf %v, %n : f32
    %r = arith.select %later, %zero, %d : f32
    linalg.yield %r : f32
  }} -> {t}""" + cast("%z", t, shape, E4M3, False)
    results = [("%q", tensor_type(shape, E4M3)), ("%i", "tensor<f32>"), ("%amax", "tensor<f32>")]
    program = function("main", [("%x", t), ("%s", "tensor<f32>")], text, results)
    compiled, traffic, ir = compile_one(bin_dir, tmp_path, program)
    assert "rows = " in ir and traffic["after_fusion"]["read"] == 63 * 4 + 4
    data, _, amax = compiled.call("main", x, np.float32(8))
    expected = np.tril(x - x.max(1, keepdims=True))
    assert_same_bits(amax, np.abs(expected).max())
    # Above the diagonal is +0, which tril gives as well.
    assert_same_bits(data, np.clip(expected * np.float32(8), -448, 448).astype(E4M3))
