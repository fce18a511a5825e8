# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What goes wrong while fp8.torch lowers a graph: torch-mlir's passes crash, take too long, or are interrupted."""

import functools
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import fp8.torch
import pytest
import torch

SOURCE = pathlib.Path(fp8.__file__).resolve().parents[1]


def passes_are(monkeypatch, folder, text):
    """Puts a script in the place of the process that runs torch-mlir's passes."""
    script = folder / "passes"
    script.write_text("#!/bin/sh\n" + text)
    script.chmod(0o755)
    monkeypatch.setattr("fp8.torch._passes._TOOL", script)


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
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path))
        passes_are(patch, tmp_path, f"echo assertion >&2; kill -{name} $$")
        with pytest.raises(fp8.CompileError, match=rf"^iree-opt was ended by signal {number}; the input is kept in .*; please report it") as info:
            compile_double()
    assert info.value.notes == ("assertion",)
    kept = pathlib.Path(info.value.source_path)
    assert "torch.aten.add" in kept.read_text()
    assert 'test_torch_first_use.py":' in kept.read_text()
    # The kept input is what the passes read.
    assert "arith.addf" in fp8.torch._passes.run(kept.read_text())
    assert torch.equal(compile_double(), torch.full((4,), 2.0))


def test_passes_that_fail_without_a_location_say_why(tmp_path, monkeypatch):
    passes_are(monkeypatch, tmp_path, "echo LLVM ERROR: out of memory >&2; exit 1")
    with pytest.raises(fp8.CompileError, match=r"^torch-mlir cannot lower the graph: LLVM ERROR: out of memory$"):
        compile_double()


def test_passes_have_a_time_limit(tmp_path, monkeypatch):
    passes_are(monkeypatch, tmp_path, "exec sleep 60")
    monkeypatch.setattr(fp8.config, "compile_timeout", 0.2)
    with pytest.raises(fp8.CompileError, match=r"iree-opt took more than 0.2 s \(fp8.config.compile_timeout\)"):
        compile_double()


INTERRUPTED = """
import pathlib, sys, torch, fp8.torch
fp8.torch._passes._TOOL = pathlib.Path(sys.argv[1])
try: torch.compile(lambda x: x + x, backend=fp8.torch.backend())(torch.ones(4))
except KeyboardInterrupt: print("interrupted")
"""


def test_ctrl_c_ends_the_passes(tmp_path):
    marker, script = tmp_path / "pid", tmp_path / "passes"
    script.write_text(f"#!/bin/sh\necho $$ > {marker}; exec sleep 300")
    script.chmod(0o755)
    # A shell starts background jobs with SIGINT ignored, which the child would inherit from this process.
    heed = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, script], env={**os.environ, "PYTHONPATH": str(SOURCE)}, stdout=subprocess.PIPE, text=True, preexec_fn=heed
    )
    deadline = time.monotonic() + 120
    while not (marker.exists() and marker.read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=120)[0] == "interrupted\n"
    assert not pathlib.Path(f"/proc/{int(marker.read_text())}").exists()


def test_options_that_have_no_use_are_refused_before_anything_is_compiled():
    model = torch.nn.Linear(16, 8)
    train_step = functools.partial(fp8.torch.train_step, model, None, torch.optim.SGD(model.parameters(), 0.1))
    for make, name in ((fp8.torch.backend, "the backend"), (train_step, "train_step")):
        for option in ("pair", "carry"):
            with pytest.raises(ValueError, match=f"{option} is set by {name} itself"):
                make(**{option: None})
        with pytest.raises(ValueError, match=f"target='sm_90a': {name} runs on the CPU"):
            make(target="sm_90a")
        make(target="cpu")
    with pytest.raises(ValueError, match="target='sm_90a': compile_exported runs on the CPU"):
        fp8.torch.compile_exported(torch.export.export(model.eval(), (torch.ones(4, 16),)), target="sm_90a")
