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


_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype = ctypes.c_void_p
_get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def tensor_of_capsule(capsule: Any) -> DLTensor:
    """The tensor that an unversioned DLPack capsule describes; valid as long as the capsule."""
    # DLManagedTensor begins with the DLTensor.
    return DLTensor.from_address(_get_pointer(capsule, b"dltensor"))


def describe(type_name: str, shape: Sequence[int], data: int) -> DLTensor:
    """A row-major tensor on the CPU. The memory at `data` is the caller's."""
    code, bits = _dtypes.DLPACK[type_name]
    sizes = (ctypes.c_int64 * max(1, len(shape)))(*shape)
    tensor = DLTensor(data, DLDevice(*CPU), len(shape), DLDataType(code, bits, 1), sizes, None, 0)
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


def _is_row_major(tensor: DLTensor, shape: tuple[int, ...]) -> bool:
    if not tensor.strides or 0 in shape:
        return True
    expected = 1
    for size, stride in zip(reversed(shape), reversed(tensor.strides[: len(shape)])):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True
