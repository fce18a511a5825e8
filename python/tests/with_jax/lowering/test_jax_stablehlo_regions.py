# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""StableHLO operations with regions of scalars: what a scatter, a sort or a reduction of windows does is the region's own code."""

import itertools

import pytest

jax = pytest.importorskip("jax")
import fp8  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402
from stablehlo_values import assert_interpreted, run  # noqa: E402

RNG = np.random.default_rng(0)
NUMPY = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i32": np.int32, "i8": np.int8}


def numbers(shape, dtype):
    """Few different numbers, so that many are equal, with both zeros."""
    values = RNG.integers(-3, 4, shape).astype(NUMPY[dtype])
    return np.where(values == 0, np.copysign(0, RNG.normal(size=shape)), values).astype(NUMPY[dtype])


def select_and_scatter(shape, sizes, strides, padding, dtype="f32", direction="GE", combine="add"):
    """The text of an operation, and the shape of its source."""
    outer = [(n + low + high - size) // stride + 1 for n, size, stride, (low, high) in zip(shape, sizes, strides, padding)]
    tensor = lambda dimensions: f"tensor<{''.join(f'{d}x' for d in dimensions)}{dtype}>"
    pads = ", ".join(f"[{low}, {high}]" for low, high in padding)
    text = f"""func.func @main(%x: {tensor(shape)}, %s: {tensor(outer)}, %i: tensor<{dtype}>) -> {tensor(shape)} {{
  %0 = "stablehlo.select_and_scatter"(%x, %s, %i) ({{
  ^bb0(%a: tensor<{dtype}>, %b: tensor<{dtype}>):
    %1 = stablehlo.compare {direction}, %a, %b : (tensor<{dtype}>, tensor<{dtype}>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }}, {{
  ^bb0(%a: tensor<{dtype}>, %b: tensor<{dtype}>):
    %1 = stablehlo.{combine} %a, %b : tensor<{dtype}>
    stablehlo.return %1 : tensor<{dtype}>
  }}) {{window_dimensions = array<i64: {", ".join(map(str, sizes))}>, window_strides = array<i64: {", ".join(map(str, strides))}>,
      padding = dense<[{pads}]> : tensor<{len(shape)}x2xi64>}} : ({tensor(shape)}, {tensor(outer)}, tensor<{dtype}>) -> {tensor(shape)}
  return %0 : {tensor(shape)}
}}"""
    return text, outer


#: The initial value, which the interpreter combines more than once, as the specification allows.
IDENTITY = {"add": 0, "multiply": 1, "maximum": -100, "minimum": 100}


def check_select_and_scatter(shape, sizes, strides, padding, dtype="f32", combine="add", **more):
    text, outer = select_and_scatter(shape, sizes, strides, padding, dtype, combine=combine, **more)
    assert_interpreted(text, numbers(shape, dtype), numbers(outer, dtype), np.array(IDENTITY[combine], NUMPY[dtype]))


NO = (0, 0)
WINDOWS = {
    "apart": ((6, 8), (2, 2), (2, 2), (NO, NO)),
    "overlapping": ((7, 9), (3, 3), (2, 2), (NO, NO)),
    "padded": ((5, 8), (3, 2), (2, 2), ((1, 1), (0, 2))),
    "gaps": ((7, 7), (1, 2), (3, 3), (NO, NO)),
    "of one": ((3, 4), (1, 1), (1, 1), (NO, NO)),
    "cut off": ((6, 6), (2, 2), (2, 2), ((-1, 1), (0, -2))),
    "many places": ((9, 9), (7, 6), (1, 1), ((3, 3), NO)),
}


@pytest.mark.parametrize("windows", WINDOWS)
@pytest.mark.parametrize("direction", ["GE", "GT", "LE", "LT"])
def test_select_and_scatter_selects_as_its_region_says(direction, windows):
    check_select_and_scatter(*WINDOWS[windows], direction=direction)


@pytest.mark.parametrize("direction", ["EQ", "NE"])
def test_select_and_scatter_by_a_region_that_is_no_order(direction):
    check_select_and_scatter(*WINDOWS["apart"], direction=direction)


@pytest.mark.parametrize("combine", IDENTITY)
@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "i32", "i8"])
def test_select_and_scatter_combines_as_its_region_says(dtype, combine):
    if dtype in ("f16", "i8") and combine == "multiply":
        pytest.skip("products of many numbers: the interpreter rounds elsewhere")
    check_select_and_scatter(*WINDOWS["overlapping"], dtype, combine=combine)


