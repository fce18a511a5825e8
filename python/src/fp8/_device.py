# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Devices: a GPU by its CUDA driver, or the emulator of one; which chip code is compiled for; tensors in their memory."""

from __future__ import annotations

import collections
import ctypes
import functools
import math
import threading
from collections.abc import Mapping, Sequence
from typing import Any, overload

import numpy as np

from . import _dlpack, _dtypes, _runtime
from ._config import config
from ._errors import UnsupportedError

#: The chips that there is code for, by compute capability.
CHIPS = {(8, 9): "sm_89", (9, 0): "sm_90a", (10, 0): "sm_100a", (12, 0): "sm_120a"}
EMULATOR = "emulator"
#: The chip of the emulator where nothing says another.
_EMULATED = "sm_90a"


def resolve(device: str | None, target: str | None) -> tuple[str | None, str]:
    """The device to run on, None for the CPU or the first GPU, as the code is, and the target to compile for.

    None as the device stands for `fp8.config.device`, "auto" and None as the target for `fp8.config.target`, else the
    chip of the device. Raises ValueError for a device that is none or that cannot run the target, RunError or
    UnsupportedError where the GPU is not there or has no code.

    >>> resolve("emulator", "auto"), resolve("emulator", "sm_89"), resolve(None, "auto")
    (('emulator', 'sm_90a'), ('emulator', 'sm_89'), (None, 'cpu'))
    """
    chosen = config.device if device is None else device
    if chosen is not None:
        check_name(chosen)
    wanted = config.target if target in (None, "auto") else target
    if chosen in (None, "cpu"):
        if chosen == "cpu" and wanted not in (None, "cpu"):
            raise ValueError(f"target={wanted!r} is code for a GPU, and device='cpu': leave one of them out")
        return None, wanted or "cpu"
    if wanted == "cpu":
        if device is None:
            return None, "cpu"  # The environment's device is for what may run there.
        raise ValueError(f"target='cpu' is code for the CPU, and device={device!r}: leave one of them out")
    return chosen, wanted or (_EMULATED if chosen == EMULATOR else chip_of(chosen))


def check_name(device: Any) -> None:
    """Raises ValueError for anything but "cpu", "cuda", "cuda:N" and "emulator"."""
    kind, colon, number = device.partition(":") if isinstance(device, str) else ("", "", "")
    if device in ("cpu", EMULATOR) or kind == "cuda" and (number.isdecimal() if colon else True):
        return
    raise ValueError(f"device={device!r}: a device is 'cpu', 'cuda', 'cuda:N' or 'emulator'")


@functools.cache
def chip_of(device: str) -> str:
    """The target for a GPU ("cuda:1"). Raises RunError without a driver or that GPU, UnsupportedError for an unknown chip."""
    major, minor = ctypes.c_int32(), ctypes.c_int32()
    _runtime.call("fp8rt_gpu_capability", device.encode(), ctypes.byref(major), ctypes.byref(minor))
    return target_for((major.value, minor.value), device)


def target_for(capability: tuple[int, int], device: str) -> str:
    """The target for a GPU of a compute capability. Raises UnsupportedError.

    >>> target_for((9, 0), "cuda:0")
    'sm_90a'
    """
    if chip := CHIPS.get(capability):
        return chip
    known = ", ".join(f"{major}.{minor}" for major, minor in CHIPS)
    raise UnsupportedError(f"{device} has the compute capability {capability[0]}.{capability[1]}; there is code for {known}: choose another device")


