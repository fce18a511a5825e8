# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds the programs and libraries that this package uses: fp8-compile, libfp8rt.so and others."""

from __future__ import annotations

import os
import pathlib
import shutil
import sys
from collections.abc import Iterator

from ._config import config
from ._errors import MissingToolError

#: In a wheel one program is all of these: the name that it is called by decides.
_IN_ONE_PROGRAM = ("fp8-compile", "fp8-opt")

PACKAGE = pathlib.Path(__file__).resolve().parent


def find(name: str) -> pathlib.Path:
    """The path of a program ("fp8-compile", to be called by that name) or library ("libfp8rt.so").

    Looked for in `config.tool_dir`, then in this package, as a wheel has them, then in the build
    folder of the checkout that this package lies in, then (programs) on $PATH.
    Raises MissingToolError.

    >>> find("libfp8rt.so").name
    'libfp8rt.so'
    """
    folder = "lib" if ".so" in name else "bin"
    roots = list(_roots())
    # A library may be there without the compiler: programs that are compiled already need no other.
    wanted = ["bin/fp8-compile", "bin/fp8-tools", *([f"lib/{name}"] if folder == "lib" else [])]
    if config.tool_dir is not None and not any((root / file).is_file() for root in _chosen() for file in wanted):
        # Not another one without a word.
        raise MissingToolError(f"{config.tool_dir} has no fp8-compile (FP8_TOOLS, fp8.config.tool_dir): give a build or installation folder, or its bin")
    for root in roots:
        if (path := root / folder / name).is_file():
            return path
        if name in _IN_ONE_PROGRAM and (path := root / "bin" / "fp8-tools").is_file():
            return path
    if folder == "bin" and (found := shutil.which(name)):
        return pathlib.Path(found)
    looked = ", ".join(str(root / folder) for root in roots)
    raise MissingToolError(f"{name} is in none of {looked}: install the wheel of fp8-mlir, or build the project and set FP8_TOOLS to its build folder")


def _roots() -> Iterator[pathlib.Path]:
    """Folders with bin and lib, the first to be preferred."""
    yield from _chosen()
    # Of an editable installation the Python files are in one folder, and what was built is in another.
    yield from map(pathlib.Path, sys.modules[__package__].__path__)
    # <checkout>/python/src/fp8
    checkout = PACKAGE.parents[2]
    if (checkout / "python" / "src" / "fp8").is_dir():
        yield checkout / "build"


def _chosen() -> Iterator[pathlib.Path]:
    """The user's own."""
    if config.tool_dir is not None:
        folder = config.tool_dir.absolute()  # The compiler runs in a folder of its own.
        yield folder
        if folder.name in ("bin", "lib"):
            yield folder.parent


def main() -> None:
    """The commands fp8-compile and fp8-opt of an installed wheel."""
    name = os.path.basename(sys.argv[0])
    os.execv(find(name), [name, *sys.argv[1:]])
