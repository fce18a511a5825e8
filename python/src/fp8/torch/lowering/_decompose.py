# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decompositions: ATen operations that torch-mlir has no linalg form for, or a wrong or slow one.

Most are PyTorch's own; those written here say what is the matter with the operation.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._decomp import core_aten_decompositions, get_decompositions

from . import _empty, _halves, _indexing, _integers, _ranges, _scalars
from .functions import _convolutions, _division, _exact, _extremes, _groups, _limits, _orders, _pooling, _roundings, _special

aten = torch.ops.aten

# Decompositions of PyTorch that are left out: torch-mlir's own forms are shorter, or theirs need
# operations that it lacks (complex numbers).
_LEFT_TO_TORCH_MLIR = {
    aten.all, aten.empty_like, aten.eye, aten.isclose, aten.isfinite, aten.linalg_norm, aten.linalg_vector_norm, aten.logaddexp,
    aten.logaddexp2, aten.norm, aten.one_hot, aten.rms_norm, aten.roll, aten.stft, aten.istft,
}  # fmt: skip

# Decompositions of PyTorch that are not among its core ones.
_MORE = [
    aten._adaptive_avg_pool2d, aten._euclidean_dist, aten._log_softmax, aten._native_batch_norm_legit, aten._native_batch_norm_legit.no_stats,
    aten._native_batch_norm_legit_functional, aten._native_batch_norm_legit_no_training, aten._prelu_kernel_backward, aten._to_copy,
    aten.addmm, aten.addmv, aten.dist, aten.max_pool3d_with_indices, aten.cudnn_batch_norm_backward, aten.diag, aten.full, aten.glu_backward,
    aten.grid_sampler_2d, aten.huber_loss_backward, aten.leaky_relu_backward, aten.logsumexp, aten.mse_loss_backward,
    aten.native_batch_norm_backward, aten.native_dropout_backward, aten.native_group_norm, aten.native_group_norm_backward,
    aten.gelu, aten.gelu_backward, aten.native_layer_norm, aten.scaled_dot_product_attention, aten.select_scatter, aten.silu_backward,
    aten._batch_norm_with_update, aten._batch_norm_with_update_functional, aten.batch_norm_backward,
    aten.narrow_copy, aten.permute_copy, aten.unbind_copy, aten.view_copy,
    aten.softplus_backward, aten.squeeze.dims, aten.upsample_bilinear2d.vec, aten.upsample_nearest2d,
]  # fmt: skip


# Decompositions that round every operation to the type of the tensors, where PyTorch's kernels round once.
_ROUNDED_ONCE = (
    aten.addcdiv, aten.addcmul, aten.gelu_backward, aten.leaky_relu_backward, aten.lerp,
    aten._log_softmax_backward_data, aten.mish_backward, aten.sigmoid_backward, aten.silu_backward,
    aten._softmax_backward_data, aten.softplus_backward, aten.tanh_backward,
)  # fmt: skip


def table() -> dict[Any, Callable[..., Any]]:
    """The decompositions that graphs are captured with: `aot_autograd(decompositions=table())`."""
    libraries = torch.ops.transformers
    if not hasattr(libraries, "grouped_mm_fallback"):
        return _fixed()
    # Registered by the library when it is imported.
    return {
        **_fixed(),
        libraries.grouped_mm_fallback.default: _groups.product,
        libraries.grouped_mm_fallback_backward.default: _groups.product_backward,
    }


@functools.cache
def _fixed() -> dict[Any, Callable[..., Any]]:
    core = core_aten_decompositions().items()
    result = {op: rule for op, rule in core if op._overloadpacket not in _LEFT_TO_TORCH_MLIR and not op.name().startswith("aten::fft_")}
    result.update(get_decompositions(_MORE))
    result.update({op: _halves.in_f32(rule) for op, rule in result.items() if op.overloadpacket in _ROUNDED_ONCE})
    result.update(_roundings.rules(result))
    result.update(_OWN)
    result[aten.rsub.Scalar] = functools.partial(_number_minus, result.get(aten.rsub.Scalar))
    result.update(_pooling.rules(result))
    result.update(_division.RULES)
    result.update(_limits.RULES)
    result.update(_extremes.RULES)
    for rules in (_indexing.RULES, _integers.RULES, _convolutions.RULES, _special.RULES, _orders.RULES, _exact.RULES, _groups.RULES):
        result.update(rules)
    return _empty.kept(_ranges.checked(_scalars.with_a_dimension(result)))


