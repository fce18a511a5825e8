# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options for slow tests, and the order of files: shared by the files conftest.py of all tests."""

import collections
import zlib

import pytest
from _pytest.junitxml import xml_key


def add_options(parser):
    parser.addoption("--slow", action="store_true", help="run the slow tests too")
    parser.addoption("--slow-sample", metavar="WORD", help="run an eighth of the slow tests, or what they say, others for another word")


def add_marker(config):
    config.pluginmanager.register(LeftOut(config))
    config.addinivalue_line("markers", "slow(one_of=8): takes more than a few seconds; runs with --slow; --slow-sample runs one of so many")


class LeftOut:
    """Says how many slow tests were left out: pytest-xdist says nothing of what its processes deselect."""

    def __init__(self, config):
        self.config = config
        self.count = 0

    def pytest_deselected(self, items):
        self.count += sum(item.get_closest_marker("slow") is not None for item in items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node, error):
        self.count = max(self.count, getattr(node, "workeroutput", {}).get("left_out", 0))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self):
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput["left_out"] = self.count
        elif xml := self.config.stash.get(xml_key, None):
            xml.add_global_property("left_out", self.count)

    def pytest_terminal_summary(self, terminalreporter):
        if self.count:
            terminalreporter.write_line(f"{self.count} slow tests left out; --slow runs them")


def select(config, items):
    """Leaves out slow tests that the options do not ask for, and puts files that take long first."""
    word = config.getoption("--slow-sample")

    def is_left_out(item):
        marker = item.get_closest_marker("slow")
        return marker and (not word or zlib.crc32(f"{word} {item.nodeid}".encode()) % marker.kwargs.get("one_of", 8))

    if not config.getoption("--slow"):
        left_out = [item for item in items if is_left_out(item)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    # Each core takes a file at a time: a long one at the end would leave the other cores idle. A slow test takes as long as
    # about twenty others.
    weights = collections.Counter()
    for item in items:
        weights[item.path] += 20 if item.get_closest_marker("slow") else 1
    items.sort(key=lambda item: -weights[item.path])
