# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers that the type of a tensor cannot hold: an error where eager PyTorch has one.

PyTorch's kernels check the numbers that they get; captured graphs have no values, so nothing checks them there, and
compiled code would cut off their bits: `x.masked_fill(mask, 300)` for int8 would fill in 44. Numbers in arithmetic
(`x + 300`) are other: their bits are cut off in eager PyTorch too (_integers).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes

aten = torch.ops.aten

#: Operations whose numbers become elements of a tensor, and the numbers' names.
_ELEMENTS: dict[Any, tuple[str, ...]] = {
    aten.scalar_tensor.default: ("s",),
    **{op.default: ("fill_value",) for op in (aten.full, aten.full_like, aten.new_full)},
    **{op: ("value",) for op in (aten.fill.Scalar, aten.masked_fill.Scalar, aten.index_fill.int_Scalar, aten.scatter.value)},
    aten.constant_pad_nd.default: ("value",),
}

#: Operations whose numbers multiply tensors, and the numbers' names.
_FACTORS: dict[Any, tuple[str, ...]] = {
    **{op.Tensor: ("alpha",) for op in (aten.add, aten.sub, aten.rsub)},
    aten.index_add.default: ("alpha",),
}

#: Operations whose numbers PyTorch checks for types of floats alone: those of integers are limited, or their bits cut off.
_FLOATS: dict[Any, tuple[str, ...]] = {
    aten.clamp.default: ("min", "max"),
    aten.clamp_min.default: ("min",),
    aten.clamp_max.default: ("max",),
    aten.hardtanh.default: ("min_val", "max_val"),
    aten.threshold.default: ("threshold", "value"),
    aten.pow.Tensor_Scalar: ("exponent",),
}

#: Operations that are checked for floats or integers alone: which are not. (torch.where makes an infinity of a float.)
_OTHERWISE = {aten.scalar_tensor.default: True, **dict.fromkeys(_FLOATS, False)}


def checked(rules: dict[Any, Callable[..., Any]]) -> dict[Any, Callable[..., Any]]:
    """The decompositions, and for operations without one that stays, after a check of the numbers.

    Its rules raise RuntimeError, as the operations do in eager PyTorch.
    """
    return {**rules, **{op: _checked(op, names, rules.get(op)) for op, names in (_ELEMENTS | _FACTORS | _FLOATS).items()}}


def _checked(op: Any, names: tuple[str, ...], rule: Callable[..., Any] | None) -> Callable[..., Any]:
    places = {argument.name: place for place, argument in enumerate(op._schema.arguments)}

    def check_first(*arguments: Any, **options: Any) -> Any:
        for name in names:
            value = options.get(name, arguments[places[name]] if places[name] < len(arguments) else None)
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                dtype = _type(op, arguments, options)
                if dtype is not None and dtype.is_floating_point is not _OTHERWISE.get(op):
                    _check(value, dtype)
        return rule(*arguments, **options) if rule is not None else NotImplemented

    return check_first


def _type(op: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> torch.dtype | None:
    """The type that a number gets: the one that is named, or that of the tensor, or of the tensors together."""
    tensors = [value for value in arguments if isinstance(value, Tensor)]
    if options.get("dtype") is not None or not tensors:
        return options.get("dtype")
    if op in _ELEMENTS or op is aten.index_add.default:
        return tensors[0].dtype
    return elementwise_dtypes(*tensors, type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT)[1]


def _check(value: float, dtype: torch.dtype) -> None:
    if dtype is torch.bool or dtype.is_complex or math.isnan(value) or math.isinf(value) and dtype.is_floating_point:
        return
    limits = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
    # Of unsigned integers PyTorch takes negative numbers by their bits: -1 is the largest.
    if not (limits.min or -limits.max) <= value <= limits.max:
        raise RuntimeError(f"value cannot be converted to type {dtype} without overflow: {value}")
