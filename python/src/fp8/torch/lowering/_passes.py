# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch-mlir's passes, as iree-base-compiler brings them, in a process of their own."""

from __future__ import annotations

import re

from ... import _outside
from ..._errors import CompileError, UnsupportedError

_TO_LINALG = (
    "builtin.module(func.func(torch-match-quantized-custom-ops),"
    "torchdynamo-export-to-torch-backend-pipeline,torch-backend-to-linalg-on-tensors-backend-pipeline)"
)

#: The beginning of errors whose words name no operation of PyTorch.
CANNOT_LOWER = "torch-mlir cannot lower the graph: "


def run(text: str) -> str:
    """The text of a module in the dialect torch as one in linalg on tensors; scatters, scans and sorts in tm_tensor.

    Raises UnsupportedError for an operation that has no linalg form, CompileError for a crash or after the time limit.
    """
    try:
        return _outside.run(_outside.TORCH_MLIR, _TO_LINALG, text.encode()).decode()
    except _outside.Refused as error:
        raise _explain(error.diagnostics) from None


def _explain(diagnostics: list[_outside.Diagnostic]) -> CompileError:
    """The failure as an error of this package, with the operation and the user's line."""
    first = next((d for d in diagnostics if d.place), diagnostics[0])
    text = "\n".join(line for d in diagnostics for line in (d.message, *d.notes))
    if operation := re.search(r'name = "torch\.([\w.]+)"', text) or re.search(r"'?torch\.(aten\.[\w.]+)|(tm_tensor\.\w+)", text):
        return UnsupportedError(f"'{operation[1] or operation[2]}' has no form in linalg", first.place, (first.message,))
    return CompileError(f"{CANNOT_LOWER}{first.message}", first.place)
