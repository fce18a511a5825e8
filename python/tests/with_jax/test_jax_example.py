# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The example that trains a GPT in FP8 from JAX."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

pytest.importorskip("jax")

ROOT = pathlib.Path(__file__).resolve().parents[3]


@pytest.mark.slow(one_of=1)
def test_the_quickstart_trains_from_jax(tmp_path, request):
    """tools/quickstart calls train.py so where the python3 on PATH has JAX."""
    script = ROOT / "python" / "examples" / "gpt" / "train.py"
    gnuplot = tmp_path / "bin" / "gnuplot"
    gnuplot.parent.mkdir()
    gnuplot.write_text("#!/bin/sh\ncat > /dev/null\n")
    gnuplot.chmod(0o755)
    environment = {**os.environ, "PATH": f"{gnuplot.parent}:{os.environ['PATH']}"}
    tools = pathlib.Path(request.config.getoption("--build")).resolve() / "bin"
    command = [sys.executable, script, "--jax", "--bin", tools, "--steps=4", f"--text={ROOT / 'LICENSE'}", "--out", tmp_path / "out"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "77 contractions found" in done.stdout and "48 in FP8: 16 fprop, 16 wgrad, 16 dgrad" in done.stdout
    losses = re.findall(r"^Loss.*: bf16 ([\d.]+), FP8 ([\d.]+)", done.stdout, re.M)
    assert len(losses) == 2
    for bf16, ours in losses:
        # A uniform guess has log 256 = 5.55; four steps are too few for the two to part.
        assert 4.5 < float(bf16) < 5.7 and abs(float(bf16) - float(ours)) < 0.05
    assert len((tmp_path / "out" / "losses.tsv").read_text().splitlines()) == 5


def test_the_example_trains_and_reports_its_products():
    script = ROOT / "python" / "examples" / "gpt" / "train_jax.py"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python" / "src")}
    command = [sys.executable, str(script), "delayed", "12", str(ROOT / "LICENSE")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    losses = [float(loss) for loss in re.findall(r"loss ([\d.]+)", done.stdout)]
    # A uniform guess has log 256 = 5.55; the first dozen steps learn which bytes are frequent.
    assert losses[0] > 5.4 and losses[-1] < 4.5
    # The layers' linear products, the embedding and output layer kept.
    assert "77 products, 48 in FP8, 29 kept" in done.stdout
