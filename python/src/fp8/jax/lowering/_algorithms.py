# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A recipe's own functions, which compute amaxes and scales, as functions of the compiled program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxlib.mlir import ir

from ... import recipe as _recipe
from . import _lower, _places

_NAMES = {"scale": "fp8_scale", "amax": "fp8_amax"}
_NUMBER = jax.ShapeDtypeStruct((), jnp.float32)

# The functions as #fp8.custom wants them, around those of JAX, whose arguments and results are tensors.
_SCALE = """
func.func private @algorithm(tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
func.func @main(%amax: f32, %fp8_max: f32, %old: f32) -> f32 {
  %0 = tensor.from_elements %amax : tensor<f32>
  %1 = tensor.from_elements %old : tensor<f32>
  %2 = tensor.from_elements %fp8_max : tensor<f32>
  %3 = call @algorithm(%0, %1, %2) : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  %4 = tensor.extract %3[] : tensor<f32>
  return %4 : f32
}
"""
_AMAX = """
func.func private @algorithm(tensor<{0}xf32>) -> tensor<f32>
func.func @main(%column: tensor<?xf32>) -> f32 {{
  %0 = tensor.cast %column : tensor<?xf32> to tensor<{0}xf32>
  %1 = call @algorithm(%0) : (tensor<{0}xf32>) -> tensor<f32>
  %2 = tensor.extract %1[] : tensor<f32>
  return %2 : f32
}}
"""


def lower(recipe: Any) -> tuple[Any, dict[str, ir.Module]]:
    """The recipe as text, and modules with the functions that it names as `@main`.

    A recipe without functions of the user's stays as it is. Raises TypeError for a function that does
    not return one number, UnsupportedError for what has no code.
    """
    functions = _recipe.algorithms(recipe)
    modules = {}
    if (amax := functions.get("amax")) is not None:
        length = recipe.amax_history_len
        column = jax.ShapeDtypeStruct((length,), jnp.float32)
        modules[_NAMES["amax"]] = _wrap(_AMAX.format(length), amax, amax, column)
    if (scale := functions.get("scale")) is not None:
        bound = lambda amax, old, largest: scale(amax, old, largest, recipe)
        modules[_NAMES["scale"]] = _wrap(_SCALE, scale, bound, _NUMBER, _NUMBER, _NUMBER)
    return (_recipe.to_text(recipe, _NAMES) if functions else recipe), modules


def _wrap(wrapper: str, algorithm: Callable[..., Any], function: Callable[..., Any], *arguments: Any) -> ir.Module:
    """A module with the wrapper's `@main`, which calls the function."""
    traced = jax.jit(function, keep_unused=True).trace(*arguments)
    results = list(traced.jaxpr.out_avals)
    if [(r.shape, r.dtype) for r in results] != [((), jnp.float32)]:
        given = ", ".join(r.str_short() for r in results) or "nothing"
        raise TypeError(f"DelayedScaling: {getattr(algorithm, '__name__', algorithm)} returns {given}; a scale or an amax is one float32")
    place = _places.definition(algorithm)
    module = _lower.to_linalg(traced, place)
    _lower.rename(module, "algorithm")
    with module.context:
        ir.SymbolTable(module.operation)["algorithm"].attributes["sym_visibility"] = ir.StringAttr.get("private")
        main = ir.SymbolTable(ir.Module.parse(wrapper).operation)["main"]
        cloned = main.operation.clone(ip=ir.InsertionPoint(module.body))
        if place:
            _places.set_locations(cloned, lambda location: _places.with_file(location, place))
    return module
