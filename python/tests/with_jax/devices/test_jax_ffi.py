# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The declarations of XLA's interface, by which libfp8_jax.so is built without JAX, beside jaxlib's own header."""

import pathlib
import shutil
import subprocess

import pytest

jax = pytest.importorskip("jax")

PYTHON = pathlib.Path(__file__).parents[3]
COMPILER = next(filter(None, map(shutil.which, ("clang++-22", "clang++", "c++"))), None)


def compiles(header, tmp_path):
    """Whether the comparison compiles with a text as xla_ffi.h, and what the compiler says."""
    (tmp_path / "xla_ffi.h").write_text(header)
    source = pathlib.Path(__file__).with_name("xla_ffi_check.cpp")
    done = subprocess.run([COMPILER, "-std=c++17", "-fsyntax-only", f"-I{tmp_path}", "-isystem", jax.ffi.include_dir(), source], capture_output=True, text=True)
    return done.returncode == 0, done.stderr


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
def test_declarations_are_those_of_jaxlibs_header(tmp_path):
    header = (PYTHON / "lib" / "xla_ffi.h").read_text()
    same, errors = compiles(header, tmp_path)
    assert same, errors
    # The comparison sees a member that is missing, one of another size, and another number.
    for old, new in [("  void *data;\n", ""), ("int64_t rank;", "int32_t rank;"), ("F16 = 10", "F16 = 16"), ("errorFunctions[2]", "errorFunctions[1]")]:
        assert old in header
        same, errors = compiles(header.replace(old, new, 1), tmp_path)
        assert not same and "static assertion failed" in errors
