#!/usr/bin/env bash
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# PyTorch's casts to FP8 of what is too large: E4M3 saturates, Inf included, while E5M2 becomes Inf and the FNUZ types NaN. ml_dtypes
# (and with it JAX) has NaN for E4M3.
#
# Expected: one rule for all formats: the OFP8 specification (OCP, revision 1.0) has two modes of overflow. Saturating is
# 448 and 57344; not saturating is NaN and Inf.
set -eu
python=${PYTHON:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv" || { echo "python3 has no venv (Debian: python3-venv)"; exit 77; }
"$folder/venv/bin/pip" install --quiet torch==2.15.0 numpy==2.4.6 ml_dtypes==0.6.0 # with the libraries of CUDA that torch is linked with
"$folder/venv/bin/python" - <<'END'
import sys
import ml_dtypes
import numpy as np
import torch

print("torch", torch.__version__, "ml_dtypes", ml_dtypes.__version__)
KNOWN = {"e4m3fn": [448.0, 448.0], "e5m2": [float("inf"), float("inf")], "e4m3fnuz": [float("nan"), float("nan")], "e5m2fnuz": [float("nan"), float("nan")]}
rows = []
for name, known in KNOWN.items():
    seen = torch.tensor([1e6, float("inf")]).to(getattr(torch, "float8_" + name)).float().tolist()
    rows.append((f"torch: 1e6 and Inf as {name}", "one rule for all formats", known, seen))
other = np.array([1e6, np.inf]).astype(ml_dtypes.float8_e4m3fn).astype(float).tolist()
rows.append(("ml_dtypes: the same as e4m3fn", "torch's", [float("nan")] * 2, other))

changed = False
for what, expected, known, seen in rows:
    print(f"{what}\n    expected {expected}\n    seen     {seen}")
    changed |= str(seen) != str(known)
sys.exit("the behaviour changed" if changed else 0)
END
