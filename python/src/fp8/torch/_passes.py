# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch-mlir's passes, by iree-opt of iree-base-compiler: a process of its own, so that a crash in them is an exception."""

from __future__ import annotations

import pathlib
import re
import subprocess

from iree.compiler import _mlir_libs

from .. import _process
from .._errors import CompileError, Location, UnsupportedError

_TO_LINALG = (
    "builtin.module(func.func(torch-match-quantized-custom-ops),"
    "torchdynamo-export-to-torch-backend-pipeline,torch-backend-to-linalg-on-tensors-backend-pipeline)"
)

#: What errors begin with whose words name no operation of PyTorch.
CANNOT_LOWER = "torch-mlir cannot lower the graph: "

_TOOL = pathlib.Path(_mlir_libs.__file__).with_name("iree-opt")


def run(text: str) -> str:
    """The text of a module in the dialect torch as one in linalg on tensors; scatters, scans and sorts in tm_tensor.

    Raises UnsupportedError for an operation that has no linalg form, CompileError for a crash or after the time limit.
    """
    command = ["iree-opt", "-", f"--pass-pipeline={_TO_LINALG}", "--mlir-print-debuginfo"]
    done = _process.run(command, text.encode(), None, _TOOL)
    _process.raise_if_killed(done, text.encode())
    if done.returncode:
        raise _explain(done)
    return done.stdout.decode()


def _explain(done: subprocess.CompletedProcess[bytes]) -> CompileError:
    """The failure as an error of this package, with the operation and the user's line."""
    text = _process.decode(done.stderr)
    matches = [match for line in text.splitlines() if (match := _process.DIAGNOSTIC.match(line)) and match[4] == "error"]
    place = Location(matches[0][1], int(matches[0][2]), int(matches[0][3])) if matches else None
    message = matches[0][5] if matches else text or "iree-opt failed without a word"
    if operation := re.search(r'name = "torch\.([\w.]+)"', text) or re.search(r"'?torch\.(aten\.[\w.]+)|(tm_tensor\.\w+)", text):
        return UnsupportedError(f"'{operation[1] or operation[2]}' has no form in linalg", place, (message,))
    return CompileError(f"{CANNOT_LOWER}{message}", place)
