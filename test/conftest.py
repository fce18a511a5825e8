# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# What every Python test can ask for: where the tools and libraries of the build are.
# `pytest --build DIR test` tests another build than build/; slow tests need --slow.

import collections
import os
import pathlib
import subprocess
import zlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent


def pytest_addoption(parser):
    parser.addoption("--build", default=str(ROOT / "build"), help="build folder to test (build/)")
    parser.addoption("--slow", action="store_true", help="run the slow tests too")
    parser.addoption("--slow-sample", metavar="WORD", help="run a quarter of the slow tests, or what they say, others for another word")


def pytest_configure(config):
    # Not the user's cache.
    os.environ["FP8_CACHE_DIR"] = str(pathlib.Path(config.getoption("--build")).resolve() / "test" / "object-cache")
    config.addinivalue_line("markers", "slow(one_of=4): takes more than a few seconds; runs with --slow; "
                                       "--slow-sample runs one of so many")


def pytest_collection_modifyitems(config, items):
    word = config.getoption("--slow-sample")

    def is_left_out(item):
        marker = item.get_closest_marker("slow")
        return marker and (not word or zlib.crc32(f"{word} {item.nodeid}".encode()) % marker.kwargs.get("one_of", 4))

    if not config.getoption("--slow"):
        slow = [item for item in items if is_left_out(item)]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]
    # Files that take long come first: where each core takes a file at a time, a long one at the end has one core alone.
    # A slow test takes as long as about twenty others.
    weights = collections.Counter()
    for item in items:
        weights[item.path] += 20 if item.get_closest_marker("slow") else 1
    items.sort(key=lambda item: -weights[item.path])


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
