# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds the operation of a graph that torch-mlir's passes fail on: their own words name what is left over, often a
constant."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch.fx import Graph, Node

from ..._errors import CompileError, Location

#: Whether the passes fail on graphs by name, and with which error.
Failure = Callable[[dict[str, Graph]], "CompileError | None"]


def operation_at_fault(graphs: Iterable[Graph], failure: Failure) -> tuple[Node, CompileError] | None:
    """The operation that fails by itself, and how; None where each one alone passes. Halves the operations until one is left."""
    nodes = list({_kind(node): node for graph in graphs for node in graph.nodes if node.op == "call_function" and _is_alone(node)}.values())
    error = failure(_alone(nodes)) if nodes else None
    while error is not None and len(nodes) > 1:
        half = nodes[: len(nodes) // 2]
        found = failure(_alone(half))
        nodes, error = (half, found) if found is not None else (nodes[len(half) :], error)
    return (nodes[0], failure(_alone(nodes)) or error) if error is not None else None


def nearest_line(node: Node, line_of: Callable[[Node], Location | None]) -> Location | None:
    """The user's line of a node, or of the first one with a line among those that it depends on, else among all."""
    seen, queue = set(), [node]
    while queue:
        current = queue.pop(0)
        if (line := line_of(current)) is not None:
            return line
        queue += [other for other in current.all_input_nodes if other not in seen]
        seen.update(current.all_input_nodes)
    users = (line_of(user) for user in node.users)
    return next((line for line in [*users, *map(line_of, node.graph.nodes)] if line is not None), None)


def _kind(node: Node) -> Any:
    """A key that is equal for operations that fail alike."""
    values = [node.args, sorted(node.kwargs.items())]
    return str(node.target), str(torch.fx.node.map_arg(values, lambda n: _Shown(str(getattr(n.meta.get("val"), "shape", "")) + str(_type(n)))))


class _Shown(str):
    """A text that map_arg leaves as it is."""


def _type(node: Node) -> Any:
    return getattr(node.meta.get("val"), "dtype", None)


def _is_alone(node: Node) -> bool:
    """Whether the operation can stand in a graph of its own."""
    return node.target is not operator.getitem and all(isinstance(n.meta.get("val"), torch.Tensor) for n in node.all_input_nodes)


def _alone(nodes: Sequence[Node]) -> dict[str, Graph]:
    return {f"f{number}": _graph_of(node) for number, node in enumerate(nodes)}


def _graph_of(node: Node) -> Graph:
    """A graph of one operation on arguments."""
    graph = Graph()
    inputs: dict[Node, Node] = {}
    for other in node.all_input_nodes:
        inputs[other] = graph.placeholder(f"x{len(inputs)}")
        inputs[other].meta = {"val": other.meta["val"]}
    copy = graph.node_copy(node, lambda other: inputs[other])
    results = [graph.node_copy(user, lambda _: copy) for user in node.users if user.target is operator.getitem]
    graph.output(tuple(results) if results else (copy,))
    return graph
