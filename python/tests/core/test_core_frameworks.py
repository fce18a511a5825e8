# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8.jax and fp8.torch with JAX and PyTorch of other versions, or without them."""

import os
import pathlib
import subprocess
import sys
import warnings

import fp8
import pytest
from fp8 import _frameworks

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(pathlib.Path(fp8.__file__).parent.parent)}
WITHOUT = """
import sys
sys.modules["%s"] = None
try:
    %s
except ImportError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize("statement", ["import fp8.{}", "from fp8 import {}", "import fp8; fp8.{}"])
@pytest.mark.parametrize("framework", ["jax", "torch"])
def test_without_the_framework_an_import_says_what_to_install(framework, statement):
    code = WITHOUT % (framework, statement.format(framework).replace("; ", "\n    "))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT)
    assert done.stderr == ""
    assert done.stdout == f"ImportError fp8.{framework} needs {framework}: {_frameworks.INSTALL[framework]}\n"


@pytest.mark.parametrize(
    ("framework", "version", "is_tested"),
    [("jax", "0.10.1", False), ("jax", "0.10.2", True), ("jax", "0.10.3.dev1", True), ("jax", "0.11.0", False),
     ("torch", "2.14.1", False), ("torch", "2.15.0+cpu", True), ("torch", "2.15.1", True), ("torch", "2.16.0a0", False)],
)  # fmt: skip
def test_versions_that_were_not_tested_are_warned_of(framework, version, is_tested):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _frameworks.warn_if_untested(framework, version)
    assert [w.category for w in caught] == [] if is_tested else [fp8.Warning]
    assert is_tested or (version in str(caught[0].message) and caught[0].filename == __file__)
