# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decompositions for bf16 and f16 that round where PyTorch's kernels for the CPU do.

Most kernels compute in f32 and round once (_halves); those of these operations round some or all of what is in between,
so that eager PyTorch and compiled code have the same bits. Operations on bf16 and f16 below round each.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from .._halves import HALVES, rounded

aten = torch.ops.aten

_MEAN, _SUM = 1, 2


def rules(others: dict[Any, Callable[..., Any]]) -> dict[Any, Callable[..., Any]]:
    """The rules, which leave tensors of other types to the rules in `others`."""
    norms = {op: functools.partial(rule, others[op]) for op, rule in _NORMS.items()}
    return {op: _for_halves(rule, others.get(op)) for op, rule in _HALVES.items()} | norms | _ALL


def _for_halves(rule: Callable[..., Any], other: Callable[..., Any] | None) -> Callable[..., Any]:
    @functools.wraps(rule)
    def chosen(*arguments: Any, **options: Any) -> Any:
        dtypes = {a.dtype for a in arguments if isinstance(a, Tensor)}
        result = rule(*arguments, **options) if len(dtypes) == 1 and dtypes <= {*HALVES} else NotImplemented
        return other(*arguments, **options) if result is NotImplemented and other is not None else result

    return chosen


def _pow(x: Tensor, exponent: float) -> Any:
    """Cubes and inverse squares are products, of f16 in f32."""
    if x.dtype in HALVES and (result := _with_rounded_numbers(aten.pow.Tensor_Scalar, x, exponent)) is not NotImplemented:
        return result
    if isinstance(exponent, bool) or exponent not in (3, -2) or not x.is_floating_point():
        return NotImplemented
    wide = x.float() if x.dtype == torch.float16 else x
    return (wide * wide * wide if exponent == 3 else 1 / (wide * wide)).to(x.dtype)


def _with_rounded_numbers(op: Any, *arguments: Any, **options: Any) -> Any:
    """Numbers get the type of the tensor beside them."""
    dtype = next(a.dtype for a in arguments if isinstance(a, Tensor))
    numbers = [rounded(a, dtype) if isinstance(a, (int, float)) and not isinstance(a, bool) else a for a in arguments]
    if all(a is b or isinstance(a, (int, float)) and (a == b or math.isnan(a)) for a, b in zip(arguments, numbers)):
        return NotImplemented
    return op(*numbers, **options)


def _add_multiple(op: Any, x: Tensor, y: Any, alpha: float = 1) -> Any:
    """A number that a factor multiplies is rounded; one that is added alone is not."""
    return NotImplemented if alpha == 1 else _with_rounded_numbers(op, x, y, alpha=alpha)


