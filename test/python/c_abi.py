# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The structures of fp8rt/call.h for tests that call compiled libraries as a host program would."""

import ctypes

import ml_dtypes
import numpy as np


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class Call(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("num_arguments", ctypes.c_uint32), ("num_results", ctypes.c_uint32),
                ("flags", ctypes.c_uint32), ("arguments", ctypes.POINTER(ctypes.POINTER(DLTensor))),
                ("results", ctypes.POINTER(ctypes.POINTER(DLTensor))), ("workspace", ctypes.c_void_p),
                ("workspace_bytes", ctypes.c_uint64), ("stream", ctypes.c_void_p), ("allocate", ctypes.c_void_p),
                ("allocate_context", ctypes.c_void_p), ("error", ctypes.c_char_p), ("error_capacity", ctypes.c_uint64)]


CODES = {np.dtype(np.float32): (2, 32), np.dtype(np.float64): (2, 64), np.dtype(np.bool_): (6, 8),
         np.dtype(ml_dtypes.bfloat16): (4, 16), np.dtype(ml_dtypes.float8_e4m3fn): (10, 8),
         np.dtype(ml_dtypes.float8_e5m2): (12, 8), np.dtype(ml_dtypes.float8_e8m0fnu): (14, 8)}


def integers(values):
    return (ctypes.c_int64 * max(1, len(values)))(*values)


def describe(array, strides=False):
    """A DLTensor of a numpy array, with or without its strides; keeps what it points to alive."""
    code, bits = CODES[array.dtype]
    tensor = DLTensor(array.ctypes.data, 1, 0, array.ndim, code, bits, 1, integers(array.shape), None, 0)
    if strides:
        tensor.strides = integers([stride // array.itemsize for stride in array.strides])
    tensor.keep = array
    return tensor


def library_of(path):
    library = ctypes.CDLL(str(path))
    library.fp8_manifest.restype = ctypes.c_char_p
    return library
