# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8.jax.nnx_jit beside flax.nnx.jit: where objects may be among the arguments, donation, static arguments."""

import pytest

jax = pytest.importorskip("jax")
nnx = pytest.importorskip("flax.nnx")
optax = pytest.importorskip("optax")
import fp8  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

X = jnp.asarray(np.random.default_rng(0).normal(size=(8, 16)), jnp.float32)


class Counting(nnx.Module):
    """A layer that changes at each call."""

    def __init__(self, seed):
        rngs = nnx.Rngs(seed)
        self.linear = nnx.Linear(16, 8, rngs=rngs)
        self.dropout = nnx.Dropout(0.5, rngs=rngs)
        self.count = nnx.Variable(jnp.zeros((), jnp.int32))

    def __call__(self, x):
        self.count[...] += 1
        return self.dropout(self.linear(x))


PLACES = {
    "list": (lambda models, x: [m(x) for m in models], lambda a, b: (([a, b], X), {})),
    "dict": (lambda models, x: (models["a"](x), models["b"](x)), lambda a, b: (({"a": a, "b": b}, X), {})),
    "positional": (lambda x, *models: [m(x) for m in models], lambda a, b: ((X, a, b), {})),
    "keywords": (lambda x, **models: [models[name](x) for name in sorted(models)], lambda a, b: ((X,), {"a": a, "b": b})),
    "beside_none": (lambda x, none, models: [m(x) for m in models if none is None], lambda a, b: ((X, None, (a, b)), {})),
    "twice": (lambda a, x, again: (a(x), again(x)), lambda a, b: ((a, X, a), {})),
}


@pytest.mark.parametrize("place", PLACES)
def test_objects_anywhere_in_the_arguments_change_in_place(place):
    fun, arguments = PLACES[place]

    def run(jit):
        models = Counting(0), Counting(1)
        args, kwargs = arguments(*models)
        step = jit(fun)
        results = [step(*args, **kwargs) for _ in range(2)]
        return jax.tree.leaves(results), [int(m.count[...]) for m in models]

    (got, counts), (wanted, wanted_counts) = run(lambda f: fp8.jax.nnx_jit(f, recipe="none")), run(nnx.jit)
    assert counts == wanted_counts and max(counts) > 1
    for a, b in zip(got, wanted):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert not np.array_equal(wanted[0], wanted[-1])  # another dropout


def train_step(model, optimizer, x, scale):
    value, gradients = nnx.value_and_grad(lambda m: ((m(x) - scale) ** 2).mean())(model)
    optimizer.update(model, gradients)
    return value


@pytest.mark.parametrize(
    "options, donated",
    [
        (dict(), (False, False)),
        (dict(donate_argnums=0), (True, False)),
        (dict(donate_argnames=("model", "optimizer")), (True, True)),
        (dict(donate=True), (True, True)),
    ],
    ids=str,
)
def test_donation_as_nnx_jit_has_it(options, donated):
    model = nnx.Linear(16, 8, rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.sgd(0.1, momentum=0.9), wrt=nnx.Param)
    before = model.kernel[...], next(v for v in jax.tree.leaves(nnx.state(optimizer)) if v.shape == (16, 8))
    step = fp8.jax.nnx_jit(train_step, **options)
    first, second = (float(step(model, optimizer, X, 1.0)) for _ in range(2))
    assert tuple(array.is_deleted() for array in before) == donated
    assert second < first


def test_static_arguments_by_number_and_functions_among_the_arguments():
    model = nnx.Linear(16, 8, rngs=nnx.Rngs(0))
    run = fp8.jax.nnx_jit(lambda model, x, negate, activation: activation(-model(x) if negate else model(x)), recipe="none", static_argnums=2)
    np.testing.assert_allclose(run(model, X, True, jax.nn.relu), jax.nn.relu(-model(X)), atol=1e-6)
    np.testing.assert_allclose(run(model, X, False, jnp.tanh), jnp.tanh(model(X)), atol=1e-6)


def test_a_misspelt_argument_is_named():
    with pytest.raises(TypeError, match="fp8.jax.nnx_jit has no argument donate_argnum: did you mean donate_argnums?"):
        fp8.jax.nnx_jit(train_step, donate_argnum=0)


def test_what_a_step_shows_without_running():
    model = nnx.Linear(16, 8, rngs=nnx.Rngs(0))
    step = fp8.jax.nnx_jit(lambda model, x: model(x), recipe="current")
    assert "linalg.matmul" in step.lower(model, X).as_text() or "linalg.dot_general" in step.lower(model, X).as_text()
    assert "fp8.quantize" in step.ir("recipe", model, X)
    wanted = step(model, X)
    assert "1 compiled" in repr(step)
    step.clear_cache()
    assert "0 compiled" in repr(step)
    np.testing.assert_array_equal(step(model, X), wanted)
