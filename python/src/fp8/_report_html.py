# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A report as a table of HTML for notebooks: styles in the elements, no script, nothing loaded."""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._report import Site

_ROLES = ("fprop", "dgrad", "wgrad", "other")
_CELL = "padding:2px 8px;text-align:left;vertical-align:top"
# Dark text on light colours, whatever the notebook's theme is.
_FP8, _KEPT = "background:#c8e6c9;color:#1b1b1b", "background:#ffe0b2;color:#1b1b1b"


def render(summary: str, sites: Sequence[Site]) -> str:
    """A line of counts, then a row per site: sizes, a cell per role, the reasons, the place in the source."""
    roles = [role for role in _ROLES if any(_role(site) == role for site in sites)]
    head = "".join(f'<th style="{_CELL}">{name}</th>' for name in ["site", "m × n × k", *roles, "reason", "location"])
    rows = "".join(_row(name, group, roles) for name, group in _group(sites).items())
    return f'<p>{html.escape(summary)}</p><table style="border-collapse:collapse"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'


def _role(site: Site) -> str:
    return site.role if site.role in _ROLES else "other"


def _group(sites: Sequence[Site]) -> dict[tuple[str, str], list[Site]]:
    """The products of each site of each entry point, in the program's order."""
    groups: dict[tuple[str, str], list[Site]] = {}
    for site in sites:
        groups.setdefault((site.entry, site.site), []).append(site)
    return groups


def _row(name: tuple[str, str], group: list[Site], roles: Sequence[str]) -> str:
    cells = [_cell(name[1] if name[0] == "main" else f"{name[0]}: {name[1]}"), _cell(_sizes(group[0]))]
    for role in roles:
        products = [site for site in group if _role(site) == role]
        style = "" if not products else _FP8 if all(site.in_fp8 for site in products) else _KEPT
        cells.append(_cell(", ".join(_decision(site) for site in products), style))
    reasons = {site.reason: None for site in group if site.reason}
    # The file without its folder: a table that is sent to others says nothing about the machine.
    places = [f"{os.path.basename(site.place.file)}:{site.place.line}" for site in group if site.place]
    return f"<tr>{''.join([*cells, _cell('; '.join(reasons)), _cell(places[0] if places else '')])}</tr>"


def _cell(text: str, style: str = "") -> str:
    return f'<td style="{";".join(part for part in (_CELL, style) if part)}">{html.escape(text)}</td>'


def _sizes(site: Site) -> str:
    sizes = " × ".join("?" if size is None else str(size) for size in (site.m, site.n, site.k))
    return sizes if site.batch in (None, 1) else f"{site.batch} of {sizes}"


def _decision(site: Site) -> str:
    formats = " × ".join(dict.fromkeys(site.formats)) if len(set(site.formats)) == 1 else " × ".join(site.formats)
    return formats or ("fp8" if site.in_fp8 else "kept")
