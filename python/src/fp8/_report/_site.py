# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`fp8.Site`, one matrix product of a program, and `fp8.AttentionSite`, one attention, and what became of them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .._errors import Location

#: A location of the compiler's: "file:3:58" or "name (file:3:58)", where the file's name may have blanks and parentheses.
_PLACE = re.compile(r"(?:.*? \((?=.*\)$))?(.+):([0-9]+):([0-9]+)\)?")


@dataclass(frozen=True)
class Site:
    """One matrix product: its site and role, its sizes (None where dynamic), the decision and the reason."""

    site: str
    role: str
    batch: int | None
    m: int | None
    n: int | None
    k: int | None
    decision: str
    reason: str
    recipe: str | None
    formats: tuple[str, ...]
    code: str
    #: The place in the source, as the compiler prints locations.
    location: str
    entry: str = "main"

    @property
    def in_fp8(self) -> bool:
        return self.decision == "fp8"

    @property
    def place(self) -> Location | None:
        """The position in a file that the location has."""
        return _place_of(self.location)


@dataclass(frozen=True)
class AttentionSite:
    """One attention, with its backward pass where the program has it, or code that looks like one."""

    #: The site of the product of queries and keys.
    site: str
    #: Why it stays written out as products and code between them; empty where it is fused.
    reason: str
    #: The bytes of scores, probabilities and their gradients that are never in memory together; None where it is
    #: written out or a size is dynamic.
    score_bytes: int | None
    #: "causal" where it is fused and each row is known to see only the first keys, "window 128" where only so many of them,
    #: "no old keys" where only the later ones.
    mask: str
    #: The share of the scores of other keys; None where a size is dynamic. Blocks of rows leave out the keys
    #: that are hidden from all of their rows; beside biases and padding, where the call finds that it may.
    keys_skipped: float | None
    #: The place in the source, as the compiler prints locations.
    location: str
    entry: str = "main"

    @property
    def is_fused(self) -> bool:
        return not self.reason

    @property
    def place(self) -> Location | None:
        """The position in a file that the location has."""
        return _place_of(self.location)


def _place_of(location: str) -> Location | None:
    found = _PLACE.fullmatch(location)
    return Location(found[1], int(found[2]), int(found[3])) if found else None
