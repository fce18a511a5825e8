# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of JAX in a recipe: how an amax is taken from a history, and a scale from an amax."""

import pytest

jax = pytest.importorskip("jax")
import fp8  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from fp8.recipe import DelayedScaling  # noqa: E402

ROWS = 4


def train(**fields):
    """The states after each of six steps of a small net, and its parameters."""

    def loss(p, x):
        return (jnp.tanh(x @ p["a"]) @ p["b"]).var()

    def train_step(p, x):
        return jax.tree.map(lambda v, g: v - 0.1 * g, p, jax.grad(loss)(p, x))

    step = fp8.jax.jit(train_step, recipe=DelayedScaling(amax_history_len=ROWS, **fields))
    keys = jax.random.split(jax.random.key(3), 8)
    p = {"a": jax.random.normal(keys[0], (16, 32)), "b": jax.random.normal(keys[1], (32, 8))}
    states = []
    for key in keys[2:]:
        p = step(p, 3 * jax.random.normal(key, (24, 16)))
        states.append({name: np.array(step.state[name]) for name in ("scale", "amax_history")})
    assert len(step.report().fp8) == 5
    return states, p, [column["fp8_max"] for column in step.columns]


def assert_equal(one, other):
    jax.tree.map(np.testing.assert_array_equal, one, other)


def standard(amax, old, fp8_max, recipe):
    """numerics of delayed scaling, for amaxes that are finite and not 0."""
    return fp8_max / amax / 2.0**recipe.margin


def test_the_rules_of_delayed_scaling_as_functions():
    assert_equal(train(amax_compute_algo=jnp.max), train())
    assert_equal(train(amax_compute_algo=lambda history: history[0]), train(amax_compute_algo="most_recent"))
    assert_equal(train(scaling_factor_compute_algo=standard, margin=1), train(margin=1))


def test_rules_of_their_own():
    """Sorts and means, and a scale that depends on the one before."""

    def median(history):
        return jnp.median(jnp.where(history > 0, history, history[0]))

    def slow(amax, old, fp8_max, recipe):
        return (old + fp8_max / amax) / recipe.amax_history_len

    states, _, largest = train(amax_compute_algo=median, scaling_factor_compute_algo=slow)
    old, history = np.ones(len(largest), np.float32), np.zeros((0, len(largest)), np.float32)
    for state in states:
        # Row 1 is the oldest, the last one that of this step; row 0 is for the next one.
        newest = state["amax_history"][-1:]
        history = np.concatenate([newest, history])[:ROWS]
        column = np.concatenate([history, np.repeat(newest, ROWS - len(history), 0)])
        amax = np.median(column, axis=0).astype(np.float32)
        scale = (old + np.float32(largest) / amax) / np.float32(ROWS)
        np.testing.assert_array_equal(state["scale"], scale)
        old = state["scale"]


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"amax_compute_algo": lambda history: history}, r"<lambda> returns float32\[4\]; a scale or an amax is one float32"),
        ({"scaling_factor_compute_algo": lambda amax, old, largest, recipe: jnp.int32(1)}, r"<lambda> returns int32\[\]; a scale"),
    ],
)
def test_results_that_are_no_number(fields, message):
    with pytest.raises(TypeError, match=message):
        train(**fields)


def test_functions_elsewhere():
    with pytest.raises(NotImplementedError, match="amax_compute_algo is a function, which only the recipe of fp8.jax.jit may have"):
        fp8.compile("func.func @main() { return }", recipe=DelayedScaling(amax_compute_algo=max))
    with pytest.raises(fp8.UnsupportedError, match=r"test_jax_algorithms.py:\d+: .*fft.* has no code"):
        train(amax_compute_algo=lambda history: jnp.abs(jnp.fft.fft(history)).max())
