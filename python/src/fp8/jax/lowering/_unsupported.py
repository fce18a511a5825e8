# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations that compiled code has no form of, as errors at the user's line."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from typing import Any

import jax
import jax.extend.core
from jax._src import core
from jax._src.state.types import RefEffect
from jaxlib.mlir import ir

from ..._errors import Location, UnsupportedError
from ._places import in_scope, place_of, scope_and_place_in_module, scope_of, split

_HIGH_LEVEL = ("stablehlo", "chlo", "mhlo", "sdy", "shape")
ADVICE = "keep that part in an outer jax.jit, and the rest in a function of its own with fp8.jax.function"


def check_equations(jaxpr: Any, place: Location | None) -> None:
    """Raises for effects, calls of Python and what needs several devices, at the innermost equation that has one.

    `place` is the location of an equation that has none.
    """
    # JAX itself replaces references (jax.new_ref) that the function makes; those of others are effects of the whole.
    own = () if any(isinstance(e, RefEffect) for e in jaxpr.effects) else (RefEffect, type(core.internal_mutable_array_effect))
    for equation in _equations(jaxpr):
        if problem := _problem(equation, own):
            message = in_scope(scope_of(equation), equation.primitive.name, problem)
            raise UnsupportedError(message, place_of(equation) or place)
    if effects := [e for e in jaxpr.effects if not isinstance(e, own)]:
        raise UnsupportedError(f"the function has an effect ({_joined(effects)}), and compiled code has none", place)


def _problem(equation: Any, own: tuple[type[Any], ...]) -> str | None:
    """Why compiled code has no form of an equation, and what to do; None for the others. Effects of the types `own` are none."""
    name = equation.primitive.name
    if name == "shard_map":
        return "it divides work over devices, and compiled code runs on one: put it around step.apply"
    if name == "ffi_call" and equation.params["target_name"] == "fp8_call":
        return "what fp8.jax compiled cannot be compiled again: call the function itself, which is its __wrapped__"
    if name == "pure_callback":
        return f"{name} calls Python, and compiled code does not: {ADVICE}"
    effects = [e for e in equation.effects if not isinstance(e, own)]
    if not effects or any(j.effects for j in jax.extend.core.jaxprs_in_params(equation.params)):
        return None
    if axes := [str(e.name) for e in effects if isinstance(e, core.NamedAxisEffect)]:
        return f"{name} is over several devices (axis {', '.join(axes)}), and compiled code runs on one: {ADVICE}"
    if any(isinstance(e, RefEffect) for e in effects):
        return f"{name} is of a reference from outside of the function: take its value as an argument, and return the new one"
    return f"{name} has an effect ({_joined(effects)}), and compiled code has none: leave it out, or {ADVICE}"


def _joined(effects: Any) -> str:
    return ", ".join(sorted(str(e) for e in effects))


def primitive(jaxpr: Any, error: NotImplementedError, place: Location | None) -> UnsupportedError:
    """The error for a primitive that JAX has no rule for."""
    match = re.search(r"rule for primitive '(.*?)' not found", str(error))
    if not match:
        return UnsupportedError(str(error), place)
    name = match[1]
    equation = next((e for e in _equations(jaxpr) if e.primitive.name == name), None)
    if equation is None:  # Inside of another primitive's own rule, as eigh in that of svd.
        equation = _equation_being_lowered(error)
    if equation is None:
        return UnsupportedError(f"{name} has no code: {ADVICE}", place)
    return UnsupportedError(in_scope(scope_of(equation), name, f"{name} has no code: {ADVICE}"), place_of(equation) or place)


def _equation_being_lowered(error: BaseException) -> Any:
    """The innermost equation on the stack of an error whose place in the user's source is known."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    equations = [frame.f_locals.get("eqn") for frame in frames if frame.f_code.co_name == "jaxpr_subcomp"]
    return next((e for e in reversed(equations) if e is not None and place_of(e)), None)


def _equations(jaxpr: Any) -> Iterator[Any]:
    """The equations of a jaxpr in order, each before those of the functions that it calls."""
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        yield equation
        for inner in jax.extend.core.jaxprs_in_params(equation.params):
            yield from _equations(inner)


def check_operations(module: ir.Module, advice: str) -> None:
    left: list[ir.Operation] = []

    def collect(op: ir.Operation) -> ir.WalkResult:
        if op.name.split(".")[0] in _HIGH_LEVEL:
            left.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(collect, ir.WalkOrder.PRE_ORDER)  # An operation before those of its body.
    if left:
        scope, location = scope_and_place_in_module(left[0], module)
        others = sorted({op.name for op in left[1:]} - {left[0].name, "stablehlo.return"})
        more = f" (as have {', '.join(others)})" if others else ""
        message = f"{_described(left[0])} has no code{more}: {advice}"
        raise UnsupportedError(in_scope(*split(scope), message), location)


def _described(op: ir.Operation) -> str:
    if op.name == "stablehlo.custom_call":
        return f"the custom call {op.attributes['call_target_name']}"
    return str(op.name)
