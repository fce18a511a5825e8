# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8-compile and fp8-run as a user calls them; values for the arguments of programs."""

import array
import dataclasses
import pathlib
import random
import re
import resource
import subprocess
import time
from typing import Any

from failure import Failure

Tensor = tuple[str, tuple[int, ...], Any]  # type, shape and data, as tensors.write takes them

TIMING = re.compile(r"ms per step: mean [0-9.]+, min ([0-9.]+)")


@dataclasses.dataclass
class Tools:
    bin: pathlib.Path  # the folder of fp8-compile and fp8-run
    scratch: pathlib.Path  # an empty folder; the caller deletes it
    cpu: str = "native"
    sums: str = "exact"

    def version(self) -> str:
        return self._call("fp8-compile", "--version").stdout.split()[-1]

    def compile(self, source: pathlib.Path, recipe: str, *options: str) -> tuple[pathlib.Path, tuple[float, float]]:
        """The library of a program, and seconds by the clock and of processor time in user mode.
        Nothing is taken from a cache."""
        library = self.scratch / f"{source.stem}.{len(list(self.scratch.iterdir()))}.so"
        before, begin = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime, time.perf_counter()
        self._call(
            "fp8-compile", str(source), "-o", str(library), "--no-cache", f"--recipe={recipe}", f"--cpu={self.cpu}",
            f"--sums={self.sums}", *options
        )
        wall = time.perf_counter() - begin
        return library, (wall, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)

    def run(self, library: pathlib.Path, inputs: pathlib.Path, steps: int) -> float:
        """Seconds of the fastest of `steps` steps."""
        done = self._call("fp8-run", str(library), f"--inputs={inputs}", "--zero-missing", f"--steps={steps}", "--timing")
        found = TIMING.search(done.stderr + done.stdout)
        if not found:
            raise Failure(f"fp8-run --timing printed no time: {done.stderr.strip()!r}")
        return float(found[1]) / 1000

    def _call(self, tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        try:
            done = subprocess.run([str(self.bin / tool), *arguments], capture_output=True, text=True)
        except OSError as error:
            raise Failure(f"{tool} does not run: {error.strerror}: {self.bin / tool}") from None
        if done.returncode:
            reason = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[0]
            raise Failure(f"{tool} failed: {reason}")
        return done


@dataclasses.dataclass
class Program:
    """A compiled step with its inputs."""

    tools: Tools
    library: pathlib.Path
    inputs: pathlib.Path
    last: float = 0.0  # seconds of a step when it was measured last

    def seconds(self, at_least: float) -> float:
        """Seconds of the fastest step of a run of `at_least` seconds and of five steps."""
        if not self.last:
            self.last = self.tools.run(self.library, self.inputs, 3)
        steps = min(10_000, max(5, round(at_least / max(self.last, 1e-5))))
        self.last = self.tools.run(self.library, self.inputs, steps)
        return self.last


def values(shape: tuple[int, ...], deviation: float, kind: str = "F32", first: float | None = None) -> Tensor:
    """A tensor in F32 or BF16 of numbers from a fixed seed, the first one replaced by `first`. 65,521 of them
    (a prime) are repeated: the speed of a product depends on the size of its operands at most."""
    count = 1
    for size in shape:
        count *= size
    draw = random.Random(0)
    few = array.array("f", (draw.gauss(0.0, deviation) for _ in range(min(count, 65_521))))
    data = (few * (count // max(len(few), 1) + 1))[:count]
    if first is not None:
        data[0] = first
    if kind == "BF16":
        return kind, shape, array.array("H", data.tobytes())[1::2]
    return kind, shape, data


def integers(shape: tuple[int, ...], below: int) -> Tensor:
    """A tensor of random int32."""
    count, draw = 1, random.Random(0)
    for size in shape:
        count *= size
    return "I32", shape, array.array("i", (draw.randrange(below) for _ in range(count)))
