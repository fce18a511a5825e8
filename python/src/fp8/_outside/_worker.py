# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The program of a process that runs passes of others, for `_outside`: python -I -S _worker.py PACKAGE FOLDER HEXVERSION LIFELINE.

Its standard input is a socket, on which requests and answers alternate until the other end is closed. LIFELINE is the number
of a pipe that is closed when the process that asks ends. It imports the bindings alone: neither this package, nor the framework, nor anything of the user's.
"""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import resource
import select
import signal
import struct
import sys
import types
from typing import Any

#: The beginning of a message: a word, then the bytes of its header in JSON, and of its body.
MESSAGE = struct.Struct("<8sIQ")
WORD = b"fp8 mlir"
MANY_BYTES = 2**24


def receive(channel: int, count: int) -> bytes:
    """That many bytes. Raises EOFError where the other end is closed before."""
    parts = []
    while count:
        if not (part := os.read(channel, min(count, 2**20))):
            raise EOFError
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def receive_message(channel: int) -> tuple[Any, bytes]:
    word, header, body = MESSAGE.unpack(receive(channel, MESSAGE.size))
    if word != WORD:
        raise EOFError
    return json.loads(receive(channel, header)), receive(channel, body)


def send_message(channel: int, header: dict[str, Any], body: bytes = b"") -> None:
    head = json.dumps(header).encode()
    for part in (MESSAGE.pack(WORD, len(head), len(body)) + head, body):
        view = memoryview(part)
        while view:
            view = view[os.write(channel, view) :]


class Passes:
    """The bindings of MLIR in a package: parses programs, runs pipelines on them, and writes the results."""

    def __init__(self, package: str) -> None:
        # The bindings use numpy where it is there, and loading it takes longer than all else.
        sys.modules["numpy"] = None  # type: ignore[assignment]
        self.ir: Any = importlib.import_module(f"{package}.ir")
        self.passmanager: Any = importlib.import_module(f"{package}.passmanager")
        self.prepare(package)
        self.context = self.make_context()
        self.seen = 0

    def prepare(self, package: str) -> None:
        """Registers what the package does not register by itself."""

    def make_context(self) -> Any:
        return self.ir.Context()

    def parse(self, program: bytes) -> Any:
        return self.ir.Module.parse(program.decode())

    def write(self, module: Any) -> Any:
        return module.operation.get_asm(enable_debug_info=True).encode()

    def answer(self, request: dict[str, Any], program: bytes) -> tuple[dict[str, Any], bytes]:
        """(header, body) of the answer: the new program, or the diagnostics of the parser or the passes."""
        messages: list[str] = []
        is_parsed = False

        def note(diagnostic: Any) -> bool:
            messages.append(diagnostic.message)
            return True

        with self.context:
            try:
                with self.context.attach_diagnostic_handler(note):
                    module = self.parse(program)
                is_parsed = True
                self.passmanager.PassManager.parse(request["pipeline"]).run(module.operation)
                return {}, self.write(module)
            except self.ir.MLIRError as error:
                return {"refused": [self.describe(d) for d in error.error_diagnostics], "is_parsed": is_parsed}, b""
            except ValueError as error:  # Of the pipeline, or from bytes that are no program.
                return {"refused": [{"message": "; ".join(messages) or str(error)}], "is_parsed": is_parsed}, b""

    def renew(self, size: int) -> None:
        """After a program of that many bytes, frees what programs left in the context, once they were many."""
        self.seen += size
        if self.seen > MANY_BYTES:
            self.seen, self.context = 0, self.make_context()

    def describe(self, diagnostic: Any) -> dict[str, Any]:
        location = self.ir.Location.from_attr(diagnostic.location.attr)  # Of its own class.
        notes = [note.message for note in diagnostic.notes]
        return {"message": diagnostic.message, "location": str(location), "place": self.place(location), "notes": notes}

    def place(self, location: Any) -> list[Any] | None:
        """[file, line, column] of the innermost position in a file, None without one."""
        if isinstance(location, self.ir.FileLineColLoc):
            return [location.filename, location.start_line, location.start_col]
        if isinstance(location, self.ir.NameLoc):
            return self.place(location.child_loc)
        parts = []
        if isinstance(location, self.ir.CallSiteLoc):
            parts = [location.callee, location.caller]
        elif isinstance(location, self.ir.FusedLoc):
            parts = location.locations
        return next(filter(None, map(self.place, parts)), None)


class Jaxlib(Passes):
    """jaxlib's: programs in text, bytecode or a portable artifact of StableHLO become bytecode. The dialects are those of JAX's own contexts."""

    def prepare(self, package: str) -> None:
        libraries: Any = types.SimpleNamespace()
        for name in ("_stablehlo", "_chlo", "_sdy", "_sdyMpmd", "_mlirHlo", "_jax_mlir_ext"):
            setattr(libraries, name, importlib.import_module(f"{package}._mlir_libs.{name}"))
        self.stablehlo = libraries._stablehlo
        self.register = [library.register_dialect for library in (self.stablehlo, libraries._chlo, libraries._sdy, libraries._sdyMpmd)]
        self.register.append(libraries._mlirHlo.register_mhlo_dialect)
        self.stablehlo.register_stablehlo_passes()
        self.upstream = self.ir.DialectRegistry()
        libraries._jax_mlir_ext.register_dialects(self.upstream)

    def make_context(self) -> Any:
        context = self.ir.Context()
        context.append_dialect_registry(self.upstream)
        context.load_all_available_dialects()
        for register in self.register:
            register(context)
        with context:  # On nothing, for the dialects that it loads.
            self.passmanager.PassManager.parse("builtin.module(func.func(stablehlo-legalize-to-linalg))").run(self.ir.Module.parse("").operation)
        return context

    def parse(self, program: bytes) -> Any:
        if not program.startswith(b"ML\xefR"):
            return self.ir.Module.parse(program.decode())
        if program[5:].startswith(b"StableHLO"):  # After the format's version.
            return self.stablehlo.deserialize_portable_artifact(self.context, program)
        return self.ir.Module.parse(program)

    def write(self, module: Any) -> Any:
        written: list[bytes] = []
        module.operation.write_bytecode(Sink(written))
        return b"".join(written)


class Sink:
    """A file for the bindings."""

    def __init__(self, parts: list[bytes]) -> None:
        self.write = parts.append


PACKAGES: dict[str, type[Passes]] = {"jaxlib.mlir": Jaxlib, "iree.compiler": Passes}


def load(package: str, folder: str, version: str) -> Passes:
    """The passes of a package in a folder, for the Python of this version. Raises ImportError."""
    if sys.hexversion != int(version):
        raise ImportError(f"it is Python {sys.version.split()[0]}, and the package is another's")
    sys.path.append(folder)  # Last: nothing there is taken for a module of Python's own.
    # Imports at the top of a package take time, and the bindings do not need them.
    names = package.split(".")
    for end in range(1, len(names) + 1):
        module = sys.modules[".".join(names[:end])] = types.ModuleType(".".join(names[:end]))
        module.__path__ = [os.path.join(folder, *names[:end])]
    return PACKAGES[package](package)


def take_channel() -> int:
    """The socket, out of the way of whatever reads standard input or writes standard output; a death leaves no file."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    channel = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    return channel


def end_with(lifeline: int) -> None:
    """From now on the system ends this process when the other end of a pipe is closed: code of a pass may hold Python's lock for ever.

    Nothing is ever written to that pipe, so the signal has no other cause.
    """
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGIO])
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | fcntl.FASYNC)
    poll = select.poll()
    poll.register(lifeline, 0)
    if poll.poll(0):  # Closed before.
        raise EOFError


def main() -> None:
    channel = take_channel()
    *package, lifeline = sys.argv[1:]
    end_with(int(lifeline))
    passes, problem = None, ""
    try:
        passes = load(*package)
    except Exception as error:  # An import may raise any.
        problem = f"{type(error).__name__}: {error}"
    while True:
        request, program = receive_message(channel)
        if passes is None:
            send_message(channel, {"broken": problem})
            continue
        header, body = passes.answer(request, program)
        header["kilobytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        send_message(channel, header, body)
        passes.renew(len(program) + len(body))


if __name__ == "__main__":
    try:
        main()
    except (EOFError, ConnectionError):
        pass
