# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The fixtures that every Python test can ask for: the places of the build's tools and libraries.
# `pytest --build DIR test` tests another build than build/; slow tests need --slow.

import os
import pathlib
import subprocess
import sys

import pytest
import slow_tests

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Folders share the modules beside them, and some run what the tests of others define.
sys.path += [str(ROOT / "test/python"), *sorted({str(path.parent) for path in ROOT.glob("test/python/*/**/test_*.py")})]


def pytest_addoption(parser):
    parser.addoption("--build", default=str(ROOT / "build"), help="build folder to test (build/)")
    slow_tests.add_options(parser)


def pytest_configure(config):
    # Not the user's cache.
    os.environ["FP8_CACHE_DIR"] = str(pathlib.Path(config.getoption("--build")).resolve() / "test" / "object-cache")
    slow_tests.add_marker(config)


def pytest_collection_modifyitems(config, items):
    slow_tests.select(config, items)


@pytest.fixture(scope="session")
def source_dir():
    return ROOT


@pytest.fixture(scope="session")
def build_dir(request):
    return pathlib.Path(request.config.getoption("--build")).resolve()


@pytest.fixture(scope="session")
def bin_dir(build_dir):
    return build_dir / "bin"


@pytest.fixture(scope="session")
def run(bin_dir):
    """run("fp8-opt", "--flag", …, stdin=text): the finished process, text output captured."""

    def call(tool, *arguments, stdin=None, **options):
        path = bin_dir / tool
        command = [str(path) if path.exists() else tool, *map(str, arguments)]
        return subprocess.run(command, input=stdin, text=True, capture_output=True, **options)

    return call
