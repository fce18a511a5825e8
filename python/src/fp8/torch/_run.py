# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of an entry point on tensors of PyTorch, and the residuals of a pair in one tensor."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .._errors import UnsupportedError
from .._library import Library

_BITS = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16, "i64": 64, "i32": 32, "i16": 16, "i1": 8}

#: The arena begins with this many bytes, which hold the number of the state that forward used.
_HEADER = 64


class Runner:
    """One entry point, prepared once.

    `results` describes the user's results: a fake or real tensor each, or any other value, which
    is returned as it is.
    """

    def __init__(self, library: Library, entry: str, results: Sequence[Any]) -> None:
        self._prepared = library.prepare(entry)
        self._results = [(tuple(r.shape), r.dtype) if isinstance(r, Tensor) else r for r in results]
        arguments, outputs = self._prepared.arguments, self._prepared.results
        self.state_names = [a["name"] for a in arguments if a["kind"] == "state"]
        self._taken, taken_bytes = _places([a for a in arguments if a["kind"] == "residual"])
        self._saved, saved_bytes = _places([r for r in outputs if r["kind"] == "residual"])
        self.arena_bytes = max(taken_bytes, saved_bytes)
        self._state_results: list[None] = [None] * sum(r["kind"] == "state" for r in outputs)

    def new_arena(self, state: int) -> Tensor:
        """Memory for the residuals that this entry point returns."""
        arena = torch.empty(self.arena_bytes, dtype=torch.uint8)
        ctypes.c_int64.from_address(arena.data_ptr()).value = state
        return arena

    def __call__(self, tensors: Sequence[Tensor], state: Sequence[int], arena: Tensor | None = None) -> list[Any]:
        """Calls the entry point on the user's arguments; `state` are addresses of the state's tensors."""
        pointers: list[int | None] = []
        outputs: list[int | None] = []
        if arena is not None:
            base = arena.data_ptr()
            pointers += [base + offset for offset in self._taken]
        held = [t if t.is_contiguous() else t.contiguous() for t in tensors]
        pointers += [t.data_ptr() for t in held]
        pointers += state
        results = [torch.empty(r[0], dtype=r[1]) if type(r) is tuple else r for r in self._results]
        outputs += [r.data_ptr() for r in results if isinstance(r, Tensor)]
        if arena is not None:
            outputs += [base + offset for offset in self._saved]
        outputs += self._state_results
        self._prepared.call(pointers, outputs)
        return results


def state_number(arena: Tensor) -> int:
    """The number of the state that the forward pass used, which its arena begins with."""
    return ctypes.c_int64.from_address(arena.data_ptr()).value


def _places(residuals: Sequence[dict[str, Any]]) -> tuple[list[int], int]:
    """Offsets of the residuals in the arena, 64-byte aligned, and the arena's size."""
    offsets, end = [], _HEADER
    for residual in residuals:
        offsets.append(end)
        elements = 1
        for size in residual["shape"]:
            elements *= size
        end += -(-elements * _BITS.get(residual["type"], 8) // 8 // 64) * 64
    return offsets, end


def check_devices(tensors: Sequence[Any]) -> None:
    """Raises UnsupportedError unless all tensors lie in the CPU's memory."""
    for tensor in tensors:
        if isinstance(tensor, Tensor) and tensor.device.type not in ("cpu", "meta"):
            raise UnsupportedError(f"fp8.torch runs on the CPU; a tensor is on {tensor.device}: move model and inputs with .cpu()")
