# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tests of the package can ask for. They use the tools of a build folder (`--build`), and a cache of their own."""

import collections
import importlib.util
import os
import pathlib
import sys
import zlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python" / "src"))


# Each framework has an environment of its own.
collect_ignore_glob = [f"test_{name}_*.py" for name in ("jax", "torch") if importlib.util.find_spec(name) is None]


def pytest_addoption(parser):
    parser.addoption("--build", default=str(ROOT / "build"), help="build folder to test (build/)")
    parser.addoption("--wheel", type=pathlib.Path, help="a wheel of the package, to be tried in a bare Debian 12 (needs root and debootstrap)")
    parser.addoption("--slow", action="store_true", help="run the slow tests too")
    parser.addoption("--slow-sample", metavar="WORD", help="run a quarter of the slow tests, another one for another word")


def pytest_configure(config):
    build = pathlib.Path(config.getoption("--build")).resolve()
    # Before fp8 is imported: the build's tools, not the user's cache.
    os.environ["FP8_TOOLS"] = str(build)
    os.environ["FP8_CACHE_DIR"] = str(build / "test" / "python-cache")
    config.addinivalue_line("markers", "slow: takes more than a few seconds; runs with --slow")


def pytest_collection_modifyitems(config, items):
    word = config.getoption("--slow-sample")
    if not config.getoption("--slow"):
        chosen = lambda item: word and zlib.crc32(f"{word} {item.nodeid}".encode()) % 4 == 0  # noqa: E731
        slow = [item for item in items if item.get_closest_marker("slow") and not chosen(item)]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]
    # Files that take long come first, as in test/conftest.py.
    weights = collections.Counter()
    for item in items:
        weights[item.path] += 20 if item.get_closest_marker("slow") else 1
    items.sort(key=lambda item: -weights[item.path])


@pytest.fixture
def fresh_cache(tmp_path, monkeypatch):
    """An empty cache for one test; returns its folder."""
    import fp8

    monkeypatch.setattr(fp8.config, "cache_dir", tmp_path / "cache")
    return tmp_path / "cache"
