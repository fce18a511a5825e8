# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""StableHLO of sizes that are not known: programs that jax.export makes with symbolic shapes, compiled once and run with several sizes."""

import pytest

jax = pytest.importorskip("jax")
import fp8  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402
from stablehlo_values import run  # noqa: E402

RNG = np.random.default_rng(0)


def polymorphic(fun, *shapes, dtypes=None):
    """The program for shapes such as "b, 4"."""
    scope = jax.export.SymbolicScope()
    dtypes = dtypes or [np.float32] * len(shapes)
    types = [jax.ShapeDtypeStruct(jax.export.symbolic_shape(s, scope=scope), d) for s, d in zip(shapes, dtypes)]
    return fp8.compile(jax.export.export(jax.jit(fun))(*types).mlir_module_serialized, recipe="none").entries["main"]


def check(fun, shapes, sizes, dtypes=None, tolerance=1e-6):
    """Values beside JAX's, for each set of sizes."""
    entry = polymorphic(fun, *shapes, dtypes=dtypes)
    for size in sizes:
        concrete = [tuple(size.get(d.strip(), d.strip()) for d in s.split(",") if d.strip()) for s in shapes]
        drawn = [RNG.normal(size=tuple(map(int, s))) * 3 for s in concrete]
        arrays = [a.astype(d) for a, d in zip(drawn, dtypes or [np.float32] * len(shapes))]
        got, wanted = entry(*arrays), jax.tree.leaves(jax.jit(fun)(*arrays))
        assert len(got) == len(wanted)
        for ours, right in zip(got, wanted):
            ours, right = np.asarray(ours), np.asarray(right)
            assert ours.shape == right.shape
            np.testing.assert_allclose(ours.astype(right.dtype), right, rtol=tolerance, atol=tolerance)


SIZES = [{"a": 3, "b": 5}, {"a": 1, "b": 1}, {"a": 4, "b": 2}]
F, I, U = np.float32, np.int32, np.uint8  # noqa: E741

PROGRAMS = {
    "broadcasts": (lambda x, y: x[:, None, :] * y[None, :, :] + jnp.ones((x.shape[0], 1, 1)), ["a, 4", "b, 4"], [F, F]),
    "reshapes": (lambda x: (x.reshape(-1), x.reshape(2, -1), jnp.concatenate([x, x]).reshape(-1, 2, 2)), ["a, 4"], [F]),
    "unsigned": (lambda x: (jnp.broadcast_to(x, (2, *x.shape)), x.reshape(-1), x + jnp.uint8(200)), ["a, 4"], [U]),
    "sizes": (lambda x, y: jnp.arange(x.shape[0]) * y.shape[1] + x.size, ["a, 4", "2, b"], [F, F]),
    "scatters": (lambda x, i, u: (x.at[i].add(u), x.at[i].set(u), x.at[:, 1].max(u[0, 0]), x.at[i, 0].multiply(u[:, 1])), ["a, 4", "b", "b, 4"], [F, I, F]),
    "gathers": (lambda x, i: (x[i], x[i, 1], x[1:3, i], jnp.take_along_axis(x, jnp.argsort(x, 1), 1)), ["a, 4", "b"], [F, I]),
    "vmapped": (jax.vmap(lambda x, i: x.at[i].add(x[i] * 2)), ["a, 4", "a, 3"], [F, I]),
    "embedding": (jax.grad(lambda w, i: jnp.sin(w[i]).sum()), ["a, 4", "b"], [F, I]),
    "updates": (lambda x, y: lax.dynamic_update_slice(x, y, (1, 2)), ["a, 4", "1, 1"], [F, F]),
    "updates of bytes": (lambda x, y: lax.dynamic_update_slice(x, y, (1, 2)), ["a, 4", "1, 1"], [U, U]),
    "sorts": (lambda x: (jnp.sort(x, 1), jnp.argsort(x, 1)), ["a, 5"], [F]),
    "layers": (lambda x, w: jax.nn.softmax(jnp.tanh(x @ w) @ w.T) - x.mean(0), ["a, 4", "4, b"], [F, F]),
    "scan": (lambda x: lax.scan(lambda c, row: (c + row, c * row), jnp.zeros(4), x), ["a, 4"], [F]),
    "windows": (lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2), (1, 2), "VALID"), ["a, 6"], [F]),
    "pooling": (jax.grad(lambda x: (lax.reduce_window(x, -jnp.inf, lax.max, (1, 3), (1, 2), "VALID") ** 2).sum()), ["a, 7"], [F]),
    "argmax": (lambda x: (jnp.argmax(x, 0), jnp.argmin(x, 1), x.max()), ["a, 4"], [F]),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_values_are_those_of_jax_for_several_sizes(program):
    fun, shapes, dtypes = PROGRAMS[program]
    check(fun, shapes, SIZES, dtypes, tolerance=1e-5)


