# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Features that compiled code does not have: operations without code, effects, calls that JAX does not
trace."""

import inspect
import pathlib
import traceback

import pytest

jax = pytest.importorskip("jax")
import fp8  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

from jax_values import compare  # noqa: E402

UNSUPPORTED = {
    "fft": lambda x: jnp.fft.rfft(x).real,
    "cholesky": lambda x: jnp.linalg.cholesky(x),
    "Qr": lambda x: jnp.linalg.qr(x)[0],
    "debug": lambda x: (jax.debug.print("{}", x.sum()), x)[1],
    "pure_callback": lambda x: jax.pure_callback(lambda y: y, x, x),
    "debug_callback": lambda x: (jax.debug.callback(lambda y: None, x), x)[1],
    "eigh": lambda x: jnp.linalg.svd(x)[1],
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_an_unsupported_operation_is_an_error_at_the_users_line(name):
    fun = UNSUPPORTED[name]
    with pytest.raises(fp8.UnsupportedError, match=name) as error:
        fp8.jax.jit(lambda x: jax.named_scope("part")(fun)(x), recipe="none")(jnp.ones((4, 4)))
    assert (pathlib.Path(error.value.location.file), error.value.location.line) == (pathlib.Path(__file__), inspect.getsourcelines(fun)[1])
    assert "in part" in str(error.value) and "fp8.jax.function" in str(error.value)


def test_references_of_the_function_are_its_own():
    """jax.new_ref; one from outside is an effect, which compiled code does not have."""

    def squares(x):
        total = jax.new_ref(jnp.zeros(4))

        def add(i, _):
            total[...] += x[i] ** 2

        jax.lax.fori_loop(0, 4, add, None)
        return total[...] @ x

    x = jnp.arange(16.0).reshape(4, 4)
    compare(squares, x, tolerance=3e-6)
    outside = jax.new_ref(jnp.zeros(4))

    def change(x):
        outside[...] += x[0]
        return x

    with pytest.raises(fp8.UnsupportedError, match="reference from outside of the function: take its value as an argument") as error:
        fp8.jax.jit(change)(x)
    assert error.value.location.line == inspect.getsourcelines(change)[1] + 1


def test_compiled_functions_are_not_compiled_again():
    dense = fp8.jax.function(lambda w, x: x @ w)
    for compiled in dense, fp8.jax.jit(lambda w, x: x @ w, recipe="none"):
        with pytest.raises(fp8.UnsupportedError, match="call the function itself, which is its __wrapped__") as error:
            fp8.jax.jit(lambda w, x: jnp.tanh(compiled(w, x)))(jnp.ones((16, 8)), jnp.ones((4, 16)))  # noqa: B023
        assert error.value.location.file == __file__


def test_without_jit_and_with_checks_for_nan_it_is_the_compiled_code():
    """jax.disable_jit and debug_nans call functions without tracing."""
    step, x, w = fp8.jax.jit(lambda x, w, scale=2.0: (x @ w) * scale, sites="all"), jnp.ones((4, 16)) / 3, jnp.ones((16, 8))
    wanted = step(x, w)
    again = fp8.jax.jit(lambda x, w, scale=2.0: (x @ w) * scale, sites="all")
    with jax.disable_jit():
        np.testing.assert_array_equal(again(x, w), wanted)
        np.testing.assert_array_equal(again(x, w, scale=4.0), 2 * wanted)
    with jax.debug_nans(True):
        np.testing.assert_array_equal(again(x, w), wanted)
        with pytest.raises(FloatingPointError):
            again(x * np.nan, np.asarray(w))


def frames_of(call):
    """The type of the error that a call raises, and the files of its traceback after the one of this function."""
    try:
        call()
    except Exception as error:
        return type(error), [frame.filename for frame in traceback.extract_tb(error.__traceback__)[1:]]
    return None


@pytest.mark.parametrize("name", ["__call__", "init", "lower", "report"])
def test_tracebacks_end_with_the_users_lines(name):
    def spectrum(x):
        return jnp.fft.fft(x).real

    def wrong(x):
        return missing_name(x)  # noqa: F821

    x = jnp.ones((4, 8))
    assert frames_of(lambda: getattr(fp8.jax.jit(spectrum), name)(x)) == (fp8.UnsupportedError, [__file__])
    assert frames_of(lambda: getattr(fp8.jax.jit(wrong), name)(x)) == (NameError, [__file__, __file__])
    if name in ("__call__", "report"):
        for transform in (fp8.jax.function, fp8.jax.nnx_jit):
            assert frames_of(lambda transform=transform: getattr(transform(spectrum), name)(x)) == (fp8.UnsupportedError, [__file__])


def test_tracebacks_of_the_compilers_errors_end_with_the_users_call(monkeypatch):
    x, w = jnp.ones((4, 16)), jnp.ones((16, 8))
    for transform in (fp8.jax.jit, fp8.jax.function, fp8.jax.nnx_jit):
        assert frames_of(lambda transform=transform: transform(jnp.dot, recipe="delay")(x, w)) == (ValueError, [__file__])
    monkeypatch.setattr(fp8.config, "tool_dir", pathlib.Path("/nowhere"))
    assert frames_of(lambda: fp8.jax.jit(jnp.dot)(x, w)) == (fp8.MissingToolError, [__file__])


def test_tracebacks_have_all_frames_where_jax_keeps_its_own():
    jax.config.update("jax_traceback_filtering", "off")
    try:
        kind, files = frames_of(lambda: fp8.jax.jit(lambda x: jnp.fft.fft(x).real)(jnp.ones((4, 8))))
    finally:
        jax.config.update("jax_traceback_filtering", "auto")
    assert kind is fp8.UnsupportedError
    assert any(file.endswith("_step.py") for file in files)
