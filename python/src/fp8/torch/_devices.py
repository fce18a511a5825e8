# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options of programs of PyTorch: where a program runs, by its tensors and the options, and whether there are such options."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from .. import _device, _options, _process
from .._config import config
from .._errors import Location, MissingToolError, UnsupportedError
from . import _cuda
from ._memory import Memory

_CPU = torch.device("cpu")

#: A tensor, what messages call it, and the user's line where it is made.
Named = tuple[str, Tensor, "Location | None"]


def memory_of(tensors: Iterable[Named], options: Mapping[str, Any]) -> Memory:
    """The memory that all tensors of a program lie in; numbers (tensors without dimensions) may lie on the CPU.

    Raises UnsupportedError for tensors on several devices or where no program runs, ValueError where the options say
    another device.
    """
    first: tuple[str, torch.device] = ("", _CPU)
    for name, tensor, line in tensors:
        device = _cuda.cuda.device_of(tensor)
        if device.type not in ("cpu", "cuda"):
            where, advice = (device, ".cpu()") if not tensor.is_meta else ("'meta', where there are no values", ".to_empty(device='cpu')")
            raise UnsupportedError(f"{name} lies on {where}; fp8.torch runs on the CPU and on CUDA: move model and inputs there, as with {advice}", line)
        if device == _CPU and not tensor.dim() or first[0] and device == first[1]:
            continue
        if first[0]:
            raise UnsupportedError(
                f"{name} lies on {_in_words(device)}, and {first[0]} on {_in_words(first[1])}: all tensors of a compiled program lie on one device", line
            )
        first = name, device
    name, device = first
    return _of_cpu(name, options) if device == _CPU else _of_cuda(name, device, options)


def _of_cpu(name: str, options: Mapping[str, Any]) -> Memory:
    asked = options.get("device") or config.device
    where = f"{name} lies on the CPU: move model and inputs by .to('cuda')"
    if (asked or "").startswith("cuda"):
        raise ValueError(f"device={asked!r}, and {where}")
    device, target = _device.resolve(options.get("device"), options.get("target"))
    if device is None and target != "cpu":
        raise ValueError(f"target={target!r} is code for a GPU, and {where}, or choose device='emulator'")
    return Memory(_CPU, {"device": device, "target": target})


def _of_cuda(name: str, device: torch.device, options: Mapping[str, Any]) -> Memory:
    asked = options.get("device") or config.device or "cuda"
    if asked not in ("cuda", str(device)):
        there = "the CPU's" if asked in ("cpu", _device.EMULATOR) else "its"
        raise ValueError(f"device={asked!r} takes {there} tensors, and {name} lies on {device}: move model and inputs, or leave out device=")
    target = options.get("target")
    target = config.target if target in (None, "auto") else target
    if target == "cpu":
        raise ValueError(f"target='cpu' is code for the CPU, and {name} lies on {device}: leave it out")
    return _cuda.CudaMemory(device, {"device": str(device), "target": target or _device.target_for(_cuda.cuda.capability(device), str(device))})


def _in_words(device: torch.device) -> str:
    return "the CPU" if device == _CPU else str(device)


def check_options(where: str, options: Mapping[str, Any], found: Sequence[str] = ("pair", "carry")) -> None:
    """Raises ValueError or TypeError for options that fp8-compile does not know or whose values it refuses, for those that
    are found without the user, and for a device that there is not or that the target is not for.
    """
    for name in found:
        if name in options:
            raise ValueError(f"{name} is set by {where} itself")
    device, target = options.get("device"), options.get("target")
    if device is not None:
        _device.check_name(device)
    if device is not None and target not in (None, "auto"):
        _device.resolve(device, target)
    of_python = {"cache", "name", "device", *(["keep"] if callable(options.get("keep")) else []), *(["target"] if target == "auto" else [])}
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
