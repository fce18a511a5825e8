# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples in the docstrings of modules that need no framework."""

import doctest
import importlib
import pathlib

import fp8
import pytest

FOLDER = pathlib.Path(fp8.__file__).parent
MODULES = ["fp8", *sorted(f"fp8.{path.stem}" for path in FOLDER.glob("*.py") if path.stem != "__init__")]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(name)
    assert doctest.testmod(module).failed == 0


def test_there_are_examples():
    counts = [doctest.testmod(importlib.import_module(name)).attempted for name in MODULES]
    assert sum(counts) > 15
