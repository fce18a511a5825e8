# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The example GPT in the sizes that a part wants, its text, and the comparison of losses."""

import pathlib
from typing import Any

import parameters
from rows import Place

KEEP = "embed|head"
#: Losses are those of the CPU up to this part. Tensor cores keep 13 bits of the sums of FP8: parameters of the example that are
#: changed by 2^-13 of their size, at random, move its losses by up to 2.2e-4 (12 steps, 4 seeds, delayed scaling) and 1.5e-4
#: (current scaling). bf16 in the place of FP8 moves them by 1.2e-3 and 6.7e-4.
LIMIT = 2.0**-11

TINY = {"LAYERS": 1, "HEADS": 2, "WIDTH": 32, "HIDDEN": 64, "SEQUENCE": 16, "BATCH": 4}


def resize(sizes: dict[str, int]) -> None:
    """Gives the example other sizes; before model and text are imported, which take them from there."""
    for name, size in sizes.items():
        setattr(parameters, name, size)


def prepare(place: Place) -> int:
    """Sizes for losses; how many steps to take."""
    if place.quick:
        resize(TINY)
    return 3 if place.quick else 12


def tokens(steps: int) -> Any:
    """Batches of the license's bytes, which stay as they are, [steps, batch, window]."""
    import numpy as np
    import text

    data = (pathlib.Path(__file__).resolve().parents[2] / "LICENSE").read_bytes()
    return np.array(text.batches(data, steps, seed=0), np.int32).reshape(steps, parameters.BATCH, text.WINDOW)


def compare(found: list[float], expected: list[float]) -> dict[str, Any]:
    difference = max(abs(a / b - 1) for a, b in zip(found, expected, strict=True))
    return {"ok": difference <= LIMIT, "losses": found, "on the CPU": expected, "largest difference": difference}
