# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""DLPack's structs (runtime/include/fp8rt/dlpack.h), and tensors of other packages as one of them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _dtypes

CPU = (1, 0)
#: The type of a device with CUDA.
CUDA = 2


class DLDevice(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class DLDataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", DLDevice),
        ("ndim", ctypes.c_int32),
        ("dtype", DLDataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class DLManagedTensor(ctypes.Structure):
    pass


DLManagedTensor._fields_ = [
    ("tensor", DLTensor),
    ("manager_ctx", ctypes.c_void_p),
    ("deleter", ctypes.CFUNCTYPE(None, ctypes.POINTER(DLManagedTensor))),
]

_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype = ctypes.c_void_p
_get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def tensor_of_capsule(capsule: Any) -> DLTensor:
    """The tensor that an unversioned DLPack capsule describes; valid as long as the capsule."""
    # DLManagedTensor begins with the DLTensor.
    return DLTensor.from_address(_get_pointer(capsule, b"dltensor"))


def describe(type_name: str, shape: Sequence[int], data: int, place: tuple[int, int] = CPU) -> DLTensor:
    """A row-major tensor on a device. The memory at `data` is the caller's."""
    code, bits = _dtypes.DLPACK[type_name]
    sizes = (ctypes.c_int64 * max(1, len(shape)))(*shape)
    tensor = DLTensor(data, DLDevice(*place), len(shape), DLDataType(code, bits, 1), sizes, None, 0)
    return tensor


class View:
    """A tensor of another package, seen as memory of the CPU.

    `value` has __dlpack__, or is what numpy makes an array of. Attributes: `tensor` (the DLTensor, row-major),
    `type` (MLIR's name), `shape`, `pointer`. The memory is kept alive by the view; it is the
    caller's own where that was row-major already, else a copy.
    """

    def __init__(self, value: Any) -> None:
        if isinstance(value, np.ndarray) or not hasattr(value, "__dlpack__"):
            self._from_numpy(np.asarray(value))
        else:
            self._from_capsule(value)

    def _from_numpy(self, array: np.ndarray[Any, Any]) -> None:
        self.type = _dtypes.from_numpy(array.dtype)
        self.shape = array.shape
        self._owner: Any = np.ascontiguousarray(array)
        self.pointer: int = self._owner.ctypes.data
        self.tensor = describe(self.type, self.shape, self.pointer)

    def _from_capsule(self, value: Any) -> None:
        device = tuple(int(part) for part in value.__dlpack_device__())
        if device[0] != CPU[0]:
            raise ValueError(f"a tensor lies on the DLPack device {device}; this library runs on the CPU: move it there first")
        capsule = value.__dlpack__()
        tensor = tensor_of_capsule(capsule)
        shape = tuple(tensor.shape[: tensor.ndim])
        if not _is_row_major(tensor, shape):
            self._from_numpy(np.from_dlpack(value))
            return
        kind = (tensor.dtype.code, tensor.dtype.bits)
        if kind not in _dtypes.MLIR or tensor.dtype.lanes != 1:
            raise TypeError(f"tensors of DLPack's type {kind} cannot be passed to a compiled library")
        self.type, self.shape = _dtypes.MLIR[kind], shape
        self._owner = (value, capsule)
        self.pointer = (tensor.data or 0) + tensor.byte_offset
        self.tensor = describe(self.type, shape, self.pointer)


class DeviceView:
    """A tensor of another package in the memory of a device with CUDA, in place.

    `value` has __dlpack__, whose package orders its work before that of `stream`, or __cuda_array_interface__. Attributes:
    `place` (DLPack's device; None where the package does not say which), `type`, `shape`, `pointer`, and `wait_for`: a stream
    whose work comes first, where there is one. Raises TypeError for a type without a name, ValueError for gaps between rows.
    """

    def __init__(self, value: Any, stream: int) -> None:
        self.place: tuple[int, int] | None = None
        self.wait_for: int | None = None
        if hasattr(value, "__dlpack__"):
            self._from_capsule(value, stream)
        else:
            self._from_interface(value, value.__cuda_array_interface__)

    def _from_capsule(self, value: Any, stream: int) -> None:
        self.place = place_of(value)
        capsule = value.__dlpack__(stream=stream or 1)  # 1 is the default stream there.
        tensor = tensor_of_capsule(capsule)
        kind = (tensor.dtype.code, tensor.dtype.bits)
        if kind not in _dtypes.MLIR or tensor.dtype.lanes != 1:
            raise TypeError(f"tensors of DLPack's type {kind} cannot be passed to a compiled library")
        self.type, self.shape = _dtypes.MLIR[kind], tuple(tensor.shape[: tensor.ndim])
        _require_row_major(_is_row_major(tensor, self.shape))
        self._owner = (value, capsule)
        self.pointer = (tensor.data or 0) + tensor.byte_offset

    def _from_interface(self, value: Any, interface: dict[str, Any]) -> None:
        dtype = np.dtype(interface["typestr"])
        self.type, self.shape = _dtypes.from_numpy(dtype), tuple(interface["shape"])
        strides, expected = interface.get("strides"), np.empty(0, dtype).itemsize
        for size, stride in zip(reversed(self.shape), reversed(strides or ())):
            _require_row_major(size == 1 or 0 in self.shape or stride == expected)
            expected *= size
        self._owner = (value, interface)
        self.pointer = interface["data"][0] or 0
        if (stream := interface.get("stream")) is not None:
            self.wait_for = 0 if stream == 1 else int(stream)


def _require_row_major(holds: bool) -> None:
    if not holds:
        raise ValueError("it is not row-major without gaps: make it contiguous")


def place_of(value: Any) -> tuple[int, int] | None:
    """Where an array lies, as DLPack says it; None for __cuda_array_interface__, which does not say which device."""
    if isinstance(value, np.ndarray):
        return CPU
    if hasattr(value, "__dlpack_device__"):
        kind, number = value.__dlpack_device__()
        return int(kind), int(number)
    return None if hasattr(value, "__cuda_array_interface__") else CPU


def _is_row_major(tensor: DLTensor, shape: tuple[int, ...]) -> bool:
    if not tensor.strides or 0 in shape:
        return True
    expected = 1
    for size, stride in zip(reversed(shape), reversed(tensor.strides[: len(shape)])):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True
