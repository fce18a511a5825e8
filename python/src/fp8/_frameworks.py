# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""JAX and PyTorch: how to install what fp8.jax and fp8.torch need, and which versions they were tested with."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from ._errors import warn

#: The extras of pyproject.toml are the same.
INSTALL = {
    "jax": "pip install 'jax>=0.10.2,<0.11' ml_dtypes",
    "torch": "pip install 'torch==2.15.*' 'iree-base-compiler==3.13.0' ml_dtypes",
}
#: The first version, and the first that is too new: both packages use private names, which change.
_TESTED = {"jax": ((0, 10, 2), (0, 11)), "torch": ((2, 15), (2, 16))}


@contextlib.contextmanager
def importing(framework: str) -> Iterator[None]:
    """Without what fp8.jax or fp8.torch needs, the error of their import says what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == __package__:
            raise
        raise ImportError(f"fp8.{framework} needs {error.name}: {INSTALL[framework]}", name=error.name) from error


def warn_if_untested(framework: str, version: str) -> None:
    """Warns of a version that fp8.jax or fp8.torch was not tested with."""
    first, end = _TESTED[framework]
    if not first <= tuple(int(number) for number in re.findall(r"\d+", version)[:3]) < end:
        warn(f"fp8.{framework} was not tested with {framework} {version}, and may fail with it: {INSTALL[framework]}")
