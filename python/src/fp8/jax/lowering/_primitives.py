# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""JAX primitives that linalg has no operation for, written in JAX itself.

StableHLO's scatter and sort have no form in linalg. JAX lets the caller of `Traced.lower` replace
the lowering rule of a primitive for that one lowering; `RULES` is the list to pass. Nothing global
is registered or changed.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax._src.interpreters import mlir
from jax._src.lax import ann, windowed_reductions
from jax._src.lax import lax as lax_internal

from . import _windows as windowed

Array = Any


def scatter(
    operand: Array,
    indices: Array,
    updates: Array,
    *,
    dimension_numbers: lax.ScatterDimensionNumbers,
    mode: lax.GatherScatterMode | None = None,
    update_jaxpr: Any = None,
    update_consts: Sequence[Any] = (),
    combine: Callable[[Array, Array], Array] | None = None,
    **_: Any,
) -> Array:
    """Combines one window of `updates` after the other with `operand`, in order.

    A window that does not fit is left out, or moved in with mode CLIP. `combine` is elementwise;
    without it `update_jaxpr`, a function of two scalars, is, and without that the update replaces.
    """
    if combine is None:
        combine = _elementwise(update_jaxpr, update_consts) if update_jaxpr else lambda _, new: new
    windows, starts, sizes = _windows(operand, indices, updates, dimension_numbers)
    count = windows.shape[0]
    if not count or 0 in sizes:
        return operand
    last = jnp.array([o - s for o, s in zip(operand.shape, sizes)], starts.dtype)
    if mode == lax.GatherScatterMode.CLIP:
        starts = jnp.clip(starts, 0, last)
    fits = jnp.all((starts >= 0) & (starts <= last), axis=1)

    def add_window(i: Array, result: Array) -> Array:
        start = [starts[i, dimension] for dimension in range(len(sizes))]
        old = lax.dynamic_slice(result, start, sizes)
        new = combine(old, lax.dynamic_index_in_dim(windows, i, keepdims=False))
        return lax.dynamic_update_slice(result, lax.select(jnp.full(sizes, fits[i]), new, old), start)

    return lax.fori_loop(0, count, add_window, operand)


def _windows(operand: Array, indices: Array, updates: Array, numbers: lax.ScatterDimensionNumbers) -> tuple[Array, Array, list[int]]:
    """`updates` as [window, *sizes], where each window starts as [window, dimension], and the sizes."""
    rank, batch_shape = operand.ndim, indices.shape[:-1]
    count = math.prod(batch_shape)
    window_dims = list(numbers.update_window_dims)
    batch_dims = [i for i in range(updates.ndim) if i not in window_dims]
    absent = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    remaining = iter(window_dims)
    sizes = [1 if i in absent else updates.shape[next(remaining)] for i in range(rank)]
    windows = lax.transpose(updates, batch_dims + window_dims).reshape(count, *sizes)
    if indices.dtype.itemsize < 8:  # Sizes need not fit into 8 or 16 bits.
        indices = indices.astype(jnp.int32)
    columns: list[Array] = [jnp.zeros(count, indices.dtype)] * rank
    for i, dimension in enumerate(numbers.scatter_dims_to_operand_dims):
        columns[dimension] = indices[..., i].reshape(count)
    for dimension, i in zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims):
        columns[dimension] = lax.broadcasted_iota(indices.dtype, batch_shape, i).reshape(count)
    starts = jnp.stack(columns, axis=1) if columns else jnp.zeros((count, 0), indices.dtype)
    return windows, starts, sizes


def _elementwise(jaxpr: Any, consts: Sequence[Any]) -> Callable[[Array, Array], Array]:
    """A function of arrays from a jaxpr of two scalars."""

    def apply(old: Array, new: Array) -> Array:
        function = functools.partial(jax.core.eval_jaxpr, jaxpr, consts)
        for _ in range(old.ndim):
            function = jax.vmap(function)
        return function(old, new)[0]

    return apply


Less = Callable[[Sequence[Array], Sequence[Array]], Array]


def sort(*operands: Array, dimension: int, is_stable: bool = True, num_keys: int = 1, less: Less | None = None) -> list[Array]:
    """A bitonic network in one loop; each of its log² stages gathers a partner and keeps one of the two.

    The position is the last key, which makes the order stable and is the permutation afterwards.
    The first `num_keys` operands are the keys, or all are, and `less` compares two rows of them elementwise.
    """
    size = operands[0].shape[dimension]
    if size < 2 or 0 in operands[0].shape:
        return list(operands)
    width = 1 << (size - 1).bit_length()
    rows = [jnp.moveaxis(o, dimension, -1) for o in operands]
    lead = rows[0].shape[:-1]
    rows = [row.reshape(-1, size) for row in rows]
    keys = rows if less else [total_order(key) for key in rows[:num_keys]]
    keys = [jnp.pad(key, ((0, 0), (0, width - size))) for key in keys]
    position = jnp.broadcast_to(jnp.arange(width, dtype=jnp.int32), (rows[0].shape[0], width))
    padding = (position >= size).astype(jnp.int32)
    permutation = _bitonic([padding, *keys, position], _last_by(less) if less else _lexicographic)[-1][:, :size]
    results = [jnp.take_along_axis(row, permutation, axis=1, mode="clip") for row in rows]
    return [jnp.moveaxis(r.reshape(*lead, size), -1, dimension) for r in results]


def _lexicographic(mine: Sequence[Array], other: Sequence[Array]) -> Array:
    """Whether `mine` comes before `other`, by all columns, the first one first."""
    less, same = jnp.zeros(mine[0].shape, bool), jnp.ones(mine[0].shape, bool)
    for a, b in zip(mine, other):
        less, same = less | (same & (a < b)), same & (a == b)
    return less


