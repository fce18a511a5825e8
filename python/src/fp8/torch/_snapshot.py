# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether the step of the last call fits the next one: a quick comparison, as small steps take as long as their Python."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ._model import Loss

_kind = operator.attrgetter("dtype", "shape", "device", "requires_grad")


class Snapshot:
    """Modules, tensors and the optimizer's options as a call finds them.

    All comparisons run in C but those of objects, so that a module takes about a microsecond. A change that does not matter
    to a compiled step counts as well: the caller then looks for the step by what it depends on.
    """

    def __init__(self, module: Loss, optimizer: torch.optim.Optimizer, batch: Sequence[Tensor]) -> None:
        self._optimizer = optimizer
        self._modules = module.users_modules()
        self._attributes = [_copied(vars(m)) for m in self._modules]
        self._tensors = module.users_tensors()
        self._kinds = [*map(_kind, self._tensors)]
        self._groups = [{name: _copied(value) for name, value in group.items() if name != "lr"} for group in optimizer.param_groups]
        self._batch = [*map(_kind, batch)]

    def holds(self, batch: Sequence[Tensor]) -> bool:
        """Whether all is as it was, for a batch of tensors of the same kinds."""
        groups = self._optimizer.param_groups
        try:
            return (
                [*map(_kind, batch)] == self._batch
                and all(map(operator.eq, self._attributes, map(vars, self._modules)))
                and [*map(_kind, self._tensors)] == self._kinds
                and len(groups) == len(self._groups)
                and all(copy == {name: value for name, value in group.items() if name != "lr"} for copy, group in zip(self._groups, groups))
            )
        except Exception:  # An object's own comparison, which may be anything: two arrays of numpy have no truth value.
            return False


class _Same:
    """Equal to one object only: numbers of several types are equal, and tensors compare their elements."""

    __slots__ = ("_object",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Any) -> None:
        self._object = value

    def __eq__(self, other: object) -> bool:
        return other is self._object


def _copied(value: Any) -> Any:
    """A copy that is equal to the value until it or anything in it is another object."""
    if isinstance(value, dict):
        return {name: _copied(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_copied(item) for item in value]
        return items if isinstance(value, list) else tuple(items)
    return value if type(value) is str else _Same(value)
