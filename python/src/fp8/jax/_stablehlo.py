# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""StableHLO of any front end (jax.export, torch_xla) as linalg: the input of `fp8.compile`.

Programs that fp8.jax traces itself have neither scatters nor sorts (`_primitives`). Programs from elsewhere do:
here they become calls of the same loops, with the operation's own region as update or comparison.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np
from jax import lax
from jax._src.interpreters import mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from .. import _outside
from .._errors import CompileError, Location, UnsupportedError
from . import _lower, _places, _primitives

#: What jaxlib calls the file of a text.
_TEXT = "-"
_PREPARE = "builtin.module(func.func(stablehlo-legalize-composite-to-call,chlo-legalize-to-stablehlo))"
_ADVICE = "lower it to other operations before, or leave that part out of the program"
_DONATED, _CARRIED = "jax.buffer_donor", "tf.aliasing_output"


def to_linalg(source: bytes, name: str) -> bytes:
    """The text that fp8-compile reads, of a program in StableHLO: text, bytecode or a portable artifact.

    `name` is the file in locations that have none. Raises CompileError and UnsupportedError.
    """
    with mlir.make_ir_context() as context:
        _lower.load_dialects(context)
        try:
            module = _parse(source)
            _replace_loops(module)
            carried = {_name(function): _carried(function) for function in module.body.operations}
            _lower.module_to_linalg(module, _ADVICE)
        except CompileError as error:
            raise type(error)(error.message, _named(error.location, name), error.notes, error.source_path) from None
        _complete(module, carried, name)
        return _lower.text(module).replace(f'loc("{_TEXT}":', f'loc("{name}":').encode()


def _parse(source: bytes) -> ir.Module:
    """The program, without composites and chlo. It is read where jaxlib's passes run: its parser may die as they may."""
    try:
        return _lower.parse(_outside.run(_outside.JAXLIB, _PREPARE, source))
    except _outside.Refused as error:
        first = error.diagnostics[0]
        if error.is_parsed:
            raise UnsupportedError(f"jaxlib cannot lower this: {first.message}; {_ADVICE}", first.place) from None
        if not first.location:
            raise CompileError(f"not a program in StableHLO that jaxlib {jaxlib.__version__} reads: {first.message}") from None
        raise CompileError(first.message, first.place) from None


def _named(location: Location | None, name: str) -> Location:
    """The location, in the file `name` if it is one in the text itself."""
    if location is None:
        return Location(name, 1, 1)
    return Location(name, max(location.line, 1), max(location.column, 1)) if location.file == _TEXT else location


def _name(function: Any) -> str:
    return str(ir.StringAttr(function.attributes["sym_name"]).value)


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


# Scatters and sorts


def _replace_loops(module: ir.Module) -> None:
    """Every scatter and sort as a call of a function that JAX lowers."""
    found: list[Any] = []

    def collect(op: Any) -> ir.WalkResult:
        if op.name in _LOOPS:
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(collect, ir.WalkOrder.POST_ORDER)
    for number, op in enumerate(found):
        region = _Region(op.regions[0].blocks[0])
        operands = [*op.operands, *region.captured]
        function = functools.partial(_LOOPS[op.name](op), region)
        name = f"{op.name}.{number}"
        _add_function(module, name, function, [_aval(o.type) for o in operands], op.location)
        callee = ir.FlatSymbolRefAttr.get(name)
        call = ir.Operation.create("func.call", [r.type for r in op.results], operands, {"callee": callee}, loc=op.location, ip=ir.InsertionPoint(op))
        for old, new in zip(op.results, call.results):
            old.replace_all_uses_with(new)
        op.erase()


def _add_function(module: ir.Module, name: str, function: Callable[..., Any], avals: Sequence[Any], location: ir.Location) -> None:
    """Adds a function of JAX, lowered as those of fp8.jax are; all of it has the given location."""
    with jax.enable_x64(any(np.dtype(a.dtype).itemsize == 8 for a in avals)):
        lowered = _lower.lower(jax.jit(function, keep_unused=True).trace(*avals))
    _lower.rename(lowered, name)
    for inner in ir.Module.parse(_lower.text(lowered)).body.operations:
        clone = inner.operation.clone(ip=ir.InsertionPoint(module.body))
        clone.attributes["sym_visibility"] = ir.StringAttr.get("private")
        _places.set_locations(clone, lambda _: location)


def _aval(type: ir.Type) -> jax.ShapeDtypeStruct:
    tensor = ir.RankedTensorType(type)
    dtypes = {mlir.dtype_to_ir_type(np.dtype(d)): d for d in _DTYPES}
    if tensor.element_type not in dtypes or not tensor.has_static_shape:
        raise UnsupportedError(f"a scatter or sort of {type} has no code")
    return jax.ShapeDtypeStruct(tuple(tensor.shape), dtypes[tensor.element_type])


_DTYPES = (
    *(jnp.bool_, jnp.int8, jnp.int16, jnp.int32, jnp.int64, jnp.uint8, jnp.uint16, jnp.uint32, jnp.uint64),
    *(jnp.float16, jnp.bfloat16, jnp.float32, jnp.float64, jnp.float8_e4m3fn, jnp.float8_e5m2),
)


