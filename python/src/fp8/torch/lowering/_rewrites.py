# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls that are written otherwise before autograd sees them, as their gradients have no static shape or no decomposition.

The gradient of the values in `x[mask] = values` has as many elements as the mask has true ones; as a choice between
both by the mask it has the shape of x.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from ._indexing import is_mask, put_where
from .functions import _extremes, _resizing, _sampling


class Rewrites(TorchFunctionMode):  # type: ignore[misc]
    """Lets PyTorch see other operations in the place of such calls, while a graph is captured."""

    def __torch_function__(self, function: Any, types: Any, arguments: Any = (), options: Any = None) -> Any:
        rule = _RULES.get(function)
        result = rule(*arguments, **(options or {})) if rule is not None else NotImplemented
        return function(*arguments, **(options or {})) if result is NotImplemented else result


def _set_item(x: Tensor, key: Any, value: Any) -> Any:
    """x[key] = value with a mask among slices and numbers, which PyTorch applies before the mask."""
    keys = list(key) if isinstance(key, tuple) else [key]
    masks = [place for place, k in enumerate(keys) if is_mask(k)]
    others = [k for place, k in enumerate(keys) if place not in masks]
    if len(masks) != 1 or any(isinstance(k, bool) for k in others):
        return NotImplemented
    mask = keys[masks[0]]
    if indices := [k for k in others if isinstance(k, (Tensor, Sequence))]:
        rows = _rows_beside(mask, indices)
        if rows is not None:
            x[tuple(rows if k is mask else k for k in keys)] = value
        return NotImplemented if rows is None else None
    if Ellipsis in [k for k in keys if not isinstance(k, Tensor)]:
        place = next(i for i, k in enumerate(keys) if k is Ellipsis)
        used = sum(mask.dim() if k is mask else k is not None and k is not Ellipsis for k in keys)
        keys[place : place + 1] = [slice(None)] * (x.dim() - used)
    place = next(i for i, k in enumerate(keys) if k is mask)
    part = x[(*keys[:place], *[slice(None)] * mask.dim(), *keys[place + 1 :])]
    before = sum(k is None or isinstance(k, slice) for k in keys[:place])
    values = value.to(x.dtype) if isinstance(value, Tensor) else torch.full((), value, dtype=x.dtype)
    part.copy_(put_where(part, before, mask, values))
    return None


def _rows_beside(mask: Tensor, indices: Sequence[Any]) -> Tensor | None:
    """The places where a mask is true, as many as the indices beside it: the mask has as many true elements, or one."""
    sizes = {k.shape[0] if isinstance(k, Tensor) else len(k) for k in indices if not isinstance(k, Tensor) or k.dim() == 1}
    if len(sizes) != 1 or mask.dim() != 1 or sizes == {1} or any(isinstance(k, Tensor) and k.dim() != 1 for k in indices):
        return None
    size = sizes.pop()
    so_far = mask.to(torch.int64).cumsum(0)
    count = so_far[-1]
    place = torch.searchsorted(so_far, torch.where(count == 1, 1, torch.arange(1, size + 1)))
    # An index out of range is the error that eager PyTorch has for another number of true elements.
    return torch.where((count == 1) | (count == size), place, mask.shape[0])


def _index_put(x: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> Any:
    places = [place for place, index in enumerate(indices) if index is not None]
    if len(places) != 1 or not is_mask(indices[places[0]]):
        return NotImplemented
    return put_where(x, places[0], indices[places[0]], values, accumulate)


def _index_put_in_place(x: Tensor, *rest: Any, **options: Any) -> Any:
    result = _index_put(x, *rest, **options)
    return result if result is NotImplemented else x.copy_(result)


_RULES: dict[Any, Callable[..., Any]] = {
    **_resizing.RULES,
    **_sampling.RULES,
    **_extremes.REWRITES,
    Tensor.__setitem__: _set_item,
    Tensor.index_put: _index_put,
    torch.index_put: _index_put,
    torch.ops.aten.index_put: _index_put,
    torch.ops.aten.index_put.default: _index_put,
    Tensor.index_put_: _index_put_in_place,
    torch.index_put_: _index_put_in_place,
}
