# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of StableHLO that linalg has no form of, as calls of functions that JAX traces and lowers.

Scatters, sorts and reductions of windows become the loops of `_primitives`, with the operation's own regions
(`_regions`). A size that is not known is a symbol of JAX; sizes that must be equal are one symbol.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from ..._errors import UnsupportedError
from . import _batch_norms, _dynamic, _lower, _places, _primitives, _regions, _windows
from ._control_flow import Builder, tensor_type

#: (operand, dimension)
Size = tuple[int, int]


@dataclasses.dataclass
class Rule:
    """The replacement of an operation: a function of its regions and operands, whose results are the
    operation's."""

    run: Callable[..., Any]
    equal: Sequence[tuple[Size, Size]] = ()
    #: The first size is not less than the second.
    ordered: Sequence[tuple[Size, Size]] = ()


def replace(module: ir.Module) -> None:
    """Replaces every operation named in the table at the end of this file by a call."""
    for dialect in ("tensor", "arith", "cf"):
        module.context.dialects[dialect]  # Loads the dialect.
    _regions.inline_calls(module)
    found: list[Any] = []

    def collect(op: Any) -> ir.WalkResult:
        if op.name in _RULES:
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(collect, ir.WalkOrder.POST_ORDER)
    for number, op in enumerate(found):
        if (rule := _RULES[op.name](op)) is not None:
            _replace(module, op, rule, f"{op.name}.{number}")


def _replace(module: ir.Module, op: Any, rule: Rule, name: str) -> None:
    regions = [_regions.Region(op, number) for number in range(len(op.regions))]
    operands = [*op.operands, *(value for region in regions for value in region.captured)]
    avals = _avals(op, operands, rule)

    def run(*arrays: Any) -> Any:
        return rule.run(_bound(regions, arrays[len(op.operands) :]), *arrays[: len(op.operands)])

    sizes = _add_function(module, name, run, avals, regions, op)
    build = Builder(op)
    _check_sizes(build, op, rule)
    operands = [_cast(build, o, aval) for o, aval in zip(operands, avals)]
    operands = [*(_size(build, avals, operands, *size) for size in sizes), *operands]
    function = next(f for f in module.body.operations if ir.StringAttr(f.attributes["sym_name"]).value == name)
    call = build.op("func.call", function.type.results, operands, attributes={"callee": ir.FlatSymbolRefAttr.get(name)})
    for old, new in zip(op.results, call.results):
        old.replace_all_uses_with(new if new.type == old.type else build.value("tensor.cast", old.type, new))
    op.erase()


def _check_sizes(build: Builder, op: Any, rule: Rule) -> None:
    """Checks when the program runs, for sizes that are not known, that they are as the rule needs them."""
    pairs = [(pair, _EQUAL, "not") for pair in rule.equal] + [(pair, _NOT_LESS, "less than") for pair in rule.ordered]
    for ((a, first), (b, second)), predicate, relation in pairs:
        if not any(tensor_type(op.operands[o]).is_dynamic_dim(d) for o, d in ((a, first), (b, second))):
            continue
        sizes = [_dynamic.size_of(build, op.operands[o], d) for o, d in ((a, first), (b, second))]
        holds = build.value("arith.cmpi", ir.IntegerType.get_signless(1), *sizes, predicate=ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate))
        message = f"{op.name}: dimension {first} of operand {a} is {relation} dimension {second} of operand {b}"
        build.op("cf.assert", [], [holds], attributes={"msg": ir.StringAttr.get(message)})


#: Predicates of arith.cmpi.
_EQUAL, _NOT_LESS = 0, 5


def _bound(regions: Sequence[_regions.Region], captured: Sequence[Any]) -> list[Callable[..., list[Any]]]:
    """The regions as functions of their arguments alone."""
    given = iter(captured)
    values = [[next(given) for _ in region.captured] for region in regions]
    return [lambda *arguments, region=region, mine=mine: region(arguments, mine) for region, mine in zip(regions, values)]


def _avals(op: Any, operands: Sequence[Any], rule: Rule) -> list[jax.ShapeDtypeStruct]:
    """The types of the operands for JAX, with symbols for the sizes that are not known."""
    shapes = [ir.RankedTensorType(o.type) for o in operands]
    sizes: dict[Size, int | str] = {(i, d): f"size_{i}_{d}" if t.is_dynamic_dim(d) else t.get_dim_size(d) for i, t in enumerate(shapes) for d in range(t.rank)}
    for first, second in rule.equal:
        old, new = sorted((sizes[first], sizes[second]), key=lambda size: isinstance(size, int))
        if isinstance(old, int) and old != new:
            sizes_differ = f"{op.name}: dimension {first[1]} of operand {first[0]} differs from dimension {second[1]} of operand {second[0]}"
            raise UnsupportedError(sizes_differ, _places.place_in_module(op))
        sizes = {key: new if size == old else size for key, size in sizes.items()}
    symbols = {size for size in sizes.values() if isinstance(size, str)}
    ordered = {(sizes[a], sizes[b]) for a, b in rule.ordered if sizes[a] != sizes[b]}
    scope = jax.export.SymbolicScope([f"{a} >= {b}" for a, b in sorted(ordered, key=str) if {a, b} & symbols])
    variables = {name: jax.export.symbolic_shape(name, scope=scope)[0] for name in sorted(symbols)}
    known = [tuple(variables.get(str(sizes[i, d]), sizes[i, d]) for d in range(t.rank)) for i, t in enumerate(shapes)]
    return [jax.ShapeDtypeStruct(shape, _regions.dtype(o)) for shape, o in zip(known, operands)]


