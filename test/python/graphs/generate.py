# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws a model from a seed."""
import dataclasses

import numpy as np

from . import blocks
from . import model as m

# Forms of a product, as builder.ContractForm writes them; most words are rare on their own.
FORMS = [
    "generic",
    "contract",
    "named",
    "swap+generic",
    "swap+contract",
    "swap+named",
    "arrange+generic",
    "arrange+contract",
    "arrange+named",
    "extend+named",
    "extend+generic",
    "narrow+contract",
    "narrow+named",
    "extend+arrange+named",
    "spread+named",
    "squeeze+generic",
    "squeeze+named",
]
SIZES = [1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 31]
LONG_SIZES = [127, 128, 129, 140, 256, 260]

# Seeds from here on draw recipes with a scale per row or block too; below they mean what they did before.
BLOCKS_FROM = 100_000


def generate(seed):
    return Generator(seed).model()


def unfreeze(layer):
    """Trains all weights of a layer; False where it has none."""
    if isinstance(layer, m.Linear):
        layer.frozen = False
        return True
    parts = [part for field in dataclasses.fields(layer) for part in as_list(getattr(layer, field.name))]
    return any([unfreeze(part) for part in parts if dataclasses.is_dataclass(part)])


def as_list(value):
    return value if isinstance(value, list) else [value]


