# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decompositions of writes by masks and by several indices, of diagonals, and of searches in sorted sequences."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


def is_mask(index: Any) -> bool:
    return isinstance(index, Tensor) and index.dtype in (torch.bool, torch.uint8)


def put_where(x: Tensor, place: int, mask: Tensor, values: Tensor, accumulate: bool = False) -> Tensor:
    """x with values where the mask, which covers the dimensions from `place` on, is true.

    Values have one slice for every true element, in their order, or one for all. Another number of slices than of true
    elements is an error of the call, as in eager PyTorch. Raises IndexError and RuntimeError for shapes that do not fit.
    """
    mask = mask.to(torch.bool)
    if mask.shape != x.shape[place : place + mask.dim()]:
        raise IndexError(f"a mask of the shape {tuple(mask.shape)} does not fit dimension {place} and those after it of a tensor of the shape {tuple(x.shape)}")
    rest = x.dim() - place - mask.dim()
    while values.dim() > place + 1 + rest and values.shape[0] == 1:
        values = values.squeeze(0)
    if values.dim() > rest and not values.shape[values.dim() - 1 - rest]:
        values = _nothing(mask).to(x.dtype)
    elif values.dim() > rest:
        of_mask = values.dim() - 1 - rest
        if values.shape[of_mask] != 1:
            values = _one_after_the_other(values, of_mask, mask)
        values = values.reshape(*values.shape[:of_mask], *(mask.shape if values.shape[of_mask] != 1 else [1] * mask.dim()), *values.shape[of_mask + 1 :])
    if torch.broadcast_shapes(values.shape, x.shape) != x.shape:
        raise RuntimeError(f"values of the shape {tuple(values.shape)} do not fit a tensor of the shape {tuple(x.shape)}")
    where = mask.reshape(*mask.shape, *[1] * rest)
    return torch.where(where, x + values if accumulate else values, x)


def _one_after_the_other(values: Tensor, dim: int, mask: Tensor) -> Tensor:
    """For every element of the mask, in their order, the slice of the values that it gets if it is true."""
    count = values.shape[dim]
    flat = mask.reshape(-1).to(torch.int64)
    place = (flat.cumsum(0) - 1).clamp(min=0)
    # An index out of range is the error that eager PyTorch has for another number of slices.
    place = torch.where(flat.sum() == count, place, count)
    return aten.index(values, [*[None] * dim, place])


def _nothing(mask: Tensor) -> Tensor:
    """0; an error of the call where the mask has a true element."""
    flat = mask.reshape(-1).to(torch.int64)
    if not len(flat):
        return flat.sum()
    # The tensor has two elements at least: torch-mlir does not look at the index of the only one.
    twice = torch.cat([flat, flat])
    return aten.index(twice, [torch.where(flat.sum() == 0, 0, len(twice)).reshape(1)]).squeeze(0)


