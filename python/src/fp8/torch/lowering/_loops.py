# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scatters, scans and sorts as loops that compilers other than torch-mlir's read.

torch-mlir lowers them to its dialect tm_tensor. Each such operation becomes a call of a function
whose body is an `scf.for` over slices that are updated in place: exact, and in the order of
PyTorch on one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from iree.compiler import ir

from ..._errors import UnsupportedError
from . import _regions


def write_loops(text: str) -> str:
    """Replaces every operation of tm_tensor in the text of a module. Raises UnsupportedError for one that has no loop here."""
    if "tm_tensor." not in text:
        return text
    with ir.Context():
        module = ir.Module.parse(text)
        found: list[Any] = []

        def collect(operation: Any) -> Any:
            if operation.name.startswith("tm_tensor.") and operation.name != "tm_tensor.yield":
                found.append(operation)
            return ir.WalkResult.ADVANCE

        module.operation.walk(collect)
        for number, operation in enumerate(found):
            _replace(module, operation, f"fp8_loop_{number}")
        return str(module.operation.get_asm(enable_debug_info=True))


def _replace(module: Any, operation: Any, name: str) -> None:
    write = _WRITERS.get(operation.name)
    if write is None:
        raise UnsupportedError(f"'{operation.name}' has no loop", notes=(str(operation.location),))
    written = ir.Module.parse(write(operation, name))
    _regions.fill(written, operation)
    written.body.operations[0].operation.clone(ip=ir.InsertionPoint(module.body))
    with ir.InsertionPoint(operation), operation.location:
        callee = {"callee": ir.FlatSymbolRefAttr.get(name)}
        call = ir.Operation.create("func.call", [r.type for r in operation.results], list(operation.operands), callee)
    for old, new in zip(operation.results, call.results):
        old.replace_all_uses_with(new)
    operation.erase()


def _shape(value: Any) -> list[int]:
    return list(ir.RankedTensorType(value.type).shape)


def _element(value: Any) -> str:
    return str(ir.RankedTensorType(value.type).element_type)


def _tensor(shape: Sequence[int], element: str) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def _list(values: Sequence[Any]) -> str:
    return f"[{', '.join(map(str, values))}]"


def _scatter(operation: Any, name: str) -> str:
    """table[index[i]] = combine(table[index[i]], update[i]), i = 0, 1, …; a negative index counts from the end."""
    updates, indices, table = operation.operands
    shape, element = _shape(table), _element(table)
    dims = list(ir.DenseI64ArrayAttr(operation.attributes["dimension_map"]))
    count = _shape(indices)[0]
    index, integer = _tensor(_shape(indices), _element(indices)), _element(indices)
    offsets = []
    reads = ""
    for position, dim in enumerate(dims):
        reads += f"""
      %p{position} = arith.constant {position} : index
      %k{position} = tensor.extract %indices[%i, %p{position}] : {index}
      %cast{dim} = arith.index_cast %k{position} : {integer} to index
      %size{dim} = arith.constant {shape[dim]} : index
      %negative{dim} = arith.cmpi slt, %cast{dim}, %c0 : index
      %wrapped{dim} = arith.addi %cast{dim}, %size{dim} : index
      %o{dim} = arith.select %negative{dim}, %wrapped{dim}, %cast{dim} : index
      %inside{dim} = arith.cmpi ult, %o{dim}, %size{dim} : index
      cf.assert %inside{dim}, "index out of range"
"""
    offsets = [f"%o{d}" if d in dims else "0" for d in range(len(shape))]
    sizes = [1 if d in dims else shape[d] for d in range(len(shape))]
    window = [shape[d] for d in range(len(shape)) if d not in dims]
    slots = f"{_list(offsets)} {_list(sizes)} {_list([1] * len(shape))}"
    part, whole = _tensor(window, element), _tensor(shape, element)
    rank = len(_shape(updates))
    combine, new = _regions.combine(operation, "%update", "%old", element, window)
    return f"""func.func private @{name}(%updates: {_tensor(_shape(updates), element)}, %indices: {index}, %table: {whole}) -> {whole} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %count = arith.constant {count} : index
  %result = scf.for %i = %c0 to %count step %c1 iter_args(%t = %table) -> ({whole}) {{{reads}
      %update = tensor.extract_slice %updates{_list(["%i"] + [0] * (rank - 1))} {_list([1] + _shape(updates)[1:])} {_list([1] * rank)}
        : {_tensor(_shape(updates), element)} to {part}
      %old = tensor.extract_slice %t{slots} : {whole} to {part}
      {combine}
      %next = tensor.insert_slice {new} into %t{slots} : {part} into {whole}
      scf.yield %next : {whole}
  }}
  return %result : {whole}
}}"""


def _scan(operation: Any, name: str) -> str:
    """out[i] = combine(out[i - 1], in[i]) along one dimension; the second result is the last slice."""
    values, out, start = operation.operands
    shape, element = _shape(values), _element(values)
    dim = ir.IntegerAttr(operation.attributes["dimension"]).value
    if not ir.BoolAttr(operation.attributes["inclusive"]).value:
        raise UnsupportedError("an exclusive scan has no loop")
    window = shape[:dim] + shape[dim + 1 :]
    offsets = ["%i" if d == dim else "0" for d in range(len(shape))]
    sizes = [1 if d == dim else size for d, size in enumerate(shape)]
    slots = f"{_list(offsets)} {_list(sizes)} {_list([1] * len(shape))}"
    whole, part = _tensor(shape, element), _tensor(window, element)
    combine, new = _regions.combine(operation, "%value", "%sum", element, window)
    return f"""func.func private @{name}(%values: {whole}, %out: {whole}, %start: {part}) -> ({whole}, {part}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %count = arith.constant {shape[dim]} : index
  %results:2 = scf.for %i = %c0 to %count step %c1 iter_args(%o = %out, %sum = %start) -> ({whole}, {part}) {{
      %value = tensor.extract_slice %values{slots} : {whole} to {part}
      {combine}
      %next = tensor.insert_slice {new} into %o{slots} : {part} into {whole}
      scf.yield %next, {new} : {whole}, {part}
  }}
  return %results#0, %results#1 : {whole}, {part}
}}"""


