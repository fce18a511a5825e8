# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The recipes with scales per row, per block and MX from a bf16 program to results, on every target.

The three products of a linear layer: every operand is read along both of its dimensions.
"""
import numpy as np
import pytest

from harness import BF16, F32, Program, assert_same_bits, random_generator

M, N, K = 9, 35, 150
TARGETS = {recipe: ["sm_89", "sm_90a", "sm_100a", "sm_120a"] for recipe in ("row", "block")} | {"mxfp8": ["sm_100a", "sm_120a"]}
SHAPES = {"x": (M, K), "w": (K, N), "g": (M, N)}
PRODUCTS = {"y": ("mk", "kn", "mn"), "dw": ("mk", "mn", "kn"), "dx": ("mn", "kn", "mk")}


def contraction(name, lhs, rhs):
    sizes, types = dict(m=M, n=N, k=K), [f"tensor<{'x'.join(map(str, SHAPES[x]))}xbf16>" for x in (lhs, rhs)]
    letters = PRODUCTS[name]
    out = f"tensor<{'x'.join(str(sizes[d]) for d in letters[2])}xf32>"
    maps = ", ".join(f"affine_map<(m, n, k) -> ({', '.join(word)})>" for word in letters)
    return out, f"""
  %{name}_e = tensor.empty() : {out}
  %{name}_i = linalg.fill ins(%zero : f32) outs(%{name}_e : {out}) -> {out}
  %{name} = linalg.contract indexing_maps = [{maps}] ins(%{lhs}, %{rhs} : {types[0]}, {types[1]}) outs(%{name}_i : {out}) -> {out}"""


def step():
    inputs = ", ".join(f"%{name}: tensor<{'x'.join(map(str, shape))}xbf16>" for name, shape in SHAPES.items())
    types, bodies = zip(*(contraction(name, *pair) for name, pair in {"y": "xw", "dw": "xg", "dx": "gw"}.items()))
    return f"""func.func @main({inputs}) -> ({', '.join(types)}) {{
  %zero = arith.constant 0.0 : f32{''.join(bodies)}
  return %y, %dw, %dx : {', '.join(types)}
}}"""


def run_step(bin_dir, folder, recipe, target):
    rng = random_generator(28)
    inputs = [rng.standard_normal(shape).astype(BF16) for shape in SHAPES.values()]
    program = Program(bin_dir, folder, step(), f"--recipe={recipe}", "--sites=all", f"--target={target}")
    return inputs, program.call("main", *inputs)


@pytest.fixture(scope="module")
def on_cpu(bin_dir, tmp_path_factory):
    return {recipe: run_step(bin_dir, tmp_path_factory.mktemp(recipe), recipe, "cpu") for recipe in TARGETS}


@pytest.mark.parametrize("recipe", TARGETS)
def test_error_of_the_formats(on_cpu, recipe):
    """Rounding to E4M3 changes an element by half of 2^-3 at most; block scales add nothing to that."""
    (x, w, g), results = on_cpu[recipe]
    x, w, g = (value.astype(np.float64) for value in (x, w, g))
    error = (1 + 2.0**-4) ** 2 - 1
    for result, (a, b) in zip(results, ((x, w), (x.T, g), (g, w.T))):
        assert (np.abs(result - a @ b) <= error * (np.abs(a) @ np.abs(b)) + 2.0**-20).all()
        assert (result != (a @ b).astype(F32)).any()


@pytest.mark.parametrize("recipe, target", [(recipe, target) for recipe, targets in TARGETS.items() for target in targets])
def test_same_bits_on_every_target(bin_dir, tmp_path, on_cpu, monkeypatch, recipe, target):
    monkeypatch.setenv("FP8EMU_SUMS", "korder")  # the order of the CPU's sums
    _, results = run_step(bin_dir, tmp_path, recipe, target)
    for result, expected in zip(results, on_cpu[recipe][1]):
        assert_same_bits(result, expected)
