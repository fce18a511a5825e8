# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`fp8.Library.profile`: how long the kernels of calls take, and for which sites they work."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

from . import _runtime
from ._errors import warn


class _Kernel(ctypes.Structure):
    """fp8rt_kernel."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("kind", ctypes.c_char_p),
        ("sites", ctypes.POINTER(ctypes.c_char_p)),
        ("num_sites", ctypes.c_uint32),
        ("bytes_read", ctypes.c_int64),
        ("bytes_written", ctypes.c_int64),
        ("operations", ctypes.c_int64),
        ("calls", ctypes.c_uint64),
        ("seconds", ctypes.c_double),
    ]


class KernelTime(NamedTuple):
    """The calls of a kernel, and their time together. `bytes` (read and written) and `operations` are of one call, None if not known."""

    name: str
    kind: str
    sites: tuple[str, ...]
    calls: int
    milliseconds: float
    bytes: int | None
    operations: int | None


class Profile:
    """The kernels of the calls within a `with` block: a list of KernelTime, the slowest first, in `kernels`."""

    def __init__(self, measure: Callable[[_runtime.Handle | None], None], library: ctypes.c_void_p) -> None:
        self._measure = measure
        self._profiler = _runtime.Handle("fp8rt_profiler_create", "fp8rt_profiler_destroy", library)

    def __enter__(self) -> Profile:
        self._measure(self._profiler)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        self._measure(None)
        if kind is None and not self.kernels and not self.outside_milliseconds:
            measured = "those of Library.entries and, on the CPU, of fp8.torch and fp8.jax (within the block, by jax.block_until_ready)"
            warn(f"no call was measured: Library.profile measures {measured}")

    @property
    def kernels(self) -> list[KernelTime]:
        runtime, profiler = _runtime.load(), self._profiler.value
        found = []
        for index in range(runtime.fp8rt_profiler_num_kernels(profiler)):
            kernel = _Kernel()
            _runtime.call("fp8rt_profiler_kernel", profiler, index, ctypes.byref(kernel))
            if kernel.calls:
                found.append(_time_of(kernel))
        return sorted(found, key=lambda kernel: -kernel.milliseconds)

    @property
    def outside_milliseconds(self) -> float:
        """The time of the calls outside of kernels."""
        return 1e3 * float(_runtime.load().fp8rt_profiler_outside_seconds(self._profiler.value))

    def __str__(self) -> str:
        """A table: a line for each kernel."""
        lines = [f"{'ms':>10} {'calls':>6}  kernel"]
        for kernel in self.kernels:
            lines.append(f"{kernel.milliseconds:10.3f} {kernel.calls:6}  {kernel.name} [{kernel.kind}] {', '.join(kernel.sites)}".rstrip())
        return "\n".join([*lines, f"{self.outside_milliseconds:10.3f}         outside of kernels"])


def _time_of(kernel: _Kernel) -> KernelTime:
    moved = None if kernel.bytes_read < 0 or kernel.bytes_written < 0 else kernel.bytes_read + kernel.bytes_written
    sites = tuple(kernel.sites[i].decode() for i in range(kernel.num_sites))
    operations = None if kernel.operations < 0 else kernel.operations
    return KernelTime(kernel.name.decode(), kernel.kind.decode(), sites, kernel.calls, 1e3 * kernel.seconds, moved, operations)
