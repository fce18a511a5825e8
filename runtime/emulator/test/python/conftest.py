# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The library that the programs run on: `kernels` of a test marked with programs.on(). The emulator is
# build/lib/libfp8emu.so or what FP8EMU_LIBRARY names; with FP8EMU_TEST_CUDA=1 everything runs on libcuda.so.1
# too.

import pathlib
import sys

import pytest

import cuda_driver
from programs import LIBRARIES, Kernels, library_path

ROOT = pathlib.Path(__file__).resolve().parents[4]
sys.path.append(str(ROOT / "test"))
import slow_tests  # noqa: E402 - found by the path above

DRIVERS, RESULTS = {}, {}


def pytest_addoption(parser):
    parser.addoption("--build", default=str(ROOT / "build"), help="build folder to test (build/)")
    slow_tests.add_options(parser)


def pytest_configure(config):
    slow_tests.add_marker(config)


def pytest_collection_modifyitems(config, items):
    slow_tests.select(config, items)


def driver(name, config):
    if name not in DRIVERS:
        path = library_path(name, config)
        if isinstance(path, pathlib.Path) and not path.exists():
            pytest.skip("%s is not built" % path)
        DRIVERS[name] = cuda_driver.Driver(path)
    return DRIVERS[name]


def like_the_gpu(loaded, arch, config, device):
    """The device with the capability of the GPU that runs `arch`, so that both have one chip's arithmetic; else `device`."""
    gpu = driver("cuda", config)
    chosen = gpu.device_for(arch)
    return device if chosen is None else loaded.capabilities.index(gpu.capabilities[chosen])


@pytest.fixture
def kernels(request):
    name, file = request.param
    loaded = driver(name, request.config)
    arch = file.suffixes[-2].lstrip(".")
    device = loaded.device_for(arch)
    if device is None:
        pytest.skip("%s has no device for %s" % (name, arch))
    if "cuda" in LIBRARIES:
        device = like_the_gpu(loaded, arch, request.config, device)
    test = request.node.nodeid.replace(name + "-", "")
    program = Kernels(loaded, device, file, RESULTS.setdefault(test, {}))
    yield program
    program.close()
