# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A page about a log that needs nothing else: no script, no file beside it, no network."""

import html
import math
import pathlib

import tables
from log import Failure, Log, Tensor

STYLE = """
body { font: 14px system-ui, sans-serif; margin: 2em auto; max-width: 1100px; padding: 0 1em; color: #222; background: #fff }
h2 { margin-top: 2em } table { border-collapse: collapse } svg { max-width: 100%; height: auto; font: 11px system-ui, sans-serif }
td, th { padding: 2px 10px 2px 0; text-align: left; border-bottom: 1px solid #ddd; font-variant-numeric: tabular-nums }
.why { color: #a40000 } .note { color: #666 } details { margin: 0.4em 0 }
"""
WIDTH, HEIGHT, LEFT = 1000, 180, 70
CELLS = 200  # columns of a heat map: steps are joined, the largest counts
POINTS = 500  # of a curve: steps are joined, the least and the largest are drawn


def polyline(points: list[tuple[float, float]], color: str) -> str:
    text = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{text}" fill="none" stroke="{color}" stroke-width="1.5"/>'


def thin(curve: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """The curve as it looks at the width of the page."""
    joined = -(-2 * len(curve) // POINTS)
    if joined <= 2:
        return curve
    groups = [curve[i : i + joined] for i in range(0, len(curve), joined)]
    return [point for group in groups for point in sorted({min(group, key=lambda p: p[1]), max(group, key=lambda p: p[1])})]


def chart(curves: dict[str, list[tuple[int, float]]], logarithmic: bool = False) -> str:
    """Lines over steps, with the least and the largest value at the axis."""
    colors = ["#0b62a4", "#c0392b", "#2e8b57"]
    transform = math.log2 if logarithmic else float
    shown = {name: [(x, transform(y)) for x, y in curve if math.isfinite(y) and (y > 0 or not logarithmic)] for name, curve in curves.items()}
    every = [point for curve in shown.values() for point in curve]
    if not every:
        return ""
    (x0, x1), (y0, y1) = ((min(axis), max(axis)) for axis in zip(*every, strict=True))

    def place(point: tuple[float, float]) -> tuple[float, float]:
        x, y = point
        return (LEFT + (WIDTH - LEFT - 10) * ((x - x0) / (x1 - x0) if x1 > x0 else 0.5), 10 + (HEIGHT - 40) * (1 - ((y - y0) / (y1 - y0) if y1 > y0 else 0.5)))

    label = (lambda y: f"2^{y:.1f}") if logarithmic else (lambda y: f"{y:.4g}")
    parts = [polyline([place(p) for p in thin(curve)], color) for curve, color in zip(shown.values(), colors, strict=False) if curve]
    parts += [f'<text x="{LEFT - 8}" y="{y}" text-anchor="end">{label(value)}</text>' for y, value in ((14, y1), (HEIGHT - 28, y0))]
    parts += [
        f'<text x="{x}" y="{HEIGHT - 8}" text-anchor="{anchor}">{text}</text>' for x, anchor, text in ((LEFT, "start", f"step {x0}"), (WIDTH - 10, "end", x1))
    ]
    parts += [
        f'<text x="{LEFT + 10 + 120 * i}" y="{HEIGHT - 8}" dx="100" fill="{colors[i]}">{html.escape(name)}</text>'
        for i, name in enumerate(shown)
        if len(shown) > 1
    ]
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{"".join(parts)}</svg>'


def heat_map(tensors: list[Tensor], key: str) -> str:
    """A row for each tensor, a cell for each step; the darker, the more elements are lost."""
    rows = [(tensor, dict(zip(tensor.steps, tensor.values[key], strict=True))) for tensor in tensors if tensor.largest(key)]
    if not rows:
        return '<p class="note">None.</p>'
    steps = sorted({step for _, values in rows for step in values})
    joined = -(-len(steps) // CELLS)
    groups = [steps[i : i + joined] for i in range(0, len(steps), joined)]
    names, height = 260, 14
    size = (WIDTH - names) / len(groups)
    cells = []
    for y, (tensor, values) in enumerate(rows):
        cells.append(f'<text x="{names - 8}" y="{y * height + 11}" text-anchor="end">{html.escape(tensor.name[-44:])}</text>')
        for x, group in enumerate(groups):
            value = max((values.get(step) or 0.0 for step in group), default=0.0)
            if value > 0:
                # Logarithmic: from one in a million to all.
                dark = min(1.0, max(0.08, 1 + math.log10(value) / 6))
                cells.append(
                    f'<rect x="{names + x * size:.2f}" y="{y * height}" width="{size + 0.2:.2f}" height="{height - 1}" fill="#c0392b" '
                    f'fill-opacity="{dark:.2f}"><title>step {group[0]}: {100 * value:.3g}%</title></rect>'
                )
    return f'<svg viewBox="0 0 {WIDTH} {len(rows) * height}" role="img">{"".join(cells)}</svg>'


def table(log: Log) -> str:
    head = "".join(f"<th>{name}</th>" for name in tables.HEADER)

    def line(tensor: Tensor) -> str:
        *cells, why = map(html.escape, tables.row(tensor))
        return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + f'<td class="why">{why}</td></tr>'

    return f"<table><tr>{head}</tr>{''.join(map(line, log.by_need()))}</table>"


def details(tensor: Tensor) -> str:
    def curve(key: str) -> list[tuple[int, float]]:
        return [(step, value) for step, value in zip(tensor.steps, tensor.values[key], strict=True) if value is not None]

    sites = html.escape(", ".join(tensor.sites))
    return (
        f"<details><summary>{html.escape(tensor.name)}</summary><p class='note'>{sites}</p>"
        f"{chart({'amax': curve('amax'), 'scale': curve('scale')}, logarithmic=True)}</details>"
    )


def render(log: Log) -> str:
    title = html.escape(log.source.name)
    bad = html.escape(tables.results_without_numbers(log))
    result = f"<h2>Result of the step</h2><p class='why'>{bad}</p>{chart({'result': sorted(log.printed.items())})}" if log.printed else ""
    ordered = log.by_need()
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style></head><body>
<h1>{title}</h1>{result}
<h2>Tensors, those that need attention first</h2>
<p class="note">Last amax and scale; largest underflow, overflow and mean square error (relative to the mean square) of all steps.</p>
{table(log)}
<h2>Underflow: elements that became 0</h2>{heat_map(ordered, "underflow")}
<h2>Overflow: elements that were cut off</h2>{heat_map(ordered, "overflow")}
<h2>Amax and scale</h2>{"".join(map(details, ordered))}
</body></html>
"""


def write(log: Log, path: pathlib.Path) -> None:
    try:
        path.write_text(render(log), encoding="utf-8")
    except OSError as error:
        raise Failure(f"--html={path}: {error.strerror}") from None