@pytest.mark.parametrize("window,stride,padding", [(2, 2, "VALID"), (3, 2, "SAME"), (3, 1, "VALID"), (8, 1, "SAME")])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_gradients_of_max_pooling_with_ties_are_those_of_jax(dtype, window, stride, padding):
    x = jnp.asarray(np.maximum(RNG.integers(-3, 3, (2, 9, 8, 3)), 0), dtype)

    def gradient(x):
        pooled = lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, window, window, 1), (1, stride, stride, 1), padding)
        y, vjp = jax.vjp(pooled, x)
        return vjp(jnp.asarray(np.random.default_rng(1).normal(size=y.shape), y.dtype))[0]

    wanted = jax.jit(gradient)(x)
    (got,) = fp8.compile(jax.export.export(jax.jit(gradient))(x).mlir_module_serialized, recipe="none").entries["main"](x)
    tolerance = 0 if dtype == jnp.float32 else 2**-8  # bf16: XLA rounds every sum.
    np.testing.assert_allclose(np.asarray(got, np.float32), np.asarray(wanted, np.float32), rtol=tolerance, atol=4 * tolerance)
    np.testing.assert_array_equal(np.asarray(fp8.jax.jit(gradient, recipe="none")(x), np.float32), np.asarray(got, np.float32))


def test_select_and_scatter_takes_nan_where_the_comparison_fails():
    text, outer = select_and_scatter((2, 6), (1, 3), (1, 3), (NO, NO))
    x = np.array([[1, np.nan, 2, np.nan, 1, 2], [np.nan, np.nan, 1, 3, 4, np.nan]], np.float32)
    assert_interpreted(text, x, np.array([[10, 20], [30, 40]], np.float32), np.float32(0))


# Scatters


def scatter(dtype, body):
    return f"""func.func private @twice(%a: tensor<{dtype}>) -> tensor<{dtype}> {{
  %0 = stablehlo.add %a, %a : tensor<{dtype}>
  return %0 : tensor<{dtype}>
}}
func.func public @main(%x: tensor<5x2x{dtype}>, %p: tensor<4x1xi32>, %u: tensor<4x2x{dtype}>) -> tensor<5x2x{dtype}> {{
  %0 = "stablehlo.scatter"(%x, %p, %u) ({{
  ^bb0(%a: tensor<{dtype}>, %b: tensor<{dtype}>):
    {body.replace("DT", dtype)}
    stablehlo.return %r : tensor<{dtype}>
  }}) {{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
      index_vector_dim = 1>}} : (tensor<5x2x{dtype}>, tensor<4x1xi32>, tensor<4x2x{dtype}>) -> tensor<5x2x{dtype}>
  return %0 : tensor<5x2x{dtype}>
}}"""


def larger(old, new):
    """Zeros by their signs."""
    return np.where((old > new) | ((old == new) & ~np.signbit(old)), old, new)


REGIONS = {
    "constant": ("%c = stablehlo.constant dense<1.5> : tensor<DT>\n %r = stablehlo.add %b, %c : tensor<DT>", lambda old, new: new + old.dtype.type(1.5)),
    "unary": ("%0 = stablehlo.floor %b : tensor<DT>\n %1 = stablehlo.negate %0 : tensor<DT>\n %r = stablehlo.maximum %a, %1 : tensor<DT>",
              lambda old, new: np.maximum(old, -np.floor(new))),
    "call": ("%0 = func.call @twice(%b) : (tensor<DT>) -> tensor<DT>\n %r = stablehlo.maximum %a, %0 : tensor<DT>",
             lambda old, new: np.maximum(old, new + new)),
    "total order": ("%0 = stablehlo.compare GT, %a, %b, TOTALORDER : (tensor<DT>, tensor<DT>) -> tensor<i1>\n"
                    "%r = stablehlo.select %0, %a, %b : tensor<i1>, tensor<DT>", larger),
    "of the old alone": ("%r = stablehlo.abs %a : tensor<DT>", lambda old, new: np.abs(old)),
}  # fmt: skip


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "f64"])
def test_a_scatter_does_what_its_region_says(dtype, region):
    body, function = REGIONS[region]
    x, updates, rows = numbers((5, 2), dtype), numbers((4, 2), dtype), np.array([[3], [0], [3], [7]], np.int32)
    wanted = x.copy()
    for row, update in zip(rows[:3, 0], updates):  # Row 7 is outside.
        wanted[row] = function(wanted[row], update)
    (got,) = run(scatter(dtype, body), x, rows, updates)
    np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(wanted))