def _index_put(x: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> Any:
    """Masks by comparison. torch-mlir takes indices that are the first ones, and of one dimension."""
    given = [d for d, index in enumerate(indices) if index is not None]
    tensors = [index for index in indices if index is not None]
    if any(map(is_mask, tensors)):
        return put_where(x, given[0], tensors[0], values, accumulate) if len(tensors) == 1 else NotImplemented
    if len(given) < 2 or (given == list(range(len(given))) and all(index.dim() == 1 for index in tensors)):
        return NotImplemented
    tensors = list(torch.broadcast_tensors(*tensors))
    shape, rest = tensors[0].shape, [d for d in range(x.dim()) if d not in given]
    # Where indices have a slice between them, their dimensions come first in the result of x[indices].
    first = given[0] if given == list(range(given[0], given[-1] + 1)) else 0
    sizes = [x.shape[d] for d in rest]
    values = values.expand(*sizes[:first], *shape, *sizes[first:]).movedim(list(range(first, first + len(shape))), list(range(len(shape))))
    order = [*given, *rest]
    result = aten.index_put(x.permute(order), [index.reshape(-1) for index in tensors], values.reshape(-1, *sizes), accumulate)
    return result.permute([order.index(d) for d in range(x.dim())])


def _diagonal_scatter(x: Tensor, source: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The source along one dimension, spread over the other one, where it is on the diagonal."""
    dim1, dim2 = dim1 % x.dim(), dim2 % x.dim()
    moved = x.movedim((dim1, dim2), (-2, -1))
    rows, columns = moved.shape[-2:]
    hot = torch.arange(rows)[:, None] + offset == torch.arange(columns)
    size = rows if offset >= 0 else columns
    if not source.shape[-1]:
        return x.clone()
    padded = aten.constant_pad_nd(source, [0, size - source.shape[-1]])
    return torch.where(hot, padded.unsqueeze(-1 if offset >= 0 else -2), moved).movedim((-2, -1), (dim1, dim2))


def _block_diag(tensors: Sequence[Tensor]) -> Tensor:
    """Each tensor between zeros."""
    dtype = functools.reduce(torch.promote_types, [t.dtype for t in tensors])
    blocks = [t.to(dtype).reshape(1, -1) if t.dim() < 2 else t.to(dtype) for t in tensors]
    before = [0, *itertools.accumulate(block.shape[1] for block in blocks)]
    return torch.cat([aten.constant_pad_nd(block, [start, before[-1] - start - block.shape[1]]) for block, start in zip(blocks, before)])


def _kthvalue(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    values, places = aten.sort.stable(x, stable=True, dim=dim)
    chosen = values.narrow(dim, k - 1, 1), places.narrow(dim, k - 1, 1)
    return chosen if keepdim else (chosen[0].squeeze(dim), chosen[1].squeeze(dim))


def _index_reduce(x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True) -> Tensor:
    dim = dim % x.dim()
    if reduce == "mean":
        begin = x if include_self else x.index_fill(dim, index, 0)
        counts = torch.ones_like(x) if include_self else torch.zeros_like(x)
        counts = counts.index_add(dim, index, torch.ones_like(source)).clamp(min=1)
        return torch.div(begin.index_add(dim, index, source), counts, rounding_mode=None if x.is_floating_point() else "floor")
    places = index.reshape([-1 if d == dim else 1 for d in range(source.dim())]).expand(source.shape)
    return aten.scatter_reduce(x, dim, places, source, reduce, include_self=include_self)


def _searchsorted(
    sequence: Tensor, values: Tensor, *, out_int32: bool = False, right: bool = False, side: str | None = None, sorter: Tensor | None = None
) -> Tensor:
    """A binary search, step by step as in PyTorch: NaN and sequences that are not sorted find the same places."""
    count = sequence.shape[-1]
    goes_on = torch.gt if right or side == "right" else torch.ge
    begin, end = torch.zeros_like(values, dtype=torch.int64), torch.full_like(values, count, dtype=torch.int64)
    for _ in range(count.bit_length()):
        middle = begin + torch.div(end - begin, 2, rounding_mode="trunc")
        place = middle.clamp(max=count - 1)
        if sorter is not None:
            place = _elements(sorter, place)
        is_open = begin < end
        is_later = goes_on(_elements(sequence, place), values)
        begin, end = torch.where(is_open & ~is_later, middle + 1, begin), torch.where(is_open & is_later, middle, end)
    return begin.to(torch.int32) if out_int32 else begin


def _elements(sequence: Tensor, places: Tensor) -> Tensor:
    """The elements at places along the last dimension; a sequence of one dimension is that of all rows."""
    if sequence.dim() > 1:
        return sequence.gather(-1, places)
    return sequence.index_select(0, places.reshape(-1)).reshape(places.shape)


def _searchsorted_number(sequence: Tensor, value: float, **options: Any) -> Tensor:
    return _searchsorted(sequence, torch.full((), value, dtype=sequence.dtype), **options)


def _bucketize(values: Tensor, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    return _searchsorted(boundaries, values, out_int32=out_int32, right=right)


def _unsafe_index_put(x: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> Any:
    return aten.index_put(x, [index if index is None or is_mask(index) else index.long() for index in indices], values, accumulate)


RULES: dict[Any, Callable[..., Any]] = {
    aten.index_put.default: _index_put,
    aten._unsafe_index_put.default: _unsafe_index_put,
    aten.diagonal_scatter.default: _diagonal_scatter,
    aten.block_diag.default: _block_diag,
    aten.kthvalue.default: _kthvalue,
    aten.index_reduce.default: _index_reduce,
    aten.searchsorted.Tensor: _searchsorted,
    aten.searchsorted.Scalar: _searchsorted_number,
    aten.bucketize.Tensor: _bucketize,
}
