# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8_parameters=True: weights that a step keeps in FP8 for the next one, with the same bits as without."""

import pytest

jax = pytest.importorskip("jax")
import fp8  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

from jax_values import assert_same  # noqa: E402

RATE = 0.1
DELAYED = {"recipe": "delayed", "amax_history_len": 4}


def loss(params, x, y):
    h = jnp.tanh(x @ params["w1"] + params["b1"])
    return ((h @ params["w2"] - y) ** 2).mean()


def train_step(params, x, y):
    value, gradients = jax.value_and_grad(loss)(params, x, y)
    return jax.tree.map(lambda p, g: p - RATE * g, params, gradients), value


def params(seed=1):
    k1, k2 = jax.random.split(jax.random.key(seed))
    return {"w1": jax.random.normal(k1, (32, 64)) / 6, "b1": jnp.zeros(64), "w2": jax.random.normal(k2, (64, 32)) / 8}


def batch(seed, rows=32):
    rng = np.random.default_rng(seed)
    return tuple(jnp.asarray(rng.normal(size=(rows, 32)), jnp.float32) for _ in range(2))


def make(kept, **options):
    return fp8.jax.jit(train_step, donate_argnums=0, fp8_parameters=kept, **{**DELAYED, **options})


def train(step, steps, p=None, rows=32):
    p, losses = params() if p is None else p, []
    for i in steps:
        p, value = step(p, *batch(i, rows))
        losses.append(float(value))
    return p, losses


def copy(tree):
    return jax.tree.map(jnp.array, tree)


def spoil(step):
    """Makes the casts that a step keeps NaN, so that a call which reads them gives NaN."""
    step._casts = jax.tree.map(lambda cast: jnp.full(cast.shape, jnp.nan, cast.dtype), step._casts)


RECIPES = [DELAYED, {**DELAYED, "init": "current"}, *({"recipe": word} for word in ("current", "row", "block", "mxfp8"))]


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_every_step_has_the_bits_of_the_step_that_casts_each_time(recipe):
    kept, plain = (fp8.jax.jit(train_step, donate_argnums=0, fp8_parameters=k, **recipe) for k in (True, False))
    got, wanted = train(kept, range(6)), train(plain, range(6))
    assert got[1] == wanted[1]
    assert_same(got[0], wanted[0], 0)
    assert_same(copy(kept.state), copy(plain.state), 0)
    assert kept.report().memory["fp8_parameter_bytes"] >= 32 * 64 * 2


def test_the_casts_of_the_last_step_are_read_if_its_weights_come_back():
    step = make(True)
    p, _ = train(step, range(2))
    spoil(step)
    assert np.isnan(train(step, range(2, 3), p)[1][0])


def test_other_weights_are_cast_again():
    step, plain = make(True), make(False)
    for s in (step, plain):
        s.results = []
        p, _ = train(s, range(2))
        kept = copy(p)
        p, _ = train(s, range(2, 4), p)
        s.results += train(s, range(4, 6), kept)  # An earlier checkpoint.
        s.results += train(s, range(6, 7), params(2))  # Another model.
        swapped = {**p, "w1": p["w2"].T, "w2": p["w1"].T}
        s.results += train(s, range(7, 8), swapped)
    assert_same(jax.tree.map(jnp.asarray, step.results), jax.tree.map(jnp.asarray, plain.results), 0)


def test_weights_of_numpy_are_cast_at_each_call():
    """numpy's arrays can change in place, so that the same array may have other values."""
    evaluate = fp8.jax.jit(lambda w, x: x @ w, recipe="current", fp8_parameters=True)
    plain = fp8.jax.jit(lambda w, x: x @ w, recipe="current")
    w, x = np.array(params()["w1"]), batch(0)[0]
    evaluate(w, x)
    w *= 3
    assert_same(evaluate(w, x), plain(w, x), 0)


def test_frozen_weights_are_cast_once():
    evaluate = fp8.jax.jit(lambda w, x: x @ w, recipe="current", fp8_parameters=True)
    plain = fp8.jax.jit(lambda w, x: x @ w, recipe="current")
    w = params()["w1"]
    for i in range(3):
        assert_same(evaluate(w, batch(i)[0]), plain(w, batch(i)[0]), 0)
    spoil(evaluate)
    assert np.isnan(evaluate(w, batch(0)[0])).all()
    assert_same(evaluate(jnp.array(w), batch(0)[0]), plain(w, batch(0)[0]), 0)


def test_two_shapes_of_batches():
    results = []
    for step in (make(True), make(False)):
        p, first = train(step, range(2))
        p, second = train(step, range(2, 5), p, rows=8)
        p, third = train(step, range(5, 7), p)
        results.append((p, first, second, third))
    assert_same(jax.tree.map(jnp.asarray, results[0]), jax.tree.map(jnp.asarray, results[1]), 0)


def test_a_checkpoint_has_no_casts_and_serves_both():
    step = make(True)
    p, _ = train(step, range(3))
    saved = copy((p, step.state))
    assert set(saved[1]) == {"scale", "amax_history", "layout_hash"}
    wanted = train(step, range(3, 6), p)
    for kept in (True, False):
        resumed = make(kept)
        resumed.state = saved[1]
        got = train(resumed, range(3, 6), copy(saved[0]))
        assert got[1] == wanted[1]
        assert_same(got[0], wanted[0], 0)


