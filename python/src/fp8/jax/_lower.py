# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A traced JAX function as linalg on tensors: the text that fp8-compile reads.

jaxlib's own MLIR does all of it. The lowering is for a platform that JAX does not know, so that every
primitive takes its default rule (no custom calls of the CPU backend), but for those in `RULES`.
Functions that JAX lowers on their own stay so: fp8-compile inlines them.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.extend.core
from jax._src import source_info_util, traceback_util
from jax._src.interpreters import mlir
from jaxlib.mlir import ir, passmanager
from jaxlib.mlir.dialects import stablehlo

from .._errors import Location, UnsupportedError
from . import _complex, _conversions, _primitives, _rewrites

_PLATFORM = "fp8"
_HIGH_LEVEL = ("stablehlo", "chlo", "mhlo", "sdy", "shape")
_SIMPLIFY = "builtin.module(func.func(chlo-legalize-to-stablehlo),canonicalize,cse)"
_TO_LINALG = "builtin.module(func.func(stablehlo-legalize-to-linalg),canonicalize,cse,symbol-dce)"
_NOT_SCOPES = ("jit", "pjit", "while", "body", "cond", "closed_call", "checkpoint", "rematted_computation")
_ADVICE = "keep that part in an outer jax.jit, and the rest in a function of its own with fp8.jax.function"

stablehlo.register_stablehlo_passes()


def hide_frames(folder: str) -> None:
    """Leaves the files of a folder out of the locations and tracebacks that JAX shows to users."""
    source_info_util.register_exclusion(folder)
    traceback_util.register_exclusion(folder)


def definition(fun: Any) -> Location | None:
    """Where a function is written, if that is known."""
    fun = inspect.unwrap(fun.func if isinstance(fun, functools.partial) else fun)
    code = getattr(getattr(fun, "__func__", fun), "__code__", None)
    return Location(code.co_filename, code.co_firstlineno, 1) if code else None


def to_linalg(traced: jax.stages.Traced, place: Location | None = None) -> ir.Module:
    """The traced function as `@main` of a module with operations of linalg, tensor, arith, math and scf.

    Its complex arguments and results are pairs of floats.
    `place` is the location of what has none, such as arguments. Raises UnsupportedError, with the
    user's line, for an operation or effect that has no such form.
    """
    _check_effects(traced.jaxpr)
    module = lower(traced)
    with module.context:
        _complex.split(module)
        module_to_linalg(module)
        if place:
            set_locations(module.operation, lambda location: with_file(location, place))
    return module


def lower(traced: jax.stages.Traced) -> ir.Module:
    """The traced function in StableHLO, with its scatters and sorts as loops."""
    parameters = mlir.LoweringParameters(override_lowering_rules=_primitives.RULES)
    # JAX describes the arguments in their tree, where a class of the user's may refuse what is no array (jmp's loss scales).
    traced._in_tree = jax.tree.structure((tuple(traced.jaxpr.in_avals), {}))
    try:
        lowered = traced.lower(lowering_platforms=(_PLATFORM,), _private_parameters=parameters)
    except NotImplementedError as error:
        raise _unsupported_primitive(traced.jaxpr, error) from None
    module: ir.Module = lowered.compiler_ir("stablehlo")
    return module


def module_to_linalg(module: ir.Module, advice: str = _ADVICE) -> None:
    """Lowers a module of StableHLO in place; call it with the module's context entered. Raises UnsupportedError."""
    try:
        run(_SIMPLIFY, module)
        _rewrites.rewrite(module)
        run(_TO_LINALG, module)
    except ir.MLIRError as error:  # An operation that one of jaxlib's passes makes and refuses.
        first = error.error_diagnostics[0]
        scope, location = _place(first.location)
        raise UnsupportedError(_in_scope(*_split(scope), f"jaxlib cannot lower this: {first.message}; {advice}"), location) from None
    _conversions.as_xla(module)
    _check_operations(module, advice)
    _drop_attributes(module)


def text_of(modules: dict[str, ir.Module]) -> str:
    """One module's text with the `@main` of each given module under the given name."""
    for name, module in modules.items():
        rename(module, name)
    first, *others = modules.values()
    with first.context:
        for other in others:
            for function in ir.Module.parse(text(other)).body.operations:
                function.operation.clone(ip=ir.InsertionPoint(first.body))
        return text(first)


def text(module: ir.Module) -> str:
    return str(module.operation.get_asm(enable_debug_info=True, large_elements_limit=None))


def rename(module: ir.Module, name: str) -> None:
    """`@main` as `@name`, another function `f` as `name.f`, so that functions of two modules never clash."""
    with module.context:
        functions = list(module.body.operations)
        for function in functions:
            old = ir.StringAttr(function.attributes["sym_name"]).value
            new = name if old == "main" else f"{name}.{old}"
            for user in functions:
                ir.SymbolTable.replace_all_symbol_uses(old, new, user.operation)
            ir.SymbolTable.set_symbol_name(function.operation, new)


def run(pipeline: str, module: ir.Module) -> None:
    passmanager.PassManager.parse(pipeline).run(module.operation)


def _drop_attributes(module: ir.Module) -> None:
    """Attributes of the module are about partitions and replicas of XLA."""
    for name in [a.name if hasattr(a, "name") else a for a in module.operation.attributes]:
        if name.startswith(("mhlo.", "jax.", "sdy.")):
            del module.operation.attributes[name]


# Errors


