# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FP8 numbers that the user's function has itself, and complex numbers: values compared with jax.jit's."""

import pytest

jax = pytest.importorskip("jax")
import fp8  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402

from jax_values import assert_same, compare  # noqa: E402

E4M3, E5M2 = jnp.float8_e4m3fn, jnp.float8_e5m2
FORMATS = pytest.mark.parametrize("format", [E4M3, E5M2], ids=["e4m3", "e5m2"])

RANDOM = np.random.default_rng(0)
X = jnp.asarray(RANDOM.normal(size=(6, 8)), jnp.float32)
Z = lax.complex(X, X[::-1] * 0.5)

#: Around the largest numbers, their halfway points to the next, small ones, and those that are none.
EDGES = [0, 1.1, 3.3, 447, 448, 463, 464, 464.5, 465, 496, 1e4, 57343, 57344, 61439, 61440, 61441, 65504, 1e-3, 2e-3, 1e-6, 1e-9, np.inf, np.nan]
EDGES = np.array([s * e for e in EDGES for s in (1, -1)])
INTEGERS = np.array([0, 1, -1, 3, 17, 100, 119, -120, 127, 464, 465, 500, -500, 57344, 61439, 61440, -61440, 2**24 + 1, 2**31 - 1])


@FORMATS
def test_numbers_that_are_too_large_become_what_jax_makes_of_them(format):
    """NaN in E4M3, an infinity in E5M2; the recipes' own casts saturate."""
    for type in (jnp.float32, jnp.bfloat16, jnp.float16):
        compare(lambda x: x.astype(format).astype(jnp.float32), jnp.asarray(EDGES, type), tolerance=0)


@FORMATS
def test_integers_and_bools_become_fp8(format):
    for type in (jnp.int32, jnp.int16, jnp.int8, jnp.uint8, jnp.uint16, jnp.uint32, jnp.bool_):
        fitting = INTEGERS if type == jnp.bool_ else INTEGERS[(jnp.iinfo(type).min <= INTEGERS) & (INTEGERS <= jnp.iinfo(type).max)]
        compare(lambda x: x.astype(format).astype(jnp.float32), jnp.asarray(fitting, type), tolerance=0)


@FORMATS
def test_arithmetic_of_fp8_is_rounded_after_every_operation(format):
    def operations(a, b):
        return [
            a + b, a - b, a * b, a / b, -a, abs(a), a * 2, jnp.maximum(a, b), jnp.minimum(a, b), jnp.sqrt(abs(a)), jnp.exp(a), jnp.tanh(a),
            jnp.clip(a, -1, 1), jnp.where(a > b, a, b), jnp.floor(a), jnp.sign(a), a.max(), a.at[1].set(b[2]), jnp.pad(a, 2), (a + b) * b - a,
        ]  # fmt: skip

    a, b = X.ravel().astype(format), (X * 300).ravel()[::-1].astype(format)
    compare(operations, a, b, tolerance=0)


