# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recipes mixed by role and by site, with random parameters, layers and weights kept in FP8, in one step with attention and
microbatches: three steps, bit for bit.

The class Options states the meaning of each option independently of the compiler, after its documentation.
"""
import re

import numpy as np
import pytest
from mixed_step import SCORES, SITES, VALUES, Step
from numerics import formats, products, reference, stochastic

from harness import F32, Program, assert_same_bits, load, random_generator

RECIPES = ["delayed", "current", "row", "block", "mxfp8"]
# Parameters of recipes: their option, the recipes that have them, and values to draw from.
PARAMETERS = [
    ("format", RECIPES, ["hybrid", "e4m3"]),
    ("margin", ["delayed"], [-1, 1, 3]),
    ("amax-history-len", ["delayed"], [2, 3, 5]),
    ("amax-compute-algo", ["delayed"], ["max", "most_recent"]),
    ("init", ["delayed"], ["one", "current"]),
    ("ignore-non-finite", ["delayed"], [True, False]),
    ("executed-mask", ["delayed"], [True, False]),
    ("eps", ["current", "block", "row"], [0.5, 2.5, 1e-5]),
    ("power-2-scale", ["current", "block", "row"], [True, False]),
    ("w-block-scaling-dim", ["block", "mxfp8"], [1, 2]),
    ("mx-rounding", ["mxfp8"], ["up", "floor", "even", "ceil"]),
    ("accumulation", ["delayed", "current", "row", "mxfp8"], ["fast", "split", "by_role"]),
]


class Options:
    """Random options; `recipe_of(site, role)` is (recipe, format policy, sums in parts), or None for high precision."""

    def __init__(self, rng, recipes):
        chance, pick = lambda p: rng.random() < p, lambda values: values[rng.integers(len(values))]
        self.recipe = pick(recipes)
        self.roles = {role: pick([*recipes, "none", "f32", "e4m3", "e5m2"]) for role in ("fprop", "dgrad", "wgrad") if chance(0.4)}
        self.sites = [(pick(["h0", "h1", "h0/[qk]", "/v$", "h0/s", "pv", "o$"]), pick([*recipes, "none"])) for _ in range(rng.integers(3))]
        if len(self.sites) == 2 and self.hides(*(regex for regex, _ in self.sites)):
            self.sites.pop()
        used = self.used = {self.recipe, *self.roles.values(), *(recipe for _, recipe in self.sites)}
        self.values = {option: pick(values) for option, recipes, values in PARAMETERS if used & {*recipes} and chance(0.4)}
        if self.values.get("w-block-scaling-dim") == 1 and "block" in used:
            self.values[pick(["x-block-scaling-dim", "grad-block-scaling-dim"])] = pick([1, 2])
        self.sums = {role: pick(["fast", "split"]) for role in ("fprop", "dgrad", "wgrad")
                     if chance(0.2) and self.roles.get(role, self.recipe) in ("delayed", "current", "row", "mxfp8")}
        self.attention, self.first, self.last = chance(0.6), chance(0.15), chance(0.15)
        self.last &= not self.first
        if self.attention:
            self.values.pop("x-block-scaling-dim", None)  # products of two inputs cannot have square blocks on both sides
        self.keep = pick(["h0/q", "h1", "/o", "v$"]) if chance(0.2) else None
        self.keeps_parameters, self.is_stochastic = chance(0.4), chance(0.3)

    @staticmethod
    def hides(first, second):
        """Whether all sites of the second are of the first, which is an error."""
        return all(re.search(first, site) for site in [*SITES.values(), SCORES, VALUES] if re.search(second, site))

    def words(self):
        words = [f"--recipe={self.recipe}", *(f"--{role}={word}" for role, word in self.roles.items())]
        words += [f"--site-recipe={regex}={recipe}" for regex, recipe in self.sites]
        words += [f"--{option}={str(value).lower()}" for option, value in self.values.items()]
        words += [f"--{role}-accumulation={word}" for role, word in self.sums.items()]
        flags = {"--fp8-attention": self.attention, "--first=1": self.first, "--last=1": self.last, "--fp8-parameters": self.keeps_parameters,
                 "--stochastic-rounding": self.is_stochastic}
        return [*words, *(flag for flag, given in flags.items() if given), *([f"--keep={self.keep}"] if self.keep else [])]

    def recipe_of(self, site, role, is_gradient):
        stays = (self.keep and re.search(self.keep, site)) or (role == "other" and not self.attention)
        if stays or (self.first and site.startswith("h0")) or (self.last and site.startswith("h1")):
            return None
        own = next((recipe for regex, recipe in self.sites if re.search(regex, site)), None)
        word = own or self.roles.get(role, self.recipe)
        if word in ("none", "f32"):
            return None
        recipe = word if word in RECIPES else self.recipe
        policy = self.values.get("format") or ("hybrid" if recipe in ("delayed", "current") else "e4m3")
        if word == "e4m3" and role != "fprop" or word == "e5m2":
            policy = {"e4m3": "e4m3", "e5m2": "e5m2" if role == "fprop" else "hybrid"}[word]
        sums = self.sums.get(role, self.values.get("accumulation", "by_role"))
        return recipe, policy, sums == "split" or (sums == "by_role" and is_gradient)


class Casts:
    """Products under `options`, and the columns of delayed scaling: one for each tensor in a format. `state` is the
    manifest's, whose columns number the random bits of stochastic rounding."""

    def __init__(self, options, state):
        self.options, self.columns, self.recorded, self.step = options, {}, {}, 0
        self.value = options.values.get
        self.layout, self.streams = state["columns"], {}

    def multiply(self, op, a, b):
        """a · bᵀ of an operation of the step."""
        is_gradient = "grad_output" in op.kinds
        chosen = self.options.recipe_of(op.site, op.role, is_gradient)
        if chosen is None:
            total = np.zeros((len(a), len(b)), F32)
            for k in range(a.shape[1]):
                total = products.fma(a[:, k, None], b[None, :, k], total)
            return total
        recipe, policy, split = chosen
        fmts = [formats.E5M2 if policy == "e5m2" or (policy == "hybrid" and kind == "grad_output") else formats.E4M3 for kind in op.kinds]
        roundings = [self.rounding(op, i, recipe, fmts[i], x) for i, x in enumerate((a, b))]
        casts = [self.cast(recipe, *operand) for operand in zip(op.operands, (a, b), op.kinds, fmts, roundings)]
        (a, a_inv), (b, b_inv) = ((fmt.decode(data).astype(F32), inverse) for (data, inverse), fmt in zip(casts, fmts))
        if recipe == "block":
            sides = [self.block_side(kind) for kind in op.kinds]
            return products.block_product(a, b, a_inv, b_inv, rhs_first=sides[0] > 1 and sides[1] == 1)
        return (products.mx_product if recipe == "mxfp8" else products.scaled_product)(a, b, a_inv, b_inv, split)

    def block_side(self, kind):
        option, usual = {"input": ("x", 1), "weight": ("w", 2), "grad_output": ("grad", 1)}[kind]
        return {1: 1, 2: 128}[self.value(f"{option}-block-scaling-dim", usual)]

    def rounding(self, op, i, recipe, fmt, x):
        """How operand i, x [rows, K], is rounded to FP8: gradients by random bits of their column or, without one, of a
        number after those of the columns, one for each recipe and format of a tensor as columns are. The bits are those
        of the elements of the tensor, whichever way it is read."""
        if not self.options.is_stochastic or op.kinds[i] != "grad_output":
            return formats.cast
        if recipe == "delayed":
            (stream,) = (c["index"] for c in self.layout if op.site in c["sites"] and c["tensor"] == "grad_output" and c["format"] in fmt.name)
        else:
            stream = self.streams.setdefault((op.operands[i], recipe, fmt.name), len(self.layout) + len(self.streams))
        is_turned = op.turned[i] != bool(i)
        words = stochastic.random_words(0, stream, self.step, x.size)
        fractions = stochastic.fractions_of(words, x.shape[::-1] if is_turned else x.shape)
        rule = stochastic.up_below(fractions.T if is_turned else fractions)
        return lambda values, scales, f: formats.cast(values, scales, f, rule)

    def cast(self, recipe, name, x, kind, fmt, rounded):
        """(data, scale_inv) of x [rows, K]; a scale_inv per row is spread over blocks of several rows."""
        eps, floors = self.value("eps", 0.0), self.value("power-2-scale", recipe == "block")
        rule = lambda amaxes, f: reference.current_scale(amaxes, f, eps, floors)
        if recipe in ("delayed", "current"):
            scale = rule(reference.amax(x), fmt) if recipe == "current" else self.delayed_scale(name, x, fmt)
            return rounded(x, scale, fmt), formats.scale_inv(scale)
        if recipe == "row":
            return reference.quantize_blocks(x, (1, 0), fmt, rule, rounded)
        if recipe == "block":
            side = self.block_side(kind)
            data, inverse = reference.quantize_blocks(x, (side, 128), fmt, rule, rounded)
        else:
            side = 32 if kind == "weight" and self.value("w-block-scaling-dim") == 2 else 1
            data, inverse = reference.quantize_mx(x, (side, 32), fmt, self.value("mx-rounding", "up"), rounded)
            inverse = formats.decode_e8m0(inverse)
        return data, np.repeat(inverse, side, axis=0)[: len(x)]

    def delayed_scale(self, name, x, fmt):
        tensor = name if name in SITES else name[:-1]  # without the microbatch
        key, amax = (tensor, fmt.name), reference.amax(x)
        scale, history, _ = self.columns.setdefault(key, (F32.type(1), np.zeros(self.value("amax-history-len", 1024), F32), fmt))
        self.recorded.setdefault(key, []).append(amax)
        if self.value("init") == "current" and not history.any():
            return reference.delayed_scale(amax, fmt, self.value("margin", 0))
        return scale

    def finish_step(self):
        names = {"margin": "margin", "amax-compute-algo": "algo", "ignore-non-finite": "ignore_non_finite", "executed-mask": "executed_mask"}
        options = {name: self.options.values[option] for option, name in names.items() if option in self.options.values}
        for key, amaxes in self.recorded.items():
            scale, history, fmt = self.columns[key]
            self.columns[key] = (*reference.update_column(scale, history, amaxes, fmt, **options), fmt)
        self.recorded = {}
        self.step += 1


