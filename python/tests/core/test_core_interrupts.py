# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes that are interrupted or killed within steps on a GPU: its memory is free afterwards, and the next step is right."""

import functools
import os
import pathlib
import signal
import subprocess
import sys
import textwrap

import fp8
import pytest

SOURCE = pathlib.Path(fp8.__file__).resolve().parents[1]

#: Steps until a signal comes, then one more from the last weights and state that a step has completed.
PROGRAM = """
import ctypes, gc, sys
import fp8, numpy as np
from test_core_device import OPTIONS, STEP, inputs
from fp8 import _device
driver = ctypes.CDLL(%r)
driver.recordingLive.restype = ctypes.c_int64
device = next(d for d in (f"cuda:{i}" for i in range(4)) if _device.chip_of(d) == "sm_90a")

def steps(count):
    library = fp8.compile(STEP, device=device, target="sm_90a", **OPTIONS)
    main, (x, w), state = library.entries["main"], map(library.put, inputs()), library.state()
    hosts, done = {}, []
    try:
        while count is None or len(done) < count:
            y, new = main(x, w, state=state)
            completed = y.numpy().tobytes(), new, {name: np.array(a) for name, a in state.items()}
            done, w, hosts = [*done, completed[0]], *completed[1:]
            if count is None and len(done) == 2:
                print("running", flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        state = library.put(hosts)
    y, new = main(x, w, state=state)
    return [*done, y.numpy().tobytes()]

interrupted = steps(None if "wait" in sys.argv else 3)
gc.collect()
assert driver.recordingLive() == 0, "something of the device is left"
print(interrupted == steps(len(interrupted) - 1), flush=True)
"""


def start(request, *arguments):
    lib = pathlib.Path(request.config.getoption("--build")).resolve() / "lib"
    driver = str(lib / "libfp8rt_test_recording_driver.so")
    path = os.pathsep.join([str(SOURCE), str(pathlib.Path(__file__).parent)])
    environment = {**os.environ, "PYTHONPATH": path, "FP8RT_CUDA_DRIVER": driver}
    # A shell starts background jobs with SIGINT ignored, which the child would inherit from this process.
    heed = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM) % driver, *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed)


@pytest.mark.parametrize("count", range(3))
def test_after_ctrl_c_the_next_step_is_right(request, count):
    """The signal comes at any time of a step: steps before it, and those after it, are the ones that nothing interrupted."""
    process = start(request, "wait")
    assert process.stdout.readline() == "running\n"
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=120)
    assert (process.returncode, output) == (0, "interrupted\nTrue\n"), errors


def test_after_a_process_that_was_killed_the_next_one_runs(request):
    process = start(request, "wait")
    assert process.stdout.readline() == "running\n"
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    process = start(request)
    output, errors = process.communicate(timeout=120)
    assert (process.returncode, output) == (0, "True\n"), errors