class Device:
    """A device with the kernels of a library. Threads take turns with it, by its `lock`.

    Attributes: `name` as the user wrote it, `title` with the driver's words, `place` (DLPack's device), `handle` (fp8rt_gpu).
    """

    def __init__(self, name: str, library: ctypes.c_void_p) -> None:
        self.name = name
        self.lock = threading.RLock()
        self._handle = _runtime.Handle("fp8rt_gpu_open", "fp8rt_gpu_close", name.encode(), library)
        self.handle = self._handle.value
        runtime = _runtime.load()
        place = runtime.fp8rt_gpu_place(self.handle)
        self.place = (place.type, place.id)
        self.title = f"{name} ({runtime.fp8rt_gpu_name(self.handle).decode()})"
        #: Tensors that nobody has, by their bytes and the stream that used them: the next ones there need not wait for it.
        self._free: dict[tuple[int, int], list[_Memory]] = collections.defaultdict(list)

    @property
    def takes_host_memory(self) -> bool:
        """Whether arrays of the CPU are copied there and back: on the emulator, whose memory no other package has."""
        return self.name == EMULATOR

    def new(self, type: str, shape: Sequence[int], stream: int = 0) -> DeviceBuffer:
        """A tensor with undefined elements; `stream` is the one that will write it. Raises MemoryError."""
        nbytes = math.prod(shape) * _dtypes.DLPACK[type][1] // 8
        with self.lock:
            if free := self._free.get((nbytes, stream)):
                return DeviceBuffer(self, free.pop(), type, tuple(shape), stream)
            try:
                memory = self._allocate(nbytes)
            except MemoryError:
                self._free.clear()
                memory = self._allocate(nbytes)
        return DeviceBuffer(self, memory, type, tuple(shape), stream)

    def _allocate(self, nbytes: int) -> _Memory:
        memory = _Memory()
        code, bits = _dtypes.DLPACK["ui8"]
        self._call("fp8rt_gpu_tensor_create", _dlpack.DLDataType(code, bits, 1), ctypes.byref(ctypes.c_int64(nbytes)), 1, ctypes.byref(memory.tensor))
        return memory

    def give_back(self, memory: _Memory, nbytes: int, stream: int, is_shared: bool) -> None:
        """Takes the memory of a tensor that is gone; others may use it still if it was shared with them."""
        # The emulator shall find a use of what is gone.
        if not is_shared and not self.takes_host_memory:
            self._free[nbytes, stream].append(memory)

    def __del__(self) -> None:
        if hasattr(self, "_free"):
            self._free.clear()

    def put(self, array: Any) -> DeviceBuffer:
        """A copy of an array of the CPU."""
        view = _dlpack.View(array)
        buffer = self.new(view.type, view.shape)
        self.write(buffer.pointer, view.pointer, buffer.nbytes)
        return buffer

    def write(self, target: int, source: int, nbytes: int) -> None:
        """Copies memory of the host to the device, after the work of its default stream."""
        self._call("fp8rt_gpu_write", target, source, nbytes, None)

    def read(self, target: int, source: int, nbytes: int, stream: int = 0) -> None:
        """Copies memory of the device to the host, after the work of a stream."""
        self._call("fp8rt_gpu_read", target, source, nbytes, stream)

    def copy(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Enqueues a copy within the device's memory."""
        self._call("fp8rt_gpu_copy", target, source, nbytes, stream)

    def wait(self, stream: int) -> None:
        """Waits for the work of a stream. Raises RunError where it failed."""
        self._call("fp8rt_gpu_wait", stream)

    def _call(self, name: str, *arguments: Any) -> None:
        with self.lock:
            _runtime.call(name, self.handle, *arguments)


class _Memory:
    """Memory of a device, which is freed when nobody has this: Ctrl-C may come between any two lines."""

    def __init__(self) -> None:
        self.tensor = ctypes.POINTER(_dlpack.DLManagedTensor)()

    def __del__(self) -> None:
        if self.tensor:
            self.tensor.contents.deleter(self.tensor)


class DeviceBuffer:
    """A row-major tensor in the memory of a device.

    Other packages take it without a copy: `torch.from_dlpack(buffer)`, `cupy.asarray(buffer)`, `jax.numpy.from_dlpack(buffer)`.
    `numpy()` copies it to the CPU, after the work of the stream that wrote it.
    """

    def __init__(self, device: Device, memory: _Memory, type: str, shape: tuple[int, ...], stream: int) -> None:
        self._device = device
        self._stream = stream
        self.type, self.shape = type, shape
        #: The address of the first element, in the device's memory.
        self.pointer = int(memory.tensor.contents.tensor.data or 0)
        #: The number of bytes of the elements.
        self.nbytes = math.prod(shape) * _dtypes.DLPACK[type][1] // 8
        self._is_shared = False
        self._memory = memory  # The last attribute: without it, nothing is to be given back.

    def __del__(self) -> None:
        if hasattr(self, "_memory"):
            self._device.give_back(self._memory, self.nbytes, self._stream, self._is_shared)

    def use_on(self, stream: int) -> None:
        """Lets the following work of a stream read and write the tensor."""
        if stream != self._stream:
            self._device.wait(self._stream)
            # Its memory may be in use on the former one when this is gone.
            self._stream, self._is_shared = stream, True

    @property
    def device(self) -> str:
        """The device's name: "cuda:0", "emulator"."""
        return self._device.name

    @property
    def dtype(self) -> np.dtype[Any]:
        """numpy's type of the elements; that of bf16 and FP8 is ml_dtypes' (ImportError without it)."""
        return _dtypes.to_numpy(self.type)

    def numpy(self) -> np.ndarray[Any, Any]:
        """A copy on the CPU."""
        array = np.empty(self.shape, self.dtype)
        self._device.read(array.ctypes.data, self.pointer, self.nbytes, self._stream)
        return array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError(f"the tensor lies on {self.device}: numpy's array of it is a copy")
        array = self.numpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self.dtype.kind == "V":  # An ml_dtypes type, which has no letter.
            raise AttributeError(f"__cuda_array_interface__ has no {self.type}: take the tensor by DLPack")
        self._is_shared = True
        # 1 is the default stream there, and 0 is refused.
        interface = {"shape": self.shape, "typestr": self.dtype.str, "data": (self.pointer, False), "stream": self._stream or 1}
        return {**interface, "strides": None, "version": 3}

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device.place

    def __dlpack__(self, *, stream: Any = None, **_: Any) -> Any:
        self._is_shared = True
        # The consumer's stream: None and 1 are the default one, with -1 it waits itself.
        if stream != -1 and (0 if stream in (None, 1) else int(stream)) != self._stream:
            self._device.wait(self._stream)
        # numpy makes the capsule, of integers in memory of the CPU, and keeps this object for it; it reads nothing.
        capsule = np.asarray(_Words(self)).__dlpack__()
        tensor = _dlpack.tensor_of_capsule(capsule)
        tensor.device.type, tensor.device.id = self._device.place
        tensor.dtype.code, tensor.dtype.bits = _dtypes.DLPACK[self.type]
        return capsule

    def __repr__(self) -> str:
        return f"DeviceBuffer({self.type}, {self.shape}, {self.device!r})"


class _Words:
    """The elements of a DeviceBuffer as numpy sees them: integers of their width."""

    def __init__(self, buffer: DeviceBuffer) -> None:
        self.buffer = buffer
        size = _dtypes.DLPACK[buffer.type][1] // 8
        typestr = f"<u{size}" if size <= 8 else f"<c{size}"
        self.__array_interface__ = {"shape": buffer.shape, "typestr": typestr, "data": (buffer.pointer or 1, False), "version": 3}


@overload
def put(device: Device, value: Mapping[str, Any]) -> dict[str, Any]: ...
@overload
def put(device: Device, value: Any) -> Any: ...
def put(device: Device, value: Any) -> Any:
    """Copies of an array of the CPU, or of all arrays of a dict but the layout's hash, which is read on the CPU."""
    if isinstance(value, Mapping):
        return {name: array if name == "layout_hash" else device.put(array) for name, array in value.items()}
    return device.put(value)


def name_of(place: tuple[int, int]) -> str:
    """DLPack's device in words.

    >>> name_of((1, 0)), name_of((2, 1)), name_of((8, 0))
    ('the CPU', 'cuda:1', 'the DLPack device (8, 0)')
    """
    if place[0] == _dlpack.CPU[0]:
        return "the CPU"
    return f"cuda:{place[1]}" if place[0] == _dlpack.CUDA else f"the DLPack device {place}"
