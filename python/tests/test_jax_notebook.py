# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The notebook runs from its first cell to its last, with few steps; what is kept in it has the same outputs."""

import pathlib
import re

import pytest

pytest.importorskip("jax")
nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "python" / "examples" / "gpt.ipynb"


def kinds(notebook):
    """For every cell of code, the types of its outputs; lines of text may come in several pieces."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [sorted({kind for output in cell.outputs for kind in output.get("data", {"text": ""})}) for cell in cells]


def text_of(notebook):
    return "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", []))


@pytest.mark.slow
def test_the_notebook_runs(monkeypatch):
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    kept = kinds(notebook)
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "python" / "src"))
    monkeypatch.setenv("FP8_STEPS", "4")
    monkeypatch.setenv("FP8_TEXT", str(ROOT / "LICENSE"))
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(NOTEBOOK.parent)}}).execute()
    assert kinds(notebook) == kept
    assert "image/png" in kept[3] and "text/html" in kept[2]
    bf16, ours = map(float, re.findall(r"(?:bf16|FP8) ([\d.]+)", text_of(notebook)))
    # A uniform guess has log 256 = 5.55; four steps are too few for the two to part.
    assert 4 < bf16 < 6 and abs(bf16 - ours) < 0.1


def test_what_is_kept_was_run_to_its_end():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert all(cell.execution_count for cell in notebook.cells if cell.cell_type == "code")
    bf16, ours = map(float, re.findall(r"(?:bf16|FP8) ([\d.]+)", text_of(notebook)))
    assert abs(bf16 - ours) < 0.02