def draw_inputs(rng, step, are_finite):
    inputs = {}
    for name in step.arguments:
        value = rng.standard_normal(step.shapes[name]) / (np.sqrt(step.shapes[name][0]) if name in SITES else 1)
        inputs[name] = (value * np.exp(rng.normal(0, rng.choice([0, 2]), value.shape))).astype(F32)
    x = inputs["x0"]
    if rng.random() < 0.15 and not are_finite:
        x[rng.integers(x.shape[0]), rng.integers(x.shape[1])] = rng.choice([np.inf, np.nan, -np.inf])
    elif rng.random() < 0.1:
        x[:] = 0
    return inputs


def check(bin_dir, folder, seed, sizes, *target, recipes=tuple(RECIPES)):
    rng = random_generator(160, seed)
    step, options = Step([int(rng.choice(sizes)) for _ in range(5)], int(rng.integers(1, 3))), Options(rng, recipes)
    if "--strict-accumulation" in target and options.values.get("accumulation") == "fast":
        del options.values["accumulation"]  # a contradiction
    print(step.shapes, *options.words())
    # MX products above FLT_MAX: whether they are rounded before they are added is the processor's.
    has_limits = "mxfp8" in options.used
    inputs = draw_inputs(rng, step, has_limits)
    if all(options.recipe_of(site, role, False) is None for site in SITES.values() for role in ("fprop", "dgrad")):
        options.keeps_parameters = False  # no weight is in FP8
    if all(options.recipe_of(op.site, op.role, True) is None for op in step.operations if "grad_output" in getattr(op, "kinds", ())):
        options.is_stochastic = False  # no gradient is in FP8
    program, values = Program(bin_dir, folder, step.text(), *options.words(), *target), dict(inputs)
    casts = Casts(options, program.manifest["state"])
    for count in range(1, 4):
        results = step.evaluate(values, casts.multiply)
        if has_limits and not all(np.isfinite(result).all() for result in results):
            if count == 1:
                pytest.skip("the first step has MX products above FLT_MAX")
            return
        casts.finish_step()
        values |= zip(SITES, results)
        program.run("main", inputs, f"--steps={count}", f"--outputs={folder / 'outputs'}")
        outputs = load(folder / "outputs")
        for i, expected in enumerate(results):
            assert_same_bits(outputs[str(i)], expected)


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 60))])
def test_on_the_cpu(bin_dir, tmp_path, seed):
    check(bin_dir, tmp_path, seed, [1, 3, 17, 33, 64, 128, 130, 150])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("chip", ["sm_89", "sm_90a", "sm_100a", "sm_120a"])
def test_on_chips(bin_dir, tmp_path, monkeypatch, chip, seed):
    """In the emulator, with sums in the order of the program."""
    monkeypatch.setenv("FP8EMU_SUMS", "korder")
    recipes = [recipe for recipe in RECIPES if recipe != "mxfp8" or chip in ("sm_100a", "sm_120a")]
    check(bin_dir, tmp_path, seed, [1, 17, 33, 64], f"--target={chip}", "--order=program", "--strict-accumulation", recipes=recipes)