def test_a_constant_of_fp8_in_a_region():
    dtype = ml_dtypes.float8_e4m3fn
    x, updates = np.arange(10).reshape(5, 2).astype(dtype), np.ones((4, 2), dtype)
    (got,) = run(scatter("f8E4M3FN", REGIONS["constant"][0]), x, np.array([[3], [0], [3], [7]], np.int32), updates)
    wanted = x.astype(np.float32)
    wanted[[0, 3]] = 2.5
    np.testing.assert_array_equal(got.astype(np.float32), wanted)


def test_what_a_region_cannot_have_is_named_at_its_line():
    text = scatter("f32", "%0 = stablehlo.broadcast_in_dim %b, dims = [] : (tensor<DT>) -> tensor<2xDT>\n%r = stablehlo.abs %a : tensor<DT>")
    with pytest.raises(fp8.UnsupportedError, match="stablehlo.broadcast_in_dim in the region of stablehlo.scatter has no code") as error:
        fp8.compile(text)
    assert error.value.location.line == 8


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
def test_a_sort_by_a_region_with_a_constant_and_a_call(dtype):
    text = f"""func.func private @distance(%a: tensor<{dtype}>) -> tensor<{dtype}> {{
  %c = stablehlo.constant dense<3.0> : tensor<{dtype}>
  %0 = stablehlo.subtract %a, %c : tensor<{dtype}>
  %1 = stablehlo.abs %0 : tensor<{dtype}>
  return %1 : tensor<{dtype}>
}}
func.func public @main(%x: tensor<6x{dtype}>) -> tensor<6x{dtype}> {{
  %0 = "stablehlo.sort"(%x) ({{
  ^bb0(%a: tensor<{dtype}>, %b: tensor<{dtype}>):
    %1 = func.call @distance(%a) : (tensor<{dtype}>) -> tensor<{dtype}>
    %2 = func.call @distance(%b) : (tensor<{dtype}>) -> tensor<{dtype}>
    %3 = stablehlo.compare LT, %1, %2 : (tensor<{dtype}>, tensor<{dtype}>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  }}) {{dimension = 0 : i64, is_stable = true}} : (tensor<6x{dtype}>) -> tensor<6x{dtype}>
  return %0 : tensor<6x{dtype}>
}}"""
    (got,) = run(text, np.array([5, 1, 2.5, 4, 3.5, 2], NUMPY[dtype]))
    assert got.astype(np.float32).tolist() == [2.5, 3.5, 4, 2, 5, 1]


# Reductions of windows


def reduce_window(attributes, result, body, operands=1):
    """Of [4, 6], with the largest elements' places as second operand."""
    types = ["f32", "i32"][:operands]
    arguments = ", ".join(f"%x{i}: tensor<4x6x{t}>" for i, t in enumerate(types))
    initial = ", ".join(f"%i{i}: tensor<{t}>" for i, t in enumerate(types))
    parameters = ", ".join(f"%{name}{i}: tensor<{t}>" for name in "ab" for i, t in enumerate(types))
    names = ", ".join(f"%{name}{i}" for name in "xi" for i in range(operands))
    results = ", ".join(f"tensor<{result}x{t}>" for t in types)
    all_types = ", ".join([*(f"tensor<4x6x{t}>" for t in types), *(f"tensor<{t}>" for t in types)])
    returned = ", ".join(f"%0#{i}" for i in range(operands))
    return f"""func.func private @largest(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {{
  %0 = stablehlo.maximum %a, %b : tensor<f32>
  return %0 : tensor<f32>
}}
func.func public @main({arguments}, {initial}) -> ({results}) {{
  %0:{operands} = "stablehlo.reduce_window"({names}) ({{
  ^bb0({parameters}):
    {body}
  }}) {{{attributes}}} : ({all_types}) -> ({results})
  return {returned} : {results}
}}"""


