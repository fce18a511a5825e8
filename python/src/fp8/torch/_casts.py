# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights kept in FP8 between calls (`fp8_parameters=True`), and when they are cast again.

PyTorch counts the changes of a tensor (`_version`): a cast serves as long as the weight and the
scales that it was made from are the same tensors with the same counts.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.optim.optimizer import register_optimizer_step_post_hook

from .. import state as _state
from .._errors import CompileError
from .._library import Library
from ._memory import Memory
from ._state import State


class Casts:
    """The casts of weights that an entry point reads, by name in `bytes`; none without fp8_parameters."""

    def __init__(self, library: Library, entry: str, memory: Memory) -> None:
        # PyTorch compiles with tensors without data; these have them.
        with unset_fake_temporarily():
            self.bytes = {name: memory.put(_as_bytes(value)) for name, value in _state.initial(library.manifest, derived=True).items()}
        self.addresses = {name: tensor.data_ptr() for name, tensor in self.bytes.items()}
        self.memory = memory
        #: The streams that have used them, on a GPU.
        self.streams: set[int] = set()
        description = library.entries[entry].description.get("parameters")
        self._places = description["arguments"] if description else []
        self._prepared = memory.prepare(library, description["entry"]) if description else None
        if description:
            _count_fused_updates()
        #: The sources of the casts: tensors that share memory and count with the originals, and the counts.
        self._sources: list[tuple[Tensor, int]] = []

    def tensors(self) -> list[Tensor]:
        return [*self.bytes.values()]

    def update(self, arguments: Sequence[Tensor], state: State | None) -> None:
        """Makes the casts of the weights among the arguments of a call, unless they are made already."""
        if self._prepared is not None and not self._are_of(self._made_from(arguments, state)):
            self.make(arguments, state)

    def make(self, arguments: Sequence[Tensor], state: State | None) -> None:
        """Makes the casts."""
        if self._prepared is None:
            return
        held = self.memory.taken([arguments[place] for place in self._places])
        users = iter(held)
        addresses = zip(self._prepared.arguments, self._pointers(self._prepared.arguments, state))
        inputs = [address if argument["kind"] == "state" else next(users).data_ptr() for argument, address in addresses]
        self._prepared.call(inputs, self._pointers(self._prepared.results, state))
        self.note(arguments, state)

    def note(self, arguments: Sequence[Tensor], state: State | None) -> None:
        """Says that the casts are those of the arguments as they are now: the call has cast its new weights itself."""
        if self._prepared is not None:
            self._sources = [(t.detach(), t._version) for t in self._made_from(arguments, state) if not t.is_inference()]

    def _made_from(self, arguments: Sequence[Tensor], state: State | None) -> list[Tensor]:
        return [*(arguments[place] for place in self._places), *(state.buffers() if state is not None else ())]

    def _are_of(self, tensors: Sequence[Tensor]) -> bool:
        """Changes of tensors that were made in inference mode are not counted: their casts are never kept."""
        return len(tensors) == len(self._sources) and all(
            not t.is_inference() and t.data_ptr() == source.data_ptr() and t._version == count for t, (source, count) in zip(tensors, self._sources)
        )

    def _pointers(self, values: Sequence[dict[str, str]], state: State | None) -> list[int]:
        return [pointers([v["name"]], state, self)[0] if v["kind"] == "state" else 0 for v in values]


def pointers(names: Sequence[str], state: State | None, casts: Casts) -> list[int]:
    """The addresses of tensors of the state and of casts, by name, for a call."""
    casts.memory.note_use(state, casts)
    buffers = state._buffers if state is not None else {}
    if not casts.addresses:
        # The shorter way, as calls on small tensors take as long as their Python.
        return [*map(Tensor.data_ptr, map(buffers.__getitem__, names))]
    return [buffers[name].data_ptr() if name in buffers else casts.addresses[name] for name in names]


@functools.cache
def _count_fused_updates() -> None:
    """Counts what optimizers with fused=True change: PyTorch does not."""

    def count(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        if not torch.compiler.is_compiling():
            torch.autograd.graph.increment_version([p for group in optimizer.param_groups if group.get("fused") for p in group["params"]])

    register_optimizer_step_post_hook(count)


def advise(error: CompileError) -> CompileError:
    """The compiler's error with what to use instead, if it is about weights whose new values it does not see."""
    if "fp8_parameters keeps" not in error.message:
        return error
    return type(error)(f"{error.message}; fp8.torch.train_step computes them", error.location, error.notes, error.source_path)


def _as_bytes(value: Any) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(value).reshape(-1).view(np.uint8).copy())
