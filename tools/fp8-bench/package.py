# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8-bench python: the Python package beside jax.jit: microseconds of a call, milliseconds of a training step."""

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


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--jax-python", type=pathlib.Path, default=environment(), metavar="PYTHON", help="an interpreter that has JAX (default: that of the package's tests)"
    )
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="rounds; the least time counts (default: 3)")
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/bin"), metavar="DIR", help="folder of fp8-compile (default: that of fp8-bench)")
    parser.add_argument("--host", default="", help=argparse.SUPPRESS)


def environment() -> pathlib.Path | None:
    """The environment that tools/setup.sh made for the tests of fp8.jax, the newest of them."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    found = [p.parent for p in pathlib.Path(cache).glob("fp8-mlir/python/jax-*/complete")]
    return max(found, key=lambda p: p.stat().st_mtime) / "bin/python" if found else None


def measure(options: argparse.Namespace, examples: pathlib.Path) -> list[str]:
    if options.jax_python is None:
        raise Failure("there is no JAX: give --jax-python=PYTHON, or run tools/check, which makes an environment")
    variables = {**os.environ, "FP8_TOOLS": str(options.bin)}
    if (sources := HERE.parents[1] / "python/src").is_dir():
        variables["PYTHONPATH"] = str(sources)
    command = [str(options.jax_python), str(HERE / "peer/jax_package.py"), str(examples), str(options.rounds)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=variables)
    except OSError as error:
        raise Failure(f"--jax-python={options.jax_python}: {error.strerror}") from None
    if done.returncode:
        raise Failure((done.stderr.strip().splitlines() or ["the interpreter of JAX failed"])[-1])
    found = json.loads(done.stdout.splitlines()[-1])
    processor = machine.describe(options.host or "unknown", read("/proc/cpuinfo"))
    about = f"{processor['name']}, {processor['cores']} cores, {processor['vectors']}; JAX {found['jax']}; Python {sys.version.split()[0]}"
    lines = [about, "", "Microseconds of a call that computes next to nothing", ""]
    lines += results.table("arrays", found["calls"], 1)
    return [*lines, "", "Milliseconds of a training step of the example GPT", "", *results.table("network", found["steps"], 1)]


def read(path: str) -> str:
    try:
        return pathlib.Path(path).read_text()
    except OSError:
        return ""
