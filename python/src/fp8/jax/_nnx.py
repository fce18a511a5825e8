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

import jax

from .. import state as _state
from .._errors import hiding_frames
from .._report import Report
from . import _jit
from ._chosen import Argnames, Argnums, Chosen
from ._compiled import Lowered
from ._leaves import Static


def nnx_jit(
    fun: Callable[..., Any] | None = None,
    *,
    recipe: Any = "delayed",
    donate: bool = False,
    donate_argnums: Argnums = None,
    donate_argnames: Argnames = None,
    static_argnums: Argnums = None,
    static_argnames: Argnames = None,
    **options: Any,
) -> Any:
    """flax.nnx.jit with the function's matrix products in FP8: returns an `NnxStep`.

    nnx objects among the arguments (Module, Optimizer, Metric, Rngs, …), or in lists and dicts
    there, are updated in place, as with nnx.jit; other arguments are as with jax.jit. The
    arguments of the third to last line are nnx.jit's; `donate=True` donates all objects. A donated
    argument gives its memory to the new values. `options` are those of fp8.compile. Also a decorator.

    >>> from flax import nnx
    >>> run = nnx_jit(lambda model, x: model(x), recipe="current")
    >>> run(nnx.Linear(16, 8, rngs=nnx.Rngs(0)), jax.numpy.ones((4, 16))).shape
    (4, 8)
    """
    _jit.check_options("fp8.jax.nnx_jit", options, nnx_jit)
    arguments = dict(
        recipe=recipe, donate=donate, donate_argnums=donate_argnums, donate_argnames=donate_argnames,
        static_argnums=static_argnums, static_argnames=static_argnames,
    )  # fmt: skip
    if fun is None:
        return lambda function: NnxStep(function, options, **arguments)
    return NnxStep(fun, options, **arguments)


@jax.tree_util.register_pytree_node_class
class _Known(Static):
    """The static arguments of the pure function: a graph, names, arguments."""


class NnxStep:
    """A function compiled by `fp8.jax.nnx_jit`, and its FP8 state.

    Its properties and methods are those of `fp8.jax.Step` with the same names. For a pure step, split the
    objects by nnx.split and use fp8.jax.jit, whose steps have `init` and `apply`.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        options: Mapping[str, Any],
        recipe: Any,
        donate: bool,
        donate_argnums: Argnums,
        donate_argnames: Argnames,
        static_argnums: Argnums,
        static_argnames: Argnames,
    ) -> None:
        functools.update_wrapper(self, fun, updated=())
        self._fun = fun
        self._signature = inspect.signature(fun)
        self._donates_objects = donate
        self._donated = Chosen(fun, donate_argnums, donate_argnames).names
        self._static_arguments = Chosen(fun, static_argnums, static_argnames)
        self._static = self._static_arguments.names
        self._step = _jit.jit(self._make_pure(), recipe=recipe, donate_argnums=(1, 2), **options)

    def _make_pure(self) -> Callable[..., Any]:
        from flax import nnx

        def pure(graph: _Known, donated: Any, donated_arguments: Any, state: Any, arguments: Any, static: _Known) -> Any:
            objects = nnx.merge(graph.value, donated, state)
            names, others = static.value
            values, tree = jax.tree.flatten({**arguments, **donated_arguments}, is_leaf=lambda value: value is None)
            given = jax.tree.unflatten(tree, [value if name is None else objects[name] for name, value in zip(names, values)])
            result = self._call({**given, **dict(others)})
            new_graph, new_state = nnx.split((objects, result))
            return _Known(new_graph), new_state

        pure.__name__ = pure.__qualname__ = getattr(self._fun, "__name__", "step")
        return pure

    def _call(self, values: Mapping[str, Any]) -> Any:
        bound = self._signature.bind_partial()
        for name in self._signature.parameters:
            if name in values:
                bound.arguments[name] = values[name]
        return self._fun(*bound.args, **bound.kwargs)

    def _split(self, args: Any, kwargs: Any) -> tuple[dict[str, Any], tuple[Any, ...]]:
        """The nnx objects in the arguments by name (`model`, `models/0`), and the arguments of the pure function.

        Where an object was in the arguments is None.
        """
        from flax import nnx

        given = dict(self._signature.bind(*args, **kwargs).arguments)
        static = tuple((name, given.pop(name)) for name in sorted(self._static) if name in given)
        leaves, tree = jax.tree_util.tree_flatten_with_path(given, is_leaf=lambda v: v is None or nnx.graph.is_graph_node(v))
        names = tuple(jax.tree_util.keystr(path, simple=True, separator="/") if nnx.graph.is_graph_node(v) else None for path, v in leaves)
        objects = {name: value for name, (_, value) in zip(names, leaves) if name is not None}
        rest = jax.tree.unflatten(tree, [value if name is None else None for name, (_, value) in zip(names, leaves)])
        graph, state = nnx.split(objects)

        def divided(values: Mapping[str, Any], all_donated: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
            donated = {name for name in values if all_donated or name.partition("/")[0] in self._donated}
            return {name: values[name] for name in donated}, {name: values[name] for name in values if name not in donated}

        (donated, kept), (donated_rest, kept_rest) = divided(state, self._donates_objects), divided(rest)
        return objects, (_Known(graph), nnx.State(donated), donated_rest, nnx.State(kept), kept_rest, _Known((names, static)))

    @hiding_frames
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's result; nnx objects in the arguments, and `state`, are updated."""
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

    @hiding_frames
    def report(self, *args: Any, **kwargs: Any) -> Report:
        """Every matrix product and what became of it, for these arguments, or without any for the last call's."""
        report: Report = self._step.report(*self._pure(args, kwargs))
        return report

    @hiding_frames
    def ir(self, stage: str, *args: Any, **kwargs: Any) -> str:
        """The compiler's IR after a stage ("ingest", "recipe", "fusion", …); arguments as for `report`."""
        text: str = self._step.ir(stage, *self._pure(args, kwargs))
        return text

    @hiding_frames
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The function as MLIR, not compiled yet: arrays of the objects are arguments and results of their own."""
        program = self._step.lower(*self._split(args, kwargs)[1]).program
        return Lowered(program, self, lambda args, kwargs: self._split(args, kwargs)[1], args, kwargs, self._static_arguments)

    def clear_cache(self) -> None:
        """Forgets what was compiled; the state stays."""
        self._step.clear_cache()

    def _pure(self, args: Any, kwargs: Any) -> tuple[Any, ...]:
        return self._split(args, kwargs)[1] if args or kwargs else ()

    def __repr__(self) -> str:
        return repr(self._step).replace("Step", "NnxStep", 1)
