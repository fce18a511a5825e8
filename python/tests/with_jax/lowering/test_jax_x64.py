# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""JAX with 64-bit types: values beside jax.jit's; the state that has such a type without."""

import pytest

jax = pytest.importorskip("jax")
import fp8  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402

from jax_values import compare  # noqa: E402

RANDOM = np.random.default_rng(0)
X, W = RANDOM.normal(size=(8, 16)), RANDOM.normal(size=(16, 16))
IDS = np.array([1, 2, 1])

CASES = {
    "gradient": (jax.grad(lambda w, x: jnp.tanh(x @ w).sum()), W, X),
    "indices": (lambda x, i: (x[i], x.at[i].add(1.0), jnp.sort(x), jnp.argsort(x), lax.top_k(x, 2)), X[0], IDS),
    "loops": (lambda x, n: (lax.scan(lambda c, r: (c + r.sum(), c), 0.0, x), lax.fori_loop(0, n, lambda i, c: c + i, 0)), X, 5),
    "random": (lambda s: [f(jax.random.key(s), (3,)) for f in (jax.random.normal, jax.random.uniform, jax.random.bits)], 7),
    "functions": (lambda x: (jnp.exp(x), jnp.sin(x), jax.scipy.special.erf(x), jnp.cumsum(x, 0), jnp.argmax(x, 1), jnp.abs(x) ** 2.5), X),
    "integers": (lambda a, b: (a * 3, a >> 5, a // 7, a.astype(jnp.float64), b + 1), np.uint64(2**63 + 12345), np.int64(2**40)),
    "casts": (lambda x: (x.astype(jnp.int64), x.astype(jnp.float8_e4m3fn).astype(jnp.float64), x.astype(jnp.float16)), 100 * X),
    "complex": (lambda x: (x + 1j * x) * (2 - 1j * x), X),
    "numbers": (lambda a, b: (a * b, a, b), 3, 2.5),
}


@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_jax_jit(name):
    fun, *args = CASES[name]
    with jax.enable_x64(True):
        # f64 sums of up to 16 terms in another order, and functions that differ by some ulp of 2e-16.
        compare(fun, *args, tolerance=1e-13)


def test_a_step_goes_on_with_its_state_whatever_the_mode():
    def train_step(w, x):
        return w - 0.1 * jax.grad(lambda w: (jnp.tanh(x @ w) ** 2).sum())(w)

    def run(modes):
        step, w = fp8.jax.jit(train_step), jnp.asarray(W, jnp.float32)
        for mode in modes:
            with jax.enable_x64(mode):
                w = step(w, jnp.asarray(X, jnp.float32))
        return w

    np.testing.assert_array_equal(run([False, True, False]), run([False, False, False]))


@pytest.mark.parametrize("recipe", ["current", "delayed"])
def test_the_state_of_stochastic_rounding_has_64_bits_in_every_mode(recipe):
    """Calls, the pure pair in a scan and a step that is resumed from numpy arrays draw the same numbers."""

    def train_step(w, x):
        return w - 0.1 * jax.grad(lambda w: (jnp.tanh(x @ w) ** 2).sum())(w)

    def make():
        return fp8.jax.jit(train_step, recipe=recipe, stochastic_rounding=True, donate_argnums=0)

    def run(step, w, steps):
        for _ in range(steps):
            w = step(w, x)
        return w

    x, start = jnp.asarray(X, jnp.float32), jnp.asarray(W, jnp.float32)
    step = make()
    wanted = run(step, jnp.array(start), 4)
    assert step.state["rounding"].dtype == np.int64
    assert not np.array_equal(wanted, run(fp8.jax.jit(train_step, recipe=recipe), start, 4))

    pure = make()
    carry = pure.init(start, x), start
    np.testing.assert_array_equal(jax.jit(lambda c: lax.scan(lambda c, _: (pure.apply(*c, x), None), c, None, length=4)[0])(carry)[1], wanted)

    first, second = make(), make()
    w = run(first, jnp.array(start), 2)
    second.state = {name: np.asarray(value) for name, value in first.state.items()}
    np.testing.assert_array_equal(run(second, w, 2), wanted)


def test_products_of_f64_are_kept():
    with jax.enable_x64(True):
        step = fp8.jax.jit(jnp.matmul, recipe="current", sites="all")
        np.testing.assert_allclose(step(X, W), X @ W, rtol=1e-12)
        (site,) = step.report().sites
        assert (site.decision, "f64" in site.reason) == ("high", True), site
