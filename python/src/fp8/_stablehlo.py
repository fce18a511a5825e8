# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs in StableHLO as input: they are recognised here, and lowered by jaxlib (jax/lowering/_stablehlo.py)."""

from __future__ import annotations

import re

from . import _outside
from ._errors import MissingToolError
from ._frameworks import INSTALL

_OPERATION = re.compile(rb'^\s*(?:%[^"=]*= )?"?(?:stablehlo|chlo|vhlo)\.\w', re.MULTILINE)


def is_stablehlo(program: bytes) -> bool:
    """Whether a program, text or bytecode, has operations of StableHLO.

    >>> is_stablehlo(b"%0 = stablehlo.add %a, %b : tensor<f32>")
    True
    >>> is_stablehlo(b'%0 = arith.addf %a, %b : f32 loc("stablehlo.add")')
    False
    """
    if program.startswith(b"ML\xefR"):
        # The names of dialects that bytecode uses.
        return b"\0stablehlo\0" in program or b"\0vhlo\0" in program or program[5:].startswith(b"StableHLO")
    return b"hlo." in program and _OPERATION.search(program) is not None


def to_linalg(program: bytes, name: str) -> bytes:
    """A program in StableHLO as the text that fp8-compile reads. Raises MissingToolError without JAX, CompileError, UnsupportedError."""
    _outside.start(_outside.JAXLIB)  # While JAX is loaded.
    try:
        from .jax.lowering import _stablehlo
    except ImportError as error:
        message = f"{name} is a program in StableHLO, which jaxlib lowers ({error.name} is missing): {INSTALL['jax']}"
        raise MissingToolError(message) from None
    return _stablehlo.to_linalg(program, name)