def _check_effects(jaxpr: Any) -> None:
    """Raises for effects and for calls of Python, at the innermost equation that has one."""
    for equation in _equations(jaxpr):
        name = equation.primitive.name
        inner = [j for j in jax.extend.core.jaxprs_in_params(equation.params) if j.effects]
        if equation.effects and not inner:
            message = f"{name} has an effect ({_joined(equation.effects)}), and compiled code has none: leave it out, or {_ADVICE}"
        elif name == "pure_callback":
            message = f"{name} calls Python, and compiled code does not: {_ADVICE}"
        else:
            continue
        raise UnsupportedError(_in_scope(_scope(equation), name, message), _location(equation))
    if jaxpr.effects:
        raise UnsupportedError(f"the function has an effect ({_joined(jaxpr.effects)}), and compiled code has none")


def _joined(effects: Any) -> str:
    return ", ".join(sorted(str(e) for e in effects))


def _unsupported_primitive(jaxpr: Any, error: NotImplementedError) -> UnsupportedError:
    match = re.search(r"rule for primitive '(.*?)' not found", str(error))
    if not match:
        return UnsupportedError(str(error))
    name = match[1]
    equation = next((e for e in _equations(jaxpr) if e.primitive.name == name), None)
    if equation is None:  # Inside of another primitive's own rule.
        return UnsupportedError(f"{name} has no code: {_ADVICE}")
    return UnsupportedError(_in_scope(_scope(equation), name, f"{name} has no code: {_ADVICE}"), _location(equation))


def _equations(jaxpr: Any) -> Iterator[Any]:
    """The equations of a jaxpr in order, each before those of the functions that it calls."""
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        yield equation
        for inner in jax.extend.core.jaxprs_in_params(equation.params):
            yield from _equations(inner)


def _scope(equation: Any) -> str:
    return str(equation.source_info.name_stack)


def _location(equation: Any) -> Location | None:
    frame = source_info_util.user_frame(equation.source_info.traceback)
    return Location(frame.file_name, frame.start_line, frame.start_column + 1) if frame else None


def _in_scope(scope: str, operation: str, message: str) -> str:
    """ "in h0/fc (fft): message", without JAX's own words of a name stack, which are no help to a reader."""
    scope, before = re.sub(r"\bjit\([^()]*\)", "", scope), None
    while before != scope:
        scope, before = re.sub(r"\b(?:jvp|transpose|vmap)\(([^()]*)\)", r"\1", scope), scope
    names = [name for name in scope.split("/") if name and name not in _NOT_SCOPES]
    place = f"in {'/'.join(names)} ({operation})" if names else operation
    return f"{place}: {message}" if place else message


def _check_operations(module: ir.Module, advice: str) -> None:
    left: list[ir.Operation] = []

    def collect(op: ir.Operation) -> ir.WalkResult:
        if op.name.split(".")[0] in _HIGH_LEVEL:
            left.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(collect)
    if left:
        scope, location = _place_in_module(left[0], module)
        others = sorted({op.name for op in left[1:]} - {left[0].name})
        more = f" (as have {', '.join(others)})" if others else ""
        message = f"{_described(left[0])} has no code{more}: {advice}"
        raise UnsupportedError(_in_scope(*_split(scope), message), location)


def _place_in_module(op: ir.Operation, module: ir.Module) -> tuple[str, Location | None]:
    """As `_place`, with the scopes of the first call of each function around the operation."""
    scope, location = _place(op.location)
    function = op
    while function.name != "func.func":
        function = function.parent
    name = ir.StringAttr(function.attributes["sym_name"]).value
    callers: list[ir.Operation] = []

    def collect(op: ir.Operation) -> ir.WalkResult:
        if op.name == "func.call" and ir.FlatSymbolRefAttr(op.attributes["callee"]).value == name:
            callers.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(collect)
    if not callers:
        return scope, location
    outer, caller = _place_in_module(callers[0], module)
    return "/".join(filter(None, (outer, scope))), location or caller


def _described(op: ir.Operation) -> str:
    if op.name == "stablehlo.custom_call":
        return f"the custom call {op.attributes['call_target_name']}"
    return str(op.name)


def _split(scope: str) -> tuple[str, str]:
    head, _, last = scope.rpartition("/")
    return head, last


def set_locations(root: Any, choose: Callable[[ir.Location], ir.Location]) -> None:
    """Gives every operation and argument within `root` the location that `choose` returns for its own."""

    def set_location(op: Any) -> ir.WalkResult:
        op.location = choose(op.location)
        for region in op.regions:
            for argument in (a for block in region.blocks for a in block.arguments):
                argument.set_location(choose(argument.location))
        return ir.WalkResult.ADVANCE

    root.walk(set_location)


def with_file(location: ir.Location, fallback: Location) -> ir.Location:
    """The location, at a place in a file if it has none."""
    if place(location):
        return location
    file = ir.Location.file(*fallback)
    return ir.Location.name(location.name_str, file) if isinstance(location, ir.NameLoc) else file


def place(location: ir.Location) -> Location | None:
    """The innermost position in a file."""
    return _place(location)[1]


def _place(location: ir.Location) -> tuple[str, Location | None]:
    """The name stack of a location, callers first, and its innermost position in a file."""
    if isinstance(location, ir.CallSiteLoc):
        (outer, caller), (inner, callee) = _place(location.caller), _place(location.callee)
        return "/".join(filter(None, (outer, inner))), callee or caller
    if isinstance(location, ir.NameLoc):  # The child's names are those of Python functions.
        return location.name_str, _place(location.child_loc)[1]
    if isinstance(location, ir.FusedLoc):
        places = [_place(part) for part in location.locations]
        return next(iter(places), ("", None))
    if isinstance(location, ir.FileLineColLoc):
        return "", Location(location.filename, location.start_line, location.start_col)
    return "", None
