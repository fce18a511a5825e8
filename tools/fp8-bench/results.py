# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results of every benchmark: the table, the ratios, the JSON file, the picture, and the rounds.

Rows are cases (a network, a shape), columns are what was measured of each. Some columns
are ours, some a peer's; only these enter the ratios.
"""

import dataclasses
import json
import math
import pathlib
from collections.abc import Callable
from typing import TypeVar

from failure import Failure

Value = TypeVar("Value", float, tuple[float, float])


@dataclasses.dataclass
class Results:
    title: str  # what the numbers are, with their unit
    case: str  # what a row is
    ours: list[str]
    peers: list[str]
    larger_is_better: bool = False
    decimals: int = 2
    rows: dict[str, dict[str, float]] = dataclasses.field(default_factory=dict)

    def columns(self) -> list[str]:
        return list(dict.fromkeys(column for row in self.rows.values() for column in row))

    def ratios(self, peer: str) -> dict[str, dict[str, float]]:
        """case -> column of ours -> how many times as fast as `peer`."""
        found: dict[str, dict[str, float]] = {}
        for case, row in self.rows.items():
            for column in self.ours:
                if column in row and peer in row:
                    ratio = row[column] / row[peer]
                    found.setdefault(case, {})[column] = ratio if self.larger_is_better else 1 / ratio
        return found


def summary(ratios: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """The geometric mean and the least of each column."""
    columns: dict[str, list[float]] = {}
    for row in ratios.values():
        for column, value in row.items():
            columns.setdefault(column, []).append(value)
    return {
        "geometric mean": {c: math.exp(math.fsum(map(math.log, v)) / len(v)) for c, v in columns.items()},
        "least": {c: min(v) for c, v in columns.items()},
    }


def table(corner: str, rows: dict[str, dict[str, float]], decimals: int, suffix: str = "") -> list[str]:
    """Lines of a table in Markdown with aligned columns; a value that is not there is a dash."""
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    cells = [[corner, *columns]]
    for name, row in rows.items():
        cells.append([name, *(f"{row[c]:.{decimals}f}{suffix}" if c in row else "-" for c in columns)])
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns) + 1)]
    lines = [[line[0].ljust(widths[0]), *(t.rjust(w) for t, w in zip(line[1:], widths[1:]))] for line in cells]
    rule = ["-" * widths[0], *("-" * (w - 1) + ":" for w in widths[1:])]
    return [f"| {' | '.join(line)} |" for line in (lines[0], rule, *lines[1:])]


def show(results: Results) -> list[str]:
    """The numbers, then for every peer how many times as fast we are."""
    lines = [results.title, "", *table(results.case, results.rows, results.decimals)]
    for peer in results.peers:
        if ratios := results.ratios(peer):
            lines += ["", f"Times as fast as {peer}", ""]
            lines += table(results.case, ratios | (summary(ratios) if len(ratios) > 1 else {}), 2, "x")
    return lines


def write_json(path: pathlib.Path, results: Results, about: dict[str, object]) -> None:
    ratios = {peer: results.ratios(peer) for peer in results.peers}
    content = about | {
        "title": results.title,
        "rows": results.rows,
        "times_as_fast": {peer: {"rows": found, **summary(found)} for peer, found in ratios.items()},
    }
    path.write_text(json.dumps(content, indent=1) + "\n")


def check_plot() -> None:
    """Fails where no picture can be drawn, before anything is measured."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise Failure("--plot needs matplotlib, which this python3 lacks (pip install matplotlib)") from None


def draw(path: pathlib.Path, results: Results, caption: str) -> None:
    """A group of bars for every row."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    columns = [c for c in results.columns() if c in results.ours + results.peers]
    figure, axes = plt.subplots(figsize=(10, 5), layout="constrained")
    width = 0.8 / len(columns)
    for i, column in enumerate(columns):
        places = [row + (i - (len(columns) - 1) / 2) * width for row in range(len(results.rows))]
        axes.bar(places, [row.get(column, math.nan) for row in results.rows.values()], width, label=column)
    axes.set_xticks(range(len(results.rows)), list(results.rows))
    axes.set_ylabel(results.title)
    axes.set_title(caption, fontsize="small")
    axes.grid(axis="y", alpha=0.3)
    axes.legend()
    figure.savefig(path)


def least(measures: dict[str, Callable[[], Value]], rounds: int, advance: Callable[[str], None]) -> dict[str, Value]:
    """The least value of each measure. Every round takes all of them in turn, so that a disturbance
    of the machine meets all alike. A pair is judged by its first number."""
    best: dict[str, Value] = {}
    for _ in range(rounds):
        for name, measure in measures.items():
            advance(name)
            value = measure()
            best[name] = min(best.get(name, value), value)
    return best
