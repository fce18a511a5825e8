#!/usr/bin/env bash
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# IREE's code for the CPU computes powers of a tensor by a tensor as exponentials of logarithms: the cube of -2 is NaN, and so are the powers with exponent 0
# of 0 and of NaN.
#
# Expected: IEEE-754, 9.2.1 (pow), as in C, numpy and torch.pow: -8, 1 and 1.
set -eu
# shellcheck source=findings/pinned.sh
source "$(dirname "$0")/pinned.sh"
install --no-deps iree-base-compiler==3.13.0 iree-base-runtime==3.13.0 numpy==2.4.6 ml_dtypes==0.6.0
"$python" - <<'END'
from iree_values import binary
from rows import compare

nan = float("nan")
rows = [
    ("pow([-2, 0, nan], [3, 0, 0])", [-8.0, 1.0, 1.0], [nan, nan, nan], binary("pow.Tensor_Tensor", [-2, 0, nan], [3, 0, 0])),
]

compare(rows)
END
