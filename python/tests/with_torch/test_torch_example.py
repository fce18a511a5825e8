# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The example that trains a GPT in FP8 from PyTorch."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]


def trained(steps, *options):
    """The losses that the example prints, and all that it does."""
    script = ROOT / "python" / "examples" / "gpt" / "train_torch.py"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python" / "src")}
    command = [sys.executable, str(script), *options, "delayed", str(steps), str(ROOT / "LICENSE")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [float(loss) for loss in re.findall(r"loss ([\d.]+)", done.stdout)], done.stdout


def test_the_example_trains_and_reports_its_products():
    losses, output = trained(12)
    # A uniform guess has log 256 = 5.55; the first dozen steps learn which bytes are frequent.
    assert losses[0] > 5.4 and losses[-1] < 4.5
    # The layers' linear products, the output layer kept.
    assert "75 products, 48 in FP8, 27 kept" in output


@pytest.mark.slow
def test_the_example_runs_on_the_emulator():
    # As in test_torch_device.
    assert trained(1, "--device=emulator")[0] == pytest.approx(trained(1)[0], rel=2e-3)
