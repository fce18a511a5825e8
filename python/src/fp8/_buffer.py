# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`fp8.Buffer`: memory for a tensor that other packages can take without a copy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import _dlpack, _dtypes

ALIGNMENT = 64


class Buffer:
    """A row-major tensor in memory of the CPU that is aligned to 64 bytes.

    Any package takes it without a copy: `torch.from_dlpack(buffer)`, `jnp.from_dlpack(buffer)`,
    `buffer.numpy()`. The elements are undefined at first.

    >>> buffer = Buffer("f32", (2, 3))
    >>> buffer.numpy()[...] = 1
    >>> buffer, buffer.pointer % 64, float(np.sum(buffer))
    (Buffer(f32, (2, 3)), 0, 6.0)
    """

    def __init__(self, type: str, shape: tuple[int, ...]) -> None:
        code, bits = _dtypes.DLPACK[type]
        self.type, self.shape = type, tuple(shape)
        #: The number of bytes of the elements.
        self.nbytes = math.prod(self.shape) * bits // 8
        memory = np.empty(self.nbytes + ALIGNMENT, np.uint8)
        offset = -memory.ctypes.data % ALIGNMENT
        #: The memory, as bytes; never empty, so that it has an address.
        self.bytes = memory[offset : offset + max(1, self.nbytes)]
        #: The address of the first element.
        self.pointer = int(self.bytes.ctypes.data)
        self._code = code
        self._bits = bits

    def _words(self) -> np.ndarray[Any, Any]:
        """The elements as unsigned integers of their width."""
        word = np.dtype(f"u{self._bits // 8}") if self._bits <= 64 else np.dtype(np.complex128)
        return self.bytes[: self.nbytes].view(word).reshape(self.shape)

    def numpy(self) -> np.ndarray[Any, Any]:
        """The same memory as a numpy array; bf16 and FP8 need ml_dtypes (ImportError)."""
        return self.bytes[: self.nbytes].view(_dtypes.to_numpy(self.type)).reshape(self.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        array = self.numpy()
        if dtype is not None and np.dtype(dtype) != array.dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack_device__(self) -> tuple[int, int]:
        return _dlpack.CPU

    def __dlpack__(self, *, stream: Any = None, **_: Any) -> Any:
        # numpy exports the memory as integers and frees it; only the name of the type is changed.
        capsule = self._words().__dlpack__()
        dtype = _dlpack.tensor_of_capsule(capsule).dtype
        dtype.code, dtype.bits = self._code, self._bits
        return capsule

    def __repr__(self) -> str:
        return f"Buffer({self.type}, {self.shape})"
