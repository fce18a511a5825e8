# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The programs of a step: one for each structure, shapes and types of arguments, made while JAX traces a call."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Mapping
from typing import Any

import jax

from .. import _outside
from . import _devices, _leaves, _ranks, _target
from ._chosen import Chosen, is_traced, parameters_of
from ._program import Program, trace_context


class Programs:
    """The programs of a function, and which of its arguments are donated or static."""

    def __init__(self, fun: Callable[..., Any], options: Mapping[str, Any], jit_options: Mapping[str, Any]) -> None:
        jax.jit(fun, **jit_options)  # Raises what JAX raises for these.
        self._fun = fun
        self._options = dict(options)
        self._donated = Chosen(fun, jit_options["donate_argnums"], jit_options["donate_argnames"])
        self.static = Chosen(fun, jit_options["static_argnums"], jit_options["static_argnames"])
        self._lock = threading.RLock()
        #: The leaves of the arguments that are static; more when a call turns out to need it.
        self.static_leaves = _leaves.NOTHING
        self.clear()

    def clear(self) -> None:
        """Forgets what was compiled."""
        self._programs: dict[Any, Program] = {}
        # Without donation: the platform of the lowering has none, and JAX would warn.
        static = dict(static_argnums=self.static.numbers, static_argnames=self.static.names)
        self._traceable = jax.jit(self._wrapped_fun(), keep_unused=True, **static)

    def _wrapped_fun(self) -> Callable[..., Any]:
        @functools.wraps(self._fun)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if not self.static_leaves:
                return self._fun(*args, **kwargs)
            args, kwargs = _leaves.unwrap((args, kwargs))
            return _leaves.wrap(self._fun(*args, **kwargs), self.static_leaves)

        return wrapped

    def __len__(self) -> int:
        return len(self._programs)

    def numbered(self, number: int) -> Program:
        return list(self._programs.values())[number]

    def jitted(self, body: Callable[..., Any], donate_state: bool = False, donate: bool = True) -> Any:
        """jax.jit of body(state, *args, **kwargs), with the user's choices for the arguments after the first."""
        options = dict(
            donate_argnums=((0,) if donate_state else ()) + (self._donated.shifted() if donate else ()),
            donate_argnames=self._donated.names if donate else (),
            static_argnums=self.static.shifted(),
            static_argnames=self.static.names,
        )
        traced = lambda tensors, *args, **kwargs: body(tensors, *args, **kwargs)
        traced.__name__ = traced.__qualname__ = getattr(self._fun, "__name__", "step")
        if (parameters := parameters_of(self._fun)) is not None:
            # So that JAX refuses the names that it would refuse for the function.
            state = inspect.Parameter("_fp8_state", inspect.Parameter.POSITIONAL_ONLY)
            traced.__signature__ = inspect.Signature([state, *parameters])  # type: ignore[attr-defined]
        return jax.jit(traced, **options)

    def needs_static(self, error: TypeError, args: Any, kwargs: Any) -> bool:
        """Whether a call that raised this error should be tried again: more leaves are static from now on."""
        static = _leaves.needed(error)
        if not isinstance(error, _leaves.ModulesHaveNumbers):
            if static <= self.static_leaves or not _leaves.has_static(self.static.without(args, kwargs), static):
                return False
        self.static_leaves = static
        return True

    def with_static_leaves(self, call: Callable[[Any, Any], Any], args: Any, kwargs: Any) -> Any:
        """call(args, kwargs), again with leaves as static where it turns out to need that."""
        __tracebackhide__ = True
        while True:
            try:
                if not self.static_leaves:
                    return call(args, kwargs)
                return _leaves.unwrap(call(*_leaves.wrap((args, kwargs), self.static_leaves)))
            except TypeError as error:
                if not self.needs_static(error, args, kwargs):
                    raise

    def arrays(self, args: Any, kwargs: Any) -> list[Any]:
        """The leaves of the arguments that are not static, in the order of the program's arguments."""
        arrays: list[Any] = jax.tree.leaves(self.static.without(args, kwargs))
        return arrays

    def eval_shape(self, args: Any, kwargs: Any) -> Any:
        """The function's result as jax.ShapeDtypeStructs, without compiling."""
        return self.with_static_leaves(lambda args, kwargs: self._traceable.eval_shape(*args, **kwargs), args, kwargs)

    def of_traced(self, args: Any, kwargs: Any) -> tuple[Program, list[Any]]:
        """The program for arguments that are traced, and those of their leaves that are not static."""
        leaves, tree = jax.tree.flatten((args, kwargs))
        if jax.config.jax_disable_jit or any(isinstance(leaf, jax.Array) and not is_traced(leaf) for leaf in leaves):
            # JAX calls without tracing: by jax.disable_jit, or for debug_nans. Compiled code is the same.
            with jax.disable_jit(False):
                return self.of(args, kwargs), self.arrays(args, kwargs)
        _devices.refuse_explicit_shardings([leaf for leaf in leaves if is_traced(leaf)])
        if _ranks.count_here() > 1:
            # Else a gradient within the step would be a sum over the devices.
            varying = iter(_devices.varying_alike([leaf for leaf in leaves if is_traced(leaf)]))
            leaves = [next(varying) if is_traced(leaf) else leaf for leaf in leaves]
            args, kwargs = jax.tree.unflatten(tree, leaves)
        key = (tree, tuple(jax.typeof(leaf) if is_traced(leaf) else leaf for leaf in leaves), trace_context(), _target.current(), count := _ranks.count_here())
        with self._lock:
            if key not in self._programs:
                _outside.start(_outside.JAXLIB)
                if self.static_leaves:
                    _leaves.check_static(self.static.without(args, kwargs))
                else:
                    _leaves.check_modules((args, kwargs))
                donated = self._donated.flags(args, kwargs)
                traced = self._traceable.trace(*args, **kwargs)
                self._programs[key] = Program(len(self._programs), self._fun, traced, donated, self._options, count)
            return self._programs[key], [leaf for leaf in leaves if is_traced(leaf)]

    def of(self, args: Any, kwargs: Any) -> Program:
        """The program for concrete or abstract arguments, without running it."""
        found: list[Program] = []
        probe = self.jitted(lambda _, *args, **kwargs: found.append(self.of_traced(args, kwargs)[0]))
        with _target.at(_target.place_of(jax.tree.leaves((args, kwargs)))):
            self.with_static_leaves(lambda args, kwargs: probe.trace({}, *args, **kwargs) and None, args, kwargs)
        return found[0]
