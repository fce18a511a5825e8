# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`fp8.jax.jit`: a training step, called as jax.jit's would be, with its FP8 state beside it.

A call is a call of a function that jax.jit made, whose body is one custom call. While JAX traces
that body, for every new structure, shape or type of arguments as always, the user's function is
traced, lowered and compiled.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import threading
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from .. import _compile
from .. import state as _state
from .._errors import CompileError, StateError
from .._library import Library
from .._report import Report
from . import _call, _leaves, _lower
from ._casts import Casts, Sources

_NOT_TRANSFORMABLE = (
    "a step of fp8.jax.jit has no gradient and cannot be mapped: put jax.grad or jax.vmap inside of the step, "
    "or use fp8.jax.function, whose result is an ordinary differentiable function"
)

_TRACED_CALL = (
    "a step of fp8.jax.jit that keeps a state was called inside of a jit, scan or grad, where nothing can be kept: "
    "make the state with step.init(…), and call step.apply(state, …), which returns the new one"
)

_TRACER = jax.core.Tracer

Argnums = int | Sequence[int] | None
Argnames = str | Sequence[str] | None


def jit(
    fun: Callable[..., Any] | None = None,
    *,
    recipe: Any = "delayed",
    donate_argnums: Argnums = None,
    donate_argnames: Argnames = None,
    static_argnums: Argnums = None,
    static_argnames: Argnames = None,
    keep_unused: bool = True,
    **options: Any,
) -> Any:
    """jax.jit with the function's matrix products in FP8: returns a `Step`.

    The arguments of the second line are jax.jit's, `options` are those of fp8.compile (sites,
    keep, first, last, require, …). Also a decorator: `@fp8.jax.jit(recipe="current")`.
    `keep_unused=False` is not available: unused arguments are always kept.

    >>> import jax.numpy as jnp
    >>> step = jit(lambda x, w: x @ w, recipe="current")
    >>> step(jnp.ones((4, 16)), jnp.ones((16, 8))).shape
    (4, 8)
    >>> step.report()
    <fp8.Report: 1 products, 1 in FP8, 0 kept>
    """
    jit_options = dict(
        donate_argnums=donate_argnums,
        donate_argnames=donate_argnames,
        static_argnums=static_argnums,
        static_argnames=static_argnames,
    )
    if not keep_unused:
        raise ValueError("keep_unused=False: arguments that the function does not use are always kept")
    check_options("fp8.jax.jit", options, jit)
    options = {"recipe": recipe, **options}
    if fun is None:
        return lambda function: Step(function, options, jit_options)
    return Step(fun, options, jit_options)


def check_options(where: str, options: Mapping[str, Any], function: Callable[..., Any]) -> None:
    """Raises for options that are found without the user, for another target than the CPU, and for a misspelt argument of `function`."""
    for name, value in options.items():
        if name in ("pair", "carry", "name"):
            raise TypeError(f"{name}= is not an option of {where}, which finds it by itself")
        if name == "target" and value != "cpu":
            raise ValueError(f"target={value!r}: {where} runs on the CPU; fp8.compile compiles StableHLO of jax.export for GPUs")
        if meant := difflib.get_close_matches(name, inspect.signature(function).parameters, 1, cutoff=0.8):
            raise TypeError(f"{where} has no argument {name}: did you mean {meant[0]}?")


class _Program:
    """The function compiled for arguments of one structure, shapes and types."""

    def __init__(self, number: int, fun: Callable[..., Any], traced: Any, donated: Sequence[bool], options: Mapping[str, Any]) -> None:
        #: Among the programs of its step.
        self.number = number
        name = getattr(fun, "__name__", "step")
        self.text = _lower.text_of({"main": _lower.to_linalg(traced, _lower.definition(fun))})
        self.results = jax.tree.leaves(traced.out_info)
        self.out_tree = jax.tree.structure(traced.out_info)
        self._options = {**options, "carry": _carried(traced, donated, self.results), "name": name}

    @functools.cached_property
    def library(self) -> Library:
        try:
            return _compile.compile(self.text, **self._options)
        except CompileError as error:
            if not self._options.get("fp8_parameters") or self._options["carry"]:
                raise
            advice = "donate the parameters (donate_argnums), so that their new values are known"
            raise type(error)(f"{error.message}; {advice}", error.location, error.notes, error.source_path) from None

    @functools.cached_property
    def _entry(self) -> _call.Call:
        return _call.Call(self.library, "main", [_call.physical_dtype(r) for r in self.results])

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

    def call(self, tensors: Mapping[str, Any], leaves: Sequence[Any]) -> tuple[dict[str, Any], Any]:
        """New tensors of the state, and the function's result; weights whose casts `tensors` lacks are cast first."""
        arrays = [*map(_call.physical, leaves)]
        if not self.casts.names <= tensors.keys():
            tensors = {**tensors, **self.casts.make(arrays, tensors, _NOT_TRANSFORMABLE)}
        values, new = self._entry.with_state(arrays, tensors, _NOT_TRANSFORMABLE)
        results = [_call.logical(value, type) for value, type in zip(values, self.results)]
        return {**tensors, **new}, jax.tree.unflatten(self.out_tree, results)


