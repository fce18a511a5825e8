# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The FP8 state that a step keeps from call to call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import jax

from .. import state as _state
from .._errors import StateError
from ._program import Program


class Held:
    """The tensors of a state, and the layout of the programs that share it; nothing before the first call that needs one."""

    def __init__(self) -> None:
        #: The tensors in the order of `names`: JAX takes and makes a tuple faster than a dict.
        self.tensors: tuple[Any, ...] = ()
        self.names: tuple[str, ...] = ()
        self.layout: Mapping[str, Any] = {}
        self.pending: dict[str, Any] | None = None

    def read(self) -> _state.State:
        """Copies of the tensors, with the layout's hash: a call gives the memory of its own to the new state."""
        if not self.layout:
            return {}
        return {**as_jax(self.named(self.tensors)), _state.HASH: _state.layout_hash({"state": self.layout})}

    def replace(self, state: Mapping[str, Any]) -> None:
        """Takes another state; without a layout it waits for the program. Raises StateError if it does not fit."""
        if self.layout:
            _state.check(state, {"state": self.layout})
            self._take(state)
        elif state and _state.HASH not in state:
            raise StateError(f"the state lacks {_state.HASH}: take all of a step's state, or of what init(…) made")
        else:
            self.pending = dict(state)

    def adopt(self, program: Program) -> None:
        """Starts with the state that was set before the first call, or with the program's initial one."""
        state = self.pending if self.pending is not None else _state.initial(program.library.manifest)
        _state.check(state, program.library.manifest)
        self.layout = program.layout
        self._take(state)
        self.pending = None

    def _take(self, state: Mapping[str, Any]) -> None:
        tensors = as_jax({name: value for name, value in state.items() if name != _state.HASH})
        self.names, self.tensors = tuple(tensors), tuple(tensors.values())

    def named(self, tensors: Iterable[Any]) -> dict[str, Any]:
        """Tensors in the order of `names`, by their names."""
        return dict(zip(self.names, tensors))

    def check(self, program: Program) -> None:
        """Raises StateError if the program's state has another layout."""
        check_layout(program.layout, self.layout)


def check_layout(new: Mapping[str, Any], old: Mapping[str, Any]) -> None:
    if new[_state.HASH] != old[_state.HASH]:
        raise StateError(
            "these arguments make another program, whose FP8 state has another layout than the step's: use a second "
            f"fp8.jax.jit for them. The step's columns: {named_columns(old)}. The new program's: {named_columns(new)}"
        )


def named_columns(layout: Mapping[str, Any]) -> str:
    return "; ".join(f"{c['tensor']} of {', '.join(c['sites'])} in {c['format']}" for c in layout.get("columns", [])) or "none"


def as_jax(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Copies of the tensors that a call may donate; the hash stays as it is."""
    with jax.enable_x64(True):  # The state of stochastic rounding is of 64-bit integers.
        return {name: value if name == _state.HASH else jax.numpy.array(value) for name, value in tensors.items()}
