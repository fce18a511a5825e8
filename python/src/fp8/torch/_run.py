# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of an entry point on tensors of PyTorch, and the residuals of a pair in one tensor."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .._library import Library
from ._memory import Memory, strides_of

_BITS = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16, "i64": 64, "i32": 32, "i16": 16, "i1": 8}


class Runner:
    """One entry point, prepared once.

    `results` describes the user's results: a fake or real tensor each, or any other value, which
    is returned as it is.
    """

    def __init__(self, library: Library, entry: str, results: Sequence[Any], memory: Memory) -> None:
        self._prepared, self._take, self._new = memory.prepare(library, entry), memory.taken, memory.new
        self._shapes = [(tuple(r.shape), strides_of(r.shape), r.dtype) for r in results if isinstance(r, Tensor)]
        self._tensors = [i for i, r in enumerate(results) if isinstance(r, Tensor)]
        self._others = [None if isinstance(r, Tensor) else r for r in results]
        arguments, outputs = self._prepared.arguments, self._prepared.results
        self.state_names = [a["name"] for a in arguments if a["kind"] == "state"]
        self._taken, taken_bytes = _places([a for a in arguments if a["kind"] == "residual"])
        self._saved, saved_bytes = _places([r for r in outputs if r["kind"] == "residual"])
        self._arena_bytes = max(taken_bytes, saved_bytes)
        self._state_results = [0] * sum(r["kind"] == "state" for r in outputs)

    def new_arena(self, number: int) -> Tensor:
        """Memory for the residuals that this entry point returns. Its size tells `number` (-1 and up), of the state that forward used."""
        return self._new((self._arena_bytes + 2 + number,), (1,), torch.uint8)

    def number_of(self, arena: Tensor) -> int:
        return int(arena.numel()) - self._arena_bytes - 2

    def __call__(self, tensors: Sequence[Tensor], state: Sequence[int], arena: Tensor | None = None) -> list[Any]:
        """Calls the entry point on the user's arguments; `state` are addresses of the state's tensors."""
        tensors = self._take(tensors)
        created = [*itertools.starmap(self._new, self._shapes)]
        place = (arena.data_ptr() if arena is not None else 0).__add__
        self._prepared.call(
            [*map(place, self._taken), *map(Tensor.data_ptr, tensors), *state],
            [*map(Tensor.data_ptr, created), *map(place, self._saved), *self._state_results],
        )
        if len(created) == len(self._others):
            return created
        results = self._others.copy()
        for i, result in zip(self._tensors, created):
            results[i] = result
        return results


def _places(residuals: Sequence[dict[str, Any]]) -> tuple[list[int], int]:
    """Offsets of the residuals in the arena, 64-byte aligned, and the arena's size."""
    offsets, end = [], 0
    for residual in residuals:
        offsets.append(end)
        elements = 1
        for size in residual["shape"]:
            elements *= size
        end += -(-elements * _BITS.get(residual["type"], 8) // 8 // 64) * 64
    return offsets, end
