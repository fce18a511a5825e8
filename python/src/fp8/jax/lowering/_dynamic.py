# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of StableHLO on tensors of sizes that are not known, which jaxlib's pass to linalg leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from ._control_flow import Builder, replace, tensor_type


def get_dimension_size(op: Any) -> None:
    build = Builder(op)
    size = size_of(build, op.operands[0], ir.IntegerAttr(op.attributes["dimension"]).value)
    result = tensor_type(op.results[0])
    replace(op, [build.value("tensor.from_elements", result, build.value("arith.index_cast", result.element_type, size))])


def reshape(op: Any) -> None:
    def reshaped(build: Builder, operand: Any, type: ir.Type) -> Any:
        return build.value("tensor.reshape", type, operand, op.operands[1])

    _signless(op, reshaped)


def broadcast_in_dim(op: Any) -> None:
    """A dimension whose size is not known may be 1, which is found out when the program runs."""

    def broadcast(build: Builder, operand: Any, type: ir.Type) -> Any:
        sizes = _sizes(build, op.operands[1], tensor_type(op.results[0]).rank)
        expanded = [_is_one(build, operand, d) for d in range(tensor_type(operand).rank)]

        def place(inside: Builder, index: Sequence[Any]) -> list[Any]:
            zero = inside.index_constant(0)
            return [_choose(inside, one, zero, index[d]) for one, d in zip(expanded, _dimensions(op))]

        return _taken(build, operand, type, sizes, place)

    _signless(op, broadcast)


def gather(op: Any) -> None:
    """A gather of slices of sizes that are known only when the program runs."""
    numbers = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    starts = _signed(Builder(op), op.operands[1])
    vector = numbers.index_vector_dim
    of_starts = [d for d in range(tensor_type(starts).rank) if d != vector]

    def gathered(build: Builder, operand: Any, type: ir.Type) -> Any:
        ranks = tensor_type(operand).rank, tensor_type(op.results[0]).rank
        windows = _sizes(build, op.operands[2], ranks[0])
        absent = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
        present = [d for d in range(ranks[0]) if d not in absent]
        batch = [d for d in range(ranks[1]) if d not in numbers.offset_dims]
        bounds = [size_of(build, operand, d) for d in range(ranks[0])]
        sizes = {d: windows[o] for d, o in zip(numbers.offset_dims, present)} | {d: size_of(build, starts, s) for d, s in zip(batch, of_starts)}

        def place(inside: Builder, index: Sequence[Any]) -> list[Any]:
            position = [index[d] for d in batch]
            begins: dict[int, Any] = {d: position[of_starts.index(s)] for d, s in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims)}
            for k, d in enumerate(numbers.start_index_map):
                coordinates = list(position)
                if vector < tensor_type(starts).rank:
                    coordinates.insert(vector, inside.index_constant(k))
                begins[d] = _clamped(inside, _index_in(inside, starts, coordinates), bounds[d], windows[d])
            offsets = {d: index[o] for d, o in zip(present, numbers.offset_dims)}
            zero = inside.index_constant(0)
            return [inside.value("arith.addi", ir.IndexType.get(), begins.get(d, zero), offsets.get(d, zero)) for d in range(ranks[0])]

        return _taken(build, operand, type, [sizes[d] for d in range(ranks[1])], place)

    _signless(op, gathered)


def _taken(build: Builder, operand: Any, type: ir.Type, sizes: Sequence[Any], place: Callable[[Builder, Sequence[Any]], Sequence[Any]]) -> Any:
    """A tensor of these sizes, each of whose elements is that of the operand at `place` of its index."""
    dynamic = [s for d, s in enumerate(sizes) if ir.RankedTensorType(type).is_dynamic_dim(d)]
    generate = build.op("tensor.generate", [type], dynamic, regions=1)
    block = generate.regions[0].blocks.append(*[ir.IndexType.get()] * len(sizes), arg_locs=[build.location] * len(sizes))
    inside = build.within(block)
    element = inside.value("tensor.extract", tensor_type(operand).element_type, operand, *place(inside, list(block.arguments)))
    inside.op("tensor.yield", [], [element])
    return generate.result


