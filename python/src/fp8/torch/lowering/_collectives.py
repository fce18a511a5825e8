# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The step of one of several ranks that have parts of parameters, from the functions of whole ones.

    main: gathers the parameters │ backward │ means of gradients, each rank those of its parts │ update, of the parts

The compiler inlines both functions. It casts parameters before they are gathered where the recipe allows it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from iree.compiler import ir


@dataclass
class Arguments:
    """The names of the step's arguments, in their order. `others` are the batch and random numbers."""

    parameters: Sequence[str]
    state: Sequence[str]
    buffers: Sequence[str]
    rates: Sequence[str]
    constants: Sequence[str]
    others: Sequence[str]


def divide(names: Sequence[str], ends: Sequence[int]) -> Arguments:
    """The arguments from all names, and the ends of all parts but the last."""
    return Arguments(*(names[begin:end] for begin, end in zip([0, *ends], [*ends, len(names)])))


def write_main(text: str, arguments: Arguments, dims: Mapping[str, int], ranks: int) -> str:
    """Adds the function `main` to the text of a module with `backward` and `update` (_step_graph.Captured).

    `dims` has the dimension along which the ranks have parts of a tensor, by its name.
    """
    inputs, results = _types(text)
    writer = _Writer(ranks)
    parameters, count = arguments.parameters, len(arguments.parameters)
    given = [*parameters, *arguments.buffers, *arguments.constants, *arguments.others]
    whole = dict(zip(given, inputs["backward"]))
    own = {name: writer.part_of(type, dims.get(name)) for name, type in whole.items()}
    own |= dict(zip([*arguments.state, *arguments.rates], inputs["update"][2 * count :]))
    order = [*parameters, *arguments.state, *arguments.buffers, *arguments.rates, *arguments.constants, *arguments.others]
    values = {name: f"%a{i}" for i, name in enumerate(order)}

    gathered = [writer.gather(values[name], own[name], whole[name], dims.get(name)) for name in given]
    found = writer.call("backward", gathered, inputs["backward"], results["backward"])
    gradients = [writer.mean(v, t, dims.get(name)) for v, t, name in zip(found, results["backward"], parameters)]
    rest = [writer.mean(v, t, None) for v, t in zip(found[count:], results["backward"][count:])]
    taken = [*(values[name] for name in parameters), *gradients, *(values[name] for name in (*arguments.state, *arguments.rates))]
    new = writer.call("update", taken, inputs["update"], results["update"])

    signature = ", ".join(f"{values[name]}: {own[name]} loc({json.dumps(name)})" for name in order)
    types = ", ".join([*results["update"], *results["backward"][count:]])
    lines = "\n".join(f"  {line}" for line in [*writer.lines, f"return {', '.join([*new, *rest])} : {types}"])
    main = f"shard.grid @ranks(shape = {ranks})\nfunc.func @main({signature}) -> ({types}) {{\n{lines}\n}}\n"
    text = re.sub(r"func\.func @(backward|update)\(", r"func.func private @\1(", text)
    opening = re.search(r"^module.*\{\n", text, re.M)
    assert opening is not None
    return text[: opening.end()] + main + text[opening.end() :]


def _types(text: str) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The types of arguments and of results of all functions, by name."""
    inputs, results = {}, {}
    with ir.Context():
        for function in ir.Module.parse(text).body.operations:
            if function.operation.name == "func.func":
                name = ir.StringAttr(function.attributes["sym_name"]).value
                type = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
                inputs[name], results[name] = [*map(str, type.inputs)], [*map(str, type.results)]
    return inputs, results


class _Writer:
    """The lines of the function, whose values it numbers."""

    def __init__(self, ranks: int) -> None:
        self.lines: list[str] = []
        self._ranks, self._count = ranks, 0

    def part_of(self, whole: str, dim: int | None) -> str:
        """The type of a rank's part of a tensor."""
        if dim is None:
            return whole
        *sizes, element = whole.removeprefix("tensor<").removesuffix(">").split("x")
        sizes[dim] = str(int(sizes[dim]) // self._ranks)
        return f"tensor<{'x'.join([*sizes, element])}>"

    def gather(self, value: str, part: str, whole: str, dim: int | None) -> str:
        if dim is None:
            return value
        return self._add(f"shard.all_gather {value} on @ranks grid_axes = [0] gather_axis = {dim} : {part} -> {whole}")

    def mean(self, value: str, type: str, dim: int | None) -> str:
        """The mean of the ranks' tensors, along a dimension each rank the part that it has; integers are alike on all ranks."""
        if not re.search(r"[x<](f|bf)\d+>$", type):
            return value
        if dim is None:
            return self._add(f"shard.all_reduce {value} on @ranks grid_axes = [0] reduction = average : {type} -> {type}")
        part = self.part_of(type, dim)
        return self._add(f"shard.reduce_scatter {value} on @ranks grid_axes = [0] reduction = average scatter_axis = {dim} : {type} -> {part}")

    def call(self, name: str, values: Sequence[str], types: Sequence[str], results: Sequence[str]) -> list[str]:
        result = self._add(f"func.call @{name}({', '.join(values)}) : ({', '.join(types)}) -> ({', '.join(results)})", len(results))
        return [f"{result}#{i}" for i in range(len(results))]

    def _add(self, operation: str, count: int = 1) -> str:
        self._count += 1
        self.lines.append(f"%v{self._count}{f':{count}' if count != 1 else ''} = {operation}")
        return f"%v{self._count}"
