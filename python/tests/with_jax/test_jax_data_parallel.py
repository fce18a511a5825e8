# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8-compile --data-parallel on steps of JAX: on each of three ranks with rows of their own, what jax.jit computes from the mean of the
ranks' gradients. Gradients that the backward pass reads too, magnitudes, losses of several terms, updates in branches.
"""

import re
import subprocess
import sys

import fp8.jax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import ROOT

sys.path.append(str(ROOT / "test" / "python"))
from ranks import Ranks  # noqa: E402

from harness import random_generator  # noqa: E402

RANKS, T, D, V, OUT = 3, 8, 16, 12, 5


def hidden(p, x):
    return jnp.tanh(x @ p["w1"] + p["b1"])


def error(p, h, y):
    return jnp.mean((h @ p["w2"] - y) ** 2)


@jax.custom_vjp
def clipped(x):
    return x


clipped.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -1e-3, 1e-3),))


def bias_of_every_element(p, b):  # its gradient is that of the sum, which goes on to w1
    h = jnp.tanh(b["x"] @ p["w1"] + p["pos"])
    return error(p, jnp.tanh(h @ p["wh"] + p["pos2"]) + h, b["y"])


def gain_of_every_element(p, b):
    return error(p, hidden(p, b["x"]) * p["gain"], b["y"])


def embedding(p, b):
    return error(p, jnp.tanh(p["e"][b["i"]] + p["pos"]), b["y"])


def bias_of_scores(p, b):
    scores = jax.nn.softmax(p["q"] @ (b["x"] @ p["w1"]).T + p["scores"])
    return error(p, scores @ hidden(p, b["x"]), b["y"][:4])


def decay_in_the_loss(p, b):
    return error(p, hidden(p, b["x"]), b["y"]) + 0.1 * sum(jnp.sum(v**2) for v in jax.tree.leaves(p))


def scaled_output(p, b):  # parameters behind the last product
    return jnp.mean((hidden(p, b["x"]) @ p["w2"] * p["s"] / jnp.exp(p["t"][0]) - b["y"]) ** 2)


def clipped_backward(p, b):  # the backward pass begins anew behind the clipping
    return error(p, clipped(hidden(p, b["x"])), b["y"])


def recurrent(p, b):
    def cell(h, x):
        h = jnp.tanh(x @ p["w1"] + h @ p["wh"] + p["b1"])
        return h, h

    return error(p, jax.lax.scan(cell, p["h0"], b["x"].reshape(2, 4, V))[1].reshape(T, D), b["y"])


LOSSES = {
    bias_of_every_element: ("w1", "pos", "wh", "pos2", "w2"),
    gain_of_every_element: ("w1", "b1", "gain", "w2"),
    embedding: ("e", "pos", "w2"),
    bias_of_scores: ("w1", "b1", "q", "scores", "w2"),
    decay_in_the_loss: ("w1", "b1", "w2"),
    scaled_output: ("w1", "b1", "w2", "s", "t"),
    clipped_backward: ("w1", "b1", "w2"),
    recurrent: ("w1", "wh", "b1", "h0", "w2"),
}
SHAPES = dict(w1=(V, D), b1=(D,), w2=(D, OUT), pos=(T, D), pos2=(T, D), wh=(D, D), gain=(T, D), e=(V, D), q=(4, D), scores=(4, T), s=(OUT,), t=(1,), h0=(4, D))


# Uses of a gradient `g` of parameters `p` in a step; both are arrays of jax.numpy, or of numpy in the reference.


def gradients(p, g):
    return g


def descent(p, g):
    return jax.tree.map(lambda v, d: (v - 0.1 * d).astype(v.dtype), p, g)


def with_decay(p, g):
    return jax.tree.map(lambda v, d: d + 0.1 * v, p, g)


def clipped_by_norm(p, g):
    norm = jnp.sqrt(sum(jnp.sum(d * d) for d in jax.tree.leaves(g)))
    return descent(p, jax.tree.map(lambda d: d * jnp.minimum(1.0, 0.01 / norm), g)), norm


def by_magnitude(p, g):
    largest = jnp.max(jnp.stack([jnp.max(jnp.abs(d)) for d in jax.tree.leaves(g)]))
    return descent(p, jax.tree.map(lambda d: d / (jnp.abs(d) + largest), g))


def of_positives(p, g):
    return descent(p, jax.tree.map(lambda d: jnp.maximum(d, 0), g))


def in_a_branch(p, g):
    isFinite = jnp.all(jnp.stack([jnp.all(jnp.isfinite(d)) for d in jax.tree.leaves(g)]))
    return jax.lax.cond(isFinite, lambda: descent(p, g), lambda: p)


def flattened(p, g):
    return jnp.concatenate([(2 * d + 0.1 * v).reshape(-1) for v, d in zip(jax.tree.leaves(p), jax.tree.leaves(g))])


def inputs(names, salt):
    rng = random_generator(salt)
    normal = lambda *shape: rng.standard_normal(shape).astype(np.float32)  # noqa: E731
    params = {name: normal(*SHAPES[name]) * np.float32(0.5) for name in names}
    return params, [dict(x=normal(T, V), y=normal(T, OUT), i=rng.integers(0, V, T).astype(np.int32)) for _ in range(RANKS)]


def compile_step(folder, step, params, batch, donates, *options):
    text = fp8.jax.jit(step, recipe="none").lower(params, batch).as_text()
    (folder / "step.mlir").write_text(text)
    count = len(params)
    carry = [f"--carry={','.join(f'{i}:{i}' for i in range(count))}"] if donates else []
    batches = ",".join(str(count + i) for i in range(len(batch)))
    command = [ROOT / "build/bin/fp8-compile", folder / "step.mlir", "-o", folder / "step.so", "--recipe=none", f"--data-parallel=dp:{batches}"]
    return subprocess.run([*command, *carry, *options], capture_output=True, text=True)


def run(folder, params, batches):
    leaves = [jax.tree.leaves((params, batch)) for batch in batches]
    results, errors = Ranks(folder / "step.so", RANKS).step([{str(i): v for i, v in enumerate(own)} for own in leaves])
    assert errors == [""] * RANKS
    return results


CASES = [(loss, gradients, False) for loss in LOSSES]
CASES += [(loss, descent, True) for loss in (bias_of_every_element, gain_of_every_element, scaled_output)]
CASES += [(decay_in_the_loss, update, False) for update in (descent, with_decay, flattened)]
CASES += [(decay_in_the_loss, update, True) for update in (clipped_by_norm, by_magnitude, of_positives, in_a_branch)]
CASES += [(gain_of_every_element, clipped_by_norm, True)]


@pytest.mark.parametrize("loss, update, donates", CASES)
def test_means(tmp_path, loss, update, donates):
    params, batches = inputs(LOSSES[loss], 190)

    def step(params, batch):
        value, g = jax.value_and_grad(loss)(params, batch)
        return update(params, g), value

    scalars = 2 if update is clipped_by_norm else 1
    done = compile_step(tmp_path, step, params, batches[0], donates, f"--loss={len(params) + scalars - 1 if update is not flattened else 1}")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    singles = [jax.jit(jax.value_and_grad(loss))(params, batch) for batch in batches]
    value, g = jax.tree.map(lambda *own: np.mean(np.stack(own).astype(np.float64), axis=0).astype(np.float32), *singles)
    expected = [np.asarray(leaf) for leaf in jax.tree.leaves((update(params, g), value))]
    for result in run(tmp_path, params, batches):
        for actual, wanted in zip(result, expected):
            # Sums of up to a hundred products in another order.
            np.testing.assert_allclose(actual, wanted, rtol=2e-5, atol=2e-5 * np.abs(wanted).max())


def test_means_are_those_of_single_runs_bit_for_bit(tmp_path):
    params, batches = inputs(LOSSES[bias_of_every_element], 191)
    step = jax.value_and_grad(bias_of_every_element)
    done = compile_step(tmp_path, step, params, batches[0], False, "--loss=0")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    single = fp8.jax.jit(step, recipe="none")
    alone = [[np.asarray(leaf) for leaf in jax.tree.leaves(single(params, batch))] for batch in batches]
    for result in run(tmp_path, params, batches):
        for actual, *own in zip(result, *alone):
            np.testing.assert_array_equal(actual, ((own[0] + own[1]) + own[2]) * np.float32(1 / 3))


def test_two_steps_in_one(tmp_path):
    params, batches = inputs(LOSSES[clipped_backward], 192)
    loss = lambda p, b: error(p, hidden(p, b["x"]), b["y"])  # noqa: E731

    def step(params, batch):
        for rows in (slice(0, T // 2), slice(T // 2, T)):
            value, g = jax.value_and_grad(loss)(params, {name: v[rows] for name, v in batch.items()})
            params = descent(params, g)
        return params, value

    done = compile_step(tmp_path, step, params, batches[0], True)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    expected = params
    for rows in (slice(0, T // 2), slice(T // 2, T)):
        own = [jax.grad(loss)(expected, {name: v[rows] for name, v in batch.items()}) for batch in batches]
        expected = descent(expected, jax.tree.map(lambda *d: np.mean(np.stack(d), axis=0), *own))
    for result in run(tmp_path, params, batches):
        for actual, wanted in zip(result, jax.tree.leaves(expected)):
            np.testing.assert_allclose(actual, wanted, rtol=2e-5, atol=2e-5)


def beside_the_products(p, b):  # no product's gradient leads to that of w3
    return error(p, hidden(p, b["x"]), b["y"]) + jnp.mean(b["x"][0] * b["x"][0] * p["w3"])


def test_a_gradient_that_is_not_found_is_an_error_or_a_warning(tmp_path, monkeypatch):
    monkeypatch.setitem(SHAPES, "w3", (V,))
    params, batches = inputs(("w1", "b1", "w2", "w3"), 193)
    done = compile_step(tmp_path, lambda p, b: jax.value_and_grad(beside_the_products)(p, b), params, batches[0], False)
    warning = r"warning: result 4 has the shape of the parameter '.*w3.*', and differs from rank to rank: --average=4 takes its mean"
    assert done.returncode == 0 and re.search(warning, done.stderr), done.stderr
    done = compile_step(tmp_path, lambda p, b: jax.value_and_grad(beside_the_products)(p, b)[::-1], params, batches[0], True)
    assert done.returncode == 1 and "error: result 3, the next value of" in done.stderr, done.stderr


def without_products(p, b):
    return jnp.mean((b["x"] * p["w3"]) ** 2)


def test_without_products_gradients_are_a_warning_and_statistics_are_not(tmp_path, monkeypatch):
    monkeypatch.setitem(SHAPES, "w3", (V,))
    params, batches = inputs(("w3",), 195)
    warning = "warning: result 1 has the shape of the parameter '.*', and differs from rank to rank: --average=1 takes its mean"
    step = lambda p, b: jax.value_and_grad(without_products)(p, b)  # noqa: E731
    done = compile_step(tmp_path, step, params, batches[0], False)
    assert done.returncode == 0 and re.search(warning, done.stderr), done.stderr
    done = compile_step(tmp_path, step, params, batches[0], False, "--average=1")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    expected = np.mean([step(params, batch)[1]["w3"] for batch in batches], axis=0)
    for result in run(tmp_path, params, batches):
        np.testing.assert_allclose(result[1], expected, rtol=2e-5, atol=2e-5)
    evaluation = lambda p, b: (without_products(p, b), jnp.mean(b["x"] * p["w3"], axis=0))  # noqa: E731
    done = compile_step(tmp_path, evaluation, params, batches[0], False)
    assert done.returncode == 0 and done.stderr == "", done.stderr


def test_an_activations_gradient_that_no_argument_resembles_is_an_error(tmp_path):
    params, batches = inputs(LOSSES[clipped_backward], 194)

    def step(p, b):
        dh = jax.grad(lambda h: error(p, h, b["y"]))(hidden(p, b["x"]))
        return error(p, hidden(p, b["x"]), b["y"]), dh

    done = compile_step(tmp_path, step, params, batches[0], False)
    assert done.returncode == 1 and "error: result 1 is a gradient with the shape of no argument, so data parallelism cannot tell" in done.stderr
