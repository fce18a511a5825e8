# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations along a dimension of tensors without dimensions, which PyTorch takes for tensors of one element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree

aten = torch.ops.aten

#: Operations whose result has no dimensions if their first operand has none.
_LIKE_OPERAND = (
    aten.amax.default, aten.amin.default, aten.argmax.default, aten.argmin.default, aten.max.dim, aten.min.dim,
    aten._softmax.default, aten._log_softmax.default, aten._softmax_backward_data.default, aten._log_softmax_backward_data.default,
    aten.logsumexp.default, aten.logcumsumexp.default, aten.cumsum.default, aten.cumprod.default, aten.cummax.default, aten.cummin.default,
    aten.sort.default, aten.sort.stable, aten.index_select.default, aten.index_copy.default, aten.index_add.default,
    aten.index_fill.int_Scalar, aten.index_fill.int_Tensor, aten.index_reduce.default, aten.scatter.src, aten.scatter.value,
    aten.scatter_add.default, aten.scatter_reduce.two, aten.kthvalue.default, aten.median.dim, aten.flip.default,
    aten.prod.dim_int, aten.any.dim, aten.all.dim, aten.var.correction, aten.std.correction,
)  # fmt: skip

#: Operations whose result has the shape of the index, their third operand.
_LIKE_INDEX = (aten.gather.default,)


def with_a_dimension(rules: dict[Any, Callable[..., Any]]) -> dict[Any, Callable[..., Any]]:
    """The decompositions, and for operations on tensors without dimensions those that give them one."""
    like_operand = {op: _rule(op, rules.get(op), 0) for op in _LIKE_OPERAND}
    return {**rules, **like_operand, **{op: _rule(op, rules.get(op), 2) for op in _LIKE_INDEX}}


def _rule(op: Any, other: Callable[..., Any] | None, like: int) -> Callable[..., Any]:
    def rule(*arguments: Any, **options: Any) -> Any:
        if arguments[0].dim():
            return other(*arguments, **options) if other is not None else NotImplemented
        arguments_1, options_1 = _pytree.tree_map(lambda v: v.reshape(1) if isinstance(v, Tensor) and not v.dim() else v, (arguments, options))
        shape = arguments[like].shape
        return _pytree.tree_map(lambda result: result.reshape(shape), op(*arguments_1, **options_1))

    return rule
