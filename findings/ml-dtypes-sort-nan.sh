#!/usr/bin/env bash
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# numpy's sort, median and unique of an array in bf16 or FP8 with a NaN: the NaN stays where it is, and the numbers on its two
# sides are not in order.
#
# Expected: numpy.sort's documentation puts NaN last, for float16 as for float64, and numpy.unique has one NaN.
set -eu
# shellcheck source=findings/pinned.sh
source "$(dirname "$0")/pinned.sh"
install --no-deps numpy==2.4.6 ml_dtypes==0.6.0
"$python" - <<'END'
import ml_dtypes
import numpy as np
from rows import compare

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

compare(rows)
END
