# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`fp8.jax.function`: one function in FP8, to be used inside of the user's own jit, grad, scan and remat.

`jax.vjp` of the function is traced as two functions, forward and backward, which are compiled as a
pair. The compiler chooses the values that pass between them: FP8 bytes and scales, where it can.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import _compile, _outside
from .._errors import hiding_frames
from .._library import Library
from .._report import Report
from . import _call, _devices, _jit, _leaves, _program, _target
from .lowering import _lower, _places

_STATELESS = "a differentiable function of JAX cannot update a state in its backward pass"
_ADVICE = 'use recipe="current", "row", "block" or "mxfp8" here, or fp8.jax.jit for the whole step'


def function(fun: Callable[..., Any] | None = None, *, recipe: Any = "current", **options: Any) -> Any:
    """A differentiable function with the matrix products of `fun`, and of its gradient, in FP8.

    `recipe` is one without state; `options` are those of fp8.compile. Leaves of the arguments that
    are no arrays are static. Integers have no gradient. Also a decorator. Raises ValueError for a
    recipe with state, and TypeError when called if `fun` reads traced values other than its arguments.

    >>> dense = function(lambda w, x: jnp.tanh(x @ w))
    >>> w, x = jnp.ones((16, 8)) / 8, jnp.ones((4, 16))
    >>> jax.jit(jax.grad(lambda w: dense(w, x).sum()))(w).shape
    (16, 8)
    """
    if recipe == "delayed":
        raise ValueError(f"recipe='delayed' has state, and {_STATELESS}: {_ADVICE}")
    _jit.check_options("fp8.jax.function", options, function)
    if options.get("fp8_parameters"):
        raise ValueError("fp8_parameters=True keeps weights from step to step, and a function keeps nothing: use fp8.jax.jit for the whole step")
    if options.get("stochastic_rounding"):
        raise ValueError(f"stochastic_rounding=True has state, and {_STATELESS}: use fp8.jax.jit for the whole step")
    options = {"recipe": recipe, **options}
    return (lambda f: Function(f, options)) if fun is None else Function(fun, options)


class Function:
    """A function compiled by `fp8.jax.function`: called like it, within JAX's transformations or without."""

    def __init__(self, fun: Callable[..., Any], options: Mapping[str, Any]) -> None:
        functools.update_wrapper(self, fun, updated=())
        self._fun = fun
        self._options = dict(options)
        self._pairs: dict[Any, _Pair] = {}
        self._static_leaves = _leaves.OTHERS
        self._lock = threading.RLock()

    @hiding_frames
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        pair, leaves = self._pair(args, kwargs)
        return pair(leaves)

    @hiding_frames
    def report(self, *args: Any, **kwargs: Any) -> Report:
        """Every matrix product, forward and backward, for these arguments, or without any for those compiled last.

        Raises RuntimeError without arguments before the first call.
        """
        if args or kwargs:
            return self._pair(args, kwargs)[0].library.report
        if not self._pairs:
            raise RuntimeError("report() without arguments is about the last compilation, and there was none")
        return next(reversed(self._pairs.values())).library.report

    def _pair(self, args: Any, kwargs: Any) -> tuple[_Pair, list[Any]]:
        try:
            return self._pair_of(_leaves.wrap((args, kwargs), self._static_leaves))
        except jax.errors.TracerBoolConversionError:
            if self._static_leaves == _leaves.BOOLS or not _leaves.has_static((args, kwargs), _leaves.BOOLS):
                raise
            self._static_leaves = _leaves.BOOLS
            return self._pair(args, kwargs)

    def _pair_of(self, wrapped: Any) -> tuple[_Pair, list[Any]]:
        leaves, tree = jax.tree.flatten(wrapped)
        _devices.refuse_explicit_shardings(leaves)
        types = tuple(_type(leaf) for leaf in leaves)
        key = (tree, tuple((t.shape, t.dtype, t.weak_type) for t in types), _program.trace_context(), place := _target.place_of(leaves))
        with self._lock:
            if key not in self._pairs:
                _leaves.check_static(wrapped)
                self._pairs[key] = _Pair(self._fun, jax.tree.unflatten(tree, types), _target.chosen(self._options, place))
            return self._pairs[key], leaves

    def __reduce__(self) -> Any:
        """A pickle has the function, by its name, and a copy compiles again, out of the cache."""
        return Function, (self._fun, self._options)

    def __repr__(self) -> str:
        return f"<fp8.jax.Function {getattr(self._fun, '__name__', self._fun)}: {len(self._pairs)} compiled>"


