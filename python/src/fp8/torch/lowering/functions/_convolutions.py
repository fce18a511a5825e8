# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decompositions of convolutions that torch-mlir has no form for: transposed and three-dimensional ones of one channel
per group (depthwise), and gradients of those with groups. Convolutions whose windows do not overlap (1 × 1, patches) and
their gradients are one matrix product each, whose rows are the windows of all images.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .._halves import HALVES

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
    stride, padding, dilation, output_padding = (_each(sizes, dims) for sizes in (stride, padding, dilation, output_padding))
    if groups == 1 and _are_apart(weight.shape[2:], stride, dilation):
        if transposed:
            return _from_windows(x, weight, bias, _Windows.of_transposed(x, weight, stride, padding, output_padding))
        return _by_windows(x, weight, bias, _Windows.of(x, weight, stride, padding))
    if groups == 1 or (weight.shape[1] != 1 and not (transposed and dims == 3)) or not (transposed or dims == 3):
        return NotImplemented
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
    if groups == 1 and not _are_apart(weight.shape[2:], stride, dilation):
        return NotImplemented
    if groups == 1:
        return _windows_backward(grad, x, weight, _Windows(x.shape[2:], grad.shape[2:], weight.shape[2:], stride, padding), mask)
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


def _are_apart(kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> bool:
    """Whether no two windows have an element in common."""
    return all(size == 1 or size <= step and apart == 1 for size, step, apart in zip(kernel, stride, dilation))


class _Windows(NamedTuple):
    """The windows of a convolution in which no two have an element in common; each field has a number for each dimension of space."""

    image: Sequence[int]
    counts: Sequence[int]
    kernel: Sequence[int]
    stride: Sequence[int]
    padding: Sequence[int]

    @classmethod
    def of(cls, x: Tensor, weight: Tensor, stride: Sequence[int], padding: Sequence[int]) -> _Windows:
        image, kernel = x.shape[2:], weight.shape[2:]
        counts = [(n + 2 * p - k) // s + 1 for n, k, s, p in zip(image, kernel, stride, padding)]
        return cls(image, counts, kernel, stride, padding)

    @classmethod
    def of_transposed(cls, x: Tensor, weight: Tensor, stride: Sequence[int], padding: Sequence[int], output_padding: Sequence[int]) -> _Windows:
        counts, kernel = x.shape[2:], weight.shape[2:]
        image = [(n - 1) * s - 2 * p + k + o for n, k, s, p, o in zip(counts, kernel, stride, padding, output_padding)]
        return cls(image, counts, kernel, stride, padding)

    def widths(self) -> list[int]:
        """The widths that are padded, or cut off where negative, so that an image is `counts` times `stride`; the last dimension first."""
        ends = [count * step - size - p for size, count, step, p in zip(self.image, self.counts, self.stride, self.padding)]
        return [width for p, end in reversed([*zip(self.padding, ends)]) for width in (p, end)]

    def rows(self, x: Tensor) -> Tensor:
        """[batch · counts, channels · kernel] of [batch, channels, *image]."""
        parts = [size for sizes in zip(self.counts, self.stride) for size in sizes]
        x = _pad(x, self.widths()).reshape(*x.shape[:2], *parts)
        for dim, size in enumerate(self.kernel):
            x = x.narrow(2 * dim + 3, 0, size)
        places, inner = range(2, x.dim(), 2), range(3, x.dim(), 2)
        return x.permute(0, *places, 1, *inner).reshape(x.shape[0] * math.prod(self.counts), x.shape[1] * math.prod(self.kernel))

    def image_of(self, rows: Tensor, batch: int) -> Tensor:
        """[batch, channels, *image] of [batch · counts, channels · kernel], zeros between the windows."""
        dims = len(self.kernel)
        x = rows.reshape(batch, *self.counts, rows.shape[1] // math.prod(self.kernel), *self.kernel)
        x = x.permute(0, dims + 1, *[place for dim in range(dims) for place in (1 + dim, dims + 2 + dim)])
        x = _pad(x, [width for size, step in reversed([*zip(self.kernel, self.stride)]) for width in (0, step - size, 0, 0)])
        x = x.reshape(*x.shape[:2], *[count * step for count, step in zip(self.counts, self.stride)])
        return _pad(x, [-width for width in self.widths()])


def _pad(x: Tensor, widths: list[int]) -> Tensor:
    return aten.constant_pad_nd(x, widths) if any(widths) else x


def _places_as_rows(x: Tensor) -> Tensor:
    """[batch · space, channels] of [batch, channels, *space]."""
    return x.movedim(1, -1).reshape(x.shape[0] * math.prod(x.shape[2:]), x.shape[1])


def _product(x: Tensor, y: Tensor, bias: Tensor | None) -> Tensor:
    """In f32 where a bias follows: PyTorch rounds after it."""
    return x @ y if bias is None else _wide(x) @ _wide(y)


def _by_windows(x: Tensor, weight: Tensor, bias: Tensor | None, windows: _Windows) -> Any:
    """Where the last window leaves less than a stride of the image: fp8-compile makes others a product, without a transpose of the result."""
    if all(k == 1 or n * s <= size + 2 * p for size, n, k, s, p in zip(*windows)):
        return NotImplemented
    result = _product(windows.rows(x), weight.flatten(1).t(), bias)
    if bias is not None:
        result = (result + _wide(bias)).to(x.dtype)
    return result.reshape(x.shape[0], *windows.counts, weight.shape[0]).movedim(-1, 1)


def _from_windows(x: Tensor, weight: Tensor, bias: Tensor | None, windows: _Windows) -> Tensor:
    """A transposed convolution of `x`, or the gradient of a convolution's input by that of its result, `x`; weight: [channels of x, others, *kernel]."""
    result = windows.image_of(_product(_places_as_rows(x), weight.flatten(1), bias), x.shape[0])
    return result if bias is None else (result + _wide(bias).reshape(bias.shape[0], *[1] * len(windows.kernel))).to(x.dtype)


def _windows_backward(grad: Tensor, x: Tensor, weight: Tensor, windows: _Windows, mask: Sequence[bool]) -> tuple[Tensor | None, ...]:
    grad_x = _from_windows(grad, weight, None, windows) if mask[0] else None
    grad_weight = (_places_as_rows(grad).t() @ windows.rows(x)).reshape(weight.shape) if mask[1] else None
    return grad_x, grad_weight, grad.sum([0, *range(2, grad.dim())]) if mask[2] else None


RULES: dict[Any, Callable[..., Any]] = {
    aten.convolution.default: _convolution,
    aten.convolution_backward.default: _convolution_backward,
}
