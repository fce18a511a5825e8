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
import threading
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax
import numpy as np
from jax.interpreters import partial_eval

from .. import state as _state
from .._errors import StateError, hide_frames, hiding_frames
from .._report import Report
from . import _call, _leaves, _target
from ._casts import Sources
from ._chosen import TRACER
from ._compiled import Lowered
from ._held import Held, as_jax, named_columns
from ._program import NOT_TRANSFORMABLE, Program
from ._programs import Programs

_TRACED_CALL = (
    "a step of fp8.jax.jit that keeps a state was called inside of a jit, scan or grad, where nothing can be kept: "
    "make the state with step.init(…), and call step.apply(state, …), which returns the new one"
)


class _StateNeeded(Exception):
    """Raised while JAX traces a program that has state, for a step that has none yet."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.program = program


def _refuse_traced(tensors: Iterable[Any]) -> None:
    for tensor in tensors:
        if isinstance(tensor, TRACER):
            raise TypeError(_TRACED_CALL)


def _refusal(args: Any, kwargs: Any) -> Exception | None:
    """The mistake of a call inside of a jit, scan, grad or vmap, where its program does not get as far as to
    say so."""
    tracers = [leaf for leaf in jax.tree.leaves((args, kwargs)) if isinstance(leaf, TRACER)]
    if not tracers:
        return None
    is_staged = all(isinstance(tracer, partial_eval.DynamicJaxprTracer) for tracer in tracers)
    return TypeError(_TRACED_CALL) if is_staged else NotImplementedError(NOT_TRANSFORMABLE)


class Step:
    """A function compiled by `fp8.jax.jit`, and its FP8 state.

    It is called like the function. Each call reads and replaces `state`, a dict of arrays, so a
    checkpoint holds `step.state` beside the parameters. `init` and `apply` are the same without
    the state inside, for use within a jit or scan of the user's own. jax.grad, jax.vmap and
    jax.jvp of a step are not supported.

    >>> import fp8.jax
    >>> step = fp8.jax.jit(lambda w, x: x @ w, recipe="delayed", sites="all")
    >>> w, x = jax.numpy.ones((16, 8)), jax.numpy.ones((4, 16))
    >>> step(w, x).shape, sorted(step.state)[:2]
    ((4, 8), ['amax_history', 'layout_hash'])
    >>> state, y = step.apply(step.init(w, x), w, x)
    """

    def __init__(self, fun: Callable[..., Any], options: Mapping[str, Any], jit_options: Mapping[str, Any]) -> None:
        functools.update_wrapper(self, fun, updated=())
        self._fun = fun
        self._options = dict(options)
        self._jit_options = dict(jit_options)
        self._lock = threading.RLock()
        #: Whether casts of weights go in and out of JAX beside the state. Without any they would cost a call some microseconds.
        self._with_casts = bool(options.get("fp8_parameters"))
        self._programs = Programs(fun, options, jit_options)
        self._start_again()
        self._held = Held()

    def _start_again(self) -> None:
        #: The last call's program is the one whose number is the length of this: JAX makes a tuple of None faster than anything that holds a number.
        self._last: tuple[None, ...] | None = None
        #: That program's number, and its casts of weights by name.
        self._casts: dict[int, dict[str, Any]] = {}
        self._sources: Sources | None = None
        #: The functions that JAX jitted: JAX's traces know no devices, so that each place of the arguments has its own.
        self._steppers: dict[_target.Place, Any] = {}
        self._appliers: dict[_target.Place, Any] = {}
        self._stepper = self._stepper_at(None)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """As a function in a class, which becomes a method."""
        return self if instance is None else types.MethodType(self, instance)

    def __copy__(self) -> Step:
        """A step with a state of its own, which begins as this one's."""
        make, arguments = self.__reduce__()
        return make(*arguments)

    def __deepcopy__(self, memo: Any) -> Step:
        return self.__copy__()

    def __reduce__(self) -> tuple[Callable[..., Step], tuple[Any, ...]]:
        """A pickle has the function, by its name, and the state; what was compiled is found in the cache."""
        with self._lock:
            return _with_state, (self._fun, self._options, self._jit_options, self.state or self._held.pending)

    # Calls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's result; `state` is read and replaced."""
        __tracebackhide__ = True
        programs = self._programs
        # As `hiding_frames`, whose wrapper would be one more frame of every call.
        try:
            with self._lock:
                while True:
                    try:
                        if programs.static_leaves or self._with_casts:
                            tensors, last, result = self._step_with_more(args, kwargs)
                        else:
                            # From here and not deeper: JAX notes the Python stack in every call, a microsecond for each frame.
                            stepper = self._stepper_for(args, kwargs) if _target.has_gpus() else self._stepper
                            tensors, last, result = stepper(self._held.tensors, *args, **kwargs)
                        break
                    except _StateNeeded as error:
                        self._held.adopt(error.program)
                    except TypeError as error:
                        if not programs.needs_static(error, args, kwargs):
                            raise
                    except StateError as error:
                        raise _refusal(args, kwargs) or error from None
                _refuse_traced(tensors)
                self._held.tensors, self._last = tensors, last
            return result
        except BaseException as error:
            hide_frames(error)
            raise

    def _stepper_at(self, place: _target.Place) -> Any:
        if place not in self._steppers:
            self._steppers[place] = self._programs.jitted(_target.within(place, self._traced_step), donate_state=True)
        return self._steppers[place]

    def _stepper_for(self, args: Any, kwargs: Any) -> Any:
        return self._stepper_at(_target.place_of(jax.tree.leaves((args, kwargs))))

    def _applier_for(self, args: Any, kwargs: Any) -> Any:
        place = _target.place_of(jax.tree.leaves((args, kwargs)))
        if place not in self._appliers:
            self._appliers[place] = self._programs.jitted(_target.within(place, self._traced_apply))
        return self._appliers[place]

    def _step_with_more(self, args: Any, kwargs: Any) -> tuple[tuple[Any, ...], tuple[None, ...], Any]:
        """The new state, the program and the result of a call with leaves as static, with casts of weights, or both."""
        static = self._programs.static_leaves
        if static:
            args, kwargs = _leaves.wrap((args, kwargs), static)
        state: Any = self._held.tensors
        if self._with_casts:
            state = state, self._usable_casts(args, kwargs)
        new, last, result = self._stepper_for(args, kwargs)(state, *args, **kwargs)
        if self._with_casts:
            new, casts = new
            _refuse_traced(casts.values())
            self._keep_casts(len(last), casts, args, kwargs, result)
        return new, last, _leaves.unwrap(result) if static else result

    def _usable_casts(self, args: Any, kwargs: Any) -> dict[int, dict[str, Any]]:
        """The last call's casts, if they are of the weights among these arguments."""
        return self._casts if self._sources and self._sources.are_in(self._programs.arrays(args, kwargs)) else {}

    def _keep_casts(self, number: int, casts: dict[str, Any], args: Any, kwargs: Any, result: Any) -> None:
        self._casts = {number: casts}
        self._sources = Sources(self._programs.numbered(number).casts, self._programs.arrays(args, kwargs), jax.tree.leaves(result)) if casts else None

    def _traced_step(self, state: Any, *args: Any, **kwargs: Any) -> Any:
        tensors, casts = state if self._with_casts else (state, {})
        program, leaves = self._programs.of_traced(args, kwargs)
        if program.tensors:
            if not self._held.layout:
                raise _StateNeeded(program)
            self._held.check(program)
        new, result = program.call({**self._held.named(tensors), **casts.get(program.number, {})}, leaves)
        kept = tuple(new[name] for name in self._held.names)
        if self._with_casts:
            kept = kept, {name: new[name] for name in sorted(program.casts.names)}
        return kept, (None,) * program.number, result

    @hiding_frames
    def init(self, *args: Any, **kwargs: Any) -> _state.State:
        """A new state for these arguments, which may be jax.ShapeDtypeStructs; `state` stays as it is.

        With fp8_parameters=True it has the casts of the weights among the arguments, if those are arrays.
        """
        program = self._programs.of(args, kwargs)
        state = as_jax(_state.initial(program.library.manifest))
        if program.casts.names and not any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in jax.tree.leaves((args, kwargs))):
            cast = self._programs.jitted(self._traced_casts, donate=False)
            state |= self._programs.with_static_leaves(lambda args, kwargs: cast(state, *args, **kwargs), args, kwargs)
        return state

    def _traced_casts(self, state: dict[str, Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
        program, leaves = self._programs.of_traced(args, kwargs)
        return program.casts.make([*map(_call.physical, leaves)], state, NOT_TRANSFORMABLE)

    @hiding_frames
    def apply(self, state: _state.State, *args: Any, **kwargs: Any) -> tuple[_state.State, Any]:
        """(new state, result): the pure form of a call, for a jit, scan or shard_map of the user's own.

        With fp8_parameters=True the state has casts of weights, which are taken for those of the
        weights among the arguments. Give other weights with a state from `init` or without casts,
        as `fp8.state.saved(state)`: then the call makes them.
        """
        _state.check_mapping(state)
        layout = state.get(_state.HASH)
        if layout is not None and not isinstance(layout, TRACER):
            # As static, so that it is checked for each program, and not sent through XLA.
            state = {**state, _state.HASH: _leaves.Static(np.asarray(layout).tobytes())}
        new, result = self._programs.with_static_leaves(lambda args, kwargs: self._applier_for(args, kwargs)(state, *args, **kwargs), args, kwargs)
        return (new if layout is None else {**new, _state.HASH: layout}), result

    def _traced_apply(self, state: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        program, leaves = self._programs.of_traced(args, kwargs)
        for name, tensor in program.tensors.items():
            if name not in state:
                raise StateError(f"the state lacks {name}: make one with init(…)")
            if (shape := tuple(state[name].shape)) != tuple(tensor["shape"]):
                raise StateError(f"{name} of the state has the shape {shape}, not {tuple(tensor['shape'])}")
        layout = state.get(_state.HASH)
        if isinstance(layout, _leaves.Static) and program.tensors and layout.value.hex() != program.layout[_state.HASH]:
            raise StateError(f"the state is another program's: the columns of this one are {named_columns(program.layout)}")
        return program.call(state, leaves)

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
            _state.check_mapping(state)
            state = _state.saved(state)
            self._sources = None  # Casts may be of other scales.
            self._held.replace(state)

    @property
    def columns(self) -> list[dict[str, Any]]:
        """The columns of the state: dicts with index, sites, tensor, format and fp8_max; empty before the first call."""
        return list(self._held.layout.get("columns", []))

    # The compiled program

    @hiding_frames
    def report(self, *args: Any, **kwargs: Any) -> Report:
        """Every matrix product and what became of it, for these arguments, or without any for the last call's.

        Raises RuntimeError without arguments before the first call.
        """
        return self._chosen(args, kwargs, "report").library.report

    @hiding_frames
    def ir(self, stage: str, *args: Any, **kwargs: Any) -> str:
        """The compiler's IR after a stage ("ingest", "recipe", "fusion", …); arguments as for `report`."""
        return self._chosen(args, kwargs, "ir").library.ir(stage)

    @hiding_frames
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The function as MLIR, not compiled yet."""
        return Lowered(self._programs.of(args, kwargs), self, lambda args, kwargs: (list(args), kwargs), args, kwargs, self._programs.static)

    @hiding_frames
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The shapes and types of the function's result, as jax.jit's eval_shape gives them; nothing is compiled."""
        return self._programs.eval_shape(args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "trace":
            raise AttributeError("a step of fp8.jax.jit has no trace: step.lower(…).as_text() is its program, jax.make_jaxpr shows the function's jaxpr")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def clear_cache(self) -> None:
        """Forgets what was compiled; the state stays."""
        with self._lock:
            self._programs.clear()
            self._start_again()

    def _chosen(self, args: Any, kwargs: Any, name: str) -> Program:
        if args or kwargs:
            return self._programs.of(args, kwargs)
        if not self._programs:
            raise RuntimeError(f"{name}() without arguments is about the last call, and there was none: call the step first, or pass its arguments")
        return self._programs.numbered(-1 if self._last is None else len(self._last))

    def __repr__(self) -> str:
        return f"<fp8.jax.Step {getattr(self._fun, '__name__', self._fun)}: {len(self._programs)} compiled>"


def _with_state(fun: Callable[..., Any], options: Mapping[str, Any], jit_options: Mapping[str, Any], state: Mapping[str, Any] | None) -> Step:
    step = Step(fun, options, jit_options)
    if state:
        step.state = state
    return step
