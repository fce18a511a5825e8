# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The output for the user: a progress line, rows of losses, the report's summary, the curves."""

import collections
import json
import re
import subprocess
import sys
import time

BAR = 30


class Progress:
    """One line that is redrawn in place; where output is no terminal, only rows are printed."""

    def __init__(self, label):
        self.label, self.start, self.drawn = label, time.monotonic(), 0.0
        self.live = sys.stdout.isatty()

    def draw(self, done, total, note=""):
        now = time.monotonic()
        if not self.live or (now - self.drawn < 0.1 and done < total):
            return
        self.drawn = now
        full = BAR * done // total
        bar = "#" * full + "." * (BAR - full)
        print(f"\r\033[K{self.label} [{bar}] {done}/{total} {note}", end="", flush=True)

    def row(self, text):
        print(("\r\033[K" if self.live else "") + text, flush=True)

    def finish(self, text):
        self.row(f"{text} ({time.monotonic() - self.start:.1f} s)")


def layers_together(names):
    """["h0/qkv", "h1/qkv", "head"] -> "h*/qkv, head": the layer's number is left out."""
    return ", ".join(dict.fromkeys(re.sub(r"^(\D+)\d+/", r"\1*/", name) for name in names))


def summary(path):
    """Lines on the contractions of a report: found, in FP8, kept and why."""
    with open(path) as file:
        sites = json.load(file)["sites"]
    fp8 = [s for s in sites if s["decision"] == "fp8"]
    roles = collections.Counter(s["role"] for s in fp8)
    kept = collections.defaultdict(list)
    for s in sites:
        if s["decision"] != "fp8":
            kept[s["reason"]].append(s["site"])
    yield f"{len(sites):4} contractions found"
    yield f"{len(fp8):4} in FP8: " + ", ".join(f"{n} {role}" for role, n in roles.items())
    yield f"          {layers_together(s['site'] for s in fp8)}"
    for reason, names in kept.items():
        yield f"{len(names):4} kept: {reason}"
        yield f"          {layers_together(names)}"


def instructions(path):
    """Lines on the code of a report's products: the instruction, and the sites that it computes."""
    with open(path) as file:
        sites = json.load(file)["sites"]
    by_code = collections.defaultdict(list)
    for s in sites:
        by_code[s["code"].partition(";")[0]].append(s["site"])
    copies = sum("copied first" in s["code"] for s in sites)
    yield "Instructions of the products:"
    for code, names in by_code.items():
        yield f"{len(names):4} {code}"
        yield f"          {layers_together(names)}"
    if copies:
        yield f"     of all products, {copies} read a copy of an operand, which lies otherwise in memory"


def launches(path):
    """Lines on the kernels of a profile: how many, and how often a step launches them, by kind."""
    with open(path) as file:
        profile = json.load(file)
    run = [kernel for kernel in profile["kernels"] if kernel["calls"]]
    yield f"{len(run)} kernels, {profile['step']['calls']} launches per step:"
    for kind in profile["kinds"]:
        if kind["calls"]:
            yield f"{kind['calls']:6.0f} {kind['name']}"


def picture(path, table):
    """Draws columns 2 and 3 of `table` over column 1."""
    script = f"""
        set terminal pngcairo size 900,540 font ',12'
        set output '{path}'
        set title 'A byte-level GPT, trained in bf16 and in FP8'
        set xlabel 'step'
        set ylabel 'loss (nats per byte)'
        set grid
        set key top right
        plot '{table}' using 1:2 with lines lw 3 lc rgb '#9ecae1' title 'bf16', \\
             '' using 1:3 with lines lw 1.5 lc rgb '#d94801' title 'FP8, delayed scaling'
    """
    subprocess.run(["gnuplot"], input=script, text=True, check=True, capture_output=True)
