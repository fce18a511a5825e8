# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""jaxlib's passes in a process of their own: their deaths and errors at the user's line."""

import inspect
import pathlib
import time

import pytest

jax = pytest.importorskip("jax")
import fp8  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import jaxlib  # noqa: E402
import outside_programs  # noqa: E402

PASSES = f"the passes of jaxlib {jaxlib.__version__}"


def double(x):
    return x + x


def stablehlo():
    return str(jax.export.export(jax.jit(double))(jnp.ones(4)).mlir_module())


def check_death(info, reason):
    assert info.value.message.startswith(f"{PASSES} {reason}"), info.value
    assert (info.value.location.file, info.value.location.line) == (__file__, inspect.getsourcelines(double)[1])


@pytest.mark.parametrize("name", ["ABRT", "SEGV"])
def test_a_death_is_an_error_at_the_users_line(name, tmp_path, monkeypatch, fresh_cache):
    with outside_programs.in_place(monkeypatch, tmp_path, outside_programs.KILLED.format(name)):
        for call in (fp8.jax.jit(double), fp8.jax.function(double, recipe="none")):
            with pytest.raises(fp8.CompileError, match="the input is kept in") as info:
                call(jnp.ones(4))
            check_death(info, "were ended by signal")
            # A text that a person can read.
            assert "stablehlo.add" in pathlib.Path(info.value.source_path).read_text()
    assert fp8.jax.jit(double)(jnp.ones(4)).tolist() == [2, 2, 2, 2]


def test_a_death_on_stablehlo_is_an_error_in_its_file(tmp_path, monkeypatch, fresh_cache):
    path = tmp_path / "step.mlir"
    path.write_text(stablehlo())
    with outside_programs.in_place(monkeypatch, tmp_path, outside_programs.KILLED.format("ABRT")):
        with pytest.raises(fp8.CompileError) as info:
            fp8.compile(path)
    assert info.value.message.startswith(f"{PASSES} were ended by signal 6 (Aborted); the input is kept in ")
    assert info.value.location == fp8.Location(str(path), 1, 1)
    assert pathlib.Path(info.value.source_path).read_text() == stablehlo()
    assert len(fp8.compile(path).entries) == 1


def test_passes_have_a_time_limit(tmp_path, monkeypatch):
    with outside_programs.in_place(monkeypatch, tmp_path, "time.sleep(60)"):
        monkeypatch.setattr(fp8.config, "compile_timeout", 0.3)
        began = time.monotonic()
        with pytest.raises(fp8.CompileError) as info:
            fp8.jax.jit(double)(jnp.ones(4))
    check_death(info, "took more than 0.3 s (fp8.config.compile_timeout)")
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("answer", ["nonsense", "ML\\xefR\\x0d"])
def test_an_answer_that_is_no_program(answer, tmp_path, monkeypatch):
    body = outside_programs.ASKED + f"send_message(channel, {{}}, {answer!r}.encode('latin1')); time.sleep(60)"
    with outside_programs.in_place(monkeypatch, tmp_path, body):
        with pytest.raises(fp8.CompileError) as info:
            fp8.jax.jit(double)(jnp.ones(4))
    check_death(info, "gave a program that cannot be read: ")


def test_what_passes_refuse_is_an_error_at_the_operation(tmp_path, monkeypatch):
    location = f'loc("jit(f)/h0/add"("{__file__}":7:3))'
    refused = f"{{'refused': [{{'message': 'no', 'location': {location!r}, 'place': [{__file__!r}, 7, 3], 'notes': []}}], 'is_parsed': True}}"
    with outside_programs.in_place(monkeypatch, tmp_path, outside_programs.ASKED + f"send_message(channel, {refused}); time.sleep(60)"):
        with pytest.raises(fp8.UnsupportedError, match=r"in h0 \(add\): jaxlib cannot lower this: no; ") as info:
            fp8.jax.jit(double)(jnp.ones(4))
    assert (info.value.location.file, info.value.location.line) == (__file__, 7)
