# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Two layers divided over two ranks as Megatron divides them: the columns of the first weight, the rows of the second.
Beside the program that has them whole. Inputs are small whole numbers and halves, so every sum of the first step is
exact in f32, whichever part is added first."""

import numpy as np
import pytest

from harness import F32, Program, assert_same_bits, load, random_generator

RANKS, ROWS, K, HIDDEN, N = 2, 16, 12, 8, 6

HEADER = """
#mk = affine_map<(m, n, k) -> (m, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#all = affine_map<(i, j) -> (i, j)>
"""


def tensor(*shape):
    return f"tensor<{'x'.join(map(str, shape))}xf32>"


def product(result, shape, a, b, maps, name):
    (a, a_type), (b, b_type), result_type = a, b, tensor(*shape)
    return f"""
  %e_{result} = tensor.empty() : {result_type}
  %f_{result} = linalg.fill ins(%zero : f32) outs(%e_{result} : {result_type}) -> {result_type}
  %{result} = linalg.generic {{indexing_maps = [#{maps[0]}, #{maps[1]}, #mn], iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%{a}, %{b} : {a_type}, {b_type}) outs(%f_{result} : {result_type}) {{
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  }} -> {result_type} loc("jit(f)/{name}/dot_general")"""


def reduction(result, value, type, ranks):
    if ranks == 1:
        return f"\n  %{result} = tensor.cast %{value} : {type} to {type}"
    return f"\n  %{result} = shard.all_reduce %{value} on @grid grid_axes = [0] : {type} -> {type}"


def make_step(ranks):
    """Results: the weights after gradient descent, the loss, the gradient of x."""
    hidden = HIDDEN // ranks
    x, y, h, w1, w2 = tensor(ROWS, K), tensor(ROWS, N), tensor(ROWS, hidden), tensor(K, hidden), tensor(hidden, N)
    backward = "transpose(jvp({}))"
    return (
        HEADER
        + (f"shard.grid @grid(shape = {ranks})\n" if ranks > 1 else "")
        + f"""func.func @main(%w1: {w1} {{tf.aliasing_output = 0 : i32}} loc("w1"), %w2: {w2} {{tf.aliasing_output = 1 : i32}} loc("w2"),
    %x: {x} loc("x"), %t: {y} loc("t")) -> ({w1}, {w2}, tensor<f32>, {x}) {{
  %zero = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : {h}
  %rate1 = arith.constant dense<0.0078125> : {w1}
  %rate2 = arith.constant dense<0.0078125> : {w2}"""
        + product("h", (ROWS, hidden), ("x", x), ("w1", w1), ("mk", "kn"), "jvp(up)")
        + f"\n  %a = arith.maximumf %h, %zeros : {h}"
        + product("y0", (ROWS, N), ("a", h), ("w2", w2), ("mk", "kn"), "jvp(down)")
        + reduction("y", "y0", y, ranks)
        + f"""
  %d = arith.subf %y, %t : {y}
  %e0 = tensor.empty() : tensor<f32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  %loss = linalg.generic {{indexing_maps = [#all, affine_map<(i, j) -> ()>], iterator_types = ["reduction", "reduction"]}}
      ins(%d : {y}) outs(%f0 : tensor<f32>) {{
  ^bb0(%p: f32, %o: f32):
    %q = arith.mulf %p, %p : f32
    %s = arith.addf %o, %q : f32
    linalg.yield %s : f32
  }} -> tensor<f32>"""
        + product("g2", (hidden, N), ("a", h), ("d", y), ("km", "kn"), backward.format("down"))
        + product("ga", (ROWS, hidden), ("d", y), ("w2", w2), ("mk", "nk"), backward.format("down"))
        + f"""
  %positive = arith.cmpf ogt, %h, %zeros : {h}
  %gh = arith.select %positive, %ga, %zeros : {tensor(ROWS, hidden).replace("f32", "i1")}, {h}"""
        + product("g1", (K, hidden), ("x", x), ("gh", h), ("km", "kn"), backward.format("up"))
        + product("gx0", (ROWS, K), ("gh", h), ("w1", w1), ("mk", "nk"), backward.format("up"))
        + reduction("gx", "gx0", x, ranks)
        + f"""
  %u1 = arith.mulf %g1, %rate1 : {w1}
  %n1 = arith.subf %w1, %u1 : {w1}
  %u2 = arith.mulf %g2, %rate2 : {w2}
  %n2 = arith.subf %w2, %u2 : {w2}
  return %n1, %n2, %loss, %gx : {w1}, {w2}, tensor<f32>, {x}
}}
"""
    )


def make_inputs():
    rng = random_generator(220)
    halves = {"w1": rng.integers(-1, 2, [K, HIDDEN]) / 2, "w2": rng.integers(-1, 2, [HIDDEN, N]) / 2}
    whole = {"x": rng.integers(-2, 3, [ROWS, K]), "t": rng.integers(-4, 5, [ROWS, N])}
    return {name: value.astype(F32) for name, value in {**halves, **whole}.items()}


class Both:
    """The whole program, and the divided one on two ranks."""

    def __init__(self, bin_dir, tmp_path, *options):
        self.programs = []
        for ranks, more in ((1, []), (RANKS, ["--shard=0:w1=1,w2=0"])):
            folder = tmp_path / f"on{ranks}"
            folder.mkdir()
            self.programs.append((Program(bin_dir, folder, make_step(ranks), *options, *more), [] if ranks == 1 else [f"--ranks={ranks}"]))

    def run(self, inputs, *options):
        """Results and state of both."""
        found = []
        for program, ranks in self.programs:
            files = [program.folder / "outputs", program.folder / "state"]
            program.run("main", inputs, *ranks, f"--outputs={files[0]}", f"--save-state={files[1]}", "--with-carry", *options)
            found.append({**load(files[0]), **load(files[1])})
        return found


RECIPES = {
    "none": ["--recipe=none"],
    "delayed": ["--recipe=delayed", "--amax-history-len=3"],
    # Powers of two: ranks may have other scales than the whole tensor, and round to the same numbers.
    "current": ["--recipe=#fp8.current_scaling<power_2_scale = true>"],
}


@pytest.mark.parametrize("recipe", RECIPES)
def test_one_step_has_the_bits_of_the_whole_program(bin_dir, tmp_path, recipe):
    both = Both(bin_dir, tmp_path, *RECIPES[recipe])
    whole, divided = both.run(make_inputs())
    assert whole.keys() == divided.keys() and whole["0"].shape == (K, HIDDEN)
    for name, value in whole.items():
        assert_same_bits(divided[name], value)
    assert (whole["0"] != make_inputs()["w1"]).any() and whole["2"] > 0
    sites = both.programs[1][0].manifest["sites"]
    roles = {(site["site"], site["role"], site["decision"]) for site in sites}
    assert roles == {(name, role, "high" if recipe == "none" else "fp8") for name in ("up", "down") for role in ("fprop", "dgrad", "wgrad")}


def test_sums_of_later_steps_differ_in_order_only(bin_dir, tmp_path):
    """Weights have more digits then, and y is rounded per rank: a few roundings of f32 apart."""
    whole, divided = Both(bin_dir, tmp_path, *RECIPES["none"]).run(make_inputs(), "--steps=3")
    for name, value in whole.items():
        np.testing.assert_allclose(divided[name], value, rtol=1e-5, atol=1e-5 * np.abs(value).max())


@pytest.mark.parametrize("recipe", ["none", "delayed"])
def test_one_step_on_the_emulator(bin_dir, tmp_path, recipe):
    whole, divided = Both(bin_dir, tmp_path, *RECIPES[recipe], "--target=sm_89", "--ptxas=none").run(make_inputs())
    for name, value in whole.items():
        assert_same_bits(divided[name], value)
