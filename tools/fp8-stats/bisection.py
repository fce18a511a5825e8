# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds the sites whose FP8 costs the loss most: halves the set of sites until few are left."""

import argparse
import json
import math
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

from command_line import Parser
from log import Failure

DESCRIPTION = """
Trains a step once in high precision and once in FP8, with the same data. If FP8 costs some of the loss, the
search keeps half of the sites in high precision, then a half of those that matter, and so on, and prints
the --keep of fp8-compile that mends it. Each probe is a training: about 2 log2(sites) for one site.
"""
EPILOG = """
  fp8-stats bisect step.mlir --inputs=in.safetensors --steps=50 --print=loss --stream=batch=data

The loss counts over the second half of the steps. What follows -- goes to fp8-compile each time:

  fp8-stats bisect step.mlir --inputs=in.safetensors --print=loss -- --recipe=delayed --margin=1
"""


def parse(arguments: list[str]) -> argparse.Namespace:
    ours, compile_options = arguments, []
    if "--" in arguments:
        at = arguments.index("--")
        ours, compile_options = arguments[:at], arguments[at + 1 :]
    parser = Parser(prog="fp8-stats bisect", description=DESCRIPTION, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path, metavar="MODEL", help="the step, as for fp8-compile")
    parser.add_argument("--inputs", type=pathlib.Path, metavar="FILE", help="as of fp8-run")
    parser.add_argument("--stream", action="append", default=[], metavar="ARG=KEY", help="as of fp8-run; repeatable")
    parser.add_argument("--zero-missing", action="store_true", help="as of fp8-run")
    parser.add_argument("--print", required=True, metavar="R", help="the result that is the loss")
    parser.add_argument("--steps", type=int, default=50, metavar="N", help="steps of each training (default: 50)")
    parser.add_argument("--part", type=float, default=0.75, metavar="P", help="mend at least this part of the difference (default: 0.75)")
    parser.add_argument(
        "--reference", metavar="OPTIONS", help="options of fp8-compile for the step in high precision (default: what follows --, with every site kept)"
    )
    parser.add_argument("--bin", type=pathlib.Path, metavar="DIR", help="folder of fp8-compile and fp8-run (default: that of fp8-stats, or PATH)")
    options = parser.parse_args(ours)
    options.compile_options = compile_options
    if options.steps < 1 or not 0 < options.part <= 1:
        parser.error("--steps is at least 1, --part more than 0 and at most 1")
    return options


def keep_pattern(sites: list[str]) -> str:
    """The regular expression of --keep that means exactly these sites."""
    return "^(" + "|".join(re.sub(r"([][\\.*+?(){}|^$])", r"\\\1", site) for site in sorted(sites)) + ")$"


class Trainings:
    """Trains the step with some sites kept in high precision; the same set only once."""

    def __init__(self, options: argparse.Namespace, folder: pathlib.Path):
        self.options, self.folder, self.count = options, folder, 0
        self.known: dict[frozenset[str], float] = {}
        self.reference = self._train(shlex.split(options.reference) if options.reference else self._keeping("."))
        if not all(map(math.isfinite, self.reference)):
            raise Failure(f"the loss of the step in high precision is NaN or Inf within {options.steps} steps: there is nothing to compare FP8 with")
        self.sites = self._list_sites()

    def keep_option(self, pattern: str) -> str:
        """The --keep for `pattern` and what the caller keeps anyway; empty if that is nothing."""
        given = [option.removeprefix("--keep=") for option in self.options.compile_options if option.startswith("--keep=")]
        return "|".join([*given, pattern] if pattern else given)

    def _keeping(self, pattern: str) -> list[str]:
        keep = self.keep_option(pattern)
        return [option for option in self.options.compile_options if not option.startswith("--keep=")] + [f"--keep={keep}"] * bool(keep)

    def _tool(self, name: str) -> str:
        places = [self.options.bin] if self.options.bin else [pathlib.Path(sys.argv[0]).parent, pathlib.Path(sys.argv[0]).resolve().parents[2] / "build/bin"]
        found = next((str(place / name) for place in places if (place / name).exists()), None) or shutil.which(name)
        if not found:
            raise Failure(f"there is no {name}: say where with --bin=DIR")
        return found

    def _call(self, name: str, *arguments: object) -> str:
        done = subprocess.run([self._tool(name), *map(str, arguments)], capture_output=True, text=True)
        if done.returncode:
            lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            raise Failure(f"{name} failed: {next((line for line in lines if 'error' in line), lines[-1])}")
        return done.stdout

    def _list_sites(self) -> list[str]:
        self._call("fp8-compile", self.options.model, "-o", self.folder / "step.so", *self.options.compile_options, f"--report=json:{self.folder / 'report'}")
        entries = json.loads((self.folder / "report").read_text())["sites"]
        return list(dict.fromkeys(entry["site"] for entry in entries if entry["decision"] == "fp8"))

    def _train(self, compile_options: list[str]) -> list[float]:
        options, library = self.options, self.folder / "step.so"
        self._call("fp8-compile", options.model, "-o", library, *compile_options)
        arguments = [f"--inputs={options.inputs}"] * bool(options.inputs) + [f"--stream={stream}" for stream in options.stream]
        arguments += ["--zero-missing"] * options.zero_missing
        text = self._call("fp8-run", library, f"--steps={options.steps}", f"--print={options.print}", *arguments)
        return [float(line.split("\t")[1]) for line in text.splitlines()]

    def cost(self, kept: frozenset[str]) -> float:
        """How far the mean loss of the second half is from the reference's."""
        if kept not in self.known:
            losses, half = self._train(self._keeping(keep_pattern(list(kept)) if kept else "")), self.options.steps // 2
            mean = sum(a - b for a, b in zip(losses[half:], self.reference[half:], strict=True)) / len(losses[half:])
            self.known[kept] = abs(mean) if math.isfinite(mean) else math.inf
            self.count += 1
            print(f"[{self.count}] {len(kept)} of {len(self.sites)} sites kept: {self.known[kept]:.4g} off", file=sys.stderr, flush=True)
        return self.known[kept]


def search(trainings: Trainings, sites: list[str], kept: frozenset[str], limit: float) -> list[str]:
    """The sites of `sites` that must be kept, beside `kept`, for a cost of at most `limit`; all of them together do."""
    if len(sites) == 1:
        return sites
    first, second = sites[: len(sites) // 2], sites[len(sites) // 2 :]
    costs = [trainings.cost(kept | set(half)) for half in (first, second)]
    best = costs.index(min(costs))
    if costs[best] <= limit:
        return search(trainings, (first, second)[best], kept, limit)
    # Neither half is enough: some sites of each.
    found = search(trainings, first, kept | set(second), limit)
    return found + search(trainings, second, kept | set(found), limit)


def run(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        trainings = Trainings(options, pathlib.Path(folder))
        if not trainings.sites:
            raise Failure("the program has no site in FP8 with these options")
        everything, nothing = trainings.cost(frozenset()), trainings.cost(frozenset(trainings.sites))
        limit = nothing + (1 - options.part) * (everything - nothing) if math.isfinite(everything) else nothing + abs(trainings.reference[-1])
        if not everything > nothing:
            print("FP8 does not cost any of the loss here: nothing to keep")
            return
        found = search(trainings, trainings.sites, frozenset(), limit)
        mended = trainings.cost(frozenset(found))
    print(f"FP8 is {everything:.4g} off the loss in high precision; with these {len(found)} of {len(trainings.sites)} sites kept {mended:.4g}:")
    print(f"--keep={shlex.quote(trainings.keep_option(keep_pattern(found)))}")
