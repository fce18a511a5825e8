# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights that the program computes, and operands that only select: what becomes FP8, and the numbers.

The gradient of a result is its square, and activations are squares, so that numpy has the same bits.
"""
import re

import numpy as np

import reference
from harness import E4M3, E5M2, F32, Program, assert_same_bits, random_generator

MATMUL = re.compile(r"(%\w+) = (%\w+) @ (%\w+) : (\w+), (\w+) -> (\w+)\n")


def program(bin_dir, tmp_path, signature, body, *options):
    """Body lines `%y = %a @ %b : 4x8, 8x6 -> 4x6` are products of f32, whose destinations are zeros."""

    def expand(match):
        y, a, b, *shapes = match.groups()
        ta, tb, ty = (f"tensor<{shape}xf32>" for shape in shapes)
        return f"""  {y}_e = tensor.empty() : {ty}
  {y}_z = linalg.fill ins(%zero : f32) outs({y}_e : {ty}) -> {ty}
  {y} = linalg.matmul ins({a}, {b} : {ta}, {tb}) outs({y}_z : {ty}) -> {ty}
"""

    text = f"func.func @main({signature} {{\n  %zero = arith.constant 0.0 : f32\n{MATMUL.sub(expand, body)}}}\n"
    return Program(bin_dir, tmp_path, text, "--recipe=current", *options)


def transpose(y, x, rows, columns):
    return f"""  {y}_t = tensor.empty() : tensor<{columns}x{rows}xf32>
  {y} = linalg.transpose ins({x} : tensor<{rows}x{columns}xf32>) outs({y}_t : tensor<{columns}x{rows}xf32>) permutation = [1, 0]
"""


def sites(program):
    return [(s["site"], s["role"], s["decision"]) for s in program.manifest["sites"]]


def quantize(value, fmt):
    scale = reference.current_scale(reference.amax(value), fmt)
    return reference.cast(value, scale, fmt), reference.scale_inv(scale)


def multiply(a, b, formats=(E4M3, E4M3)):
    """The FP8 product a · b."""
    (a, a_inv), (b, b_inv) = quantize(a, formats[0]), quantize(b, formats[1])
    return reference.scaled_matmul(a, b.T, a_inv, b_inv)


def test_gates_and_a_scaled_weight(bin_dir, tmp_path):
    body = """  %c6 = arith.constant 6 : index
  %ge = tensor.empty() : tensor<8x12xf32>
  %gates = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      outs(%ge : tensor<8x12xf32>) {
  ^bb0(%out: f32):
    %row = linalg.index 0 : index
    %column = linalg.index 1 : index
    %first = arith.cmpi ult, %column, %c6 : index
    %v = scf.if %first -> f32 {
      %a = tensor.extract %wi[%row, %column] : tensor<8x6xf32>
      scf.yield %a : f32
    } else {
      %shifted = arith.subi %column, %c6 : index
      %b = tensor.extract %wf[%row, %shifted] : tensor<8x6xf32>
      scf.yield %b : f32
    }
    linalg.yield %v : f32
  } -> tensor<8x12xf32>
  %y = %x @ %gates : 4x8, 8x12 -> 4x12
  %h = arith.mulf %y, %y : tensor<4x12xf32>
  %se = tensor.empty() : tensor<12x5xf32>
  %s2 = linalg.broadcast ins(%s : tensor<5xf32>) outs(%se : tensor<12x5xf32>) dimensions = [0]
  %scaled = arith.mulf %w, %s2 : tensor<12x5xf32>
  %z = %h @ %scaled : 4x12, 12x5 -> 4x5
  %dz = arith.mulf %z, %z : tensor<4x5xf32>
""" + transpose("%ht", "%h", 4, 12) + """  %dscaled = %ht @ %dz : 12x4, 4x5 -> 12x5
  %dw = arith.mulf %dscaled, %s2 : tensor<12x5xf32>
""" + transpose("%scaledt", "%scaled", 12, 5) + """  %dh = %dz @ %scaledt : 4x5, 5x12 -> 4x12
  %dy = arith.mulf %dh, %y : tensor<4x12xf32>
