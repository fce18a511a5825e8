#!/usr/bin/env bash
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# PyTorch's gradients of elu, celu and selu at NaN depend on the place in the tensor: NaN for the elements that its loops take as
# vectors, and the gradient of a positive number, 1 or selu's scale, for those that are left over at the end. A loss can be NaN
# while a part of the gradients is not.
#
# Expected: one gradient for one input wherever it stands, NaN as of PyTorch's other activations of NaN (sigmoid, tanh, gelu).
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


def of_nan(function, count):
    """Whether the gradients of `count` NaN are NaN: that of the first and of the last."""
    x = torch.full((count,), float("nan"), requires_grad=True)
    (gradient,) = torch.autograd.grad(function(x).sum(), x)
    return [bool(gradient[0].isnan()), bool(gradient[-1].isnan())]


rows = [(f"{f.__name__}, first and last of 33 gradients at NaN are NaN", [True, True], [True, False], of_nan(f, 33)) for f in (F.elu, F.celu, F.selu)]
rows += [(f"{f.__name__}, the same", [True, True], [True, True], of_nan(f, 33)) for f in (torch.sigmoid, torch.tanh, F.gelu)]
compare(rows)
END
