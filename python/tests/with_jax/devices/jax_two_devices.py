# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that need two devices, which a process has from its start. Runs those named, and prints what failed, by name, as JSON."""

import gc
import json
import os
import pathlib
import sys
import traceback
import warnings

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "src"))

import fp8  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import AxisType, NamedSharding, PartitionSpec  # noqa: E402

RANDOM = np.random.default_rng(0)
X, W = (jnp.asarray(RANDOM.normal(size=size), jnp.float32) for size in ((8, 16), (16, 12)))
ALL, ROWS = PartitionSpec(), PartitionSpec("d")
# f32 sums of up to 16 terms in another order.
TOLERANCE = 3e-6


def forward(w, x):
    return jnp.tanh(x @ w).sum(0)


def loss(function):
    return lambda w, x: (function(w, x) ** 2).sum()


def mesh(type):
    return jax.make_mesh((2,), ("d",), axis_types=(type,))


def placed(mesh):
    return jax.device_put(W, NamedSharding(mesh, ALL)), jax.device_put(X, NamedSharding(mesh, ROWS))


def refused(call, *args):
    try:
        call(*args)
    except NotImplementedError as error:
        assert "lies on several devices" in str(error) and "jax.shard_map" in str(error), error
    else:
        raise AssertionError("it ran")


def arguments_over_several_devices_are_refused():
    """Also where one is a copy on each; afterwards the step can be called."""
    for type in AxisType.Auto, AxisType.Explicit:
        w, x = placed(mesh(type))
        step, function = fp8.jax.jit(forward, sites="all"), fp8.jax.function(forward)
        state = step.init(W, X)
        refused(step, W, x)
        step(W, X)
        refused(step, w, X)
        refused(lambda *args: step.apply(state, *args)[1], w, x)  # noqa: B023
        for call in (fp8.jax.jit(forward, recipe="none"), function, jax.jit(function), jax.grad(loss(function))):
            refused(call, w, x)
        donating = fp8.jax.jit(lambda w, x: (w * 2, x @ w), donate_argnums=0, sites="all")
        refused(donating, w, X)
        assert not w.is_deleted()
        assert step(W, X).shape == (12,)


def one_device_of_two():
    """Arguments on the second device are computed there, and a mesh of one device is none."""
    step = fp8.jax.jit(forward, recipe="none")
    second = jax.devices()[1]
    assert step(*jax.device_put((W, X), second)).devices() == {second}
    one = jax.make_mesh((1,), ("d",))
    with jax.set_mesh(one):
        np.testing.assert_allclose(step(W, jax.device_put(X, NamedSharding(one, ROWS))), forward(W, X), rtol=TOLERANCE, atol=TOLERANCE)


def shard_map_of_apply():
    """Each device has the state and the results of a step on its part."""
    step = fp8.jax.jit(forward, sites="all", reduce_amax=False)
    state = step.init(W, X[:4])
    wanted = [step.apply(state, W, X[i : i + 4]) for i in (0, 4)]

    def part(state, w, x):
        state, out = step.apply(state, w, x)
        return jax.tree.map(lambda a: a[None], state), out[None], jax.lax.pmean(out, "d")

    for type, check in (AxisType.Auto, True), (AxisType.Auto, False), (AxisType.Explicit, True):
        divided = mesh(type)
        run = jax.jit(jax.shard_map(part, mesh=divided, in_specs=(ALL, ALL, ROWS), out_specs=(ROWS, ROWS, ALL), check_vma=check))
        states, outs, mean = run(state, *placed(divided))
        for i, (new, out) in enumerate(wanted):
            np.testing.assert_array_equal(np.asarray(outs)[i], out)
            assert all(np.array_equal(np.asarray(states[name])[i], new[name]) for name in new)
        np.testing.assert_allclose(mean, (wanted[0][1] + wanted[1][1]) / 2, rtol=TOLERANCE)


def divided_calls(step, state):
    """Calls on both devices, each with its half of X, that return the state and the result."""
    divided = mesh(AxisType.Auto)
    specs = dict(mesh=divided, in_specs=(ALL, ALL, ROWS), out_specs=(ALL, ROWS))
    part = lambda state, w, x: step.apply(state, w, x)
    return [
        lambda: jax.jit(jax.shard_map(part, **specs))(state, *placed(divided)),
        lambda: jax.shard_map(part, **specs, check_vma=False)(state, *placed(divided)),
        lambda: jax.pmap(step.apply, in_axes=(None, None, 0), out_axes=(None, 0))(state, W, X.reshape(2, 4, 16)),
    ]