""" + transpose("%xt", "%x", 4, 8) + """  %dgates = %xt @ %dy : 8x4, 4x12 -> 8x12
  %dwi = tensor.extract_slice %dgates[0, 0] [8, 6] [1, 1] : tensor<8x12xf32> to tensor<8x6xf32>
  %dwf = tensor.extract_slice %dgates[0, 6] [8, 6] [1, 1] : tensor<8x12xf32> to tensor<8x6xf32>
  return %z, %dwi, %dwf, %dw : tensor<4x5xf32>, tensor<8x6xf32>, tensor<8x6xf32>, tensor<12x5xf32>
"""
    signature = """%wi: tensor<8x6xf32> loc("p['cell']['wi']"), %wf: tensor<8x6xf32> loc("p['cell']['wf']"), %w: tensor<12x5xf32> loc("p['out']['w']"),
    %s: tensor<5xf32> loc("p['out']['s']"), %x: tensor<4x8xf32> loc("x"))
    -> (tensor<4x5xf32>, tensor<8x6xf32>, tensor<8x6xf32>, tensor<12x5xf32>)"""
    compiled = program(bin_dir, tmp_path, signature, body)
    assert sites(compiled) == [("cell", "fprop", "fp8"), ("out", "fprop", "fp8"), ("out", "wgrad", "fp8"), ("out", "dgrad", "fp8"),
                               ("cell", "wgrad", "fp8")]
    rng = random_generator(70)
    wi, wf, w, s, x = (rng.uniform(-1, 1, shape).astype(F32) for shape in [[8, 6], [8, 6], [12, 5], [5], [4, 8]])
    gates, scaled = np.concatenate([wi, wf], axis=1), w * s
    y = multiply(x, gates)
    h = y * y
    z = multiply(h, scaled)
    dz = z * z
    dscaled, dh = multiply(h.T, dz, (E4M3, E5M2)), multiply(dz, scaled.T, (E5M2, E4M3))
    dgates = multiply(x.T, dh * y, (E4M3, E5M2))
    for actual, expected in zip(compiled.call("main", wi, wf, w, s, x), [z, dgates[:, :6], dgates[:, 6:], dscaled * s]):
        assert_same_bits(actual, expected)


def test_a_merged_adapter(bin_dir, tmp_path):
    """x · (w + a · b) of a frozen w: four FP8 products of two weights."""
    body = """  %ab = %a @ %b : 8x2, 2x6 -> 8x6
  %merged = arith.addf %w, %ab : tensor<8x6xf32>
  %y = %x @ %merged : 4x8, 8x6 -> 4x6
  %dy = arith.mulf %y, %y : tensor<4x6xf32>
""" + transpose("%xt", "%x", 4, 8) + """  %dm = %xt @ %dy : 8x4, 4x6 -> 8x6
""" + transpose("%bt", "%b", 2, 6) + """  %da = %dm @ %bt : 8x6, 6x2 -> 8x2
""" + transpose("%at", "%a", 8, 2) + """  %db = %at @ %dm : 2x8, 8x6 -> 2x6
  return %y, %da, %db : tensor<4x6xf32>, tensor<8x2xf32>, tensor<2x6xf32>
