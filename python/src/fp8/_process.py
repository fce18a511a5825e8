# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8-compile and fp8-opt as processes, and their errors as exceptions. Passes of others: `_outside`."""

from __future__ import annotations

import contextlib
import contextvars
import logging
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from . import _tools
from ._config import config
from ._errors import CompileError, Location, UnsupportedError, warn
from ._options import OF_THE_COMMAND, python_names

log = logging.getLogger("fp8")

DIAGNOSTIC = re.compile(r"^(.*?):(\d+):(\d+): (error|warning|remark|note): (.*)$")
_UNSUPPORTED = re.compile(r"has no lowering|have no lowering|not found for custom op|is not known here|is not supported")


def run(command: Sequence[str], text: bytes, folder: pathlib.Path | None) -> subprocess.CompletedProcess[bytes]:
    """Runs the tool of this package that is called command[0], on `text`. Raises CompileError after the time limit."""
    tool = _tools.find(command[0])
    log.debug("%s", " ".join([str(tool), *command[1:]]))
    environment = {**os.environ, "FP8_CACHE_DIR": str(config.cache_dir)}
    with interrupts_held() as deliver:
        process = subprocess.Popen(command, executable=tool, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder, env=environment)
    try:
        deliver()
        output, errors = process.communicate(text, timeout=config.compile_timeout)
        return subprocess.CompletedProcess(command, process.returncode, output, errors)
    except subprocess.TimeoutExpired:
        raise CompileError(f"{os.path.basename(command[0])} took more than {config.compile_timeout} s (fp8.config.compile_timeout)") from None
    finally:
        # After Ctrl-C or the time limit it still runs.
        if process.poll() is None:
            process.kill()
            process.communicate()


def raise_if_killed(done: subprocess.CompletedProcess[bytes], text: bytes) -> None:
    """Raises CompileError for a process that a signal ended; keeps its input in a file that stays when this process ends."""
    if done.returncode >= 0:
        return
    kept = keep(text)
    where = f"; the input is kept in {kept}" if kept else ""
    raise CompileError(
        f"{done.args[0]} was {ended(done.returncode)}{where}; please report it",
        notes=tuple(decode(done.stderr).splitlines()[-20:]),
        source_path=kept,
    )


def keep(text: bytes) -> str | None:
    """The path of a new file with the input of a process that died; None where no file can be written."""
    with contextlib.suppress(OSError):
        kept = pathlib.Path(tempfile.mkdtemp(prefix="fp8-killed-")) / "source.mlir"
        kept.write_bytes(text)
        return str(kept)
    return None


def ended(code: int) -> str:
    """How a process ended: "ended by signal 6 (Aborted)", "ended with exit code 3"."""
    return f"ended by signal {-code} ({signal.strsignal(-code)})" if code < 0 else f"ended with exit code {code}"


@contextlib.contextmanager
def interrupts_held() -> Iterator[Callable[[], None]]:
    """Keeps Ctrl-C back within the block: an interrupt while a process starts would leave it running.

    Yields the function that handles, afterwards, what was kept back.
    """
    held: list[tuple[int, Any]] = []
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield lambda: None
        return

    def deliver() -> None:
        for number, frame in held[:1]:
            handler(number, frame)

    signal.signal(signal.SIGINT, lambda number, frame: held.append((number, frame)))
    try:
        yield deliver
    finally:
        signal.signal(signal.SIGINT, handler)


def decode(output: bytes) -> str:
    return output.decode(errors="replace").strip()


def in_python_words(error: str) -> str:
    """An error of the command line, with the names that options have in Python."""
    line = error.splitlines()[0] if error else "fp8-compile refused its command line"
    line = re.sub(r"^[\w./-]*fp8-\w+: (error: )?", "", line)
    unknown = re.sub(r"Unknown command line argument '(--[^'=]*)[^']*'\.\s+Try: '.*?'\s*", r"there is no option \1. ", line)
    # The suggestion may be an option of the command line alone.
    if (meant := re.search(r"\. Did you mean '--?([\w-]+)[^']*'\?$", unknown)) and meant[1].replace("-", "_") in OF_THE_COMMAND:
        unknown = unknown[: meant.start()]
    return python_names(unknown).strip()


#: Where a caller keeps warnings that it shows itself.
_kept_warnings: contextvars.ContextVar[list[tuple[Location, str]] | None] = contextvars.ContextVar("kept_warnings", default=None)


@contextlib.contextmanager
def keeping_warnings() -> Iterator[list[tuple[Location, str]]]:
    """Within the block the compiler's warnings are not shown, but put into the list that this gives."""
    kept: list[tuple[Location, str]] = []
    token = _kept_warnings.set(kept)
    try:
        yield kept
    finally:
        _kept_warnings.reset(token)


def raise_or_warn(output: str, failed: bool, source_path: str | None) -> None:
    """Warns about the compiler's warnings; raises its first error, with the others as notes."""
    errors: dict[tuple[Location, str], None] = {}
    notes: list[str] = []
    for line in output.splitlines():
        if not (match := DIAGNOSTIC.match(line)):
            notes.append(line)
            continue
        place, text = Location(match[1], int(match[2]), int(match[3])), python_names(match[5])
        if match[4] == "error":
            errors[place, text] = None  # Once, also where it is that of several products.
        elif failed:
            notes.append(f"{place}: {match[4]}: {text}")
        elif match[4] == "warning":
            if (kept := _kept_warnings.get()) is not None:
                kept.append((place, text))
            else:
                warn(f"{place}: {text}")
        else:
            log.info("%s: %s", place, text)
    if not failed:
        return
    if not errors:
        raise CompileError(output or "fp8-compile failed without a word", source_path=source_path)
    (location, message), *others = errors
    notes = [f"{place}: {text}" for place, text in others] + notes
    kind = UnsupportedError if _UNSUPPORTED.search(message) else CompileError
    raise kind(message, location, tuple(notes), source_path)
