# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# FP8EMU_FAULTS=report, and the command that runs programs with the emulator.

import os
import pathlib
import re
import subprocess
import sys

import pytest

from programs import library_path

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"


@pytest.fixture
def tool(request):
    build = pathlib.Path(request.config.getoption("--build"))
    if library_path("emulator", request.config) != build / "lib/libfp8emu.so" or not (build / "bin/fp8emu").exists():
        pytest.skip("the command is not built beside the library")
    return build.resolve() / "bin/fp8emu"


@pytest.fixture
def run(request, tmp_path):
    """run(program, **variables): the program's process when it has ended."""
    library = pathlib.Path(library_path("emulator", request.config)).resolve()
    if not library.exists():
        pytest.skip("%s is not built" % library)
    (tmp_path / "libcuda.so.1").symlink_to(library)

    def run(program, **variables):
        environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path), "FP8EMU_CHIP": "sm_90a", **variables}
        return subprocess.run([sys.executable, PROGRAMS / program], env=environment, capture_output=True, text=True, timeout=100)

    return run


def test_a_fault_stops_a_program(run):
    done = run("findings.py")
    assert done.returncode == 1 and "LAUNCH_FAILED" in done.stderr and len(re.findall("^fp8emu: ", done.stderr, re.MULTILINE)) == 1


def test_faults_are_only_reported(run, tmp_path):
    report = tmp_path / "report.txt"
    done = run("findings.py", FP8EMU_FAULTS="report", FP8EMU_REPORT=str(report))
    assert done.stdout == "ok\n" and done.returncode == 1
    # Each once, however often it happens: a race at the access that comes later. The launch that cannot go on says so.
    lines = done.stderr.splitlines()
    *races, read, outside = lines
    assert 1 <= len(races) <= 2 and all("data race" in race and " in races," in race for race in races)
    assert "read of uninitialised memory" in read and " in reads," in read
    assert "out-of-bounds" in outside and outside.endswith("; the launch ends here, and the process goes on")
    assert ["fp8emu: " + line for line in report.read_text().splitlines()] == lines


def test_a_program_without_findings_ends_well(run):
    done = run("launches.py", FP8EMU_FAULTS="report")
    assert (done.returncode, done.stdout, done.stderr) == (0, "ok\n", "")


def test_the_summary(run):
    done = run("launches.py", FP8EMU_SUMMARY="1")
    assert done.returncode == 0
    assert re.fullmatch(r"fp8emu: 1 kernel, 2 launches, \d+\.\d\d s; 0 findings\n +\d+\.\d\d s +2 x  step\n", done.stderr)


def test_the_command(tool):
    def command(*arguments):
        return subprocess.run([tool, *arguments], capture_output=True, text=True, timeout=100)

    done = command("run", "--chip=sm_89,sm_90a", "--faults=report", "--seed=3", sys.executable, PROGRAMS / "findings.py")
    assert (done.returncode, done.stdout) == (1, "ok\n")
    assert "(FP8EMU_SEED=3)" in done.stderr and "fp8emu: 3 kernels, 6 launches, " in done.stderr and re.search("; [34] findings", done.stderr)
    # A program's own status stays.
    assert command("run", sys.executable, "-c", "raise SystemExit(7)").returncode == 7
    assert command("run", "--checks=0", sys.executable, "-c", "import os; print(os.environ['FP8EMU_CHECKS'])").stdout == "0\n"
    for wrong, words in (("--chips=sm_89", "no option --chips=sm_89"), ("--chip=sm_89", "a program is missing")):
        done = command("run", wrong)
        assert done.returncode == 2 and words in done.stderr
    assert command("run", "no-such-program").returncode == 127
    assert "usage: fp8emu run" in command("--help").stdout
