# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One training step in JAX, exported from ten versions: the same sites, roles, columns and values.

same_step/steps.py has the versions and explains why only the loss may differ in a bit: loops
over microbatches, unrolled or not, with the backward pass in a loop, with layers in a loop or not,
recomputed, in inner jitted functions, and with forward and backward as two functions.
"""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from harness import BF16, F32, Program, load, random_generator

HERE = pathlib.Path(__file__).resolve().parent / "same_step"
STEPS = ["scan", "unrolled", "fori", "loop_back", "layers_unrolled", "checkpoint", "jitted"]
PAIRS = ["pair_unrolled", "pair_scan", "pair_checkpoint"]
RECIPES = {
    "delayed": ["--recipe=delayed", "--amax-history-len=4"],
    "own start": ["--recipe=delayed", "--amax-history-len=4", "--init=current"],
    "current": ["--recipe=current"],
    "stochastic": ["--recipe=delayed", "--amax-history-len=4", "--stochastic-rounding=true"],
    "none": ["--recipe=none"],
}

# As in steps.py, which needs JAX.
SHAPES = {"down": (2, 24, 16), "embed": (8, 16), "head": (16, 8), "up": (2, 16, 24)}
BIAS, XS, TARGETS = (16,), (2, 3, 4, 8), (2, 3, 4, 8)
RATE, COUNT = F32.type(0.03125), 3


def make_inputs():
    """Weights, bias, and a stream of inputs and targets whose magnitudes differ from step to step."""
    rng = random_generator(17)
    normal = lambda shape: rng.standard_normal(shape).astype(F32)
    growth = np.array([1.0, 3.0, 0.5], F32).reshape(COUNT, 1, 1, 1, 1)
    weights = {name: normal(shape) / F32.type(np.sqrt(shape[-2])) for name, shape in SHAPES.items()}
    return weights, normal(BIAS), (normal((COUNT, *XS)) * growth).astype(BF16), normal((COUNT, *TARGETS)) * growth


def named(prefix, weights, bias):
    return {**{f"{prefix}trained['{name}']": w for name, w in weights.items()}, f"{prefix}bias": bias}


class Step:
    """A compiled writing: its sites, its columns, and what three steps make."""

    def __init__(self, bin_dir, folder, name, recipe):
        self.is_pair = name in PAIRS
        pair = ["--pair=forward:backward"] if self.is_pair else []
        report = folder / "report.json"
        text = (HERE / f"{name}.mlir").read_text()
        self.program = Program(bin_dir, folder, text, f"--report=json:{report}", *pair, *RECIPES[recipe])
        self.folder, self.report = folder, json.loads(report.read_text())
        self.state = self.program.manifest["state"]
        self.sites = {(s["site"], s["role"], s["decision"], *s["formats"]) for s in self.report["sites"]}
        self.weights, self.losses, self.final = self.run_pair() if self.is_pair else self.run_step()

    def run_step(self):
        weights, bias, xs, targets = make_inputs()
        inputs = {**named("", weights, bias), "x_stream": xs, "t_stream": targets}
        streams = ["--stream=xs=x_stream", "--stream=targets=t_stream"]
        outputs, state = self.folder / "outputs", self.folder / "state"
        carried = [f"--save-state={state}", "--with-carry"]
        printed = self.program.run("main", inputs, *streams, f"--steps={COUNT}", f"--outputs={outputs}", *carried, "--print=4")
        losses = [float(line.split("\t")[1]) for line in printed.splitlines()]
        trained = [load(outputs)[str(i)] for i in range(len(SHAPES))]
        tensors = {name: value for name, value in load(state).items() if not name.startswith("carry.")}
        return dict(zip(sorted(SHAPES), trained)), losses, tensors

    def run_pair(self):
        """The update, which JAX's step has in itself, is made here."""
        weights, bias, xs, targets = make_inputs()
        losses, before, after = [], self.folder / "before", self.folder / "after"
        for step in range(COUNT):
            inputs = {**named("forward.", weights, bias), "xs": xs[step], "targets": targets[step]}
            inputs["backward.slope"] = np.ones((), F32)
            files = [f"--outputs={self.folder / 'outputs'}", f"--save-state={after}"]
            files += [f"--state={before}"] if step else []
            self.program.run("forward,backward", inputs, *files)
            after.replace(before)
            results = load(self.folder / "outputs")
            losses.append(float(results["forward.0"]))
            gradients = [results[f"backward.{i}"] for i in range(len(SHAPES))]
            weights = {name: weights[name] - RATE * g for name, g in zip(sorted(SHAPES), gradients)}
        return weights, losses, load(before)


@pytest.fixture(scope="module")
def make(bin_dir, tmp_path_factory):
    made = {}

    def call(name, recipe):
        if (name, recipe) not in made:
            made[name, recipe] = Step(bin_dir, tmp_path_factory.mktemp(name), name, recipe)
        return made[name, recipe]

    return call


