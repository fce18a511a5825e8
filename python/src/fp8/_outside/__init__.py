# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes of others, jaxlib's and torch-mlir's, in processes of their own: what dies or hangs there is a CompileError here.

A process (`_worker`) stays for the next program, so that only the first one waits for its start. It ends with this
process, however that ends.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import socket
import struct
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import _process
from .._config import config
from .._errors import CompileError, Error, Location, MissingToolError
from ._worker import MESSAGE, WORD

#: Seconds that passes may take where fp8.config.compile_timeout says nothing.
LIMIT = 600.0
#: Seconds that a process has to end, and to say why, after it closed its end of the socket.
_PATIENCE = 10.0
#: A process that has been larger is not kept.
_KEPT_KILOBYTES = 2**20
_PROGRAM = pathlib.Path(__file__).with_name("_worker.py")


class Package(NamedTuple):
    """Bindings of MLIR with passes: their name, the distribution that has the version, and what errors call the passes."""

    name: str
    distribution: str
    title: str

    def __str__(self) -> str:
        version = importlib.metadata.version(self.distribution)
        return f"{self.title} {version}" if self.title == self.distribution else f"{self.title} of {self.distribution} {version}"


JAXLIB = Package("jaxlib.mlir", "jaxlib", "jaxlib")
TORCH_MLIR = Package("iree.compiler", "iree-base-compiler", "torch-mlir")


class Diagnostic(NamedTuple):
    """A message of a parser or pass: `location` is MLIR's text, `place` the position in a file that is in
    it."""

    message: str
    location: str
    place: Location | None
    notes: tuple[str, ...]


class Refused(Exception):
    """The errors of a parser, or if `is_parsed` of passes."""

    def __init__(self, diagnostics: list[Diagnostic], is_parsed: bool) -> None:
        super().__init__(diagnostics, is_parsed)
        self.diagnostics = diagnostics
        self.is_parsed = is_parsed


def start(package: Package) -> None:
    """Starts a process for the passes of a package, unless one waits; it gets ready while this one goes on. A failure is an error of `run`."""
    with _lock, contextlib.suppress(Error):
        if package not in _idle:
            _idle[package] = _Worker(package)


def run(package: Package, pipeline: str, program: bytes, shown: Callable[[], bytes] | None = None) -> bytes:
    """The program after the passes: bytecode of jaxlib, text of torch-mlir.

    `shown` makes the form that is kept where the process dies. Raises Refused for errors in the program, CompileError where
    the process dies, answers nothing, or is slower than `fp8.config.compile_timeout` (600 s where that is None).
    """
    worker = _take(package)
    try:
        limit = LIMIT if config.compile_timeout is None else config.compile_timeout
        header, body = worker.ask({"pipeline": pipeline}, program, limit)
    except _Failure as failure:
        worker.end()
        raise _as_error(package, failure, shown() if shown else program) from None
    except BaseException:  # Ctrl-C: it computes still.
        worker.end()
        raise
    _give_back(package, worker, header)
    if "broken" in header:
        raise MissingToolError(f"the passes of {package} cannot run in {sys.executable} (sys.executable): {header['broken']}")
    if "refused" in header:
        raise Refused([_diagnostic(d) for d in header["refused"]], header["is_parsed"])
    return body


def _diagnostic(fields: dict[str, Any]) -> Diagnostic:
    place = fields.get("place")
    return Diagnostic(fields["message"], fields.get("location", ""), Location(*place) if place else None, tuple(fields.get("notes", ())))


def _as_error(package: Package, failure: _Failure, program: bytes) -> CompileError:
    kept = _process.keep(program)
    where = f"; the input is kept in {kept}: please report it, and compile parts of the program alone to find what to leave out" if kept else ""
    return CompileError(f"the passes of {package} {failure.reason}{where}", notes=failure.notes, source_path=kept)


# Processes that wait for work


#: Starts of processes and what is in _idle; a fork waits for it.
_lock = threading.RLock()
_idle: dict[Package, _Worker] = {}
_all: weakref.WeakSet[_Worker] = weakref.WeakSet()


def _take(package: Package) -> _Worker:
    """A process that nobody else asks. Raises MissingToolError."""
    with _lock:
        if (worker := _idle.pop(package, None)) is not None:
            if worker.process.poll() is None:
                return worker
            worker.end()
        return _Worker(package)


def _give_back(package: Package, worker: _Worker, header: dict[str, Any]) -> None:
    with _lock:
        if package not in _idle and header.get("kilobytes", 0) < _KEPT_KILOBYTES and "broken" not in header:
            _idle[package] = worker
            return
    worker.end()


@atexit.register
def end_all() -> None:
    """Ends all processes; the next program starts one again."""
    with _lock:
        for worker in list(_all):
            worker.end()
        _idle.clear()


