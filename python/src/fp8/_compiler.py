# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs as they are given to fp8-compile, and runs of it."""

from __future__ import annotations

import errno
import os
import pathlib
import re
import tempfile
from collections.abc import Sequence
from typing import TypeAlias

from . import _process, _stablehlo

Source: TypeAlias = "str | bytes | os.PathLike[str]"


class Program:
    """A program as it is given to the compiler: its bytes, and the file that it lies in, if any."""

    def __init__(self, source: Source, name: str | None = None) -> None:
        self.path: str | None = None
        if isinstance(source, os.PathLike):
            self.path = os.path.abspath(source)
            self.bytes = pathlib.Path(self.path).read_bytes()
        elif isinstance(source, bytes):
            self.bytes = source
        elif isinstance(source, str):
            self.bytes = source.encode()
            if "\n" not in source and os.path.isfile(source):
                self.path = os.path.abspath(source)
                self.bytes = pathlib.Path(source).read_bytes()
            elif re.fullmatch(r"\S*[./]\S*", source):
                # No program is one word.
                number = errno.EISDIR if os.path.isdir(source) else errno.ENOENT
                raise OSError(number, os.strerror(number), source)
        else:
            raise TypeError(f"source is of type {type(source).__name__}: give text, bytes or a path")
        self.name = name or (os.path.basename(self.path) if self.path else "program")

    def lowered(self) -> Program:
        """This program, or if it is in StableHLO the same in linalg, of which no file is known."""
        if not _stablehlo.is_stablehlo(self.bytes):
            return self
        return Program(_stablehlo.to_linalg(self.bytes, self.path or "<stdin>"), self.name)


def run_compiler(program: Program, arguments: Sequence[str], folder: pathlib.Path) -> str:
    """Runs fp8-compile on a program, with `folder` as its working folder; returns what it printed."""
    source = program.path if program.path else "-"
    command = ["fp8-compile", source, *arguments]
    done = _process.run(command, program.bytes, folder)
    _process.raise_if_killed(done, program.bytes)
    if done.returncode == 2:
        raise ValueError(_process.in_python_words(_process.decode(done.stderr)))
    _process.raise_or_warn(_process.decode(done.stderr), failed=done.returncode != 0, source_path=program.path)
    return _process.decode(done.stdout)


def emit_stage(source: pathlib.Path, arguments: Sequence[str], stage: str) -> str:
    """The IR of a program after a stage."""
    with tempfile.TemporaryDirectory(prefix="fp8-") as folder:
        return run_compiler(Program(source.read_bytes()), ["-o", "-", f"--emit={stage}", *arguments], pathlib.Path(folder))
