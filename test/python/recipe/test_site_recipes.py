# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recipes of single sites and roles, and how their products accumulate, by value."""
import json

import pytest

import reference
from harness import E4M3, E5M2, F32, MLIR_NAMES, Program, assert_same_bits, random_generator, tensor_type
from net import Current, Delayed
from recipe_steps import check_steps, make, text  # noqa: F401 (make and text are fixtures)


def recipes_of(program):
    return {(s["site"], s["role"]): (s["decision"], s["recipe"]) for s in program.manifest["sites"]}


class Mixed(Delayed):
    """Delayed scaling, except where `choose(site, role)` returns another recipe."""

    def __init__(self, program, choose, **options):
        super().__init__(program, **options)
        self.choose = choose

    def quantize(self, value, key, role="fprop"):
        other = self.choose(key[0], role)
        return other.quantize(value, key, role) if other else super().quantize(value, key, role)


def test_one_site_with_current_scaling(make):
    program = make("--amax-history-len=3", "--site-recipe=l2$=current", "--eps=0.5", "--margin=1")
    assert recipes_of(program) == {
        ("net/l1", "fprop"): ("fp8", "delayed"), ("net/l1", "wgrad"): ("fp8", "delayed"),
        ("net/l2", "fprop"): ("fp8", "current"), ("net/l2", "dgrad"): ("fp8", "current"), ("net/l2", "wgrad"): ("fp8", "current"),
    }
    # The option margin is of delayed scaling, eps of current scaling.
    current = Current(eps=0.5)
    check_steps(program, Mixed(program, lambda site, role: current if site == "net/l2" else None, rows=3, margin=1))


def test_a_role_with_a_recipe_of_its_own(make):
    program = make("--amax-history-len=3", "--wgrad=current", "--power-2-scale=true")
    assert {role: recipe for (_, role), (_, recipe) in recipes_of(program).items()} == {"fprop": "delayed", "dgrad": "delayed", "wgrad": "current"}
    current = Current(power_2_scale=True)
    check_steps(program, Mixed(program, lambda site, role: current if role == "wgrad" else None, rows=3))


def test_the_first_site_recipe_that_matches_holds(make):
    program = make("--recipe=current", "--dgrad=f32", "--site-recipe=l2=none", "--site-recipe=net=#fp8.delayed_scaling<amax_history_len = 2>")
    assert recipes_of(program) == {
        ("net/l1", "fprop"): ("fp8", "delayed"), ("net/l1", "wgrad"): ("fp8", "delayed"),
        ("net/l2", "fprop"): ("high", "none"), ("net/l2", "dgrad"): ("high", "none"), ("net/l2", "wgrad"): ("high", "none"),
    }
    assert {s["reason"] for s in program.manifest["sites"] if s["decision"] == "high"} == {"--site-recipe=l2=none"}


def test_one_site_alone(make):
    """Where --recipe=none keeps every site, --site-recipe takes some."""
    program = make("--recipe=none", "--site-recipe=l1=current")
    reasons = {s["site"]: s["reason"] for s in program.manifest["sites"]}
    assert reasons == {"net/l1": "", "net/l2": "--recipe=none"}


class TwoHistories(Delayed):
    """Delayed scaling with other options for the columns of some sites, whose gradients are E4M3."""

    def __init__(self, program, rows, others, **options):
        super().__init__(program, rows, **options)
        self.others = others  # site -> options

    def quantize(self, value, key, role="fprop"):
        self.gradients = E4M3 if key[0] in self.others else E5M2
        return super().quantize(value, key, role)

    def options_of(self, column):
        sites = [site for (site, _, _), index in self.index.items() if index == column]
        return self.others.get(sites[0], self.options)

    def finish_step(self):
        for column, amax in self.recorded.items():
            self.scale, self.history = reference.update(self.scale, self.history, [column], [amax], [self.formats[column]], **self.options_of(column))
        self.recorded = {}


def test_two_stateful_recipes(make):
    other = "#fp8.delayed_scaling<amax_history_len = 3, margin = 2, amax_compute_algo = most_recent, format = e4m3>"
    program = make("--amax-history-len=3", f"--site-recipe=l2={other}")
    formats = {(site, c["tensor"]): c["format"] for c in program.manifest["state"]["columns"] for site in c["sites"]}
    assert (formats["net/l1", "grad_output"], formats["net/l2", "grad_output"]) == ("E5M2", "E4M3")
    recipe = TwoHistories(program, 3, {"net/l2": {"margin": 2, "algo": "most_recent"}})
    check_steps(program, recipe)


