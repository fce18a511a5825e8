# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small programs, bit for bit: on a GPU those of the emulator, whose tensor cores add as hardware does.

On the emulator itself those of the CPU: both then add in f32 in the order of K, and there is no other difference.
"""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from rows import Place, Row, attempt

import programs

# Sizes of whole tiles, ragged ones of several tiles, and rows that are no multiple of 16 bytes.
SHAPES = [(128, 128, 128), (208, 272, 272), (100, 130, 77)]
QUICK = [(40, 26, 37)]
#: The scales of the second step come from the first one's amaxes.
STEPS = 2


def bits(array: Any) -> Any:
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def difference(given: programs.Arrays, wanted: programs.Arrays) -> dict[str, Any]:
    """How many of all elements differ, and the largest difference beside the largest element of its tensor."""
    differ, count, largest = 0, 0, 0.0
    for a, b in zip(given, wanted, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        differ, count = differ + int((bits(a) != bits(b)).sum()), count + a.size
        wide, other = a.astype(np.float64), b.astype(np.float64)
        if a.size and not np.array_equal(wide, other, equal_nan=True):
            largest = max(largest, float(np.abs(wide - other).max() / np.abs(other).max()))
    return {"ok": differ == 0, "differ": differ, "elements": count, **({"largest difference": largest} if differ else {})}


def compare(place: Place) -> Iterator[Row]:
    on_gpu = place.device == "cuda"
    if not on_gpu:
        os.environ["FP8EMU_SUMS"] = "korder"  # Read when the emulator is loaded.

    def run(text: Any, shape: tuple[int, int, int], recipe: str) -> dict[str, Any]:
        arrays = programs.inputs(text, shape)
        given = programs.library(text, shape, recipe, place.device, place.chip, not on_gpu)
        other = ("emulator", place.chip) if on_gpu else ("cpu", "cpu")
        wanted = programs.library(text, shape, recipe, *other, not on_gpu)
        return difference(programs.call(given, arrays, STEPS), programs.call(wanted, arrays, STEPS))

    for text in (programs.layer, programs.normalized):
        for shape in QUICK if place.quick else SHAPES:
            for recipe in programs.RECIPES:
                name = "x".join(map(str, shape))
                yield attempt(f"{text.__name__} {name} {recipe}", run, text, shape, recipe)
