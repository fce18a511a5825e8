# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of JAX with drawn arguments (jax_operators.py): values and gradients of fp8.jax.jit beside those of jax.jit.

Operators that are not right are in `VERDICTS`, with the reason. The table may only become shorter: a program that turns out
better than its verdict fails too, until the verdict is changed. FP8_SEED draws other arguments.
"""

import os
import random
import zlib

import fp8
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax_operators import OPERATORS, Draw

DRAWS = 2
#: Of how many of its types an operator is tried: the first and others that are drawn.
COUNT = 3
#: The tolerance of an operation, relative to the number or the largest of the result: functions of two libraries, sums in
#: two orders. Numbers of 16 bits are rounded after every operation by one of the two and after several by the other.
TOLERANCES = {"float32": 1e-5, "float64": 1e-12, "bfloat16": 2**-6, "float16": 2**-9, "complex64": 1e-5}
#: (operator, type): "refused" or "differs", and why. "*" stands for all types. A row that differs on one processor may be right on
#: another: sinc in f16 differs with AVX512-FP16, and is right with AVX2 alone.
VERDICTS = {
    ("sinc", "float16"): ("differs", "near 0 the gradient is a difference of numbers that are each rounded"),
}


def verdicts(name):
    """The verdict on an operator for each of its types: "right", or what is wrong. Types that JAX refuses are left out."""
    found = {}
    first, *others = OPERATORS[name][0]
    chosen = [first, *random.Random(seed(name)).sample(others, min(COUNT - 1, len(others)))]
    for is_wide in (False, True):
        with jax.enable_x64(is_wide):
            drawn = {dtype: draw(name, dtype) for dtype in chosen if (dtype in ("float64", "int64")) == is_wide}
            found |= compare({dtype: d for dtype, d in drawn.items() if is_of_jax(*d)})
    return found


def seed(*words):
    return zlib.crc32(" ".join((os.environ.get("FP8_SEED", ""), *words)).encode())


def draw(name, dtype):
    """A program of several calls, and its arguments."""
    calls = [OPERATORS[name][1](Draw((seed(name, dtype), number), dtype, special=number == DRAWS - 1)) for number in range(DRAWS)]
    functions, arguments = zip(*calls)

    def program(arguments):
        return [with_gradients(f, a, number < DRAWS - 1) for number, (f, a) in enumerate(zip(functions, arguments))]

    return program, arguments


def is_of_jax(program, arguments):
    try:
        jax.eval_shape(program, arguments)
    except (TypeError, ValueError, NotImplementedError):
        return False
    return True


def compare(drawn):
    """The verdicts for programs that are compiled as one, or each alone if one of them has no code."""
    if not drawn:
        return {}
    together = lambda arguments: {dtype: program(arguments[dtype]) for dtype, (program, _) in drawn.items()}
    arguments = {dtype: a for dtype, (_, a) in drawn.items()}
    try:
        got = fp8.jax.jit(together, recipe="none")(arguments)
    except fp8.CompileError as error:
        if len(drawn) == 1:
            return {dtype: f"refused: {error.message}" for dtype in drawn}
        return {dtype: v for dtype, program in drawn.items() for v in compare({dtype: program}).values()}
    wanted = jax.jit(together)(arguments)
    return {dtype: difference(got[dtype], wanted[dtype], TOLERANCES.get(dtype, TOLERANCES["float32"])) or "right" for dtype in drawn}


def with_gradients(function, arguments, differentiate):
    """The results, and the gradients of those that are floats by the arguments that are, each weighted by its place."""
    is_float = lambda a: jnp.issubdtype(a.dtype, jnp.floating)
    places = [i for i, a in enumerate(arguments) if is_float(a)]

    def of_floats(*floats):
        mixed = list(arguments)
        for i, value in zip(places, floats):
            mixed[i] = value
        return [r for r in jax.tree.leaves(function(*mixed)) if is_float(r)]

    results = jax.tree.leaves(function(*arguments))
    if not differentiate or not places or not any(map(is_float, results)):
        return results
    values, back = jax.vjp(of_floats, *(arguments[i] for i in places))
    return results, back([jnp.cos(jnp.arange(v.size)).reshape(v.shape).astype(v.dtype) for v in values])


def difference(got, wanted, tolerance):
    """The first difference, or None."""
    for ours, right in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        if (ours.shape, ours.dtype) != (right.shape, right.dtype):
            return f"differs: {ours.dtype}{list(ours.shape)} in place of {right.dtype}{list(right.shape)}"
        is_exact = not jnp.issubdtype(right.dtype, jnp.inexact)
        a, b = (np.asarray(x).astype(np.complex128 if right.dtype.kind == "c" else object if is_exact else np.float64) for x in (ours, right))
        if is_exact:
            same = a == b
        else:
            finite = np.abs(b[np.isfinite(b)])
            # Numbers of 16 bits are sums of some about 1 that are rounded after each term.
            scale = 1.0 if right.dtype.itemsize == 2 else min(1.0, float(finite.max())) if finite.size else 0
            same = np.isclose(a, b, rtol=tolerance, atol=tolerance * scale, equal_nan=True)
        if not np.all(same):
            place = tuple(np.argwhere(~np.asarray(same, bool))[0]) if np.ndim(same) else ()
            return f"differs: {right.dtype} {a[place]} in place of {b[place]}"
    return None


@pytest.mark.slow(one_of=2)
@pytest.mark.parametrize("name", OPERATORS)
def test_operator(name):
    for dtype, found in verdicts(name).items():
        expected, reason = VERDICTS.get((name, dtype)) or VERDICTS.get((name, "*")) or ("right", "")
        words = ("differs", "right") if expected == "differs" else expected
        assert found.startswith(words), f"{dtype}: {found}; the table says {expected} {reason}"


def test_every_verdict_is_of_an_operator():
    unknown = [(name, dtype) for name, dtype in VERDICTS if name not in OPERATORS or dtype not in ("*", *OPERATORS[name][0])]
    assert not unknown