def _scatter(op: Any) -> Callable[..., Any]:
    numbers = stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
    if len(op.results) != 1:
        raise UnsupportedError("a scatter into several tensors at once has no code", _places.place(op.location))
    dimensions = lax.ScatterDimensionNumbers(
        update_window_dims=tuple(numbers.update_window_dims),
        inserted_window_dims=tuple(numbers.inserted_window_dims),
        scatter_dims_to_operand_dims=tuple(numbers.scattered_dims_to_operand_dims),
        operand_batching_dims=tuple(numbers.input_batching_dims),
        scatter_indices_batching_dims=tuple(numbers.scatter_indices_batching_dims),
    )

    def run(region: _Region, operand: Any, indices: Any, updates: Any, *captured: Any) -> Any:
        # JAX has the coordinates of an index in its last dimension.
        vector = numbers.index_vector_dim
        indices = indices[..., None] if vector == indices.ndim else jnp.moveaxis(indices, vector, -1)
        combine = lambda old, new: region([old, new], captured)[0]
        return _primitives.scatter(operand, indices, updates, dimension_numbers=dimensions, combine=combine)

    return run


def _sort(op: Any) -> Callable[..., Any]:
    dimension = ir.IntegerAttr(op.attributes["dimension"]).value if "dimension" in op.attributes else -1
    count = len(op.results)

    def run(region: _Region, *operands: Any) -> list[Any]:
        def less(a: Sequence[Any], b: Sequence[Any]) -> Any:
            return region([value for pair in zip(a, b) for value in pair], operands[count:])[0]

        return _primitives.sort(*operands[:count], dimension=dimension % operands[0].ndim, less=less)

    return run


_LOOPS = {"stablehlo.scatter": _scatter, "stablehlo.sort": _sort}


class _Region:
    """A region of scalars as a function of JAX arrays, elementwise. `captured` are the values from outside that it reads."""

    def __init__(self, block: ir.Block) -> None:
        self._block = block
        *self._body, self._end = block.operations
        inside = [*block.arguments, *(r for op in self._body for r in op.results)]
        used = [o for op in block.operations for o in op.operands if o not in inside]
        self.captured = [value for i, value in enumerate(used) if value not in used[:i]]
        for op in self._body:
            if op.operation.name not in _ELEMENTWISE:
                raise UnsupportedError(f"{op.operation.name} in the region of a scatter or sort has no code", _places.place(op.location))

    def __call__(self, arguments: Sequence[Any], captured: Sequence[Any]) -> list[Any]:
        values = list(zip([*self._block.arguments, *self.captured], [*arguments, *captured]))

        def find(value: Any) -> Any:
            return next(array for known, array in values if known == value)

        for op in self._body:
            function: Callable[..., Any] = _ELEMENTWISE[op.operation.name]
            result = function(op, *map(find, op.operands))
            values.append((op.results[0], result))
        return [jnp.broadcast_to(find(o), arguments[0].shape) for o in self._end.operands]


def _compare(op: Any, a: Any, b: Any) -> Any:
    if "compare_type" in op.attributes and "TOTALORDER" in str(op.attributes["compare_type"]):
        a, b = (_primitives.total_order(value, equal_zeros=False, equal_nans=False) for value in (a, b))
    direction = str(op.attributes["comparison_direction"]).rpartition(" ")[2].rstrip(">").lower()
    return getattr(operator, direction)(a, b)


def _dtype(op: Any) -> Any:
    return _aval(op.results[0].type).dtype


def _of_operands(function: Callable[..., Any], _: Any, *operands: Any) -> Any:
    return function(*operands)


def _divide(a: Any, b: Any) -> Any:
    return lax.div(*jnp.broadcast_arrays(a, b))  # Integers towards 0, as StableHLO.


#: What an operation is on arrays; those of the second list need nothing of it but its operands.
_ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "stablehlo.compare": _compare,
    "stablehlo.constant": lambda op: jnp.asarray(np.array(ir.DenseElementsAttr(op.attributes["value"])).reshape(()), _dtype(op)),
    "stablehlo.convert": lambda op, value: value.astype(_dtype(op)),
    "stablehlo.bitcast_convert": lambda op, value: lax.bitcast_convert_type(value, _dtype(op)),
}
_SIMPLE = {
    "add": jnp.add, "subtract": jnp.subtract, "multiply": jnp.multiply, "divide": _divide, "maximum": jnp.maximum,
    "minimum": jnp.minimum, "negate": jnp.negative, "abs": jnp.abs, "sign": jnp.sign, "and": jnp.bitwise_and, "or": jnp.bitwise_or,
    "xor": jnp.bitwise_xor, "not": jnp.bitwise_not, "select": jnp.where, "is_finite": jnp.isfinite,
}  # fmt: skip
_ELEMENTWISE |= {f"stablehlo.{name}": functools.partial(_of_operands, function) for name, function in _SIMPLE.items()}