def amaxes_of_parts_are_combined():
    """The state is that of a step on all of X, and of the devices' own parts only where that is asked for."""
    for recipe in ("delayed", fp8.recipe.DelayedScaling(amax_history_len=4)):
        step = fp8.jax.jit(forward, sites="all", recipe=recipe, calibrate=True)
        whole = step.apply(step.init(W, X), W, X)[0]
        state = step.init(W, X[:4])
        assert not all(np.array_equal(whole["scale"], step.apply(state, W, X[i : i + 4])[0]["scale"]) for i in (0, 4))
        for call in divided_calls(step, state):
            new, out = call()
            for name in whole:
                np.testing.assert_array_equal(new[name], whole[name])
            for i in (0, 1):
                np.testing.assert_array_equal(out.reshape(2, -1)[i], step.apply(state, W, X[4 * i : 4 * i + 4])[1])
    one = jax.make_mesh((1,), ("d",), axis_types=(AxisType.Auto,))
    got = jax.shard_map(lambda state, w, x: step.apply(state, w, x)[1], mesh=one, in_specs=(ALL, ALL, ROWS), out_specs=ROWS)(state, W, X)
    np.testing.assert_array_equal(got, step.apply(state, W, X)[1])


def amaxes_are_combined_by_the_emulator_too():
    step = fp8.jax.jit(forward, sites="all", calibrate=True, device="emulator", target="sm_89")
    whole = step.apply(step.init(W, X), W, X)[0]
    new, _ = divided_calls(step, step.init(W, X[:4]))[0]()
    for name in whole:
        np.testing.assert_array_equal(new[name], whole[name])


def calls_that_devices_take_together_are_not_measured():
    """They wait for each other, and measured ones take turns."""
    step = fp8.jax.jit(forward, sites="all", calibrate=True)
    state = step.init(W, X[:4])
    call = divided_calls(step, state)[0]
    wanted = jax.block_until_ready(call())
    library = next(o for o in gc.get_objects() if isinstance(o, fp8.Library) and any(name.endswith("@devices") for name in o._measuring))
    with warnings.catch_warnings(record=True) as caught, library.profile() as profile:
        warnings.simplefilter("always")
        found = jax.block_until_ready(call())
    np.testing.assert_array_equal(found[1], wanted[1])
    assert not profile.kernels and "no call was measured" in str(caught[-1].message)


def gradients_of_a_step_are_those_of_the_device():
    step = fp8.jax.jit(jax.grad(loss(forward)), recipe="none")
    divided = mesh(AxisType.Auto)
    part = lambda w, x: jax.lax.psum(step.apply({}, w, x)[1], "d")
    got = jax.jit(jax.shard_map(part, mesh=divided, in_specs=(ALL, ROWS), out_specs=ALL))(*placed(divided))
    wanted = sum(jax.grad(loss(forward))(W, x) for x in (X[:4], X[4:]))
    np.testing.assert_allclose(got, wanted, rtol=TOLERANCE, atol=TOLERANCE * np.abs(wanted).max())


def scans_and_independent_calls():
    """Two calls in one program that do not need each other's results may be in another order on the other device: never with other values."""
    step = fp8.jax.jit(forward, sites="all", calibrate=True)
    state = step.init(W, X[:4])
    divided = mesh(AxisType.Auto)

    def scanned(state, w, x):
        return jax.lax.scan(lambda state, scale: (step.apply(state, w, scale * x)[0], None), state, jnp.arange(1.0, 4.0))[0]

    def both(state, w, x):
        return step.apply(state, w, x)[0], step.apply(state, 2 * w, 3 * x)[0]

    specs = dict(mesh=divided, in_specs=(ALL, ALL, ROWS), out_specs=ALL)
    got = jax.jit(jax.shard_map(scanned, **specs, check_vma=False))(state, *placed(divided))
    wanted = state
    for scale in (1.0, 2.0, 3.0):
        wanted = step.apply(wanted, W, scale * X)[0]
    np.testing.assert_array_equal(got["scale"], wanted["scale"])
    for _ in range(20):
        try:
            states = jax.jit(jax.shard_map(both, **specs, check_vma=False))(state, *placed(divided))
        except jax.errors.JaxRuntimeError as error:
            assert "let one depend on the other's result" in str(error), error
            return
        for new, (w, x) in zip(states, ((W, X), (2 * W, 3 * X))):
            np.testing.assert_array_equal(new["scale"], step.apply(state, w, x)[0]["scale"])


