#!/usr/bin/env bash
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Conversions from f64 and i64 to narrow floats pass through f32 and are rounded twice, in PyTorch, in ml_dtypes and, to bf16, in
# XLA on the CPU. XLA's conversion to FP8, numpy's to f16 and StableHLO's own interpreter round once.
#
# Expected: the nearest number of the type (IEEE-754, 5.4.2; StableHLO's convert: roundToIntegralTiesToEven of the exact value).
set -eu
python=${PYTHON:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv" || { echo "python3 has no venv (Debian: python3-venv)"; exit 77; }
"$folder/venv/bin/pip" install --quiet jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6 ml_dtypes==0.6.0 scipy==1.17.1 opt_einsum==3.4.0 torch==2.15.0 # with the libraries of CUDA that torch is linked with
"$folder/venv/bin/python" - <<'END'
import sys
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import torch

jax.config.update("jax_enable_x64", True)
print("jax", jax.__version__, "ml_dtypes", ml_dtypes.__version__, "torch", torch.__version__)


def by_xla(x, type):
    return float(jax.jit(lambda v: v.astype(type))(x)[0])


# Just above the middle between 1 and the next number: f32 drops the last bit, and the tie goes to the even 1.
bf16, f16, fp8 = (np.array([1 + 2.0**-n + 2.0**-40]) for n in (8, 11, 4))
integer = np.array([2**32 + 2**24 + 1])
rows = [
    ("torch: f64 to bf16", 1.0078125, 1.0, torch.tensor(bf16).to(torch.bfloat16).item()),
    ("torch: f64 to f16", 1.0009765625, 1.0, torch.tensor(f16).to(torch.float16).item()),
    ("torch: f64 to E4M3", 1.125, 1.0, torch.tensor(fp8).to(torch.float8_e4m3fn).item()),
    ("torch: i64 to bf16", 2.0**32 + 2**25, 2.0**32, torch.tensor(integer).to(torch.bfloat16).item()),
    ("ml_dtypes: f64 to bf16", 1.0078125, 1.0, float(bf16.astype(ml_dtypes.bfloat16)[0])),
    ("ml_dtypes: f64 to E4M3", 1.125, 1.0, float(fp8.astype(ml_dtypes.float8_e4m3fn)[0])),
    ("numpy: f64 to f16", 1.0009765625, 1.0009765625, float(f16.astype(np.float16)[0])),
    ("XLA: f64 to bf16", 1.0078125, 1.0, by_xla(bf16, jnp.bfloat16)),
    ("XLA: f64 to E4M3", 1.125, 1.125, by_xla(fp8, jnp.float8_e4m3fn)),
]

changed = False
for what, expected, known, seen in rows:
    print(f"{what}\n    expected {expected}\n    seen     {seen}")
    changed |= str(seen) != str(known)
sys.exit("the behaviour changed" if changed else 0)
END
