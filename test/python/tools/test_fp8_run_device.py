# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs fp8-run on devices: the runtime's hand-written library for sm_89 (runtime/test/cuda/device_fixture.cpp) on the emulator,
compared with the same program for the CPU."""
import json
import os
import subprocess

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

W = np.array([1, -2, 3, -4, 5, -6], np.float32)
M = np.array([10, 20, 30, 40], np.int32)
XS = np.linspace(-1, 1, 18, dtype=np.float32).reshape(3, 6)


@pytest.fixture
def box(tmp_path, build_dir, bin_dir):
    class Box:
        def library(self, name):
            return str(build_dir / "lib" / f"libfp8rt_test_{name}.so")

        def run(self, *args, library="device_fixture", **environment):
            command = [bin_dir / "fp8-run", self.library(library), "--inputs=in", *args]
            return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, **environment})

        def ok(self, *args, **kwargs):
            done = self.run(*args, **kwargs)
            assert done.returncode == 0, done.stderr
            return done

        def fails(self, part, *args, **kwargs):
            before = sorted(os.listdir(tmp_path))
            done = self.run(*args, **kwargs)
            assert done.returncode == 1 and part in done.stderr, done.stderr
            assert sum(line.startswith("fp8-run: error: ") for line in done.stderr.splitlines()) == 1
            assert sorted(os.listdir(tmp_path)) == before

        def read(self, name):
            return (tmp_path / name).read_bytes()

    save_file({"w": W, "m": M, "xs": XS}, tmp_path / "in")
    return Box()


STREAM = ["--stream=x=xs", "--print=loss", "--with-carry"]


def test_outputs_and_states_are_those_of_the_cpu(box):
    """Saved on one device and continued on the other: all files have the same bytes."""
    both = {"device_fixture": "emulator", "cpu_fixture": "cpu"}
    for library, device in both.items():
        printed = box.ok("--steps=5", f"--outputs=o_{device}", f"--save-state=s_{device}", *STREAM, f"--device={device}", library=library)
        assert [line.split("\t")[0] for line in printed.stdout.splitlines()] == ["0", "1", "2", "3", "4"]
    assert box.read("o_emulator") == box.read("o_cpu") and box.read("s_emulator") == box.read("s_cpu")
    later = ["--steps=4", "--first-step=5", *STREAM]
    for library, device in both.items():
        other = "cpu" if device == "emulator" else "emulator"
        box.ok(*later, f"--state=s_{other}", f"--outputs=o2_{device}", f"--save-state=s2_{device}", f"--device={device}", library=library)
    assert box.read("o2_emulator") == box.read("o2_cpu") and box.read("s2_emulator") == box.read("s2_cpu")


def test_steps_without_graphs_and_one_by_one_give_the_same(box, tmp_path):
    for name, environment in {"graph": {}, "eager": {"FP8RT_GRAPH": "0"}, "sync": {"FP8RT_SYNC": "1"}}.items():
        box.ok("--steps=4", f"--outputs={name}", *STREAM, "--save-state=s", "--device=emulator", **environment)
    assert box.read("graph") == box.read("eager") == box.read("sync")
    assert load_file(tmp_path / "graph")["1"].tolist() == [14, 24, 34, 44]


def test_a_pair(box, tmp_path):
    save_file({"x": np.array([1, 2, 3], np.float32), "factor": np.array(2, np.float32), "backward.g": np.array(10, np.float32)}, tmp_path / "in")
    box.ok("--entry=forward,backward", "--steps=3", "--outputs=out", "--device=emulator")
    assert load_file(tmp_path / "out")["backward.0"].tolist() == [20, 40, 60]


def test_profile(box, tmp_path):
    box.ok("--steps=4", *STREAM, "--save-state=s", "--device=emulator", "--profile=p")
    profile = json.loads((tmp_path / "p").read_text())
    assert "sm_89" in profile["device"] and profile["limits"] is None and profile["measured_steps"] == 3
    kernels = {kernel["name"]: kernel for kernel in profile["kernels"]}
    assert set(kernels) == {"scale_add", "sum", "outside kernels"}
    assert kernels["sum"]["sites"] == ["fc", "head"] and kernels["sum"]["calls"] == 1 and kernels["sum"]["ms"] > 0
    assert kernels["scale_add"]["bytes_read"] == 52 and kernels["scale_add"]["operations"] == 12
    assert kernels["sum"]["share_of_limit"] is None
    table = box.ok("--steps=2", "--zero-missing", "--device=emulator", "--profile").stderr
    assert "kernels timed by events" in table and "scale_add  [fc]" in table


def test_libraries_and_devices_must_fit(box):
    box.fails("kernels are for sm_89: run it on a GPU (fp8-run --device=cuda)", "--zero-missing", "--outputs=o")
    box.fails("the library was compiled for the CPU: run it with --device=cpu", "--device=emulator", "--outputs=o", library="cpu_fixture")
    box.fails("no CUDA driver was found (none.so: ", "--device=cuda", "--outputs=o", FP8RT_CUDA_DRIVER="none.so")
    box.fails("which none of the emulator's devices runs", "--device=emulator", library="unknown_chip_fixture")


def test_a_gpu_of_another_chip(box, build_dir):
    """The emulator in place of a GPU's driver."""
    driver = {"FP8RT_CUDA_DRIVER": str(build_dir / "lib" / "libfp8emu.so"), "FP8EMU_CHIP": "sm_90a"}
    box.ok("--zero-missing", "--device=cuda", **driver)  # sm_89's PTX runs on later chips
    box.fails("there is no GPU 1: this machine has 1, counted from 0", "--zero-missing", "--device=cuda:1", **driver)
    box.fails("kernels are for sm_130a", "--device=cuda", library="unknown_chip_fixture", **driver)
    box.fails("compile the program with --target=sm_90a", "--device=cuda", library="unknown_chip_fixture", **driver)


def test_a_failing_kernel_is_named_and_no_file_is_written(box, tmp_path):
    save_file({"x": W}, tmp_path / "in")
    box.fails("step 0: entry 'faulting' failed: kernel 'poke' of head failed: ", "--entry=faulting", "--outputs=o", "--save-state=s", "--device=emulator")


def test_the_emulator_counts_what_fp8_run_launches(box, tmp_path):
    """FP8EMU_PROFILE is written when the process ends, after the runtime is gone."""
    box.ok("--steps=3", *STREAM, "--save-state=s", "--device=emulator", FP8EMU_PROFILE=str(tmp_path / "counts"))
    launches = {kernel["kernel"]: kernel["launches"] for kernel in json.loads((tmp_path / "counts").read_text())["kernels"]}
    assert launches == {"scale_add": 3, "add_one": 3, "sum": 3, "halve": 3}
