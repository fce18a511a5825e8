# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FP8 state as part of a module's `state_dict`, so that `torch.save` and safetensors hold it."""

from __future__ import annotations

import contextlib
import json
import weakref
from collections.abc import Callable, Iterator, KeysView, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .. import state as _state
from .._errors import Location, StateError, warn
from .._library import Library
from ._memory import Memory

COLUMNS = "columns"

#: The attribute of a module that its attached states are, and what their names in its state_dict begin with.
ATTRIBUTE = "fp8_state"

#: A module, and the names of some of its weights.
Place = tuple["weakref.ref[nn.Module]", frozenset[str]]


@contextlib.contextmanager
def at_line(line: Location | None) -> Iterator[None]:
    """Within the block a StateError begins with a line of the user's program."""
    try:
        yield
    except StateError as error:
        raise StateError(f"{line}: {error}" if line else str(error)) from None


class State(nn.Module):  # type: ignore[misc]
    """The state of one graph and one set of weights: `scale`, `amax_history`, and what it belongs to.

    `layout_hash` (u8) tells states of other programs apart, `columns` (JSON in u8) names the tensor
    behind every column. `dict(state)` has these tensors by name.
    """

    def __init__(self, library: Library, memory: Memory) -> None:
        super().__init__()
        #: Its number among the states of a backend.
        self.number = 0
        self.take((), None)
        for name, value in _state.initial(library.manifest).items():
            self.register_buffer(name, torch.from_numpy(np.ascontiguousarray(value)))
        self.register_buffer(COLUMNS, _encode(columns_of(library)))
        #: Where its scales are, and on a GPU the streams that have used them.
        self.device = torch.device("cpu")
        self.streams: set[int] = set()
        self.move_to(memory)

    def keys(self) -> KeysView[str]:
        """The names of its tensors."""
        return dict(self.named_buffers()).keys()

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __contains__(self, name: object) -> bool:
        return name in self.keys()

    def __len__(self) -> int:
        return len(self.keys())

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, name: str) -> Tensor:
        return self.get_buffer(name)

    def __repr__(self) -> str:
        tensors = [f"{name} {list(tensor.shape)}" for name, tensor in self.named_buffers() if name not in (_state.HASH, COLUMNS)]
        return f"<fp8.torch.State: {', '.join(tensors)}>"

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        # There are no modules within, and torch.nn.Module looks for them at every call.
        return iter(self._buffers.values())

    def tensors(self) -> list[Tensor]:
        """The tensors that programs read and write."""
        return [tensor for name, tensor in self.named_buffers() if name not in (_state.HASH, COLUMNS)]

    def move_to(self, memory: Memory) -> None:
        """Moves the tensors that programs use to the memory of a program."""
        if self.device != memory.device:
            for name, tensor in self.named_buffers():
                if name not in (_state.HASH, COLUMNS):
                    self._buffers[name] = memory.put(tensor)
            self.device, self.streams = memory.device, set()

    def take(self, weights: Sequence[Tensor], place: Place | None) -> None:
        """Notes the weights that this state's scales are of: the objects, as another tensor may come to lie at a freed address."""
        self.weights = {id(weight): weakref.ref(weight) for weight in weights}
        self.place = place

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles, which are of no weights yet."""
        return {**self.__dict__, "weights": {}, "place": None}

    def living(self) -> list[Tensor]:
        """Its weights, those that still exist."""
        return [weight for reference in self.weights.values() if (weight := reference()) is not None]

    def shares(self, weights: Sequence[Tensor]) -> bool:
        """Whether one of them is one of its weights."""
        return any(id(weight) in self.weights and self.weights[id(weight)]() is weight for weight in weights)

    def is_of(self, weights: Sequence[Tensor], place: Place | None) -> bool:
        """Whether its scales are of these weights, or of what had their names in the same module."""
        same = len(weights) == len(self.weights) and {id(weight) for weight in self.living()} == {id(weight) for weight in weights}
        return bool(weights) and (same or (place is not None and place == self.place))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> State:
        """`module.half()` or `.to(dtype)` leave scales and histories in f32."""
        return self

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Copies a saved state into this one. Raises StateError if it is another program's."""
        own: dict[str, Tensor] = dict(self.named_buffers())
        if missing := sorted(set(own) - set(tensors) - {COLUMNS}):
            raise StateError(f"the saved FP8 state lacks {', '.join(missing)}")
        if _state.HASH in own and not same_layout(tensors[_state.HASH], own[_state.HASH]):
            given, wanted = decode(tensors.get(COLUMNS)), decode(own[COLUMNS])
            extra = [c for c in given if c not in wanted] or given
            lacks = [c for c in wanted if c not in given] or wanted
            raise StateError(f"the saved FP8 state is of another program: it has {_names(extra)}, this program {_names(lacks)}")
        for name, tensor in own.items():
            if name != COLUMNS and tensors[name].shape != tensor.shape:
                raise StateError(
                    f"{name} of the saved FP8 state has the shape {tuple(tensors[name].shape)}, not {tuple(tensor.shape)}; "
                    "fp8.state.resize changes the length of a history"
                )
        with torch.no_grad():
            for name, tensor in own.items():
                if name != COLUMNS:
                    tensor.copy_(tensors[name])

    def _load_from_state_dict(self, state_dict: Mapping[str, Any], prefix: str, *rest: Any) -> None:
        self.load(_below(state_dict, prefix))


