#!/usr/bin/env bash
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# E8M0 has neither a sign nor a zero. PyTorch converts -2 to 2 and 0 to 2^-127, ml_dtypes converts both to NaN, and neither warns.
# A tie (3, between 2 and 4) goes up in both.
#
# Expected: the MX specification (OCP, version 1.0) has no such value, so any rule; but the same bytes from both libraries,
# for scales are exchanged between them.
set -eu
# shellcheck source=findings/pinned.sh
source "$(dirname "$0")/pinned.sh"
install torch==2.15.0 numpy==2.4.6 ml_dtypes==0.6.0 # with the libraries of CUDA that torch is linked with
"$python" - <<'END'
import ml_dtypes
import numpy as np
import torch
from rows import compare

print("torch", torch.__version__, "ml_dtypes", ml_dtypes.__version__)
numbers = np.array([-2.0, 0.0, -0.0, 3.0, 1.0], np.float32)
by_torch = torch.tensor(numbers).to(torch.float8_e8m0fnu).view(torch.uint8).tolist()
by_numpy = numbers.astype(ml_dtypes.float8_e8m0fnu).view(np.uint8).tolist()
rows = [
    (f"torch: bytes of {numbers.tolist()}", "those of ml_dtypes", [128, 0, 0, 129, 127], by_torch),
    ("ml_dtypes: the same", "those of torch", [255, 255, 255, 129, 127], by_numpy),
]

compare(rows)
END
