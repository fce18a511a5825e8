# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The house rules on documents: prose in Markdown is within 120 columns, tables and code as wide as they are.

import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDERS = ["include", "lib", "tools", "test", "runtime", "python"]
LATER = {"python/README.md"}  # is wrapped with its next change of content
DOCUMENTS = [ROOT / "README.md"] + [p for folder in FOLDERS for p in sorted((ROOT / folder).rglob("*.md"))]


def name(path):
    return str(path.relative_to(ROOT))


def prose(text):
    """The lines of Markdown that are neither code nor a row of a table, with their numbers."""
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        fence = line.lstrip().startswith("```")
        fenced ^= fence
        if not (fenced or fence or line.startswith(("    ", "|"))):
            yield number, line


def test_what_is_prose():
    text = "# Title\n\nA line.\n\n    code\n\n```c++\nmore(code);\n```\n\n| a | row |\n- an item\n  of two lines"
    assert [number for number, line in prose(text) if line] == [1, 3, 12, 13]


@pytest.mark.parametrize("path", [p for p in DOCUMENTS if name(p) not in LATER], ids=name)
def test_prose_is_within_120_columns(path):
    assert not [number for number, line in prose(path.read_text()) if len(line) > 120]
