#!/usr/bin/env bash
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# numpy's sort, median and unique of an array in bf16 or FP8 with a NaN: the NaN stays where it is, and the numbers on its two
# sides are not in order.
#
# Expected: numpy.sort's documentation puts NaN last, for float16 as for float64, and numpy.unique has one NaN.
set -eu
python=${PYTHON:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv" || { echo "python3 has no venv (Debian: python3-venv)"; exit 77; }
"$folder/venv/bin/pip" install --quiet --no-deps numpy==2.4.6 ml_dtypes==0.6.0
"$folder/venv/bin/python" - <<'END'
import sys
import ml_dtypes
import numpy as np

print("numpy", np.__version__, "ml_dtypes", ml_dtypes.__version__)
numbers, nans = [3.0, np.nan, 1.0, 2.0], [np.nan, np.nan]


def sort(type):
    return np.sort(np.array(numbers, type)).astype(float).tolist()


rows = [
    ("sort of [3, nan, 1, 2] in f16", [1.0, 2.0, 3.0, np.nan], [1.0, 2.0, 3.0, np.nan], sort(np.float16)),
    ("in bf16", [1.0, 2.0, 3.0, np.nan], [3.0, np.nan, 1.0, 2.0], sort(ml_dtypes.bfloat16)),
    ("in E4M3", [1.0, 2.0, 3.0, np.nan], [3.0, np.nan, 1.0, 2.0], sort(ml_dtypes.float8_e4m3fn)),
    ("numbers in unique([nan, nan]) of bf16", 1, 2, np.unique(np.array(nans, ml_dtypes.bfloat16)).size),
]

changed = False
for what, expected, known, seen in rows:
    print(f"{what}\n    expected {expected}\n    seen     {seen}")
    changed |= str(seen) != str(known)
sys.exit("the behaviour changed" if changed else 0)
END
