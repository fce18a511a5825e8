# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options that choose products, for a model whose code PyTorch captures as several graphs.

fp8-compile refuses an option that no product of a program fits. Of a model's graphs one may have
such a product and another none: that one is compiled without the option.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from .. import _options
from .._errors import CompileError, Location, warn
from .._library import Library
from .._report import Report
from . import _import

#: Options of delayed scaling, which other recipes have not.
OF_DELAYED = ("margin", "amax_history_len", "amax_compute_algo", "ignore_non_finite", "executed_mask", "init")

#: Options that contradict recipe="none" where no site has a recipe of its own.
_OF_FP8 = ("fp8_parameters", "stochastic_rounding", "fp8_attention", *OF_DELAYED)

_UNMATCHED = re.compile(r"no site matches (sites|keep|require)=(.*); the report lists (?:the sites|them)$")
_USELESS = {
    "fp8_parameters keeps no weight in FP8, because": ("fp8_parameters",),
    "stochastic_rounding=true: no gradient becomes FP8": ("stochastic_rounding",),
    "first and last need layers": ("first", "last"),
}

#: `keep` in place of `sites` where none matches: all products of the graph stay as they are. No user writes it so.
_KEEP_ALL = "(.*)|(.*)"


class Choices:
    """What became of a backend's options in its graphs so far."""

    def __init__(self) -> None:
        #: Options that graphs had a use for, and the compiler's words for those that none had yet.
        self._used: set[str] = set()
        self.doubts: dict[str, str] = {}
        self._told: set[str] = set()
        #: Whether a graph ended where PyTorch goes on with another one, and the graphs that were called since there is a doubt.
        self.is_broken = False
        self._called: set[int] = set()

    def compile(self, text: str, line: Location | None, options: Mapping[str, Any]) -> Library:
        """Compiles a graph, without the options that it has no use for; `line` is its first one."""
        given, dropped = _named(options), dict[str, str]()
        while True:
            try:
                library, unmatched = _import.compile_text(text, line, options, _UNMATCHED)
                break
            except CompileError as error:
                fewer = _without(options, error.message)
                useless = _named(options) - _named(fewer or options)
                # A model that is one graph has no other graph that the option might fit.
                if fewer is None or not (self.is_broken or useless <= self._used):
                    raise _in_users_words(error, dropped) from None
                dropped.update(dict.fromkeys(useless, error.message))
                options = fewer
            except ValueError:
                # All that became FP8 may have been at the sites of a dropped option.
                if not dropped or not set(_OF_FP8) & set(options):
                    raise
                options = {name: value for name, value in options.items() if name not in _OF_FP8}
        if unmatched and "sites" not in dropped:
            dropped["keep"] = unmatched[0]
        self._note(given, dropped)
        return library

    def _note(self, given: set[str], dropped: Mapping[str, str]) -> None:
        self._used |= given - set(dropped)
        self.doubts = {name: message for name, message in {**self.doubts, **dropped}.items() if name not in self._used | self._told}
        self._called.clear()
        if not self.is_broken:
            self.warn()

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

    def report(self, library: Library, sites: Any) -> Report:
        """A graph's report, which says `sites` where the graph was compiled with another option instead."""
        report = _import.report_of(library)
        if report.options.get("keep") != _KEEP_ALL or sites in (None, "linear", "all"):
            return report
        old, new = "matches --keep=" + _KEEP_ALL, "does not match --sites=" + str(getattr(sites, "pattern", sites))
        return Report(json.loads(report.to_json().replace(old, json.dumps(new)[1:-1])), str(report).replace(old, new))


def _in_users_words(error: CompileError, dropped: Mapping[str, str]) -> CompileError:
    """The error without what stands for `sites`."""
    if "sites" not in dropped:
        return error
    message = error.message.replace(f"matches keep={_KEEP_ALL}", "does not match sites")
    return type(error)(message, error.location, error.notes, error.source_path)


def _without(options: Mapping[str, Any], message: str) -> dict[str, Any] | None:
    """The options without the one that the compiler refuses because no product fits it; None for another error."""
    for beginning, names in _USELESS.items():
        if message.startswith(beginning):
            return {name: value for name, value in options.items() if name not in names}
    recipes = site_recipes(options.get("site_recipe"))
    for place, (pattern, _) in enumerate(recipes):
        is_hidden = message.startswith(f"site_recipe={pattern}=") and " is for no site" in message
        if is_hidden or message.startswith(f"no site matches site_recipe={pattern};"):
            return {**options, "site_recipe": [f"{p}={r}" for p, r in recipes[:place] + recipes[place + 1 :]]}
    if not (found := _UNMATCHED.match(message)):
        return None
    fewer = {name: value for name, value in options.items() if name != found[1]}
    return {**fewer, "keep": _KEEP_ALL} if found[1] == "sites" else fewer


def site_recipes(value: Any) -> list[tuple[str, str]]:
    """The pairs of pattern and recipe that the option `site_recipe` says."""
    texts = _options.to_arguments({"site_recipe": value})
    return [_split(text.removeprefix("--site-recipe=")) for text in texts]


def _split(text: str) -> tuple[str, str]:
    """REGEX=RECIPE at the `=` that the compiler takes: the last one before an attribute."""
    before, hash_, attribute = text.partition("=#")
    if hash_:
        return before, "#" + attribute
    pattern, _, recipe = text.rpartition("=")
    return pattern, recipe


def _named(options: Mapping[str, Any]) -> set[str]:
    """The options that choose products, by name; the pairs of `site_recipe` with their patterns."""
    names = {name for name in ("sites", "keep", "require", "first", "last", "fp8_parameters", "stochastic_rounding") if options.get(name)}
    return names | {f"site_recipe={pattern}={recipe}" for pattern, recipe in site_recipes(options.get("site_recipe"))}
