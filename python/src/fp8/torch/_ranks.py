# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Data parallelism: the processes of a group of torch.distributed as the ranks of a compiled step."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from .. import _ranks
from .._library import Library
from ._memory import Call

#: The axis of the ranks in the compiler's words.
_AXIS = "data"


class Ranks:
    """The ranks of one step. They meet through the group's store, and wait for each other as long as the group does."""

    def __init__(self, group: Any) -> None:
        if not isinstance(group, dist.ProcessGroup):
            raise TypeError(
                f"data_parallel takes a process group of torch.distributed, as torch.distributed.group.WORLD is after init_process_group(), not {group!r}"
            )
        self._group = group
        store = group.get_group_store()
        rank = dist.get_rank(group)
        self.size = dist.get_world_size(group)
        # Each rank counts its own steps: the first one of all ranks is one program, and so on.
        self._meeting = _Meeting(dist.PrefixStore(f"fp8/{store.add(f'fp8/steps/{rank}', 1)}", store), rank, self.size)
        self._communicator: _ranks.Communicator | None = None

    def meet(self, device: torch.device) -> _ranks.Communicator:
        """The communicator, which all ranks make in their first calls, for tensors on a device. Raises RunError where a rank does not come."""
        if self._communicator is None:
            is_nccl = device.type == "cuda" and self._group._get_backend(device).name() == "nccl"
            self._communicator = _ranks.Communicator(self._meeting, is_nccl)
        return self._communicator

    def has(self, group: Any) -> bool:
        """Whether another group has the same ranks in the same order."""
        return list(dist.get_process_group_ranks(group)) == list(dist.get_process_group_ranks(self._group))

    @staticmethod
    def options(parts: Sequence[str], loss: int, averaged: Sequence[int]) -> dict[str, Any]:
        """The compiler's options: arguments of which each rank has its own, the place of the loss, and other results that become means."""
        mean = {"average": ",".join(map(str, averaged))} if averaged else {}
        return {"data_parallel": f"{_AXIS}:{','.join(parts)}", "loss": loss, **mean}

    def join(self, library: Library, call: Call) -> None:
        """Lets the collectives of a call go through the ranks, which all do this, after a comparison of their programs."""
        assert self._communicator is not None
        self._communicator.compare_libraries(library)
        call.communicate_through(self._communicator)

    def compare(self, tensors: Mapping[str, Tensor]) -> None:
        """Raises RunError unless the tensors have the same values on all ranks."""
        assert self._communicator is not None
        lines = _ranks.hashed((name, _kind(t), _bytes(t)) for name, t in tensors.items())
        self._communicator.compare(
            "the ranks begin with different values (seed all alike, load one checkpoint, or send them by torch.distributed.broadcast)", lines
        )


class _Meeting:
    def __init__(self, store: dist.Store, rank: int, size: int) -> None:
        self._store, self.rank, self.size = store, rank, size
        self.seconds = store.timeout.total_seconds()
        while isinstance(store, dist.PrefixStore):
            store = store.underlying_store
        self.host = getattr(store, "host", "localhost")

    def tell(self, key: str, text: str) -> None:
        self._store.set(key, text)

    def hear(self, key: str) -> str | None:
        try:
            self._store.wait([key], datetime.timedelta(seconds=self.seconds))
        except dist.DistStoreError:
            return None
        return str(self._store.get(key).decode())


def _kind(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


def _bytes(tensor: Tensor) -> memoryview:
    return memoryview(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
