# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One process of two with a device each, by jax.distributed: `jax_ranks.py PORT NUMBER FOLDER CASE` saves what the case found."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "src"))

import fp8  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from fp8 import _ranks  # noqa: E402
from jax.sharding import NamedSharding, PartitionSpec  # noqa: E402

RANDOM = np.random.default_rng(0)
X, W = (RANDOM.normal(size=size).astype(np.float32) for size in ((8, 16), (16, 12)))
ALL, ROWS = PartitionSpec(), PartitionSpec("d")
RATE, STEPS = 0.1, 3


def loss(w, x):
    return jnp.mean(jnp.tanh(x @ w) ** 2)


def update(step, mean):
    def one(state, w, x):
        state, (value, gradient) = step.apply(state, w, x)
        return state, w - RATE * mean(gradient), mean(value)

    return one


def trained(step, mesh):
    """A state, weights and losses of some steps on both devices."""
    put = lambda array, spec: jax.make_array_from_callback(array.shape, NamedSharding(mesh, spec), lambda index: array[index])
    part = update(step, lambda value: jax.lax.pmean(value, "d"))
    run = jax.jit(jax.shard_map(part, mesh=mesh, in_specs=(ALL, ALL, ROWS), out_specs=(ALL, ALL, ALL)))
    state = jax.tree.map(lambda leaf: put(np.asarray(leaf), ALL), dict(step.init(W, X[:4])))
    w, x, losses = put(W, ALL), put(X, ROWS), []
    for _ in range(STEPS):
        state, w, value = run(state, w, x)
        losses.append(float(value))
    return {"w": np.asarray(w), "losses": np.float32(losses), **{name: np.asarray(leaf) for name, leaf in state.items()}}


def make():
    return fp8.jax.jit(jax.value_and_grad(loss), recipe="delayed")


def shard_map_of_processes(rank, mesh):
    return trained(make(), mesh)


def across_machines(rank, mesh):
    _ranks.machine = lambda: f"machine {rank}"
    return trained(make(), mesh)


def error_of(call):
    try:
        call()
    except Exception as error:
        return {"error": np.array(f"{type(error).__name__}: {error}")}
    return {"error": np.array("no error")}


def other_options(rank, mesh):
    step = fp8.jax.jit(jax.value_and_grad(loss), recipe="delayed", margin=rank)
    return error_of(lambda: trained(step, mesh))


if __name__ == "__main__":
    port, rank, folder, *cases = sys.argv[1:]
    jax.distributed.initialize(f"127.0.0.1:{port}", 2, int(rank))
    for case in cases:
        found = globals()[case](int(rank), jax.make_mesh((2,), ("d",), axis_types=(jax.sharding.AxisType.Auto,)))
        np.savez(pathlib.Path(folder, f"{case}.{rank}.npz"), **found)
