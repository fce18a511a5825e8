# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8.jax.jit as jax.jit: donation, static arguments, trees, recompilation; its state."""

import concurrent.futures
import copy
import functools
import re

import pytest

jax = pytest.importorskip("jax")
import fp8  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

from jax_values import assert_same  # noqa: E402

RATE = 0.1


def loss(params, x, y):
    h = jnp.tanh(x @ params["w1"])
    return ((h @ params["w2"] - y) ** 2).mean()


def train_step(params, x, y):
    value, gradients = jax.value_and_grad(loss)(params, x, y)
    return jax.tree.map(lambda p, g: p - RATE * g, params, gradients), value


def params():
    k1, k2 = jax.random.split(jax.random.key(1))
    return {"w1": jax.random.normal(k1, (16, 32)) / 4, "w2": jax.random.normal(k2, (32, 8)) / 6}


def batch(seed, rows=24):
    rng = np.random.default_rng(seed)
    return jnp.asarray(rng.normal(size=(rows, 16)), jnp.float32), jnp.asarray(rng.normal(size=(rows, 8)), jnp.float32)


def train(step, steps=6, rows=24):
    p, losses = params(), []
    for i in range(steps):
        p, value = step(p, *batch(i, rows))
        losses.append(float(value))
    return p, losses


def make(recipe="delayed", **options):
    return fp8.jax.jit(train_step, recipe=recipe, amax_history_len=4, **options)


def test_a_donated_step_trains_as_jax_jit_does():
    wanted, losses = train(jax.jit(train_step, donate_argnums=0))
    step = fp8.jax.jit(train_step, recipe="none", donate_argnums=0)
    got, ours = train(step)
    assert_same(got, wanted, 1e-5)
    np.testing.assert_allclose(ours, losses, rtol=1e-5)
    # FP8 has 3 bits of mantissa, 6 % per element; the mean over 192 outputs is much closer.
    np.testing.assert_allclose(train(make(donate_argnums=0))[1], losses, rtol=0.05)
    np.testing.assert_allclose(train(fp8.jax.jit(train_step, recipe="current", donate_argnums=0))[1], losses, rtol=0.05)


def test_donated_arguments_are_deleted_and_the_others_stay():
    step, p, (x, y) = make(donate_argnums=0), params(), batch(0)
    new, _ = step(p, x, y)
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(p))
    assert not x.is_deleted() and not any(leaf.is_deleted() for leaf in jax.tree.leaves(new))
    kept = params()
    make()(kept, x, y)
    np.testing.assert_array_equal(kept["w1"], params()["w1"])


def test_donation_by_name_and_without_make_the_same_numbers():
    by_number, by_name, none = (make(**o) for o in ({"donate_argnums": (0,)}, {"donate_argnames": "params"}, {}))
    wanted = train(by_number)
    for step in (by_name, none):
        p, losses = train(step)
        assert losses == wanted[1]
        assert_same(p, wanted[0], 0)


def test_the_report_lists_every_product():
    step = make(donate_argnums=0)
    with pytest.raises(RuntimeError, match="last call"):
        step.report()
    step(params(), *batch(0))
    sites = {(s.site, s.role, s.decision) for s in step.report().sites}
    assert sites == {(w, role, "fp8") for w, role in (("w1", "fprop"), ("w1", "wgrad"), ("w2", "fprop"), ("w2", "dgrad"), ("w2", "wgrad"))}
    assert {c["tensor"] for c in step.columns} == {"input", "weight", "grad_output"}
    assert "fp8.scaled_matmul" in step.ir("recipe")
    assert "linalg" in step.lower(params(), *batch(0)).as_text()


def test_the_report_is_the_last_calls():
    double = fp8.jax.jit(lambda x, w: x @ w, recipe="current", sites="all")
    for rows in (4, 12, 4):
        double(jnp.ones((rows, 16)), jnp.ones((16, 8)))
        assert double.report().sites[0].m == rows
    assert double.report(jnp.ones((12, 16)), jnp.ones((16, 8))).sites[0].m == 12


