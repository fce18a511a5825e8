#!/usr/bin/env bash
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# XLA simplifies quotients of quotients, and the logarithm of a power, as if floats were real numbers, by default and without any option
# for fast math: jax.jit of a function gives 0, Inf or NaN for a number in range. (jax 0.10.2 treats log(exp(x)), exp(x) * exp(y) and
# products with constants likewise; 0.12.0.1 has only the four below.)
#
# Expected: StableHLO defines each operation by IEEE-754, so that the rounded result of one is the operand of the next; JAX without
# jit has these values.
set -eu
# shellcheck source=findings/pinned.sh
source "$(dirname "$0")/pinned.sh"
install --no-deps jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6 ml_dtypes==0.6.0 scipy==1.17.1 opt_einsum==3.4.0
"$python" - <<'END'
import jax
import jax.numpy as jnp
from rows import compare

print("jax", jax.__version__)
CASES = [
    ("a / (b / c) of 1e30 each", lambda a, b, c: a / (b / c), [1e30] * 3, float("inf")),
    ("(a / b) / c", lambda a, b, c: a / b / c, [1e30] * 3, 0.0),
    ("(a / b) / (c / d)", lambda a, b, c, d: (a / b) / (c / d), [1e30] * 4, float("nan")),
    ("log(10 ** 100.0)", lambda x: jnp.log(x**100.0), [10.0], 230.25851440429688),
]
rows = []
for what, function, numbers, known in CASES:
    arguments = [jnp.float32(n) for n in numbers]
    rows.append((what, function(*arguments).item(), known, jax.jit(function)(*arguments).item()))

compare(rows)
END
