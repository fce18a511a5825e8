# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# `compile(source, arch)`: a function that runs on the emulator. Its tensor cores add in f32 in the order of K, so that sums are
# compared bit for bit. The library chooses the order when it is loaded: these tests load a copy of their own. With
# FP8EMU_TEST_CUDA=1 a function runs on the GPU too, and must give the bits of an emulator whose tensor cores add as hardware does.

import os
import pathlib
import shutil
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "runtime/emulator/test/python"))
import compiled  # noqa: E402

import cuda_driver  # noqa: E402
import programs  # noqa: E402
from harness import SEED  # noqa: E402


@pytest.fixture(scope="session")
def kernel_compiler(bin_dir):
    return compiled.Compiler(bin_dir / "fp8-opt")


@pytest.fixture(scope="session")
def emulator(build_dir, tmp_path_factory):
    path = build_dir / "lib/libfp8emu.so"
    if not path.exists():
        pytest.skip("%s is not built" % path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "FP8EMU_SUMS", "korder")
        # Warps run in another order for another seed.
        patch.setitem(os.environ, "FP8EMU_SEED", str(SEED))
        return cuda_driver.Driver(shutil.copy(path, tmp_path_factory.mktemp("korder")))


@pytest.fixture(scope="session")
def gpu(build_dir):
    """A GPU, and an emulator whose tensor cores add as the GPU's do: the driver of each. None without FP8EMU_TEST_CUDA=1."""
    if "cuda" not in programs.LIBRARIES:
        return None
    return cuda_driver.Driver(programs.library_path("cuda", None)), cuda_driver.Driver(build_dir / "lib/libfp8emu.so")


@pytest.fixture
def compile(kernel_compiler, emulator, gpu):
    def function(source, arch):
        made = compiled.Function(kernel_compiler, emulator, source, arch)
        return compiled.AlsoOnGPU(made, *gpu) if gpu and gpu[0].device_for(arch) is not None else made

    return function