def test_state_is_saved_and_resumed_bit_for_bit():
    step = make(donate_argnums=0)
    p, _ = train(step, 3)
    saved = jax.tree.map(np.array, (p, step.state))
    after = []
    for i in range(3, 6):
        p, value = step(p, *batch(i))
        after.append(float(value))
    resumed = make(donate_argnums=0)
    q, resumed.state = jax.tree.map(jnp.asarray, saved[0]), saved[1]
    again = []
    for i in range(3, 6):
        q, value = resumed(q, *batch(i))
        again.append(float(value))
    assert again == after
    assert_same((q, resumed.state["scale"], resumed.state["amax_history"]), (p, step.state["scale"], step.state["amax_history"]), 0)


def test_a_state_of_another_program_is_refused():
    step = make()
    step(params(), *batch(0))
    other = fp8.jax.jit(lambda x, w: x @ w, sites="all")
    other(jnp.ones((4, 16)), jnp.ones((16, 8)))
    with pytest.raises(fp8.StateError):
        step.state = other.state
    late = make()
    with pytest.raises(fp8.StateError, match="the state lacks layout_hash"):
        late.state = {"scale": jnp.ones(1)}
    late.state = other.state
    with pytest.raises(fp8.StateError):
        late(params(), *batch(0))
    with pytest.raises(fp8.StateError, match="lacks"):
        step.apply({}, params(), *batch(0))


@pytest.mark.parametrize("called", [False, True])
def test_what_is_no_state_is_a_type_error(called):
    step = make()
    if called:
        step(params(), *batch(0))
    for wrong, name in ((None, "NoneType"), ([1.0], "list")):
        with pytest.raises(TypeError, match=f"a state is a dict of arrays, not of type {name}"):
            step.state = wrong
        with pytest.raises(TypeError, match=f"a state is a dict of arrays, not of type {name}"):
            step.apply(wrong, params(), *batch(0))
    late = make()
    late.state = {**late.init(params(), *batch(0)), "scale": None}
    with pytest.raises(TypeError, match="scale of the state is of type NoneType, and no array"):
        late(params(), *batch(0))


def test_shapes_of_results_without_compiling():
    step = make(donate_argnums=0)
    wanted = jax.jit(train_step, donate_argnums=0).eval_shape(params(), *batch(0))
    assert step.eval_shape(params(), *batch(0)) == wanted
    assert step.eval_shape(jax.eval_shape(params), *batch(0)) == wanted
    assert "0 compiled" in repr(step)
    scaled = fp8.jax.jit(lambda x, by, name: {name: x * by}, static_argnums=2)
    assert scaled.eval_shape(jnp.ones(3, jnp.bfloat16), 2, "x") == {"x": jax.ShapeDtypeStruct((3,), jnp.bfloat16)}
    with pytest.raises(AttributeError, match=re.escape("has no trace: step.lower(…).as_text() is its program")):
        step.trace(params(), *batch(0))
    assert not hasattr(step, "trace") and not hasattr(step, "nothing")


def test_apply_is_the_call_without_its_state_inside():
    step = make()
    state = step.init(params(), *batch(0))
    assert step.state == {}
    p, losses = params(), []
    for i in range(3):
        state, (p, value) = step.apply(state, p, *batch(i))
        losses.append(float(value))
    wanted, wanted_losses = train(make(), 3)
    assert losses == wanted_losses
    assert_same(p, wanted, 0)


def test_apply_in_a_scan_of_the_users_jit():
    step = make()
    state = step.init(params(), *batch(0))
    xs, ys = (jnp.stack(v) for v in zip(*(batch(i) for i in range(4))))

    @jax.jit
    def epoch(state, p):
        def one(carry, xy):
            state, (p, value) = step.apply(carry[0], carry[1], *xy)
            return (state, p), value

        return jax.lax.scan(one, (state, p), (xs, ys))

    (state, p), losses = epoch(state, params())
    wanted, wanted_losses = train(make(), 4)
    assert losses.tolist() == wanted_losses
    assert_same(p, wanted, 0)


def test_two_shapes_share_the_state():
    step = make(donate_argnums=0)
    p, _ = train(step, 2)
    before = np.array(step.state["amax_history"])
    p, _ = step(p, *batch(2, rows=8))
    assert np.array(step.state["amax_history"])[-1].any() and not np.array_equal(before, step.state["amax_history"])
    assert "2 compiled" in repr(step)


