#!/usr/bin/env bash
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# torch-mlir (as IREE's compiler has it) drops a pad whose widths cancel: one element more on the left and one less on the right is
# taken for no change, because the shape stays.
#
# Expected: torch.nn.functional.pad's values; negative widths cut elements off. MLIR's tensor.pad, to which this is lowered, folds
# where source and result have one type.
set -eu
# shellcheck source=findings/pinned.sh
source "$(dirname "$0")/pinned.sh"
install --no-deps iree-base-compiler==3.13.0 iree-base-runtime==3.13.0 numpy==2.4.6 ml_dtypes==0.6.0
"$python" - <<'END'
import numpy as np
from iree_values import run
from rows import compare

def pad(left, right):
    body = f"""%x = torch.constant.int {left}
      %y = torch.constant.int {right}
      %l = torch.prim.ListConstruct %x, %y : (!torch.int, !torch.int) -> !torch.list<int>
      %z = torch.constant.float 0.0
      %r = torch.aten.constant_pad_nd %a, %l, %z : TENSOR, !torch.list<int>, !torch.float -> TENSOR"""
    return run(body, np.array([1, 2, 3], np.float32))

rows = [
    ("pad([1, 2, 3], (1, -1))", [0.0, 1.0, 2.0], [1.0, 2.0, 3.0], pad(1, -1)),
    ("pad([1, 2, 3], (-1, 1))", [2.0, 3.0, 0.0], [1.0, 2.0, 3.0], pad(-1, 1)),
]

compare(rows)
END
