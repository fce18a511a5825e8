# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs of elementwise operations, products, gathers, scatters, sorts, loops and conditionals."""

import os

import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402

from jax_values import compare, random_program  # noqa: E402

ROWS, COLUMNS = 6, 8

# Every one takes and gives f32 [ROWS, COLUMNS] with elements of about 1, and is smooth enough that an
# error of an ulp stays small; `i` are integers in [0, ROWS), `k` a number drawn for the operation.
OPERATIONS = {
    "tanh": lambda x, y, i, k: jnp.tanh(x + y),
    "ratio": lambda x, y, i, k: x / (1 + jnp.abs(y)),
    "select": lambda x, y, i, k: jnp.where(jnp.arange(COLUMNS) % 2 == k % 2, x, jnp.sin(y)),
    "softmax": lambda x, y, i, k: jax.nn.softmax(x, axis=k % 2) + y * 0.5,
    "norm": lambda x, y, i, k: (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 0.1),
    "product": lambda x, y, i, k: jnp.tanh(x @ y.T @ x * 0.1),
    "gather": lambda x, y, i, k: x[i] + y,
    "scatter_add": lambda x, y, i, k: jnp.tanh(x.at[i].add(y)),
    "scatter_set": lambda x, y, i, k: x.at[k % ROWS].set(y[0]),
    "scatter_max": lambda x, y, i, k: x.at[i].max(y),
    "slice": lambda x, y, i, k: lax.dynamic_update_slice(x, lax.dynamic_slice(y, (i[0], 0), (2, COLUMNS)), (i[1], 0)),
    "roll": lambda x, y, i, k: jnp.roll(x, i[2], axis=0) * 0.5 + y,
    "cumsum": lambda x, y, i, k: jnp.tanh(jnp.cumsum(x, axis=k % 2)),
    "sort": lambda x, y, i, k: jnp.sort(x, axis=k % 2),
    "scan": lambda x, y, i, k: lax.scan(lambda c, r: (jnp.tanh(c + r), c), y[0], x)[1],
    "fori": lambda x, y, i, k: lax.fori_loop(0, i[3] + 1, lambda n, a: jnp.tanh(a + y * n), x),
    "cond": lambda x, y, i, k: lax.cond(i[4] > k % ROWS, lambda a: jnp.cos(a), lambda a: a * 0.5, x),
    "switch": lambda x, y, i, k: lax.switch(i[0], [jnp.sin, jnp.tanh, lambda a: a + y], x),
    "remat": lambda x, y, i, k: jax.checkpoint(lambda a: jnp.sin(jnp.cos(a) + y))(x),
    "narrow": lambda x, y, i, k: (x.astype(jnp.float16) + y.astype(jnp.float16)).astype(jnp.float32),
    "random": lambda x, y, i, k: jnp.where(jax.random.bernoulli(jax.random.key(k), 0.7, x.shape), x, y),
}


# With FP8_SEEDS=N the seeds 0 … N-1.
@pytest.mark.parametrize("seed", range(int(os.environ.get("FP8_SEEDS", "12"))))
def test_random_programs_have_the_values_of_jax_jit(seed):
    run, names = random_program(OPERATIONS, seed, length=8, numbers=100)

    def program(x, y, i):
        values = run(x, y, i)
        return values[-1], sum(values)

    print(f"seed {seed}: {names}")
    rng = np.random.default_rng(seed)
    x, y = (jnp.asarray(rng.normal(size=(ROWS, COLUMNS)), jnp.float32) for _ in range(2))
    i = jnp.asarray(rng.integers(0, ROWS, ROWS), jnp.int32)
    # Eight operations, each of which may multiply an error of some ulp of 6e-8 by a few; f16 rounds to 5e-4.
    tolerance = 2e-3 if "narrow" in names else 2e-5
    compare(program, x, y, i, tolerance=tolerance)
    if not {"fori", "sort"} & set(names):  # A while loop has no gradient; a sort's jumps where two values meet.
        compare(jax.grad(lambda x, y, i: jnp.sin(program(x, y, i)[1]).sum(), argnums=(0, 1)), x, y, i, tolerance=10 * tolerance)