@pytest.mark.parametrize("target", ["cpu", "sm_89", "sm_90a", "sm_100a", "sm_120a"])
def test_two_updates_of_one_state(bin_dir, tmp_path, target):
    """Each update leaves the columns of the other unchanged, and reads its part of one vector of amaxes."""
    rows, columns, formats = 3, [0, 2, 2, 1, 4], [E4M3, E5M2, E5M2, E4M3, E5M2]
    scale, history, amaxes = tensor_type([5], F32), tensor_type([rows, 5], F32), tensor_type([5], F32)
    parts = [(0, 3, {"margin": 0, "algo": "max"}), (3, 5, {"margin": 2, "algo": "most_recent"})]
    text, state = "", ("%s", "%h")
    for n, (begin, end, options) in enumerate(parts):
        part = tensor_type([end - begin], F32)
        names = ", ".join(MLIR_NAMES[fmt] for fmt in formats[begin:end])
        text += f"""
  %a{n} = tensor.extract_slice %a[{begin}] [{end - begin}] [1] : {amaxes} to {part}
  %s{n}, %h{n} = fp8.update_amax_history
      recipe(#fp8.delayed_scaling<margin = {options["margin"]}, amax_history_len = {rows}, amax_compute_algo = {options["algo"]}>)
      columns {columns[begin:end]} formats [{names}] ins(%a{n} : {part})
      outs({", ".join(state)} : {scale}, {history}) -> {scale}, {history}"""
        state = f"%s{n}", f"%h{n}"
    text = f"func.func @main(%s: {scale}, %h: {history}, %a: {amaxes}) -> ({scale}, {history}) {{{text}\n  return {', '.join(state)} : {scale}, {history}\n}}"
    program = Program(bin_dir, tmp_path, text, "--recipe=none", f"--target={target}")
    rng = random_generator(72)
    values = rng.random(5).astype(F32), (rng.random((rows, 5)) * 4).astype(F32), (rng.random(5) * 4).astype(F32)
    values[1][0] = 0
    expected = values[:2]
    for begin, end, options in parts:
        expected = reference.update(*expected, columns[begin:end], values[2][begin:end], formats[begin:end], **options)
    for got, wanted in zip(program.call("main", *values), expected):
        assert_same_bits(got, wanted)
    assert_same_bits(expected[0][3], values[0][3])


LENGTHS = "keep 3 and 4 amaxes of a tensor; a program has one length of the history, so give both the same"
MASKS = "differ in executed_mask; a program has one history, so give both the same"


@pytest.mark.parametrize("other, message", [("amax_history_len = 4", LENGTHS), ("amax_history_len = 3, executed_mask = true", MASKS)])
def test_what_two_histories_cannot_mix(run, tmp_path, text, other, message):
    (tmp_path / "net.mlir").write_text(text)
    done = run("fp8-compile", "net.mlir", "-o", "net.so", "--amax-history-len=3", f"--site-recipe=l2=#fp8.delayed_scaling<{other}>", cwd=tmp_path)
    assert done.returncode == 1 and message in done.stderr, done.stderr
    assert not (tmp_path / "net.so").exists()


@pytest.mark.parametrize("options, split", [
    (["--accumulation=fast"], (False, False, False)),
    (["--accumulation=split"], (True, True, True)),
    (["--fprop-accumulation=split", "--wgrad-accumulation=fast"], (True, True, False)),
    (["--accumulation=split", "--dgrad-accumulation=fast"], (True, False, True)),
])
def test_accumulation(make, options, split):
    """Sums of 140 and 150 products, in one part or two."""
    program = make("--recipe=current", *options)
    recipe = Current()
    recipe.split = dict(zip(("fprop", "dgrad", "wgrad"), split))
    check_steps(program, recipe, steps=1)
    # A rounding of a forward sum may vanish in the next cast, so look at the code too.
    assert {s["role"]: "split sums" in s["code"] for s in program.manifest["sites"]} == recipe.split


def test_accumulation_leaves_the_history_one(make):
    """Roles that differ in accumulation only share their columns."""
    program = make("--amax-history-len=3", "--fprop-accumulation=split")
    assert len(program.manifest["state"]["columns"]) == 6
    recipe = Delayed(program, rows=3)
    recipe.split = {"fprop": True, "dgrad": True, "wgrad": True}
    check_steps(program, recipe, steps=2)


def test_a_site_recipe_without_kernels_stays_high(run, tmp_path, text):
    (tmp_path / "net.mlir").write_text(text)
    done = run("fp8-compile", "net.mlir", "-o", "net.so", "--target=sm_90a", "--site-recipe=l2=mxfp8", "--report=json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    sites = json.loads(done.stdout)["sites"]
    assert {s["decision"] for s in sites if s["site"] == "net/l1"} == {"fp8"}
    reasons = {s["reason"] for s in sites if s["site"] == "net/l2"}
    assert len(reasons) == 1 and next(iter(reasons)).startswith("--site-recipe=l2=mxfp8: mxfp8 scales have no kernel on sm_90a")
