#!/usr/bin/env bash
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# XLA on the CPU takes denormal numbers for 0 in its threads: a number that is printed as 1e-40 is equal to 0 and not greater
# than it, is False, and has the maximum 0 with 0; abs and negation keep it. Its cube root is negative.
#
# Expected: IEEE-754 (and StableHLO's compare and maximum by it) has denormal numbers; numpy has the values so.
set -eu
# shellcheck source=findings/pinned.sh
source "$(dirname "$0")/pinned.sh"
install --no-deps jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6 ml_dtypes==0.6.0 scipy==1.17.1 opt_einsum==3.4.0
"$python" - <<'END'
import jax
import jax.numpy as jnp
import numpy as np
from rows import compare

print("jax", jax.__version__)
CASES = [
    ("1e-40 > 0", lambda m, x: x > 0, False),
    ("1e-40 == 0", lambda m, x: x == 0, True),
    ("bool(1e-40)", lambda m, x: x.astype(bool), False),
    ("maximum(1e-40, 0)", lambda m, x: m.maximum(x, m.float32(0)), 0.0),
    ("abs(-1e-40)", lambda m, x: m.abs(-x), 9.99994610111476e-41),
    ("cbrt(1e-40) < 0", lambda m, x: m.cbrt(x) < 0, True),
]
x = np.float32(1e-40)
rows = [(what, f(np, x).item(), known, jax.jit(lambda x, f=f: f(jnp, x))(x).item()) for what, f, known in CASES]

compare(rows)
END
