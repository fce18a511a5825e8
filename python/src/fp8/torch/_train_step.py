# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A whole training step in one library: loss, gradients, and the update of the user's own optimizer.

Parameters, buffers and the optimizer's state stay where they are: the compiled step updates their
memory in place.
"""

from __future__ import annotations

import itertools
import operator
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .. import state as _state
from .._errors import StateError, UnsupportedError, hiding_frames
from .._library import Library
from .._report import Report
from . import _capture, _cuda, _divided, _optimizer
from ._casts import Casts, pointers
from ._devices import Named, check_options, memory_of
from ._memory import Memory, strides_of
from ._model import Loss, Numbers
from ._ranks import Ranks
from ._snapshot import Snapshot
from ._state import State, States, at_line, described, from_arrays, same_layout
from ._step_graph import capture_step
from .lowering import _collectives, _import


@hiding_frames
def train_step(
    model: nn.Module,
    loss: Callable[..., Tensor] | None,
    optimizer: torch.optim.Optimizer,
    recipe: Any = "delayed",
    autocast: torch.dtype | None = None,
    data_parallel: torch.distributed.ProcessGroup | None = None,
    **options: Any,
) -> TrainStep:
    """A function `step(*inputs, target) -> loss` that computes a training step and updates the model.

        step = fp8.torch.train_step(model, F.cross_entropy, optimizer, autocast=torch.bfloat16)
        for x, y in data:
            loss = step(x, y)
            scheduler.step()

    `loss(model(*inputs), target)` is a scalar; where `loss` is None the model returns it. Without
    `autocast` a torch.autocast around the call counts. The optimizer is one of torch.optim, but for LBFGS and
    SparseAdam; learning rates are read at every call. The other options are those of `fp8.compile`.

    With `data_parallel`, a group of torch.distributed, every process of the group calls the step with its own part of
    the batch: loss and gradients are the means over all, and models and optimizers stay equal. Parameters may be divided
    over these processes by torch.distributed.fsdp.fully_shard, before the optimizer is made.
    """
    return TrainStep(model, loss, optimizer, recipe, autocast, data_parallel, **options)


#: PyTorch captures one graph at a time in a process.
_CAPTURE = threading.Lock()


class TrainStep:
    """The result of `train_step`. One call runs at a time.

    A new combination of the shapes of a batch, of the optimizer's options (with SGD's dampening also of the first step and
    later ones), of the modules' modes (train, eval) and hooks, of the
    model's tensors (other objects or types, frozen or not) and of the numbers and texts that are attributes of its
    modules, also in lists and dicts, is compiled when it first occurs. Other attributes are those that it had then.
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Callable[..., Tensor] | None,
        optimizer: torch.optim.Optimizer,
        recipe: Any = "delayed",
        autocast: torch.dtype | None = None,
        data_parallel: torch.distributed.ProcessGroup | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(model, nn.Module):
            raise TypeError(f"the model is of type {type(model).__name__}: train_step takes a torch.nn.Module")
        if any(isinstance(m, (nn.DataParallel, nn.parallel.DistributedDataParallel)) for m in model.modules()):
            raise UnsupportedError("the model is wrapped for several processes or devices: give train_step the model itself and data_parallel=group")
        check_options("train_step", {"recipe": recipe, **options}, ("pair", "carry", "average"))
        _optimizer.check(optimizer)
        self.model, self.optimizer = model, optimizer
        self.recipe, self.options = recipe, options
        self.states = States()
        self._module = Loss(model, loss, autocast)
        self._built: dict[Any, _Compiled] = {}
        #: The step of the last call, with model, optimizer and batch, and PyTorch's own settings, that it was found for.
        self._last: tuple[_Compiled, Snapshot, tuple[Any, ...]] | None = None
        self._numbers = Numbers(self._module, optimizer)
        self._lock = threading.Lock()
        #: The processes that share a batch.
        self.ranks = Ranks(data_parallel) if data_parallel is not None else None

    @hiding_frames
    def __call__(self, *batch: Tensor) -> Tensor:
        """Raises UnsupportedError or CompileError when it compiles, RunError if the call fails, also where another rank has failed or is gone."""
        if self.ranks is None:
            return self._checked(batch)
        with self.ranks.meet(self._device()).telling():
            return self._checked(batch)

    def _device(self) -> torch.device:
        return next((_cuda.cuda.device_of(p) for p in self.model.parameters()), torch.device("cpu"))

    def _checked(self, batch: Sequence[Tensor]) -> Tensor:
        for place, value in enumerate(batch):
            if not isinstance(value, Tensor):
                raise TypeError(f"input {place} of the step is of type {type(value).__name__}, not a tensor")
        with self._lock:
            return self._step(batch)

    def _step(self, batch: Sequence[Tensor]) -> Tensor:
        _optimizer.check_options(self.optimizer)
        autocast = [torch.is_autocast_enabled(kind) and torch.get_autocast_dtype(kind) for kind in ("cpu", "cuda")]
        outside = (*autocast, *map(id, _optimizer.beginning(self.optimizer)))
        if self._last is None or outside != self._last[2] or not self._last[1].holds(batch):
            _divided.reshard(self.model)
            # Before, as forward may change numbers while it is traced.
            snapshot = Snapshot(self._module, self.optimizer, batch)
            self._last = self._find(batch, outside), snapshot, outside
        # A scheduler looks at this mark to find that it is called after the optimizer.
        self.optimizer._opt_called = True
        return self._last[0](batch)

    def _find(self, batch: Sequence[Tensor], outside: tuple[Any, ...]) -> _Compiled:
        """The step for the model, the optimizer and the batch as they are."""
        options = tuple(tuple((k, _hashable(v)) for k, v in g.items() if k not in ("params", "lr")) for g in self.optimizer.param_groups)
        key = (tuple((tuple(t.shape), t.dtype, t.device) for t in batch), options, outside, self._module.kind(), self._numbers.values())
        if key not in self._built:
            memory = memory_of(self._tensors(batch), self.options)
            _divided.check(self._module, self.optimizer, self.ranks)
            with _CAPTURE, torch.inference_mode(False), torch.enable_grad():
                self._numbers.note_compilation()
                self._built[key] = _Compiled(self, batch, memory)
        return self._built[key]

    def _tensors(self, batch: Sequence[Tensor]) -> list[Named]:
        plain = ((f"{path}.{name}", value) for path, m in self._module.named_modules() for name, value in vars(m).items() if isinstance(value, Tensor))
        named = [*self._module.named_parameters(), *self._module.named_buffers(), *plain]
        named += [(f"input {i} of the step", tensor) for i, tensor in enumerate(batch)]
        return [(name.removeprefix("model."), tensor, None) for name, tensor in named]

    @property
    def library(self) -> Library:
        """The library of the last call. Raises RuntimeError before the first."""
        if self._last is None:
            raise RuntimeError("the step is not compiled yet: call it first")
        return self._last[0].library

    @property
    def state(self) -> State | None:
        """The FP8 state; None for a recipe without, or before the first call.

        A dict of arrays that is assigned is copied into it, before the first call when it is made. Raises StateError if it
        is another program's.
        """
        return self.states._modules.get("0")  # type: ignore[no-any-return]

    @state.setter
    def state(self, state: Mapping[str, Any]) -> None:
        self.states.load_state_dict({f"0.{name}": tensor for name, tensor in from_arrays(state).items()})

    @property
    def columns(self) -> list[dict[str, Any]]:
        """The columns of the state: dicts with index, tensor, format and sites; empty where there is no state."""
        return described(self.state)

    @hiding_frames
    def report(self) -> Report:
        """The decision about every product of the last call."""
        return _import.report_of(self.library)

    @hiding_frames
    def ir(self, stage: str) -> str:
        """The IR of the last call after a stage of the compiler."""
        return self.library.ir(stage)

    def state_dict(self) -> dict[str, Tensor]:
        """The FP8 state, with keys as `0.scale`; the model's and the optimizer's own have the rest."""
        return dict(self.states.state_dict())

    @hiding_frames
    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Loads what `state_dict` gave, also before the first call. Raises StateError."""
        self.states.load_state_dict(state)

    def attach(self, module: nn.Module | None = None) -> None:
        """Makes the FP8 state part of the `state_dict` of the model, or of another module."""
        self.states.attach_to(module if module is not None else self.model)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Raises TypeError: a copy would need a copy of the model and the optimizer, which the user has too."""
        raise TypeError(
            "a TrainStep can be neither pickled nor copied: save or copy the model, the optimizer's state_dict() and the step's "
            "state_dict(), make a new train_step of them, and call its load_state_dict"
        )

    def __repr__(self) -> str:
        return f"<fp8.torch.TrainStep {type(self.model).__name__}: {len(self._built)} compiled>"

    def state_for(self, library: Library, memory: Memory) -> State | None:
        """The state, made for the first library; another one must have the same columns."""
        new = State(library, memory)
        if not _state.tensors(library.manifest):
            return None
        if self.state is None:
            self.states.add(new)
        elif not same_layout(self.state.layout_hash, new.layout_hash):
            raise StateError("this combination of shapes quantizes other tensors than the first: use a train_step of its own")
        return self.state