class States(nn.Module):  # type: ignore[misc]
    """All states of a backend, numbered in the order in which their graphs first ran.

    A saved state whose graph is not compiled yet is kept until it is.
    """

    def __init__(self) -> None:
        super().__init__()
        #: The modules that these states were attached to.
        self.attached: list[weakref.ref[nn.Module]] = []
        self.waiting: dict[str, dict[str, Tensor]] = {}
        #: Whether these are copies, which no backend has.
        self.copied = False
        #: How often a state was added, or one that waits was loaded.
        self.changes = 0

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "attached": []}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        super().__setstate__(saved)
        self.copied = True

    def wait(self) -> None:
        """Lets all states wait for their graphs, which are compiled anew."""
        self.waiting.update({name: dict(state.named_buffers()) for name, state in self.named_children()})
        self._modules.clear()
        self.copied = False

    def attach_to(self, module: nn.Module) -> None:
        """Becomes `fp8_state` of a module, and takes over what the module has there from the one that it is a copy of.

        A state of another backend or step gives way with a warning: in a notebook the cell that attaches may run again.
        It is no submodule: nn.Sequential would call it, and count it as a layer.
        """
        before = vars(module).get(ATTRIBUTE)
        if before is None:
            module.register_state_dict_post_hook(_save_attached)
            module.register_load_state_dict_pre_hook(_load_attached)
        elif before is not self:
            if before.copied:
                self.load_state_dict(before.state_dict())
            else:
                warn("the module had the FP8 state of another backend or step attached: from now on its state_dict has this one's")
        vars(module)[ATTRIBUTE] = self

    def belong_to(self, module: nn.Module) -> None:
        """Notes a module: its weights are known by their names, so that load_state_dict(assign=True) may replace them."""
        self.attached.append(weakref.ref(module))
        for state in self.children():
            if state.place is None:
                state.place = self.place_of(state.living())

    def place_of(self, weights: Sequence[Tensor]) -> Place | None:
        """The module that has all of these weights, and their names there."""
        for reference in self.attached:
            module = reference()
            names = {id(p): name for name, p in module.named_parameters(remove_duplicate=False)} if module is not None else {}
            if weights and all(id(weight) in names for weight in weights):
                return reference, frozenset(names[id(weight)] for weight in weights)
        return None

    def add(self, state: State) -> None:
        """Numbers a new state, and loads the saved one that waits for it."""
        state.number = number = len(self._modules)
        self.changes += 1
        if self.waiting:
            name = self._waiting_for(state, str(number))
            state.load(self.waiting.pop(name))
        self.add_module(str(number), state)

    def _waiting_for(self, state: State, number: str) -> str:
        own = dict(state.named_buffers())[_state.HASH]
        same = [name for name, tensors in self.waiting.items() if same_layout(tensors[_state.HASH], own)]
        if number in same or not same:
            return number if number in self.waiting else next(iter(self.waiting))
        return same[0]

    def saved(self) -> Iterator[Mapping[str, Tensor]]:
        """All states, those that wait for their graph last."""
        for state in self.children():
            yield dict(state.named_buffers())
        yield from self.waiting.values()

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> States:
        return self

    def _load_from_state_dict(self, state_dict: Mapping[str, Any], prefix: str, *rest: Any) -> None:
        given = _below(state_dict, prefix)
        names = sorted({key.partition(".")[0] for key in given} - set(self._modules))
        waiting = {name: _below(given, f"{name}.") for name in names}
        for name, tensors in waiting.items():
            _check_saved(name, tensors)
        self.changes += len(waiting)
        self.waiting.update({name: {key: tensor.detach().clone() for key, tensor in tensors.items()} for name, tensors in waiting.items()})

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        for name, tensors in self.waiting.items():
            destination.update({f"{prefix}{name}.{key}": tensor for key, tensor in tensors.items()})