def test_a_broadcast_of_a_size_that_turns_out_to_be_one():
    text = """func.func @main(%x: tensor<?x3xf32>, %n: tensor<3xi32>) -> tensor<2x?x3xf32> {
  %0 = stablehlo.dynamic_broadcast_in_dim %x, %n, dims = [1, 2] : (tensor<?x3xf32>, tensor<3xi32>) -> tensor<2x?x3xf32>
  return %0 : tensor<2x?x3xf32>
}"""
    for rows, wanted in ((1, 4), (4, 4), (1, 1)):
        x = RNG.normal(size=(rows, 3)).astype(np.float32)
        (got,) = run(text, x, np.array([2, wanted, 3], np.int32))
        np.testing.assert_array_equal(got, np.broadcast_to(x, (2, wanted, 3)))


@pytest.mark.parametrize("dtype,start", [("i32", -7), ("i32", 9), ("i64", 1), ("ui8", 200), ("i8", -128)])
def test_an_update_of_any_place_is_moved_to_where_it_fits(dtype, start):
    text = f"""func.func @main(%x: tensor<?x3xf32>, %u: tensor<?x2xf32>, %i: tensor<{dtype}>) -> tensor<?x3xf32> {{
  %c = stablehlo.constant dense<1> : tensor<{dtype}>
  %0 = stablehlo.dynamic_update_slice %x, %u, %i, %c : (tensor<?x3xf32>, tensor<?x2xf32>, tensor<{dtype}>, tensor<{dtype}>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}}"""
    x, u = RNG.normal(size=(4, 3)).astype(np.float32), RNG.normal(size=(2, 2)).astype(np.float32)
    index = np.array(start, {"i32": np.int32, "i64": np.int64, "i8": np.int8, "ui8": np.uint8}[dtype])
    (got,) = run(text, x, u, index)
    np.testing.assert_array_equal(got, lax.dynamic_update_slice(x, u, (max(start, 0), 1)))


def test_sizes_that_a_program_was_not_exported_for_are_an_error():
    entry = polymorphic(lambda x: x.reshape(2, -1) * 2, "2*a, 4")
    assert entry(np.ones((6, 4), np.float32))[0].shape == (2, 12)
    with pytest.raises(fp8.Error):
        entry(np.ones((5, 4), np.float32))


def test_a_sort_along_a_size_that_is_not_known_is_refused_at_its_line():
    with pytest.raises(fp8.UnsupportedError, match="stablehlo.sort of sizes that are not known has no code") as error:
        polymorphic(lambda x: jnp.sort(x, 0), "a, 4")
    assert error.value.location.file == __file__


# Static programs


def test_sizes_and_shardings_of_static_programs():
    text = """func.func @main(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<i32>) {
  %0 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{replicated}"} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = stablehlo.get_dimension_size %0, dim = 1 : (tensor<2x3xf32>) -> tensor<i32>
  return %0, %1 : tensor<2x3xf32>, tensor<i32>
}"""
    x = RNG.normal(size=(2, 3)).astype(np.float32)
    same, size = run(text, x)
    np.testing.assert_array_equal(same, x)
    assert size == 3


def batch_norm(kind, operands, results, feature, dtype="f32", epsilon=0.001):
    names = [f"%a{i}" for i in range(len(operands))]
    tensors = lambda shapes: [f"tensor<{s}x{dtype}>" for s in shapes]
    arguments = ", ".join(f"{n}: {t}" for n, t in zip(names, tensors(operands)))
    types = f"({', '.join(tensors(operands))}) -> ({', '.join(tensors(results))})"
    values = ", ".join(f"%0#{i}" for i in range(len(results)))
    return f"""func.func @main({arguments}) -> ({", ".join(tensors(results))}) {{
  %0:{len(results)} = "stablehlo.batch_norm_{kind}"({", ".join(names)}) {{epsilon = {epsilon} : f32, feature_index = {feature} : i64}} : {types}
  return {values} : {", ".join(tensors(results))}
}}"""


