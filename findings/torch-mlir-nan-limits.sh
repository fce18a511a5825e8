#!/usr/bin/env bash
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# torch-mlir (as IREE's compiler has it) loses NaN in maximum, minimum and clamp: in the first two if it is the first operand, and
# keeps it if it is the second.
#
# Expected: PyTorch's documentation of maximum and minimum: "If one of the elements being compared is a NaN, then that element is
# returned"; clamp of NaN is NaN.
set -eu
# shellcheck source=findings/pinned.sh
source "$(dirname "$0")/pinned.sh"
install --no-deps iree-base-compiler==3.13.0 iree-base-runtime==3.13.0 numpy==2.4.6 ml_dtypes==0.6.0
"$python" - <<'END'
import numpy as np
from iree_values import binary, run
from rows import compare

nan = float("nan")
clamp = "%x = torch.constant.float 0.0\n %y = torch.constant.float 1.0\n %r = torch.aten.clamp %a, %x, %y : TENSOR, !torch.float, !torch.float -> TENSOR"
rows = [
    ("maximum([nan, 1], [1, nan])", [nan, nan], [1.0, nan], binary("maximum", [nan, 1], [1, nan])),
    ("minimum([nan, 1], [1, nan])", [nan, nan], [1.0, nan], binary("minimum", [nan, 1], [1, nan])),
    ("clamp([nan, 2], 0, 1)", [nan, 1.0], [0.0, 1.0], run(clamp, np.array([nan, 2], np.float32))),
]

compare(rows)
END
