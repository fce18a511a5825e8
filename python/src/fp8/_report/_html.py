# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A report as a table of HTML for notebooks: styles in the elements, no script, nothing loaded."""

from __future__ import annotations

import html
from collections.abc import Sequence

from . import _table
from ._site import Site
from ._table import Cell

_CELL = "padding:2px 8px;text-align:left;vertical-align:top"
# Dark text on light colours, whatever the notebook's theme is.
_FP8, _KEPT = "background:#c8e6c9;color:#1b1b1b", "background:#ffe0b2;color:#1b1b1b"


def render(summary: str, sites: Sequence[Site]) -> str:
    """A line of counts, then a row per site: sizes, a cell per role, the reasons, the place in the source."""
    head, *rows = _table.rows(sites)
    header = "".join(f'<th style="{_CELL}">{html.escape(cell.text)}</th>' for cell in head)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f'<p>{html.escape(summary)}</p><table style="border-collapse:collapse"><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>'


def _cell(cell: Cell) -> str:
    colour = {None: "", True: f";{_FP8}", False: f";{_KEPT}"}[cell.in_fp8]
    return f'<td style="{_CELL}{colour}">{html.escape(cell.text)}</td>'
