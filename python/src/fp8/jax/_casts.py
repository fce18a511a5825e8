# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights kept in FP8 from step to step (`fp8_parameters=True`).

A step returns the casts of the weights that it computes, for the next one. They are right only for
those weights: an array of JAX never changes, so it is enough to see that the next step is given the
very arrays that the last one returned. Otherwise (the first step, weights from a checkpoint) the
program casts what it is given, by an entry point that the compiler makes for this.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from .. import _dtypes
from .. import state as _state
from .._library import Library
from . import _call


class Casts:
    """The casts of weights that entry point "main" of a library reads; none without fp8_parameters.

    `names` are those of the tensors, `sources` the values that are cast in the next step: pairs of the number
    of an argument and that of the result which is its new value, or None where the weight stays.
    """

    def __init__(self, library: Library) -> None:
        description = library.entries["main"].description
        self._library = library
        self._parameters = description.get("parameters") or {"entry": None, "arguments": [], "casts": []}
        self._tensors = _state.tensors(library.manifest, derived=True)
        self.names = self._tensors.keys()
        users = [a["index"] for a in description["arguments"] if a["kind"] == "user"]
        self._weights = [users.index(i) for i in self._parameters["arguments"]]
        self.sources = [(i, description["arguments"][users[i]]["carry"]) for i in self._weights]

    @functools.cached_property
    def _entry(self) -> _call.Call:
        return _call.Call(self._library, self._parameters["entry"])

    def make(self, arrays: Sequence[Any], state: Mapping[str, Any], reason: str) -> dict[str, Any]:
        """The casts of the weights among the program's arguments, with the scales of the state; traced by JAX."""
        # The entry point has tensors of the state as arguments, and writes them without reading them.
        memory = {name: jnp.zeros(t["shape"], _dtypes.to_numpy(t["type"])) for name, t in self._tensors.items()}
        return self._entry.with_state([arrays[i] for i in self._weights], {**state, **memory}, reason)[1]


class Sources:
    """The arrays that casts were made of, by their numbers among the arguments of the next call."""

    def __init__(self, casts: Casts, arguments: Sequence[Any], results: Sequence[Any]) -> None:
        arrays = [(number, arguments[number] if carry is None else results[carry]) for number, carry in casts.sources]
        # Other arrays, such as numpy's, may change: a new object is none of a call's arguments.
        self._arrays = [(number, weakref.ref(array) if isinstance(array, jax.Array) else object) for number, array in arrays]

    def are_in(self, arguments: Sequence[Any]) -> bool:
        """Whether a call with these arguments is given these very arrays."""
        return all(number < len(arguments) and arguments[number] is array() for number, array in self._arrays)