def _carried(traced: Any, donated: Sequence[bool], results: Sequence[Any]) -> dict[int, int] | None:
    """{argument: result} of donated arguments: for each the first free result of its shape and type, JAX's rule."""
    free = list(enumerate(results))
    carried = {}
    for argument, info in enumerate(jax.tree.leaves(traced.args_info)):
        if not donated[argument]:
            continue
        for position, (number, result) in enumerate(free):
            if (result.shape, result.dtype) == (info.shape, info.dtype):
                carried[argument] = number
                del free[position]
                break
    return carried or None


class _StateNeeded(Exception):
    """Raised while JAX traces a program that has state, for a step that has none yet."""

    def __init__(self, program: _Program) -> None:
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
        functools.update_wrapper(self, fun, updated=())
        self._fun = fun
        self._options = dict(options)
        self._jit_options = dict(jit_options)
        self._donated = _Chosen(fun, jit_options["donate_argnums"], jit_options["donate_argnames"])
        self._static = _Chosen(fun, jit_options["static_argnums"], jit_options["static_argnames"])
        self._lock = threading.RLock()
        self._static_leaves = _leaves.NOTHING
        self._start_again()
        self._tensors: dict[str, Any] = {}
        self._layout: Mapping[str, Any] = {}

    def _start_again(self) -> None:
        self._programs: dict[Any, _Program] = {}
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
        if (parameters := _parameters(self._fun)) is not None:
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
            if state := self.state or self._pending:
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
                    new = self._stepper((self._tensors, casts), *args, **kwargs)
                    break
                except (_StateNeeded, TypeError) as error:
                    if not self._take_in(error, args, kwargs):
                        raise
            result = self._keep(new, args, kwargs)
        return _leaves.unwrap(result) if self._static_leaves else result

    def _take_in(self, error: Exception, args: Any, kwargs: Any) -> bool:
        """Takes in what a call turned out to need: the first state, or leaves that are static. False for any other error."""
        if isinstance(error, _StateNeeded):
            self._adopt(error.program)
            return True
        assert isinstance(error, TypeError)
        static = _leaves.needed(error)
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
            if isinstance(tensor, _TRACER):
                raise TypeError(_TRACED_CALL)
        self._sources = Sources(self._numbered(number).casts, self._arrays(args, kwargs), jax.tree.leaves(result)) if made else None
        self._tensors, self._casts = tensors, casts
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

    def _numbered(self, number: int) -> _Program:
        return list(self._programs.values())[number]

    def _traced_step(self, state: tuple[dict[str, Any], dict[int, dict[str, Any]]], *args: Any, **kwargs: Any) -> Any:
        tensors, casts = state
        program, leaves = self._program(args, kwargs)
        if program.tensors:
            if not self._layout:
                raise _StateNeeded(program)
            _check_layout(program.layout, self._layout)
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
        state = _as_jax(program.library.state())
        if program.casts.names and not any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in jax.tree.leaves((args, kwargs))):
            cast = self._jitted(self._traced_casts, donate=False)
            state |= self._with_static_leaves(lambda args, kwargs: cast(state, *args, **kwargs), args, kwargs)
        return state

    def _traced_casts(self, state: dict[str, Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
        program, leaves = self._program(args, kwargs)
        return program.casts.make([*map(_call.physical, leaves)], state, _NOT_TRANSFORMABLE)

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

    def _program(self, args: Any, kwargs: Any) -> tuple[_Program, list[Any]]:
        """The program for arguments that are traced, and those of their leaves that are not static."""
        leaves, tree = jax.tree.flatten((args, kwargs))
        key = (tree, tuple(jax.typeof(leaf) if _is_traced(leaf) else leaf for leaf in leaves), trace_context())
        with self._lock:
            if key not in self._programs:
                donated = self._donated.flags(args, kwargs)
                traced = self._traceable.trace(*args, **kwargs)
                self._programs[key] = _Program(len(self._programs), self._fun, traced, donated, self._options)
            return self._programs[key], [leaf for leaf in leaves if _is_traced(leaf)]

    def _program_of(self, args: Any, kwargs: Any) -> _Program:
        """The program for concrete or abstract arguments, without running it."""
        found: list[_Program] = []
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
            if not self._layout:
                return {}
            # Copies: a call gives the memory of its own to the new state.
            return {**_as_jax(self._tensors), _state.HASH: _state.layout_hash({"state": self._layout})}

    @state.setter
    def state(self, state: Mapping[str, Any]) -> None:
        with self._lock:
            state = _state.saved(state)
            self._sources = None  # Casts may be of other scales.
            if self._layout:
                _state.check(state, {"state": self._layout})
                self._tensors = _as_jax({name: value for name, value in state.items() if name != _state.HASH})
            else:
                self._pending = dict(state)

    _pending: dict[str, Any] | None = None

    def _adopt(self, program: _Program) -> None:
        """Starts with the state that was set before the first call, or with the program's initial one."""
        state = self._pending if self._pending is not None else program.library.state()
        _state.check(state, program.library.manifest)
        self._layout = program.layout
        self._tensors = _as_jax({name: value for name, value in state.items() if name != _state.HASH})
        self._pending = None

    @property
    def columns(self) -> list[dict[str, Any]]:
        """The columns of the state: dicts with index, sites, tensor, format and fp8_max; empty before the first call."""
        return list(self._layout.get("columns", []))

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

    def _chosen(self, args: Any, kwargs: Any, name: str) -> _Program:
        if args or kwargs:
            return self._program_of(args, kwargs)
        if not self._programs:
            raise RuntimeError(f"{name}() without arguments is about the last call, and there was none: call the step first, or pass its arguments")
        return self._numbered(next(iter(self._casts), -1))

    def __repr__(self) -> str:
        return f"<fp8.jax.Step {getattr(self._fun, '__name__', self._fun)}: {len(self._programs)} compiled>"


class Lowered:
    """A function as MLIR (linalg on tensors), as fp8-compile reads it."""

    def __init__(self, program: _Program) -> None:
        self._program = program

    def as_text(self) -> str:
        return self._program.text

    def compile(self) -> Library:
        """The compiled library; a call of the step with such arguments finds it in the cache."""
        return self._program.library


def _check_layout(new: Mapping[str, Any], old: Mapping[str, Any]) -> None:
    if new[_state.HASH] != old[_state.HASH]:
        raise StateError(
            "these arguments make another program, whose FP8 state has another layout than the step's: use a second "
            f"fp8.jax.jit for them. The step's columns: {_named(old)}. The new program's: {_named(new)}"
        )


def _named(layout: Mapping[str, Any]) -> str:
    return "; ".join(f"{c['tensor']} of {', '.join(c['sites'])} in {c['format']}" for c in layout.get("columns", [])) or "none"


class _Chosen:
    """The arguments that are donated, or static: those given by number or by name, as jax.jit completes the two.

    If only one of numbers and names is given, the other follows from the function's signature.
    """

    def __init__(self, fun: Callable[..., Any], numbers: Argnums, names: Argnames) -> None:
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        known = [p.name for p in _parameters(fun) or () if p.kind in positional]
        self.numbers = () if numbers is None else (numbers,) if isinstance(numbers, int) else tuple(numbers)
        self.names = () if names is None else (names,) if isinstance(names, str) else tuple(names)
        if numbers is None:
            self.numbers = tuple(known.index(name) for name in self.names if name in known)
        elif names is None:
            self.names = tuple(known[n] for n in self.numbers if -len(known) <= n < len(known))

    def shifted(self) -> tuple[int, ...]:
        """The numbers with one more argument in front."""
        return tuple(n + 1 if n >= 0 else n for n in self.numbers)

    def _has(self, number: int, count: int) -> bool:
        return number in self.numbers or number - count in self.numbers

    def flags(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[bool]:
        """For each traced leaf of the arguments whether it is chosen."""
        chosen = [self._has(i, len(args)) for i in range(len(args))] + [name in self.names for name in sorted(kwargs)]
        values = [*args, *(kwargs[name] for name in sorted(kwargs))]
        return [c for c, value in zip(chosen, values) for leaf in jax.tree.leaves(value) if _is_traced(leaf)]

    def without(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The arguments that are not chosen."""
        return [a for i, a in enumerate(args) if not self._has(i, len(args))], {k: v for k, v in kwargs.items() if k not in self.names}


def _parameters(fun: Callable[..., Any]) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return None


def _is_traced(leaf: Any) -> bool:
    return isinstance(leaf, _TRACER)


def trace_context() -> Any:
    """What else JAX's tracing depends on: x64, default precision and other settings."""
    from jax._src import config

    return config.trace_context()


def _as_jax(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Copies of the tensors that a call may donate; the hash stays as it is."""
    return {name: value if name == _state.HASH else jax.numpy.array(value) for name, value in tensors.items()}
