# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a notebook of the examples with few steps, and reads the outputs that are kept in it."""

import pathlib
import re

import nbclient
import nbformat

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "python" / "examples"


def read(name):
    return nbformat.read(EXAMPLES / name, as_version=4)


def run(notebook, monkeypatch):
    """Executes all cells, in place: four steps on the text of the license."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "python" / "src"))
    monkeypatch.setenv("FP8_STEPS", "4")
    monkeypatch.setenv("FP8_TEXT", str(ROOT / "LICENSE"))
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(EXAMPLES)}}).execute()


def kinds(notebook):
    """For every cell of code, the types of its outputs but warnings; lines of text may come in several pieces."""
    cells = [[o for o in cell.outputs if o.get("name") != "stderr"] for cell in notebook.cells if cell.cell_type == "code"]
    return [sorted({kind for output in outputs for kind in output.get("data", {"text": ""})}) for outputs in cells]


def text_of(notebook):
    return "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", []))


def losses(notebook):
    """The losses that it prints, in bf16 and FP8."""
    return list(map(float, re.findall(r"(?:bf16|f32|FP8) ([\d.]+)", text_of(notebook))))


def was_run(notebook):
    return all(cell.execution_count for cell in notebook.cells if cell.cell_type == "code")