# Scatters and scans of scalars become loops; where a comparison says the same, it is faster and fuses.


def _nll_loss_backward(grad: Tensor, x: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int, total_weight: Tensor) -> Tensor:
    """Minus the gradient at every row's target. PyTorch's scatters."""
    if x.dim() != 2 and x.dim() != 1:
        return NotImplemented
    classes = x.shape[-1]
    column = target.unsqueeze(-1)
    hot = (torch.arange(classes, device=x.device) == column) & (column != ignore_index)
    if reduction == 1:
        grad = grad / total_weight
    elif reduction == 0 and x.dim() == 2:
        grad = grad.unsqueeze(-1)
    if weight is not None:
        grad = grad * weight
    return torch.where(hot, -grad, torch.zeros((), dtype=x.dtype))


def _scatter_value(x: Tensor, dim: int, index: Tensor, value: float) -> Tensor:
    """x with `value` where a row's indices point; torch-mlir refuses a scatter of a number."""
    places = torch.arange(x.shape[dim], device=x.device)
    return _where_hot(x, dim, index, places, torch.full((), value, dtype=x.dtype))


def _where_hot(x: Tensor, dim: int, index: Tensor, places: Tensor, value: Tensor) -> Tensor:
    if any(a != b for d, (a, b) in enumerate(zip(x.shape, index.shape)) if d != dim % x.dim()):
        return NotImplemented
    hot = (places[:, None] == index.movedim(dim, -1)[..., None, :]).any(-1)
    return torch.where(hot.movedim(-1, dim), value, x)


def _with_positive_dim(op: Any) -> Callable[..., Any]:
    """torch-mlir's form of scatters crashes where the dimension counts from the end."""

    def rule(x: Tensor, dim: int, *rest: Any, **options: Any) -> Tensor:
        return NotImplemented if dim >= 0 else op(x, dim + x.dim(), *rest, **options)

    return rule


def _index_add(x: Tensor, dim: int, index: Tensor, source: Tensor, alpha: float = 1) -> Tensor:
    """index_put with accumulation, which torch-mlir lowers."""
    moved = x.movedim(dim, 0)
    return aten.index_put(moved, [index], (source * alpha if alpha != 1 else source).movedim(dim, 0), True).movedim(0, dim)


def _as_strided_scatter(x: Tensor, source: Tensor, size: Sequence[int], stride: Sequence[int], offset: int | None = None) -> Tensor:
    """Writes by index into the row-major elements; where they are all written, in their order, it is a view."""
    if not x.is_contiguous():
        return NotImplemented
    if _are_all(x, size, stride, offset):
        return source.reshape(x.shape)
    return aten.index_put(x.reshape(-1), [_strided_places(size, stride, offset).reshape(-1)], source.reshape(-1)).reshape(x.shape)


def _as_strided(x: Tensor, size: Sequence[int], stride: Sequence[int], offset: int | None = None) -> Any:
    """torch-mlir's form of the one element of a tensor ends its process."""
    return x.reshape(size) if x.is_contiguous() and _are_all(x, size, stride, offset) else NotImplemented


def _as_strided_copy(x: Tensor, *rest: Any) -> Tensor:
    return aten.as_strided(x, *rest).clone()


def _are_all(x: Tensor, size: Sequence[int], stride: Sequence[int], offset: int | None) -> bool:
    """Whether these are all elements of x, in their order."""
    steps = [1] * len(size)
    for dim in reversed(range(len(size) - 1)):
        steps[dim] = steps[dim + 1] * size[dim + 1]
    in_order = all(a == b for a, b, n in zip(stride, steps, size) if n > 1)
    return in_order and not offset and math.prod(size) == x.numel()