def _forget() -> None:
    """In a process that was forked from this one: the processes are its parent's."""
    global _lock
    _lock = threading.RLock()
    for worker in list(_all):
        worker.process.returncode = 0
        worker.close()
    _idle.clear()


os.register_at_fork(before=lambda: _lock.acquire() and None, after_in_parent=lambda: _lock.release(), after_in_child=_forget)


# One process


class _Failure(Exception):
    """Why a process did not answer, as the end of a sentence about it."""

    def __init__(self, reason: str, notes: tuple[str, ...] = ()) -> None:
        super().__init__(reason, notes)
        self.reason = reason
        self.notes = notes


class _Worker:
    """A process for the passes of a package, and the socket on which it is asked. Raises MissingToolError."""

    def __init__(self, package: Package) -> None:
        command = [_interpreter(package), "-I", "-S", str(_PROGRAM), package.name, _folder(package), str(sys.hexversion)]
        self._channel, theirs = socket.socketpair()
        # Closed with this process: the other one ends then, whatever it computes.
        lifeline, self._lifeline = os.pipe()
        command.append(str(lifeline))
        # The file of its output has no name in any file system.
        self._messages = open(os.memfd_create("fp8-messages"), "r+b", buffering=0)
        fcntl.fcntl(self._messages, fcntl.F_SETFL, os.O_APPEND)
        with theirs, _process.interrupts_held() as deliver:
            try:
                # A folder that is always there, and a session of its own, which Ctrl-C does not reach.
                self.process = subprocess.Popen(
                    command, stdin=theirs.fileno(), stdout=self._messages, stderr=self._messages, pass_fds=[lifeline], cwd="/", start_new_session=True
                )
            except OSError as error:
                self.close()
                raise MissingToolError(f"no process can be started for the passes of {package}: {error}") from None
            finally:
                os.close(lifeline)
            _all.add(self)
        try:
            deliver()
        except BaseException:
            self.end()
            raise

    def ask(self, header: dict[str, Any], body: bytes, seconds: float) -> tuple[dict[str, Any], bytes]:
        """The answer to a request. Raises _Failure."""
        deadline = time.monotonic() + seconds
        try:
            self._messages.truncate(0)
            head = json.dumps(header).encode()
            for part in (MESSAGE.pack(WORD, len(head), len(body)) + head, body):
                self._channel.settimeout(seconds)
                # Never SIGPIPE, which may be the end of this process.
                self._channel.sendall(part, socket.MSG_NOSIGNAL)
            word, head_size, body_size = MESSAGE.unpack(self._receive(MESSAGE.size, deadline))
            if word != WORD:
                raise ValueError
            answer = json.loads(self._receive(head_size, deadline))
            if not isinstance(answer, dict):
                raise ValueError
            return answer, self._receive(body_size, deadline)
        except TimeoutError:
            raise _Failure(f"took more than {seconds:g} s (fp8.config.compile_timeout)") from None
        except (EOFError, ConnectionError):
            raise self._death() from None
        except (ValueError, struct.error):
            raise _Failure("gave an answer that cannot be read", self._last_words()) from None

    def _receive(self, count: int, deadline: float) -> bytes:
        """That many bytes. Raises TimeoutError, EOFError."""
        parts = []
        while count:
            self._channel.settimeout(max(deadline - time.monotonic(), 1e-3))
            part = self._channel.recv(min(count, 2**20))
            if not part:
                raise EOFError
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _death(self) -> _Failure:
        """Why the process closed its end of the socket."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_PATIENCE)
        code = self.process.poll()
        reason = "stopped in the middle of an answer" if code is None else f"were {_process.ended(code)}"
        return _Failure(reason, self._last_words())

    def _last_words(self) -> tuple[str, ...]:
        self._messages.seek(0)
        return tuple(_process.decode(self._messages.read()).splitlines()[-20:])

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.close()

    def close(self) -> None:
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1
        self._channel.close()
        self._messages.close()


def _interpreter(package: Package) -> str:
    """Raises MissingToolError where Python is part of another program, which would run in the place of an interpreter."""
    path = sys.executable or ""
    names = (os.path.basename(path), os.path.basename(os.path.realpath(path)))
    if any("python" in name.lower() for name in names) and os.access(path, os.X_OK):
        return path
    raise MissingToolError(
        f"the passes of {package} run in a process of their own, and sys.executable, {path!r}, is no Python interpreter: "
        f"set it to that of Python {sys.version.split()[0]} before the first compilation"
    )


def _folder(package: Package) -> str:
    """The folder in which the package's own is, which an interpreter looks in. Raises MissingToolError."""
    with contextlib.suppress(ImportError):
        name = f"{package.name}.ir"
        if (spec := importlib.util.find_spec(name)) is not None and spec.origin:
            return str(pathlib.Path(spec.origin).parents[name.count(".")])
    raise MissingToolError(f"{package.distribution} is not installed")
