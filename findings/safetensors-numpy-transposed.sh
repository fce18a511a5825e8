#!/usr/bin/env bash
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# safetensors 0.8.0 writes a numpy array that is transposed, or in Fortran's order, in the order of its memory with its logical shape:
# what is read back has other values. There is no error.
#
# Expected: the array that was saved, as safetensors 0.5.3 and 0.7.0 wrote it; or an error, as safetensors.torch has for tensors that are not
# contiguous.
set -eu
# shellcheck source=findings/pinned.sh
source "$(dirname "$0")/pinned.sh"
install --no-deps safetensors==0.8.0 numpy==2.4.6
"$python" - <<'END'
import numpy as np
import safetensors
from safetensors.numpy import load, save
from rows import compare

print("safetensors", safetensors.__version__)
x = np.arange(6, dtype=np.float32).reshape(2, 3)
fortran = np.asfortranarray(x)
rows = [
    ("x.T, saved and loaded", x.T.tolist(), [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], load(save({"x": x.T}))["x"].tolist()),
    ("x in Fortran's order", x.tolist(), [[0.0, 3.0, 1.0], [4.0, 2.0, 5.0]], load(save({"x": fortran}))["x"].tolist()),
]

compare(rows)
END
