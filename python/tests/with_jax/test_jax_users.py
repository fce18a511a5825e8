# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Uses of a step or a function beside calling it: objects of their own, pickles, copies, threads,
derivatives."""

import concurrent.futures
import copy
import dataclasses
import functools
import pickle
import re

import fp8
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jax_values import assert_same

X = jax.random.normal(jax.random.key(0), (4, 16))
W = jax.random.normal(jax.random.key(1), (16, 16))


def train(w, x):
    loss, gradient = jax.value_and_grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)
    return w - 0.1 * gradient, loss


class Model:
    """A class that JAX does not know, whose arrays a compiled step would take for constants."""

    def __init__(self, w):
        self.w = w

    @functools.partial(fp8.jax.jit, recipe="none")
    def without_static(self, x):
        return x @ self.w

    @functools.partial(fp8.jax.jit, recipe="none", static_argnums=0)
    def with_static(self, x):
        return x @ self.w


@dataclasses.dataclass
class Unhashable:
    w: object


@dataclasses.dataclass(frozen=True)
class Settings:
    factor: float


def test_objects_that_could_change_unnoticed_are_errors():
    product = lambda model, x: x @ model.w
    with pytest.raises(TypeError, match=r"of type Model, which JAX does not know .* register Model as a pytree .* static_argnums"):
        Model(W).without_static(X)
    for make in (fp8.jax.jit, fp8.jax.function):
        for model in (Model(W), Unhashable(W), [{"inside": Model(W)}]):
            with pytest.raises(TypeError, match="which JAX does not know"):
                make(product, recipe="none")(model, X)
        with pytest.raises(TypeError, match="of type set, which JAX does not know"):
            make(lambda names, x: x @ W if "w" in names else x, recipe="none")({"w"}, X)


def test_objects_that_are_named_static_or_compare_by_value():
    assert_same(Model(W).with_static(X), X @ W, 1e-5)
    assert_same(Model(2 * W).with_static(X), X @ (2 * W), 1e-5)
    for make in (fp8.jax.jit, fp8.jax.function):
        scaled = make(lambda settings, f, x: f(settings.factor * (x @ W)), recipe="none")
        assert_same(scaled(Settings(2.0), jnp.tanh, X), jnp.tanh(2 * (X @ W)), 1e-5)
        assert_same(scaled(Settings(3.0), jnp.sin, X), jnp.sin(3 * (X @ W)), 1e-4)
        assert_same(make(lambda rows, x: x[rows], recipe="none")(slice(1, 3), X), X[1:3], 0)


def test_a_pickle_has_the_state():
    step = fp8.jax.jit(train, recipe="delayed")
    w, _ = step(W, X)
    for other in (pickle.loads(pickle.dumps(step)), copy.copy(step), copy.deepcopy(step)):
        before = copy.deepcopy(step.state)
        assert_same(other(w, X), copy.copy(step)(w, X), 0)
        assert_same(step.state, before, 0)
    fresh = pickle.loads(pickle.dumps(fp8.jax.jit(train, recipe="delayed")))
    assert_same(fresh(W, X), fp8.jax.jit(train, recipe="delayed")(W, X), 0)
    function = fp8.jax.function(train)
    for other in (pickle.loads(pickle.dumps(function)), copy.deepcopy(function)):
        assert_same(other(W, X), function(W, X), 0)


def test_threads_call_one_step_in_turn():
    step, alone = fp8.jax.jit(train, recipe="delayed"), fp8.jax.jit(train, recipe="delayed")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        losses = list(pool.map(lambda _: float(step(W, X)[1]), range(12)))
    assert sorted(losses) == sorted(float(alone(W, X)[1]) for _ in range(12))
    assert_same(step.state, alone.state, 0)


def test_a_donated_argument_used_again_leaves_the_step_usable():
    step, alone = fp8.jax.jit(train, recipe="delayed", donate_argnums=0), fp8.jax.jit(train, recipe="delayed")
    old = jnp.array(W)
    w, _ = step(old, X)
    with pytest.raises((ValueError, RuntimeError), match="deleted or donated"):
        step(old, X)
    assert_same(step(w, X), alone(alone(W, X)[0], X), 0)
    assert_same(step.state, alone.state, 0)


def test_a_function_has_a_first_derivative_only():
    total = fp8.jax.function(lambda w: jnp.sum(jnp.tanh(X @ w)), recipe="none")
    for second in (jax.hessian(total), jax.grad(lambda w: jax.grad(total)(w).sum())):
        with pytest.raises(NotImplementedError, match="has a first derivative only"):
            second(W)
    jacobian = jax.jacrev(fp8.jax.function(lambda w: jnp.tanh(X @ w), recipe="none"))(W)
    assert_same(jacobian, jax.jacrev(lambda w: jnp.tanh(X @ w))(W), 1e-5)


def test_a_step_in_a_scan_of_the_users_keeps_the_state_of_a_loop():
    batches = jax.random.normal(jax.random.key(2), (5, 4, 16))
    step, alone = fp8.jax.jit(train, recipe="delayed"), fp8.jax.jit(train, recipe="delayed")

    def body(carried, x):
        state, w = carried
        state, (w, loss) = step.apply(state, w, x)
        return (state, w), loss

    (state, w), losses = jax.jit(lambda state, w: jax.lax.scan(body, (state, w), batches))(step.init(W, batches[0]), W)
    w_alone, losses_alone = W, []
    for x in batches:
        w_alone, loss = alone(w_alone, x)
        losses_alone.append(loss)
    assert_same((state, w, losses), (alone.state, w_alone, jnp.stack(losses_alone)), 0)


def test_settings_of_jax_around_a_call():
    mixed = fp8.jax.jit(lambda x: x + jnp.ones(3, jnp.int8), recipe="none")
    assert_same(mixed(jnp.ones(3)), 2 * jnp.ones(3), 0)
    with jax.numpy_dtype_promotion("strict"), pytest.raises(jax.dtypes.TypePromotionError):
        mixed(jnp.ones(3))
    step, alone = fp8.jax.jit(train, recipe="delayed"), fp8.jax.jit(train, recipe="delayed")
    w, w_alone = W, W
    for wide in (False, True, False):
        with jax.enable_x64(wide):
            w, loss = step(w, X)
        w_alone, loss_alone = alone(w_alone, X)
    assert_same((w, loss), (w_alone, loss_alone), 0)


def test_vmap_of_a_function_and_of_its_gradient():
    dense = lambda x, w: jnp.tanh(x @ w)
    xs, ws = np.asarray(jax.random.normal(jax.random.key(3), (3, 4, 16))), W[None] * jnp.arange(1.0, 4.0)[:, None, None] / 4
    variants = {
        "both": lambda f: jax.vmap(f)(xs, ws),
        "one": lambda f: jax.jit(jax.vmap(jax.grad(lambda x, w: f(x, w).sum(), argnums=(0, 1)), in_axes=(0, None)))(xs, ws[0]),
        "nested": lambda f: jax.vmap(jax.vmap(f, in_axes=(None, 0)), in_axes=(0, None))(xs, ws),
        "axes": lambda f: jax.vmap(f, in_axes=(1, 2), out_axes=1)(xs.transpose(1, 0, 2), ws.transpose(1, 2, 0)),
    }
    for name, run in variants.items():
        print(name)
        assert_same(run(fp8.jax.function(dense, recipe="none")), run(dense), 1e-5)


def test_a_step_within_another_is_said_so():
    inner = fp8.jax.jit(lambda x: x @ W, recipe="current")
    with pytest.raises(fp8.UnsupportedError, match=re.escape("cannot be compiled again: call the function itself, which is its __wrapped__")):
        fp8.jax.jit(lambda x: inner(x), recipe="none")(X)
    assert_same(fp8.jax.jit(lambda x: inner.__wrapped__(x), recipe="none")(X), X @ W, 1e-5)


HALF = jnp.ones(3, jnp.bfloat16)


@pytest.mark.parametrize(
    "function, arguments",
    [
        (lambda x, s: x * s, (HALF, 2.5)),
        (lambda x, s: x * s, (HALF, 3)),
        (lambda x, s: x * s, (HALF, jnp.float32(2.5))),
        (lambda x, s: x + s, (jnp.ones(3, jnp.int8), 3)),
        (lambda s: s * 2, (2.5,)),
        (lambda i: i, (3,)),
    ],
)
def test_numbers_of_python_are_as_weak_in_a_function_as_in_jax_jit(function, arguments):
    compiled = fp8.jax.function(function, recipe="none")
    assert_same(compiled(*arguments), jax.jit(function)(*arguments), 0)
    if all(jnp.issubdtype(jnp.result_type(a), jnp.floating) for a in arguments):
        gradient = lambda f: jax.grad(lambda *a: f(*a).sum().astype(jnp.float32), argnums=range(len(arguments)))(*arguments)
        assert_same(gradient(compiled), gradient(function), 0)


def test_functions_whose_gradient_needs_nothing_or_is_none():
    functions = [lambda x: x + x, lambda x: x[1], lambda x: (), lambda x: jnp.argmax(x), lambda x: None, lambda x: X @ W]
    for f in functions:
        assert_same(fp8.jax.function(f, recipe="none")(X), jax.jit(f)(X), 1e-5)
    assert_same(fp8.jax.function(lambda: X @ W, recipe="none")(), X @ W, 1e-5)
    assert_same(fp8.jax.function(lambda i: i * 2, recipe="none")(jnp.arange(3)), 2 * jnp.arange(3), 0)
    assert_same(jax.grad(fp8.jax.function(lambda x: x.sum(), recipe="none"))(X), jnp.ones_like(X), 0)


def test_apply_refuses_the_state_of_another_program():
    steps = {name: fp8.jax.jit(lambda w, x, name=name: x @ w[name], recipe="delayed") for name in "ab"}
    state = steps["a"].init({"a": W}, X)
    with pytest.raises(fp8.StateError, match="the state is another program's: .* weight of b in E4M3"):
        steps["b"].apply(state, {"b": W}, X)
    after, _ = steps["a"].apply(state, {"a": W}, X)
    assert after.keys() == state.keys()
    np.testing.assert_array_equal(after["layout_hash"], state["layout_hash"])


OWN_RULES = {
    "add": lambda x, i: x.at[i].add(x[:3]),
    "set": lambda x, i: x.at[i[:2]].set(x[:2]),
    "gradient of indexing": lambda x, i: jax.grad(lambda x: (x[i] ** 2).sum())(x),
    "segment_sum": lambda x, i: jax.ops.segment_sum(x[:3], i, 4),
    "sorts": lambda x, i: (jnp.sort(x, 0), jnp.argsort(x, 1), jax.lax.top_k(x, 2), jax.lax.approx_min_k(x, 2)),
    "pooling": lambda x, i: jax.grad(lambda x: jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (3, 2), (2, 1), "SAME").sum())(x),
    "is_finite": lambda x, i: jnp.isfinite(x),
}


@pytest.mark.parametrize("name", OWN_RULES)
def test_settings_for_the_users_own_code_are_not_those_of_this_package(name):
    x, i = W[:5, :4] * 8, jnp.array([3, 0, 3])
    with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"):
        assert_same(fp8.jax.jit(OWN_RULES[name], recipe="none")(x, i), jax.jit(OWN_RULES[name])(x, i), 1e-6)