class Generator:
    def __init__(self, seed):
        self.seed, self.rng, self.count, self.linears = seed, np.random.default_rng([seed, 0]), 0, []

    def chance(self, probability):
        return bool(self.rng.random() < probability)

    def choose(self, choices):
        return choices[self.rng.integers(len(choices))]

    # --- models ---

    def model(self):
        dtype = self.choose(["f32", "bf16", "bf16", "f16"])
        lead = (self.size(long=0.15),) if self.chance(0.6) else (self.choose([1, 2, 3]), self.choose([1, 2, 5, 8, 65]))
        self.lead = lead
        model = m.Model(
            seed=self.seed,
            lead=lead,
            features=self.size(long=0.2),
            dtype=dtype,
            weight_dtype="f32" if self.chance(0.6) else dtype,
            microbatches=self.choose([1, 1, 1, 1, 2, 3]),
            update=self.choose(["carry", "carry", "carry option", "gradients"]),
            input_gradient=self.chance(0.1),
            evaluate=self.chance(0.25),
            looped=self.chance(0.5),
            names=self.choose(["jax", "jax", "calls", "attributes", "none"]),
            magnitude=self.choose([1.0, 1.0, 0.01, 30.0]),
        )
        self.cut_in_two(model)
        self.microbatches, self.update = model.microbatches, model.update
        # Products that read and make equal tensors are told apart by names alone.
        self.unnamed = model.names in ("attributes", "none")
        self.unnamed_sites = model.names == "none"
        model.layers = [layer for i in range(self.choose([1, 1, 2])) for layer in self.block(f"h{i}", first=i == 0)]
        model.options = self.options(dtype)
        self.avoid_doubt(model)
        self.choose_sizes(model)
        return model

    def cut_in_two(self, model):
        """Forward and backward as two functions; the weights are updated elsewhere."""
        if self.chance(0.2):
            model.pair, model.update = self.choose(["loss", "result"]), "gradients"

    def choose_sizes(self, model):
        """Sizes of zero, and one that is known only at run time."""
        if self.chance(0.15):
            model.dynamic = int(self.rng.integers(len(model.lead)))
        # A slice of a tensor without elements is out of bounds, says MLIR.
        sliced = model.microbatches > 1 or any(isinstance(layer, m.Stack) for layer in model.layers)
        if not self.chance(0.08) or sliced:
            return
        # Layers that follow must not need the size.
        following = zip(model.layers, [*model.layers[1:], None])
        layers = [a for a, b in following if isinstance(a, m.Linear) and not isinstance(b, (m.Conditional, m.Residual))]
        place = self.choose(["lead", "lead", "features", "out"])
        if place == "lead":
            model.lead = (0, *model.lead[1:])
        elif place == "out" and layers:
            self.choose(layers).out = 0
        else:
            model.features = 0

    def avoid_doubt(self, model):
        """Leaves out what the rules for users cannot tell without names."""
        # x with a gradient that is a result is a parameter by the rules, and what is computed from it made of parameters.
        model.input_gradient = False
        # Of x and a frozen weight, neither of which a product made, rank and order decide.
        next(filter(unfreeze, model.layers), None)

    def size(self, long=0.0):
        return self.choose(LONG_SIZES if self.chance(long) else SIZES)

    # --- layers ---

    def block(self, scope, first):
        kinds = ["plain", "plain", "plain", "residual", "branch", "attention", "remat", "conditional", "stack"]
        kind = self.choose(kinds)
        # Without gradients of x and of carried weights, only names tell the weight gradients of its readers apart.
        if first and self.unnamed and kind == "branch" and self.update == "gradients":
            kind = "plain"
        return getattr(self, kind)(scope)

    def plain(self, scope):
        layers = [self.linear(scope)]
        return layers + ([self.activation()] if self.chance(0.7) else [])

    def activation(self):
        return m.Activation(self.choose(["relu", "max", "leaky", "square", "scale"]))

    def residual(self, scope):
        first = self.linear(scope)
        inner = [self.activation(), self.linear(scope, first.out)]
        return [first, m.Residual(inner)]

    def branch(self, scope):
        first = self.linear(scope)
        paths = [first] + [self.linear(scope, first.out) for _ in range(self.choose([1, 1, 2]))]
        self.untie(paths)
        return [m.Branch(paths, self.choose(["add", "mul"]), self.unnamed or self.chance(0.5), self.chance(0.5))]

    def untie(self, layers):
        """Without names, equal products of one weight are nothing apart."""
        for layer in layers:
            if isinstance(layer, m.Linear) and self.unnamed:
                layer.tied = ""

    def attention(self, scope):
        q = self.linear(scope, plain=True)
        k, v = self.linear(scope, q.out, plain=True), self.linear(scope, plain=True)
        self.untie([q, k, v])
        return [m.Attention(q, k, v, f"{scope}/attention", tuple(self.form() for _ in range(6)))]

    def conditional(self, scope):
        first = self.linear(scope)
        return [first, m.Conditional([self.linear(scope, first.out), self.activation()])]

    def stack(self, scope):
        layers = [self.linear(scope)] if self.chance(0.5) else []
        linear = m.Linear(0, f"{scope}/stack", tuple(self.form() for _ in range(3)), turned=self.chance(0.3))
        linear.frozen, linear.wide = self.chance(0.1), self.chance(0.3)
        return [*layers, m.Stack(linear, self.choose([1, 2, 3]), self.activation().kind)]

    def remat(self, scope):
        body = [*self.plain(scope), *self.plain(scope)]
        self.untie(body)
        return [m.Remat(body, rewritten=self.chance(0.3))]

    def linear(self, scope, out=None, plain=False):
        self.count += 1
        layer = m.Linear(
            out or self.size(long=0.08),
            f"{scope}/fc{self.count}",
            forms=tuple(self.form() for _ in range(3)),
            turned=self.chance(0.3),
            bias=self.chance(0.3),
            frozen=self.chance(0.1),
            residual=self.chance(0.1),
            experts=self.chance(0.15),
            wide=self.chance(0.3),
        )
        if self.linears and self.chance(0.08):
            layer.tied = self.choose(self.linears)
        self.linears.append(layer.name)
        return layer

    def form(self):
        return self.choose(FORMS)

    # --- options ---

    def options(self, dtype):
        options = m.Options(
            recipe=self.choose(["delayed"] * 6 + ["current"] * 3 + ["none"]),
            format=self.choose(["hybrid", "hybrid", "e4m3"]),
            margin=self.choose([0, 0, 1, -1, 3]),
            amax_history_len=self.choose([1, 2, 3, 4, 16]),
            amax_compute_algo=self.choose(["max", "most_recent"]),
            sites=self.choose(["linear", "linear", "all"]),
            calibrate=self.chance(0.3),
            eps=self.choose([0.0, 0.0, 8.0]),
            power_2_scale=self.chance(0.3),
            ignore_non_finite=self.chance(0.2),
        )
        if options.amax_history_len > 1 and self.chance(0.2):
            options.init = "current"
        if self.seed >= BLOCKS_FROM and self.chance(0.4):
            options.recipe = self.choose(blocks.RECIPES)
            options.init = "one"
        if options.recipe != "none" and self.chance(0.2):
            options.fprop = self.choose(["fp8", "e5m2", "e4m3", dtype])
            options.dgrad = self.choose(["fp8", "e5m2", "e4m3", dtype])
            options.wgrad = self.choose(["fp8", "e5m2", "e4m3", dtype])
        if self.linears and self.chance(0.2):
            options.keep = self.choose(self.linears).split("/")[-1] + "$"
        elif self.chance(0.1):
            # Sites without a scope have the name of their weight, or else matmul0, …
            options.sites = "[02468]$|fc1$|stack$" if self.unnamed_sites else "fc[0-9]*[02468]$|fc1$|stack$"
        return options
