# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8.jax.function: values and gradients beside JAX's own, inside of its transformations."""

import pytest

jax = pytest.importorskip("jax")
import fp8  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

from jax_values import assert_same  # noqa: E402

# f32 sums of up to 32 terms in another order.
TOLERANCE = 3e-6


def mlp(params, x):
    return jnp.tanh(x @ params["w1"]) @ params["w2"]


def params():
    k1, k2 = jax.random.split(jax.random.key(1))
    return {"w1": jax.random.normal(k1, (16, 32)) / 4, "w2": jax.random.normal(k2, (32, 8)) / 6}


X = jnp.asarray(np.random.default_rng(0).normal(size=(24, 16)), jnp.float32)


def loss_of(function):
    return lambda p, x: (function(p, x) ** 2).mean()


def relative_error(a, b):
    return float(jnp.linalg.norm(a - b) / jnp.linalg.norm(b))


def test_values_and_gradients_without_fp8_are_jaxs():
    ours = fp8.jax.function(mlp, recipe="none")
    assert_same(ours(params(), X), mlp(params(), X), TOLERANCE)
    got, wanted = (jax.jit(jax.value_and_grad(loss_of(f), argnums=(0, 1)))(params(), X) for f in (ours, mlp))
    assert_same(got, wanted, TOLERANCE)


def test_gradients_in_fp8_are_close_and_every_product_is_reported():
    ours = fp8.jax.function(mlp, recipe="current")
    got, wanted = (jax.grad(loss_of(f))(params(), X) for f in (ours, mlp))
    for name in got:
        # Two E4M3 and E5M2 operands: errors of 2^-4 and 2^-3 at most, averaged over a sum.
        assert 1e-4 < relative_error(got[name], wanted[name]) < 0.1
    assert {(s.site, s.role) for s in ours.report().sites if s.decision == "fp8"} >= {("w1", "fprop"), ("w2", "fprop"), ("w2", "dgrad"), ("w1", "wgrad")}


def test_in_a_scan_with_remat_and_vmap():
    def loss(layer):
        def run(ws, x):
            body = jax.checkpoint(lambda h, w: (layer(w, h), None))
            return jax.lax.scan(body, x, ws)[0].sum()

        return run

    def layer(w, h):
        return jnp.tanh(h @ w)

    ws = jax.random.normal(jax.random.key(2), (3, 16, 16)) / 4
    ours = fp8.jax.function(layer, recipe="none")
    assert_same(jax.jit(jax.grad(loss(ours)))(ws, X), jax.jit(jax.grad(loss(layer)))(ws, X), 10 * TOLERANCE)
    assert_same(jax.vmap(ours)(ws, jnp.stack([X] * 3)), jax.vmap(layer)(ws, jnp.stack([X] * 3)), TOLERANCE)


def test_integers_keys_static_leaves_and_keywords():
    def embed(table, ids, key, activation, scale=1.0):
        h = activation(table[ids] @ table.T) * scale
        return jnp.where(jax.random.bernoulli(key, 0.5, h.shape), h, 0), ids + 1

    table, ids, key = jax.random.normal(jax.random.key(3), (12, 16)), jnp.array([1, 5, 5]), jax.random.key(4)
    ours = fp8.jax.function(embed, recipe="none")

    def loss(function):
        return lambda t: function(t, ids, key, jnp.tanh, scale=2.0)[0].sum()

    assert_same(ours(table, ids, key, jnp.tanh, scale=2.0), embed(table, ids, key, jnp.tanh, scale=2.0), TOLERANCE)
    assert_same(jax.grad(loss(ours))(table), jax.grad(loss(embed))(table), TOLERANCE)


def test_recipes_with_state_are_refused():
    with pytest.raises(ValueError, match="fp8.jax.jit"):
        fp8.jax.function(mlp, recipe="delayed")
    with pytest.raises(ValueError, match="fp8.jax.jit"):
        fp8.jax.function(mlp, recipe="#fp8.delayed_scaling<>", sites="all")(params(), X)
    with pytest.raises(ValueError, match="stochastic_rounding=True has state, .*: use fp8.jax.jit"):
        fp8.jax.function(mlp, stochastic_rounding=True)


@pytest.mark.parametrize("transform", [jax.jit, jax.grad])
def test_traced_values_that_are_no_arguments_are_refused(transform):
    w, x = jnp.ones((16, 8)) / 8, jnp.ones((4, 16))

    def loss(x):
        return fp8.jax.function(lambda w: jnp.tanh(x @ w), recipe="none")(w).sum()

    with pytest.raises(TypeError, match=r"no arguments of it \(float32\[4,16\]\): pass them as arguments"):
        transform(loss)(x)
    assert loss(x) == pytest.approx(float(jnp.tanh(x @ w).sum()), rel=1e-5)  # its own array is a constant
