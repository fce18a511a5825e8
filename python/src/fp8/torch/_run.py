# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of an entry point on tensors of PyTorch, and the residuals of a pair in one tensor."""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._C._dynamo.guards import _empty_strided_cpu

from .. import _options, _process
from .._errors import MissingToolError, UnsupportedError
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
        # _empty_strided_cpu takes half of torch.empty's time, and no default device or type of the user's.
        self._shapes = [(tuple(r.shape), _strides(r.shape), r.dtype) for r in results if isinstance(r, Tensor)]
        self._tensors = [i for i, r in enumerate(results) if isinstance(r, Tensor)]
        self._others = [None if isinstance(r, Tensor) else r for r in results]
        arguments, outputs = self._prepared.arguments, self._prepared.results
        self.state_names = [a["name"] for a in arguments if a["kind"] == "state"]
        self._taken, taken_bytes = _places([a for a in arguments if a["kind"] == "residual"])
        self._saved, saved_bytes = _places([r for r in outputs if r["kind"] == "residual"])
        self._arena = (max(taken_bytes, saved_bytes),), (1,), torch.uint8
        self._state_results = [0] * sum(r["kind"] == "state" for r in outputs)

    def new_arena(self) -> Tensor:
        """Memory for the residuals that this entry point returns."""
        return _empty_strided_cpu(*self._arena)

    def __call__(self, tensors: Sequence[Tensor], state: Sequence[int], arena: Tensor | None = None) -> list[Any]:
        """Calls the entry point on the user's arguments; `state` are addresses of the state's tensors."""
        # map, as small calls take as long as their Python.
        if not all(map(Tensor.is_contiguous, tensors)) or any(map(Tensor.is_neg, tensors)) or any(map(Tensor.is_conj, tensors)):
            tensors = [row_major(t) for t in tensors]
        created = [*itertools.starmap(_empty_strided_cpu, self._shapes)]
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


def row_major(tensor: Tensor) -> Tensor:
    """A tensor whose memory has its elements in order, and with their signs (`z.conj()` and its `imag` have others)."""
    if tensor.is_contiguous() and not tensor.is_neg() and not tensor.is_conj():
        return tensor
    return (tensor.detach() if tensor.requires_grad else tensor).contiguous().resolve_neg().resolve_conj()


def _strides(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a tensor of this shape without gaps."""
    strides = [1]
    for size in reversed(shape[1:]):
        strides.append(strides[-1] * max(1, size))
    return tuple(reversed(strides)) if shape else ()


def note_number(arena: Tensor, number: int) -> None:
    """Keeps the number of the state that the forward pass used at the arena's begin."""
    ctypes.c_int64.from_address(arena.data_ptr()).value = number


def noted_number(arena: Tensor) -> int:
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


def check_options(where: str, options: Mapping[str, Any], found: Sequence[str] = ("pair", "carry")) -> None:
    """Raises ValueError or TypeError for options that fp8-compile does not know or whose values it refuses, for those that
    are found without the user, and for another target than the CPU.
    """
    for name in found:
        if name in options:
            raise ValueError(f"{name} is set by {where} itself")
    if options.get("target", "cpu") != "cpu":
        raise ValueError(f"target={options['target']!r}: {where} runs on the CPU; fp8.compile compiles for GPUs")
    of_python = {"cache", "name", *(["keep"] if callable(options.get("keep")) else [])}
    _check_words(tuple(_options.to_arguments({name: value for name, value in options.items() if name not in of_python})))


@functools.cache
def _check_words(arguments: tuple[str, ...]) -> None:
    """Raises ValueError for the words of a command line, which fp8-compile reads before its program."""
    try:
        done = _process.run(["fp8-compile", "-", "-o", os.devnull, "--no-cache", *arguments], b"module {}", None)
    except MissingToolError:
        return  # Compiling says so.
    if done.returncode == 2:
        raise ValueError(_process.in_python_words(_process.decode(done.stderr)))


def check_devices(tensors: Sequence[Any]) -> None:
    """Raises UnsupportedError unless all tensors lie in the CPU's memory; a tensor on `meta` lies nowhere."""
    for tensor in tensors:
        if isinstance(tensor, Tensor) and tensor.device.type != "cpu":
            advice = "make model and inputs on the CPU" if tensor.is_meta else "move model and inputs with .cpu()"
            raise UnsupportedError(f"fp8.torch runs on the CPU; a tensor is on {tensor.device}: {advice}")