"""
    signature = """%x: tensor<4x8xf32> loc("x"), %w: tensor<8x6xf32> loc("frozen['w']"), %a: tensor<8x2xf32> loc("p['a']"), %b: tensor<2x6xf32> loc("p['b']"))
    -> (tensor<4x6xf32>, tensor<8x2xf32>, tensor<2x6xf32>)"""
    compiled = program(bin_dir, tmp_path, signature, body)
    assert sites(compiled) == [("b", "fprop", "fp8"), ("w", "fprop", "fp8"), ("w", "wgrad", "fp8"), ("b", "dgrad", "fp8"), ("b", "wgrad", "fp8")]
    rng = random_generator(71)
    x, w, a, b = (rng.uniform(-1, 1, shape).astype(F32) for shape in [[4, 8], [8, 6], [8, 2], [2, 6]])
    y = multiply(x, w + multiply(a, b))
    dm = multiply(x.T, y * y, (E4M3, E5M2))
    da, db = multiply(dm, b.T, (E5M2, E4M3)), multiply(a.T, dm, (E4M3, E5M2))
    for actual, expected in zip(compiled.call("main", x, w, a, b), [y, da, db]):
        assert_same_bits(actual, expected)


GROUPED = """
#gm = affine_map<(g, m, k) -> (g, m)>
#mk = affine_map<(g, m, k) -> (m, k)>
#gmk = affine_map<(g, m, k) -> (g, m, k)>
func.func private @mask6(%mask: tensor<3x8xi1>, %x: tensor<8x6xf32>) -> tensor<3x8x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x8x6xf32>
  %y = linalg.generic {indexing_maps = [#gm, #mk, #gmk], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%mask, %x : tensor<3x8xi1>, tensor<8x6xf32>) outs(%e : tensor<3x8x6xf32>) {
  ^bb0(%c: i1, %in: f32, %out: f32):
    %v = arith.select %c, %in, %zero : f32
    linalg.yield %v : f32
  } -> tensor<3x8x6xf32>
  return %y : tensor<3x8x6xf32>
}
func.func @main(%x: tensor<8x6xf32> loc("x"), %w: tensor<3x6x6xf32> loc("w"), %mask: tensor<3x8xi1> loc("mask"))
    -> (tensor<8x6xf32>, tensor<3x6x6xf32>, tensor<8x6xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x6xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x6xf32>) -> tensor<8x6xf32>
  %xs = call @mask6(%mask, %x) : (tensor<3x8xi1>, tensor<8x6xf32>) -> tensor<3x8x6xf32>
  %y = linalg.contract indexing_maps = [affine_map<(m, n, k, g) -> (g, m, k)>, affine_map<(m, n, k, g) -> (g, k, n)>, affine_map<(m, n, k, g) -> (m, n)>]
      ins(%xs, %w : tensor<3x8x6xf32>, tensor<3x6x6xf32>) outs(%z : tensor<8x6xf32>) -> tensor<8x6xf32>
  %dy = arith.mulf %y, %y : tensor<8x6xf32>
  %dys = call @mask6(%mask, %dy) : (tensor<3x8xi1>, tensor<8x6xf32>) -> tensor<3x8x6xf32>
  %ew = tensor.empty() : tensor<3x6x6xf32>
  %zw = linalg.fill ins(%zero : f32) outs(%ew : tensor<3x6x6xf32>) -> tensor<3x6x6xf32>
  %dw = linalg.contract indexing_maps = [affine_map<(g, k, n, m) -> (g, m, k)>, affine_map<(g, k, n, m) -> (g, m, n)>, affine_map<(g, k, n, m) -> (g, k, n)>]
      ins(%xs, %dys : tensor<3x8x6xf32>, tensor<3x8x6xf32>) outs(%zw : tensor<3x6x6xf32>) -> tensor<3x6x6xf32>
  %dx = linalg.contract indexing_maps = [affine_map<(m, k, n, g) -> (g, m, n)>, affine_map<(m, k, n, g) -> (g, k, n)>, affine_map<(m, k, n, g) -> (m, k)>]
      ins(%dys, %w : tensor<3x8x6xf32>, tensor<3x6x6xf32>) outs(%z : tensor<8x6xf32>) -> tensor<8x6xf32>
  return %y, %dw, %dx : tensor<8x6xf32>, tensor<3x6x6xf32>, tensor<8x6xf32>
}
"""


def test_a_grouped_product(bin_dir, tmp_path):
    """jax.lax.ragged_dot: rows belong to groups, which y and dx sum over."""
    compiled = Program(bin_dir, tmp_path, GROUPED, "--recipe=current")
    assert sites(compiled) == [("w", "fprop", "fp8"), ("w", "wgrad", "fp8"), ("w", "dgrad", "fp8")]
    rng = random_generator(72)
    x, w = rng.uniform(-1, 1, [8, 6]).astype(F32), rng.uniform(-1, 1, [3, 6, 6]).astype(F32)
    mask = np.arange(3)[:, None] == np.array([0, 0, 0, 1, 1, 2, 2, 2])

    def contract(spec, dims, a, b, formats):
        (a, a_inv), (b, b_inv) = quantize(a, formats[0]), quantize(b, formats[1])
        return (a_inv * b_inv) * reference.contract(spec, dims, a, b)

    xs = np.where(mask[:, :, None], x, F32.type(0))
    y = contract("gmk,gkn->mn", "mnkg", xs, w, (E4M3, E4M3))
    dys = np.where(mask[:, :, None], y * y, F32.type(0))
    dw = contract("gmk,gmn->gkn", "gknm", xs, dys, (E4M3, E5M2))
    dx = contract("gmn,gkn->mk", "mkng", dys, w, (E5M2, E4M3))
    for actual, expected in zip(compiled.call("main", x, w, mask), [y, dw, dx]):
        assert_same_bits(actual, expected)


ONE_HOT = """
func.func @main(%ids: tensor<4xi32> loc("ids"), %table: tensor<8x6xf32> loc("p['embed']"), %w: tensor<6x5xf32> loc("p['fc']")) -> (tensor<4x6xf32>, tensor<4x5xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %onehot = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<4xi32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%id: i32, %out: f32):
    %column = linalg.index 1 : index
    %number = arith.index_cast %column : index to i32
    %same = arith.cmpi eq, %id, %number : i32
    %one = arith.uitofp %same : i1 to f32
    linalg.yield %one : f32
  } -> tensor<4x8xf32>
  %e0 = tensor.empty() : tensor<4x6xf32>
  %z0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<4x6xf32>) -> tensor<4x6xf32>
  %h = linalg.matmul ins(%onehot, %table : tensor<4x8xf32>, tensor<8x6xf32>) outs(%z0 : tensor<4x6xf32>) -> tensor<4x6xf32>
  %e1 = tensor.empty() : tensor<4x5xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<4x5xf32>) -> tensor<4x5xf32>
  %y = linalg.matmul ins(%h, %w : tensor<4x6xf32>, tensor<6x5xf32>) outs(%z1 : tensor<4x5xf32>) -> tensor<4x5xf32>
  return %h, %y : tensor<4x6xf32>, tensor<4x5xf32>
}
"""


def test_a_one_hot_product_is_exact(bin_dir, tmp_path):
    rng = random_generator(73)
    ids, table, w = np.array([3, 0, 7, 3], np.int32), rng.uniform(-1, 1, [8, 6]).astype(F32), rng.uniform(-1, 1, [6, 5]).astype(F32)
    folders = [tmp_path / "linear", tmp_path / "all"]
    for folder in folders:
        folder.mkdir()
    linear = Program(bin_dir, folders[0], ONE_HOT, "--recipe=current")
    assert [(s["site"], s["decision"], s["reason"]) for s in linear.manifest["sites"]] == [("embed", "high", "one-hot selection"), ("fc", "fp8", "")]
    for actual, expected in zip(linear.call("main", ids, table, w), [table[ids], multiply(table[ids], w)]):
        assert_same_bits(actual, expected)
    # Asked for, it is a product like any other.
    taken = Program(bin_dir, folders[1], ONE_HOT, "--recipe=current", "--sites=all")
    assert sites(taken) == [("embed", "fprop", "fp8"), ("fc", "fprop", "fp8")]
    h = multiply(np.eye(8, dtype=F32)[ids], table)
    for actual, expected in zip(taken.call("main", ids, table, w), [h, multiply(h, w)]):
        assert_same_bits(actual, expected)


LAYERS = """
func.func @main(%x: tensor<4x8xf32> loc("x"), %a: tensor<8x8xf32> loc("state[0]['blocks'][0]['up']['kernel'].value"),
                %b: tensor<8x8xf32> loc("state[0]['blocks'][1]['up']['kernel'].value"), %c: tensor<8x8xf32> loc("state[0]['head']['kernel'].value")) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %0 = linalg.matmul ins(%x, %a : tensor<4x8xf32>, tensor<8x8xf32>) outs(%z : tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = linalg.matmul ins(%0, %b : tensor<4x8xf32>, tensor<8x8xf32>) outs(%z : tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = linalg.matmul ins(%1, %c : tensor<4x8xf32>, tensor<8x8xf32>) outs(%z : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}
"""


def test_options_know_sites_by_the_names_of_weights(bin_dir, tmp_path):
    compiled = Program(bin_dir, tmp_path, LAYERS, "--recipe=current", "--keep=head", "--first=1")
    assert [(s["site"], s["decision"], s["reason"]) for s in compiled.manifest["sites"]] == [
        ("blocks/0/up", "high", "in the first layers, --first=1"),
        ("blocks/1/up", "fp8", ""),
        ("head", "high", "matches --keep=head"),
    ]
