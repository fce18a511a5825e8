# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Element types: MLIR's names, DLPack's codes, numpy's types."""

from __future__ import annotations

from typing import Any

import numpy as np

#: DLPack's code and the number of bits, by MLIR's name. i1 is one byte, as in the C ABI.
DLPACK: dict[str, tuple[int, int]] = {
    "i1": (6, 8),
    **{f"i{bits}": (0, bits) for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": (1, bits) for bits in (8, 16, 32, 64)},
    **{f"f{bits}": (2, bits) for bits in (16, 32, 64)},
    "bf16": (4, 16),
    **{f"complex<f{bits}>": (5, 2 * bits) for bits in (32, 64)},
    "f8E4M3FN": (10, 8),
    "f8E5M2": (12, 8),
    "f8E8M0FNU": (14, 8),
}
MLIR = {code: name for name, code in DLPACK.items()}

_NUMPY = {
    "i1": "bool",
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    "complex<f32>": "complex64",
    "complex<f64>": "complex128",
}
_ML_DTYPES = {
    "bf16": "bfloat16",
    "f8E4M3FN": "float8_e4m3fn",
    "f8E5M2": "float8_e5m2",
    "f8E8M0FNU": "float8_e8m0fnu",
}
_BY_NUMPY_NAME = {name: mlir for mlir, name in {**_NUMPY, **_ML_DTYPES}.items()}


def from_numpy(dtype: np.dtype[Any]) -> str:
    """MLIR's name of a numpy type, ml_dtypes' among them. Raises TypeError for a type that has none.

    >>> from_numpy(np.dtype("float32")), from_numpy(np.dtype("uint8"))
    ('f32', 'ui8')
    """
    try:
        return _BY_NUMPY_NAME[dtype.name]
    except KeyError:
        raise TypeError(f"arrays of {dtype.name} cannot be passed to a compiled library") from None


def to_numpy(name: str) -> np.dtype[Any]:
    """numpy's type for a type of MLIR; bf16 and the FP8 types need the package ml_dtypes.

    >>> to_numpy("i1"), to_numpy("f16")
    (dtype('bool'), dtype('float16'))
    """
    if name in _NUMPY:
        return np.dtype(_NUMPY[name])
    try:
        import ml_dtypes
    except ImportError:
        raise ImportError(f"numpy has no {name} by itself: pip install ml_dtypes, or take the tensor by DLPack") from None
    dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, _ML_DTYPES[name]))
    return dtype
