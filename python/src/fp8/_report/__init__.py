# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`fp8.Report`: what became of every matrix product of a program."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .. import _options
from . import _html, _table
from ._site import AttentionSite, Site

__all__ = ["AttentionSite", "Report", "Site"]


class Report:
    """The decisions about every product. `print(report)` is fp8-compile's text; a notebook shows a table, as does rich.

    >>> Report({"sites": [], "memory": {"workspace_bytes": 64}})
    <fp8.Report: 0 products, 0 in FP8, 0 kept>
    """

    def __init__(self, contents: Mapping[str, Any], text: str | None = None) -> None:
        self._contents = contents
        self._text = text
        #: One Site per product, in the program's order.
        self.sites = [_site(record) for record in contents.get("sites", [])]
        #: One AttentionSite per place that is attention or looks like it, in the program's order.
        self.attention = [_attention(record) for record in contents.get("attention", [])]

    @property
    def fp8(self) -> list[Site]:
        """The products that run in FP8."""
        return [site for site in self.sites if site.in_fp8]

    @property
    def kept(self) -> list[Site]:
        """The products that stay in the program's own type."""
        return [site for site in self.sites if not site.in_fp8]

    @property
    def memory(self) -> dict[str, Any]:
        """Bytes of state, workspace and traffic; `read_again` of a function's traffic: what it reads more than once, and why."""
        return dict(self._contents.get("memory") or {})

    @property
    def options(self) -> dict[str, Any]:
        """Every option that was in force."""
        return dict(self._contents.get("options") or {})

    @property
    def unused_options(self) -> dict[str, str]:
        """Options that no product fits, with the reason. Of several `site_recipe` the second is "site_recipe[1]".

        Only `keep` may be one, unless the program was compiled with unused_options="report".
        """
        unused = self._contents.get("unused_options") or []
        return {_name_of(record): _options.python_names(record["message"]) for record in unused}

    def to_json(self) -> str:
        """The report as fp8-compile writes it with --report=json."""
        return json.dumps(self._contents, indent=2, sort_keys=True)

    def summary(self) -> str:
        """One line of counts."""
        return f"{len(self.sites)} products, {len(self.fp8)} in FP8, {len(self.kept)} kept"

    def _repr_html_(self) -> str:
        return _html.render(self.summary(), self.sites)

    def __rich__(self) -> Any:
        """The table of a notebook for a terminal: `rich.print(report)`."""
        return _table.to_rich(self.summary(), self.sites)

    def __repr__(self) -> str:
        return f"<fp8.Report: {self.summary()}>"

    def __str__(self) -> str:
        return self._text if self._text is not None else self.summary()


def _name_of(unused: Mapping[str, Any]) -> str:
    place = unused.get("place")
    return str(unused["option"]).replace("-", "_") + (f"[{place}]" if place is not None else "")


def _site(record: Mapping[str, Any]) -> Site:
    known: dict[str, Any] = {name: record.get(name) for name in ("batch", "m", "n", "k", "recipe")}
    known |= {name: record.get(name) or "" for name in ("site", "role", "decision", "reason", "code", "location")}
    return Site(**known, formats=tuple(record.get("formats") or ()), entry=record.get("entry") or "main")


def _attention(record: Mapping[str, Any]) -> AttentionSite:
    texts: dict[str, Any] = {name: record.get(name) or "" for name in ("site", "reason", "mask", "location")}
    known: dict[str, Any] = {name: record.get(name) for name in ("score_bytes", "keys_skipped")}
    return AttentionSite(**texts, **known, entry=record.get("entry") or "main")
