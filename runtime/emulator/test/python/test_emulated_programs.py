# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Whole programs that know libcuda.so.1 only: a C program compiled against cuda.h, and Python
# packages that make PTX themselves. Each ends with the line "ok".

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import sysconfig

import pytest

from programs import LIBRARIES, library_path

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
CUDA_INCLUDES = [*pathlib.Path(sysconfig.get_path("purelib")).glob("nvidia/*/include"), pathlib.Path("/usr/local/cuda/include")]


@pytest.fixture(params=LIBRARIES)
def run(request, tmp_path):
    """run(command, **variables): the program, on the emulator or on a GPU."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    if request.param == "emulator":
        library = pathlib.Path(library_path("emulator", request.config)).resolve()
        if not library.exists():
            pytest.skip("%s is not built" % library)
        # As LD_LIBRARY_PATH=build/lib/fp8emu, wherever the library lies.
        (tmp_path / "libcuda.so.1").symlink_to(library)
        environment["LD_LIBRARY_PATH"] = str(tmp_path)

    def run(command, **variables):
        done = subprocess.run([*map(str, command)], env={**environment, **variables}, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0 and done.stdout.endswith("ok\n"), done.stdout + done.stderr
        return done

    return run


@pytest.mark.parametrize("options", [[], ["-DCUDA_API_PER_THREAD_DEFAULT_STREAM"]], ids=["plain", "per_thread_stream"])
def test_program_in_c(run, options, tmp_path):
    include = next((folder for folder in CUDA_INCLUDES if (folder / "cuda.h").exists()), None)
    if include is None:
        pytest.skip("there is no cuda.h (PyPI: nvidia-cuda-runtime)")
    program = tmp_path / "saxpy"
    command = ["cc", "-Wall", "-Wextra", "-Werror", *options, "-I", include, PROGRAMS / "saxpy.c", "-o", program, "-ldl"]
    subprocess.run(command, check=True)
    assert run([program]).stderr == ""


def test_tinygrad_trains(run):
    pytest.importorskip("tinygrad")
    assert "fp8emu" not in run([sys.executable, PROGRAMS / "tinygrad_training.py"], DEV="CUDA:PTX").stderr


def test_numba_compiles_and_links(run):
    if not importlib.util.find_spec("numba_cuda"):
        pytest.skip("numba-cuda is not installed")
    assert "fp8emu" not in run([sys.executable, "-W", "ignore", PROGRAMS / "numba_kernels.py"]).stderr


@pytest.mark.parametrize("run", ["emulator"], indirect=True)
def test_profile_is_written_when_the_process_ends(run, tmp_path):
    profile = tmp_path / "profile.json"
    run([sys.executable, PROGRAMS / "launches.py"], FP8EMU_PROFILE=str(profile))
    kernel, = json.loads(profile.read_text())["kernels"]
    assert (kernel["kernel"], kernel["launches"]) == ("step", 2)
    # Eight instructions, eight threads, two launches.
    assert kernel["total"]["warp_instructions"] == 16 and kernel["total"]["thread_instructions"] == 128
    assert {one["instruction"] for one in kernel["instructions"]} >= {"ld.global.u32", "mad.lo.u32", "st.global.u32"}
