# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The project's own tests that can run on a GPU: the runtime's, and those of kernels by pytest, beside the emulator."""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from rows import LeftOut, Place, Row, attempt

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "test/python/gpu"
FILES = ("test_history", "test_rows", "test_casts", "test_products_blocks")
PRODUCTS = {"sm_90a": "test_products_wgmma", "sm_100a": "test_products_tcgen05"}
QUICK = FILES[:1]


def runtime(place: Place) -> dict[str, Any]:
    program = pathlib.Path(str(place.build), "bin/fp8rt-device-test")
    if not program.is_file():
        raise LeftOut(f"{program} is not built")
    command = [program, *(["--gtest_filter=*Tensor*"] if place.quick else [])]
    done = subprocess.run(command, env={**os.environ, "FP8RT_TEST_DEVICE": place.device}, capture_output=True, text=True)
    return counts(done, r"\[  PASSED  \] (\d+)", r"\[  FAILED  \] (\d+) test")


def kernels(place: Place, name: str) -> dict[str, Any]:
    """With FP8EMU_TEST_CUDA=1 a kernel runs on the GPU too, and must give the bits of the emulator."""
    if not importlib.util.find_spec("pytest"):
        raise LeftOut(f"needs pytest, which {sys.executable} lacks")
    spread = ["-n", "auto"] if importlib.util.find_spec("xdist") and not place.quick else []
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--build={place.build}", *spread, FOLDER / f"{name}.py"]
    variables = {**os.environ, **({"FP8EMU_TEST_CUDA": "1"} if place.device == "cuda" else {})}
    done = subprocess.run(command, env=variables, cwd=ROOT, capture_output=True, text=True)
    return counts(done, r"(\d+) passed", r"(\d+) (?:failed|error)")


def counts(done: "subprocess.CompletedProcess[str]", passed: str, failed: str) -> dict[str, Any]:
    numbers = [int(found[1]) if (found := re.search(pattern, done.stdout)) else 0 for pattern in (passed, failed)]
    if done.returncode and not any(numbers):
        said = (done.stderr or done.stdout).strip().splitlines()
        raise RuntimeError(said[-1] if said else f"it ended with code {done.returncode}")
    return {"ok": done.returncode == 0 and numbers[0] > 0, "passed": numbers[0], "failed": numbers[1]}


def run(place: Place) -> Iterator[Row]:
    if place.build is None:
        raise LeftOut("needs --build")
    yield attempt("runtime", runtime, place)
    for name in QUICK if place.quick else (PRODUCTS.get(place.chip, "test_products"), *FILES):
        yield attempt(name, kernels, place, name)
