# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Complex arguments and results as pairs of floats: [2, 3] of c64 as [2, 3, 2] of f32, real part first.

Entry points of compiled libraries take floats and integers. `as_pairs` and `from_pairs` convert arrays
in JAX, `split` makes a lowered function take and return such pairs.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax
from jaxlib.mlir import ir


def is_complex(type: Any) -> bool:
    """Whether an array, or the type of one, is complex."""
    return hasattr(type, "dtype") and bool(jnp.issubdtype(type.dtype, jnp.complexfloating))


def as_pairs(array: Any) -> Any:
    return jnp.stack([array.real, array.imag], axis=-1)


def from_pairs(pairs: Any) -> Any:
    return lax.complex(pairs[..., 0], pairs[..., 1])


def split(module: ir.Module) -> None:
    """Makes `@main` of a module of StableHLO take and return pairs; call it with the module's context entered."""
    main = next(f for f in module.body.operations if ir.StringAttr(f.attributes["sym_name"]).value == "main")
    block = main.regions[0].blocks[0]
    first, end = block.operations[0], block.operations[len(block.operations) - 1]
    with ir.Location.unknown():  # Types are checked at a location.
        for argument in block.arguments:
            if _is_complex_tensor(argument.type):
                _split_argument(argument, _Builder(first))
        for number, value in enumerate(end.operands):
            if _is_complex_tensor(value.type):
                end.operands[number] = _Builder(end).pairs(value)
        type = ir.FunctionType.get([a.type for a in block.arguments], [o.type for o in end.operands])
        main.attributes["function_type"] = ir.TypeAttr.get(type)


def _is_complex_tensor(type: Any) -> bool:
    return isinstance(type, ir.RankedTensorType) and isinstance(type.element_type, ir.ComplexType)


def _split_argument(argument: Any, build: _Builder) -> None:
    uses = [(use.owner, use.operand_number) for use in argument.uses]
    type = argument.type
    argument.set_type(ir.RankedTensorType.get([*type.shape, 2], ir.ComplexType(type.element_type).element_type))
    joined = build.value("stablehlo.complex", type, build.part(argument, 0), build.part(argument, 1))
    for owner, number in uses:
        owner.operands[number] = joined


class _Builder:
    """Creates operations of StableHLO before another one."""

    def __init__(self, op: Any) -> None:
        self._location, self._point = op.location, ir.InsertionPoint(op)

    def value(self, name: str, type: ir.Type, *operands: Any, **attributes: Any) -> Any:
        return ir.Operation.create(name, [type], operands, attributes, loc=self._location, ip=self._point).results[0]

    def part(self, pairs: Any, number: int) -> Any:
        """The real parts, 0, or the imaginary ones, 1, of pairs."""
        *shape, _ = pairs.type.shape
        element = pairs.type.element_type
        bounds = dict(start_indices=[0] * len(shape) + [number], limit_indices=[*shape, number + 1], strides=[1] * (len(shape) + 1))
        attributes = {name: ir.DenseI64ArrayAttr.get(values) for name, values in bounds.items()}
        column = self.value("stablehlo.slice", ir.RankedTensorType.get([*shape, 1], element), pairs, **attributes)
        return self.value("stablehlo.reshape", ir.RankedTensorType.get(shape, element), column)

    def pairs(self, value: Any) -> Any:
        shape, element = list(value.type.shape), ir.ComplexType(value.type.element_type).element_type
        columns = [self._column(self.value(f"stablehlo.{part}", ir.RankedTensorType.get(shape, element), value)) for part in ("real", "imag")]
        dimension = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), len(shape))
        return self.value("stablehlo.concatenate", ir.RankedTensorType.get([*shape, 2], element), *columns, dimension=dimension)

    def _column(self, value: Any) -> Any:
        type = ir.RankedTensorType.get([*value.type.shape, 1], value.type.element_type)
        return self.value("stablehlo.reshape", type, value)