def same_layout(one: Tensor, other: Tensor) -> bool:
    """Whether two layouts' hashes are equal; torch.load may have put one on a GPU."""
    return bool(torch.equal(one.cpu(), other.cpu()))


def _check_saved(name: str, tensors: Mapping[str, Any]) -> None:
    """Raises StateError for what cannot be the state of any program."""
    if not name.isdigit() or not tensors:
        raise StateError(f"the saved FP8 state has '{name}', and its keys are as '0.scale': load what state_dict() of a backend or step gave")
    if _state.HASH not in tensors:
        raise StateError(f"the saved FP8 state lacks '{name}.{_state.HASH}': load what state_dict() of a backend or step gave")
    for key, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise StateError(f"'{name}.{key}' of the saved FP8 state is of type {type(tensor).__name__}, not a tensor")


def _save_attached(module: nn.Module, state_dict: dict[str, Any], prefix: str, _: Any) -> None:
    vars(module)[ATTRIBUTE].state_dict(destination=state_dict, prefix=f"{prefix}{ATTRIBUTE}.")


def _load_attached(module: nn.Module, state_dict: dict[str, Any], prefix: str, _: Any, strict: bool, missing: list[str], *rest: Any) -> None:
    states, prefix = vars(module)[ATTRIBUTE], f"{prefix}{ATTRIBUTE}."
    if own := {key: state_dict.pop(prefix + key) for key in _below(state_dict, prefix)}:
        states.load_state_dict(own)
    else:
        # PyTorch says whether that is an error: here strict is always true.
        missing += [prefix + key for key in states.state_dict()]


def columns_of(library: Library) -> list[tuple[str, ...]]:
    """The tensor, the format and the sites of every column of a library's state."""
    columns = (library.manifest.get("state") or {}).get("columns", [])
    return [(column["tensor"], column["format"], *column["sites"]) for column in columns]


def described(*states: State | None) -> list[dict[str, Any]]:
    """The columns of states, one state after the other: dicts with index, tensor, format and sites."""
    columns = [column for state in states if state is not None for column in decode(state[COLUMNS])]
    return [{"index": i, "tensor": tensor, "format": form, "sites": sites} for i, (tensor, form, *sites) in enumerate(columns)]


def from_arrays(values: Mapping[str, Any]) -> dict[str, Tensor]:
    """Copies of the arrays of a state, of any library, as tensors."""
    return {name: torch.from_numpy(np.asarray(value).copy()) for name, value in values.items()}


def _encode(columns: list[tuple[str, ...]]) -> Tensor:
    return torch.frombuffer(bytearray(json.dumps(columns).encode()), dtype=torch.uint8)


def decode(columns: Tensor | None) -> list[tuple[str, ...]]:
    """The columns that the tensor `columns` of a state names."""
    return [tuple(column) for column in json.loads(bytes(columns.tolist()))] if columns is not None else []


def _names(columns: list[tuple[str, ...]]) -> str:
    shown = [f"the {tensor} of {', '.join(sites)} in {form}" for tensor, form, *sites in columns[:4]]
    return ("; ".join(shown) or "no columns") + (f" and {len(columns) - 4} more" if len(columns) > 4 else "")


def _below(state_dict: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {key[len(prefix) :]: value for key, value in state_dict.items() if key.startswith(prefix)}
