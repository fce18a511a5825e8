# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs in MLIR for the parts that need no framework, their inputs, and their calls."""

import functools
from collections.abc import Callable
from typing import Any

import fp8
import ml_dtypes
import numpy as np

Arrays = list[np.ndarray[Any, Any]]
RECIPES = ("none", "delayed", "current", "row", "block")

MAPS = {"ik": "i, k", "ki": "k, i", "kj": "k, j", "jk": "j, k"}


def product(name: str, lhs: str, rhs: str, maps: tuple[str, str], types: dict[str, str], result: str) -> str:
    left, right = (f"affine_map<(i, j, k) -> ({MAPS[of]})>" for of in maps)
    return f"""  %{name}_empty = tensor.empty() : tensor<{result}xf32>
  %{name}_zero = linalg.fill ins(%zero : f32) outs(%{name}_empty : tensor<{result}xf32>) -> tensor<{result}xf32>
  %{name}_sums = linalg.matmul indexing_maps = [{left}, {right}, affine_map<(i, j, k) -> (i, j)>]
      ins(%{lhs}, %{rhs} : tensor<{types[lhs]}xbf16>, tensor<{types[rhs]}xbf16>) outs(%{name}_zero : tensor<{result}xf32>) -> tensor<{result}xf32>
  %{name} = arith.truncf %{name}_sums : tensor<{result}xf32> to tensor<{result}xbf16>
"""


def layer(m: int, n: int, k: int) -> str:
    """y = x w, dx = g w^T and dw = x^T g, all in bf16, of x [m, k], w [k, n], g [m, n]."""
    types = {"x": f"{m}x{k}", "w": f"{k}x{n}", "g": f"{m}x{n}"}
    arguments = ", ".join(f"%{name}: tensor<{shape}xbf16>" for name, shape in types.items())
    results = ", ".join(f"tensor<{types[name]}xbf16>" for name in "gxw")
    body = product("y", "x", "w", ("ik", "kj"), types, types["g"])
    body += product("dx", "g", "w", ("ik", "jk"), types, types["x"])
    body += product("dw", "x", "g", ("ki", "kj"), types, types["w"])
    zero = "  %zero = arith.constant 0.0 : f32\n"
    return f"func.func @main({arguments}) -> ({results}) {{\n{zero}{body}  return %y, %dx, %dw : {results}\n}}\n"


def normalized(m: int, n: int, k: int) -> str:
    """y = tanh(norm(x) w), the row-wise root mean square norm of x [m, k], w [k, n]: rows, casts of rows, an epilogue."""
    x, w, y, column = f"tensor<{m}x{k}xbf16>", f"tensor<{k}x{n}xbf16>", f"tensor<{m}x{n}xf32>", f"tensor<{m}xf32>"
    return f"""
#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @main(%x: {x}, %w: {w}) -> {y} {{
  %zero = arith.constant 0.0 : f32
  %size = arith.constant {k}.0 : f32
  %small = arith.constant 1.0e-5 : f32
  %none = tensor.empty() : {column}
  %start = linalg.fill ins(%zero : f32) outs(%none : {column}) -> {column}
  %squares = linalg.generic {{indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}} ins(%x : {x}) outs(%start : {column}) {{
  ^bb0(%a: bf16, %sum: f32):
    %wide = arith.extf %a : bf16 to f32
    %square = arith.mulf %wide, %wide : f32
    %new = arith.addf %sum, %square : f32
    linalg.yield %new : f32
  }} -> {column}
  %empty = tensor.empty() : {x}
  %norm = linalg.generic {{indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}}
      ins(%x, %squares : {x}, {column}) outs(%empty : {x}) {{
  ^bb0(%a: bf16, %sum: f32, %out: bf16):
    %wide = arith.extf %a : bf16 to f32
    %mean = arith.divf %sum, %size : f32
    %more = arith.addf %mean, %small : f32
    %root = math.sqrt %more : f32
    %quotient = arith.divf %wide, %root : f32
    %short = arith.truncf %quotient : f32 to bf16
    linalg.yield %short : bf16
  }} -> {x}
  %result = tensor.empty() : {y}
  %init = linalg.fill ins(%zero : f32) outs(%result : {y}) -> {y}
  %product = linalg.matmul ins(%norm, %w : {x}, {w}) outs(%init : {y}) -> {y}
  %y = math.tanh %product : {y}
  return %y : {y}
}}
"""


@functools.lru_cache(maxsize=1)  # Recipes of a shape follow each other.
def inputs(text: Callable[[int, int, int], str], shape: tuple[int, int, int]) -> Arrays:
    """Normally distributed arguments of a program."""
    m, n, k = shape
    sizes = [(m, k), (k, n), (m, n)] if text is layer else [(m, k), (k, n)]
    random = np.random.default_rng(0)
    return [random.standard_normal(size, dtype=np.float32).astype(ml_dtypes.bfloat16) for size in sizes]


def library(text: Callable[[int, int, int], str], shape: tuple[int, int, int], recipe: str, device: str, target: str, exact: bool = False) -> fp8.Library:
    """The compiled program; `exact` asks for sums in the program's order."""
    options: dict[str, Any] = {"strict_accumulation": True, "order": "program"} if exact else {}
    return fp8.compile(text(*shape), recipe=recipe, sites="all", device=device, target=target, **options)


def call(library: fp8.Library, arrays: Arrays, steps: int) -> Arrays:
    """The results of the last of some calls, and the FP8 state after it."""
    arguments: list[Any] = [library.put(array) for array in arrays] if library.device == "cuda" else list(arrays)
    state = library.state()
    for _ in range(steps):
        results = library.entries["main"](*arguments, state=state)
    values = [*results, *(value for name, value in state.items() if name != "layout_hash")]
    return [np.asarray(value) for value in values]


def profile(library: fp8.Library, arrays: Arrays, steps: int) -> list[Any]:
    """The kernels of some calls; those that load the code come before."""
    # Calls are measured on arrays of the CPU, which are copied there.
    state = {name: np.array(value) for name, value in library.state().items()}
    with library.profile():
        library.entries["main"](*arrays, state=state)
    with library.profile() as measured:
        for _ in range(steps):
            library.entries["main"](*arrays, state=state)
    return measured.kernels
