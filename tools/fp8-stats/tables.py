# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table that fp8-stats prints."""

import math

from log import Log, Tensor

BARS = "▁▂▃▄▅▆▇█"


def sparkline(values: list[float | None], width: int = 16) -> str:
    """The last values, from the least to the largest of them; a space where one is not known."""
    shown = values[-width:]
    known = [value for value in shown if value is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)

    def bar(value: float | None) -> str:
        if value is None:
            return " "
        return BARS[int(7.99 * (value - low) / (high - low)) if high > low else 0]

    return "".join(map(bar, shown))


def binades(values: list[float | None]) -> list[float | None]:
    return [math.log2(value) if value else None for value in values]


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f}%"


def row(tensor: Tensor) -> list[str]:
    return [
        tensor.name,
        number(tensor.last("amax")),
        sparkline(binades(tensor.values["amax"])),
        number(tensor.last("scale")),
        percent(tensor.largest("underflow")),
        sparkline(tensor.values["underflow"]),
        percent(tensor.largest("overflow")),
        number(tensor.largest("mse")),
        tensor.reason(),
    ]


HEADER = ["tensor", "amax", "", "scale", "underflow", "", "overflow", "mse", "attention"]


def layout(rows: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in rows)


def results_without_numbers(log: Log, prefix: str = "") -> str:
    bad = log.without_numbers()
    return f"{prefix}NaN or Inf in {len(bad)} of {len(log.printed)} results, the first of step {bad[0]}" if bad else ""


def summarize(log: Log, limit: int) -> str:
    """Last amax and scale, largest losses; those that need attention first."""
    steps = sorted({step for tensor in log.tensors for step in tensor.steps})
    head = f"{log.source}: {len(steps)} steps ({steps[0]} to {steps[-1]}), {len(log.tensors)} tensors"
    if log.printed:
        first, last = min(log.printed), max(log.printed)
        head += f"; result {log.printed[first]:.6g} to {log.printed[last]:.6g}"
    head += results_without_numbers(log, "; ")
    ordered = log.by_need()
    table = layout([HEADER, *map(row, ordered[:limit])])
    left = len(ordered) - limit
    return f"{head}\n{table}" + (f"\nand {left} more (--rows)" if left > 0 else "")
