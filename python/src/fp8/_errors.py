# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The errors and the warning of this package."""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar


class Location(NamedTuple):
    """A place in a file: line and column count from 1.

    >>> str(Location("model.py", 5, 50))
    'model.py:5'
    """

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Error(Exception):
    """The class of every error of this package, but for wrong arguments (ValueError, TypeError)."""


class CompileError(Error):
    """The program cannot be compiled.

    `location` is the place in the user's source where there is one, `message` what is wrong there,
    `notes` what the compiler said besides, `source_path` the file with the program as it was
    given to the compiler, if that was kept.
    """

    def __init__(
        self,
        message: str,
        location: Location | None = None,
        notes: tuple[str, ...] = (),
        source_path: str | None = None,
    ) -> None:
        super().__init__(message, location, notes, source_path)
        self.location = location
        self.message = message
        self.notes = notes
        self.source_path = source_path

    def __str__(self) -> str:
        place = f"{self.location}: " if self.location else ""
        return "\n".join([place + self.message, *self.notes])


@contextlib.contextmanager
def placed(location: Location | None) -> Iterator[None]:
    """Gives a CompileError of the block that has no location this one."""
    try:
        yield
    except CompileError as error:
        if error.location is not None or location is None:
            raise
        raise type(error)(error.message, location, error.notes, error.source_path) from None


class UnsupportedError(CompileError, NotImplementedError):
    """The program has an operation for which there is no code."""


class StateError(Error, ValueError):
    """A state is not this program's: another layout, shape or type."""


class RunError(Error, RuntimeError):
    """A call of a compiled library failed; the text is the reason that it gave."""


class MissingToolError(Error, OSError):
    """A program or library that this package needs is not installed."""


class Warning(UserWarning):  # noqa: A001 - users write fp8.Warning
    """The class of this package's warnings."""


def warn(message: str) -> None:
    """Warns at the line of the user's that the call comes from."""
    warnings.warn(message, Warning, stacklevel=_frames_before_users())


_Function = TypeVar("_Function", bound=Callable[..., Any])


def hiding_frames(function: _Function) -> _Function:
    """A function whose errors have no frames of this package: the last one is the user's call, or the line of theirs that raised.

    Errors that this package does not raise on purpose keep their frames.
    """

    @functools.wraps(function)
    def hidden(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except BaseException as error:
            hide_frames(error)
            raise

    return hidden  # type: ignore[return-value]


def hide_frames(error: BaseException) -> None:
    """Takes the frames of this package from an error's traceback, as `hiding_frames`; the caller raises it again by `raise` alone, which adds none."""
    jax = sys.modules.get("jax")
    if jax is not None and jax.config.jax_traceback_filtering == "off":
        return
    frames = []
    trace = error.__traceback__
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    own: list[bool] = []
    for trace in frames:
        # That of functools' cached_property, say, stands between two frames of this package.
        own.append(_is_in(trace.tb_frame, _FOLDER) or own[-1:] == [True] and _is_in(trace.tb_frame, *_STANDARD))
    on_purpose = isinstance(error, (Error, TypeError, ValueError, RuntimeError))
    if own[-1:] == [True] and not on_purpose:
        return
    kept = None
    for trace, is_own in zip(reversed(frames), reversed(own)):
        if not is_own:
            kept = types.TracebackType(kept, trace.tb_frame, trace.tb_lasti, trace.tb_lineno)
    error.__traceback__ = kept


_FOLDER = os.path.dirname(__file__) + os.sep
#: Parts of Python that call this package back.
_STANDARD = (functools.__file__, contextlib.__file__)


def _is_in(frame: types.FrameType, *places: str) -> bool:
    """Whether the frame's code is in one of these files or folders."""
    return frame.f_code.co_filename.startswith(places)


def _frames_before_users() -> int:
    """The level, for warnings.warn in the caller, of the first frame that is neither this package's nor of what calls it back."""
    between = [_FOLDER, *_STANDARD, importlib.__file__]
    between += [os.path.dirname(sys.modules[name].__file__ or "") for name in ("jax", "torch") if name in sys.modules]
    level, frame = 0, sys._getframe(1)
    # Frames of an import are no levels to warnings.warn.
    imports = "<frozen importlib._bootstrap"
    while frame is not None and _is_in(frame, imports, *between):
        level, frame = level + (not _is_in(frame, imports)), frame.f_back  # type: ignore[assignment]
    return level + 1
