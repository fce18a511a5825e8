# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Logs of fp8-run --monitor, and what is noticeable about each tensor in them."""

import dataclasses
import json
import pathlib
import re

KEYS = ("amax", "scale", "underflow", "overflow", "mse")
MANY_CUT_OFF = 1e-3  # of the elements: from here on overflow is worth a look
MANY_LOST = 0.1  # of the elements: the same for underflow
LARGE_ERROR = 5e-3  # a relative mean square error; casts to E5M2 without losses have up to 4e-3, to E4M3 1e-3


class Failure(Exception):
    """Something wrong with the input or the request, in one sentence."""


@dataclasses.dataclass
class Tensor:
    """One quantized tensor over all steps of the log; None where a value is not known."""

    column: int | None
    sites: list[str]
    kind: str
    steps: list[int] = dataclasses.field(default_factory=list)
    values: dict[str, list[float | None]] = dataclasses.field(default_factory=lambda: {key: [] for key in KEYS})

    @property
    def name(self) -> str:
        more = f"+{len(self.sites) - 1}" if len(self.sites) > 1 else ""
        return f"{self.sites[0] if self.sites else '?'}{more} {self.kind}"

    def last(self, key: str) -> float | None:
        return self.values[key][-1] if self.values[key] else None

    def largest(self, key: str) -> float | None:
        return max((value for value in self.values[key] if value is not None), default=None)

    def need(self) -> tuple[float, ...]:
        """Sorts tensors: the largest losses come first. The first step casts with scales that know no amax yet."""
        late = {key: [v for v in self.values[key][1:] or self.values[key] if v is not None] for key in KEYS}
        return tuple(-max(late[key], default=0.0) for key in ("overflow", "underflow", "mse"))

    def reason(self) -> str:
        """Why the tensor needs attention; empty if it does not."""
        overflow, underflow, mse = (-part for part in self.need())
        if overflow >= MANY_CUT_OFF:
            return f"{100 * overflow:.2g}% cut off: grows faster than its scale follows; try --margin=1, init=current or current scaling"
        if underflow >= MANY_LOST:
            return f"{100 * underflow:.2g}% become 0: too wide for one scale; try block or mxfp8"
        if mse >= LARGE_ERROR:
            return f"error {mse:.2g} of the mean square: try E4M3, block or mxfp8"
        return ""


@dataclasses.dataclass
class Log:
    source: pathlib.Path
    tensors: list[Tensor]
    printed: dict[int, float]  # step -> the result of --print

    @classmethod
    def read(cls, path: pathlib.Path) -> "Log":
        try:
            lines = path.read_text().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise Failure(f"{path}: {getattr(error, 'strerror', None) or 'not a text file'}") from None
        log, known = cls(path, [], {}), {}
        for number, line in enumerate(lines, 1):
            if line.strip():
                log._add(number, line, known)
        if not log.tensors:
            raise Failure(f"{path}: it has no steps")
        return log

    def _add(self, number: int, line: str, known: dict[tuple[object, ...], Tensor]) -> None:
        try:
            entry = json.loads(line)
            step, column, sites, kind = int(entry["step"]), entry["column"], list(map(str, entry["sites"])), str(entry["tensor"])
            values = {key: None if entry[key] is None else float(entry[key]) for key in KEYS}
        except (ValueError, KeyError, TypeError) as error:
            raise Failure(f"{self.source}:{number}: not a line of fp8-run --monitor ({error!r})") from None
        # Casts without a column come in a fixed order, twice where both directions are cast.
        key, repeat = (column, *sites, kind), 0
        while (key, repeat) in known and step in known[key, repeat].steps[-1:]:
            repeat += 1
        if (key, repeat) not in known:
            known[key, repeat] = Tensor(column, sites, kind)
            self.tensors.append(known[key, repeat])
        tensor = known[key, repeat]
        tensor.steps.append(step)
        for name, value in values.items():
            tensor.values[name].append(value)
        if isinstance(entry.get("printed"), (int, float)):
            self.printed[step] = float(entry["printed"])

    def select(self, pattern: str) -> "Log":
        found = [tensor for tensor in self.tensors if any(re.search(pattern, site) for site in tensor.sites or [""])]
        if not found:
            raise Failure(f"--sites={pattern}: no tensor of {self.source} has such a site")
        return Log(self.source, found, self.printed)

    def by_need(self) -> list[Tensor]:
        return sorted(self.tensors, key=Tensor.need)
