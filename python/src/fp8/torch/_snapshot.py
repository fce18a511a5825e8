# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether the step of the last call fits the next one: a quick comparison, as small steps take as long as their Python."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from ._model import Loss

_kind = operator.attrgetter("dtype", "shape", "device", "requires_grad")
_values = operator.methodcaller("values")


class Snapshot:
    """Modules, tensors and the optimizer's options as a call finds them, all but learning rates.

    Objects are compared by their identity, in C, so that a module takes some microseconds; of tensors what a compiled step
    depends on as well. A change that does not matter to it counts too: the caller then looks for the step by its key.
    """

    def __init__(self, module: Loss, optimizer: torch.optim.Optimizer, batch: Sequence[Tensor]) -> None:
        self._modules = module.users_modules()
        self._attributes = [*map(vars, self._modules)]
        self._optimizer, self._groups = optimizer, [*optimizer.param_groups]
        self._options = _options(self._groups)
        self._items = _Items([*self._attributes, self._options])
        self._tensors = module.users_tensors()
        self._kinds, self._batch = [*map(_kind, self._tensors)], [*map(_kind, batch)]

    def holds(self, batch: Sequence[Tensor]) -> bool:
        """Whether all is as it was, for a batch of tensors of the same kinds."""
        return (
            [*map(_kind, batch)] == self._batch
            and _are_same(self._optimizer.param_groups, self._groups)
            and _are_same(_options(self._groups), self._options)
            and _are_same([*map(vars, self._modules)], self._attributes)
            and self._items.are_same()
            and [*map(_kind, self._tensors)] == self._kinds
        )


def _options(groups: Sequence[dict[str, Any]]) -> list[Any]:
    """Names and values of all groups."""
    return [item for group in groups for name, value in group.items() if name != "lr" for item in (name, value)]


def _are_same(some: Sequence[Any], others: Sequence[Any]) -> bool:
    return len(some) == len(others) and all(map(operator.is_, some, others))


class _Items:
    """The objects in dicts, lists and tuples, at all depths: which ones, in which order, under which keys."""

    def __init__(self, containers: Iterable[Any]) -> None:
        self._dicts: list[dict[Any, Any]] = []
        self._lists: list[list[Any]] = []
        #: Most modules have a dozen dicts of hooks without any.
        self._empty: list[Any] = []
        found: set[int] = set()
        for container in containers:
            self._add(container, found)
        self._sizes, self._before = self._sizes_now(), self._now()

    def _add(self, value: Any, found: set[int]) -> None:
        if not isinstance(value, (dict, list, tuple)) or id(value) in found:
            return
        found.add(id(value))
        items = [*(value.values() if isinstance(value, dict) else value)]
        if not items:
            self._empty.append(value)
        elif isinstance(value, dict):
            self._dicts.append(value)
        elif isinstance(value, list):
            self._lists.append(value)
        for item in items:
            self._add(item, found)

    def _sizes_now(self) -> list[int]:
        return [*map(len, self._dicts), *map(len, self._lists)]

    def _now(self) -> list[Any]:
        return [*chain.from_iterable(self._dicts), *chain.from_iterable(map(_values, self._dicts)), *chain.from_iterable(self._lists)]

    def are_same(self) -> bool:
        return not any(self._empty) and self._sizes_now() == self._sizes and _are_same(self._now(), self._before)