def amaxes_of_some_devices_are_refused():
    step = fp8.jax.jit(forward, sites="all", calibrate=True)
    state, count = step.init(W, X[:4]), jax.device_count
    jax.device_count = lambda: 4
    try:
        for call in divided_calls(step, state):
            try:
                call()
            except NotImplementedError as error:
                assert "over 2 of its 4" in str(error) and "reduce_amax=False" in str(error), error
            else:
                raise AssertionError("it ran")
    finally:
        jax.device_count = count


def shard_map_of_a_function():
    """Gradients are those of the function without FP8: summed over the devices where JAX sums them."""
    ours = fp8.jax.function(forward, recipe="none")
    for type, check in (AxisType.Auto, True), (AxisType.Auto, False), (AxisType.Explicit, True):
        divided = mesh(type)

        def gradients(function):
            def part(w, x):
                of_w, of_x = jax.grad(loss(function), argnums=(0, 1))(w, x)
                return (of_w if check else jax.lax.psum(of_w, "d")), of_x  # noqa: B023

            specs = dict(mesh=divided, in_specs=(ALL, ROWS), out_specs=(ALL, ROWS), check_vma=check)  # noqa: B023
            return jax.jit(jax.shard_map(part, **specs))(*placed(divided))  # noqa: B023

        for got, wanted in zip(gradients(ours), gradients(forward)):
            np.testing.assert_allclose(got, wanted, rtol=TOLERANCE, atol=TOLERANCE * np.abs(wanted).max())


def results_vary_over_the_devices():
    """JAX refuses a result that differs between devices as one for all of them."""
    divided = mesh(AxisType.Auto)
    for function in fp8.jax.jit(forward, recipe="none"), fp8.jax.function(forward), forward:
        try:
            jax.jit(jax.shard_map(function, mesh=divided, in_specs=(ALL, ROWS), out_specs=ALL))(W, X)
        except ValueError as error:
            assert "out_specs which require replication" in str(error), error
        else:
            raise AssertionError("it ran")


def pmap_of_apply():
    step = fp8.jax.jit(forward, sites="all", reduce_amax=False)
    state = step.init(W, X)
    states = jax.tree.map(lambda a: jnp.stack([a, a]), state)
    new, outs = jax.pmap(step.apply)(states, jnp.stack([W, 2 * W]), jnp.stack([X, X + 1]))
    for i, (w, x) in enumerate([(W, X), (2 * W, X + 1)]):
        wanted, out = step.apply(state, w, x)
        np.testing.assert_array_equal(outs[i], out)
        assert all(np.array_equal(new[name][i], wanted[name]) for name in wanted)


def devices_inside_of_a_step_are_errors_at_the_line():
    divided = mesh(AxisType.Auto)
    inside = jax.shard_map(lambda w, x: x @ w, mesh=divided, in_specs=(ALL, ROWS), out_specs=ROWS)

    def mean(w, x):
        return jax.lax.pmean(forward(w, x), "d")

    for call, message in (
        (lambda: fp8.jax.jit(inside)(W, X), "compiled code runs on one: put it around step.apply"),
        (lambda: jax.pmap(fp8.jax.jit(mean), axis_name="d", in_axes=(None, 0))(W, X.reshape(2, 4, 16)), "psum is over several devices (axis d)"),
    ):
        try:
            call()
        except fp8.UnsupportedError as error:
            assert message in str(error) and error.location.file == __file__, error
        else:
            raise AssertionError("it ran")


if __name__ == "__main__":
    failures = {}
    for name in sys.argv[1:]:
        try:
            globals()[name]()
        except Exception:
            failures[name] = traceback.format_exc()
    print(json.dumps(failures))