class _Compiled:
    """The step for one combination of shapes."""

    def __init__(self, owner: TrainStep, batch: Sequence[Tensor], memory: Memory) -> None:
        self._optimizer, self._memory = owner.optimizer, memory
        captured = capture_step(owner._module, owner._numbers, owner.optimizer, batch, memory)
        self._slots, self._constants = captured.slots, captured.constants
        entries = [slot for slot in self._slots if slot.key is not None]
        count = captured.num_parameters
        self._parameters = [slot.tensor for slot in self._slots[:count]]
        self._buffers = [slot.tensor for slot in self._slots[count + len(entries) :]]
        #: The parameters with a state, and for each entry of a state that the step updates the place of its parameter among them, and its key.
        self._owners = [*dict.fromkeys(slot.tensor for slot in entries)]
        places = {owner: place for place, owner in enumerate(self._owners)}
        self._places, self._keys = [places[slot.tensor] for slot in entries], [slot.key for slot in entries]
        graph = next(iter(captured.graphs.values()))
        self._draws = _capture.draw_outside(graph)
        rates = [f"lr{i}" for i in range(len(owner.optimizer.param_groups))]
        others = [f"batch{i}" for i in range(len(batch))] + [f"random{i}" for i in range(len(self._draws))]
        names = [slot.name for slot in self._slots] + rates + [name for name, _ in self._constants] + others
        self._is_divided = "main" not in captured.graphs
        self._names, self._is_compared = _unique(names) if self._is_divided else names, False
        #: The dimension along which this rank has a part, for each tensor whose elements are this rank's own.
        held = [*self._updated(), *(None for _ in rates), *(tensor for _, tensor in self._constants)]
        self._dims = {name: dim for name, t in zip(self._names, held) if t is not None and (dim := _divided.dim_of(t)) is not None}
        carry = {i: i for i in range(len(self._slots))}
        options = {**owner.options, "recipe": owner.recipe, "carry": carry, **memory.options}
        self._ranks = owner.ranks
        text = _import.to_linalg(captured.graphs, {"main": names})
        if self._is_divided:
            assert self._ranks is not None
            sizes = [len(part) for part in (self._parameters, entries, self._buffers, rates, self._constants)]
            ends = [*itertools.accumulate(sizes)]
            text = _collectives.write_main(text, _collectives.divide(self._names, ends), self._dims, self._ranks.size)
            options["shard"] = "0:" + ",".join(f"{name}={dim}" for name, dim in self._dims.items())
        elif self._ranks is not None:
            # Statistics of a batch; a parameter's value and its optimizer's state come from gradients that are means.
            statistics = [i for i, s in enumerate(self._slots) if s.tensor.is_floating_point() and not isinstance(s.tensor, nn.Parameter)]
            options |= self._ranks.options(others, len(self._slots), statistics)
        line = _import.definition(owner._module.users_modules())
        self.library = _import.compile_text(text, line, options)
        self._prepared = memory.prepare(self.library, "main")
        if self._ranks is not None:
            self._ranks.join(self.library, self._prepared)
        loss = _capture.values_of(graph)[-1]
        self._loss = tuple(loss.shape), strides_of(loss.shape), loss.dtype
        with at_line(line):
            self._state = owner.state_for(self.library, memory)
        #: Of each result whether it is the loss: the others are written in the memory of arguments.
        self._are_losses = [r.get("alias") is None for r in self._prepared.results]
        self._state_names = [a["name"] for a in self._prepared.arguments if a["kind"] == "state"]
        self._casts = Casts(self.library, "main", memory)

    def _updated(self) -> list[Tensor]:
        """The tensors that the step changes, as they are now."""
        states = [*map(self._optimizer.state.__getitem__, self._owners)]
        # load_state_dict of a state that was saved before the first step removes all of it.
        if not all(states):
            self._make_states([owner for owner, state in zip(self._owners, states) if not state])
        return [*self._parameters, *map(operator.getitem, map(states.__getitem__, self._places), self._keys), *self._buffers]

    def _make_states(self, parameters: list[Tensor]) -> None:
        _optimizer.write_state(self._optimizer, _optimizer.initial_state(self._optimizer, parameters, self._memory))

    def __call__(self, batch: Sequence[Tensor]) -> Tensor:
        memory = self._memory
        if self._state is not None:
            self._state.move_to(memory)  # The model was moved, and runs here again.
        updated = self._updated()
        if not memory.has(updated):
            # That of another device; also numbers of steps, which eager optimizers have on the CPU.
            self._make_states(self._owners)
            updated = self._updated()
        if self._is_divided:
            updated = [*map(_divided.part, updated)]
        if not all(map(Tensor.is_contiguous, updated)):
            raise UnsupportedError("a tensor that the step updates is not contiguous: call .contiguous() for it")
        rates = [memory.number(group["lr"]) for group in self._optimizer.param_groups]
        held = [*updated, *rates, *memory.taken([*(_divided.part(t) for _, t in self._constants), *batch, *(draw() for draw in self._draws)])]
        if self._ranks is not None and not self._is_compared:
            common = dict(zip(self._names, held[: len(updated) + len(rates) + len(self._constants)]))
            common = {name: tensor for name, tensor in common.items() if name not in self._dims}
            self._ranks.compare({**common, **(dict(self._state) if self._state is not None else {})})
            self._is_compared = True
        self._casts.update(held, self._state)
        arguments = [*map(Tensor.data_ptr, held), *pointers(self._state_names, self._state, self._casts)]
        loss = memory.new(*self._loss)
        results = [loss.data_ptr() if is_loss else 0 for is_loss in self._are_losses]
        try:
            self._prepared.call(arguments, results)
        finally:
            torch.autograd.graph.increment_version([*updated, *(self._state.buffers() if self._state is not None else ())])
        self._casts.note(held, self._state)
        return loss


def _unique(names: Sequence[str]) -> list[str]:
    """The names, with a number behind those that others have: a parameter's may be that of another one's state."""
    found: dict[str, None] = {}
    for name in names:
        number = itertools.count(1)
        own = name
        while own in found:
            own = f"{name}.{next(number)}"
        found[own] = None
    return [*found]


def _hashable(value: Any) -> Any:
    if isinstance(value, Tensor):
        return weakref.ref(value)
    return tuple(value) if isinstance(value, list) else value
