# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The notebook runs from its first cell to its last, with few steps; what is kept in it has the same outputs. A report in a terminal."""

import io
import re

import pytest

pytest.importorskip("jax")
pytest.importorskip("nbclient")

import notebooks  # noqa: E402

NAME = "gpt.ipynb"


@pytest.mark.slow(one_of=1)
def test_the_notebook_runs(monkeypatch):
    notebook = notebooks.read(NAME)
    kept = notebooks.kinds(notebook)
    notebooks.run(notebook, monkeypatch)
    assert notebooks.kinds(notebook) == kept
    assert "image/png" in kept[3] and "text/html" in kept[2]
    bf16, ours = notebooks.losses(notebook)
    # A uniform guess has log 256 = 5.55; four steps are too few for the two to part.
    assert 4 < bf16 < 6 and abs(bf16 - ours) < 0.1


def test_what_is_kept_was_run_to_its_end():
    notebook = notebooks.read(NAME)
    assert notebooks.was_run(notebook)
    bf16, ours = notebooks.losses(notebook)
    assert abs(bf16 - ours) < 0.02


def test_a_report_in_a_terminal_by_rich():
    console = pytest.importorskip("rich.console")
    from test_core_reports import REPORT

    file = io.StringIO()
    console.Console(file=file, width=100, force_terminal=True, color_system="standard", legacy_windows=False).print(REPORT)
    lines = [re.split(r" {2,}", re.sub(r"\x1b\[[0-9;]*m", "", line).strip()) for line in file.getvalue().splitlines()]
    assert [line for line in lines if len(line) > 1] == [
        ["site", "m × n × k", "fprop", "dgrad", "wgrad", "other", "reason", "location"],
        ["h0/fc", "4 × 8 × 16", "E4M3", "E5M2 × E4M3", "bf16", "kept <by> hand", "model.py:5"],
        ["qk", "12 of ? × 8 × 16", "bf16", "no weight operand"],
    ]
    assert lines[0] == ["4 products, 2 in FP8, 2 kept"]
    # Green where in FP8, yellow where kept.
    assert re.findall(r"\x1b\[(3[0-9])m([^\x1b]*?) *\x1b", file.getvalue()) == [("32", "E4M3"), ("32", "E5M2 × E4M3"), ("33", "bf16"), ("33", "bf16")]
