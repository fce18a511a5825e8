# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The model of a training step with its loss, and what of it a compiled step depends on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from .._errors import warn
from ._state import ATTRIBUTE

#: The attributes of every module, among them its mode, and the FP8 state.
_OF_ALL_MODULES = frozenset(vars(nn.Module())) | {ATTRIBUTE}

#: So many compilations for other numbers are worth a warning.
_MANY = 8


class Loss(nn.Module):  # type: ignore[misc]
    """The model and its loss as one module."""

    def __init__(self, model: nn.Module, loss: Callable[..., Tensor] | None, autocast: torch.dtype | None) -> None:
        super().__init__()
        self.model, self.loss, self.autocast = model, loss, autocast
        #: The buffers in whose place the last call of forward put other tensors.
        self.replaced: set[str] = set()
        #: The type of device that it is traced for.
        self._kind = "cpu"

    @contextlib.contextmanager
    def on(self, kind: str) -> Iterator[None]:
        """Within the block autocast is that of this type of device."""
        before, self._kind = self._kind, kind
        try:
            yield
        finally:
            self._kind = before

    def forward(self, *batch: Tensor) -> Tensor:
        before = dict(self.named_buffers())
        dtype = self.autocast or (torch.get_autocast_dtype(self._kind) if torch.is_autocast_enabled(self._kind) else None)
        with torch.autocast(self._kind, dtype=dtype or torch.bfloat16, enabled=dtype is not None):
            loss = self.model(*batch) if self.loss is None else self.loss(self.model(*batch[:-1]), batch[-1])
        if not isinstance(loss, Tensor):
            raise TypeError(f"the loss is of type {type(loss).__name__}: return one tensor, the loss alone")
        if loss.numel() != 1:
            raise ValueError(f"the loss has the shape {tuple(loss.shape)}: return a scalar, as by .mean()")
        self.replaced = {name for name, buffer in self.named_buffers() if name in before and buffer is not before[name]}
        return loss

    def users_modules(self) -> list[nn.Module]:
        """The modules of the model and the loss."""
        return [m for m in self.modules() if m is not self]

    def users_tensors(self) -> list[Tensor]:
        """Their parameters, buffers, and attributes that are tensors."""
        return [t for m in self.users_modules() for t in (*m._parameters.values(), *m._buffers.values(), *vars(m).values()) if isinstance(t, Tensor)]

    def kind(self) -> tuple[Any, ...]:
        """The modules' modes and hooks, and the tensors but for their values."""
        modules = self.users_modules()
        return (
            tuple((m.training, *m._forward_hooks, *m._forward_pre_hooks, *m._backward_hooks, *m._backward_pre_hooks) for m in modules),
            tuple((id(t), t.dtype, t.shape, t.device, t.requires_grad) for t in self.users_tensors()),
        )


class Numbers:
    """Numbers and texts that are attributes of modules, and the optimizer's options: constants of a compiled step."""

    def __init__(self, loss: Loss, optimizer: torch.optim.Optimizer) -> None:
        self._loss, self._optimizer = loss, optimizer
        self._options: dict[str, Any] = {}
        self._compiled: dict[str, Any] | None = None
        #: How often each of them led to a compilation.
        self._counts: dict[str, int] = {}

    def values(self) -> tuple[Any, ...]:
        """All of them, to be compared."""
        return tuple((name, _plain(value)) for m in self._loss.users_modules() for name, value in vars(m).items() if name not in _OF_ALL_MODULES)

    def _by_name(self) -> dict[str, Any]:
        modules = ((path.removeprefix("model").removeprefix("."), m) for path, m in self._loss.named_modules() if m is not self._loss)
        return {f"{path}.{name}".removeprefix("."): _plain(value) for path, m in modules for name, value in vars(m).items() if name not in _OF_ALL_MODULES}

    def note_compilation(self) -> None:
        """Notes with which numbers a step is compiled. Warns of those that change often."""
        before, self._compiled = self._compiled or {}, self._by_name()
        self._count(before, self._compiled, "of the model changed: keep what changes from step to step in a tensor (register_buffer), and change it in place")
        before, self._options = self._options, {key: _plain(v) for g in self._optimizer.param_groups for key, v in g.items() if key not in ("params", "lr")}
        self._count(before, self._options, "of the optimizer changed: let a scheduler change learning rates alone, as with cycle_momentum=False")

    def _count(self, before: dict[str, Any], now: dict[str, Any], advice: str) -> None:
        for name in [name for name, value in now.items() if before.get(name, value) != value]:
            self._counts[name] = self._counts.get(name, 0) + 1
            if self._counts[name] == _MANY:
                warn(f"the step was compiled {_MANY} times because '{name}' {advice}")

    def warn_of_changes(self) -> None:
        """Warns of numbers that forward has changed while it was traced: a compiled step does not."""
        assert self._compiled is not None
        for name, value in self._by_name().items():
            if isinstance(before := self._compiled.get(name), tuple) and before != value:
                warn(
                    f"forward changes '{name}' of the model, which the compiled step leaves as it is: "
                    "let it be a tensor (register_buffer), and change it in place"
                )


def _plain(value: Any) -> Any:
    """A number or text with its type; of a list or dict those in it; for anything else its type.

    Tensors are all alike: other types stand in their places while a step is traced, also in lists (nn.LSTM's weights).
    """
    if isinstance(value, Tensor):
        return Tensor
    if isinstance(value, (list, tuple)):
        return type(value), tuple(map(_plain, value))
    if isinstance(value, dict):
        return type(value), tuple((key if isinstance(key, str) else _plain(key), _plain(item)) for key, item in value.items())
    return (type(value), value) if isinstance(value, (bool, int, float, complex, str, torch.dtype)) else type(value)
