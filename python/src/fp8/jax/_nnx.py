# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`fp8.jax.nnx_jit`: Flax's nnx.jit with FP8, for steps that change modules and optimizers in place.

nnx.split makes arrays of the objects among the arguments, the compiled step maps them to new ones,
and nnx.update writes these back into the caller's objects.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from .. import state as _state
from .._report import Report
from . import _jit
from ._leaves import Static


def nnx_jit(fun: Callable[..., Any] | None = None, *, recipe: Any = "delayed", donate: bool = False, **options: Any) -> Any:
    """flax.nnx.jit with the function's matrix products in FP8: returns an `NnxStep`.

    nnx objects among the arguments (Module, Optimizer, Metric, Rngs, …) are updated in place, as
    with nnx.jit; other arguments are as with jax.jit. `donate=True` gives the memory of the
    objects' old values to the new ones. `options` are those of fp8.compile, and jax.jit's
    static_argnames. Also a decorator.
    """
    if fun is None:
        return lambda function: NnxStep(function, recipe, donate, options)
    return NnxStep(fun, recipe, donate, options)


class NnxStep:
    """A function compiled by `fp8.jax.nnx_jit`, and its FP8 state; see `fp8.jax.Step` for the methods."""

    def __init__(self, fun: Callable[..., Any], recipe: Any, donate: bool, options: Mapping[str, Any]) -> None:
        functools.update_wrapper(self, fun, updated=())
        self._fun = fun
        self._signature = inspect.signature(fun)
        options = dict(options)
        static = options.pop("static_argnames", ())
        self._static = (static,) if isinstance(static, str) else tuple(static)
        self._step = _jit.jit(self._make_pure(), recipe=recipe, donate_argnums=1 if donate else None, **options)

    def _make_pure(self) -> Callable[..., Any]:
        from flax import nnx

        def pure(graph: Static, state: Any, arguments: Any, static: Static) -> Any:
            objects = nnx.merge(graph.value, state)
            result = self._call({**objects, **arguments, **dict(static.value)})
            new_graph, new_state = nnx.split((objects, result))
            return Static(new_graph), new_state

        pure.__name__ = pure.__qualname__ = getattr(self._fun, "__name__", "step")
        return pure

    def _call(self, values: Mapping[str, Any]) -> Any:
        bound = self._signature.bind_partial()
        for name in self._signature.parameters:
            if name in values:
                bound.arguments[name] = values[name]
        return self._fun(*bound.args, **bound.kwargs)

    def _split(self, args: Any, kwargs: Any) -> tuple[dict[str, Any], tuple[Any, ...]]:
        """The nnx objects among the arguments by name, and the arguments of the pure function."""
        from flax import nnx

        given = self._signature.bind(*args, **kwargs).arguments
        static = {name: value for name, value in given.items() if name in self._static}
        objects = {name: value for name, value in given.items() if nnx.graph.is_graph_node(value) and name not in static}
        arguments = {name: value for name, value in given.items() if name not in objects and name not in static}
        graph, state = nnx.split(objects)
        return objects, (Static(graph), state, arguments, Static(tuple(sorted(static.items()))))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's result; nnx objects among the arguments, and `state`, are updated."""
        from flax import nnx

        objects, pure_arguments = self._split(args, kwargs)
        graph, state = self._step(*pure_arguments)
        new, result = nnx.merge(graph.value, state)
        nnx.update(objects, nnx.state(new))
        return result

    @property
    def state(self) -> _state.State:
        """The FP8 state, as `fp8.jax.Step.state`."""
        state: _state.State = self._step.state
        return state

    @state.setter
    def state(self, state: Mapping[str, Any]) -> None:
        self._step.state = state

    @property
    def columns(self) -> list[dict[str, Any]]:
        """The columns of the state."""
        columns: list[dict[str, Any]] = self._step.columns
        return columns

    def report(self, *args: Any, **kwargs: Any) -> Report:
        """Every matrix product and what became of it, for these arguments, or without any for the last call's."""
        pure_arguments = self._split(args, kwargs)[1] if args or kwargs else ()
        report: Report = self._step.report(*pure_arguments)
        return report

    def __repr__(self) -> str:
        return repr(self._step).replace("Step", "NnxStep", 1)
