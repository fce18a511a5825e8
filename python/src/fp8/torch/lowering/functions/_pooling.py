# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decompositions of pooling: gradients that torch-mlir has no form for, and images without a batch."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .._halves import HALVES, in_f32

aten = torch.ops.aten


def rules(others: dict[Any, Callable[..., Any]]) -> dict[Any, Callable[..., Any]]:
    """The rules; those for images without a batch leave others to the rules in `others`."""
    batched = {op: _batched(op, others.get(op)) for op in (aten.avg_pool2d.default, aten.max_pool2d.default, aten.max_pool2d_with_indices.default)}
    return {
        **batched,
        aten.avg_pool1d.default: _avg_pool1d,
        aten.avg_pool2d_backward.default: functools.partial(_avg_pool_backward, dims=2),
        aten.avg_pool3d_backward.default: functools.partial(_avg_pool_backward, dims=3),
        aten._adaptive_avg_pool2d_backward.default: functools.partial(_adaptive_avg_pool_backward, dims=2),
        aten._adaptive_avg_pool3d_backward.default: functools.partial(_adaptive_avg_pool_backward, dims=3),
        aten.max_pool2d_with_indices_backward.default: functools.partial(_max_pool_backward, dims=2),
        aten.max_pool3d_with_indices_backward.default: functools.partial(_max_pool_backward, dims=3),
        aten.adaptive_max_pool2d.default: functools.partial(_adaptive_max_pool, dims=2),
        aten.adaptive_max_pool3d.default: functools.partial(_adaptive_max_pool, dims=3),
        aten.adaptive_max_pool2d_backward.default: functools.partial(_adaptive_max_pool_backward, dims=2),
        aten.adaptive_max_pool3d_backward.default: functools.partial(_adaptive_max_pool_backward, dims=3),
        **{op.default: in_f32(_replication_pad_backward) for op in _REPLICATIONS},
    }


def _batched(op: Any, other: Callable[..., Any] | None) -> Callable[..., Any]:
    """torch-mlir takes images in batches alone, and adds bf16 and f16 in their own type."""

    def rule(x: Tensor, *rest: Any, **options: Any) -> Any:
        if op is aten.avg_pool2d.default and x.dtype in HALVES:
            return op(x.float(), *rest, **options).to(x.dtype)
        if x.dim() != 3:
            return other(x, *rest, **options) if other is not None else NotImplemented
        results = op(x.unsqueeze(0), *rest, **options)
        return tuple(result.squeeze(0) for result in results) if isinstance(results, tuple) else results.squeeze(0)

    return rule


def _avg_pool1d(
    x: Tensor, kernel: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] = (0,), ceil_mode: bool = False, count_include_pad: bool = True
) -> Tensor:
    """In two dimensions, as in PyTorch."""
    return aten.avg_pool2d(x.unsqueeze(-2), [1, *kernel], [1, *(stride or kernel)], [0, *padding], ceil_mode, count_include_pad).squeeze(-2)


class _Windows(NamedTuple):
    """Along one dimension, for each element the first and the last window that it is in, and in how many it is at most."""

    first: Tensor
    last: Tensor
    most: int


