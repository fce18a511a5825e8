# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers inside lax.cond, lax.switch, lax.scan and jax.checkpoint have the sites, roles and values that they have without branches.

A random program is built twice: with branches, and with the taken branch, or the sum of all, written out.
"""

import pytest

jax = pytest.importorskip("jax")
import fp8  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402

WIDTH, STEPS = 8, 3
SEEDS = [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 40))]


def in_branches(selectors, number, branches, h):
    return lax.cond(selectors[number] == 1, branches[1], branches[0], h) if len(branches) == 2 else lax.switch(selectors[number], branches, h)


def taken(choices):
    return lambda selectors, number, branches, h: branches[choices[number]](h)


def all_of_them(selectors, number, branches, h):
    return sum(branch(h) for branch in branches)


class Program:
    """A random program: `blocks` are functions of (branch, params, selectors, h), params are named by their place."""

    def __init__(self, seed):
        self.rng, self.shapes, self.choices = np.random.default_rng([20261128, seed]), {}, []
        self.blocks = [self.block(2, ()) for _ in range(self.rng.integers(1, 4))]

    def weight(self, stack, *shape):
        name = f"w{len(self.shapes)}"
        self.shapes[name] = (*stack, *shape)
        return name

    def layer(self, stack):
        up, down = self.weight(stack, WIDTH, 2 * WIDTH), self.weight(stack, 2 * WIDTH, WIDTH)
        residual = self.rng.random() < 0.5
        return lambda branch, p, s, h: jnp.tanh(h @ p[up]) @ p[down] + (h if residual else 0)

    def block(self, depth, stack):
        kind = self.rng.choice(["layer"] if depth == 0 else ["layer", "cond", "cond", "switch", "switch", "remat"] + ["scan"] * (not stack))
        if kind == "layer":
            return self.layer(stack)
        if kind == "remat":
            inner = self.block(depth - 1, stack)
            return lambda branch, p, s, h: jax.checkpoint(lambda p, s, h: inner(branch, p, s, h))(p, s, h)
        if kind == "scan":
            before, inner = set(self.shapes), self.block(depth - 1, (STEPS,))
            names = [name for name in self.shapes if name not in before]

            def scan(branch, p, s, h):
                body = lambda h, w: (inner(branch, {**p, **w}, s, h), None)
                return lax.scan(body, h, {name: p[name] for name in names})[0]

            return scan
        number, count = len(self.choices), 2 if kind == "cond" else 3
        self.choices.append(int(self.rng.integers(count)))
        # Some branches have no code, or no layer.
        others = [lambda branch, p, s, h: h, lambda branch, p, s, h: 2 * h]
        branches = [self.block(depth - 1, stack) if i == 0 or self.rng.random() < 0.4 else others[i - 1] for i in range(count)]
        branches = branches[1:] + branches[:1]
        return lambda branch, p, s, h: branch(s, number, [lambda h, b=b: b(branch, p, s, h) for b in branches], h)

    def step(self, branch):
        def loss(p, x, selectors):
            h = x @ p["first"]
            for block in self.blocks:
                h = block(branch, p, selectors, h)
            return (h**2).mean()

        return jax.value_and_grad(loss)

    def arguments(self):
        shapes = {"first": (WIDTH, WIDTH), **self.shapes}
        params = {name: jnp.asarray(self.rng.normal(size=shape) / 4, jnp.float32) for name, shape in shapes.items()}
        return params, jnp.asarray(self.rng.normal(size=(6, WIDTH)), jnp.float32), jnp.asarray([*self.choices, 0], jnp.int32)


def sites(step):
    """A product that is computed again counts once: without branches it may be one with the first."""
    return {(s.site, s.role, s.decision) for s in step.report().sites}


@pytest.mark.parametrize("seed", SEEDS)
def test_branches_change_no_site_role_or_value(seed):
    program, recipe = Program(seed), ["current", "delayed"][seed % 2]
    arguments = program.arguments()
    branched, plain, every = (fp8.jax.jit(program.step(b), recipe=recipe) for b in (in_branches, taken(program.choices), all_of_them))
    for _ in range(2 if recipe == "delayed" else 1):
        jax.tree.map(np.testing.assert_array_equal, branched(*arguments), plain(*arguments))
    every(*arguments)
    assert sites(branched) == sites(every)
    assert all(decision == "fp8" for _, _, decision in sites(branched))


def layers(p, h):
    return jnp.tanh(h @ p["up"]) @ p["down"]


STOCHASTIC_DEPTH = {
    "cond": lambda p, x, k: lax.cond(k, lambda h: layers(p, h), lambda h: h, x),
    "remat": jax.checkpoint(lambda p, x, k: lax.cond(k, lambda h: layers(p, h), lambda h: h, x)),
    "remat inside": lambda p, x, k: lax.cond(k, lambda h: jax.checkpoint(layers)(p, h), lambda h: h, x),
    "switch": lambda p, x, k: lax.switch(k.astype(int), [lambda h: h, lambda h: layers(p, h), lambda h: 2 * h], x),
    "nested": lambda p, x, k: lax.cond(k, lambda h: lax.cond(~k, lambda h: h, lambda h: layers(p, h), h), lambda h: h, x),
}


@pytest.mark.parametrize("form", STOCHASTIC_DEPTH)
@pytest.mark.parametrize("kept", ["", "^up$"])
def test_both_gradients_of_a_layer_that_may_be_left_out(form, kept):
    rng = np.random.default_rng(3)
    p = {"up": jnp.asarray(rng.normal(size=(16, 32)), jnp.float32), "down": jnp.asarray(rng.normal(size=(32, 16)), jnp.float32)}
    x = jnp.asarray(rng.normal(size=(8, 16)), jnp.float32)
    loss = lambda p, x, k: (STOCHASTIC_DEPTH[form](p, x, k) ** 2).sum()
    step = fp8.jax.jit(jax.value_and_grad(loss, argnums=(0, 1)), recipe="current", **({"keep": kept} if kept else {}))
    value, (_, of_x) = step(p, x, jnp.bool_(False))
    np.testing.assert_array_equal(of_x, 2 * x)  # nothing is multiplied
    step(p, x, jnp.bool_(True))
    roles = ["fprop", "dgrad", "wgrad"]
    assert sites(step) == {("up", role, "high" if kept else "fp8") for role in roles} | {("down", role, "fp8") for role in roles}
