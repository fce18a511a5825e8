# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A step: the calls of a function compiled by `fp8.jax.jit`, and its FP8 state.

A call is a call of a function that jax.jit made, whose body is one custom call. While JAX traces
that body, for every new structure, shape or type of arguments as always, the user's function is
traced, lowered and compiled.
"""

from __future__ import annotations

import functools
import inspect
import threading
import types
from collections.abc import Callable, Mapping
from typing import Any

import jax

from .. import state as _state
from .._errors import StateError
from .._report import Report
from . import _call, _devices, _leaves
from ._casts import Sources
from ._chosen import TRACER, Chosen, is_traced, parameters_of
from ._held import Held, as_jax
from ._program import NOT_TRANSFORMABLE, Lowered, Program, trace_context

_TRACED_CALL = (
    "a step of fp8.jax.jit that keeps a state was called inside of a jit, scan or grad, where nothing can be kept: "
    "make the state with step.init(…), and call step.apply(state, …), which returns the new one"
)


class _StateNeeded(Exception):
    """Raised while JAX traces a program that has state, for a step that has none yet."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.program = program


class Step:
    """A function compiled by `fp8.jax.jit`, and its FP8 state.

    It is called like the function. Each call reads and replaces `state`, a dict of arrays, so a
    checkpoint holds `step.state` beside the parameters. `init` and `apply` are the same without
    the state inside, for use within a jit or scan of the user's own. jax.grad, jax.vmap and
    jax.jvp of a step are not supported.
    """

    def __init__(self, fun: Callable[..., Any], options: Mapping[str, Any], jit_options: Mapping[str, Any]) -> None:
        jax.jit(fun, **jit_options)  # Raises what JAX raises for these.
        functools.update_wrapper(self, fun, updated=())
        self._fun = fun
        self._options = dict(options)
        self._jit_options = dict(jit_options)
        self._donated = Chosen(fun, jit_options["donate_argnums"], jit_options["donate_argnames"])
        self._static = Chosen(fun, jit_options["static_argnums"], jit_options["static_argnames"])
        self._lock = threading.RLock()
        self._static_leaves = _leaves.NOTHING
        self._start_again()
        self._held = Held()

    def _start_again(self) -> None:
        self._programs: dict[Any, Program] = {}
        #: The number of the last call's program, and its casts of weights by name.
        self._casts: dict[int, dict[str, Any]] = {}
        self._sources: Sources | None = None
        # Without donation: the platform of the lowering has none, and JAX would warn.
        static = dict(static_argnums=self._static.numbers, static_argnames=self._static.names)
        self._traceable = jax.jit(self._wrapped_fun(), keep_unused=True, **static)
        self._stepper = self._jitted(self._traced_step, donate_state=True)
        self._applier = self._jitted(self._traced_apply)

    def _wrapped_fun(self) -> Callable[..., Any]:
        @functools.wraps(self._fun)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if not self._static_leaves:
                return self._fun(*args, **kwargs)
            args, kwargs = _leaves.unwrap((args, kwargs))
            return _leaves.wrap(self._fun(*args, **kwargs), self._static_leaves)

        return wrapped

    def _jitted(self, body: Callable[..., Any], donate_state: bool = False, donate: bool = True) -> Any:
        """jax.jit of body(state, *args, **kwargs), with the user's choices for the arguments after the first."""
        options = dict(
            donate_argnums=((0,) if donate_state else ()) + (self._donated.shifted() if donate else ()),
            donate_argnames=self._donated.names if donate else (),
            static_argnums=self._static.shifted(),
            static_argnames=self._static.names,
        )
        traced = lambda tensors, *args, **kwargs: body(tensors, *args, **kwargs)
        traced.__name__ = traced.__qualname__ = getattr(self._fun, "__name__", "step")
        if (parameters := parameters_of(self._fun)) is not None:
            # So that JAX refuses the names that it would refuse for the function.
            state = inspect.Parameter("_fp8_state", inspect.Parameter.POSITIONAL_ONLY)
            traced.__signature__ = inspect.Signature([state, *parameters])  # type: ignore[attr-defined]
        return jax.jit(traced, **options)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """As a function in a class, which becomes a method."""
        return self if instance is None else types.MethodType(self, instance)

    def __copy__(self) -> Step:
        """A step with a state of its own, which begins as this one's."""
        other = Step(self._fun, self._options, self._jit_options)
        with self._lock:
            if state := self.state or self._held.pending:
                other.state = state
        return other

    def __deepcopy__(self, memo: Any) -> Step:
        return self.__copy__()

    # Calls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's result; `state` is read and replaced."""
        __tracebackhide__ = True
        with self._lock:
            while True:
                if self._static_leaves:
                    args, kwargs = _leaves.wrap((args, kwargs), self._static_leaves)
                casts = self._casts if self._sources and self._sources.are_in(self._arrays(args, kwargs)) else {}
                try:
                    # From here and not deeper: JAX notes the Python stack in every call, a microsecond for each frame.
                    new = self._stepper((self._held.tensors, casts), *args, **kwargs)
                    break
                except (_StateNeeded, TypeError) as error:
                    if not self._take_in(error, args, kwargs):
                        raise
            result = self._keep(new, args, kwargs)
        return _leaves.unwrap(result) if self._static_leaves else result

    def _take_in(self, error: Exception, args: Any, kwargs: Any) -> bool:
        """Takes in what a call turned out to need: the first state, or leaves that are static. False for any other error."""
        if isinstance(error, _StateNeeded):
            self._held.adopt(error.program)
            return True
        assert isinstance(error, TypeError)
        static = _leaves.needed(error)
        if isinstance(error, _leaves.ModulesHaveNumbers):
            self._static_leaves = static
            return True
        if static <= self._static_leaves or not _leaves.has_static(self._static.without(args, kwargs), static):
            return False
        self._static_leaves = static
        return True

    def _keep(self, new: tuple[dict[str, Any], dict[int, dict[str, Any]], Any], args: Any, kwargs: Any) -> Any:
        """Keeps the new state and casts for the next call; returns the function's result."""
        __tracebackhide__ = True
        tensors, casts, result = new
        ((number, made),) = casts.items()
        # Faster than any() of a generator, by more than a microsecond of each call.
        for tensor in made.values() if made else tensors.values():
            if isinstance(tensor, TRACER):
                raise TypeError(_TRACED_CALL)
        self._sources = Sources(self._numbered(number).casts, self._arrays(args, kwargs), jax.tree.leaves(result)) if made else None
        self._held.tensors, self._casts = tensors, casts
        return result

    def _with_static_leaves(self, call: Callable[[Any, Any], Any], args: Any, kwargs: Any) -> Any:
        """call(args, kwargs), again with leaves as static where it turns out to need that."""
        __tracebackhide__ = True
        while True:
            try:
                if not self._static_leaves:
                    return call(args, kwargs)
                return _leaves.unwrap(call(*_leaves.wrap((args, kwargs), self._static_leaves)))
            except TypeError as error:
                if not self._take_in(error, args, kwargs):
                    raise

    def _numbered(self, number: int) -> Program:
        return list(self._programs.values())[number]

    def _traced_step(self, state: tuple[dict[str, Any], dict[int, dict[str, Any]]], *args: Any, **kwargs: Any) -> Any:
        tensors, casts = state
        program, leaves = self._program(args, kwargs)
        if program.tensors:
            if not self._held.layout:
                raise _StateNeeded(program)
            self._held.check(program)
        new, result = program.call({**tensors, **casts.get(program.number, {})}, leaves)
        made = {name: new.pop(name) for name in sorted(program.casts.names)}
        return new, {program.number: made}, result

    def _arrays(self, args: Any, kwargs: Any) -> list[Any]:
        """The leaves of the arguments that are not static, in the order of the program's arguments."""
        arrays: list[Any] = jax.tree.leaves(self._static.without(args, kwargs))
        return arrays

    def init(self, *args: Any, **kwargs: Any) -> _state.State:
        """A new state for these arguments, which may be jax.ShapeDtypeStructs; `state` stays as it is.

        With fp8_parameters=True it has the casts of the weights among the arguments, if those are arrays.
        """
        program = self._program_of(args, kwargs)
        state = as_jax(program.library.state())
        if program.casts.names and not any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in jax.tree.leaves((args, kwargs))):
            cast = self._jitted(self._traced_casts, donate=False)
            state |= self._with_static_leaves(lambda args, kwargs: cast(state, *args, **kwargs), args, kwargs)
        return state

    def _traced_casts(self, state: dict[str, Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
        program, leaves = self._program(args, kwargs)
        return program.casts.make([*map(_call.physical, leaves)], state, NOT_TRANSFORMABLE)

    def apply(self, state: _state.State, *args: Any, **kwargs: Any) -> tuple[_state.State, Any]:
        """(new state, result): the pure form of a call, for a jit, scan or shard_map of the user's own.

        With fp8_parameters=True the state has casts of weights, which are taken for those of the
        weights among the arguments. Give other weights with a state from `init` or without casts,
        as `fp8.state.saved(state)`: then the call makes them.
        """
        new, result = self._with_static_leaves(lambda args, kwargs: self._applier(state, *args, **kwargs), args, kwargs)
        return new, result

    def _traced_apply(self, state: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        program, leaves = self._program(args, kwargs)
        for name, tensor in program.tensors.items():
            if name not in state:
                raise StateError(f"the state lacks {name}: make one with init(…)")
            if (shape := tuple(state[name].shape)) != tuple(tensor["shape"]):
                raise StateError(f"{name} of the state has the shape {shape}, not {tuple(tensor['shape'])}")
        return program.call(state, leaves)

    def _program(self, args: Any, kwargs: Any) -> tuple[Program, list[Any]]:
        """The program for arguments that are traced, and those of their leaves that are not static."""
        leaves, tree = jax.tree.flatten((args, kwargs))
        if jax.config.jax_disable_jit or any(isinstance(leaf, jax.Array) and not is_traced(leaf) for leaf in leaves):
            # JAX calls without tracing: by jax.disable_jit, or for debug_nans. Compiled code is the same.
            with jax.disable_jit(False):
                return self._program_of(args, kwargs), self._arrays(args, kwargs)
        _devices.refuse_explicit_shardings([leaf for leaf in leaves if is_traced(leaf)])
        key = (tree, tuple(jax.typeof(leaf) if is_traced(leaf) else leaf for leaf in leaves), trace_context())
        with self._lock:
            if key not in self._programs:
                if not self._static_leaves:
                    _leaves.check_modules((args, kwargs))
                donated = self._donated.flags(args, kwargs)
                traced = self._traceable.trace(*args, **kwargs)
                self._programs[key] = Program(len(self._programs), self._fun, traced, donated, self._options)
            return self._programs[key], [leaf for leaf in leaves if is_traced(leaf)]

    def _program_of(self, args: Any, kwargs: Any) -> Program:
        """The program for concrete or abstract arguments, without running it."""
        found: list[Program] = []
        probe = self._jitted(lambda _, *args, **kwargs: found.append(self._program(args, kwargs)[0]))
        self._with_static_leaves(lambda args, kwargs: probe.trace({}, *args, **kwargs) and None, args, kwargs)
        return found[0]

    # State

    @property
    def state(self) -> _state.State:
        """The FP8 state, a dict of arrays; empty before the first call (see `init`) and for a recipe without state.

        Setting it checks names, shapes, types and the layout, if the function was compiled before.
        Casts of weights (fp8_parameters=True) are not in it: a call makes them where it gets other
        weights than the last call returned. So a checkpoint serves a step with and without them.
        """
        with self._lock:
            return self._held.read()

    @state.setter
    def state(self, state: Mapping[str, Any]) -> None:
        with self._lock:
            state = _state.saved(state)
            self._sources = None  # Casts may be of other scales.
            self._held.replace(state)

    @property
    def columns(self) -> list[dict[str, Any]]:
        """The columns of the state: dicts with index, sites, tensor, format and fp8_max; empty before the first call."""
        return list(self._held.layout.get("columns", []))

    # The compiled program

    def report(self, *args: Any, **kwargs: Any) -> Report:
        """Every matrix product and what became of it, for these arguments, or without any for the last call's.

        Raises RuntimeError without arguments before the first call.
        """
        return self._chosen(args, kwargs, "report").library.report

    def ir(self, stage: str, *args: Any, **kwargs: Any) -> str:
        """The compiler's IR after a stage ("ingest", "recipe", "fusion", …); arguments as for `report`."""
        return self._chosen(args, kwargs, "ir").library.ir(stage)

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The function as MLIR, not compiled yet."""
        return Lowered(self._program_of(args, kwargs))

    def clear_cache(self) -> None:
        """Forgets what was compiled; the state stays."""
        with self._lock:
            self._start_again()

    def _chosen(self, args: Any, kwargs: Any, name: str) -> Program:
        if args or kwargs:
            return self._program_of(args, kwargs)
        if not self._programs:
            raise RuntimeError(f"{name}() without arguments is about the last call, and there was none: call the step first, or pass its arguments")
        return self._numbered(next(iter(self._casts), -1))

    def __repr__(self) -> str:
        return f"<fp8.jax.Step {getattr(self._fun, '__name__', self._fun)}: {len(self._programs)} compiled>"
