# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The example that trains a GPT in FP8 from PyTorch."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]


def test_the_example_trains_and_reports_its_products():
    script = ROOT / "python" / "examples" / "gpt" / "train_torch.py"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python" / "src")}
    command = [sys.executable, str(script), "delayed", "12", str(ROOT / "LICENSE")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    losses = [float(loss) for loss in re.findall(r"loss ([\d.]+)", done.stdout)]
    # A uniform guess has log 256 = 5.55; the first dozen steps learn which bytes are frequent.
    assert losses[0] > 5.4 and losses[-1] < 4.5
    # The layers' linear products, the output layer kept.
    assert "75 products, 48 in FP8, 27 kept" in done.stdout
