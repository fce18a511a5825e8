# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Command lines whose errors are one line, and a standard output that may be full."""

import argparse
import os
import sys
from typing import IO, NoReturn


class Parser(argparse.ArgumentParser):
    """A parser that prints no usage before an error."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}\n")

    def print_help(self, file: IO[str] | None = None) -> None:
        print(self.format_help(), end="", file=file)  # argparse keeps errors of standard output to itself


def flush_output() -> OSError | None:
    """Flushes standard output; returns the error if that fails, and drops the output."""
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more at its end
        return error
    return None
