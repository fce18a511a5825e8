# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention as one operation has the bits of the matmuls and rows that it stands for; and matmuls that resume
the sums of others have those of one matmul.
"""
import json
import subprocess

import numpy as np
import pytest

from attention import Attention
from harness import BF16, F32, Program, assert_same_bits, random_generator, tensor_type

SEEDS = [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 60))]


def build(bin_dir, folder, text):
    folder.mkdir()
    return Program(bin_dir, folder, text, "--recipe=none")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("size", ["small", "large"])
def test_same_bits(bin_dir, tmp_path, size, seed):
    rng = random_generator(44, seed, size == "large")
    program = Attention(rng, size == "large")
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


def test_no_tensor_of_scores(bin_dir, tmp_path):
    """After bufferization no buffer has as many elements as all scores, forward and backward."""
    rng = random_generator(44, 1)
    program = Attention(rng, True)
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


@pytest.mark.parametrize("depth,cut", [(64, 32), (7, 3), (5000, 2500), (5000, 7), (4, 0), (4, 4)])
@pytest.mark.parametrize("dtype", [F32, BF16])
def test_resumed_sums(bin_dir, tmp_path, dtype, depth, cut):
    """Two matmuls of parts of K, the second one resuming the sums of the first, are one matmul."""
    rng = random_generator(44, depth, cut)
    rows, columns = 37, 53
    parts = [(cut, "a"), (depth - cut, "b")]
    arguments = ", ".join(f"%l{n}: {tensor_type((rows, k), dtype)}, %r{n}: {tensor_type((k, columns), dtype)}" for k, n in [*parts, (depth, "w")])
    maps = "indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]"
    out = tensor_type((rows, columns), F32)
    matmul = lambda name, k, n, init, words="": (f'  {name} = fp8.matmul site("{name[1:]}") role(other) kinds(input, input) kept("as it is") {words}ins(%l{n}, %r{n} : '
                                                 f"{tensor_type((rows, k), dtype)}, {tensor_type((k, columns), dtype)}) outs({init} : {out}) {{{maps}}} -> {out}\n")
    text = (f"func.func @main({arguments}) -> ({out}, {out}) {{\n  %e = tensor.empty() : {out}\n" + matmul("%first", cut, "a", "%e")
            + matmul("%both", depth - cut, "b", "%first", "resume ") + matmul("%whole", depth, "w", "%e") + f"  return %both, %whole : {out}, {out}\n}}\n")
    left, right = rng.standard_normal((rows, depth)).astype(dtype), rng.standard_normal((depth, columns)).astype(dtype)
    both, whole = build(bin_dir, tmp_path / "program", text).call("main", left[:, :cut], right[:cut], left[:, cut:], right[cut:], left, right)
    assert_same_bits(both, whole)
    assert np.any(whole)
