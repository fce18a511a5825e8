# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cells of a report's table, for notebooks (`_html`) and for terminals, where rich shows it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from ._site import Site

_ROLES = ("fprop", "dgrad", "wgrad", "other")


class Cell(NamedTuple):
    """`in_fp8` is None for what is no decision."""

    text: str
    in_fp8: bool | None = None


def rows(sites: Sequence[Site]) -> list[list[Cell]]:
    """The names of the columns, then a row per site of each entry point, in the program's order."""
    roles = [role for role in _ROLES if any(_role(site) == role for site in sites)]
    groups: dict[tuple[str, str], list[Site]] = {}
    for site in sites:
        groups.setdefault((site.entry, site.site), []).append(site)
    head = [Cell(name) for name in ("site", "m × n × k", *roles, "reason", "location")]
    return [head, *(_row(name, group, roles) for name, group in groups.items())]


def to_rich(summary: str, sites: Sequence[Site]) -> Any:
    """The table as rich's; rich is there, since it asks for it."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    head, *others = rows(sites)
    table = Table(*(cell.text for cell in head), title=summary, title_justify="left", box=box.SIMPLE_HEAD)
    for row in others:
        table.add_row(*(Text(text, {None: "", True: "green", False: "yellow"}[in_fp8]) for text, in_fp8 in row))
    return table


def _role(site: Site) -> str:
    return site.role if site.role in _ROLES else "other"


def _row(name: tuple[str, str], group: list[Site], roles: Sequence[str]) -> list[Cell]:
    cells = [Cell(name[1] if name[0] == "main" else f"{name[0]}: {name[1]}"), Cell(_sizes(group[0]))]
    for role in roles:
        products = [site for site in group if _role(site) == role]
        cells.append(Cell(", ".join(_decision(site) for site in products), all(site.in_fp8 for site in products) if products else None))
    reasons = {site.reason: None for site in group if site.reason}
    # The file without its folder: a table that is sent to others says nothing about the machine.
    places = [f"{os.path.basename(site.place.file)}:{site.place.line}" for site in group if site.place]
    return [*cells, Cell("; ".join(reasons)), Cell(places[0] if places else "")]


def _sizes(site: Site) -> str:
    sizes = " × ".join("?" if size is None else str(size) for size in (site.m, site.n, site.k))
    return sizes if site.batch in (None, 1) else f"{site.batch} of {sizes}"


def _decision(site: Site) -> str:
    formats = " × ".join(dict.fromkeys(site.formats)) if len(set(site.formats)) == 1 else " × ".join(site.formats)
    return formats or ("fp8" if site.in_fp8 else "kept")
