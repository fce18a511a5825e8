# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors of fp8.jax.jit, at the user's line; and calls of a library that is not in memory."""

import inspect
import os
import pathlib
import re
import subprocess
import sys

import pytest

jax = pytest.importorskip("jax")
import fp8  # noqa: E402
import jax.numpy as jnp  # noqa: E402


def test_an_error_of_the_compiler_is_at_the_users_line():
    def forward(x, w):
        return x @ w

    with pytest.raises(fp8.CompileError, match="require") as error:
        fp8.jax.jit(forward, require="w", keep="w")(jnp.ones((4, 16)), jnp.ones((16, 8)))
    assert error.value.location.line == inspect.getsourcelines(forward)[1] + 1


def test_wrong_options_and_arguments():
    with pytest.raises(ValueError, match="recipe"):
        fp8.jax.jit(lambda x: x, recipe="best")(jnp.ones(4))
    with pytest.raises(TypeError, match="carry"):
        fp8.jax.jit(lambda x: x, carry={0: 0})
    with pytest.raises(ValueError, match="keep_unused"):
        fp8.jax.jit(lambda x: x, keep_unused=False)
    with pytest.raises(TypeError):
        fp8.jax.jit(lambda x: x)(jnp.ones(4), jnp.ones(4))


def test_a_gradient_of_a_step_is_an_error_that_says_what_to_use():
    step = fp8.jax.jit(lambda x, w: (x @ w).sum(), recipe="current")
    with pytest.raises(NotImplementedError, match=re.escape("fp8.jax.function")):
        jax.grad(step)(jnp.ones((4, 16)), jnp.ones((16, 8)))
    with pytest.raises(NotImplementedError, match=re.escape("fp8.jax.function")):
        jax.vmap(step, (0, None))(jnp.ones((2, 4, 16)), jnp.ones((16, 8)))


def test_a_mapped_or_staged_step_is_an_error_though_its_state_would_not_fit_either():
    step = fp8.jax.jit(lambda x, w: (x @ w).sum(), recipe="delayed")
    step(jnp.ones((4, 16)), jnp.ones((16, 8)))
    with pytest.raises(fp8.StateError, match="another layout"):
        step(jnp.ones(16), jnp.ones((16, 8)))  # Products of vectors have other sites.
    for change in (lambda f: jax.vmap(f, (0, None)), lambda f: jax.jit(jax.vmap(f, (0, None)))):
        with pytest.raises(NotImplementedError, match="cannot be mapped"):
            change(step)(jnp.ones((2, 16)), jnp.ones((16, 8)))
    with pytest.raises(TypeError, match=re.escape("step.apply(state, …)")):
        jax.jit(step)(jnp.ones(16), jnp.ones((16, 8)))


def test_a_program_that_jax_kept_finds_its_library_in_another_process(tmp_path):
    """JAX's persistent cache of compiled programs outlives libraries in memory: the call has the library's name, not an address."""
    code = "import fp8.jax, jax.numpy as jnp; print(fp8.jax.jit(lambda x, w: x @ w, recipe='current')(jnp.ones((4, 16)), jnp.ones((16, 8)))[0, 0])"
    environment = {
        **os.environ, "PYTHONPATH": str(pathlib.Path(fp8.__file__).parent.parent), "JAX_COMPILATION_CACHE_DIR": str(tmp_path),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }  # fmt: skip
    outputs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment) for _ in range(2)]
    assert [o.stdout for o in outputs] == [outputs[0].stdout] * 2 and float(outputs[0].stdout) == pytest.approx(16, rel=1e-6)
    assert any(tmp_path.iterdir())


def test_a_call_of_an_unknown_library_is_an_error():
    fp8.jax.jit(lambda x: x * 2, recipe="none")(jnp.ones(4))  # Makes the call known to JAX.
    call = jax.ffi.ffi_call("fp8_call", jax.ShapeDtypeStruct((4,), jnp.float32))
    with pytest.raises(jax.errors.JaxRuntimeError, match="0123/main"):
        call(jnp.ones(4), entry="0123/main")
