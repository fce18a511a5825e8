# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options that choose products, for a model whose code PyTorch captures as several graphs.

fp8-compile refuses an option that no product of a program fits. Of a model's graphs one may have
such a product and another none, so that the reports of the graphs together say what fits none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import _options
from .._errors import Location, warn
from .._library import Library
from .lowering import _import

_NAMES = ("sites", "keep", "require", "require_attention", "first", "last", "fp8_parameters", "stochastic_rounding")


class Choices:
    """The uses of a backend's options in its graphs so far."""

    def __init__(self) -> None:
        #: Options that graphs had a use for, and the compiler's words for those that none had yet.
        self._used: set[str] = set()
        self.doubts: dict[str, str] = {}
        self._told: set[str] = set()
        #: Whether a graph ended where PyTorch goes on with another one, and the graphs that were called since there is a doubt.
        self.is_broken = False
        self._called: set[int] = set()

    def compile(self, text: str, line: Location | None, options: Mapping[str, Any]) -> Library:
        """Compiles a graph; `line` is its first one. An option that it has no use for is an error where the model has no other graph."""
        given = _named(options)
        is_part = bool(given) and (self.is_broken or bool(self._used))
        library = _import.compile_text(text, line, {**options, "unused_options": "report"} if is_part else options)
        unused = library.report.unused_options if is_part else {}
        self._used |= given - set(unused)
        self.doubts = {name: message for name, message in {**self.doubts, **unused}.items() if name not in self._used | self._told}
        self._called.clear()
        if not self.is_broken:
            self.warn()
        return library

    def call(self, graph: object) -> None:
        """Notes a call while there are doubts: with a graph's second one all graphs of the model are compiled."""
        if id(graph) in self._called:
            self.warn()
        self._called.add(id(graph))

    def warn(self) -> None:
        """Warns of the options that no graph has had a use for."""
        for message in dict.fromkeys(self.doubts.values()):
            warn(f"{message} (so in all graphs that are compiled so far)")
        self._told |= set(self.doubts)
        self.doubts = {}


def _named(options: Mapping[str, Any]) -> set[str]:
    """The options that choose products, with the names that a report gives them."""
    pairs = _options.site_recipes(options.get("site_recipe"))
    return {name for name in _NAMES if options.get(name)} | {f"site_recipe[{i}]" for i in range(len(pairs))}
