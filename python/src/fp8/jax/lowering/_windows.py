# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations on windows that linalg has no form of, written in JAX: reductions of several arrays at once, and select_and_scatter.

One step for each place in a window treats all windows at once. Many places are one loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

Array = Any
#: The number of a place in a window: a Python integer, or an array in a loop.
Number = Any

#: Up to so many places are written out.
_FEW = 32


def select_and_scatter(
    operand: Array,
    source: Array,
    initial: Array,
    *,
    select: Callable[[Array, Array], Array],
    combine: Callable[[Array, Array], Array],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
) -> Array:
    """Combines each element of `source` with the element that its window of `operand` selects, in the order of `source`.

    Of a window's elements, the first is selected, and given up for a later one where `select(selected, later)` is false.
    A window without elements selects none.
    """
    places = _Places(window_dimensions, window_strides, source.shape)
    inside = lax.pad(jnp.ones(operand.shape, bool), False, _edges(padding))
    padded = lax.pad(operand, jnp.zeros((), operand.dtype), _edges(padding))

    def choose(number: Number, state: tuple[Array, Array]) -> tuple[Array, Array]:
        best, chosen = state
        element, exists = places.elements(padded, number), places.elements(inside, number)
        takes = exists & ((chosen < 0) | ~select(best, element))
        return jnp.where(takes, element, best), jnp.where(takes, number, chosen)

    nothing = jnp.zeros(source.shape, operand.dtype), jnp.full(source.shape, -1, jnp.int32)
    _, chosen = _for_each(places.count, choose, nothing)
    spread, wanted = places.spread(source, jnp.zeros((), source.dtype)), places.spread(chosen, jnp.int32(-1))

    def put(step: Number, result: Array) -> Array:
        number = places.count - 1 - step  # Where windows overlap, an element's last place is that of the first window.
        old = places.span(result, number)
        return places.put(result, number, jnp.where(wanted == number, combine(old, spread), old))

    result = _for_each(places.count, put, jnp.full(padded.shape, initial))
    return lax.pad(result, initial, [(-low, -high, 0) for low, high in padding])


def reduce_window(
    operands: Sequence[Array],
    initial: Sequence[Array],
    *,
    combine: Callable[..., Sequence[Array]],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int],
    window_dilation: Sequence[int],
) -> list[Array]:
    """Combines the elements of each window, in order, beginning with `initial`, as which padding counts too."""
    config = [(low, high, dilation - 1) for (low, high), dilation in zip(padding, base_dilation)]
    padded = [lax.pad(o, i, config) for o, i in zip(operands, initial)]
    extents = [(n - 1) * d + 1 for n, d in zip(window_dimensions, window_dilation)]
    shape = tuple((size - extent) // stride + 1 for size, extent, stride in zip(padded[0].shape, extents, window_strides))
    places = _Places(window_dimensions, window_strides, shape, window_dilation)

    def add(number: Number, results: Sequence[Array]) -> Sequence[Array]:
        return combine(*results, *(places.elements(p, number) for p in padded))

    return list(_for_each(places.count, add, [jnp.full(shape, i) for i in initial]))


def _edges(padding: Sequence[tuple[int, int]]) -> list[tuple[int, int, int]]:
    return [(low, high, 0) for low, high in padding]


def _for_each(count: int, body: Callable[[Number, Any], Any], state: Any) -> Any:
    if count > _FEW:
        return lax.fori_loop(0, count, body, state)
    for number in range(count):
        state = body(number, state)
    return state


class _Places:
    """The places in windows of the given sizes, in order; `shape` is the shape of all windows together."""

    def __init__(self, sizes: Sequence[int], strides: Sequence[int], shape: Sequence[Any], dilation: Sequence[int] | None = None) -> None:
        self._sizes, self._strides, self._dilation = tuple(sizes), strides, dilation or [1] * len(sizes)
        #: From the element of the first window to that of the last one.
        self._spans = [(n - 1) * s + 1 for n, s in zip(shape, strides)]
        self._is_empty = 0 in shape
        self.count = int(np.prod(self._sizes, dtype=int))

    def _start(self, number: Number) -> list[Any]:
        unravel = np.unravel_index if isinstance(number, int) else jnp.unravel_index
        return [int(i) * d if isinstance(number, int) else i * d for i, d in zip(unravel(number, self._sizes), self._dilation)]

    def span(self, padded: Array, number: Number) -> Array:
        """The part of an array from this place in the first window to this place in the last one."""
        start = self._start(number)
        if isinstance(number, int):
            return lax.slice(padded, start, [s + n for s, n in zip(start, self._spans)])
        return lax.dynamic_slice(padded, start, self._spans)

    def elements(self, padded: Array, number: Number) -> Array:
        """The elements of all windows at this place."""
        return lax.slice(self.span(padded, number), [0] * padded.ndim, self._spans, self._strides)

    def spread(self, values: Array, filling: Array) -> Array:
        """Values of all windows, as far apart as the windows are."""
        return lax.pad(values, filling, [(0, 0, s - 1) for s in self._strides])

    def put(self, padded: Array, number: Number, span: Array) -> Array:
        return lax.dynamic_update_slice(padded, span, self._start(number))
