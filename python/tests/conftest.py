# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fixtures of the package's tests. They use the tools of a build folder (`--build`), and a cache of their
own."""

import importlib.util
import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python" / "src"))
HERE = pathlib.Path(__file__).resolve().parent
# Folders share the modules beside them, and some read what the tests of others define.
sys.path += [str(ROOT / "test"), str(HERE / "core"), str(HERE / "with_jax"), str(HERE / "with_torch")]

import slow_tests  # noqa: E402 - found by the path above

# Each framework has an environment of its own. Folders of its name would pass for it where it is not installed.
collect_ignore = [f"with_{name}" for name in ("jax", "torch") if importlib.util.find_spec(name) is None]


def pytest_addoption(parser):
    parser.addoption("--build", default=str(ROOT / "build"), help="build folder to test (build/)")
    parser.addoption("--wheel", type=pathlib.Path, help="a wheel of the package, to be tried in a bare Debian 12 (needs root and debootstrap)")
    slow_tests.add_options(parser)


def pytest_configure(config):
    build = pathlib.Path(config.getoption("--build")).resolve()
    # Before fp8 is imported: the build's tools, not the user's cache.
    os.environ["FP8_TOOLS"] = str(build)
    os.environ["FP8_CACHE_DIR"] = str(build / "test" / "python-cache")
    # JAX computes what results are compared with. XLA optimizes that code with --slow alone: that saves a sixth of the processor time.
    flags = os.environ.get("XLA_FLAGS", "")
    if not config.getoption("--slow") and "xla_backend_optimization_level" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --xla_backend_optimization_level=0".strip()
    slow_tests.add_marker(config)


def pytest_collection_modifyitems(config, items):
    slow_tests.select(config, items)


@pytest.fixture
def fresh_cache(tmp_path, monkeypatch):
    """An empty cache for one test; returns its folder."""
    import fp8

    monkeypatch.setattr(fp8.config, "cache_dir", tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def fresh_dynamo():
    """torch.compile without what earlier tests compiled."""
    import torch

    torch._dynamo.reset()
