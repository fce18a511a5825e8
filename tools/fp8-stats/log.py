# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Logs of fp8-run --monitor, and what is noticeable about each tensor in them."""

import bisect
import dataclasses
import json
import math
import pathlib
import re
import sys

KEYS = ("amax", "scale", "underflow", "overflow", "mse")
MANY_CUT_OFF = 1e-3  # of the elements: from here on overflow is worth a look
MANY_LOST = 0.1  # of the elements: the same for underflow
LARGE_ERROR = 5e-3  # a relative mean square error; casts to E5M2 without losses have up to 4e-3, to E4M3 1e-3


class Failure(Exception):
    """Something wrong with the input or the request, in one sentence."""


def percentage(fraction: float) -> str:
    return f"{100 * fraction:.3g}%"


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

    def first_without_number(self) -> float:
        """The first step in which the tensor held a NaN or Inf; infinity if there is none. The log has null for such an
        amax or error, as for what is not measured, and for the error of zeros."""
        knows_amax = any(amax is not None for amax in self.values["amax"])
        for step, amax, underflow, mse in zip(self.steps, *(self.values[key] for key in ("amax", "underflow", "mse")), strict=True):
            is_measured = underflow is not None
            if (amax is None and (knows_amax or is_measured)) or (mse is None and is_measured and amax != 0):
                return step
        return math.inf

    def need(self) -> tuple[float, ...]:
        """Sorts tensors: those with the first NaN or Inf, in the order of the log, then the largest losses. The first step
        casts with scales that know no amax yet."""
        if (step := self.first_without_number()) < math.inf:
            return step, 0.0, 0.0, 0.0
        late = {key: [v for v in self.values[key][1:] or self.values[key] if v is not None] for key in KEYS}
        return step, *(-max(late[key], default=0.0) for key in ("overflow", "underflow", "mse"))

    def reason(self) -> str:
        """Why the tensor needs attention; empty if it does not."""
        step, *losses = self.need()
        overflow, underflow, mse = (-loss for loss in losses)
        if step < math.inf:
            return f"NaN or Inf in step {step}"
        if overflow >= MANY_CUT_OFF:
            return f"{percentage(overflow)} cut off: grows faster than its scale follows; try --margin=1, init=current or current scaling"
        if underflow >= MANY_LOST:
            return f"{percentage(underflow)} become 0: too wide for one scale; try block or mxfp8"
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
            text = path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise Failure(f"{path}: {getattr(error, 'strerror', None) or 'not a text file'}") from None
        lines, log, known = text.splitlines(), cls(path, [], {}), {}
        for number, line in enumerate(lines, 1):
            try:
                if line.strip():
                    log._add(number, line, known)
            except Failure:
                if number < len(lines) or text.endswith("\n") or not log.tensors:
                    raise
                print(f"fp8-stats: warning: {path}: its last line is not whole and left out: a run writes it yet, or was killed", file=sys.stderr)
        if not log.tensors:
            raise Failure(f"{path}: it has no steps")
        return log

    def _add(self, number: int, line: str, known: dict[tuple[object, ...], Tensor]) -> None:
        try:
            entry = json.loads(line)
            step, column, sites, kind = int(entry["step"]), entry["column"], list(map(str, entry["sites"])), str(entry["tensor"])
            values = {key: None if entry[key] is None else float(entry[key]) for key in KEYS}
            if "printed" in entry:
                self.printed[step] = math.nan if entry["printed"] is None else float(entry["printed"])
        except (ValueError, KeyError, TypeError) as error:
            raise Failure(f"{self.source}:{number}: not a line of fp8-run --monitor ({error!r})") from None
        # Casts without a column come in a fixed order, twice where both directions are cast.
        key, repeat = (column, *sites, kind), 0
        while column is None and (key, repeat) in known and step in known[key, repeat].steps[-1:]:
            repeat += 1
        if (key, repeat) not in known:
            known[key, repeat] = Tensor(column, sites, kind)
            self.tensors.append(known[key, repeat])
        tensor = known[key, repeat]
        if tensor.steps and step <= tensor.steps[-1]:
            self._begin_again(step)
        tensor.steps.append(step)
        for name, value in values.items():
            tensor.values[name].append(value)

    def _begin_again(self, step: int) -> None:
        """Forgets the tensors at `step` and all that follows: the run went on from a checkpoint and takes these steps again."""
        for tensor in self.tensors:
            kept = bisect.bisect_left(tensor.steps, step)
            del tensor.steps[kept:]
            for values in tensor.values.values():
                del values[kept:]
        self.printed = {other: value for other, value in self.printed.items() if other <= step}

    def select(self, pattern: str) -> "Log":
        found = [tensor for tensor in self.tensors if any(re.search(pattern, site) for site in tensor.sites or [""])]
        if not found:
            raise Failure(f"--sites={pattern}: no tensor of {self.source} has such a site")
        return Log(self.source, found, self.printed)

    def without_numbers(self) -> list[int]:
        """The steps whose result is NaN or Inf."""
        return sorted(step for step, value in self.printed.items() if not math.isfinite(value))

    def by_need(self) -> list[Tensor]:
        return sorted(self.tensors, key=Tensor.need)
