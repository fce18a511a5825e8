# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8-run --comm=nccl on the emulator, with the stand-in for NCCL of runtime/test/collectives/standin, and --comm=tcp. A step of
the hand-written library sums x times a factor over the ranks; on rank r the factor is 10^r."""

import os
import shutil
import signal
import socket
import subprocess
import time

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

X = np.array([1, 2, 3], np.float32)


def free_address():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture
def box(tmp_path, bin_dir, build_dir):
    """A folder with inputs for four ranks, and fp8-run in it."""

    class Box:
        environment = {**os.environ, "FP8RT_NCCL": str(build_dir / "lib" / "libfp8rt_test_standin_nccl.so")}
        command = [
            bin_dir / "fp8-run",
            build_dir / "lib" / "libfp8rt_test_device_fixture.so",
            "--entry=ranks",
            "--inputs=in{rank}",
            "--device=emulator",
            "--comm=nccl",
        ]

        def start(self, *args, launcher=(), **environment):
            return subprocess.Popen(
                [*launcher, *self.command, *args],
                cwd=tmp_path,
                env={**self.environment, **environment},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )

        def run(self, *args, **kwargs):
            """Returns the exit code and the lines of standard error."""
            process = self.start(*args, **kwargs)
            _, errors = process.communicate(timeout=60)
            return process.returncode, errors.splitlines()

        def sums(self, name="out"):
            return load_file(tmp_path / name)["0"]

    for rank in range(4):
        save_file({"x": X, "factor": np.array(10.0**rank, np.float32)}, tmp_path / f"in{rank}")
    return Box()


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_ranks_of_this_machine(box, ranks):
    assert box.run(f"--ranks={ranks}", "--steps=4", "--outputs=out{rank}") == (0, [])
    for rank in range(ranks):
        np.testing.assert_array_equal(box.sums(f"out{rank}"), X * sum(10**r for r in range(ranks)))


def test_the_same_bits_as_through_host_memory(box, tmp_path):
    rng = np.random.default_rng(7)
    for rank in range(4):
        x = (rng.standard_normal(3) * 10.0 ** rng.integers(-6, 6, 3)).astype(np.float32)
        save_file({"x": x, "factor": np.array(rng.standard_normal(), np.float32)}, tmp_path / f"in{rank}")
    assert box.run("--ranks=4", "--steps=3", "--outputs=nccl") == (0, [])
    assert box.run("--ranks=4", "--steps=3", "--outputs=local", "--comm=local") == (0, [])
    assert (tmp_path / "nccl").read_bytes() == (tmp_path / "local").read_bytes()


def test_ranks_that_mpirun_started(box):
    if not shutil.which("mpirun"):
        pytest.skip("Open MPI is not installed")
    launcher = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"]
    assert box.run("--steps=4", "--outputs=out", launcher=launcher) == (0, [])
    np.testing.assert_array_equal(box.sums(), X * 11)


@pytest.mark.parametrize("comm", ["nccl", "tcp"])
def test_ranks_that_meet(box, comm):
    meeting = [f"--comm={comm}", f"--rendezvous={free_address()}", "--steps=3", "--outputs=out{rank}"]
    processes = [box.start(*meeting, FP8RT_RANK=str(rank), FP8RT_SIZE="3") for rank in (2, 0, 1)]
    assert [(p.communicate(timeout=60)[1], p.returncode) for p in processes] == [("", 0)] * 3
    for rank in range(3):
        np.testing.assert_array_equal(box.sums(f"out{rank}"), X * 111)


def test_a_rank_that_does_not_come(box):
    address = free_address()
    code, errors = box.run(f"--rendezvous={address}", "--deadline=0.5", FP8RT_RANK="0", FP8RT_SIZE="2")
    assert (code, errors) == (1, [f"fp8-run: error: rank 1 did not come to {address} within 0.5 s"])


def test_a_killed_rank(box):
    meeting = [f"--rendezvous={free_address()}", "--steps=100000000"]
    processes = [box.start(*meeting, FP8RT_RANK=str(rank), FP8RT_SIZE="3") for rank in range(3)]
    time.sleep(2)
    processes[1].send_signal(signal.SIGKILL)
    for rank in (0, 2):
        _, errors = processes[rank].communicate(timeout=30)
        assert processes[rank].returncode == 1
        assert errors.startswith(f"fp8-run: error: rank {rank}: step ")
        assert "rank 1 did not arrive at all_reduce sum of 3 f32 'sum': the process is gone" in errors, errors
    processes[1].communicate()


def test_a_missing_nccl(box):
    code, errors = box.run("--ranks=2", FP8RT_NCCL="/no/such/library.so")
    assert code == 1
    assert any("NCCL was not found (/no/such/library.so" in line and "name its library with FP8RT_NCCL" in line for line in errors)
    code, errors = box.run("--ranks=1", FP8RT_NCCL="libc.so.6")
    assert code == 1 and "libc.so.6 has no ncclGetVersion: NCCL 2.18 or newer is needed" in errors[0]


def test_a_call_that_nccl_refuses(box):
    code, errors = box.run("--ranks=2", "--steps=4", FP8RT_STANDIN_NCCL="fail ncclAllGather 1 1")
    assert code == 1 and len(errors) == 2
    assert any(line.startswith("fp8-run: error: rank 1: step 0: entry 'ranks' failed: ncclAllGather: ") for line in errors), errors
    assert any("rank 0: step 0: entry 'ranks' failed: rank 1 failed: entry 'ranks' failed: ncclAllGather: " in line for line in errors)


@pytest.mark.parametrize(
    "args, message",
    [
        (["--device=cpu"], "--comm=nccl moves memory of GPUs: it needs --device=cuda or emulator"),
        (["--comm=tcp"], "--comm=tcp needs --rendezvous=HOST:PORT"),
        (["--comm=local", "--rendezvous=a:1"], "--rendezvous needs --comm=tcp or nccl"),
        (["--ranks=2", "--rendezvous=a:1"], "with --rendezvous, FP8RT_SIZE says how many ranks there are"),
    ],
)
def test_wrong_command_lines(box, args, message):
    code, (error,) = box.run(*args)
    assert code == 2 and message in error


def test_a_rendezvous_needs_a_rank(box):
    code, (error,) = box.run("--rendezvous=127.0.0.1:4711", FP8RT_RANK="0")
    assert code == 1 and "FP8RT_RANK and FP8RT_SIZE in the environment must say which rank this is" in error
    code, (error,) = box.run("--rendezvous=4711", FP8RT_RANK="0", FP8RT_SIZE="1")
    assert code == 1 and "'4711': expected HOST:PORT" in error
