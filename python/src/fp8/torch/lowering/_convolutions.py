# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decompositions of convolutions that torch-mlir has no form for: transposed and three-dimensional ones of one channel
per group (depthwise), and gradients of those with groups.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from ._halves import HALVES

aten = torch.ops.aten


def _convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Any:
    dims = weight.dim() - 2
    if groups == 1 or (weight.shape[1] != 1 and not (transposed and dims == 3)) or not (transposed or dims == 3):
        return NotImplemented
    stride, padding, dilation, output_padding = (_each(sizes, dims) for sizes in (stride, padding, dilation, output_padding))
    if not transposed:
        return _depthwise(x, weight, bias, stride, padding, dilation)
    x = _with_zeros_between(x, stride)
    kernel = weight.shape[2:]
    around = [d * (k - 1) - p for d, k, p in zip(dilation, kernel, padding)]
    x = aten.constant_pad_nd(x, [width for a, o in reversed([*zip(around, output_padding)]) for width in (a, a + o)])
    # From [inputs, outputs of a group] to [outputs, inputs of a group].
    grouped = weight.reshape(groups, -1, *weight.shape[1:]).transpose(1, 2).flatten(0, 1)
    flipped = grouped.flip(list(range(2, 2 + dims)))
    return aten.convolution(x, flipped, bias, [1] * dims, [0] * dims, dilation, False, [0] * dims, groups)


def _each(sizes: Sequence[int], dims: int) -> list[int]:
    return list(sizes) * dims if len(sizes) == 1 else list(sizes)


def _with_zeros_between(x: Tensor, stride: Sequence[int]) -> Tensor:
    for dim, step in enumerate(stride, 2):
        if step > 1:
            size = x.shape[dim]
            # The new dimension follows dim.
            apart = aten.constant_pad_nd(x.unsqueeze(dim + 1), [*[0] * (2 * (x.dim() - 1 - dim)), 0, step - 1])
            x = apart.flatten(dim, dim + 1).narrow(dim, 0, (size - 1) * step + 1)
    return x


def _taps(x: Tensor, sizes: Sequence[int], kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> Iterator[tuple[tuple[int, ...], Tensor]]:
    """For each place in the kernel the elements of a padded input that it meets; `sizes` are those of the result."""
    for place in itertools.product(*map(range, kernel)):
        part = x
        for dim, (at, size, step, apart) in enumerate(zip(place, sizes, stride, dilation), 2):
            part = aten.slice(part, dim, at * apart, at * apart + (size - 1) * step + 1, step)
        yield place, part


def _padded(x: Tensor, padding: Sequence[int]) -> Tensor:
    widths = [width for p in reversed(padding) for width in (p, p)]
    return aten.constant_pad_nd(x, widths) if any(widths) else x


def _wide(x: Tensor) -> Tensor:
    return x.float() if x.dtype in HALVES else x


def _depthwise(x: Tensor, weight: Tensor, bias: Tensor | None, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int]) -> Tensor:
    """A product for each place in the kernel, and their sum."""
    kernel = weight.shape[2:]
    sizes = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, p, d, k, s in zip(x.shape[2:], padding, dilation, kernel, stride)]
    each = weight.shape[0] // x.shape[1]
    wide = _wide(_padded(x.repeat_interleave(each, 1) if each > 1 else x, padding))
    total = None
    for place, part in _taps(wide, sizes, kernel, stride, dilation):
        factor = _wide(weight[(slice(None), 0, *place)]).reshape(-1, *[1] * len(kernel))
        total = part * factor if total is None else total + part * factor
    assert total is not None
    if bias is not None:
        total = total + _wide(bias).reshape(-1, *[1] * len(kernel))
    return total.to(x.dtype)


def _convolution_backward(
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    bias_sizes: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    mask: Sequence[bool],
) -> Any:
    """Transposed convolutions, which torch-mlir has no form for, as the gradients of the convolution that they are the gradient of.

    Others with groups one group after the other: torch-mlir's form for groups does not verify.
    """
    stride, padding, dilation = (_each(sizes, weight.dim() - 2) for sizes in (stride, padding, dilation))
    if transposed:
        like = stride, padding, dilation, False, [0] * len(stride), groups
        grad_x = aten.convolution(grad, weight, None, *like) if mask[0] else None
        if grad_x is not None and grad_x.shape != x.shape:
            grad_x = grad_x[tuple(map(slice, x.shape))]  # An output that is padded by a stride or more leaves room at the end.
        wide = _padded_like_convolution(x, grad, weight, stride, padding, dilation)
        grad_weight = aten.convolution_backward(wide, grad, weight, None, *like, [False, True, False])[1] if mask[1] else None
        return grad_x, grad_weight, grad.sum([0, *range(2, grad.dim())]) if mask[2] else None
    if groups == 1:
        return NotImplemented
    if weight.shape[1] == 1:
        return _depthwise_backward(grad, x, weight, stride, padding, dilation, mask)
    parts = zip(grad.chunk(groups, 1), x.chunk(groups, 1), weight.chunk(groups, 0))
    sizes = [bias_sizes[0] // groups] if bias_sizes else None
    same = sizes, stride, padding, dilation, False, output_padding, 1, mask
    of_x, of_weight, of_bias = zip(*[aten.convolution_backward(*part, *same) for part in parts])
    return tuple(torch.cat(g, dim) if wanted else None for g, dim, wanted in zip((of_x, of_weight, of_bias), (1, 0, 0), mask))


def _padded_like_convolution(x: Tensor, grad: Tensor, weight: Tensor, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int]) -> Tensor:
    """x with zeros at its end, so that it has the size of a convolution of `grad`."""
    spans = [step * (size - 1) + 1 for size, step in zip(weight.shape[2:], dilation)]
    sizes = [(size + 2 * p - span) // step + 1 for size, p, span, step in zip(grad.shape[2:], padding, spans, stride)]
    more = [size - own for size, own in zip(sizes, x.shape[2:])]
    return aten.constant_pad_nd(x, [n for extra in reversed(more) for n in (0, extra)]) if any(more) else x


def _depthwise_backward(
    grad: Tensor, x: Tensor, weight: Tensor, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], mask: Sequence[bool]
) -> tuple[Tensor | None, ...]:
    kernel, channels = weight.shape[2:], weight.shape[0]
    each = channels // x.shape[1]
    grad_x = grad_weight = None
    if mask[0]:
        rest = [n + 2 * p - d * (k - 1) - 1 - (m - 1) * s for n, p, d, k, m, s in zip(x.shape[2:], padding, dilation, kernel, grad.shape[2:], stride)]
        grad_x = aten.convolution(grad, weight, None, stride, padding, dilation, True, rest, channels)
        if each > 1:
            grad_x = _wide(grad_x).unflatten(1, (x.shape[1], each)).sum(2).to(x.dtype)
    if mask[1]:
        wide, wide_grad = _wide(_padded(x.repeat_interleave(each, 1) if each > 1 else x, padding)), _wide(grad)
        sums = [(part * wide_grad).sum([0, *range(2, grad.dim())]) for _, part in _taps(wide, grad.shape[2:], kernel, stride, dilation)]
        grad_weight = torch.stack(sums, -1).reshape(weight.shape).to(weight.dtype)
    return grad_x, grad_weight, grad.sum([0, *range(2, grad.dim())]) if mask[2] else None


RULES: dict[Any, Callable[..., Any]] = {
    aten.convolution.default: _convolution,
    aten.convolution_backward.default: _convolution_backward,
}