def test_a_state_that_is_set_belongs_to_other_scales():
    """The same weights with another state are cast again."""
    results = []
    for kept in (True, False):
        step = make(kept)
        p, _ = train(step, range(3))
        step.state = {**step.state, "scale": step.state["scale"] / 64}
        results.append(train(step, range(3, 5), p))
    assert_same(jax.tree.map(jnp.asarray, results[0]), jax.tree.map(jnp.asarray, results[1]), 0)


@pytest.mark.parametrize("begin", ["casts", "abstract", "saved"])
def test_the_pure_pair(begin):
    step, wanted = make(True), train(make(False), range(3))
    arguments = (params(), *batch(0))
    if begin == "casts":
        state = step.init(*arguments)
        assert {name for name in state if name.startswith("weight/")} >= {"weight/w1/data", "weight/w2/data"}
        assert not arguments[0]["w1"].is_deleted()
    elif begin == "abstract":
        state = step.init(*jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), arguments))
    else:
        state = fp8.state.saved(step.init(*arguments))
    assert begin == "casts" or set(state) == {"scale", "amax_history", "layout_hash"}
    p, losses = params(), []
    for i in range(3):
        state, (p, value) = step.apply(state, p, *batch(i))
        losses.append(float(value))
    assert losses == wanted[1]
    assert_same(p, wanted[0], 0)
    # And on with the object, which takes the state without the casts.
    step.state = state
    assert "weight/w1/data" in state and "weight/w1/data" not in step.state
    rest = make(False)
    rest.state = fp8.state.saved(copy(state))
    assert train(step, range(3, 5), copy(p))[1] == train(rest, range(3, 5), copy(p))[1]


def test_the_pure_pair_in_a_scan():
    step = make(True)
    state = step.init(params(), *batch(0))
    xs, ys = (jnp.stack(v) for v in zip(*(batch(i) for i in range(4))))

    @jax.jit
    def epoch(state, p):
        def one(carry, xy):
            state, (p, value) = step.apply(*carry, *xy)
            return (state, p), value

        return jax.lax.scan(one, (state, p), (xs, ys))

    (state, p), losses = epoch(state, params())
    wanted, wanted_losses = train(make(False), range(4))
    assert losses.tolist() == wanted_losses
    assert_same(p, wanted, 0)


def test_static_arguments_before_the_weights_and_leaves_that_are_no_arrays():
    def step(activation, params, x, y, power=2):
        def loss(w):
            return (jnp.abs(params["f"](activation(x @ w["w1"])) @ w["w2"] - y) ** power).mean()

        w = {n: params[n] for n in ("w1", "w2")}
        value, gradients = jax.value_and_grad(loss)(w)
        return {**jax.tree.map(lambda a, g: a - RATE * g, w, gradients), "f": params["f"]}, value

    results = []
    for kept in (True, False):
        s = fp8.jax.jit(step, donate_argnums=1, static_argnums=0, static_argnames="power", fp8_parameters=kept, **DELAYED)
        p = {**params(), "f": jax.nn.gelu}
        del p["b1"]
        losses = []
        for i in range(4):
            p, value = s(jnp.tanh, p, *batch(i), power=2)
            losses.append(float(value))
        if kept:
            spoil(s)
            assert np.isnan(s(jnp.tanh, p, *batch(4), power=2)[1])
        results.append(losses)
    assert results[0] == results[1]


def test_objects_of_flax_that_change_in_place():
    nnx, optax = pytest.importorskip("flax.nnx"), pytest.importorskip("optax")

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.up, self.down = nnx.Linear(32, 64, rngs=rngs), nnx.Linear(64, 32, rngs=rngs)

        def __call__(self, x):
            return self.down(nnx.gelu(self.up(x)))

    def step(model, optimizer, x, y):
        value, gradients = nnx.value_and_grad(lambda model: ((model(x) - y) ** 2).mean())(model)
        optimizer.update(model, gradients)
        return value

    losses = []
    for kept in (True, False):
        model = Net(nnx.Rngs(0))
        optimizer = nnx.Optimizer(model, optax.adam(3e-3), wrt=nnx.Param)
        s = fp8.jax.nnx_jit(step, donate=True, fp8_parameters=kept, **DELAYED)
        losses.append([float(s(model, optimizer, *batch(i))) for i in range(4)])
        if kept:
            spoil(s._step)
            assert np.isnan(s(model, optimizer, *batch(4)))
    assert losses[0] == losses[1]


def test_errors_say_what_to_change():
    with pytest.raises(fp8.CompileError, match="does not compute its new value.*donate"):
        fp8.jax.jit(train_step, fp8_parameters=True, **DELAYED)(params(), *batch(0))
    with pytest.raises(ValueError, match="recipe=none casts none to FP8"):
        fp8.jax.jit(train_step, fp8_parameters=True, recipe="none")(params(), *batch(0))
    with pytest.raises(ValueError, match="a function keeps nothing: use fp8.jax.jit"):
        fp8.jax.function(lambda x, w: x @ w, fp8_parameters=True)
