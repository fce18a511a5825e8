# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Places in the user's source: of functions, of equations of a jaxpr, of locations of MLIR; and which of them users see."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any

from jax._src import source_info_util, traceback_util
from jaxlib.mlir import ir

from ..._errors import Location

_NOT_SCOPES = ("jit", "pjit", "while", "body", "cond", "closed_call", "checkpoint", "rematted_computation")


def hide_frames(folder: str) -> None:
    """Leaves the files of a folder out of the locations and tracebacks that JAX shows to users."""
    source_info_util.register_exclusion(folder)
    traceback_util.register_exclusion(folder)


def definition(fun: Any) -> Location | None:
    """Where a function is written, if that is known."""
    fun = inspect.unwrap(fun.func if isinstance(fun, functools.partial) else fun)
    code = getattr(getattr(fun, "__func__", fun), "__code__", None)
    return Location(code.co_filename, code.co_firstlineno, 1) if code else None


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
    return scope_and_place(location)[1]


def scope_and_place(location: ir.Location) -> tuple[str, Location | None]:
    """The name stack of a location, callers first, and its innermost position in a file."""
    if isinstance(location, ir.CallSiteLoc):
        (outer, caller), (inner, callee) = scope_and_place(location.caller), scope_and_place(location.callee)
        return "/".join(filter(None, (outer, inner))), callee or caller
    if isinstance(location, ir.NameLoc):  # The child's names are those of Python functions.
        return location.name_str, scope_and_place(location.child_loc)[1]
    if isinstance(location, ir.FusedLoc):
        places = [scope_and_place(part) for part in location.locations]
        return next(iter(places), ("", None))
    if isinstance(location, ir.FileLineColLoc):
        return "", Location(location.filename, location.start_line, location.start_col)
    return "", None


def scope_and_place_in_module(op: ir.Operation, module: ir.Module) -> tuple[str, Location | None]:
    """As `scope_and_place`, with the scopes of the first call of each function around the operation."""
    scope, location = scope_and_place(op.location)
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
    outer, caller = scope_and_place_in_module(callers[0], module)
    return "/".join(filter(None, (outer, scope))), location or caller


def place_in_module(op: Any) -> Location | None:
    """The position of an operation, or of the first call of the function that it is in."""
    module = op.operation
    while module.parent is not None:
        module = module.parent.operation
    return scope_and_place_in_module(op.operation, module.opview)[1]


def scope_of(equation: Any) -> str:
    return str(equation.source_info.name_stack)


def place_of(equation: Any) -> Location | None:
    frame = source_info_util.user_frame(equation.source_info.traceback)
    return Location(frame.file_name, frame.start_line, frame.start_column + 1) if frame else None


def in_scope(scope: str, operation: str, message: str) -> str:
    """ "in h0/fc (fft): message", without JAX's own words of a name stack, which are no help to a reader."""
    scope, before = re.sub(r"\bjit\([^()]*\)", "", scope), None
    while before != scope:
        scope, before = re.sub(r"\b(?:jvp|transpose|vmap)\(([^()]*)\)", r"\1", scope), scope
    names = [name for name in scope.split("/") if name and name not in _NOT_SCOPES]
    place = f"in {'/'.join(names)} ({operation})" if names else operation
    return f"{place}: {message}" if place else message


def split(scope: str) -> tuple[str, str]:
    head, _, last = scope.rpartition("/")
    return head, last
