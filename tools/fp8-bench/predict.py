# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8-bench predict: the time of a training step on a GPU, predicted without one, and where it goes.

fp8-compile counts the kernels of the step and predicts their times; nothing runs.
"""

import argparse
import collections
import json
import pathlib
import tempfile
from typing import Any

import kernels
import results
from failure import Failure
from readers import positive

TERMS = {"memory": "memory", "l2": "L2", "tensor": "tensor", "issue": "issue", "latency": "latency"}
ABOUT = """\
The time of a kernel is the longest of memory (each of its tensors once), L2 (operands of matmuls, tile by tile) and tensor cores
with the instructions behind them (issue), then the epilogues (latency). Its floor: 2 M N K at the chip's rate, or each tensor once
at the rate of the memory. Lost: the time above the floor, by the term that takes it; all in milliseconds of a step."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("program", type=pathlib.Path, metavar="MODEL.mlir", help="a program for fp8-compile")
    parser.add_argument("--target", default="sm_90a", metavar="LIST", help="chips: " + ",".join(kernels.CHIPS) + " (default: sm_90a)")
    parser.add_argument("--recipe", default="delayed", help="recipe of fp8-compile (default: delayed)")
    parser.add_argument("--entry", metavar="NAME", help="the function that is the step (default: main, or the only one)")
    parser.add_argument("--kernels", type=positive(int), default=12, metavar="N", help="the kernels that take longest (default: 12)")
    parser.add_argument("--option", action="append", default=[], metavar="OPTION",
                        help="one more option of fp8-compile, as --option=--attention=written; may be repeated")
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/bin"), metavar="DIR", help="folder of fp8-compile")
    parser.add_argument("--host", default="", help=argparse.SUPPRESS)


def compile_steps(tools: pathlib.Path, program: pathlib.Path, chip: str, *options: str) -> list[dict[str, Any]]:
    """The predicted steps of the compiler's report, one for each entry point."""
    with tempfile.TemporaryDirectory(prefix="fp8-bench-") as scratch:
        report = pathlib.Path(scratch) / "report.json"
        kernels.call(tools / "fp8-compile", program, "-o", f"{scratch}/kernels.mlir", "--emit=kernels", f"--target={chip}", f"--report=json:{report}", *options)
        return json.loads(report.read_text())["predicted_steps"]


def choose(steps: list[dict[str, Any]], entry: str | None) -> dict[str, Any]:
    """The step called `entry`; without a name main, or the only one."""
    found = {step["entry"]: step for step in steps}
    name = entry or ("main" if "main" in found else next(iter(found)) if len(found) == 1 else None)
    if name is None:
        raise Failure(f"the program has several entry points: say which one is the step by --entry={'|'.join(found)}")
    if name not in found:
        raise Failure(f"argument --entry: '{name}' is none of {', '.join(found)}")
    return found[name]


def losses(lines: list[dict[str, Any]]) -> dict[str, float]:
    """The columns of a row for these kernels, in milliseconds of a step."""

    def sum_up(read: Any) -> float:
        return sum(line["launches"] * read(line["microseconds"]) for line in lines) / 1000

    cells = {"ms": sum_up(lambda time: time["total"]), "floor": sum_up(lambda time: time["floor"])}
    for term, title in TERMS.items():
        cells[f"lost to {title}"] = sum_up(lambda time, term=term: time["lost"][term])
    return cells


def label(name: str, lines: list[dict[str, Any]]) -> str:
    return f"{name} x {sum(line['launches'] for line in lines)}"


def show(chip: str, step: dict[str, Any], most: int) -> list[str]:
    """The tables of a step, and its time."""
    known = [kernel for kernel in step["kernels"] if kernel["microseconds"]]
    kinds = collections.defaultdict(list)
    for kernel in known:
        kinds[kernel["kind"]].append(kernel)
    by_time = sorted(known, key=lambda kernel: kernel["launches"] * kernel["microseconds"]["total"], reverse=True)
    slowest = sorted(kinds.items(), key=lambda kind: losses(kind[1])["ms"], reverse=True)
    rows = {label(kind, lines): losses(lines) for kind, lines in slowest} | {label("all", known): losses(known)}
    decimals = 2 if step["microseconds"] > 10_000 else 3
    lines = [f"{step['entry']} on {chip}", "", *results.table("kind of kernel x launches", rows, decimals), ""]
    lines += results.table("kernel x launches", {label(kernel["name"], [kernel]): losses([kernel]) for kernel in by_time[:most]}, decimals)
    if len(by_time) > most:
        lines.append(f"and {len(by_time) - most} more (--kernels=N)")
    lines += ["", f"gaps: {step['gap_microseconds'] / 1000:.{decimals}f} ms between {step['launches']} launches of a graph"]
    if step["unknown_launches"]:
        lines.append(f"left out: {step['unknown_launches']} launches, whose sizes are known only when the step runs")
    lines.append(f"floor: {step['floor_microseconds'] / 1000:.{decimals}f} ms, by the step's matmuls at the chip's rate, or its arguments and results once")
    return [*lines, f"step: {step['microseconds'] / 1000:.{decimals}f} ms predicted on {chip}"]


def measure(options: argparse.Namespace, examples: pathlib.Path) -> list[str]:
    """The lines to print."""
    lines = [ABOUT]
    for chip in options.target.split(","):
        if chip not in kernels.CHIPS:
            raise Failure(f"argument --target: '{chip}' is none of {', '.join(kernels.CHIPS)}; see fp8-bench predict --help")
        steps = compile_steps(options.bin, options.program, chip, f"--recipe={options.recipe}", *options.option)
        lines += ["", *show(chip, choose(steps, options.entry), options.kernels)]
    return lines
