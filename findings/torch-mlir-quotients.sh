#!/usr/bin/env bash
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# torch-mlir (as IREE's compiler has it) computes fmod and floor_divide of floats from the rounded quotient: the remainder of 1
# by the f32 0.1 is 0 where it is almost 0.1, that of 1e9 by 3 is 0, and 1 // 0.1 is 10, for a number above a tenth.
#
# Expected: PyTorch's values. torch.fmod is C++'s std::fmod, which is exact; torch.floor_divide gives what Python's // gives.
set -eu
# shellcheck source=findings/pinned.sh
source "$(dirname "$0")/pinned.sh"
install --no-deps iree-base-compiler==3.13.0 iree-base-runtime==3.13.0 numpy==2.4.6 ml_dtypes==0.6.0
"$python" - <<'END'
from iree_values import binary
from rows import compare

rows = [
    ("fmod([1, 1e9], [0.1, 3])", [0.09999999403953552, 1.0], [0.0, 0.0], binary("fmod.Tensor", [1, 1e9], [0.1, 3])),
    ("floor_divide([1, 6], [0.1, 0.1])", [9.0, 59.0], [10.0, 60.0], binary("floor_divide", [1, 6], [0.1, 0.1])),
]

compare(rows)
END
