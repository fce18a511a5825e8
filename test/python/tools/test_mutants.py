# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""No program crashes the compiler: mutants/mutants.py says which, and runs more of them."""

import pathlib
import random
import subprocess

import pytest
from mutants import mutants

from harness import SEED

HALF_COMPLETE = pathlib.Path(mutants.__file__).with_name("half_complete.mlir").read_text().split("// -----")


@pytest.mark.parametrize("pipeline", list(mutants.pipelines()))
def test_half_complete_programs(pipeline, bin_dir):
    assert mutants.crashes(bin_dir, pipeline, HALF_COMPLETE) == []


@pytest.mark.parametrize("options", [[], ["--recipe=current"], ["--recipe=none"]])
def test_compiling_half_complete_programs(options, bin_dir, tmp_path):
    for program in HALF_COMPLETE:
        command = [bin_dir / "fp8-compile", "-", "-o", tmp_path / "out.so", *options]
        done = subprocess.run(command, input=program, capture_output=True, text=True)
        assert done.returncode in (0, 1), program + done.stderr
        assert done.returncode == 0 or "error: " in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("number", range(50))
def test_mutants(number, bin_dir):
    print(f"FP8_TEST_SEED={SEED}")
    rng = random.Random(SEED + number)
    seeds = mutants.read_seeds(bin_dir)
    programs = [mutants.mutate(rng, rng.choice(seeds)) for _ in range(200)]
    assert mutants.crashes(bin_dir, rng.choice(list(mutants.pipelines())), programs) == []
