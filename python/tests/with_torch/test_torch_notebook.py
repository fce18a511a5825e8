# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The notebook of PyTorch runs from its first cell to its last, with few steps; what is kept in it has the same outputs."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("nbclient")

import notebooks  # noqa: E402

NAME = "gpt_torch.ipynb"


@pytest.mark.slow(one_of=1)
def test_the_notebook_runs(monkeypatch):
    notebook = notebooks.read(NAME)
    kept = notebooks.kinds(notebook)
    notebooks.run(notebook, monkeypatch)
    assert notebooks.kinds(notebook) == kept
    assert "text/html" in kept[2] and "image/png" in kept[3] and "image/png" in kept[4]
    bf16, ours, exact, exported = notebooks.losses(notebook)
    # A uniform guess has log 256 = 5.55; four steps are too few for the two to part.
    assert 4 < bf16 < 6 and abs(bf16 - ours) < 0.1
    assert abs(exact - exported) < 0.1


def test_what_is_kept_was_run_to_its_end():
    notebook = notebooks.read(NAME)
    assert notebooks.was_run(notebook)
    bf16, ours, exact, exported = notebooks.losses(notebook)
    assert abs(bf16 - ours) < 0.02 and abs(exact - exported) < 0.05