def _avg_pool_backward(
    grad: Tensor,
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None,
    *,
    dims: int,
) -> Tensor:
    windows = []
    elements = torch.ones((), dtype=torch.int64)
    for dim in range(dims):
        size, count, k = x.shape[dim - dims], grad.shape[dim - dims], kernel[dim % len(kernel)]
        step, pad = stride[dim % len(stride)] if stride else k, padding[dim % len(padding)]
        place, window = torch.arange(size), torch.arange(count)
        windows.append(_Windows(_quotient(place + pad - k + step, step).clamp(min=0), _quotient(place + pad, step), -(-k // step)))
        begin = window * step - pad
        end = (begin + k).clamp(max=size + pad)
        sizes = end - begin if count_include_pad else end.clamp(max=size) - begin.clamp(min=0)
        elements = elements[..., None] * sizes
    return _sum_of_windows(grad / (divisor if divisor is not None else elements.to(grad.dtype)), windows)


def _adaptive_avg_pool_backward(grad: Tensor, x: Tensor, *, dims: int) -> Tensor:
    windows = []
    for dim in range(-dims, 0):
        size, count = x.shape[dim], grad.shape[dim]
        begin, end = _adaptive_windows(size, count)
        grad = grad / (end - begin).reshape(-1, *[1] * (-1 - dim)).to(grad.dtype)
        place = torch.arange(size)
        windows.append(_Windows(_quotient(place * count, size), -_quotient(-(place + 1) * count, size) - 1, -(-count // size) + 1))
    return _sum_of_windows(grad, windows)


def _adaptive_windows(size: int, count: int) -> tuple[Tensor, Tensor]:
    """Where the windows of adaptive pooling begin and end."""
    window = torch.arange(count)
    return _quotient(window * size, count), -_quotient(-(window + 1) * size, count)


def _adaptive_max_pool(x: Tensor, sizes: Sequence[int], *, dims: int) -> tuple[Tensor, Tensor]:
    """One dimension after the other, the last one first, with the place of each maximum among all elements."""
    place = torch.arange(x.shape[-dims:].numel()).reshape(x.shape[-dims:]).expand(x.shape)
    for dim, count in zip(range(-1, -dims - 1, -1), reversed(sizes)):
        begin, end = _adaptive_windows(x.shape[dim], count)
        most = -(-x.shape[dim] // count) + 1
        best = None
        for number in range(most):
            at = torch.minimum(begin + number, end - 1)
            value, where = x.index_select(dim, at), place.index_select(dim, at)
            if best is None:
                best = value, where
                continue
            # The first of equal ones in the order of memory; NaN is the largest.
            later = (value > best[0]) | (value.isnan() if x.is_floating_point() else torch.zeros((), dtype=torch.bool))
            best = torch.where(later, value, best[0]), torch.where(later, where, best[1])
        assert best is not None
        x, place = best
    return x, place


def _quotient(number: Tensor, by: int) -> Tensor:
    return torch.div(number, by, rounding_mode="floor")


def _sum_of_windows(values: Tensor, windows: Sequence[_Windows]) -> Tensor:
    """For each element the sum of the values of its windows along the last dimensions, added in their order as PyTorch does."""
    total: Tensor | None = None
    for numbers in itertools.product(*[range(w.most) for w in windows]):
        term, valid = values, torch.ones((), dtype=torch.bool)
        for dim, (window, number) in enumerate(zip(windows, numbers), -len(windows)):
            place = window.first + number
            valid = valid[..., None] & (place <= window.last) & (place < values.shape[dim])
            term = term.index_select(dim, place.clamp(max=values.shape[dim] - 1))
        term = torch.where(valid, term, torch.zeros((), dtype=values.dtype))
        total = term if total is None else total + term
    assert total is not None
    return total


def _max_pool_backward(
    grad: Tensor, x: Tensor, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, indices: Tensor, *, dims: int
) -> Tensor:
    return _adaptive_max_pool_backward(grad, x, indices, dims=dims)


def _adaptive_max_pool_backward(grad: Tensor, x: Tensor, indices: Tensor, *, dims: int) -> Tensor:
    """Gradients added where the maxima were; torch-mlir's own form is not exact where windows overlap."""
    size = x.shape[-dims:].numel()
    planes = x.shape[:-dims].numel()
    plane = torch.arange(planes, device=x.device)[:, None].expand(planes, indices.shape[-dims:].numel())
    flat = (plane * size + indices.reshape(planes, -1)).reshape(-1)
    return aten.index_put(grad.new_zeros(planes * size), [flat], grad.reshape(-1), True).reshape(x.shape)


#: Gradients of padding with the outermost elements.
_REPLICATIONS = (aten.replication_pad1d_backward, aten.replication_pad2d_backward, aten.replication_pad3d_backward)


def _replication_pad_backward(grad: Tensor, x: Tensor, padding: Sequence[int]) -> Tensor:
    """Sums of what the first and the last element were copied to, dimension by dimension."""
    for place in range(len(padding) // 2):
        dim, (left, right) = x.dim() - 1 - place, padding[2 * place : 2 * place + 2]
        low, high, size = max(left, 0), max(right, 0), x.shape[dim]
        after = [0] * (2 * place)
        middle = aten.constant_pad_nd(grad.narrow(dim, low, grad.shape[dim] - low - high), [*after, max(-left, 0), max(-right, 0)])
        if low:
            middle = middle + aten.constant_pad_nd(grad.narrow(dim, 0, low).sum(dim, keepdim=True), [*after, 0, size - 1])
        if high:
            middle = middle + aten.constant_pad_nd(grad.narrow(dim, grad.shape[dim] - high, high).sum(dim, keepdim=True), [*after, size - 1, 0])
        grad = middle
    return grad