def assert_equal_bits(actual, expected):
    assert actual.keys() == expected.keys()
    for key in expected:
        assert actual[key].dtype == expected[key].dtype
        assert actual[key].tobytes() == expected[key].tobytes(), key


def test_the_step_is_what_it_is_meant_to_be(make):
    """Sites and roles by name; and columns whose amaxes follow from the arguments alone."""
    step = make("scan", "delayed")
    names = ["embed", "layer/up", "layer/down", "head"]
    assert {(name, role) for name, role, *_ in step.sites} == {
        (name, role) for name in names for role in ("fprop", "dgrad", "wgrad") if (name, role) != ("embed", "dgrad")
    }
    assert {decision for _, _, decision, *_ in step.sites} == {"fp8"}
    weights, _, xs, _ = make_inputs()
    history = {(*c["sites"], c["tensor"]): rows for c, rows in zip(step.state["columns"], step.final["amax_history"].T)}
    assert len(history) == 3 * len(names)
    # Row 0 is of the step to come.
    largest = lambda values: np.abs(values.astype(BF16).astype(F32)).max()
    np.testing.assert_array_equal(history["embed", "input"][1:], [largest(x) for x in xs])
    for name in names:
        assert history[name, "weight"][1] == largest(weights[name.split("/")[-1]])
    assert all(np.count_nonzero(rows) == COUNT for rows in history.values())


QUICK = [("unrolled", "delayed"), ("loop_back", "delayed"), ("pair_scan", "delayed"), ("pair_scan", "current"), ("pair_scan", "stochastic")]
ALL = [(name, recipe) for name in [*STEPS[1:], *PAIRS] for recipe in RECIPES]


@pytest.mark.parametrize("name, recipe", [pytest.param(*p, marks=[] if p in QUICK else pytest.mark.slow) for p in ALL])
def test_another_writing_is_the_same_step(make, name, recipe):
    step, first = make(name, recipe), make("scan", recipe)
    assert step.sites == first.sites
    assert step.state == first.state
    assert_equal_bits(step.weights, first.weights)
    assert_equal_bits(step.final, first.final)
    if step.is_pair:
        memory = step.report["memory"]
        assert memory["residual_bytes_after"] < memory["residual_bytes_before"]
    # Sums of 192 squares, in any order.
    np.testing.assert_allclose(step.losses, first.losses, rtol=192 * 2.0**-24)


QUICK_CROSSING = [("pair_scan", "delayed"), ("pair_scan", "current")]
CROSSING = [(name, recipe) for name in PAIRS for recipe in RECIPES if recipe not in ("none", "stochastic")]
# Backward casts slices of the weights, which are arguments: each with its own scale, or all with one of the state.
CROSSING = [(n, r) for n, r in CROSSING if n != "pair_checkpoint" or r == "delayed"]


@pytest.mark.parametrize("name, recipe", [pytest.param(*p, marks=[] if p in QUICK_CROSSING else pytest.mark.slow) for p in CROSSING])
def test_activations_cross_as_bytes(make, name, recipe):
    """Stacks, too, that one loop fills and another reads, with a stack of scale_inv where slices have their own."""
    step = make(name, recipe)
    forward = next(e for e in step.program.manifest["entries"] if e["name"] == "forward")
    crossing = [(r["type"], tuple(r["shape"])) for r in forward["results"] if r["kind"] == "residual"]
    assert sum(kind == "f8E4M3FN" for kind, _ in crossing) >= 4
    errors = {("f32", TARGETS), ("f32", TARGETS[1:])}
    others = {("f32", ())}
    if recipe != "delayed":  # a scale for each iteration; slices of an argument are cast again
        others |= {("f32", (2,)), ("f32", (2, 2)), ("bf16", XS)}
    assert {(kind, shape) for kind, shape in crossing if kind not in ("f8E4M3FN", "i1")} <= errors | others
    memory = step.report["memory"]
    assert memory["residual_bytes_after"] < 0.6 * memory["residual_bytes_before"]


def test_exporter_writes_the_committed_files(tmp_path):
    jax = pytest.importorskip("jax")
    if jax.__version__ != "0.10.2":
        pytest.skip(f"the files were made with jax 0.10.2, this is {jax.__version__}")
    subprocess.run([sys.executable, HERE / "export_steps.py", tmp_path], check=True)
    written, committed = sorted(tmp_path.glob("*.mlir")), sorted(HERE.glob("*.mlir"))
    assert [f.name for f in written] == [f.name for f in committed] == sorted(f"{name}.mlir" for name in STEPS + PAIRS)
    for one, other in zip(written, committed):
        assert one.read_bytes() == other.read_bytes(), one.name
