# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that stand in for those that run passes of others: they answer, die, hang or answer nonsense, as a test wants it."""

import contextlib
import os
import pathlib
import threading

import fp8
from fp8 import _outside

SOURCE = pathlib.Path(fp8.__file__).resolve().parents[1]

_BEGIN = f"""
import ctypes, os, pathlib, signal, sys, time
sys.path.append({str(SOURCE / "fp8" / "_outside")!r})
from _worker import *
channel = take_channel()
end_with(int(sys.argv[4]))
"""
#: Answers with the program, its own number before it. With `hang` it writes the number into a file, and holds Python's lock for ever.
ECHO = """
while True:
    request, program = receive_message(channel)
    if program.startswith(b"hang "):
        pathlib.Path(program[5:].decode()).write_text(str(os.getpid()))
        ctypes.PyDLL(None).sleep(300)
    send_message(channel, {}, b"%d %s" % (os.getpid(), program))
"""
#: Takes a request; what it does then comes after.
ASKED = "receive_message(channel)\nprint('assertion', file=sys.stderr, flush=True)\n"
HALF_AN_ANSWER = ASKED + "os.write(channel, MESSAGE.pack(WORD, 2, 1000) + b'{}' + b'half')"
KILLED = ASKED + "os.kill(os.getpid(), signal.SIG{})"


def write(folder, body):
    program = folder / "stand_in.py"
    new = folder / f"{threading.get_ident()}.py"
    new.write_text(_BEGIN + body)
    return new.replace(program)  # At once: a process may be starting.


@contextlib.contextmanager
def in_place(monkeypatch, folder, body):
    """Within the block a stand-in runs in the place of passes."""
    with monkeypatch.context() as patch:
        patch.setattr(_outside, "_PROGRAM", write(folder, body))
        _outside.end_all()
        try:
            yield
        finally:
            _outside.end_all()


def children(pid=None):
    """The numbers of a process's children, those included that nobody has waited for."""
    parent = pid or os.getpid()
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        # A process may end between the listing and the read. Its name is in parentheses and may hold any character.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(folder.name))
    return found


def environment():
    """For a process that imports the package."""
    return {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONWARNINGS": "error"}


def package(folder):
    """Bindings of nobody's, for `_outside`."""
    (folder / "bindings").mkdir(exist_ok=True)
    (folder / "bindings" / "ir.py").touch()
    return _outside.Package("bindings", "numpy", "stand-in")


def script(folder, body, code):
    """The code of a process that runs such passes: `run(program)`."""
    package(folder)
    return f"""
import multiprocessing, os, pathlib, signal, sys, threading, time
sys.path[:0] = [{str(folder)!r}, {str(pathlib.Path(__file__).parent)!r}]
import fp8, outside_programs
from fp8 import _outside
_outside._PROGRAM = pathlib.Path({str(write(folder, body))!r})
PACKAGE = _outside.Package("bindings", "numpy", "stand-in")
def run(program="program"):
    number, program = _outside.run(PACKAGE, "pipeline", program.encode()).decode().split(" ", 1)
    return int(number)
{code}
"""
