# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The target that functions are compiled for: the chip of the GPU that their arguments lie on, else the CPU, or what options say.

JAX traces without a word of devices, so a call says where its arguments lie, and the trace that it starts asks here. Of a trace
within the user's own jit it is JAX's default device.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import jax

from .. import _device
from .._config import config
from .._errors import UnsupportedError

#: The chip of a GPU; None for the CPU.
Place = str | None

_here = threading.local()


@functools.cache
def has_gpus() -> bool:
    return bool(jax.default_backend() != "cpu")


def place_of(arrays: Iterable[Any]) -> Place:
    """Where the first jax.Array among them lies that has a device; JAX's default device without any."""
    if not has_gpus():
        return None
    for array in arrays:
        if isinstance(array, jax.Array) and not isinstance(array, jax.core.Tracer):
            return _chip(next(iter(array.devices())))
    return current()


def current() -> Place:
    """Where what is traced now will run."""
    if not has_gpus():
        return None
    if hasattr(_here, "place"):
        place: Place = _here.place
        return place
    default = jax.config.jax_default_device
    if isinstance(default, str):
        default = jax.local_devices(backend=default)[0]
    return _chip(default or jax.local_devices()[0])


@contextlib.contextmanager
def at(place: Place) -> Iterator[None]:
    """Traces within the block are for arguments there."""
    before = getattr(_here, "place", place)
    _here.place = place
    try:
        yield
    finally:
        _here.place = before


def within(place: Place, body: Callable[..., Any]) -> Callable[..., Any]:
    """The function, traced for arguments there."""

    def traced(*args: Any, **kwargs: Any) -> Any:
        with at(place):
            return body(*args, **kwargs)

    return traced


@functools.cache
def _chip(device: Any) -> Place:
    if device.platform == "cpu":
        return None
    if device.platform not in ("gpu", "cuda"):
        raise UnsupportedError(f"the arguments lie on {device}, and there is code for the CPU and for NVIDIA's GPUs")
    major, _, minor = str(device.compute_capability).partition(".")
    return _device.target_for((int(major), int(minor or 0)), str(device))


def chosen(options: Mapping[str, Any], place: Place) -> dict[str, Any]:
    """The options with the device and target for arguments that lie there. Raises ValueError where these cannot be."""
    rest = {name: value for name, value in options.items() if name not in ("device", "target")}
    device, target = options.get("device") or config.device, options.get("target") or "auto"
    if place is not None:
        if device in ("cpu", _device.EMULATOR) or target == "cpu":
            raise ValueError(f"{_words(device, target)}, and the arguments lie on a GPU: leave it out, or put the arguments on the CPU with jax.device_put")
        return {**rest, "device": "cuda", "target": place if target == "auto" else target}
    if device == _device.EMULATOR:
        return {**rest, "device": device, "target": target}
    if device not in (None, "cpu") or target not in ("auto", "cpu"):
        raise ValueError(
            f"{_words(device, target)}, and the arguments lie on the CPU: put them on a GPU with jax.device_put, or pass "
            'device="emulator", which runs the code for a GPU on the CPU'
        )
    return {**rest, "device": "cpu", "target": "cpu"}


def _words(device: str | None, target: str) -> str:
    return f"target={target!r}" if device is None else f"device={device!r}"
