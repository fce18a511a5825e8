# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A precision per role, and options at random, by value."""
import numpy as np
import pytest

from harness import E4M3, E5M2, assert_same_bits, load, random_generator
from net import NAMES, Current, Delayed, initial_tensors, train
from recipe_steps import INF, check_steps, make, text  # noqa: F401 (make and text are fixtures)


def columns_of(program):
    return {(site, c["tensor"], c["format"]) for c in program.manifest["state"]["columns"] for site in c["sites"]}


def formats_of(program, entry="main"):
    return {(s["site"], s["role"]): s["formats"] for s in program.manifest["sites"] if s["entry"] == entry}


def test_two_roles_read_a_gradient_in_two_formats(make):
    """Two casts and two columns of one tensor, one update."""
    program = make("--amax-history-len=3", "--dgrad=e4m3")
    formats = formats_of(program)
    assert formats["net/l2", "dgrad"] == ["E4M3", "E4M3"] and "E5M2" in formats["net/l2", "wgrad"]
    gradients = {c for c in columns_of(program) if c[1] == "grad_output"}
    # Only the second layer has a dgrad: the first one's input is no activation.
    assert gradients == {("net/l1", "grad_output", "E5M2"), ("net/l2", "grad_output", "E5M2"), ("net/l2", "grad_output", "E4M3")}
    check_steps(program, Delayed(program, rows=3, roles={"dgrad": {"grad_output": E4M3}}))


@pytest.mark.slow
def test_forward_in_e5m2_means_both_operands(make):
    """Backward products read activations and weights as before, so those are cast twice."""
    program = make("--amax-history-len=3", "--fprop=e5m2")
    formats = formats_of(program)
    assert formats["net/l1", "fprop"] == ["E5M2", "E5M2"]
    assert sorted(formats["net/l2", "dgrad"]) == sorted(formats["net/l1", "wgrad"]) == ["E4M3", "E5M2"]
    assert {("net/l2", "weight", "E4M3"), ("net/l2", "weight", "E5M2"), ("net/l2", "input", "E5M2")} <= columns_of(program)
    check_steps(program, Delayed(program, rows=3, roles={"fprop": {"input": E5M2, "weight": E5M2}}))


@pytest.mark.slow
def test_formats_of_roles_go_with_any_recipe(make):
    program = make("--recipe=current", "--format=e4m3", "--wgrad=e5m2", "--eps=0.5", "--power-2-scale=true")
    roles = {"wgrad": {"grad_output": E5M2}}
    check_steps(program, Current(gradients=E4M3, roles=roles, eps=0.5, power_2_scale=True))


@pytest.mark.slow
def test_a_role_in_high_precision(make):
    program = make("--amax-history-len=3", "--wgrad=f32")
    for site in program.manifest["sites"]:
        kept = site["role"] == "wgrad"
        assert (site["decision"], site["reason"]) == (("high", "--wgrad=f32") if kept else ("fp8", ""))
        assert not kept or site["formats"] == ["f32", "f32"]
    assert ("net/l1", "grad_output", "E5M2") not in columns_of(program)
    recipe, tensors = Delayed(program, rows=3, roles={"wgrad": None}), initial_tensors()
    w1, w2, _ = train(recipe, *tensors.values())
    state = program.folder / "state"
    program.run("main", tensors, f"--outputs={program.folder / 'outputs'}", f"--save-state={state}")
    # Sums of 150 f32 products, whose order and fusing are not promised.
    for index, expected in (("0", w1), ("1", w2)):
        np.testing.assert_allclose(load(program.folder / "outputs")[index], expected, rtol=1e-4, atol=1e-5)
    assert_same_bits(load(state)["scale"], recipe.scale)
    assert_same_bits(load(state)["amax_history"], recipe.history)


@pytest.mark.slow
def test_a_recipe_of_its_own_for_a_role(make):
    """Weight gradients with scales of this step, everything else with those of the last."""
    program = make("--recipe=#fp8.custom<base = #fp8.delayed_scaling<amax_history_len = 3>, wgrad = #fp8.current_scaling<eps = 4.0>>")
    assert {(s["role"], s["recipe"]) for s in program.manifest["sites"]} == {("fprop", "delayed"), ("dgrad", "delayed"), ("wgrad", "current")}
    current = Current(eps=4.0)

    class Mixed(Delayed):
        def quantize(self, value, key, role="fprop"):
            return current.quantize(value, key, role) if role == "wgrad" else super().quantize(value, key, role)

    check_steps(program, Mixed(program, rows=3))


@pytest.mark.slow
def test_the_word_fp8_is_what_happens_anyway(make):
    assert make("--fprop=fp8", "--dgrad=e5m2", "--wgrad=fp8").manifest["options"]["recipe_attribute"] == "#fp8.delayed_scaling"
    assert make("--fprop=e4m3", "--dgrad=e4m3", "--format=e4m3").manifest["options"]["recipe_attribute"] == "#fp8.delayed_scaling<format = e4m3>"


def random_options(rng):
    """Options of the command line, and the Recipe of net.py that they mean."""
    pick = lambda *values: values[rng.integers(len(values))]
    gradients, roles, options, means = E5M2, {}, [], {}
    if rng.random() < 0.3:
        gradients, options = E4M3, ["--format=e4m3"]
    for role in ("fprop", "dgrad", "wgrad"):
        word = pick("fp8", "e4m3", "e5m2")
        options.append(f"--{role}={word}")
        kinds = ("input", "weight") if role == "fprop" else ("grad_output",)
        if word != "fp8":
            roles[role] = {kind: NAMES[word.upper()] for kind in kinds}

    def choose(option, parameter, *values):
        value = pick(*values)
        options.append(f"--{option}={str(value).lower()}")
        means[parameter] = value

    if rng.random() < 0.4:
        options.append("--recipe=current")
        choose("eps", "eps", 0.0, 0.5, 100.0)
        choose("power-2-scale", "power_2_scale", True, False)
        return options, lambda program: Current(gradients, roles, **means)
    choose("amax-history-len", "rows", 2, 3, 5)
    choose("margin", "margin", -1, 0, 3)
    choose("amax-compute-algo", "algo", "max", "most_recent")
    choose("ignore-non-finite", "ignore_non_finite", True, False)
    choose("executed-mask", "executed_mask", True, False)
    choose("init", "init", "one", "current")
    return options, lambda program: Delayed(program, gradients=gradients, roles=roles, **means)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_random_options(make, seed):
    rng = random_generator(71, seed)
    options, recipe_of = random_options(rng)
    print(*options)
    tensors, program = initial_tensors(), make(*options)
    if rng.random() < 0.3:
        tensors["x"][rng.integers(150), rng.integers(140)] = INF
    check_steps(program, recipe_of(program), tensors)
