# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps within shard_map that all devices take together: they combine their amaxes, by the library's own collectives."""

from __future__ import annotations

import ctypes
import itertools
import math
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax

from .. import _ranks

_OR_LOCAL = "or pass reduce_amax=False to fp8.jax.jit: the amaxes are then those of each device's part, and each device keeps a state of its own"

_SOME = "amaxes are combined over all devices of the program, and this shard_map or pmap is over {here} of its {all}: let it be over all of them, " + _OR_LOCAL

#: How long a device is waited for, in seconds: others may still compile. jax.distributed.initialize waits as long.
_SECONDS = 300.0

#: The text, in MLIR, that makes a program one of several ranks.
GRID = "shard.grid @fp8_devices(shape = {count})"


def count_here() -> int:
    """The number of devices that what is traced here runs on, each with its part: 1 outside of shard_map and pmap."""
    mesh = jax.sharding.get_abstract_mesh()
    return math.prod(mesh.shape[axis] for axis in mesh.manual_axes)


def check(count: int) -> None:
    """Raises NotImplementedError where so many devices are not all of the program's."""
    if count != jax.device_count():
        raise NotImplementedError(_SOME.format(here=count, all=jax.device_count()))


def with_grid(text: str, count: int) -> str:
    """A module's text as that of a program of so many ranks."""
    head, brace, body = text.partition("{\n")
    return f"{head}{brace}  {GRID.format(count=count)}\n{body}"


_numbers = itertools.count()
_lock = threading.Lock()


def connect() -> dict[int, _ranks.Communicator]:
    """A communicator among all devices, for each device of this process by XLA's number there.

    Every process calls this as often as the others, in the same order. Raises RunError where one does not come.
    """
    devices = jax.devices()
    with _lock:
        client = _client()
        key = f"fp8/{next(_numbers)}"
        texts: dict[str, str] = {}
        heard = threading.Condition()
        meetings = {
            _ordinal(d): _Meeting(rank, len(devices), key, client, texts, heard) for rank, d in enumerate(devices) if d.process_index == jax.process_index()
        }
        is_nccl = devices[0].platform == "gpu"
        # Each rank waits for the others.
        with ThreadPoolExecutor(len(meetings)) as threads:
            made = threads.map(lambda meeting: _ranks.Communicator(meeting, is_nccl), meetings.values())
            return dict(zip(meetings, made))


def _ordinal(device: Any) -> int:
    """The number by which XLA calls custom calls: on the CPU that of the whole program, on GPUs the driver's."""
    return int(device.id if device.platform == "cpu" else device.local_hardware_id)


class _Meeting:
    """The devices of one process meet by its own memory, those of several by the service of jax.distributed."""

    seconds = _SECONDS

    def __init__(self, rank: int, size: int, key: str, client: Any, texts: dict[str, str], heard: threading.Condition) -> None:
        self.rank, self.size, self._key, self._client, self._texts, self._heard = rank, size, key, client, texts, heard
        self.host = _coordinator() if client is not None else "localhost"

    def tell(self, key: str, text: str) -> None:
        if self._client is not None:
            self._client.key_value_set(f"{self._key}/{key}", text)
            return
        with self._heard:
            self._texts[key] = text
            self._heard.notify_all()

    def hear(self, key: str) -> str | None:
        if self._client is None:
            with self._heard:
                self._heard.wait_for(lambda: key in self._texts, self.seconds)
                return self._texts.get(key)
        try:
            return str(self._client.blocking_key_value_get(f"{self._key}/{key}", int(1000 * self.seconds)))
        except jax.errors.JaxRuntimeError as error:
            if "DEADLINE_EXCEEDED" not in str(error):
                raise
            return None


def _client() -> Any:
    """The client of jax.distributed's service, by which the processes of a program exchange texts; None for a single process."""
    from jax._src import distributed

    return distributed.global_state.client if jax.process_count() > 1 else None


def _coordinator() -> str:
    from jax._src import distributed

    return str(distributed.global_state.coordinator_address).rpartition(":")[0]


#: Communicators that XLA may use as long as the process lives.
_kept: list[Any] = []


def join(library: Any, name: str, ffi: ctypes.CDLL, functions: ctypes.Structure) -> None:
    """Makes the devices the ranks of a custom call that is known under this name, after a comparison of their programs."""
    communicators: Mapping[int, _ranks.Communicator] = connect()
    with ThreadPoolExecutor(len(communicators)) as threads:
        list(threads.map(lambda communicator: communicator.compare_libraries(library), communicators.values()))
    ordinals = (ctypes.c_int32 * len(communicators))(*communicators)
    handles = (ctypes.c_void_p * len(communicators))(*(c.handle.value for c in communicators.values()))
    _kept.append(communicators)
    ffi.fp8_jax_set_ranks(name.encode(), ctypes.byref(functions), ordinals, handles, len(communicators))
