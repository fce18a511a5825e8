# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""StableHLO of any front end (jax.export, torch_xla) as linalg: the input of `fp8.compile`.

Programs that fp8.jax traces itself have neither scatters nor sorts (`_primitives`). Programs from elsewhere do,
which become calls of the same loops (`_loops`).
"""

from __future__ import annotations

from typing import Any

import jaxlib
from jax._src.interpreters import mlir
from jaxlib.mlir import ir

from ... import _outside
from ..._errors import CompileError, Location, UnsupportedError
from . import _loops, _lower, _places

#: The name that jaxlib gives the file of a text.
_TEXT = "-"
_PREPARE = "builtin.module(func.func(stablehlo-legalize-composite-to-call,chlo-legalize-to-stablehlo))"
_ADVICE = "lower it to other operations before, or leave that part out of the program"
_QUANTIZED = "quantized types (!quant.uniform) are not supported: export the program without quantization, or dequantize its tensors"
#: The words of MLIR about such a type, whose dialect jaxlib lacks: of text, and of bytecode.
_QUANTIZED_WORDS = ('!"quant"<', "dialect 'quant' is unknown")
_DONATED, _CARRIED = "jax.buffer_donor", "tf.aliasing_output"


def to_linalg(source: bytes, name: str) -> bytes:
    """The text that fp8-compile reads, of a program in StableHLO: text, bytecode or a portable artifact.

    `name` is the file in locations that have none. Raises CompileError and UnsupportedError.
    """
    with mlir.make_ir_context() as context:
        _lower.load_dialects(context)
        try:
            module = _parse(source)
            _refuse_complex(module)
            _loops.replace(module)
            carried = {_name(function): _carried(function) for function in module.body.operations}
            _lower.module_to_linalg(module, _ADVICE)
        except CompileError as error:
            raise type(error)(error.message, _named(error.location, name), error.notes, error.source_path) from None
        _complete(module, carried, name)
        return _lower.text_for_compiler(module).replace(f'loc("{_TEXT}":', f'loc("{name}":').encode()


def _parse(source: bytes) -> ir.Module:
    """The program, without composites and chlo. It is read where jaxlib's passes run: its parser may die as they may."""
    try:
        return _lower.parse(_outside.run(_outside.JAXLIB, _PREPARE, source))
    except CompileError as error:
        if _is_about_quantized(error.message):
            raise CompileError(_QUANTIZED, _line_of(source, b"!quant.")) from None
        raise
    except _outside.Refused as error:
        first = error.diagnostics[0]
        if _is_about_quantized(first.message):
            raise CompileError(_QUANTIZED, first.place) from None
        if error.is_parsed:
            raise UnsupportedError(f"jaxlib cannot lower this: {first.message}; {_ADVICE}", first.place) from None
        if not first.location:
            raise CompileError(f"not a program in StableHLO that jaxlib {jaxlib.__version__} reads: {first.message}") from None
        raise CompileError(first.message, first.place) from None


def _is_about_quantized(message: str) -> bool:
    return any(words in message for words in _QUANTIZED_WORDS)


def _line_of(source: bytes, word: bytes) -> Location | None:
    """The first line of a text with the word; None where there is none, as in bytecode."""
    lines = source.splitlines() if not source.startswith(b"ML\xefR") else []
    return next((Location(_TEXT, number, 1) for number, line in enumerate(lines, 1) if word in line), None)


def _named(location: Location | None, name: str) -> Location:
    """The location, in the file `name` if it is one in the text itself."""
    if location is None:
        return Location(name, 1, 1)
    return Location(name, max(location.line, 1), max(location.column, 1)) if location.file == _TEXT else location


def _name(function: Any) -> str:
    return str(ir.StringAttr(function.attributes["sym_name"]).value)


def _refuse_complex(module: ir.Module) -> None:
    """Entry points take floats and integers. Raises UnsupportedError."""
    for function in module.body.operations:
        if "sym_visibility" in function.attributes and ir.StringAttr(function.attributes["sym_visibility"]).value == "private":
            continue
        for kind, types in (("argument", function.type.inputs), ("result", function.type.results)):
            for number, type in enumerate(types):
                if isinstance(type, ir.RankedTensorType) and isinstance(type.element_type, ir.ComplexType):
                    message = f"{kind} {number} of '{_name(function)}' is complex, and compiled code has floats and integers alone there: {_PARTS}"
                    raise UnsupportedError(message, _places.place(function.location))


#: The advice about complex arguments and results.
_PARTS = "take and return real and imaginary parts as two tensors (fp8.jax.jit does so by itself)"


# Donated arguments


def _carried(function: Any) -> dict[int, int]:
    """{argument: result} of arguments whose memory is donated, for those without a result the first free one of their type."""
    if "arg_attrs" not in function.attributes:
        return {}
    attributes = [ir.DictAttr(a) for a in ir.ArrayAttr(function.attributes["arg_attrs"])]
    carried = {i: ir.IntegerAttr(a[_CARRIED]).value for i, a in enumerate(attributes) if _CARRIED in a}
    type = function.type
    for i, a in enumerate(attributes):
        if _DONATED in a and i not in carried:
            free = [r for r, t in enumerate(type.results) if t == type.inputs[i] and r not in carried.values()]
            carried.update({i: free[0]} if free else {})
    return carried


def _complete(module: ir.Module, carried: dict[str, dict[int, int]], name: str) -> None:
    """Marks donated arguments, and gives a file to every location without one."""
    i32 = ir.IntegerType.get_signless(32)
    for function in module.body.operations:
        mine = carried.get(_name(function))
        if mine:
            marks = [{_CARRIED: ir.IntegerAttr.get(i32, mine[i])} if i in mine else {} for i in range(len(function.type.inputs))]
            function.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(m) for m in marks])
    _places.set_locations(module.operation, lambda location: _places.with_file(location, Location(name, 1, 1)))
