#!/usr/bin/env bash
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Triton's interpreter (TRITON_INTERPRET=1), which debugs kernels without a GPU, converts to FP8 by rules of its own: 500 becomes 256, Inf a finite
# number, ties are rounded away from 0, and NaN is read as a number. Conversions to bf16 cut bits off in place of rounding.
#
# Expected: tl.cast's documentation, fp_downcast_rounding: "rtne" by default; the compiled kernel uses PTX's
# cvt.rn.satfinite.e4m3x2.f32, where 500 and Inf are 448, NaN stays NaN and ties go to even, and cvt.rn.bf16.f32.
set -eu
python=${PYTHON:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv" || { echo "python3 has no venv (Debian: python3-venv)"; exit 77; }
"$folder/venv/bin/pip" install --quiet triton==3.9.0 numpy==2.4.6 torch==2.15.0 # with the libraries of CUDA that torch is linked with
cat > "$folder/finding.py" <<'END'
import os
import sys

os.environ["TRITON_INTERPRET"] = "1"
import torch
import triton
import triton.language as tl

print("triton", triton.__version__, "torch", torch.__version__)


@triton.jit
def convert(x, y, count: tl.constexpr, type: tl.constexpr):
    i = tl.arange(0, count)
    tl.store(y + i, tl.load(x + i).to(type).to(tl.float32))


def converted(x, type):
    result = torch.zeros(len(x))
    convert[(1,)](x, result, len(x), type)
    return result.tolist()


inf = float("inf")
e4m3 = converted(torch.tensor([500.0, inf, 1 + 1 / 16, 2.0]), tl.float8e4nv)
e5m2 = converted(torch.tensor([500.0, inf, 1 + 1 / 8, 2.0]), tl.float8e5)
nan = torch.tensor([127], dtype=torch.uint8).view(torch.float8_e4m3fn)
rows = [
    ("500, Inf, 1 + 1/16, 2 to E4M3", [448.0, 448.0, 1.0, 2.0], [256.0, 256.0, 1.125, 2.0], e4m3),
    ("500, Inf, 1 + 1/8, 2 to E5M2", [512.0, 57344.0, 1.0, 2.0], [256.0, 65536.0, 1.25, 2.0], e5m2),
    ("the NaN of E4M3 to f32", [float("nan")], [480.0], converted(nan, tl.float32)),
    ("1 + 3/512 to bf16", [1.0078125], [1.0], converted(torch.tensor([1 + 3 / 512]), tl.bfloat16)),
]

changed = False
for what, expected, known, seen in rows:
    print(f"{what}\n    expected {expected}\n    seen     {seen}")
    changed |= str(seen) != str(known)
sys.exit("the behaviour changed" if changed else 0)
END
"$folder/venv/bin/python" "$folder/finding.py"
