#!/usr/bin/env bash
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# XLA on the CPU: rows that were gathered, and a slice of which is then moved by one column, are updated in place. The code
# reads elements that it has written already, so that the first element of each row is repeated.
#
# Expected: StableHLO's dynamic_update_slice has the values of its operands, and operands are values, which nothing changes.
# jax.jit therefore has the values of the same function without jit.
set -eu
# shellcheck source=findings/pinned.sh
source "$(dirname "$0")/pinned.sh"
install --no-deps jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6 ml_dtypes==0.6.0 scipy==1.17.1 opt_einsum==3.4.0
"$python" - <<'END'
import jax
import jax.numpy as jnp
from jax import lax
from rows import compare

print("jax", jax.__version__)


def move(x, i):
    rows = x[i]
    return lax.dynamic_update_slice(rows, lax.dynamic_slice(rows, (i[0], 0), (2, 3)), (i[1], 1))


x = jnp.arange(48, dtype=jnp.float32).reshape(6, 8)
i = jnp.array([3, 3, 2, 0, 1, 0], jnp.int32)
expected = move(x, i)[3, :4].tolist()  # operation by operation
rows = [
    ("row 3 after rows[3:5, 1:4] = rows[3:5, 0:3]", expected, [0.0, 0.0, 0.0, 0.0], jax.jit(move)(x, i)[3, :4].tolist()),
]

compare(rows)
END