def test_a_shape_with_other_columns_is_refused():
    @fp8.jax.jit(recipe="delayed")
    def layers(x, weights):
        for name in "ab"[: x.shape[0]]:
            x = x @ weights[name]
        return x

    weights = {"a": jnp.eye(16), "b": jnp.eye(16)}
    layers(jnp.ones((1, 16)), weights)
    with pytest.raises(fp8.StateError, match="another layout.*weight of b"):
        layers(jnp.ones((2, 16)), weights)


def test_static_arguments_by_number_and_by_name():
    def scaled(x, w, factor, mode="up"):
        return (x @ w) * factor if mode == "up" else (x @ w) / factor

    x, w = jnp.ones((4, 16)), jnp.ones((16, 8))
    by_number = fp8.jax.jit(scaled, recipe="none", static_argnums=(2,), static_argnames="mode")
    by_name = fp8.jax.jit(scaled, recipe="none", static_argnames=("factor", "mode"))
    for step in (by_number, by_name):
        assert float(step(x, w, 2)[0, 0]) == 32 and float(step(x, w, 4)[0, 0]) == 64
        assert float(step(x, w, 2, mode="down")[0, 0]) == 8
        assert "3 compiled" in repr(step)


def test_results_have_the_types_of_jax_jits_results():
    def step(count, key, x):
        return count + 1, jax.random.split(key)[0], {"x": x.astype(jnp.bfloat16), "none": None, "u": x.astype(jnp.uint8)}

    args = (0, jax.random.key(3), jnp.ones(4))
    assert_same(fp8.jax.jit(step, recipe="none")(*args), jax.jit(step)(*args), 0)
    ours = fp8.jax.jit(step, recipe="none")
    count, key, _ = ours(*args)
    ours(count, key, jnp.ones(4))
    count, key, _ = ours(*ours(count, key, jnp.ones(4))[:2], jnp.ones(4))
    assert "1 compiled" in repr(ours) or "2 compiled" in repr(ours)  # A Python number first, then arrays.


def test_clear_cache_keeps_the_state():
    step = make()
    train(step, 2)
    state = jax.tree.map(np.array, step.state)
    step.clear_cache()
    assert "0 compiled" in repr(step)
    assert_same(jax.tree.map(jnp.asarray, step.state), jax.tree.map(jnp.asarray, state), 0)
    step(params(), *batch(0))


def test_as_a_decorator_it_keeps_name_and_doc():
    @fp8.jax.jit(recipe="current")
    def forward(x, w):
        """One product."""
        return x @ w

    assert (forward.__name__, forward.__doc__) == ("forward", "One product.")
    assert forward(jnp.ones((4, 16)), w=jnp.ones((16, 8))).shape == (4, 8)


def test_calls_by_xla_and_by_ctypes_give_the_same_bits():
    step = make()
    library = step.lower(params(), *batch(0)).compile().library
    state, p = library.state(), params()
    q = params()
    for i in range(3):
        q, value = step(q, *batch(i))
        w1, w2, ours = library.entries["main"](p["w1"], p["w2"], *batch(i), state=state)
        p = {"w1": jnp.asarray(w1.numpy()), "w2": jnp.asarray(w2.numpy())}
        assert ours.numpy() == np.asarray(value)
    assert_same(p, q, 0)
    np.testing.assert_array_equal(state["scale"], step.state["scale"])


def test_true_and_false_are_static_where_the_function_asks_which_it_is():
    def scaled(model, x):
        return {**model, "w": model["w"] + 1}, (x @ model["w"]) * (2 if model["twice"] else 1)

    x, w = jnp.ones((4, 16)), jnp.ones((16, 8))
    step = fp8.jax.jit(scaled, recipe="none")
    for twice in (True, False, True):
        model, y = step({"w": w, "twice": twice}, x)
        assert model["twice"] is twice and float(y[0, 0]) == (32 if twice else 16)
    assert "2 compiled" in repr(step)
    state = step.init({"w": w, "twice": True}, x)
    assert float(step.apply(state, {"w": w, "twice": True}, x)[1][1][0, 0]) == 32
    function = fp8.jax.function(lambda model, x: scaled(model, x)[1], recipe="current")
    gradient = jax.grad(lambda w: function({"w": w, "twice": True}, x).sum())(w)
    np.testing.assert_allclose(gradient, np.full((16, 8), 8), rtol=1e-6)  # Scales are not powers of two.
    # Where it does not ask, it is an array as with jax.jit.
    plain = fp8.jax.jit(lambda flag, x: jnp.where(flag, x, -x), recipe="none")
    assert plain(True, x)[0, 0] == 1 and plain(False, x)[0, 0] == -1 and "1 compiled" in repr(plain)
    with pytest.raises(jax.errors.TracerBoolConversionError):
        fp8.jax.jit(lambda x: x if x.sum() > 0 else -x, recipe="none")(x)


