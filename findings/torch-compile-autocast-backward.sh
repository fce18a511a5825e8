#!/usr/bin/env bash
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# A product that its author keeps in f32, by torch.autocast(enabled=False) within a region of bf16 autocast, has its gradient
# computed in bf16 under torch.compile: AOT autograd traces backward with the casts of the outer region. Eager PyTorch runs
# backward() outside of the region in f32. The output is f32, and right, in both.
#
# Expected: the gradient of eager PyTorch, within roundings of f32 (2^-24); seen: an error of 2^-9 of the largest element.
# torch._functorch.config.backward_pass_autocast = "off" gives it.
set -eu
# shellcheck source=findings/pinned.sh
source "$(dirname "$0")/pinned.sh"
install torch==2.15.0 numpy==2.4.6 # with the libraries of CUDA that torch is linked with
"$python" - <<'END'
import torch
import torch._functorch.config
from rows import compare

print("torch", torch.__version__)
generator = torch.Generator().manual_seed(0)
x, w, cotangent = (torch.randn(64, 64, generator=generator) for _ in range(3))
exact = cotangent.double() @ w.double().T


def protected(x, w):
    with torch.autocast("cpu", enabled=False):
        return x @ w


def error(function):
    """The largest error of the gradient of x, in f32 or not: of the largest element."""
    torch._dynamo.reset()
    leaf = x.clone().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        y = function(leaf, w)
    y.backward(cotangent)
    largest = ((leaf.grad - exact).abs().max() / exact.abs().max()).item()
    return "f32" if largest < 1e-6 else "bf16" if 1e-3 < largest < 1e-2 else largest


compiled = torch.compile(protected, backend="aot_eager")
rows = [
    ("eager: digits of the gradient", "f32", "f32", error(protected)),
    ("torch.compile: the same", "f32", "bf16", error(compiled)),
]
with torch._functorch.config.patch(backward_pass_autocast="off"):
    rows.append(("torch.compile, backward_pass_autocast off", "f32", "f32", error(compiled)))
compare(rows)
END