@FORMATS
def test_products_and_sums_of_fp8_are_rounded_once(format):
    a, b, image = X.astype(format), X.T.astype(format), X.reshape(1, 6, 8, 1).astype(format)
    wide = [v.astype(jnp.float32) for v in (a, b, image)]

    def sums(a, b, image):
        filters = jnp.ones((2, 2, 1, 1), image.dtype)
        convolved = lax.conv_general_dilated(image, filters, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        windows = lax.reduce_window(image, jnp.zeros((), image.dtype), lax.add, (1, 2, 2, 1), (1, 1, 1, 1), "VALID")
        return a @ b, a.sum(), a.sum(0), a.prod(1), jnp.cumsum(a, 1), a.mean(1), convolved, windows

    got = fp8.jax.jit(sums, recipe="none")(a, b, image)
    assert_same(got, jax.jit(lambda *v: jax.tree.map(lambda x: x.astype(format), sums(*v)))(*wide), 0)
    # XLA computes some of them in f16: one more rounding, then one unit of the format.
    assert_same(got, jax.jit(sums)(a, b, image), 2.0 ** -(2 if format == E5M2 else 3))
    compare(lambda a, b: jnp.dot(a, b, preferred_element_type=jnp.float32), a, b, tolerance=1e-6)


def test_a_recipe_keeps_its_own_casts():
    """A product in FP8 beside a cast of the user that overflows: the one saturates, the other does not."""
    step = fp8.jax.jit(lambda x, w: (x @ w, (x * 1e4).astype(E4M3).astype(jnp.float32)), recipe="delayed", sites="all")
    product, cast = step(X * 1000, X.T)  # The first scale is 1.
    assert [site.decision for site in step.report().sites] == ["fp8"]
    saturated = np.clip(np.asarray(X * 1000), -448, 448)
    assert np.isfinite(product).all() and np.isnan(cast).any()
    np.testing.assert_allclose(product, saturated @ np.asarray(X.T), rtol=0.1, atol=0.1 * np.abs(product).max())


@pytest.mark.parametrize(
    "other, message", [(jnp.float8_e4m3fnuz, "casts from and to 'f8E4M3FNUZ' have no lowering"), (jnp.float8_e8m0fnu, "does not say how it rounds")]
)
def test_other_formats_are_errors_at_the_line(other, message):
    with pytest.raises(fp8.CompileError, match=message) as error:
        fp8.jax.jit(lambda x: x.astype(other), recipe="none")(X)
    assert error.value.location.file == __file__


COMPLEX = {
    "arithmetic": (lambda z: [z + 1, z - 2j, z * z, z / (z + 2), -z, z**2, 2.5 * z, abs(z), z.conj(), z.real, z.imag, z == z[::-1]], Z),
    "functions": (lambda z: [f(z) for f in (jnp.exp, jnp.log, jnp.sin, jnp.cos, jnp.tanh, jnp.sqrt, jnp.angle)], Z),
    "shapes": (lambda z: [z.T, z[1:3], z.at[2].set(1j), z[jnp.array([3, 1])], jnp.pad(z, 1), jnp.concatenate([z, z]), z[:0]], Z),
    "sums": (lambda z: [z.sum(), z.mean(0), jnp.cumsum(z, 1), z @ z.T, jnp.vdot(z, z)], Z),
    "scan": (lambda z: lax.scan(lambda c, r: (c * r, c), z[0], z), Z),
    "associative_scan": (lambda z: lax.associative_scan(lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (z, z + 1)), Z),
    "scalar": (lambda z: z * 2, 1 + 2j),
    "inside": (lambda x: (lax.complex(x, 2 * x) * jnp.exp(1j * x)).real, X),
    "gradient": (jax.grad(lambda z: abs(jnp.sin(z) * z).sum()), Z),
    "tree": (lambda t: {"c": t["a"] * t["b"], "n": t["n"] + 1}, {"a": Z, "b": X, "n": 3}),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_numbers(name):
    fun, *args = COMPLEX[name]
    compare(fun, *args, tolerance=3e-6)


def test_complex_numbers_of_a_step_are_donated_and_keep_their_type():
    step = fp8.jax.jit(lambda z, x: (z * jnp.exp(1j * x), (z * x).real.sum()), donate_argnums=0, recipe="none")
    wanted = jax.jit(lambda z, x: (z * jnp.exp(1j * x), (z * x).real.sum()))
    z, w = Z + 0, Z + 0
    for _ in range(3):
        (z, a), (w, b) = step(z, X), wanted(w, X)
        assert_same((z, a), (w, b), 3e-6)


def test_a_function_has_gradients_of_complex_arguments():
    fun = lambda z, x: (z * jnp.exp(1j * x)) @ x.T.astype(jnp.complex64)
    inner = fp8.jax.function(fun, recipe="none")
    loss = lambda f: lambda z, x: abs(jnp.sin(f(z, x))).sum()
    got = jax.jit(jax.grad(loss(inner), argnums=(0, 1)))(Z, X)
    assert_same(got, jax.jit(jax.grad(loss(fun), argnums=(0, 1)))(Z, X), 1e-5)


def test_rotary_embeddings_as_complex_numbers():
    """Llama's freqs_cis as EasyLM has it: a table of complex numbers among the arguments, and a product in FP8 before."""

    def turned(x, w, freqs):
        q = (x @ w).reshape(6, 4, 2)
        q = lax.complex(q[..., 0], q[..., 1]) * freqs
        return jnp.stack([q.real, q.imag], axis=-1).reshape(6, 8)

    freqs = jnp.exp(1j * jnp.outer(jnp.arange(6.0), 1e4 ** (-jnp.arange(4) / 4.0)))
    w = X.T @ X / 4
    compare(turned, X, w, freqs, tolerance=3e-6)
    loss = lambda w, x, freqs: (turned(x, w, freqs) * X[::-1]).sum()
    step = fp8.jax.jit(jax.value_and_grad(loss), recipe="current")
    for got, wanted in zip(step(w, X, freqs), jax.jit(jax.value_and_grad(loss))(w, X, freqs)):
        # Gradients have two bits of mantissa: an eighth in each of six terms.
        np.testing.assert_allclose(got, wanted, atol=0.15 * abs(wanted).max())
    assert [site.decision for site in step.report().sites] == ["fp8", "fp8"]


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [*(("bool", shape) for shape in ((10, 10), (101,), (1, 16, 16))), *((dtype, (3, 37)) for dtype in ("bool", "int4", "bfloat16", "float8_e4m3fn"))],
)
def test_constants_of_more_than_100_elements(dtype, shape):
    """MLIR writes them by their bytes, and its versions differ in those of bool: a mask made outside the step is one."""
    constant = jnp.asarray(RANDOM.integers(0, 2, shape)).astype(dtype)

    def masked(x):
        return jnp.where(constant.astype(bool), x, 2 * x)

    x = jnp.asarray(RANDOM.normal(size=shape), jnp.float32)
    compare(masked, x, tolerance=0)
    exported = fp8.compile(jax.export.export(jax.jit(masked))(x).mlir_module(), recipe="none")
    (got,) = exported.entries["main"](np.asarray(x))
    np.testing.assert_array_equal(got, masked(x))