def _add_function(
    module: ir.Module, name: str, function: Callable[..., Any], avals: Sequence[Any], regions: Sequence[_regions.Region], op: Any
) -> list[tuple[str, ir.Type]]:
    """Adds a function of JAX, lowered as those of fp8.jax are, all of it at the location of `op`.

    Returns the names of the sizes that are its first arguments, with their types.
    """
    with jax.enable_x64(any(np.dtype(a.dtype).itemsize >= 8 for a in avals)), _primitives.plain_rules():
        try:
            lowered = _lower.lower(jax.jit(function, keep_unused=True).trace(*avals))
        except (jax.errors.InconclusiveDimensionOperation, TypeError, ValueError) as error:
            if all(isinstance(size, int) for a in avals for size in a.shape):
                raise
            reason = str(error).partition("\n")[0]
            raise UnsupportedError(f"{op.name} of sizes that are not known has no code: {reason}", _places.place_in_module(op)) from None
    _lower.rename(lowered, name)
    for inner in ir.Module.parse(_lower.text(lowered)).body.operations:
        clone = inner.operation.clone(ip=ir.InsertionPoint(module.body))
        clone.attributes["sym_visibility"] = ir.StringAttr.get("private")
        _places.set_locations(clone, lambda _: op.location)
        _regions.expand(clone, regions)
        if ir.StringAttr(clone.attributes["sym_name"]).value == name:
            main = clone
    attributes = [ir.DictAttr(a) for a in ir.ArrayAttr(main.attributes["arg_attrs"])] if "arg_attrs" in main.attributes else []
    types = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value).inputs
    return [(ir.StringAttr(a[_SIZE]).value, type) for a, type in zip(attributes, types) if _SIZE in a]


#: JAX's mark of an argument that is a size.
_SIZE = "jax.global_constant"


def _size(build: Builder, avals: Sequence[Any], operands: Sequence[Any], name: str, type: ir.Type) -> Any:
    """The size that JAX calls `name`."""
    operand, dimension = next((o, d) for o, aval in zip(operands, avals) for d, size in enumerate(aval.shape) if str(size) == name)
    i32, i64 = (ir.IntegerType.get_signless(bits) for bits in (32, 64))
    scalar = ir.RankedTensorType.get([], i32, loc=build.location)
    size = build.value("stablehlo.get_dimension_size", scalar, operand, dimension=ir.IntegerAttr.get(i64, dimension))
    return size if size.type == type else build.value("stablehlo.convert", type, size)


def _cast(build: Builder, operand: Any, aval: Any) -> Any:
    """The operand, with the sizes that are known of it."""
    old = ir.RankedTensorType(operand.type)
    dynamic = ir.ShapedType.get_dynamic_size()
    shape = [size if isinstance(size, int) else dynamic for size in aval.shape]
    type = ir.RankedTensorType.get(shape, old.element_type, loc=build.location)
    return operand if type == old else build.value("tensor.cast", type, operand)


def _integers(op: Any, name: str, default: Sequence[int]) -> list[int]:
    """An attribute that is a list of integers."""
    return list(ir.DenseI64ArrayAttr(op.attributes[name])) if name in op.attributes else list(default)


def _integer(op: Any, name: str, default: int = 0) -> int:
    return int(ir.IntegerAttr(op.attributes[name]).value) if name in op.attributes else default


def _rank(op: Any, operand: int = 0) -> int:
    return int(ir.RankedTensorType(op.operands[operand].type).rank)


def _all_equal(count: int, rank: int) -> list[tuple[Size, Size]]:
    """All sizes of the first operands are equal."""
    return [((0, d), (i, d)) for i in range(1, count) for d in range(rank)]


# Scatters and sorts


