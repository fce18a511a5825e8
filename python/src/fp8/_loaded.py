# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A library as its entry points need it: the file, its manifest, and the device that runs it."""

from __future__ import annotations

import ctypes
import os
import pathlib
import threading
from typing import Any

from . import _device, _runtime
from ._device import Device


class Loaded:
    """The base of `fp8.Library`."""

    def __init__(self, path: pathlib.Path, manifest: dict[str, Any]) -> None:
        self.path = path
        self.manifest = manifest
        self._handle: _runtime.Handle | None = None
        self._device_name: str | None = None
        self._device: Device | None = None
        self._lock = threading.RLock()

    @property
    def target(self) -> str:
        """The target that it was compiled for: "cpu", "sm_90a", …"""
        return str(self.manifest.get("target", "cpu"))

    @property
    def device(self) -> str:
        """Where it runs: "cpu", "cuda", "cuda:N" or "emulator"."""
        return "cpu" if self.target == "cpu" else self._device_name or "cuda"

    def run_on(self, device: str | None) -> None:
        """Chooses the device before the first call; None is the CPU or the first GPU. Raises ValueError for one that cannot run it."""
        if device is not None:
            _device.check_name(device)
            if (device == "cpu") != (self.target == "cpu"):
                raise ValueError(f"device={device!r} cannot run {self.path}, which is compiled for {self.target}")
        self._device_name = device

    def opened(self) -> Device | None:
        """The device with its kernels, opened when this is first called; None for the CPU. Raises RunError where that fails."""
        with self._lock:
            if self._device is None and self.target != "cpu":
                self._device = Device(self.device, self.handle)
            return self._device

    @property
    def handle(self) -> ctypes.c_void_p:
        """libfp8rt's handle; loads the library, and raises RunError where this machine cannot run it."""
        with self._lock:
            if self._handle is None:
                self._handle = _runtime.Handle("fp8rt_library_load", "fp8rt_library_destroy", os.fsencode(self.path))
        assert self._handle.value is not None
        return self._handle.value
