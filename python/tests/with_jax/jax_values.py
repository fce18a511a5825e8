# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Comparing values of fp8.jax with those of jax.jit, and random programs to compare."""

import random

import fp8
import jax
import jax.numpy as jnp
import numpy as np


def as_numbers(array):
    """An array as numpy's f64, c128 or integers; PRNG keys as their numbers."""
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        array = jax.random.key_data(array)
    numbers = np.asarray(array)
    if numbers.dtype.kind == "c":
        return numbers.astype(np.complex128)
    return numbers.astype(np.float64) if jnp.issubdtype(array.dtype, jnp.floating) else numbers


def _type(array):
    type = jax.typeof(array)
    return type.shape, type.dtype, type.weak_type


def assert_same(got, wanted, tolerance):
    """Equal structure, shapes and types; floats within `tolerance` of the largest, everything else exactly."""
    assert jax.tree.structure(got) == jax.tree.structure(wanted)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(wanted)):
        assert _type(a) == _type(b)
        a, b = as_numbers(a), as_numbers(b)
        if a.dtype.kind not in "fc" or tolerance == 0:
            np.testing.assert_array_equal(a, b)
            continue
        finite = np.abs(b[np.isfinite(b)])
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * (finite.max() if finite.size else 0))


def compare(fun, *args, tolerance):
    assert_same(fp8.jax.jit(fun, recipe="none")(*args), jax.jit(fun)(*args), tolerance)


def random_program(operations, seed, length, numbers):
    """A function of (x, y, i) and the names of its operations: it returns x, y and the result of each.

    An operation takes two earlier values, i and a number below `numbers`.
    """
    choose = random.Random(seed)
    steps = [(choose.choice(sorted(operations)), choose.randrange(numbers), choose.random(), choose.random()) for _ in range(length)]

    def program(x, y, i):
        values = [x, y]
        for name, k, a, b in steps:
            first, second = values[int(a * len(values))], values[-1 - int(b * min(3, len(values)))]
            values.append(operations[name](first, second, i, k))
        return values

    return program, [name for name, *_ in steps]
