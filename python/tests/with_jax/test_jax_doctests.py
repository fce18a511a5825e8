# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples in the docstrings of fp8.jax."""

import doctest
import importlib
import pathlib

import pytest

pytest.importorskip("jax")
import fp8.jax  # noqa: E402

MODULES = sorted(f"fp8.jax.{path.stem}" for path in pathlib.Path(fp8.jax.__file__).parent.glob("*.py") if path.stem != "__init__")


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_examples():
    assert sum(doctest.testmod(importlib.import_module(name)).attempted for name in MODULES) > 5