FIRST_LARGEST = """%c = stablehlo.compare GE, %a0, %b0 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %v = stablehlo.select %c, %a0, %b0 : tensor<i1>, tensor<f32>
    %p = stablehlo.select %c, %a1, %b1 : tensor<i1>, tensor<i32>
    stablehlo.return %v, %p : tensor<f32>, tensor<i32>"""
CALL = """%0 = func.call @largest(%a0, %b0) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    stablehlo.return %0 : tensor<f32>"""
X, PLACES = numbers((4, 6), "f32"), np.arange(24, dtype=np.int32).reshape(4, 6)
REDUCED = {
    "apart": ("window_dimensions = array<i64: 2, 3>, window_strides = array<i64: 2, 3>", "2x2"),
    "overlapping": ("window_dimensions = array<i64: 3, 2>", "2x5"),
    "padded": ("window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>, padding = dense<[[1, 1], [0, 1]]> : tensor<2x2xi64>", "3x3"),
    "dilated": ("window_dimensions = array<i64: 2, 2>, base_dilations = array<i64: 2, 1>, window_dilations = array<i64: 1, 3>", "6x3"),
    "many places": ("window_dimensions = array<i64: 4, 6>, padding = dense<[[3, 0], [0, 5]]> : tensor<2x2xi64>", "4x6"),
}


@pytest.mark.parametrize("windows", REDUCED)
def test_windows_of_two_tensors_are_reduced_together(windows):
    attributes, result = REDUCED[windows]
    assert_interpreted(reduce_window(attributes, result, FIRST_LARGEST, operands=2), X, PLACES, np.float32(-9), np.int32(-1))


@pytest.mark.parametrize("windows", REDUCED)
def test_windows_are_reduced_by_a_region_that_calls_a_function(windows):
    attributes, result = REDUCED[windows]
    assert_interpreted(reduce_window(attributes, result, CALL), X, np.float32(-9))


def test_a_reduction_by_a_region_that_calls_a_function():
    text = """func.func private @sum(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.add %a, %b : tensor<f32>
  return %0 : tensor<f32>
}
func.func public @main(%x: tensor<4x6xf32>, %i: tensor<f32>) -> tensor<6xf32> {
  %0 = "stablehlo.reduce"(%x, %i) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = func.call @sum(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {dimensions = array<i64: 0>} : (tensor<4x6xf32>, tensor<f32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}"""
    assert_interpreted(text, X, np.float32(2))


@pytest.mark.parametrize("direction,dtype", list(itertools.product(["LT", "GE", "EQ"], ["f32", "bf16", "f64"])))
def test_comparisons_in_total_order(direction, dtype):
    text = f"""func.func @main(%x: tensor<7x1x{dtype}>, %y: tensor<1x7x{dtype}>) -> tensor<7x7xi1> {{
  %0 = stablehlo.broadcast_in_dim %x, dims = [0, 1] : (tensor<7x1x{dtype}>) -> tensor<7x7x{dtype}>
  %1 = stablehlo.broadcast_in_dim %y, dims = [0, 1] : (tensor<1x7x{dtype}>) -> tensor<7x7x{dtype}>
  %2 = stablehlo.compare {direction}, %0, %1, TOTALORDER : (tensor<7x7x{dtype}>, tensor<7x7x{dtype}>) -> tensor<7x7xi1>
  return %2 : tensor<7x7xi1>
}}"""
    values = np.array([-np.nan, -np.inf, -1, -0.0, 0.0, np.inf, np.nan]).astype(NUMPY[dtype])  # In order.
    values[0] = np.copysign(np.array(np.nan, NUMPY[dtype]), np.array(-1, NUMPY[dtype]))
    (got,) = run(text, values[:, None], values[None])
    place = np.arange(7)
    np.testing.assert_array_equal(got, {"LT": np.less, "GE": np.greater_equal, "EQ": np.equal}[direction](place[:, None], place))
