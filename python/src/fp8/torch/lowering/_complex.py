# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Complex tensors as pairs of real ones, by PyTorch's own decompositions: rotary embeddings are multiplied so.

An argument or result that is complex becomes a real one with a last dimension of 2, which has the same memory.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.fx.traceback
from torch import Tensor
from torch._ops import OpOverload
from torch._subclasses.complex_tensor import ComplexTensor
from torch.fx import GraphModule, Interpreter, Node
from torch.fx.experimental.proxy_tensor import make_fx

from ..._errors import UnsupportedError

aten = torch.ops.aten


def in_pairs(module: GraphModule, decompositions: dict[Any, Callable[..., Any]], line_of: Callable[[Node], Any]) -> GraphModule:
    """The graph without complex tensors; itself where it has none. Raises UnsupportedError for an operation on them without a decomposition."""
    values = [node.meta.get("val") for node in module.graph.nodes]
    if not any(isinstance(value, Tensor) and value.is_complex() for value in values):
        return module
    inputs = [node for node in module.graph.nodes if node.op == "placeholder"]

    def run(*arguments: Tensor) -> list[Any]:
        given = [_from_pair(a) if _is_complex(node) else a for a, node in zip(arguments, inputs)]
        results = _Pairs(module, line_of).run(*given)
        return [_as_pair(result) for result in results]

    with _mode_of(values) as mode, torch.fx.traceback.preserve_node_meta():
        examples = [_example(node.meta["val"]) for node in inputs]
        with mode:
            graph = make_fx(run, decomposition_table=decompositions)(*examples)
    for old, new in zip(inputs, [node for node in graph.graph.nodes if node.op == "placeholder"]):
        new.meta = {**old.meta, "val": new.meta["val"]}
    for node in graph.graph.nodes:
        # Of the complex tensor; torch-mlir would look there first.
        node.meta.pop("tensor_meta", None)
    graph.graph.eliminate_dead_code()
    graph.recompile()
    return graph


def _is_complex(node: Any) -> bool:
    value = node.meta.get("val") if isinstance(node, Node) else None
    return isinstance(value, Tensor) and value.is_complex()


@contextlib.contextmanager
def _mode_of(values: Sequence[Any]) -> Iterator[Any]:
    """The mode of tensors without data that a graph was captured in; constants, which have data, are taken meanwhile."""
    mode = next(value.fake_mode for value in values if hasattr(value, "fake_mode"))
    before, mode.allow_non_fake_inputs = mode.allow_non_fake_inputs, True
    try:
        yield mode
    finally:
        mode.allow_non_fake_inputs = before


def _example(value: Tensor) -> Tensor:
    """A tensor of its own without data, of real numbers."""
    with value.fake_mode:
        if value.is_complex():
            return torch.empty(*value.shape, 2, dtype=value.dtype.to_real())
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)


def _from_pair(pair: Tensor) -> ComplexTensor:
    return ComplexTensor(pair[..., 0], pair[..., 1])


def _as_pair(value: Any) -> Any:
    return torch.stack([value.re, value.im], -1) if isinstance(value, ComplexTensor) else value


def _of_real(x: Tensor) -> ComplexTensor:
    return ComplexTensor(x, torch.zeros_like(x))


def _of_parts(re: Tensor, im: Tensor) -> ComplexTensor:
    return ComplexTensor(*torch.broadcast_tensors(re, im))


def _polar(size: Tensor, angle: Tensor) -> ComplexTensor:
    return _of_parts(size * angle.cos(), size * angle.sin())


def _sigmoid(z: Tensor) -> Any:
    return 1 / (1 + torch.exp(-z))


def _silu(z: Tensor) -> Any:
    return z * _sigmoid(z)


#: Operations that PyTorch has no decomposition of for complex tensors.
_RULES: dict[Any, Callable[..., Any]] = {aten.sigmoid.default: _sigmoid, aten.silu.default: _silu}

#: Operations that make complex tensors of real ones.
_MAKERS: dict[Any, Callable[..., Any]] = {
    aten.view_as_complex.default: _from_pair,
    aten.complex.default: _of_parts,
    aten.polar.default: _polar,
}


class _Pairs(Interpreter):  # type: ignore[misc]
    """Runs a graph with pairs in the place of complex tensors; what is traced keeps module paths and lines."""

    def __init__(self, module: GraphModule, line_of: Callable[[Node], Any]) -> None:
        super().__init__(module)
        self._line_of = line_of

    def run_node(self, node: Node) -> Any:
        with torch.fx.traceback.set_current_meta(node):
            return super().run_node(node) if node.op != "call_function" else self._call(node)

    def get_attr(self, target: Any, arguments: Any, options: Any) -> Any:
        value = super().get_attr(target, arguments, options)
        return _from_pair(torch.view_as_real(value)) if isinstance(value, Tensor) and value.is_complex() else value

    def _call(self, node: Node) -> Any:
        arguments, options = self.fetch_args_kwargs_from_env(node)
        if arguments and isinstance(arguments[0], complex) and node.target is aten._conj.default:
            return arguments[0].conjugate()
        leaves = [value for value in arguments if isinstance(value, Tensor)]
        if not _is_complex(node) or any(isinstance(value, ComplexTensor) for value in leaves):
            return self._of_pairs(node, arguments, options)
        if node.target in _MAKERS:
            return _MAKERS[node.target](*arguments)
        if node.target in (aten._to_copy.default, torch.ops.prims.convert_element_type.default):
            return _of_real(arguments[0].to(node.meta["val"].dtype.to_real()))
        if leaves:
            return self._of_pairs(node, tuple(_of_real(value) if isinstance(value, Tensor) else value for value in arguments), options)
        if not isinstance(node.target, OpOverload):
            raise UnsupportedError("a complex result of an operation on real numbers has no form in linalg: use their parts", self._line_of(node))
        return self._constant(node, arguments, options)

    def _of_pairs(self, node: Node, arguments: Any, options: Any) -> Any:
        if node.target in _RULES and isinstance(arguments[0], ComplexTensor):
            return _RULES[node.target](*arguments, **options)
        try:
            return node.target(*arguments, **options)
        except (NotImplementedError, TypeError, RuntimeError) as error:
            if not any(isinstance(value, ComplexTensor) for value in arguments):
                raise
            message = f"'{str(node.target).removesuffix('.default')}' of complex numbers has no form in linalg: use their parts, by torch.view_as_real"
            raise UnsupportedError(message, self._line_of(node), (str(error).partition("\n")[0],)) from None

    def _constant(self, node: Node, arguments: Any, options: Any) -> Any:
        """A tensor full of one number, of its parts."""
        dtype = node.meta["val"].dtype.to_real()
        parts = [tuple(getattr(value, part) if isinstance(value, complex) else value for value in arguments) for part in ("real", "imag")]
        re, im = (node.target(*part, **{**options, "dtype": dtype}) for part in parts)
        return ComplexTensor(re, im if any(isinstance(value, complex) for value in arguments) else torch.zeros_like(re))