def test_programs_in_turns_and_in_several_threads():
    """A thread keeps the descriptions of its last call's arrays: those of another shape or type come between."""
    step = fp8.jax.jit(lambda arrays: [a * 2 for a in arrays], recipe="none")
    inputs = [[jnp.arange(4.0), jnp.ones((2, 3))], [jnp.arange(6).reshape(3, 2)], [jnp.zeros((0, 5)), jnp.float32(3)]]
    # Held, so that no call finds the memory of an earlier one.
    held = [(arrays, step(arrays)) for _ in range(3) for arrays in inputs for _ in range(2)]
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        held += zip(inputs * 20, threads.map(step, inputs * 20))
    for arrays, results in held:
        for array, result in zip(arrays, results, strict=True):
            assert_same(result, array * 2, tolerance=0)


def test_calls_alike_are_traced_once():
    """Also where an argument is static, and another has leaves that are no arrays."""

    def scaled(x, options, mode):
        return x * options["factors"][mode]

    step = fp8.jax.jit(scaled, recipe="none", static_argnums=2)
    for _ in range(3):
        for mode, factor in (("up", 2), ("down", 0.5)):
            x, options = jnp.float32([1, 2, 3]), {"name": "scaled", "factors": {"up": 2.0, "down": 0.5}}
            np.testing.assert_array_equal(step(x, options, mode), factor * x)
    assert step._stepper._cache_size() == 2


def test_a_state_that_was_read_outlives_later_calls():
    step = make()
    step(params(), *batch(0))
    kept = step.state
    wanted = step(params(), *batch(1))
    step(params(), *batch(2))
    step.state = kept
    assert_same(step(params(), *batch(1)), wanted, 0)
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(step.state["scale"])[0] = 7


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_has_a_state_of_its_own(copied):
    step = make()
    step(params(), *batch(0))
    other = copied(step)
    wanted = step.state
    for i in range(3):
        other(jax.tree.map(lambda p: 3 * p, params()), *batch(i))
    assert_same(step.state["scale"], wanted["scale"], 0)
    assert (other.state["scale"] != wanted["scale"]).any()
    assert_same(copied(step)(params(), *batch(1)), step(params(), *batch(1)), 0)


def test_a_step_in_a_class_is_a_method():
    class Scaled:
        def __init__(self, factor):
            self.factor = factor

        @functools.partial(fp8.jax.jit, recipe="none", static_argnums=0)
        def product(self, x, w):
            return x @ w * self.factor

    x, w = batch(0)[0], params()["w1"]
    for factor in (2, 3):
        scaled = Scaled(factor)
        assert_same(scaled.product(x, w), x @ w * factor, 1e-5)
        assert len(scaled.product.report().sites) == 1


def test_a_state_in_safetensors_goes_on_bit_for_bit(tmp_path):
    flax, numpy = pytest.importorskip("safetensors.flax"), pytest.importorskip("safetensors.numpy")
    forward, x, w = (lambda x, w: x @ w), jnp.ones((4, 16)), jnp.ones((16, 8))
    first = fp8.jax.jit(forward, sites="all")
    for i in range(3):
        first(x * 2.0**i, w)
    flax.save_file(first.state, tmp_path / "state")
    wanted = first(x, w)
    for load in flax.load_file, numpy.load_file:
        second = fp8.jax.jit(forward, sites="all")
        second.state = load(tmp_path / "state")
        np.testing.assert_array_equal(second(x, w), wanted)
