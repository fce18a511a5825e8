# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The user's function compiled for arguments of one structure, shapes and types."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from .. import _compile
from .. import recipe as _recipe
from .. import state as _state
from .._errors import CompileError
from .._library import Library
from . import _call, _ranks, _target
from ._casts import Casts
from .lowering import _algorithms, _lower, _places

NOT_TRANSFORMABLE = (
    "a step of fp8.jax.jit has no gradient and cannot be mapped: put jax.grad or jax.vmap inside of the step, "
    "or use fp8.jax.function, whose result is an ordinary differentiable function"
)


class Program:
    """The function compiled for arguments of one structure, shapes and types."""

    def __init__(self, number: int, fun: Callable[..., Any], traced: Any, donated: Sequence[bool], options: Mapping[str, Any], count: int) -> None:
        options = _target.chosen(options, _target.current())
        #: Among the programs of its step.
        self.number = number
        #: The devices that call it together, each with its part, within a shard_map.
        self._count = count
        name = getattr(fun, "__name__", "step")
        recipe, algorithms = _algorithms.lower(options.get("recipe"))
        self.text = _lower.text_of({"main": _lower.to_linalg(traced, _places.definition(fun)), **algorithms})
        # Not out_info: a class of the user's, made of anything but arrays, may refuse them.
        self.results = list(traced.jaxpr.out_avals)
        self.out_tree = traced.out_tree
        self._options = {**options, "recipe": recipe, "carry": _carried(traced, donated, self.results), "name": name}

    @functools.cached_property
    def library(self) -> Library:
        if self._count > 1 and self._reduces_amaxes():
            library = self._compiled(_ranks.with_grid(self.text, self._count))
            if library.manifest["entries"][0].get("collectives"):
                return library
        return self._compiled(self.text)

    @property
    def _is_shared(self) -> bool:
        return bool(self.library.manifest.get("grid"))

    def _compiled(self, text: str) -> Library:
        try:
            return _compile.compile(text, **self._options)
        except CompileError as error:
            if not self._options.get("fp8_parameters") or self._options["carry"]:
                raise
            advice = "donate the parameters (donate_argnums), so that their new values are known"
            raise type(error)(f"{error.message}; {advice}", error.location, error.notes, error.source_path) from None

    @functools.cached_property
    def _entry(self) -> _call.Call:
        return _call.Call(self.library, "main", [_call.physical_dtype(r) for r in self.results], self._is_shared)

    @property
    def layout(self) -> Mapping[str, Any]:
        return self.library.manifest.get("state") or {}

    @functools.cached_property
    def tensors(self) -> Mapping[str, Mapping[str, Any]]:
        """The state's tensors, without the casts of weights."""
        return _state.tensors(self.library.manifest)

    @functools.cached_property
    def casts(self) -> Casts:
        return Casts(self.library)

    def _reduces_amaxes(self) -> bool:
        """Whether the recipe combines the amaxes of all parts of a tensor, as it does by default."""
        return self._options.get("reduce_amax", True) is not False and "reduce_amax = false" not in _recipe.to_text(self._options["recipe"])

    def call(self, tensors: Mapping[str, Any], leaves: Sequence[Any]) -> tuple[dict[str, Any], Any]:
        """New tensors of the state, and the function's result; weights whose casts `tensors` lacks are cast first."""
        if self._is_shared:
            _ranks.check(self._count)
        arrays = [*map(_call.physical, leaves)]
        if not self.casts.names <= tensors.keys():
            tensors = {**tensors, **self.casts.make(arrays, tensors, NOT_TRANSFORMABLE)}
        values, new = self._entry.with_state(arrays, tensors, NOT_TRANSFORMABLE)
        results = [_call.logical(value, type) for value, type in zip(values, self.results)]
        return {**tensors, **new}, jax.tree.unflatten(self.out_tree, results)


def _carried(traced: Any, donated: Sequence[bool], results: Sequence[Any]) -> dict[int, int] | None:
    """{argument: result} of donated arguments: for each the first free result of its shape and type, JAX's rule."""
    free = list(enumerate(results))
    carried = {}
    for argument, info in enumerate(traced.jaxpr.in_avals):
        if not donated[argument]:
            continue
        for position, (number, result) in enumerate(free):
            if (result.shape, result.dtype) == (info.shape, info.dtype):
                carried[argument] = number
                del free[position]
                break
    return carried or None


def trace_context() -> Any:
    """The settings that JAX's tracing depends on: x64, default precision and others."""
    from jax._src import config

    return config.trace_context()
