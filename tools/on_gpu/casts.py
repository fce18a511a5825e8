# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The casts of a linear layer's operands to FP8, with their amaxes, beside a copy."""

from collections.abc import Iterator
from typing import Any

import products
from rows import Place, Row, attempt

import programs

SHAPE, QUICK = (8192, 8192, 8192), (64, 48, 64)


def copy(place: Place) -> dict[str, Any]:
    """GB/s, read and written, of a copy of 2 GiB."""
    torch = products.import_torch(place)
    x = torch.randn(1 << 30, device="cuda", dtype=torch.bfloat16)
    y = torch.empty_like(x)
    return {"GB/s": 2e-6 * x.nbytes / products.milliseconds(torch, lambda: y.copy_(x))}


def casts(place: Place, recipe: str) -> dict[str, Any]:
    shape = QUICK if place.quick else SHAPE
    library = programs.library(programs.layer, shape, recipe, place.device, place.chip)
    kernels = programs.profile(library, programs.inputs(programs.layer, shape), 1 if place.quick else 8)
    found = [kernel for kernel in kernels if kernel.kind == "casts"]
    moved = sum(kernel.bytes * kernel.calls for kernel in found)
    calls = sum(kernel.calls for kernel in found)
    # Times of the emulator say nothing of a GPU.
    return {"launches": calls, "bytes": moved} | ({"GB/s": 1e-6 * moved / sum(kernel.milliseconds for kernel in found)} if place.device == "cuda" else {})


def measure(place: Place) -> Iterator[Row]:
    yield attempt("a copy of 2 GiB", copy, place)
    for recipe in programs.RECIPES[1:]:
        yield attempt(recipe, casts, place, recipe)
