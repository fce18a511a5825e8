# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The PTX of each test and its devices: every file of a program runs on the emulator and, where asked for and
# to be had, on a GPU through libcuda.so.1; results of both are compared bit for bit.

import os
import pathlib
import subprocess
import sys

import numpy
import pytest

import cuda_driver

HERE = pathlib.Path(__file__).resolve().parent
ALONE = "FP8EMU_TEST_ALONE"
LIBRARIES = ["emulator"] + (["cuda"] if os.environ.get("FP8EMU_TEST_CUDA") else [])


def library_path(name, config):
    """The file of one of LIBRARIES."""
    if name == "cuda":
        return "libcuda.so.1"
    return os.environ.get("FP8EMU_LIBRARY") or pathlib.Path(config.getoption("--build")) / "lib/libfp8emu.so"


def run_alone():
    """A kernel that fails leaves a GPU's process without a usable context: the test runs again in a process of its own."""
    node = os.environ["PYTEST_CURRENT_TEST"].rsplit(" ", 1)[0]
    file, name = node.split("::", 1)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "%s::%s" % (HERE / pathlib.Path(file).name, name)]
    done = subprocess.run(command, env={**os.environ, ALONE: "1"}, capture_output=True, text=True)
    if done.returncode:
        pytest.fail(done.stdout)
    pytest.skip("passed in a process of its own")


def difference(first, second):
    """Where two arrays differ, and by which bits."""
    a, b = (numpy.ascontiguousarray(values).reshape(-1) for values in (first, second))
    a, b = (values.view("u%d" % values.dtype.itemsize) for values in (a, b))
    where = numpy.flatnonzero(a != b)
    some = ", ".join("[%d] %#x and %#x" % (i, a[i], b[i]) for i in where[:8])
    return "%d of %d elements, %s" % (len(where), a.size, some)


def on(program, folder="cuda"):
    """Parametrises a test over the PTX files of the program and the libraries: it gets `kernels`."""
    files = sorted((HERE / folder / "ptx").glob(program + ".sm_*.ptx"))
    assert files, "no PTX of " + program
    cases = [(library, file) for file in files for library in LIBRARIES]
    names = ["%s-%s" % (library, file.suffixes[-2].lstrip(".")) for library, file in cases]
    return pytest.mark.parametrize("kernels", cases, indirect=True, ids=names)


class Kernels:
    """A loaded program with the memory that a test takes for it."""

    def __init__(self, driver, device, file, history):
        self.driver, self.device, self.file, self.history = driver, device, file, history
        self.arch = file.suffixes[-2].lstrip(".")
        self.buffers, self.reads, self.exact = [], 0, True
        self.is_gpu = driver.path == library_path("cuda", None)
        driver.context(device)
        self.module = cuda_driver.Module(driver, file)

    def upload(self, array):
        array = numpy.asarray(array)
        self.buffers.append(cuda_driver.Buffer(self.driver, array.shape, array.dtype))
        return self.buffers[-1].write(array)

    def zeros(self, shape, dtype):
        return self.upload(numpy.zeros(shape, dtype))

    def empty(self, shape, dtype):
        """For a kernel to fill: what it leaves out stays 0xcd."""
        size = int(numpy.prod(shape)) * numpy.dtype(dtype).itemsize
        return self.upload(numpy.full(size, 0xCD, numpy.uint8).view(dtype).reshape(shape))

    def tensor_map(self, *arguments, **options):
        return cuda_driver.TensorMap(self.driver, *arguments, **options)

    def launch(self, *arguments, **options):
        self.module.launch(*arguments, **options)

    def __call__(self, *arguments, **options):
        """Launches and waits."""
        self.launch(*arguments, **options)
        self.wait()

    def wait(self):
        cuda_driver.synchronize(self.driver)

    def read(self, buffer):
        """The values; must have the bits that another library's run of this test read here."""
        values = buffer.read()
        earlier = self.history.setdefault(self.reads, values)
        self.reads += 1
        if self.exact and earlier.tobytes() != values.tobytes():
            pytest.fail("two libraries disagree: " + difference(earlier, values))
        return values

    def fails(self, *arguments, **options):
        """Launches what must fail; returns the error. The context is new afterwards."""
        if self.is_gpu and not os.environ.get(ALONE):
            run_alone()
        with pytest.raises(cuda_driver.DriverError) as caught:
            self(*arguments, **options)
        self.driver.reset(self.device)
        self.buffers, self.module = [], None
        return caught.value

    def close(self):
        for buffer in self.buffers:
            buffer.free()
        if self.module:
            self.module.unload()
