# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8-bench python: the Python package beside JAX and PyTorch: microseconds of a call, milliseconds of a training step."""

import argparse
import json
import os
import pathlib
import subprocess
import sys

import machine
import results
from failure import Failure

HERE = pathlib.Path(__file__).resolve().parent
TITLES = {"jax": "JAX", "torch": "PyTorch"}


def add_options(parser: argparse.ArgumentParser) -> None:
    for name, title in TITLES.items():
        parser.add_argument(
            f"--{name}-python",
            type=pathlib.Path,
            default=environment(name),
            metavar="PYTHON",
            help=f"an interpreter that has {title} (default: that of the package's tests)",
        )
    parser.add_argument("--with", dest="frameworks", default="jax,torch", metavar="NAMES", help="what to measure (default: jax,torch, those that are here)")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="rounds; the least time counts (default: 3)")
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/bin"), metavar="DIR", help="folder of fp8-compile (default: that of fp8-bench)")
    parser.add_argument("--host", default="", help=argparse.SUPPRESS)


def environment(name: str) -> pathlib.Path | None:
    """The environment that tools/setup.sh made for the tests of fp8.jax or fp8.torch, the newest of them."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    found = [p.parent for p in pathlib.Path(cache).glob(f"fp8-mlir/python/{name}-*/complete")]
    return max(found, key=lambda p: p.stat().st_mtime) / "bin/python" if found else None


def measure(options: argparse.Namespace, examples: pathlib.Path) -> list[str]:
    wanted = [name for name in options.frameworks.split(",") if name]
    if unknown := [name for name in wanted if name not in TITLES]:
        raise Failure(f"argument --with: '{unknown[0]}' is none of {', '.join(TITLES)}; see fp8-bench python --help")
    pythons = {name: getattr(options, f"{name}_python") for name in wanted}
    present = {name: python for name, python in pythons.items() if python is not None}
    if not present:
        raise Failure("there is neither JAX nor PyTorch: give --jax-python=PYTHON, or run tools/check, which makes an environment")
    processor = machine.describe(options.host or "unknown", read("/proc/cpuinfo"))
    lines = [f"{processor['name']}, {processor['cores']} cores, {processor['vectors']}; Python {sys.version.split()[0]}"]
    lines += [f"Left out: {TITLES[name]}, which is not here (--{name}-python=PYTHON)" for name in wanted if name not in present]
    for name, python in present.items():
        found = ask(name, python, options, examples)
        lines += ["", f"{TITLES[name]} {found['version']}: microseconds of a call that computes next to nothing", ""]
        lines += results.table("arrays", found["calls"], 1)
        lines += ["", "Milliseconds of a training step", "", *results.table("network", found["steps"], 1)]
    return lines


def ask(name: str, python: pathlib.Path, options: argparse.Namespace, examples: pathlib.Path) -> dict:
    """The measurements of a framework's script."""
    variables = {**os.environ, "FP8_TOOLS": str(options.bin)}
    if (sources := HERE.parents[1] / "python/src").is_dir():
        variables["PYTHONPATH"] = str(sources)
    command = [str(python), str(HERE / f"peer/{name}_package.py"), str(examples), str(options.rounds)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=variables)
    except OSError as error:
        raise Failure(f"--{name}-python={python}: {error.strerror}") from None
    if done.returncode:
        raise Failure((done.stderr.strip().splitlines() or [f"the interpreter of {TITLES[name]} failed"])[-1])
    return json.loads(done.stdout.splitlines()[-1])


def read(path: str) -> str:
    try:
        return pathlib.Path(path).read_text()
    except OSError:
        return ""
