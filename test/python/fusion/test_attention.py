# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention as one operation has the bits of the matmuls and rows that it stands for."""
import json
import subprocess

import numpy as np
import pytest
from attention import Attention

from harness import F32, Program, assert_same_bits, random_generator

SEEDS = [*range(3), *(pytest.param(seed, marks=pytest.mark.slow(one_of=24)) for seed in range(3, 60))]


def build(bin_dir, folder, text):
    folder.mkdir()
    return Program(bin_dir, folder, text, "--recipe=none")


def compare_step(bin_dir, tmp_path, program, rng):
    """Compares the results of the fused step and the written one. Returns what became of attention."""
    arrays, results = program.arrays(rng, grad=True), {}
    for form in ("written", "fused"):
        (tmp_path / form).mkdir()
        report = tmp_path / form / "report.json"
        step = Program(bin_dir, tmp_path / form, program.step(), "--recipe=none", f"--attention={form}", f"--report=json:{report}")
        results[form] = step.call("main", *arrays)
    (site,) = json.loads(report.read_text())["attention"]
    for expected, actual in zip(results["written"], results["fused"], strict=True):
        assert_same_bits(actual, expected)
    return site


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("size", ["small", "large", "long"])
def test_same_bits(bin_dir, tmp_path, size, seed):
    rng = random_generator(44, seed, len(size))
    program = Attention(rng, size)
    forward = program.arrays(rng, grad=False)
    statistics = None
    for grad in (False, True):
        arrays = forward if not grad else program.arrays(rng, True, statistics)
        written = build(bin_dir, tmp_path / f"written{grad:d}", program.written(grad)).call("main", *arrays)
        fused = build(bin_dir, tmp_path / f"fused{grad:d}", program.fused(grad)).call("main", *arrays)
        assert len(written) == len(fused) == 3
        for expected, actual in zip(written, fused):
            assert_same_bits(actual, expected)
        statistics = written[1:] if not grad else None
    # The comparison is one of numbers.
    assert program.mask in ("lengths", "window") or np.isfinite(written[0].astype(F32)).any()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("size", ["small", "large", "long"])
def test_fused_step_has_the_bits_of_the_written_one(bin_dir, tmp_path, size, seed):
    """The compiler makes one operation of matmuls and rows, forward and backward, where there are several keys."""
    rng = random_generator(45, seed, len(size))
    program = Attention(rng, size)
    site = compare_step(bin_dir, tmp_path, program, rng)
    expected = ("fused", "")
    if program.sizes["j"] == 1:
        expected = ("written", "it has one key, so that its softmax is no reduction")
    elif program.sizes["i"] == 1 and program.mask.startswith("causal"):
        expected = ("written", "its masks leave no row of numbers to evaluate")
    assert (site["decision"], site["reason"]) == expected


@pytest.mark.parametrize("queries", [2, 3])
def test_few_queries_of_padded_tokens(bin_dir, tmp_path, queries):
    """Hardly any row of those that a proof tries has several keys."""
    rng = random_generator(54, queries)
    program = Attention(rng, "small")
    program.sizes |= {"b": 2, "i": queries, "j": 31}
    program.mask = "causal_lengths"
    assert compare_step(bin_dir, tmp_path, program, rng)["reason"] == ""


def test_a_sink_of_one_query(bin_dir, tmp_path):
    """Its gradient is a sum over dimensions of size 1, which is the program's own."""
    rng = random_generator(53)
    program = Attention(rng, "small")
    program.sizes |= {"b": 1, "h": 2, "g": 3, "i": 1, "j": 13}
    program.mask, program.sink_dims = "lengths", "gh"
    assert compare_step(bin_dir, tmp_path, program, rng)["reason"] == ""


def test_no_tensor_of_scores(bin_dir, tmp_path):
    """After bufferization no buffer has as many elements as all scores, forward and backward."""
    rng = random_generator(44, 1)
    program = Attention(rng, "large")
    program.sizes |= {"b": 2, "h": 2, "g": 2, "i": 1024, "j": 1024}
    program.mask = "causal"
    for grad in (False, True):
        source = tmp_path / "program.mlir"
        source.write_text(program.fused(grad))
        pipelines = "fp8-ingest-pipeline,fp8-recipe-pipeline{recipe=none},fp8-fusion-pipeline,fp8-batching-pipeline,fp8-bufferize-pipeline"
        done = subprocess.run([bin_dir / "fp8-opt", source, f"--pass-pipeline=builtin.module({pipelines})"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        sizes = [int(np.prod([int(n) for n in buffer.split("x")[:-1]]))
                 for buffer in {line.split("memref<")[1].split(">")[0].split(",")[0] for line in done.stdout.splitlines() if "memref.alloc" in line}]
        assert sizes and max(sizes) <= 1 << 20 < 8 * 1024 * 1024