def update_slice(op: Any) -> None:
    """The slice is moved to where it fits."""
    if all(tensor_type(op.operands[i]).has_static_shape for i in (0, 1)):
        return

    def insert(build: Builder, operand: Any, update: Any, type: ir.Type) -> Any:
        sizes = [[size_of(build, tensor, d) for tensor in (operand, update)] for d in range(tensor_type(update).rank)]
        starts = [_clamped(build, build.index(_signed(build, start)), *size) for start, size in zip(list(op.operands)[2:], sizes)]
        known = tensor_type(update)
        dynamic = ir.ShapedType.get_dynamic_size()
        fixed = [dynamic if known.is_dynamic_dim(d) else known.get_dim_size(d) for d in range(known.rank)]
        variable = [size for d, (_, size) in enumerate(sizes) if known.is_dynamic_dim(d)]
        lists = dict(static_offsets=[ir.ShapedType.get_dynamic_stride_or_offset()] * known.rank, static_sizes=fixed, static_strides=[1] * known.rank)
        attributes: dict[str, Any] = {name: ir.DenseI64ArrayAttr.get(values) for name, values in lists.items()}
        attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1, 1, len(starts), len(variable), 0])
        return build.value("tensor.insert_slice", type, update, operand, *starts, *variable, **attributes)

    _signless(op, insert, tensors=2)


def _signed(build: Builder, integers: Any) -> Any:
    """A tensor of integers, without unsigned ones."""
    type = tensor_type(integers)
    if not ir.IntegerType(type.element_type).is_unsigned:
        return integers
    wide = ir.RankedTensorType.get(type.shape, ir.IntegerType.get_signless(64), loc=build.location)
    return build.value("stablehlo.convert", wide, integers)


def _clamped(build: Builder, start: Any, size: Any, window: Any) -> Any:
    """Where a window begins that is asked for at `start`, an index."""
    last = build.value("arith.subi", ir.IndexType.get(), size, window)
    return build.value("arith.maxsi", ir.IndexType.get(), build.index_constant(0), build.value("arith.minsi", ir.IndexType.get(), start, last))


def size_of(build: Builder, tensor: Any, dimension: int) -> Any:
    type = tensor_type(tensor)
    if type.is_dynamic_dim(dimension):
        return build.value("tensor.dim", ir.IndexType.get(), tensor, build.index_constant(dimension))
    return build.index_constant(type.get_dim_size(dimension))


def assert_sizes(op: Any) -> None:
    """A check by jax.export that the arguments' sizes are what the program was exported for."""
    build = Builder(op)
    message = ir.StringAttr(op.attributes["error_message"])
    build.op("cf.assert", [], [build.scalar(op.operands[0])], attributes={"msg": message})
    op.erase()


def _dimensions(op: Any) -> Sequence[int]:
    return list(ir.DenseI64ArrayAttr(op.attributes["broadcast_dimensions"]))


def _sizes(build: Builder, shape: Any, rank: int) -> list[Any]:
    """The sizes in a tensor of sizes."""
    return [_index_in(build, shape, [build.index_constant(d)]) for d in range(rank)]


def _index_in(build: Builder, integers: Any, place: Sequence[Any]) -> Any:
    """An element of a tensor of integers, as an index."""
    element = tensor_type(integers).element_type
    integer = build.value("tensor.extract", element, integers, *place)
    return integer if element == ir.IndexType.get() else build.value("arith.index_cast", ir.IndexType.get(), integer)


def _is_one(build: Builder, operand: Any, dimension: int) -> Any:
    """Whether a size of the operand is 1: a Python bool where that is known."""
    type = tensor_type(operand)
    if not type.is_dynamic_dim(dimension):
        return type.get_dim_size(dimension) == 1
    size = size_of(build, operand, dimension)
    equal = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)
    return build.value("arith.cmpi", ir.IntegerType.get_signless(1), size, build.index_constant(1), predicate=equal)


def _choose(build: Builder, condition: Any, chosen: Any, otherwise: Any) -> Any:
    if isinstance(condition, bool):
        return chosen if condition else otherwise
    return build.value("arith.select", chosen.type, condition, chosen, otherwise)


def _signless(op: Any, make: Callable[..., Any], tensors: int = 1) -> None:
    """Replaces an operation by what `make` creates of its first operands, tensors, and its result type.

    Unsigned integers are signless there: other dialects have no others.
    """
    build, operands, type = Builder(op), list(op.operands)[:tensors], tensor_type(op.results[0])
    element = type.element_type
    if not (isinstance(element, ir.IntegerType) and element.is_unsigned):
        return replace(op, [make(build, *operands, type)])
    bits = ir.IntegerType.get_signless(element.width)

    def signless(type: ir.RankedTensorType) -> ir.RankedTensorType:
        return ir.RankedTensorType.get(type.shape, bits, loc=op.location)

    operands = [build.value("stablehlo.bitcast_convert", signless(tensor_type(o)), o) for o in operands]
    replace(op, [build.value("stablehlo.bitcast_convert", type, make(build, *operands, signless(type)))])
