#!/usr/bin/env bash
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# PyTorch's trigamma, which is polygamma(1, x) and the gradient of digamma, has nine or ten right digits in f64, not sixteen. Second
# derivatives of lgamma, and the gradients of a Beta's or Dirichlet's entropy, have no more.
#
# Expected: pi^2 / 6 at 1, pi^2 / 2 at 1/2 and pi^2 / 6 - 1 at 2 (Abramowitz and Stegun, 6.4.2 to 6.4.5), as torch.special.zeta(2, x)
# has them to the last digit or two: both are one function (6.4.10).
set -eu
# shellcheck source=findings/pinned.sh
source "$(dirname "$0")/pinned.sh"
install torch==2.15.0 numpy==2.4.6 # with the libraries of CUDA that torch is linked with
"$python" - <<'END'
import math

import torch
from rows import compare

print("torch", torch.__version__)


def digits(found, right):
    """How many decimal digits are right."""
    return math.floor(-math.log10(abs(found / right - 1) or 2**-53))


rows = []
for at, right, known in ((1.0, math.pi**2 / 6, 9), (0.5, math.pi**2 / 2, 9), (2.0, math.pi**2 / 6 - 1, 9)):
    x = torch.tensor(at, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(torch.digamma(x), x)
    zeta = torch.special.zeta(torch.tensor(2.0, dtype=torch.float64), x.detach())
    rows.append((f"right digits of polygamma(1, {at})", "15 or 16", known, digits(torch.polygamma(1, x).item(), right)))
    rows.append((f"right digits of the gradient of digamma at {at}", "15 or 16", known, digits(gradient.item(), right)))
    rows.append((f"right digits of zeta(2, {at})", 15, 15, digits(zeta.item(), right)))
compare(rows)
END