@pytest.mark.parametrize("feature", [0, 1, 2])
@pytest.mark.parametrize("dtype,tolerance", [("f32", 2e-5), ("f64", 1e-12), ("f16", 2e-3)])
def test_norms_of_batches(feature, dtype, tolerance):
    numpy = {"f32": np.float32, "f64": np.float64, "f16": np.float16}[dtype]
    shape = (4, 3, 5)
    n = shape[feature]
    others = tuple(d for d in range(3) if d != feature)
    x, dy, scale, offset = (RNG.normal(size=s).astype(numpy).astype(np.float64) for s in (shape, shape, n, n))
    along = lambda a: np.expand_dims(a, others)
    mean, variance = x.mean(others), x.var(others)
    deviation = along(np.sqrt(variance + np.float64(np.float32(0.001))))  # The attribute is of f32.
    normalized = (x - along(mean)) / deviation
    wanted = normalized * along(scale) + along(offset)
    close = lambda got, right: np.testing.assert_allclose(got.astype(np.float64), right, rtol=tolerance, atol=5 * tolerance)
    whole = "4x3x5"
    give = lambda *arrays: [a.astype(numpy) for a in arrays]
    results = run(batch_norm("training", [whole, n, n], [whole, n, n], feature, dtype), *give(x, scale, offset))
    for got, right in zip(results, (wanted, mean, variance)):
        close(got, right)
    (got,) = run(batch_norm("inference", [whole, n, n, n, n], [whole], feature, dtype), *give(x, scale, offset, mean, variance))
    close(got, wanted)
    results = run(batch_norm("grad", [whole, n, n, n, whole], [whole, n, n], feature, dtype), *give(x, scale, mean, variance, dy))
    centered = dy - along(dy.mean(others)) - normalized * along((dy * normalized).mean(others))
    for got, right in zip(results, (along(scale) / deviation * centered, (dy * normalized).sum(others), dy.sum(others))):
        close(got, right)


MISFITS = {
    "scatter": ("""func.func @main(%x: tensor<?x2xf32>, %i: tensor<?x1xi32>, %u: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
      index_vector_dim = 1>} : (tensor<?x2xf32>, tensor<?x1xi32>, tensor<?x2xf32>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}""", [(3, 2), (4, 1), (2, 2)], "dimension 0 of operand 1 is not dimension 0 of operand 2"),
    "window": ("""func.func @main(%x: tensor<?x2xf32>, %i: tensor<1xi32>, %u: tensor<?xf32>) -> tensor<?x2xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1]>}
      : (tensor<?x2xf32>, tensor<1xi32>, tensor<?xf32>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}""", [(3, 2), (1,), (4,)], "dimension 0 of operand 0 is less than dimension 0 of operand 2"),
    "broadcast": ("""func.func @main(%x: tensor<?x2xf32>, %i: tensor<2xi32>) -> tensor<?x2xf32> {
  %0 = stablehlo.dynamic_broadcast_in_dim %x, %i, dims = [0, 1] : (tensor<?x2xf32>, tensor<2xi32>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}""", [(3, 2), [5, 2]], ""),
    "reshape": ("""func.func @main(%x: tensor<?x2xf32>, %i: tensor<1xi32>) -> tensor<?xf32> {
  %0 = stablehlo.dynamic_reshape %x, %i : (tensor<?x2xf32>, tensor<1xi32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}""", [(3, 2), [50]], ""),
    "update": ("""func.func @main(%x: tensor<?x2xf32>, %i: tensor<i32>, %u: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %0 = stablehlo.dynamic_update_slice %x, %u, %i, %i : (tensor<?x2xf32>, tensor<?x2xf32>, tensor<i32>, tensor<i32>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}""", [(3, 2), (), (5, 2)], ""),
}  # fmt: skip


@pytest.mark.parametrize("name", MISFITS)
def test_sizes_that_do_not_fit_are_an_error_when_the_program_runs(name):
    text, arguments, message = MISFITS[name]
    # A list is the argument itself, a tuple its shape.
    integers = [isinstance(a, list) or number == 1 for number, a in enumerate(arguments)]
    arrays = [np.array(a, np.int32) if isinstance(a, list) else np.zeros(a, np.int32 if i else np.float32) for a, i in zip(arguments, integers)]
    with pytest.raises(fp8.Error, match=message or None):
        run(text, *arrays)
