# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`fp8.Prepared`: an entry point that was checked once, and is called with pointers only."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from . import _dlpack, _runtime
from ._loaded import Loaded


class Prepared:
    """An entry point that was checked once and is called with pointers only.

    `arguments` and `results` are the manifest's lists, with state; the pointers of a call are in
    their order: row-major memory, aligned to the element, that the caller keeps alive. 0 as the
    pointer of a result that aliases an argument ("alias") means that argument's memory. One thread
    at a time may use it; it has a workspace of its own.

    On a device `call` takes memory of the CPU, copies it there and back, and waits; `enqueue` takes the device's memory,
    aligned to 16 bytes.
    """

    def __init__(self, library: Loaded, description: Mapping[str, Any], shapes: Mapping[str, Sequence[Sequence[int] | None]] | None) -> None:
        self.arguments: list[dict[str, Any]] = description["arguments"]
        self.results: list[dict[str, Any]] = description["results"]
        self._library = library
        device = library.opened()
        place = device.place if device else _dlpack.CPU
        arguments = _descriptions(self.arguments, shapes.get("arguments") if shapes else None, place)
        results = _descriptions(self.results, shapes.get("results") if shapes else None, place)
        self._handle = _runtime.Handle(
            "fp8rt_prepare_on" if device else "fp8rt_prepare", "fp8rt_prepared_destroy",
            device.handle if device else library.handle, description["name"].encode(), None,
            arguments, len(self.arguments), results, len(self.results),
        )  # fmt: skip
        runtime = _runtime.load()
        self._prepared, self._call = self._handle.value, runtime.fp8rt_prepared_call_from_host if device else runtime.fp8rt_prepared_call
        self._enqueue, self._enqueue_in = runtime.fp8rt_prepared_enqueue, runtime.fp8rt_prepared_enqueue_in
        # All pointers of a call, in memory of its own: quicker than an array for each call.
        self._frame = (ctypes.c_void_p * (len(self.arguments) + len(self.results)))()
        self._frame_arguments = ctypes.addressof(self._frame)
        self._frame_results = self._frame_arguments + len(self.arguments) * ctypes.sizeof(ctypes.c_void_p)
        self._pack = struct.Struct(f"{len(self._frame)}P").pack_into

    @property
    def handle(self) -> int:
        """The address of libfp8rt's fp8rt_prepared, for code in C that calls it; it lives as long as this object."""
        assert self._prepared is not None and self._prepared.value is not None
        return self._prepared.value

    def call(self, arguments: Sequence[int], results: Sequence[int]) -> None:
        """Calls the entry point on these addresses of the CPU. Raises RunError."""
        self._pack(self._frame, 0, *arguments, *results)
        if status := self._call(self._prepared, self._frame_arguments, self._frame_results):
            _runtime.check(status)

    def communicate_through(self, communicator: Any) -> None:
        """Lets the collectives of following calls go through a communicator (fp8._ranks), which all of its ranks do. Raises StateError
        if the program is for another number of ranks."""
        _runtime.call("fp8rt_prepared_set_communicator", self._prepared, communicator.handle)
        # Destroyed after the entry point, as attributes are in their order.
        self._communicator = communicator

    def measure(self, profiler: _runtime.Handle | None) -> None:
        """Measures the kernels of following calls on the CPU; None measures none."""
        if not self._library.opened():
            _runtime.call("fp8rt_prepared_profile", self._prepared, profiler.value if profiler else None)

    def enqueue(self, arguments: Sequence[int], results: Sequence[int], stream: int, workspace: int = 0) -> None:
        """Enqueues the call on these addresses of the device on a stream (a CUstream's address; 0 is the default one).

        `workspace` is memory of the caller, as large as the manifest's "workspace_bytes" and aligned to 256 bytes; 0 is the
        entry point's own. Raises RunError; a kernel that fails is an error of a later call.
        """
        self._pack(self._frame, 0, *arguments, *results)
        if workspace:
            status = self._enqueue_in(self._prepared, self._frame_arguments, self._frame_results, workspace, stream)
        else:
            status = self._enqueue(self._prepared, self._frame_arguments, self._frame_results, stream)
        if status:
            _runtime.check(status)


def _descriptions(values: Sequence[Mapping[str, Any]], shapes: Sequence[Sequence[int] | None] | None, place: tuple[int, int]) -> Any:
    """An array of pointers to descriptions of tensors, for fp8rt_prepare; None for the manifest's own shapes."""
    if shapes is None:
        return None
    if len(shapes) != len(values):
        raise ValueError(f"{len(shapes)} shapes are given for {len(values)} tensors")
    pointer = ctypes.POINTER(_dlpack.DLTensor)
    # A null pointer is the manifest's shape.
    pointers = [pointer() if s is None else ctypes.pointer(_dlpack.describe(v["type"], s, 0, place)) for v, s in zip(values, shapes)]
    return (pointer * len(pointers))(*pointers)