def _scatter(op: Any) -> Rule:
    numbers = stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
    if len(op.results) != 1:
        raise UnsupportedError("a scatter into several tensors at once has no code", _places.place_in_module(op))
    dimensions = lax.ScatterDimensionNumbers(
        update_window_dims=tuple(numbers.update_window_dims),
        inserted_window_dims=tuple(numbers.inserted_window_dims),
        scatter_dims_to_operand_dims=tuple(numbers.scattered_dims_to_operand_dims),
        operand_batching_dims=tuple(numbers.input_batching_dims),
        scatter_indices_batching_dims=tuple(numbers.scatter_indices_batching_dims),
    )
    vector = numbers.index_vector_dim

    def run(regions: Sequence[Any], operand: Any, indices: Any, updates: Any) -> Any:
        # JAX has the coordinates of an index in its last dimension.
        indices = indices[..., None] if vector == indices.ndim else jnp.moveaxis(indices, vector, -1)
        combine = lambda old, new: regions[0](old, new)[0]
        return _primitives.scatter(operand, indices, updates, dimension_numbers=dimensions, combine=combine)

    of_indices = [d for d in range(_rank(op, 1)) if d != vector]
    of_updates = [d for d in range(_rank(op, 2)) if d not in dimensions.update_window_dims]
    equal = [((1, a), (2, b)) for a, b in zip(of_indices, of_updates)]
    equal += [((0, a), (1, b)) for a, b in zip(dimensions.operand_batching_dims, dimensions.scatter_indices_batching_dims)]
    absent = {*dimensions.inserted_window_dims, *dimensions.operand_batching_dims}
    windows = zip([d for d in range(_rank(op)) if d not in absent], dimensions.update_window_dims)
    return Rule(run, equal, [((0, a), (2, b)) for a, b in windows])


def _sort(op: Any) -> Rule:
    dimension = _integer(op, "dimension", -1) % max(_rank(op), 1)

    def run(regions: Sequence[Any], *operands: Any) -> list[Any]:
        def less(a: Sequence[Any], b: Sequence[Any]) -> Any:
            return regions[0](*(value for pair in zip(a, b) for value in pair))[0]

        return _primitives.sort(*operands, dimension=dimension, less=less)

    return Rule(run, _all_equal(len(op.operands), _rank(op)))


# Windows


def _of_windows(op: Any, rank: int) -> dict[str, Any]:
    """The attributes that say where windows lie."""
    ones, padding = [1] * rank, [(0, 0)] * rank
    if "padding" in op.attributes:
        padding = [(int(low), int(high)) for low, high in np.array(ir.DenseIntElementsAttr(op.attributes["padding"])).reshape(rank, 2)]
    return dict(window_dimensions=_integers(op, "window_dimensions", ones), window_strides=_integers(op, "window_strides", ones), padding=padding)


def _select_and_scatter(op: Any) -> Rule:
    rank = _rank(op)
    windows = _of_windows(op, rank)

    def run(regions: Sequence[Any], operand: Any, source: Any, initial: Any) -> Any:
        select, combine = (lambda a, b, region=region: region(a, b)[0] for region in regions)
        return _windows.select_and_scatter(operand, source, initial, select=select, combine=combine, **windows)

    single = [d for d in range(rank) if windows["window_dimensions"][d] == windows["window_strides"][d] == 1 and windows["padding"][d] == (0, 0)]
    return Rule(run, [((0, d), (1, d)) for d in single])


def _reduce_window(op: Any) -> Rule | None:
    """Of several operands, or of a size that is not known: jaxlib lowers the others."""
    count, rank = len(op.results), _rank(op)
    if count == 1 and ir.RankedTensorType(op.operands[0].type).has_static_shape:
        return None
    windows = _of_windows(op, rank)
    dilations: dict[str, Any] = {f"{name}_dilation": _integers(op, f"{name}_dilations", [1] * rank) for name in ("base", "window")}

    def run(regions: Sequence[Any], *operands: Any) -> list[Any]:
        return _windows.reduce_window(operands[:count], operands[count:], combine=regions[0], **windows, **dilations)

    return Rule(run, _all_equal(count, rank))


# Norms of batches


def _batch_norm(function: Callable[..., Any]) -> Callable[[Any], Rule]:
    def rule(op: Any) -> Rule:
        feature = _integer(op, "feature_index")
        epsilon = ir.FloatAttr(op.attributes["epsilon"]).value

        def run(_: Any, *operands: Any) -> Any:
            return function(*operands, epsilon=epsilon, feature=feature)

        # All others are a number for each feature, but the last one of batch_norm_grad.
        last = len(op.operands) - 1
        sizes = [(i, 0) for i in range(1, last + 1) if _rank(op, i) == 1]
        whole = _all_equal(1, 0) if _rank(op, last) == 1 else [((0, d), (last, d)) for d in range(_rank(op))]
        return Rule(run, [*(((0, feature), size) for size in sizes), *whole])

    return rule


_RULES: dict[str, Callable[[Any], Rule | None]] = {
    "stablehlo.scatter": _scatter,
    "stablehlo.sort": _sort,
    "stablehlo.select_and_scatter": _select_and_scatter,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.batch_norm_training": _batch_norm(_batch_norms.training),
    "stablehlo.batch_norm_inference": _batch_norm(_batch_norms.inference),
    "stablehlo.batch_norm_grad": _batch_norm(_batch_norms.gradient),
}