def _sort(operation: Any, name: str) -> str:
    """A stable sort along one dimension: an element's place is the number of those before it.

    NaN counts as the largest number, as in PyTorch. Every operand is moved like the first.
    """
    shape, dim = _shape(operation.operands[0]), ir.IntegerAttr(operation.attributes["dimension"]).value
    rank, element = len(shape), _element(operation.operands[0])
    types = [_tensor(shape, _element(o)) for o in operation.operands]
    places = _tensor(shape, "index")
    loops = ", ".join(f"d{d}" for d in range(rank))
    own = f"affine_map<({loops}, k) -> ({loops})>"
    other = f"affine_map<({loops}, k) -> ({', '.join('k' if d == dim else f'd{d}' for d in range(rank))})>"
    kinds = ", ".join(['"parallel"'] * rank + ['"reduction"'])
    count = len(types)
    starts = ", ".join(f"%r{o} = %empty{o}" for o in range(count))
    empties = "".join(f"\n  %empty{o} = tensor.empty() : {t}" for o, t in enumerate(types))
    here = _list([f"%x{d}" for d in range(rank)])
    there = _list(["%place" if d == dim else f"%x{d}" for d in range(rank)])
    moves = "".join(
        f"""
      %e{o} = tensor.extract %in{o}{here} : {t}
      %w{o} = tensor.insert %e{o} into %r{o}{there} : {t}"""
        for o, t in enumerate(types)
    )
    total = 1
    for size in shape:
        total *= size
    arguments = ", ".join(f"%in{o}: {t}" for o, t in enumerate(types))
    all_types = ", ".join(types)
    return f"""func.func private @{name}({arguments}) -> ({all_types}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %total = arith.constant {total} : index{empties}
  %no_places = tensor.empty() : {places}
  %zeros = linalg.fill ins(%c0 : index) outs(%no_places : {places}) -> {places}
  %places = linalg.generic {{indexing_maps = [{other}, {own}, {own}], iterator_types = [{kinds}]}}
      ins(%in0, %in0 : {types[0]}, {types[0]}) outs(%zeros : {places}) {{
    ^bb0(%a: {element}, %b: {element}, %before: index):
    %j = linalg.index {rank} : index
    %i = linalg.index {dim} : index
    %earlier = arith.cmpi ult, %j, %i : index
    {_before("%first", "%a", "%b", operation, element)}
    {_before("%second", "%b", "%a", operation, element)}
    %tie = arith.select %second, %false_second, %earlier : i1
    %counts = arith.ori %first, %tie : i1
    %number = arith.index_castui %counts : i1 to index
    %sum = arith.addi %before, %number : index
    linalg.yield %sum : index
  }} -> {places}
  %sorted:{count} = scf.for %f = %c0 to %total step %c1 iter_args({starts}) -> ({all_types}) {{{_position("%f", shape)}
      %place = tensor.extract %places{here} : {places}{moves}
      scf.yield {", ".join(f"%w{o}" for o in range(count))} : {all_types}
  }}
  return {", ".join(f"%sorted#{o}" for o in range(count))} : {all_types}
}}"""


def _position(number: str, shape: Sequence[int]) -> str:
    """Text of %x0, %x1, …: the position of the element with this number."""
    text = ""
    for d in reversed(range(len(shape))):
        text += f"""
      %n{d} = arith.constant {shape[d]} : index
      %x{d} = arith.remui {number}, %n{d} : index
      %q{d} = arith.divui {number}, %n{d} : index"""
        number = f"%q{d}"
    return text


def _before(result: str, left: str, right: str, operation: Any, element: str) -> str:
    """Text of `result`: whether `left` stands before `right`, equal ones not."""
    compare = operation.regions[0].blocks[0].operations[0]
    predicate = ir.IntegerAttr(compare.attributes["predicate"]).value
    stem = result[1:]
    if compare.operation.name == "arith.cmpi":
        # slt, sle, ult, ule: 2, 3, 6, 7; sgt, sge, ugt, uge: 4, 5, 8, 9
        word = ("s" if predicate < 6 else "u") + ("lt" if predicate in (2, 3, 6, 7) else "gt")
        return f"%false_{stem} = arith.constant false\n    {result} = arith.cmpi {word}, {left}, {right} : {element}"
    # ogt, oge, olt, ole: 2 to 5
    if predicate not in (2, 3, 4, 5):
        raise UnsupportedError("a sort by this comparison has no loop")
    word, nan, number = ("ogt", left, right) if predicate in (2, 3) else ("olt", right, left)
    return f"""%false_{stem} = arith.constant false
    %less_{stem} = arith.cmpf {word}, {left}, {right} : {element}
    %nan_{stem} = arith.cmpf uno, {nan}, {nan} : {element}
    %is_{stem} = arith.cmpf ord, {number}, {number} : {element}
    %last_{stem} = arith.andi %nan_{stem}, %is_{stem} : i1
    {result} = arith.ori %less_{stem}, %last_{stem} : i1"""


_WRITERS: dict[str, Callable[[Any, str], str]] = {
    "tm_tensor.scatter": _scatter,
    "tm_tensor.scan": _scan,
    "tm_tensor.sort": _sort,
}