class _Pair:
    """Forward and backward compiled for arguments of one structure, shapes and types; called with their leaves."""

    def __init__(self, fun: Callable[..., Any], arguments: Any, options: Mapping[str, Any]) -> None:
        _outside.start(_outside.JAXLIB)
        self._types = jax.tree.leaves(arguments)
        self._trace(fun, *arguments)
        modules = {"forward": self._forward, "backward": self._backward}
        text = _lower.text_of({entry: _lower.to_linalg(traced, _places.definition(fun)) for entry, traced in modules.items()})
        name = getattr(fun, "__name__", "function")
        count = len(self._results)
        self.library: Library = _compile.compile(text, pair=("forward", "backward", count), name=name, **options)
        if (self.library.manifest.get("state") or {}).get("tensors"):
            raise ValueError(f"recipe={options['recipe']!r} has state, and {_STATELESS}: {_ADVICE}")
        self._forward_call = _call.Call(self.library, "forward", [_call.physical_dtype(r) for r in self._results])
        gradients = [_call.physical_dtype(self._types[i]) for i in self._differentiable]
        self._backward_call = _call.Call(self.library, "backward", gradients)
        self._differentiated = jax.custom_vjp(lambda *leaves: self._run_forward(*leaves)[0])
        self._differentiated.defvjp(self._run_forward, self._run_backward)

    def _trace(self, fun: Callable[..., Any], args: Any, kwargs: Any) -> None:
        """Traces jax.vjp of the function: results and residuals, then gradients from residuals and cotangents."""
        saved: dict[str, Any] = {}
        self._differentiable = [i for i, t in enumerate(self._types) if _is_float(t)]

        @functools.wraps(fun)
        def forward(*args: Any, **kwargs: Any) -> Any:
            leaves, tree = jax.tree.flatten((args, kwargs))

            def of_floats(*floats: Any) -> Any:
                mixed = list(leaves)
                for i, value in zip(self._differentiable, floats):
                    mixed[i] = value
                args, kwargs = _leaves.unwrap(jax.tree.unflatten(tree, mixed))
                results, self._out_tree = jax.tree.flatten(_leaves.wrap(fun(*args, **kwargs)))
                return results

            results, vjp = jax.vjp(of_floats, *(leaves[i] for i in self._differentiable))
            residuals, saved["tree"] = jax.tree.flatten(vjp)
            saved["count"] = len(results)
            # A pair passes something, also where the gradient needs nothing.
            return [*results, *(residuals or [jnp.zeros(())])]

        self._forward = jax.jit(forward, keep_unused=True).trace(*args, **kwargs)
        _refuse_captured(fun, self._forward)
        infos = list(self._forward.jaxpr.out_avals)
        self._results, residuals = infos[: saved["count"]], infos[saved["count"] :]

        def backward(residuals: Any, cotangents: Any) -> Any:
            given = iter(cotangents)
            full = [next(given) if _is_float(r) else np.zeros(r.shape, jax.dtypes.float0) for r in self._results]
            return jax.tree.unflatten(saved["tree"], residuals[: saved["tree"].num_leaves])(full)

        cotangents = [r for r in self._results if _is_float(r)]
        strong = [jax.ShapeDtypeStruct(t.shape, t.dtype) for t in (*residuals, *cotangents)]
        self._backward = jax.jit(backward, keep_unused=True).trace(strong[: len(residuals)], strong[len(residuals) :])

    def __call__(self, leaves: Sequence[Any]) -> Any:
        typed = [leaf if _call.is_key(leaf) else jnp.asarray(leaf, t.dtype) for leaf, t in zip(leaves, self._types)]
        # Here, so that a gradient has the type of its argument: JAX sums those of an argument that all devices share.
        typed = _devices.varying_alike(typed)
        return _leaves.unwrap(jax.tree.unflatten(self._out_tree, self._differentiated(*typed)))

    def _run_forward(self, *leaves: Any) -> tuple[list[Any], list[Any]]:
        """The results, and the residuals that the compiler chose."""
        arrays = [_call.physical(leaf) for leaf in leaves]
        values = self._forward_call(arrays)
        count = len(self._results)
        descriptions = self.library.entries["forward"].description["results"][count:]
        # A residual that is an argument is not kept twice.
        residuals = [arrays[d["alias"]] if _has_alias(d) else v for d, v in zip(descriptions, values[count:])]
        return [_call.logical(v, r) for v, r in zip(values, self._results)], residuals

    def _run_backward(self, residuals: Sequence[Any], cotangents: Sequence[Any]) -> tuple[Any, ...]:
        floats = [_call.physical(c) for c, r in zip(cotangents, self._results) if _is_float(r)]
        values = iter(self._backward_call([*residuals, *floats]))
        return tuple(_call.logical(next(values), t) if _is_float(t) else np.zeros(t.shape, jax.dtypes.float0) for t in self._types)


def _refuse_captured(fun: Callable[..., Any], traced: Any) -> None:
    """Raises TypeError if `fun` reads values of a jit, grad or scan around it other than by its arguments."""
    captured = [c for c in (*traced._consts, *traced.jaxpr.consts) if isinstance(c, jax.core.Tracer)]
    if captured:
        types = ", ".join(jax.typeof(c).str_short() for c in captured)
        raise TypeError(
            f"fp8.jax.function: {getattr(fun, '__name__', 'the function')} reads values that JAX is tracing "
            f"and that are no arguments of it ({types}): pass them as arguments, or make the function outside"
        )


def _has_alias(description: Mapping[str, Any]) -> bool:
    return description.get("alias") is not None and description["alias"] >= 0


def _is_float(type: Any) -> bool:
    """Whether numbers of the type have a gradient; complex ones do."""
    return bool(jnp.issubdtype(type.dtype, jnp.inexact))


def _type(leaf: Any) -> jax.ShapeDtypeStruct:
    type = jax.typeof(leaf)
    return jax.ShapeDtypeStruct(type.shape, type.dtype, weak_type=type.weak_type)
