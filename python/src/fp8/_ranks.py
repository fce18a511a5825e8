# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranks: processes that run one program together, and the communicator that its collectives go through.

A framework has started the processes and brings them together; from then on libfp8rt moves the data.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import socket
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from . import _runtime
from ._errors import RunError
from ._library import Library


class Meeting(Protocol):
    """Where the processes of a program find each other: texts by their keys, which all of them see.

    `host` is the machine that every one of them reaches, `seconds` how long a process is waited for.
    """

    rank: int
    size: int
    host: str
    seconds: float

    def tell(self, key: str, text: str) -> None: ...

    def hear(self, key: str) -> str | None:
        """The text of a key, once there is one; None after `seconds`."""


class Communicator:
    """The connection of this process's rank with the others; through shared memory where all are on one machine, else TCP.

    With `is_nccl` the data of GPUs go from one to the other by NCCL, else through the memory of the host. Raises
    RunError where a rank does not come.
    """

    def __init__(self, meeting: Meeting, is_nccl: bool = False) -> None:
        self.rank, self.size, self.is_nccl = meeting.rank, meeting.size, is_nccl
        #: Keeps the shared memory open for the ranks that come later.
        self._file: int | None = None
        meeting.tell(f"machine/{self.rank}", machine())
        machines = {_hear(meeting, f"machine/{rank}", rank) for rank in range(self.size)}
        host = self._in_shared_memory(meeting) if len(machines) == 1 else self._through_tcp(meeting)
        self._handle = self._through_nccl(host) if is_nccl else host

    def _in_shared_memory(self, meeting: Meeting) -> _runtime.Handle:
        if self.rank == 0:
            out = ctypes.c_int()
            _runtime.call("fp8rt_local_memory_create", self.size, ctypes.byref(out))
            self._file = out.value
            meeting.tell("memory", f"/proc/{os.getpid()}/fd/{self._file}")
        else:
            try:
                self._file = os.open(_hear(meeting, "memory", 0), os.O_RDWR | os.O_CLOEXEC)
            except OSError as error:
                raise RunError(f"rank {self.rank} cannot open the memory of rank 0, which may have ended: {error}") from None
        handle = _runtime.Handle("fp8rt_communicator_create_local", "fp8rt_communicator_destroy", self._file, self.rank, meeting.seconds)
        meeting.tell(f"opened/{self.rank}", "")
        if self.rank == 0:
            # So that the others hear of a failure of rank 0, even if it ends at once.
            for rank in range(1, self.size):
                _hear(meeting, f"opened/{rank}", rank)
        return handle

    def _through_tcp(self, meeting: Meeting) -> _runtime.Handle:
        if self.rank == 0:
            meeting.tell("address", _free_address(meeting.host))
        address = _hear(meeting, "address", 0)
        return _runtime.Handle("fp8rt_communicator_create_tcp", "fp8rt_communicator_destroy", address.encode(), self.rank, self.size, meeting.seconds)

    def _through_nccl(self, host: _runtime.Handle) -> _runtime.Handle:
        nccl = _runtime.Handle("fp8rt_communicator_create_nccl", "fp8rt_communicator_destroy", host.value)
        host.value = None  # It belongs to the other one now.
        return nccl

    def __del__(self) -> None:
        if self._file is not None:
            os.close(self._file)

    @property
    def handle(self) -> ctypes.c_void_p:
        assert self._handle.value is not None
        return self._handle.value

    def compare_libraries(self, library: Library) -> None:
        """Raises RunError unless all ranks have the same program."""
        _runtime.call("fp8rt_communicator_compare_libraries", self.handle, library.handle)

    def compare(self, what: str, lines: Sequence[str]) -> None:
        """Raises RunError, which begins with `what` and names the first line that differs, unless all ranks have the same lines."""
        texts = (ctypes.c_char_p * max(1, len(lines)))(*(line.encode() for line in lines))
        _runtime.call("fp8rt_communicator_compare", self.handle, what.encode(), texts, len(lines))

    @contextlib.contextmanager
    def telling(self) -> Iterator[None]:
        """An error in the block, whatever it is, is the reason why the other ranks fail, which would wait otherwise."""
        try:
            yield
        except BaseException as error:
            reason = str(error).partition("\n")[0]
            text = f"{type(error).__name__}: {reason}" if reason else type(error).__name__
            # After the first failure of any rank this does nothing: the first reason counts.
            with contextlib.suppress(RunError):
                _runtime.call("fp8rt_communicator_fail", self.handle, text.encode())
            raise


def hashed(tensors: Iterable[tuple[str, str, memoryview | bytes]]) -> list[str]:
    """A line for each tensor, from its name, its type in words and its bytes."""
    return [f"{name} ({kind}, hash {hashlib.blake2b(data, digest_size=8).hexdigest()})" for name, kind, data in tensors]


def machine() -> str:
    """A text that processes have in common if they can open each other's memory."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        boot = file.read().strip()
    return f"{boot} {os.readlink('/proc/self/ns/pid')} {os.getuid()}"


def _hear(meeting: Meeting, key: str, rank: int) -> str:
    text = meeting.hear(key)
    if text is None:
        raise RunError(f"rank {rank} did not come within {meeting.seconds:g} s: every rank of the group calls the step")
    return text


def _free_address(host: str) -> str:
    """An address of this machine at which others reach it, with a port that nobody has."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, 9))  # Sends nothing, and chooses the interface.
        own = probe.getsockname()[0]
    # To its own name a machine may answer with an address that is nobody else's.
    own = host if own.startswith("127.") else own
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.bind((own, 0))
        return f"{own}:{listener.getsockname()[1]}"
