# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Microseconds of collectives among ranks of this machine, beside a bare MPI_Allreduce: the maximum of 10,000 amaxes,
and the sum of 64 MiB of f32 gradients. Each number is the least of all rounds."""

import argparse
import os
import pathlib
import shutil
import subprocess

from failure import Failure


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ranks", type=int, default=4, metavar="N", help="number of ranks (default: 4)")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="rounds; the least time counts (default: 3)")
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/bin"), help=argparse.SUPPRESS)
    parser.add_argument("--host", default="", help=argparse.SUPPRESS)


def run(command: list[str]) -> list[float]:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    times = done.stdout.split()
    if done.returncode or len(times) != 2:
        raise Failure(f"{' '.join(command)} failed: {done.stderr.strip() or done.stdout.strip()}")
    return [float(time) for time in times]


def measure(options: argparse.Namespace, _examples: pathlib.Path) -> list[str]:
    if not 1 <= options.ranks <= 64 or options.rounds < 1:
        raise Failure("--ranks is from 1 to 64, --rounds at least 1")
    program = str(options.bin / "fp8-bench-collectives")
    variants = {"shared memory (--comm=local)": [program, "local", str(options.ranks)]}
    mpirun = shutil.which("mpirun")
    if mpirun:
        launch = [mpirun, "--oversubscribe", "-n", str(options.ranks)]
        launch[1:1] = [] if os.geteuid() else ["--allow-run-as-root"]
        variants["Open MPI (--comm=mpi)"] = [*launch, program, "mpi"]
        variants["bare MPI_Allreduce"] = [*launch, program, "bare"]
    least = {name: [float("inf")] * 2 for name in variants}
    for _ in range(options.rounds):
        for name, command in variants.items():
            least[name] = [min(pair) for pair in zip(least[name], run(command), strict=True)]
    bare = least.get("bare MPI_Allreduce")
    lines = [f"{options.ranks} ranks, {len(os.sched_getaffinity(0))} cores; microseconds" + (", and times the bare one's" if bare else ""), ""]
    lines.append(f"{'':<30}{'10,000 amaxes':>20}{'64 MiB of gradients':>24}")
    for name, times in least.items():
        cells = [f"{time:.1f}" + (f" ({time / bare[i]:.2f}x)" if bare else "") for i, time in enumerate(times)]
        lines.append(f"{name:<30}{cells[0]:>20}{cells[1]:>24}")
    return lines + ([] if bare else ["Open MPI is not installed: nothing to compare with"])
