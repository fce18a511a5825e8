# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Programs of CUDA C++ that nvcc compiles with -cudart shared, run with `fp8emu run`. Each checks its values
# and prints "ok"; with the argument "fault" it makes one mistake, which must be found with its line. Python's
# packages that use the runtime library run where they are installed.

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from programs import library_path

SOURCES = pathlib.Path(__file__).resolve().parent / "programs"
NVCC = shutil.which("nvcc", path=os.environ.get("PATH", "") + ":/usr/local/cuda/bin")

#: The files of a program, its architecture, further options.
PROGRAMS = {
    "memory": (["memory.cu"], 89, []),
    "memory_per_thread_stream": (["memory.cu"], 89, ["--default-stream=per-thread"]),
    "kernels": (["kernels.cu"], 89, []),
    "streams": (["streams.cu"], 89, []),
    "groups": (["groups.cu"], 90, []),
    "linked": (["linked.cu", "linked_device.cu"], 89, ["-rdc=true"]),
    "cub_device": (["cub_device.cu"], 89, []),
    "thrust_vectors": (["thrust_vectors.cu"], 89, []),
}
#: A word of the finding; others are accesses beyond memory.
FINDINGS = {"kernels": "data race", "streams": "uninitialised", "groups": "data race"}
#: Programs that take some 20 seconds to compile.
SLOW = {"cub_device", "thrust_vectors"}
CASES = [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in PROGRAMS]


@pytest.fixture(scope="module")
def tool(request):
    build = pathlib.Path(request.config.getoption("--build"))
    if library_path("emulator", request.config) != build / "lib/libfp8emu.so" or not (build / "bin/fp8emu").exists():
        pytest.skip("the command is not built beside the library")
    return build.resolve() / "bin/fp8emu"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """compiled(name): the program, compiled once."""
    if not NVCC:
        pytest.skip("there is no nvcc")
    folder, done = tmp_path_factory.mktemp("cudart"), {}

    def compiled(name):
        if name not in done:
            files, arch, options = PROGRAMS[name]
            code = "-gencode=arch=compute_%d,code=compute_%d" % (arch, arch)
            command = [NVCC, "-std=c++17", "-cudart=shared", "-lineinfo", code, *options, *(SOURCES / file for file in files)]
            subprocess.run([*command, "-o", folder / name], check=True, timeout=300)
            done[name] = folder / name
        return done[name]

    return compiled


def run(tool, program, *arguments, chip="sm_90a"):
    return subprocess.run([tool, "run", "--chip=" + chip, program, *arguments], capture_output=True, text=True, timeout=300)


def findings(done):
    """The lines about faults: not those about launches that a program wants to be refused, and the summary."""
    lines = [line for line in done.stderr.splitlines() if line.startswith("fp8emu: ")]
    return [line for line in lines if not re.search(r"refused:|is not supported:|kernels?, \d+ launch", line)]


def line_of_fault(name):
    for file in PROGRAMS[name][0]:
        for number, line in enumerate((SOURCES / file).read_text().splitlines(), 1):
            if "// fault:" in line:
                return "%s:%d)" % (file, number)
    raise AssertionError("no mistake in " + name)


@pytest.mark.parametrize("name", CASES)
def test_values(tool, compiled, name):
    done = run(tool, compiled(name))
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stdout + done.stderr
    assert not findings(done)


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_is_found_with_its_line(tool, compiled, name):
    done = run(tool, compiled(name), "fault")
    assert done.returncode == 1, done.stdout + done.stderr
    found, = findings(done)
    assert FINDINGS.get(name, "out-of-bounds") in found and line_of_fault(name) in found


def test_code_for_other_chips_is_refused(tool, compiled):
    done = run(tool, compiled("groups"), chip="sm_89")
    assert done.returncode == 1 and "the fat binary has PTX for sm_90, which the device does not run" in done.stderr
    assert "cudaErrorNoKernelImageForDevice" in done.stdout


def test_another_runtime_is_told_what_to_do(tool, tmp_path):
    """A program with NVIDIA's runtime linked into it."""
    if not NVCC:
        pytest.skip("there is no nvcc")
    program, source = tmp_path / "static", tmp_path / "static.cu"
    source.write_text("int main() { int *x; return cudaMalloc(&x, 4) != cudaSuccess; }\n")
    subprocess.run([NVCC, "-cudart=static", source, "-o", program], check=True, timeout=300)
    done = run(tool, program)
    assert done.returncode == 1 and done.stderr.count("nvcc -cudart shared") == 1


@pytest.mark.parametrize("chip", ["sm_89", "sm_90a"])
@pytest.mark.parametrize("program, packages", [("torch_tensors.py", ["torch"]), ("tilelang_product.py", ["torch", "tilelang"])])
def test_python_packages(tool, tmp_path, program, packages, chip):
    """Packages that find NVIDIA's runtime in folders of their own, unless the emulator's is there before."""
    missing = [package for package in packages if not importlib.util.find_spec(package)]
    if missing:
        pytest.skip("not installed: " + ", ".join(missing))
    command = [tool, "run", "--preload", "--chip=" + chip, sys.executable, SOURCES.parents[1] / "programs" / program]
    environment = {**os.environ, "HOME": str(tmp_path), "PATH": os.environ.get("PATH", "") + ":/usr/local/cuda/bin"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    if done.returncode == 77:
        pytest.skip("this PyTorch has no CUDA")
    assert done.returncode == 0 and done.stdout.endswith("ok\n") and not findings(done), done.stdout + done.stderr


def test_libraries_are_there_before_others(tool):
    """Of a program that knows neither of them."""
    done = subprocess.run([tool, "run", "--preload", "cat", "/proc/self/maps"], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0 and all(name in done.stdout for name in ("libfp8emu.so", "libcudart.so.12", "libcudart.so.13"))
