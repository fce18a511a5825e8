#!/usr/bin/env bash
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# JAX sums and averages FP8 arrays in FP8, on the CPU with a rounding at every step: the mean of 300 ones is 0.5625. Sums of bf16
# and f16 arrays are taken in f32, and the result of cumsum differs from that of sum.
#
# Expected: 1, as for bf16 and f16, whose reductions jax.numpy widens first; the sum 300 is 288 or 304 in E4M3.
set -eu
# shellcheck source=findings/pinned.sh
source "$(dirname "$0")/pinned.sh"
install --no-deps jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6 ml_dtypes==0.6.0 scipy==1.17.1 opt_einsum==3.4.0
"$python" - <<'END'
import jax
import jax.numpy as jnp
from rows import compare

print("jax", jax.__version__)
fp8, bf16 = jnp.ones(300, jnp.float8_e4m3fn), jnp.ones(300, jnp.bfloat16)
rows = [
    ("mean of 300 ones in E4M3", 1.0, 0.5625, float(jnp.mean(fp8))),
    ("sum of 300 ones in E4M3", "288.0 or 304.0", 160.0, float(jnp.sum(fp8))),
    ("last of their cumsum under jit", "that of sum", 288.0, float(jax.jit(jnp.cumsum)(fp8)[-1])),
    ("mean of 300 ones in bf16", 1.0, 1.0, float(jnp.mean(bf16))),
]

compare(rows)
END
