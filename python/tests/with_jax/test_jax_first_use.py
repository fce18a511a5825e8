# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mistakes of a user's first hour with fp8.jax: misspelt arguments, calls where they cannot be, a compiler
that dies."""

import inspect
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

import pytest

jax = pytest.importorskip("jax")
import fp8  # noqa: E402
import jax.numpy as jnp  # noqa: E402

X, W = jnp.ones((4, 16)), jnp.ones((16, 8))


def forward(x, w):
    return jnp.tanh(x @ w)


def test_a_misspelt_argument_is_named():
    with pytest.raises(TypeError, match="fp8.jax.jit has no argument donate_argnum: did you mean donate_argnums?"):
        fp8.jax.jit(forward, donate_argnum=0)
    with pytest.raises(TypeError, match="fp8.jax.function has no argument recpie: did you mean recipe?"):
        fp8.jax.function(forward, recpie="row")
    with pytest.raises(ValueError, match="there is no option amax_history_length. Did you mean 'amax_history_len=4'?"):
        fp8.jax.jit(forward, amax_history_length=4)(X, W)


@pytest.mark.parametrize(
    "arguments",
    [dict(donate_argnums=5), dict(static_argnums=5), dict(donate_argnames="y"), dict(static_argnames="y"), dict(static_argnums=0, donate_argnums=0)],
    ids=str,
)
def test_arguments_of_jax_jit_are_refused_as_jax_does(arguments):
    def message(jit):
        with pytest.raises(ValueError) as error:
            jit(forward, **arguments)
        return str(error.value)

    assert message(fp8.jax.jit) == message(jax.jit)
    with pytest.raises(TypeError, match="Expected a callable value, got 3"):
        fp8.jax.jit(3)


def test_arguments_that_jax_jit_alone_has_are_named():
    fp8.jax.jit(forward, in_shardings=None, device=None, recipe="current")(X, W)  # as without
    for name in ("in_shardings", "out_shardings", "backend", "inline", "compiler_options"):
        with pytest.raises(TypeError, match=f"fp8.jax.jit has no argument {name}, which jax.jit has: compiled code runs .* on the one device"):
            fp8.jax.jit(forward, **{name: True})


def test_the_cpu_may_be_named():
    fp8.jax.jit(forward, recipe="current", target="cpu", device="cpu")(X, W)


def test_a_step_with_state_inside_of_a_jit_says_what_to_call():
    step = fp8.jax.jit(forward, sites="all")
    before = step(X, W)
    state = jax.tree.map(jnp.array, step.state)
    with pytest.raises(TypeError, match=re.escape("make the state with step.init(…), and call step.apply(state, …)")):
        jax.jit(lambda x: step(x, W))(X)
    # The state is still the one of the call before, and the step can be called.
    assert jax.tree.all(jax.tree.map(lambda a, b: (a == b).all(), state, step.state))
    assert step(X, W).shape == before.shape
    # Without state it is a function like any other.
    stateless = fp8.jax.jit(forward, recipe="current")
    assert (jax.jit(lambda x: stateless(x, W))(X) == stateless(X, W)).all()


def test_errors_about_the_whole_are_at_the_function():
    with pytest.raises(fp8.CompileError, match="no site matches") as error:
        fp8.jax.jit(forward, require="nothing")(X, W)
    assert (pathlib.Path(error.value.location.file), error.value.location.line) == (pathlib.Path(__file__), inspect.getsourcelines(forward)[1])


def test_warnings_are_at_the_users_call(tmp_path, monkeypatch):
    (tmp_path / "cache").write_text("")
    monkeypatch.setattr(fp8.config, "cache_dir", tmp_path / "cache")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fp8.jax.jit(forward, keep="nothing", recipe="current")(X, W)
    messages = {str(w.message).partition(":")[0] for w in caught}
    assert len(caught) == 2 and "compiled libraries are not kept" in messages
    assert [w.filename for w in caught] == [__file__] * 2


def test_a_gradient_of_a_step_has_one_error():
    with pytest.raises(NotImplementedError, match="has no gradient") as error:
        jax.grad(lambda x: fp8.jax.jit(forward, sites="all")(x, W).sum())(X)
    assert error.value.__context__ is None or error.value.__suppress_context__


def test_after_a_compiler_that_is_killed_the_step_can_be_called_again(tmp_path, monkeypatch, fresh_cache):
    script = tmp_path / "bin" / "fp8-compile"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\nkill -SEGV $$\n")
    script.chmod(0o755)
    step = fp8.jax.jit(forward, recipe="current")
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path))
        patch.setattr(fp8.config, "tool_dir", tmp_path)
        with pytest.raises(fp8.CompileError, match=r"ended by signal 11 .*the input is kept in .*; please report it"):
            step(X, W)
    assert step(X, W).shape == (4, 8)


def test_without_its_library_it_says_what_to_build(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "fp8-compile").touch()
    monkeypatch.setattr(fp8.config, "tool_dir", tmp_path)
    monkeypatch.setattr("fp8._tools.PACKAGE", tmp_path / "a" / "b" / "c" / "d")
    fp8.jax._call._ffi_library.cache_clear()
    try:
        with pytest.raises(fp8.MissingToolError, match="libfp8_jax.so is in none of .*: install the wheel of fp8-mlir, or build the project"):
            fp8.jax._call._ffi_library()
    finally:
        fp8.jax._call._ffi_library.cache_clear()


@pytest.mark.parametrize("statement", ["import fp8.jax", "import fp8; fp8.jax.jit"])
def test_another_version_of_jax_is_warned_of_once_at_the_users_import(statement, tmp_path):
    script = tmp_path / "user.py"
    script.write_text(f"import jax\njax.__version__ = '9.0'\n{statement}\n{statement}\n")
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(fp8.__file__).parent.parent)}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment)
    assert done.returncode == 0 and done.stderr.count("was not tested") == 1
    assert f"{script}:3: Warning: fp8.jax was not tested with jax 9.0" in done.stderr