def _last_by(less: Less) -> Less:
    """The same by padding, then `less` of the columns between, then position."""

    def before(mine: Sequence[Array], other: Sequence[Array]) -> Array:
        forth, back = less(mine[1:-1], other[1:-1]), less(other[1:-1], mine[1:-1])
        keys = [mine[0], back.astype(jnp.int32), mine[-1]], [other[0], forth.astype(jnp.int32), other[-1]]
        return _lexicographic(*keys)

    return before


def _bitonic(columns: list[Array], before: Less) -> list[Array]:
    """Sorts rows by the order `before`, in which no two places are equal; the size of a row is a power of two."""
    width = columns[0].shape[1]
    lane = jnp.arange(width, dtype=jnp.int32)
    halves = [(1 << e, 1 << f) for e in range(1, width.bit_length()) for f in reversed(range(e))]
    stages = jnp.array(halves, jnp.int32)

    def stage(i: Array, mine: list[Array]) -> list[Array]:
        block, distance = stages[i, 0], stages[i, 1]
        other = [jnp.take(column, lane ^ distance, axis=1, mode="clip") for column in mine]
        less, lower, ascending = before(mine, other), (lane & distance) == 0, (lane & block) == 0
        stays = jnp.where(lower == ascending, less, ~less)
        return [jnp.where(stays, a, b) for a, b in zip(mine, other)]

    return list(lax.fori_loop(0, len(halves), stage, columns))


def total_order(x: Array, equal_zeros: bool = True, equal_nans: bool = True) -> Array:
    """Integers ordered as `x` is: NaNs last and equal or by their bits, −0 equal to 0 or just below it."""
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return x
    bits = {1: jnp.int8, 2: jnp.int16, 4: jnp.int32, 8: jnp.int64}[x.dtype.itemsize]
    if equal_nans:
        x = jnp.where(jnp.isnan(x), jnp.array(jnp.nan, x.dtype), x)
    if equal_zeros:
        x = jnp.where(x == 0, jnp.zeros((), x.dtype), x)
    i = lax.bitcast_convert_type(x, bits)
    return jnp.where(i < 0, i ^ jnp.iinfo(bits).max, i)


def top_k(x: Array, *, k: int, axis: int = -1, **_: Any) -> tuple[Array, Array]:
    """The k largest by a sort in descending order; of equal ones the first come first."""
    return _first(~total_order(x, equal_zeros=False), x, k, axis % x.ndim)


def approx_top_k(x: Array, *, k: int, reduction_dimension: int, is_max_k: bool, aggregate_to_topk: bool, **_: Any) -> tuple[Array, Array]:
    """The k largest or smallest, and not only most of them, which would do."""
    if not aggregate_to_topk:
        raise NotImplementedError("approx_max_k and approx_min_k have no code with aggregate_to_topk=False")
    order = total_order(x, equal_zeros=False)
    return _first(~order if is_max_k else order, x, k, reduction_dimension % x.ndim)


def _first(order: Array, x: Array, k: int, axis: int) -> tuple[Array, Array]:
    """The k elements that come first by `order`, and where they are."""
    index = lax.broadcasted_iota(jnp.int32, x.shape, axis)
    _, values, indices = sort(order, x, index, dimension=axis)
    return lax.slice_in_dim(values, 0, k, axis=axis), lax.slice_in_dim(indices, 0, k, axis=axis)


def select_and_scatter_add(source: Array, operand: Array, *, select_prim: Any, **windows: Any) -> Array:
    """The gradient of max pooling, also of windows that overlap: each element of `source` goes to where its window has the first largest."""
    return windowed.select_and_scatter(operand, source, jnp.zeros((), source.dtype), select=select_prim.bind, combine=lax.add, **windows)


def is_finite(x: Array) -> Array:
    """StableHLO's own form compares with an infinity of the type, which E4M3 does not have."""
    return jnp.abs(x.astype(jnp.float32) if x.dtype.itemsize == 1 else x) < jnp.inf


@contextlib.contextmanager
def plain_rules() -> Iterator[None]:
    """JAX's own rules of shapes and types for the code of this package, whatever the user has set for their own."""
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        yield


def _rule(function: Callable[..., Any], *, multiple_results: bool, **fixed: Any) -> Any:
    lower = mlir.lower_fun(functools.partial(function, **fixed), multiple_results=multiple_results)

    def rule(*args: Any, **kwargs: Any) -> Any:
        with plain_rules():
            return lower(*args, **kwargs)

    return rule


def _keep_operands(ctx: Any, *operands: Any, **_: Any) -> Any:
    """optimization_barrier: the compiler has no use for it."""
    return operands


_COMBINE = {
    lax.scatter_p: None,
    lax.scatter_add_p: lax.add,
    lax.scatter_sub_p: lax.sub,
    lax.scatter_mul_p: lax.mul,
    lax.scatter_min_p: lax.min,
    lax.scatter_max_p: lax.max,
}

# (primitive, lowering rule), for LoweringParameters.override_lowering_rules.
RULES = (
    *((primitive, _rule(scatter, multiple_results=False, combine=f)) for primitive, f in _COMBINE.items()),
    (lax.sort_p, _rule(sort, multiple_results=True)),
    (windowed_reductions.select_and_scatter_add_p, _rule(select_and_scatter_add, multiple_results=False)),
    (lax.is_finite_p, _rule(is_finite, multiple_results=False)),
    (lax.top_k_p, _rule(top_k, multiple_results=True)),
    (ann.approx_top_k_p, _rule(approx_top_k, multiple_results=True)),
    (lax_internal.optimization_barrier_p, _keep_operands),
)
