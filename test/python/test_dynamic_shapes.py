# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs with sizes that are only known while they run, by value.

One library with `?` in its types must give, at every size, the very bits that a library
compiled for that size gives: the sums are taken in the same order.
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
    program = mlps["none"]
    w1, w2, x, t = mlp_inputs(4)
    save(program.folder / "inputs", {"0": w1, "1": w2, "2": x[:, :29].copy(), "3": t})
    done = subprocess.run([program.bin_dir / "fp8-run", program.library, f"--inputs={program.folder / 'inputs'}"],
                          capture_output=True, text=True)
    assert done.returncode == 1
    assert "argument 2 'x' is f32[?,30], the given tensor f32[4,29]" in done.stderr
