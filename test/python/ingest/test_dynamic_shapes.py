# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs with dynamic sizes, by value.

One library with `?` in its types must give, at every size, the same bits as a library that was
compiled for that size, because sums are taken in the same order.
"""
import subprocess

import numpy as np
import pytest

from harness import F32, Program, assert_same_bits, load, random_generator, save

RECIPES = ["none", "current", "delayed"]
SIZES = [5, 37, 0]

MAPS = """
#mk = affine_map<(m, n, k) -> (m, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
"""


def product(result, maps, lhs, rhs, out, name):
    """lhs · rhs added to out; `result` and the operands as (value, type)."""
    (value, kind), (a, a_type), (b, b_type), (c, c_type) = result, lhs, rhs, out
    return f"""
  {value} = linalg.generic {{indexing_maps = [{maps}, #mn], iterator_types = ["parallel", "parallel", "reduction"]}}
      ins({a}, {b} : {a_type}, {b_type}) outs({c} : {c_type}) {{
    ^bb0(%p: f32, %q: f32, %r: f32):
      %m = arith.mulf %p, %q : f32
      %s = arith.addf %r, %m : f32
      linalg.yield %s : f32
  }} -> {kind} loc("{name}/dot_general")"""


# Batch and sequence: rows are merged for a product and come apart again, to two sizes of which
# neither follows from the other tensor's type.
SPLIT_ROWS = """
func.func @main(%x: tensor<?x?x8xf32>, %w: tensor<8x4xf32>) -> tensor<?x?x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %b = tensor.dim %x, %c0 : tensor<?x?x8xf32>
  %s = tensor.dim %x, %c1 : tensor<?x?x8xf32>
  %rows = tensor.collapse_shape %x [[0, 1], [2]] : tensor<?x?x8xf32> into tensor<?x8xf32>
  %n = tensor.dim %rows, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
  %y = linalg.matmul ins(%rows, %w : tensor<?x8xf32>, tensor<8x4xf32>) outs(%f : tensor<?x4xf32>) -> tensor<?x4xf32>
  %once = tensor.expand_shape %y [[0, 1], [2]] output_shape [%b, %s, 4] : tensor<?x4xf32> into tensor<?x?x4xf32>
  %twice = arith.addf %once, %once : tensor<?x?x4xf32>
  return %twice : tensor<?x?x4xf32>
}
"""


def test_one_dynamic_size_becomes_two(bin_dir, tmp_path):
    program = Program(bin_dir, tmp_path, SPLIT_ROWS, "--recipe=none")
    for batch, length in ((3, 5), (1, 1), (4, 0)):
        rng = random_generator(99, batch)
        x, w = (rng.integers(-8, 8, shape).astype(F32) for shape in ([batch, length, 8], [8, 4]))
        (y,) = program.call("main", x, w)
        assert_same_bits(y, 2 * (x @ w))  # integers: exact in any order


def mlp(batch):
    """A step of two layers on `batch` rows: weights updated, outputs and input gradients."""
    rows = lambda n: f"tensor<{batch}x{n}xf32>"
    size = "(%b)" if batch == "?" else "()"
    w1, w2 = "tensor<30x20xf32>", "tensor<20x5xf32>"
    return f"""{MAPS}
func.func @main(%w1: {w1} {{tf.aliasing_output = 0 : i32}} loc("w1"),
                %w2: {w2} {{tf.aliasing_output = 1 : i32}} loc("w2"), %x: {rows(30)} loc("x"), %t: {rows(5)} loc("t"))
    -> ({w1}, {w2}, {rows(5)}, {rows(30)}) {{
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %b = tensor.dim %x, %c0 : {rows(30)}
  %e0 = tensor.empty{size} : {rows(20)}
  %f0 = linalg.fill ins(%z : f32) outs(%e0 : {rows(20)}) -> {rows(20)}
  {product(("%h", rows(20)), "#mk, #kn", ("%x", rows(30)), ("%w1", w1), ("%f0", rows(20)), "jvp(l1)")}
  %a = arith.maximumf %h, %f0 : {rows(20)}
  %e1 = tensor.empty{size} : {rows(5)}
  %f1 = linalg.fill ins(%z : f32) outs(%e1 : {rows(5)}) -> {rows(5)}
  {product(("%y", rows(5)), "#mk, #kn", ("%a", rows(20)), ("%w2", w2), ("%f1", rows(5)), "jvp(l2)")}
  %d = arith.subf %t, %y : {rows(5)}
  {product(("%ga", rows(20)), "#mk, #nk", ("%d", rows(5)), ("%w2", w2), ("%f0", rows(20)), "transpose(jvp(l2))")}
  {product(("%u2", w2), "#km, #kn", ("%a", rows(20)), ("%d", rows(5)), ("%w2", w2), "transpose(jvp(l2))")}
  %e3 = tensor.empty{size} : {rows(30)}
  %f3 = linalg.fill ins(%z : f32) outs(%e3 : {rows(30)}) -> {rows(30)}
  {product(("%gx", rows(30)), "#mk, #nk", ("%ga", rows(20)), ("%w1", w1), ("%f3", rows(30)), "transpose(jvp(l1))")}
  {product(("%u1", w1), "#km, #kn", ("%x", rows(30)), ("%ga", rows(20)), ("%w1", w1), "transpose(jvp(l1))")}
  return %u1, %u2, %y, %gx : {w1}, {w2}, {rows(5)}, {rows(30)}
}}
"""


def mlp_inputs(rows):
    rng = random_generator(60, rows)
    weights = [rng.standard_normal([30, 20]) / 30, rng.standard_normal([20, 5]) / 20]
    return [a.astype(F32) for a in [*weights, rng.standard_normal([rows, 30]), rng.standard_normal([rows, 5]) / 100]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    def make(name):
        return tmp_path_factory.mktemp(name)
    return make


@pytest.fixture(scope="module")
def mlps(bin_dir, folder):
    return {recipe: Program(bin_dir, folder(recipe), mlp("?"), f"--recipe={recipe}") for recipe in RECIPES}


def run_steps(program, inputs):
    """Three steps: the second and third have weights and scales that the first has made."""
    program.run("main", inputs, "--steps=3", f"--outputs={program.folder / 'outputs'}")
    return load(program.folder / "outputs")


@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.parametrize("recipe", RECIPES)
def test_any_batch_gives_the_bits_of_its_own_library(mlps, bin_dir, folder, recipe, rows):
    inputs = mlp_inputs(rows)
    fixed = Program(bin_dir, folder("fixed"), mlp(rows), f"--recipe={recipe}")
    got, expected = run_steps(mlps[recipe], inputs), run_steps(fixed, inputs)
    assert sorted(got) == sorted(expected) == ["0", "1", "2", "3"]
    for key in expected:
        assert_same_bits(got[key], expected[key])
    if rows == 0:  # nothing to learn from
        assert_same_bits(got["0"], inputs[0])
        assert_same_bits(got["1"], inputs[1])


def test_manifest_has_null_for_what_is_not_known(mlps):
    (entry,) = mlps["delayed"].manifest["entries"]
    assert [a["shape"] for a in entry["arguments"][:4]] == [[30, 20], [20, 5], [None, 30], [None, 5]]
    assert [r["shape"] for r in entry["results"][:4]] == [[30, 20], [20, 5], [None, 5], [None, 30]]
    extents = {(s["site"], s["role"]): (s["m"], s["n"], s["k"]) for s in mlps["delayed"].manifest["sites"]}
    assert extents["l1", "fprop"] == (None, 20, 30)
    assert extents["l1", "wgrad"] == (30, 20, None)


def test_static_sizes_are_still_checked(mlps):
    w1, w2, x, t = mlp_inputs(4)
    error = error_of(mlps["none"], "main", w1, w2, x[:, :29].copy(), t)
    assert "argument 2 'x' is f32[?,30], the given tensor f32[4,29]" in error


# Batch and sequence unknown, as PyTorch's exporters write it: shapes put together from
# sizes, rows merged and split again, indices asserted in the body.
SEQUENCE = """
#ids = affine_map<(b, s, d) -> (b, s)>
#bsd = affine_map<(b, s, d) -> (b, s, d)>
func.func @main(%ids: tensor<?x?xi64> loc("ids"), %table: tensor<11x8xf32> loc("table"),
                %w: tensor<8x6xf32> loc("w"), %r: tensor<?x?x6xf32> loc("r"))
    -> (tensor<?x?x6xf32>, tensor<?x?x?xf32>, tensor<?x6xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c11 = arith.constant 11 : i64
  %zero64 = arith.constant 0 : i64
  %six = arith.constant 6 : i64
  %z = arith.constant 0.0 : f32
  %b = tensor.dim %ids, %c0 : tensor<?x?xi64>
  %s = tensor.dim %ids, %c1 : tensor<?x?xi64>
  %b64 = arith.index_cast %b : index to i64
  %s64 = arith.index_cast %s : index to i64
  %long = arith.cmpi sle, %s64, %c11 : i64
  cf.assert %long, "the sequence is longer than 11"
  %e = tensor.empty(%b, %s) : tensor<?x?x8xf32>
  %x = linalg.generic {indexing_maps = [#ids, #bsd], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%ids : tensor<?x?xi64>) outs(%e : tensor<?x?x8xf32>) {
  ^bb0(%id: i64, %out: f32):
    %low = arith.cmpi sge, %id, %zero64 : i64
    cf.assert %low, "index must be larger or equal to 0"
    %high = arith.cmpi slt, %id, %c11 : i64
    cf.assert %high, "index must be smaller than dim size"
    %row = arith.index_cast %id : i64 to index
    %column = linalg.index 2 : index
    %v = tensor.extract %table[%row, %column] : tensor<11x8xf32>
    linalg.yield %v : f32
  } -> tensor<?x?x8xf32>
  %rows64 = arith.muli %b64, %s64 : i64
  %rows = arith.index_cast %rows64 : i64 to index
  %flat = tensor.collapse_shape %x [[0, 1], [2]] : tensor<?x?x8xf32> into tensor<?x8xf32>
  %e1 = tensor.empty(%rows) : tensor<?x6xf32>
  %f1 = linalg.fill ins(%z : f32) outs(%e1 : tensor<?x6xf32>) -> tensor<?x6xf32>
  %m = linalg.matmul ins(%flat, %w : tensor<?x8xf32>, tensor<8x6xf32>) outs(%f1 : tensor<?x6xf32>) -> tensor<?x6xf32>
      loc("fc/dot_general")
  %shape = tensor.from_elements %b64, %s64, %six : tensor<3xi64>
  %y = tensor.reshape %m(%shape) : (tensor<?x6xf32>, tensor<3xi64>) -> tensor<?x?x6xf32>
  %sum = arith.addf %y, %r : tensor<?x?x6xf32>
  %e2 = tensor.empty(%b, %s) : tensor<?x6x?xf32>
  %t = linalg.transpose ins(%sum : tensor<?x?x6xf32>) outs(%e2 : tensor<?x6x?xf32>) permutation = [0, 2, 1]
  %e3 = tensor.empty(%b, %s, %s) : tensor<?x?x?xf32>
  %f3 = linalg.fill ins(%z : f32) outs(%e3 : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %scores = linalg.batch_matmul ins(%sum, %t : tensor<?x?x6xf32>, tensor<?x6x?xf32>)
      outs(%f3 : tensor<?x?x?xf32>) -> tensor<?x?x?xf32> loc("scores/dot_general")
  %split = tensor.expand_shape %m [[0, 1], [2]] output_shape [%b, %s, 6] : tensor<?x6xf32> into tensor<?x?x6xf32>
  %again = tensor.collapse_shape %split [[0, 1], [2]] : tensor<?x?x6xf32> into tensor<?x6xf32>
  %both = tensor.concat dim(0) %again, %m : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
  return %sum, %scores, %both : tensor<?x?x6xf32>, tensor<?x?x?xf32>, tensor<?x6xf32>
}
"""


@pytest.fixture(scope="module")
def sequence(bin_dir, folder):
    return Program(bin_dir, folder("sequence"), SEQUENCE, "--recipe=none")


def small_integers(rng, *shape):
    """Sums of their products are exact in any order."""
    return rng.integers(-8, 9, shape).astype(F32)


@pytest.mark.parametrize("batch, length", [(2, 7), (5, 11), (1, 1), (0, 4), (3, 0)])
def test_batch_and_sequence(sequence, batch, length):
    rng = random_generator(61, batch, length)
    ids = rng.integers(0, 11, [batch, length])
    table, w, r = small_integers(rng, 11, 8), small_integers(rng, 8, 6), small_integers(rng, batch, length, 6)
    y, scores, both = sequence.call("main", ids, table, w, r)
    m = table[ids] @ w
    assert_same_bits(y, m + r)
    assert_same_bits(scores, (m + r) @ (m + r).transpose(0, 2, 1) + np.float32(0))
    assert_same_bits(both, np.concatenate([m.reshape(-1, 6)] * 2))


def error_of(program, entry, *inputs):
    """The one line in which a step that must fail says why."""
    save(program.folder / "inputs", {str(i): np.asarray(a) for i, a in enumerate(inputs)})
    done = subprocess.run([program.bin_dir / "fp8-run", program.library, f"--inputs={program.folder / 'inputs'}",
                           f"--entry={entry}"], capture_output=True, text=True)
    assert done.returncode == 1, (done.returncode, done.stderr)
    assert done.stderr.count("\n") == 1
    return done.stderr


@pytest.mark.parametrize("ids, rest, message", [
    ([[0, 11]], (1, 2), "index must be smaller than dim size"),
    ([[-1, 0]], (1, 2), "index must be larger or equal to 0"),
    ([[0] * 12], (1, 12), "the sequence is longer than 11"),
    ([[0, 1]], (2, 2), "argument 3 'r': size 0 must be size 0 of argument 0 'ids'"),
    ([[0, 1]], (1, 1), "argument 3 'r': size 1 must be size 1 of argument 0 'ids'"),
    ([[0, 1]], (1, 0), "argument 3 'r': size 1 must be size 1 of argument 0 'ids'"),
], ids=lambda value: value if isinstance(value, str) else "")
def test_what_is_asserted_is_the_error_of_the_call(sequence, ids, rest, message):
    error = error_of(sequence, "main", np.array(ids), np.zeros([11, 8], F32), np.zeros([8, 6], F32),
                     np.zeros([*rest, 6], F32))
    assert f"entry 'main' failed: {message} (" in error
    assert "program.mlir:" in error


def test_sizes_that_disagree_name_the_argument(mlps):
    for program in mlps.values():
        w1, w2, x, t = mlp_inputs(4)
        assert "argument 3 't': size 0 must be size 0 of argument 2 'x'" in error_of(program, "main", w1, w2, x, t[:3].copy())
