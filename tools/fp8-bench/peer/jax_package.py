# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times of fp8.jax.jit beside jax.jit, as one line of JSON: python jax_package.py EXAMPLES ROUNDS."""

import json
import sys
import time

import fp8
import jax
import jax.numpy as jnp

sys.path.append(sys.argv[1])
import model  # noqa: E402
import parameters  # noqa: E402

ROUNDS = int(sys.argv[2])
CALLS, PARTS = 100, 20


def seconds_of_calls(step, arrays):
    """A call and the wait for its results: the mean of some calls, the least of several such means."""
    jax.block_until_ready(step(arrays))
    best = float("inf")
    for _ in range(PARTS):
        start = time.perf_counter()
        for _ in range(CALLS):
            jax.block_until_ready(step(arrays))
        best = min(best, time.perf_counter() - start)
    return best / CALLS


def least(measures):
    """The least of all rounds; a round takes every variant once, so that a disturbance meets all alike."""
    best = {}
    for _ in range(ROUNDS):
        for name, measure in measures.items():
            best[name] = min(best.get(name, float("inf")), measure())
    return best


def plus(arrays):
    return [a + 1 for a in arrays]


def descend(arrays):
    """A product and its gradient: FP8 state that is updated."""
    gradient = jax.grad(lambda w: jnp.tanh(jnp.ones((2, 2)) @ w.reshape(2, 2)).sum())
    return [arrays[0] - gradient(arrays[0]), *arrays[1:]]


def calls():
    rows = {}
    for count in (1, 10, 100):
        arrays = [jnp.ones(4) for _ in range(count)]
        variants = {
            "jax.jit": jax.jit(plus),
            "none": fp8.jax.jit(plus, recipe="none"),
            "jax.jit, gradient": jax.jit(descend),
            "delayed, gradient": fp8.jax.jit(descend, recipe="delayed", sites="all"),
        }
        best = least({name: lambda step=step, arrays=arrays: seconds_of_calls(step, arrays) for name, step in variants.items()})
        rows[str(count)] = {name: 1e6 * value for name, value in best.items()}
    return rows


def arguments():
    params = {name: jnp.array(values).reshape(shape) for name, (shape, values) in parameters.initial().items()}
    zeros = [{name: jnp.zeros_like(p) for name, p in params.items()} for _ in range(2)]
    return [params, *zeros, jnp.array(0.0)]


def steps():
    tokens = jax.random.randint(jax.random.key(0), (parameters.BATCH, parameters.SEQUENCE + 1), 0, parameters.VOCABULARY)

    def trainer(jit):
        step, carried = jit(model.main), arguments()

        def measure():
            nonlocal carried
            best = float("inf")
            for _ in range(6):
                start = time.perf_counter()
                *carried, loss = step(*carried, tokens)
                jax.block_until_ready(loss)
                best = min(best, time.perf_counter() - start)
            return best

        return measure

    donated = (0, 1, 2, 3)
    measures = {"jax.jit": trainer(lambda f: jax.jit(f, donate_argnums=donated))}
    for recipe in ("none", "current", "delayed"):
        measures[recipe] = trainer(lambda f, r=recipe: fp8.jax.jit(f, recipe=r, keep="embed|head", donate_argnums=donated))
    return {"gpt": {name: 1e3 * value for name, value in least(measures).items()}}


print(json.dumps({"version": jax.__version__, "calls": calls(), "steps": steps()}))