def _strided_places(size: Sequence[int], stride: Sequence[int], offset: int | None) -> Tensor:
    place = torch.full([1] * len(size), offset or 0, dtype=torch.int64)
    for dim, (count, step) in enumerate(zip(size, stride)):
        place = place + torch.arange(count).reshape([-1 if d == dim else 1 for d in range(len(size))]) * step
    return place


def _embedding_dense_backward(grad: Tensor, index: Tensor, rows: int, padding_index: int, by_frequency: bool) -> Tensor:
    """Rows of gradients added in the order of the indices, in f32 as PyTorch does."""
    wide = grad.reshape(-1, grad.shape[-1]).float() if grad.dtype in (torch.bfloat16, torch.float16) else grad.reshape(-1, grad.shape[-1])
    flat = index.reshape(-1)
    if padding_index >= 0:
        wide = torch.where((flat != padding_index)[:, None], wide, torch.zeros((), dtype=wide.dtype))
    if by_frequency:
        counts = aten.index_put(torch.zeros(rows, dtype=torch.int64), [flat], torch.ones_like(flat), True)
        wide = wide / counts[flat].unsqueeze(-1)
    return aten.index_put(wide.new_zeros(rows, grad.shape[-1]), [flat], wide, True).to(grad.dtype)


def _sort_stable(x: Tensor, *, stable: bool | None = None, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """torch-mlir has the other overload alone; its loop is stable."""
    values, indices = aten.sort.default(x, dim, descending)
    return values, indices


def _cumsum(x: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """Sums of bf16 and f16 are taken in f32, those of bool and small integers in i64, as in PyTorch."""
    result = dtype or (x.dtype if x.is_floating_point() else torch.int64)
    wide = torch.float32 if result in (torch.bfloat16, torch.float16) else result
    if x.dtype == wide and result == wide:
        return NotImplemented
    return aten.cumsum.default(x.to(wide), dim).to(result)


def _constant_pad(x: Tensor, widths: Sequence[int], value: float = 0.0) -> Tensor:
    """Slices, then pads: torch-mlir takes a pad whose widths cancel, as (1, -1), for no pad."""
    if all(width >= 0 for width in widths):
        return NotImplemented
    for i in range(0, len(widths), 2):
        dim, low, high = x.dim() - 1 - i // 2, max(0, -widths[i]), max(0, -widths[i + 1])
        x = x.narrow(dim, low, x.shape[dim] - low - high)
    positive = [max(0, width) for width in widths]
    return aten.constant_pad_nd(x, positive, value) if any(positive) else x.clone()


def _native_dropout(x: Tensor, p: float, train: bool | None = True) -> tuple[Tensor, Tensor]:
    """Draws as eager PyTorch does: the graph's random numbers are drawn outside of it (_capture.draw_outside)."""
    if train is False or p == 0:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    if x.device.type == "cuda" and p < 1:
        return NotImplemented  # type: ignore[no-any-return]  # A kernel of its own draws there.
    mask = aten.bernoulli.p(torch.empty_like(x, dtype=torch.bool), 1 - p)
    return x * mask.to(x.dtype) * (1 / (1 - p) if p < 1 else 0), mask


def _normal(mean: Tensor | float, deviation: Tensor | float = 1.0, generator: Any = None) -> Tensor:
    """Draws, then a product and a sum, as in PyTorch: numbers that do not depend on tensors are drawn outside of the graph."""
    shape = torch.broadcast_shapes(*[v.shape for v in (mean, deviation) if isinstance(v, Tensor)])
    dtype = next(v.dtype for v in (mean, deviation) if isinstance(v, Tensor))
    by_tensor = isinstance(deviation, Tensor)
    drawn = aten.normal_functional(torch.empty(shape, dtype=dtype), 0.0, 1.0 if by_tensor else deviation)
    return (drawn * deviation if by_tensor else drawn) + mean


def _scaled_product(
    x: Tensor, y: Tensor, scale_x: Tensor, scale_y: Tensor, bias: Tensor | None = None, scale_result: Tensor | None = None,
    out_dtype: torch.dtype | None = None, use_fast_accum: bool = False,
) -> Any:  # fmt: skip
    """The product of what was cast to FP8, with a scale each, or one for each row of x and column of y."""
    if scale_result is not None or any(scale.numel() != 1 and (scale.dim() != 2 or 1 not in scale.shape) for scale in (scale_x, scale_y)):
        return NotImplemented
    result = (x.float() @ y.float()) * (scale_x.float() * scale_y.float())
    if bias is not None:
        result = result + bias.float()
    return result.to(out_dtype or x.dtype)


def _put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """At places in the order of memory."""
    return aten.index_put(x.reshape(-1), [index.reshape(-1)], source.reshape(-1), accumulate).reshape(x.shape)


def _take(x: Tensor, index: Tensor) -> Tensor:
    return aten.index(x.reshape(-1), [index.reshape(-1)]).reshape(index.shape)


def _roll(x: Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> Any:
    """Of all elements in their order where no dimension is named."""
    if x.dim() == 0:
        return x.clone()
    return NotImplemented if dims else aten.roll(x.reshape(-1), shifts, [0]).reshape(x.shape)


def _zeros(size: Sequence[int], *, dtype: torch.dtype | None = None, **_: Any) -> Tensor:
    return torch.zeros(size, dtype=dtype)


def _empty_of_size(size: Sequence[int], order: Sequence[int], /, *, dtype: torch.dtype | None = None, device: torch.device | None = None, **_: Any) -> Tensor:
    """The layout in memory is not the compiled program's."""
    return torch.empty(size, dtype=dtype, device=device)


def _new_empty(
    x: Tensor, size: Sequence[int], stride: Sequence[int], *, dtype: torch.dtype | None = None, device: torch.device | None = None, **_: Any
) -> Tensor:
    return torch.empty(size, dtype=dtype or x.dtype, device=x.device if device is None else device)


def _copy_strided(x: Tensor, stride: Sequence[int]) -> Tensor:
    return x.clone()


def _number_minus(other: Callable[..., Any] | None, x: Tensor, number: float, alpha: float = 1) -> Any:
    """Of f64 as a sum: torch-mlir rounds the number to f32. Beside a factor eager PyTorch rounds it to bf16 and f16."""
    if x.dtype in _halves.HALVES and alpha != 1:
        number = _halves.rounded(number, x.dtype)
    if x.dtype != torch.float64:
        return other(x, number, alpha) if other is not None else NotImplemented
    return torch.add(-(x * alpha), number)


def _hypot(x: Tensor, y: Tensor) -> Tensor:
    """In f64, whose squares of f32 neither overflow nor vanish; of f64 itself relative to the larger of the two."""
    infinite = x.isinf() | y.isinf()
    dtype = torch.result_type(x, y)
    x, y = x.double(), y.double()
    if dtype == torch.float64:
        large, small = torch.maximum(x.abs(), y.abs()), torch.minimum(x.abs(), y.abs())
        result = large * (1 + torch.where(large == 0, torch.zeros_like(large), small / large).square()).sqrt()
    else:
        result = (x * x + y * y).sqrt()
    return torch.where(infinite, torch.full((), torch.inf, dtype=torch.float64), result).to(dtype)


def _histc(x: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:  # noqa: A002 - ATen's names
    """Counts by comparison; with equal bounds PyTorch takes those of the data."""
    if min == max:
        return NotImplemented
    flat = x.reshape(-1)
    place = ((flat - min) / (max - min) * bins).floor().clamp(max=bins - 1).to(torch.int64)
    inside = (flat >= min) & (flat <= max)
    hot = (torch.arange(bins, device=x.device)[:, None] == place) & inside
    return hot.sum(-1).to(x.dtype)


def _vector_norm(x: Tensor, order: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    """Of bf16 and f16 in f32, as in PyTorch; torch-mlir rounds the squares."""
    if x.dtype not in _halves.HALVES:
        return NotImplemented
    return aten.linalg_vector_norm(x.to(dtype or torch.float32), order, dim, keepdim).to(dtype or x.dtype)


def _weight_norm_backward(grad: Tensor, v: Tensor, g: Tensor, norms: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Gradients of v and g, where the weight is v * (g / norm of v over all dimensions but one)."""
    others = [i for i in range(v.dim()) if i != dim]
    wide, direction = grad.to(norms.dtype), v.to(norms.dtype) / norms
    along = torch.sum(wide * direction, others, keepdim=True) if others else wide * direction
    return (g / norms * (wide - direction * along)).to(v.dtype), along.to(g.dtype)


def _transformer_encoder_layer(
    x: Tensor, width: int, heads: int, qkv_weight: Tensor, qkv_bias: Tensor, out_weight: Tensor, out_bias: Tensor, use_gelu: bool, norm_first: bool,
    eps: float, norm_weight_1: Tensor, norm_bias_1: Tensor, norm_weight_2: Tensor, norm_bias_2: Tensor,
    weight_1: Tensor, bias_1: Tensor, weight_2: Tensor, bias_2: Tensor, mask: Tensor | None = None, mask_kind: int | None = None,
) -> Tensor:  # fmt: skip
    """A layer of nn.TransformerEncoder without gradients. A mask of kind 1 is [batch, column], others are of all rows.

    As in PyTorch an element of a mask that is not 0 masks, also where the mask is of floats.
    """

    def norm_1(x: Tensor) -> Tensor:
        return F.layer_norm(x, [width], norm_weight_1, norm_bias_1, eps)

    def norm_2(x: Tensor) -> Tensor:
        return F.layer_norm(x, [width], norm_weight_2, norm_bias_2, eps)

    def attention(x: Tensor) -> Tensor:
        split = F.linear(x, qkv_weight, qkv_bias).unflatten(-1, (3, heads, width // heads))
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind()
        weights = query * (width // heads) ** -0.5 @ key.transpose(-1, -2)
        if mask is not None:
            weights = weights.masked_fill((mask[:, None, None] if mask_kind == 1 else mask) != 0, -torch.inf)
        return F.linear((weights.softmax(-1) @ value).transpose(1, 2).flatten(2), out_weight, out_bias)

    def feed_forward(x: Tensor) -> Tensor:
        hidden = F.linear(x, weight_1, bias_1)
        return F.linear(F.gelu(hidden) if use_gelu else hidden.relu(), weight_2, bias_2)

    if norm_first:
        x = x + attention(norm_1(x))
        return x + feed_forward(norm_2(x))
    x = norm_1(x + attention(x))
    return norm_2(x + feed_forward(x))


_OWN: dict[Any, Callable[..., Any]] = {
    aten.nll_loss_backward.default: _nll_loss_backward,
    aten.scatter.value: _scatter_value,
    **{op: _with_positive_dim(op) for op in (aten.scatter.src, aten.scatter_add.default, aten.scatter_reduce.two)},
    aten.index_add.default: _index_add,
    aten.as_strided_scatter.default: _as_strided_scatter,
    aten.as_strided.default: _as_strided,
    aten.as_strided_copy.default: _as_strided_copy,
    aten.embedding_dense_backward.default: _embedding_dense_backward,
    aten.sort.stable: _sort_stable,
    aten.cumsum.default: _cumsum,
    aten.constant_pad_nd.default: _constant_pad,
    **{op: _normal for op in (aten.normal.Tensor_float, aten.normal.float_Tensor, aten.normal.Tensor_Tensor)},
    aten._scaled_mm.default: _scaled_product,
    torch.ops.prims.copy_strided.default: _copy_strided,
    aten.put.default: _put,
    aten.take.default: _take,
    aten.roll.default: _roll,
    aten._efficientzerotensor.default: _zeros,
    aten.empty_permuted.default: _empty_of_size,
    aten.empty_strided.default: _empty_of_size,
    aten.new_empty_strided.default: _new_empty,
    aten.hypot.default: _hypot,
    aten.histc.default: _histc,
    aten.native_dropout.default: _native_dropout,
    aten.linalg_vector_norm.default: _vector_norm,
    aten._weight_norm_interface_backward.default: _weight_norm_backward,
    aten._transformer_encoder_layer_fwd.default: _transformer_encoder_layer,
}
