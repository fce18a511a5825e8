# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Regions of StableHLO operations, which are of scalars, as elementwise functions of JAX arrays.

JAX traces a call of a region as a custom call, since it knows nothing of StableHLO's operations.
`expand` then puts the region's own operations in the place of every such call, on tensors of its shape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.interpreters import mlir
from jaxlib.mlir import ir

from ..._errors import UnsupportedError
from . import _places

_TARGET = "fp8.region"
#: Operations whose element i of the result is of the elements i of the operands.
_ELEMENTWISE = {
    f"stablehlo.{name}"
    for name in (
        "abs add and atan2 bitcast_convert cbrt ceil clamp compare complex convert cosine count_leading_zeros divide exponential "
        "exponential_minus_one floor imag is_finite log log_plus_one logistic maximum minimum multiply negate not or popcnt power real "
        "reduce_precision remainder round_nearest_afz round_nearest_even rsqrt select shift_left shift_right_arithmetic "
        "shift_right_logical sign sine sqrt subtract tan tanh xor"
    ).split()
}
_DTYPES = (
    *(jnp.bool_, jnp.int8, jnp.int16, jnp.int32, jnp.int64, jnp.uint8, jnp.uint16, jnp.uint32, jnp.uint64),
    *(jnp.float16, jnp.bfloat16, jnp.float32, jnp.float64, jnp.float8_e4m3fn, jnp.float8_e5m2, jnp.complex64, jnp.complex128),
)


def dtype(value: Any) -> Any:
    """JAX's type of the elements of a tensor. Raises UnsupportedError for types that JAX or the compiler lacks."""
    element = ir.RankedTensorType(value.type).element_type
    known = next((d for d in _DTYPES if mlir.dtype_to_ir_type(np.dtype(d)) == element), None)
    if known is None:
        owner = value.owner.owner if isinstance(value.owner, ir.Block) else value.owner
        raise UnsupportedError(f"numbers of type {element} have no code", _places.place_in_module(owner))
    return known


class Region:
    """A region as a function of JAX arrays of one shape. `captured` are the values from outside that it reads."""

    def __init__(self, op: Any, number: int) -> None:
        self._target = f"{_TARGET}.{number}"
        block = op.regions[number].blocks[0]
        for inner in [inner.operation for inner in block.operations]:
            if inner.name == "stablehlo.constant":
                inner.move_before(op)
        self._arguments = list(block.arguments)
        *self._body, self._end = block.operations
        for inner in self._body:
            if inner.operation.name not in _ELEMENTWISE:
                raise UnsupportedError(f"{inner.operation.name} in the region of {op.name} has no code", _places.place_in_module(inner))
        inside = [*self._arguments, *(r for inner in self._body for r in inner.results)]
        used = [o for inner in block.operations for o in inner.operands if o not in inside]
        self.captured = [value for i, value in enumerate(used) if value not in used[:i]]
        self._dtypes = [dtype(o) for o in self._end.operands]

    def __call__(self, arguments: Sequence[Any], captured: Sequence[Any]) -> list[Any]:
        shape = arguments[0].shape
        results = [jax.ShapeDtypeStruct(shape, d) for d in self._dtypes]
        return list(jax.ffi.ffi_call(self._target, results)(*arguments, *(jnp.broadcast_to(c, shape) for c in captured)))

    def expand(self, call: Any) -> None:
        """Replaces one of the calls that JAX has traced."""
        shape = ir.RankedTensorType(call.results[0].type).shape

        def widened(type: Any) -> ir.Type:
            return ir.RankedTensorType.get(shape, ir.RankedTensorType(type).element_type, loc=call.location)

        _replace_by_body(call, [*self._arguments, *self.captured], [*self._body, self._end], widened)


def _replace_by_body(call: Any, parameters: Sequence[Any], body: Sequence[Any], typed: Callable[[Any], ir.Type]) -> None:
    """Replaces a call by clones of a body's operations, whose results get the types `typed` of their own."""
    values = list(zip(parameters, call.operands))

    def find(value: Any) -> Any:
        return next(new for known, new in values if known == value)

    *operations, end = body
    for op in operations:
        clone = op.operation.clone(ip=ir.InsertionPoint(call))
        for number, operand in enumerate(op.operands):
            clone.operands[number] = find(operand)
        for old, new in zip(op.results, clone.results):
            new.set_type(typed(old.type))
            values.append((old, new))
    for result, value in zip(call.results, end.operands):
        result.replace_all_uses_with(find(value))
    call.erase()


def expand(root: Any, regions: Sequence[Region]) -> None:
    """Replaces all calls of regions within an operation."""
    calls: list[Any] = []

    def collect(op: Any) -> ir.WalkResult:
        if op.name == "stablehlo.custom_call" and _target(op).startswith(_TARGET):
            calls.append(op)
        return ir.WalkResult.ADVANCE

    root.walk(collect)
    for call in calls:
        regions[int(_target(call).rpartition(".")[2])].expand(call)


def _target(call: Any) -> str:
    return str(ir.StringAttr(call.attributes["call_target_name"]).value)


def inline_calls(module: ir.Module) -> None:
    """Puts the body of a function in the place of each of its calls from a region of scalars."""
    while calls := _calls_from_regions(module):
        for call in calls:
            _inline(call, _functions(module)[ir.FlatSymbolRefAttr(call.attributes["callee"]).value])


def _functions(module: ir.Module) -> dict[str, Any]:
    return {ir.StringAttr(f.attributes["sym_name"]).value: f for f in module.body.operations}


def _calls_from_regions(module: ir.Module) -> list[Any]:
    found: list[Any] = []

    def collect(op: Any) -> ir.WalkResult:
        if op.name == "func.call" and op.parent.name in _WITH_SCALARS:
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(collect)
    return found


_WITH_SCALARS = ("stablehlo.reduce", "stablehlo.reduce_window", "stablehlo.scatter", "stablehlo.select_and_scatter", "stablehlo.sort", "stablehlo.map")


def _inline(call: Any, function: Any) -> None:
    block = function.regions[0].blocks[0]
    for op in block.operations:
        if len(op.operation.regions):
            raise UnsupportedError(f"{op.operation.name} in the region of {call.parent.name} has no code", _places.place_in_module(op))
    _replace_by_body(call, block.arguments, block.operations, lambda type: type)
