#!/usr/bin/env bash
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# torch-mlir (as IREE's compiler has it) takes a comparison of a tensor with itself for true where it is written `x == x`, so that
# a check for NaN written that way finds none; written `x != x` it finds them, and `x <= x` is right too.
#
# Expected: PyTorch's documentation of eq and ne, element-wise equality: NaN is not equal to itself (IEEE 754).
set -eu
# shellcheck source=findings/pinned.sh
source "$(dirname "$0")/pinned.sh"
install --no-deps iree-base-compiler==3.13.0 iree-base-runtime==3.13.0 numpy==2.4.6 ml_dtypes==0.6.0
"$python" - <<'END'
import numpy as np
from iree_values import run
from rows import compare

x = np.array([float("nan"), 2], np.float32)
BOOLS = "!torch.vtensor<[2],i1>"


def count(name):
    """1 where the comparison of %a with itself holds, else 0."""
    return run(
        f"%b = torch.aten.{name}.Tensor %a, %a : TENSOR, TENSOR -> {BOOLS}\n %d = torch.constant.int 6\n %no = torch.constant.bool false\n"
        " %none = torch.constant.none\n"
        f" %r = torch.aten.to.dtype %b, %d, %no, %no, %none : {BOOLS}, !torch.int, !torch.bool, !torch.bool, !torch.none -> TENSOR",
        x,
    )


compare(
    [
        ("[nan, 2] == itself", [0.0, 1.0], [1.0, 1.0], count("eq")),
        ("[nan, 2] != itself", [1.0, 0.0], [1.0, 0.0], count("ne")),
        ("[nan, 2] <= itself", [0.0, 1.0], [0.0, 1.0], count("le")),
    ]
)
END
