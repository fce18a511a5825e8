# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The training step of inputs/net.mlir in numpy, quantized according to options of fp8-compile."""
from types import MappingProxyType

import numpy as np

import reference
from harness import E4M3, E5M2, F32, random_generator

FORWARD = [("net/l1", "input"), ("net/l1", "weight"), ("net/l2", "input"), ("net/l2", "weight")]
GRADIENTS = [("net/l1", "grad_output"), ("net/l2", "grad_output")]
NAMES = {"E4M3": E4M3, "E5M2": E5M2}


def initial_tensors():
    rng = random_generator(30)
    w1, w2 = rng.standard_normal([140, 20]) / 12, rng.standard_normal([20, 5]) / 4
    x, t = rng.standard_normal([150, 140]), rng.standard_normal([150, 5])
    return {name: value.astype(F32) for name, value in {"w1": w1, "w2": w2, "x": x, "t": t}.items()}


class Recipe:
    """The formats of tensors: `roles` maps a role to formats by kind that are not the usual ones, or to None
    where its products are not quantized. `split` says which sums are in parts of 128."""

    split = MappingProxyType({"fprop": False, "dgrad": True, "wgrad": True})

    def __init__(self, gradients=E5M2, roles=MappingProxyType({})):
        self.gradients, self.roles = gradients, roles

    def format(self, kind, role):
        own = self.roles.get(role, {})
        return own.get(kind, self.gradients if kind == "grad_output" else E4M3)

    def quantize(self, value, key, role="fprop"):
        """(data, scale_inv) of a cast; the value itself where the role is not quantized."""
        if self.roles.get(role, {}) is None:
            return value, np.float32(1)
        fmt = self.format(key[1], role)
        scale = self.scale_of(value, key, fmt)
        return reference.cast(value, scale, fmt), reference.scale_inv(scale)

    def finish_step(self):
        pass


class Delayed(Recipe):
    """Scales from the state; records what is cast. `options` are those of reference.update."""

    def __init__(self, program, rows, gradients=E5M2, roles=MappingProxyType({}), init="one", **options):
        super().__init__(gradients, roles)
        columns = program.manifest["state"]["columns"]
        self.index = {(site, c["tensor"], NAMES[c["format"]]): c["index"] for c in columns for site in c["sites"]}
        self.formats = {c["index"]: NAMES[c["format"]] for c in columns}
        self.scale, self.history = np.ones(len(columns), F32), np.zeros((rows, len(columns)), F32)
        self.init, self.options, self.recorded = init, options, {}

    def column(self, key, role="fprop"):
        return self.index[(*key, self.format(key[1], role))]

    def scale_of(self, value, key, fmt):
        column = self.index[(*key, fmt)]
        self.recorded[column] = amax = reference.amax(value)
        if self.init == "current" and (self.history[:, column] == 0).all():
            return reference.delayed_scale(amax, fmt, self.options.get("margin", 0))
        return self.scale[column]

    def finish_step(self):
        columns = list(self.recorded)
        amaxes, formats = [self.recorded[c] for c in columns], [self.formats[c] for c in columns]
        self.scale, self.history = reference.update(self.scale, self.history, columns, amaxes, formats, **self.options)
        self.recorded = {}


class Current(Recipe):
    """Scales from the tensors themselves. `options` are those of reference.current_scale."""

    def __init__(self, gradients=E5M2, roles=MappingProxyType({}), **options):
        super().__init__(gradients, roles)
        self.options = options

    def scale_of(self, value, key, fmt):
        return reference.current_scale(reference.amax(value), fmt, **self.options)


def multiply(a, b, split):
    """a · bᵀ of two casts (data, scale_inv)."""
    return reference.scaled_matmul(a[0], b[0], a[1], b[1], split)


def transposed(cast):
    return cast[0].T, cast[1]


def forward(recipe, w1, w2, x):
    """The values before and after the first layer's relu, and the result."""
    h = multiply(recipe.quantize(x, ("net/l1", "input")), transposed(recipe.quantize(w1, ("net/l1", "weight"))), recipe.split["fprop"])
    a = np.maximum(h, np.float32(0))
    y = multiply(recipe.quantize(a, ("net/l2", "input")), transposed(recipe.quantize(w2, ("net/l2", "weight"))), recipe.split["fprop"])
    return h, a, y


def weight_gradient(recipe, site, x, d):
    qx, qd = (recipe.quantize(v, (site, kind), "wgrad") for v, kind in ((x, "input"), (d, "grad_output")))
    return multiply(transposed(qx), transposed(qd), recipe.split["wgrad"])


def train(recipe, w1, w2, x, t):
    """One step: new weights and the loss."""
    h, a, y = forward(recipe, w1, w2, x)
    d = y - t
    g2 = weight_gradient(recipe, "net/l2", a, d)
    qd, qw2 = (recipe.quantize(v, ("net/l2", k), "dgrad") for v, k in ((d, "grad_output"), (w2, "weight")))
    ga = multiply(qd, qw2, recipe.split["dgrad"])
    g1 = weight_gradient(recipe, "net/l1", x, np.where(h > 0, ga, np.float32(0)))
    recipe.finish_step()
    rate = np.float32(0.001)
    return w1 - g1 * rate, w2 - g2 * rate, (d.astype(np.float64) ** 2).sum()
