# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The memory that a program's tensors lie in, and how its entry points are called there."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor
from torch._C._dynamo.guards import _empty_strided_cpu

from .._errors import Location
from .._library import Library
from .._ranks import Communicator


class Kept(Protocol):
    """Tensors that stay from call to call, and on a GPU the streams that have used them."""

    streams: set[int]

    def tensors(self) -> list[Tensor]: ...


class Call(Protocol):
    """An entry point that is called with addresses, as fp8.Prepared."""

    arguments: list[dict[str, Any]]
    results: list[dict[str, Any]]

    def call(self, arguments: Sequence[int], results: Sequence[int]) -> None: ...

    def communicate_through(self, communicator: Communicator) -> None: ...


class Memory:
    """The CPU's memory: programs of the CPU run in it, those for a GPU on the emulator, with copies of a call's tensors.

    `device` is PyTorch's, `options` are those of fp8.compile that say where the program runs.
    """

    def __init__(self, device: torch.device, options: dict[str, str | None]) -> None:
        self.device, self.options = device, options
        #: A tensor with undefined elements, from its shape, strides and type.
        # It takes half of torch.empty's time, and no default device or type of the user's.
        self.new: Callable[[Sequence[int], Sequence[int], torch.dtype], Tensor] = _empty_strided_cpu

    def prepare(self, library: Library, entry: str) -> Call:
        """An entry point of a library that was compiled with `options`."""
        return library.prepare(entry)

    def zeros(self, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        # A torch.Size is refused: only tuples themselves are taken.
        return self.new(tuple(shape), strides_of(shape), dtype).zero_()

    def put(self, tensor: Tensor) -> Tensor:
        """A tensor of values that is kept here: itself, or a copy if it lies elsewhere."""
        return tensor.to(self.device)

    def has(self, tensors: Sequence[Tensor]) -> bool:
        """Whether all of them lie here."""
        return all(map(_is_cpu, tensors))

    def check_results(self, results: Sequence[Any], line: Location | None) -> None:
        """Raises UnsupportedError unless the tensors among a program's results are to lie here."""

    def number(self, value: Any) -> Tensor:
        """A number, or a tensor of one, in f32 as a tensor that lies here."""
        return torch.as_tensor(value, dtype=torch.float32, device="cpu")

    def taken(self, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        """The arguments of a call as it reads them: row-major."""
        # map, as small calls take as long as their Python.
        if all(map(Tensor.is_contiguous, tensors)) and not any(map(Tensor.is_neg, tensors)) and not any(map(Tensor.is_conj, tensors)):
            return tensors
        return [row_major(t) for t in tensors]

    def note_use(self, *owners: Kept | None) -> None:
        """Says before a call that it uses the tensors of these, which were made before."""


_is_cpu = operator.attrgetter("is_cpu")


def row_major(tensor: Tensor) -> Tensor:
    """A tensor whose memory has its elements in order, and with their signs (`z.conj()` and its `imag` have others)."""
    if tensor.is_contiguous() and not tensor.is_neg() and not tensor.is_conj():
        return tensor
    return (tensor.detach() if tensor.requires_grad else tensor).contiguous().resolve_neg().resolve_conj()


def strides_of(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a tensor of this shape without gaps."""
    strides = [1]
    for size in reversed(shape[1:]):
        strides.append(strides[-1] * max(1, size))
    return tuple(reversed(strides)) if shape else ()
