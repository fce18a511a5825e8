# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CUDA tensors: all that this package asks torch.cuda for, and calls that are enqueued on its current stream.

Results and workspaces come from PyTorch's allocator, on the stream that the work is enqueued on, so that it may give their
memory to later work of that stream. Nothing here waits for the device, so that calls can be captured in graphs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .._errors import Location, UnsupportedError
from .._library import Library
from .._ranks import Communicator
from ._memory import Call, Kept, Memory, row_major

#: Kernels read this many bytes at a time from the start of a tensor.
_ALIGNMENT = 16


class Cuda:
    """torch.cuda. Tests put a stand-in in its place, whose tensors lie in the emulator's memory."""

    def device_of(self, tensor: Tensor) -> torch.device:
        return tensor.device

    def capability(self, device: torch.device) -> tuple[int, int]:
        """The compute capability, as (9, 0)."""
        return torch.cuda.get_device_capability(device)  # type: ignore[no-any-return]

    def stream(self, device: torch.device) -> int:
        """The current stream, as the driver knows it."""
        # torch.cuda.current_stream without an object for it.
        return torch._C._cuda_getCurrentRawStream(device.index)  # type: ignore[no-any-return]

    def is_capturing(self) -> bool:
        """Whether the current stream's work is captured in a graph."""
        return bool(torch.cuda.is_current_stream_capturing())

    def new(self, shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype, device: torch.device) -> Tensor:
        return torch.empty_strided(shape, strides, dtype=dtype, device=device)

    def put(self, tensor: Tensor, device: torch.device) -> Tensor:
        return tensor.to(device)

    def full(self, value: Any, dtype: torch.dtype, device: torch.device) -> Tensor:
        """A tensor of one number, which a kernel writes."""
        return torch.full((), value, dtype=dtype, device=device)

    def note_use(self, tensor: Tensor, device: torch.device) -> None:
        """Keeps the tensor's memory until the work of the current stream is done."""
        tensor.record_stream(torch.cuda.current_stream(device))


#: The object that programs on CUDA tensors ask.
cuda = Cuda()


class CudaMemory(Memory):
    """The memory of a GPU."""

    def __init__(self, device: torch.device, options: dict[str, str | None]) -> None:
        super().__init__(device, options)
        self.new = self._new

    def prepare(self, library: Library, entry: str) -> Call:
        return _Enqueued(self, library, entry)

    def _new(self, shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype) -> Tensor:
        return cuda.new(shape, strides, dtype, self.device)

    def put(self, tensor: Tensor) -> Tensor:
        return cuda.put(tensor, self.device)

    def has(self, tensors: Sequence[Tensor]) -> bool:
        return all(cuda.device_of(tensor) == self.device for tensor in tensors)

    def check_results(self, results: Sequence[Any], line: Location | None) -> None:
        if any(isinstance(result, Tensor) and cuda.device_of(result) != self.device for result in results):
            raise UnsupportedError(f"a result lies on the CPU, and the program runs on {self.device}: compute it outside, or make it there", line)

    def number(self, value: Any) -> Tensor:
        if isinstance(value, Tensor):
            return self._there(value.to(torch.float32))
        return cuda.full(value, torch.float32, self.device)

    def taken(self, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        """Row-major, on the device, and aligned; a number that lies on the CPU is written there."""
        return [*map(self._there, tensors)]

    def _there(self, tensor: Tensor) -> Tensor:
        tensor = row_major(tensor)
        if cuda.device_of(tensor) != self.device:
            if tensor.dim():
                raise ValueError(f"a tensor lies on {cuda.device_of(tensor)} and the program runs on {self.device}: move it there by .to('{self.device}')")
            # Not a copy, which would wait, and could not be captured: eager operations take such a number by value too.
            return cuda.full(tensor.item(), tensor.dtype, self.device)
        if tensor.data_ptr() % _ALIGNMENT:
            aligned = self.new(tensor.shape, tensor.stride(), tensor.dtype)
            return aligned.copy_(tensor.detach())
        return tensor

    def note_use(self, *owners: Kept | None) -> None:
        stream = cuda.stream(self.device)
        for owner in owners:
            # A tensor's first stream is the one that it was made on.
            if owner is not None and stream not in owner.streams:
                if owner.streams:
                    for tensor in owner.tensors():
                        cuda.note_use(tensor, self.device)
                owner.streams.add(stream)


class _Enqueued:
    """An entry point whose calls are enqueued on PyTorch's current stream."""

    def __init__(self, memory: CudaMemory, library: Library, entry: str) -> None:
        self._memory, self._prepared = memory, library.prepare(entry)
        self.arguments, self.results = self._prepared.arguments, self._prepared.results
        description = library.entries[entry].description
        # One byte at least: without a workspace the entry point would make one of its own.
        self._workspace = (max(1, description["workspace_bytes"]),), (1,), torch.uint8
        self._entry, self._is_capturable = entry, description.get("capturable", False)

    def communicate_through(self, communicator: Communicator) -> None:
        self._prepared.communicate_through(communicator)
        # Through the memory of the host, collectives wait for the device.
        self._is_capturable = self._is_capturable and communicator.is_nccl

    def call(self, arguments: Sequence[int], results: Sequence[int]) -> None:
        if not self._is_capturable and cuda.is_capturing():
            raise UnsupportedError(f"'{self._entry}' reads values of the device between its kernels, so that no graph can capture it: call it outside")
        workspace = self._memory.new(*self._workspace)
        self._prepared.enqueue(arguments, results, cuda.stream(self._memory.device), workspace.data_ptr())
