# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Failures while fp8.torch lowers a graph: torch-mlir's passes crash, take too long, or are interrupted."""

import functools
import inspect
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import fp8.torch
import outside_programs
import pytest
import torch


def double(x):
    return x + x


def compile_double():
    """Compiles a function and calls it; raises the package's own error."""
    torch._dynamo.reset()
    try:
        return torch.compile(double, backend=fp8.torch.backend())(torch.ones(4))
    except torch._dynamo.exc.BackendCompilerFailed as error:
        raise error.inner_exception from None


@pytest.mark.parametrize(("name", "number"), [("ABRT", r"6 \(Aborted\)"), ("SEGV", r"11 \(Segmentation fault\)"), ("KILL", r"9 \(Killed\)")])
def test_passes_that_are_killed_keep_the_input(name, number, tmp_path, monkeypatch, fresh_cache):
    with outside_programs.in_place(monkeypatch, tmp_path, outside_programs.KILLED.format(name)):
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        message = rf"the passes of torch-mlir of iree-base-compiler [\d.]+ were ended by signal {number}; the input is kept in .*: please report it"
        with pytest.raises(fp8.CompileError, match=message) as info:
            compile_double()
    assert info.value.notes == ("assertion",)
    assert (info.value.location.file, info.value.location.line) == (__file__, inspect.getsourcelines(double)[1] + 1)
    kept = pathlib.Path(info.value.source_path)
    assert "torch.aten.add" in kept.read_text()
    assert 'test_torch_first_use.py":' in kept.read_text()
    # The kept input is what the passes read.
    assert "arith.addf" in fp8.torch.lowering._passes.run(kept.read_text())
    assert torch.equal(compile_double(), torch.full((4,), 2.0))


def test_passes_that_fail_without_a_location_are_an_error_at_the_users_line(tmp_path, monkeypatch):
    body = outside_programs.ASKED + "send_message(channel, {'refused': [{'message': 'it is too large'}], 'is_parsed': True}); time.sleep(60)"
    with outside_programs.in_place(monkeypatch, tmp_path, body):
        with pytest.raises(fp8.CompileError, match=r": 'aten.add.Tensor' has no form in linalg\nit is too large$") as info:
            compile_double()
    assert (info.value.location.file, info.value.location.line) == (__file__, inspect.getsourcelines(double)[1] + 1)


def test_passes_have_a_time_limit(tmp_path, monkeypatch):
    with outside_programs.in_place(monkeypatch, tmp_path, "time.sleep(60)"):
        monkeypatch.setattr(fp8.config, "compile_timeout", 0.2)
        with pytest.raises(fp8.CompileError, match=r"the passes of torch-mlir .* took more than 0.2 s \(fp8.config.compile_timeout\)"):
            compile_double()


INTERRUPTED = """
import torch, fp8.torch
compile_double = lambda: torch.compile(lambda x: x + x, backend=fp8.torch.backend())(torch.ones(4))
try: compile_double()
except KeyboardInterrupt: print("interrupted", outside_programs.children())
"""


def test_ctrl_c_ends_the_passes(tmp_path):
    marker = tmp_path / "pid"
    body = f"receive_message(channel)\npathlib.Path({str(marker)!r}).write_text(str(os.getpid())); time.sleep(300)"
    code = outside_programs.script(tmp_path, body, INTERRUPTED)
    # A shell starts background jobs with SIGINT ignored, which the child would inherit from this process.
    heed = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    environment = {**os.environ, "PYTHONPATH": str(outside_programs.SOURCE)}
    process = subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True, preexec_fn=heed)
    deadline = time.monotonic() + 120
    while not (marker.exists() and marker.read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=120)[0] == "interrupted []\n"
    assert not pathlib.Path(f"/proc/{int(marker.read_text())}").exists()


def test_options_that_have_no_use_are_refused_before_anything_is_compiled():
    model = torch.nn.Linear(16, 8)
    train_step = functools.partial(fp8.torch.train_step, model, None, torch.optim.SGD(model.parameters(), 0.1))
    for make, name in ((fp8.torch.backend, "the backend"), (train_step, "train_step")):
        for option in ("pair", "carry"):
            with pytest.raises(ValueError, match=f"{option} is set by {name} itself"):
                make(**{option: None})
        with pytest.raises(ValueError, match="device='gpu': a device is 'cpu', 'cuda', 'cuda:N' or 'emulator'"):
            make(device="gpu")
        with pytest.raises(ValueError, match="target='sm_90a' is code for a GPU, and device='cpu': leave one of them out"):
            make(device="cpu", target="sm_90a")
        with pytest.raises(ValueError, match="sm_90b"):
            make(target="sm_90b")
        make(target="cpu")
        make(device="emulator", target="auto")
    with pytest.raises(ValueError, match="target='sm_90a' is code for a GPU, and weight lies on the CPU"):
        fp8.torch.compile_exported(torch.export.export(model.eval(), (torch.ones(4, 16),)), target="sm_90a")
