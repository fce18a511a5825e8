#!/usr/bin/env bash
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# PyTorch's gradients of several activations at NaN depend on the place in the tensor: elements that its loops take as vectors have
# another than those that are left over at the end. The first are NaN or 0, by the function, and the last 1 (or selu's scale). A
# loss can be NaN while a part of the gradients is not.
#
# Expected: one gradient for one input wherever it stands, as of PyTorch's other activations (sigmoid, tanh, gelu).
set -eu
# shellcheck source=findings/pinned.sh
source "$(dirname "$0")/pinned.sh"
install torch==2.15.0 numpy==2.4.6 # with the libraries of CUDA that torch is linked with
"$python" - <<'END'
import torch
import torch.nn.functional as F
from rows import compare

print("torch", torch.__version__)
torch.set_num_threads(1)  # so that one loop takes the whole tensor


def at_nan(function):
    """The gradients of 33 NaN: the first and the last."""
    x = torch.full((33,), float("nan"), requires_grad=True)
    (gradient,) = torch.autograd.grad(function(x).sum(), x)
    return [round(gradient[0].item(), 4), round(gradient[-1].item(), 4)]


nan = float("nan")
rows = []
for f, first, last in (
    *((F.elu, nan, 1.0), (F.celu, nan, 1.0), (F.selu, nan, 1.0507), (F.hardswish, nan, 1.0)),
    *((F.hardtanh, 0.0, 1.0), (F.relu6, 0.0, 1.0), (F.softshrink, 0.0, 1.0), (F.hardshrink, 0.0, 1.0)),
    *((torch.sigmoid, nan, nan), (torch.tanh, nan, nan), (F.gelu, nan, nan)),
):
    rows.append((f"{f.__name__}, first and last of 33 gradients at NaN", [first, first], [first, last], at_nan(f)))
compare(rows)
END
