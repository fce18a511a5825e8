# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples in the docstrings of fp8.torch."""

import doctest
import importlib
import pathlib

import fp8.torch
import pytest

FOLDER = pathlib.Path(fp8.torch.__file__).parent
MODULES = sorted(".".join(("fp8", "torch", *path.relative_to(FOLDER).with_suffix("").parts)) for path in FOLDER.rglob("*.py") if path.stem != "__init__")


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_examples():
    assert sum(doctest.testmod(importlib.import_module(name)).attempted for name in MODULES) > 5