def _mean(x: Tensor, dim: Sequence[int] | None = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Any:
    """Sum and quotient in f32."""
    return torch.mean(x.float(), dim, keepdim).to(x.dtype) if dtype in (None, x.dtype) else NotImplemented


def _var_mean(x: Tensor, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    return torch.var(x, dim, correction=correction, keepdim=keepdim), torch.mean(x, dim, keepdim)


def _norm(x: Tensor, p: float | None = None, dim: Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
    """torch-mlir's form rounds powers."""
    return torch.linalg.vector_norm(x, 2 if p is None else p, dim or None, keepdim)


def _mse_loss(x: Tensor, y: Tensor, reduction: int = _MEAN) -> Tensor:
    squares = (x - y) * (x - y)
    return squares.mean() if reduction == _MEAN else squares.sum() if reduction == _SUM else squares


def _mse_loss_backward(grad: Tensor, x: Tensor, y: Tensor, reduction: int) -> Tensor:
    return (x - y) * rounded(2 / x.numel() if reduction == _MEAN else 2.0, x.dtype) * grad


def _huber_loss(x: Tensor, y: Tensor, reduction: int = _MEAN, delta: float = 1.0) -> Tensor:
    """Of f16 the elements are rounded once; of bf16 every operation, and delta."""
    if x.dtype == torch.float16:
        size = (x.float() - y.float()).abs()
        loss = torch.where(size < delta, 0.5 * size * size, delta * (size - 0.5 * delta)).to(x.dtype)
    else:
        size, delta = (x - y).abs(), rounded(delta, x.dtype)
        loss = torch.where(size < delta, 0.5 * size * size, delta * (size - rounded(0.5 * delta, x.dtype)))
    return loss.mean() if reduction == _MEAN else loss.sum() if reduction == _SUM else loss


def _huber_loss_backward(grad: Tensor, x: Tensor, y: Tensor, reduction: int, delta: float) -> Tensor:
    factor, delta = rounded(1 / x.numel() if reduction == _MEAN else 1.0, x.dtype), rounded(delta, x.dtype)
    difference, outside = x - y, grad * factor * delta
    return torch.where(difference <= -delta, -outside, torch.where(difference >= delta, outside, difference * factor * grad))


def _glu_backward(grad: Tensor, x: Tensor, dim: int) -> Tensor:
    """The sigmoid is rounded: it is half of the result before it is multiplied."""
    value, gate = x.chunk(2, dim)
    sigmoid = torch.sigmoid(gate)
    of_gate = ((1 - sigmoid.float()) * sigmoid.float() * value.float() * grad.float()).to(x.dtype)
    return torch.cat([sigmoid * grad, of_gate], dim)


def _sigmoid_backward(grad: Tensor, y: Tensor) -> Any:
    """Of f16 alone."""
    return grad * (1 - y) * y if y.dtype == torch.float16 else NotImplemented


def _log_softmax(x: Tensor, dim: int, half_to_float: bool) -> Any:
    """Along the last dimension; along others it is rounded once."""
    if half_to_float or x.dim() == 0 or dim % x.dim() != x.dim() - 1:
        return NotImplemented
    wide = x.float()
    shifted = wide - wide.amax(dim, keepdim=True)
    logarithm = shifted.exp().sum(dim, keepdim=True).to(x.dtype).log()
    return (shifted - logarithm.float()).to(x.dtype)


def _logsumexp(x: Tensor, dim: Sequence[int], keepdim: bool = False) -> Any:
    if x.numel() == 0:
        return NotImplemented
    largest = x.amax(dim, keepdim=True)
    largest = torch.where(largest.abs() == torch.inf, torch.zeros((), dtype=x.dtype), largest)
    return (x - largest).exp().sum(dim, keepdim).log() + (largest if keepdim else largest.squeeze(dim))


def _xlogy(logarithm: Callable[[Tensor], Tensor], x: Any, y: Any) -> Tensor:
    """A number gets the type of the tensor beside it."""
    dtype = (x if isinstance(x, Tensor) else y).dtype
    x, y = (v if isinstance(v, Tensor) else torch.full((), v, dtype=dtype) for v in (x, y))
    product = torch.where(x == 0, torch.zeros((), dtype=dtype), x * logarithm(y))
    return torch.where(y.isnan(), y, product)


def _entr(x: Tensor) -> Tensor:
    negative = torch.where(x == 0, torch.zeros((), dtype=x.dtype), torch.full((), -torch.inf, dtype=x.dtype))
    return torch.where(x.isnan(), x, torch.where(x > 0, -x * x.log(), negative))


def _ldexp(x: Tensor, exponent: Tensor) -> Tensor:
    dtype = torch.result_type(x, exponent)
    return (x * torch.pow(2.0, exponent)).to(dtype if dtype.is_floating_point else torch.get_default_dtype())


def _addr(x: Tensor, column: Tensor, row: Tensor, beta: float = 1, alpha: float = 1) -> Tensor:
    product = (rounded(alpha, x.dtype) * column)[:, None] * row
    return product if beta == 0 else rounded(beta, x.dtype) * x + product


def _bounds(eps: float, dtype: torch.dtype) -> tuple[float, float]:
    low = rounded(eps, dtype) if dtype in HALVES else eps
    return low, rounded(1 - low, dtype) if dtype in HALVES else 1 - low


def _logit(x: Tensor, eps: float | None = None) -> Tensor:
    """With eps above 0.5 the bounds are in the wrong order, and the lower one counts."""
    x = x if x.is_floating_point() else x.to(torch.get_default_dtype())
    if eps is not None and eps >= 0:
        low, high = (torch.full((), bound, dtype=x.dtype) for bound in _bounds(eps, x.dtype))
        x = torch.where(x < low, low, torch.where(x > high, high, x))
    return (x / (1 - x)).log()


def _logit_backward(grad: Tensor, x: Tensor, eps: float | None = None) -> Tensor:
    clamped = eps is not None and eps >= 0
    low, high = _bounds(eps, x.dtype) if clamped and eps is not None else (0.0, 1.0)
    outside = torch.full((), 0.0 if clamped else torch.nan, dtype=x.dtype)
    return torch.where((x < low) | (x > high), outside, grad / (x * (1 - x)))


def _group_norm(rule: Callable[..., Any], x: Tensor, weight: Tensor | None, *rest: Any) -> tuple[Tensor, ...]:
    """In f32. Mean and scale have the type of the weight, which may be f32 beside bf16."""
    types = x.dtype, *[weight.dtype if weight is not None else x.dtype] * 2
    return _in_f32(rule, types, x, weight, *rest) if x.dtype in HALVES else rule(x, weight, *rest)


def _group_norm_backward(rule: Callable[..., Any], grad: Tensor, x: Tensor, mean: Tensor, scale: Tensor, weight: Tensor | None, *rest: Any) -> Any:
    types = x.dtype, *[weight.dtype if weight is not None else x.dtype] * 2
    arguments = grad, x, mean, scale, weight, *rest
    return _in_f32(rule, types, *arguments) if x.dtype in HALVES else rule(*arguments)


def _in_f32(rule: Callable[..., Any], types: Sequence[torch.dtype], *arguments: Any) -> tuple[Any, ...]:
    """The results of a rule for f32, in these types."""
    results = rule(*[a.float() if isinstance(a, Tensor) else a for a in arguments])
    return tuple(result if result is None else result.to(dtype) for result, dtype in zip(results, types))


_NORMS: dict[Any, Callable[..., Any]] = {
    aten.native_group_norm.default: _group_norm,
    aten.native_group_norm_backward.default: _group_norm_backward,
}

_COMPARISONS = [op.Scalar for op in (aten.eq, aten.ne, aten.lt, aten.le, aten.gt, aten.ge)]
_xlog1py = aten.special_xlog1py
_HALVES: dict[Any, Callable[..., Any]] = {
    **{op: functools.partial(_add_multiple, op) for op in (aten.add.Tensor, aten.add.Scalar, aten.sub.Tensor, aten.sub.Scalar)},
    **{op: functools.partial(_with_rounded_numbers, op) for op in (*_COMPARISONS, aten.pow.Scalar)},
    **{op: _mean for op in (aten.mean.dim, aten.mean.default)},
    aten.var_mean.correction: _var_mean,
    **{op: _norm for op in (aten.norm.Scalar, aten.norm.ScalarOpt_dim)},
    aten.mse_loss.default: _mse_loss,
    aten.mse_loss_backward.default: _mse_loss_backward,
    aten.huber_loss_backward.default: _huber_loss_backward,
    aten.glu_backward.default: _glu_backward,
    aten.sigmoid_backward.default: _sigmoid_backward,
    aten._log_softmax.default: _log_softmax,
    aten.logsumexp.default: _logsumexp,
    aten.huber_loss.default: _huber_loss,
    **{op: functools.partial(_xlogy, torch.log) for op in (aten.xlogy.Tensor, aten.xlogy.Scalar_Self, aten.xlogy.Scalar_Other)},
    **{op: functools.partial(_xlogy, torch.log1p) for op in (_xlog1py.default, _xlog1py.self_scalar, _xlog1py.other_scalar)},
    aten.special_entr.default: _entr,
    aten.addr.default: _addr,
    aten.logit_backward.default: _logit_backward,
}

#: Rules for all types.
_ALL: dict[Any, Callable[..., Any]] = {
    aten.pow.Tensor_Scalar: _pow,
    aten.ldexp.Tensor: _ldexp,
    aten.logit.default: _logit,
}
