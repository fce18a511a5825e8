# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A traced JAX function as linalg on tensors: the text that fp8-compile reads.

jaxlib's own MLIR does all of it, its passes in a process of their own. The lowering is for a platform that JAX does not know, so that every
primitive takes its default rule (no custom calls of the CPU backend), but for those in `RULES`.
Functions that JAX lowers on their own stay so: fp8-compile inlines them.
"""

from __future__ import annotations

import io
import math
import re

import jax
import numpy as np
from jax._src.interpreters import mlir
from jaxlib.mlir import ir, passmanager
from jaxlib.mlir.dialects import stablehlo

from ... import _outside
from ..._errors import CompileError, Location, UnsupportedError, placed
from . import _complex, _conversions, _primitives, _rewrites, _unsupported
from ._places import in_scope, scope_and_place, set_locations, split, with_file

_PLATFORM = "fp8"
_SIMPLIFY = "builtin.module(func.func(chlo-legalize-to-stablehlo),canonicalize,cse)"
_TO_LINALG = "builtin.module(func.func(stablehlo-legalize-to-linalg),canonicalize,cse,symbol-dce)"

stablehlo.register_stablehlo_passes()


def to_linalg(traced: jax.stages.Traced, place: Location | None = None) -> ir.Module:
    """The traced function as `@main` of a module with operations of linalg, tensor, arith, math and scf.

    Its complex arguments and results are pairs of floats.
    `place` is the location of what has none, such as arguments. Raises UnsupportedError, with the
    user's line, for an operation or effect that has no such form.
    """
    _unsupported.check_equations(traced.jaxpr, place)
    module = lower(traced, place)
    with module.context:
        _complex.split(module)
        with placed(place):
            module_to_linalg(module)
        if place:
            set_locations(module.operation, lambda location: with_file(location, place))
    return module


def lower(traced: jax.stages.Traced, place: Location | None = None) -> ir.Module:
    """The traced function in StableHLO, with its scatters and sorts as loops."""
    parameters = mlir.LoweringParameters(override_lowering_rules=_primitives.RULES)
    # JAX describes the arguments in their tree, where a class of the user's may refuse what is no array (jmp's loss scales).
    traced._in_tree = jax.tree.structure((tuple(traced.jaxpr.in_avals), {}))
    try:
        lowered = traced.lower(lowering_platforms=(_PLATFORM,), _private_parameters=parameters)
    except NotImplementedError as error:
        raise _unsupported.primitive(traced.jaxpr, error, place) from None
    module: ir.Module = lowered.compiler_ir("stablehlo")
    return module


def module_to_linalg(module: ir.Module, advice: str = _unsupported.ADVICE) -> None:
    """Lowers a module of StableHLO in place; call it with the module's context entered. Raises UnsupportedError."""
    load_dialects(module.context)
    try:
        run(_SIMPLIFY, module)
        _rewrites.rewrite(module)
        run(_TO_LINALG, module)
    except _outside.Refused as error:  # An operation that one of jaxlib's passes makes and refuses.
        first = error.diagnostics[0]
        scope, location = scope_and_place(parse_location(first.location))
        raise UnsupportedError(in_scope(*split(scope), f"jaxlib cannot lower this: {first.message}; {advice}"), location) from None
    _conversions.as_xla(module)
    _unsupported.check_operations(module, advice)
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
        return text_for_compiler(first)


def text_for_compiler(module: ir.Module) -> str:
    """The text that fp8-compile's MLIR reads."""
    return re.sub(r'dense<"0x([0-9A-F]*)"> : tensor<([\dx]*)xi1>', _with_packed_bits, text(module))


def _with_packed_bits(constant: re.Match[str]) -> str:
    """Hexadecimal elements of i1: a byte each where MLIR is newer (jaxlib 0.10.2), a bit each in that of LLVM 22."""
    digits, shape = constant.groups()
    elements = np.frombuffer(bytes.fromhex(digits), np.uint8)
    if elements.size != math.prod(map(int, shape.split("x"))):
        return constant[0]
    return f'dense<"0x{np.packbits(elements, bitorder="little").tobytes().hex().upper()}"> : tensor<{shape}xi1>'


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
    """Runs jaxlib's passes on a module in place; call it with the module's context entered. Raises _outside.Refused, CompileError."""
    program = io.BytesIO()
    module.operation.write_bytecode(program)
    done = parse(_outside.run(_outside.JAXLIB, pipeline, program.getvalue(), lambda: text(module).encode()))
    for old in list(module.body.operations):
        old.operation.erase()
    for new in list(done.body.operations):
        module.body.append(new)


def load_dialects(context: ir.Context) -> None:
    """Loads what passes and `_rewrites` make; call it with the context entered. It fills the time in which the first process for passes starts."""
    passmanager.PassManager.parse(_TO_LINALG).run(ir.Module.parse("").operation)  # On nothing, as passes load the dialects of their results.
    _rewrites.load_dialects(context)


def parse(program: bytes) -> ir.Module:
    """The answer of jaxlib's passes. Raises CompileError where it is no module."""
    try:
        return ir.Module.parse(program)
    except ir.MLIRError as error:
        raise CompileError(f"the passes of {_outside.JAXLIB} gave a program that cannot be read: {error}") from None


def parse_location(location: str) -> ir.Location:
    return ir.Module.parse(f"module {{}} {location}").operation.location


def _drop_attributes(module: ir.Module) -> None:
    """Attributes of the module are about partitions and replicas of XLA."""
    for name in [a.name if hasattr(a, "name") else a for a in module.operation.attributes]:
        if name.startswith(("mhlo.", "jax.", "sdy.")):
            del module.operation.attributes[name]
