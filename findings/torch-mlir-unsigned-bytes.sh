#!/usr/bin/env bash
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# torch-mlir (as IREE's compiler has it) computes with torch.uint8 as if it were signed: 200 / 2 is 228, and 200 as a float becomes
# 127.
#
# Expected: PyTorch's values; its table of dtypes has torch.uint8 as unsigned, and the type in the IR, ui8, says so too.
set -eu
# shellcheck source=findings/pinned.sh
source "$(dirname "$0")/pinned.sh"
install --no-deps iree-base-compiler==3.13.0 iree-base-runtime==3.13.0 numpy==2.4.6 ml_dtypes==0.6.0
"$python" - <<'END'
import numpy as np
from iree_values import run
from rows import compare

trunc = "%s = torch.constant.str \"trunc\"\n %r = torch.aten.div.Tensor_mode %a, %b, %s : TENSOR, TENSOR, !torch.str -> TENSOR"
cast = """%type = torch.constant.int 0
  %no = torch.constant.bool false
  %none = torch.constant.none
  %u = torch.aten.to.dtype %a, %type, %no, %no, %none : TENSOR, !torch.int, !torch.bool, !torch.bool, !torch.none -> !torch.vtensor<[2],ui8>
  %wide = torch.constant.int 6
  %r = torch.aten.to.dtype %u, %wide, %no, %no, %none : !torch.vtensor<[2],ui8>, !torch.int, !torch.bool, !torch.bool, !torch.none -> TENSOR"""
a, b = np.array([200, 100], np.uint8), np.array([2, 7], np.uint8)
rows = [
    ("div([200, 100], [2, 7], rounding_mode='trunc')", [100, 14], [228, 14], run(trunc, a, b, type="ui8")),
    ("[200.0, 100.0] to uint8 and back", [200.0, 100.0], [127.0, 100.0], run(cast, a.astype(np.float32))),
]

compare(rows)
END
