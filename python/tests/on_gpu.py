# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tools/on-gpu on the emulator, and what its rows of losses have to be."""

import json
import pathlib
import subprocess
import sys

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "on-gpu"


def run(config, folder, parts):
    """The rows by part."""
    build = pathlib.Path(config.getoption("--build")).resolve()
    command = [sys.executable, TOOL, f"--build={build}", "--device=emulator", "--minutes=30", f"--parts={parts}", f"--output={folder / 'out.json'}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return {name: part["rows"] for name, part in json.loads((folder / "out.json").read_text())["parts"].items()}


def check_losses(row):
    """A GPT that knows nothing has a loss of about log 256 = 5.55; three steps teach it little."""
    assert (row["case"], row["status"]) == ("delayed", "ok")
    found, expected = row["values"]["losses"], row["values"]["on the CPU"]
    assert len(found) == len(expected) == 3 and 5.2 < found[0] < 6
    # The emulator's tensor cores keep 13 bits of sums of FP8.
    assert found != expected and all(abs(a - b) < 2**-11 * b for a, b in zip(found, expected))
