# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A picture of a log: the result of each step, scales, and the elements that are lost."""

import pathlib
import shutil
import subprocess
from collections.abc import Callable

from log import Failure, Log, Tensor

Points = list[tuple[int, float]]
MOST = 12  # curves in a panel, of the tensors that need attention most


def points(tensor: Tensor, key: str) -> Points:
    return [(step, value) for step, value in zip(tensor.steps, tensor.values[key], strict=True) if value is not None]


def panels(log: Log) -> list[tuple[str, bool, list[tuple[str, Points]]]]:
    """Title, whether its axis is logarithmic, and curves; panels without any are left out."""
    some = log.by_need()[:MOST]

    def curves(key: str, keep: Callable[[float], bool] = lambda value: True) -> list[tuple[str, Points]]:
        found = [(tensor.name, [p for p in points(tensor, key) if keep(p[1])]) for tensor in some]
        return [curve for curve in found if curve[1]]

    result = [("result", sorted(log.printed.items()))] if log.printed else []
    every = [
        ("result of the step", False, result),
        ("scale", True, curves("scale", lambda value: value > 0)),
        ("underflow: fraction of the elements", False, curves("underflow")),
        ("overflow: fraction of the elements", False, curves("overflow")),
    ]
    return [panel for panel in every if panel[2]]


def with_matplotlib(log: Log, path: pathlib.Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = panels(log)
    figure, axes = pyplot.subplots(len(shown), 1, figsize=(10, 3 * len(shown)), sharex=True, squeeze=False, layout="constrained")
    for axis, (title, logarithmic, curves) in zip(axes[:, 0], shown, strict=True):
        for name, curve in curves:
            axis.plot(*zip(*curve, strict=True), label=name, linewidth=1)
        axis.set_title(title, loc="left")
        if logarithmic:
            axis.set_yscale("log", base=2)
        if len(curves) > 1:
            axis.legend(fontsize=6, loc="center left", bbox_to_anchor=(1, 0.5))
    axes[-1, 0].set_xlabel("step")
    figure.savefig(path, dpi=120)


def gnuplot_script(log: Log, path: pathlib.Path) -> str:
    shown = panels(log)

    def quoted(text: str) -> str:
        return "'" + text.replace("'", "''") + "'"

    lines = [
        f"set terminal pngcairo size 1200,{360 * len(shown)} noenhanced",
        f"set output {quoted(str(path))}",
        f"set multiplot layout {len(shown)},1",
        "set key outside right font ',8'",
    ]
    for title, logarithmic, curves in shown:
        lines += [f"set title {quoted(title)}", "set logscale y 2" if logarithmic else "unset logscale y"]
        for i, (_, curve) in enumerate(curves):
            lines += [f"$curve{i} << END", *(f"{step} {value!r}" for step, value in curve), "END"]
        lines.append("plot " + ", ".join(f"$curve{i} with lines title {quoted(name)}" for i, (name, _) in enumerate(curves)))
    return "\n".join([*lines, "unset multiplot", ""])


def draw(log: Log, path: pathlib.Path) -> None:
    """Writes a PNG with matplotlib, or with gnuplot if there is none."""
    if not panels(log):
        raise Failure(f"--plot={path}: {log.source} has nothing to draw")
    try:
        with_matplotlib(log, path)
    except ImportError:
        if not shutil.which("gnuplot"):
            raise Failure(f"--plot={path}: install matplotlib or gnuplot") from None
        done = subprocess.run(["gnuplot"], input=gnuplot_script(log, path), capture_output=True, text=True)
        if done.returncode:
            raise Failure(f"--plot={path}: gnuplot failed: {done.stderr.strip().splitlines()[-1]}") from None
    except OSError as error:
        raise Failure(f"--plot={path}: {error.strerror}") from None
