# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""--mixed-precision on random graphs, bit for bit as the op policy says, with attributes on operations, regions, functions
and calls."""
from types import SimpleNamespace

import numpy as np
import pytest
from graphs import blocks
from mixed_graphs import LOW, Graph, rounded
from numerics import products
from test_mixed_precision import round_tf32

import reference
from harness import E4M3, F32, Program, assert_same_bits, random_generator


def multiply(a, b, *precisions):
    """A product of f32 values and its addition are rounded once; those of narrow values are exact."""
    a, b = (round_tf32(x) if precision == "tf32" else rounded(x, precision) for x, precision in zip((a, b), precisions))
    total = np.zeros((len(a), len(b)), F32)
    for k in range(a.shape[1]):
        total = products.fma(a[:, k, None], b[None, :, k], total)
    return total


def multiply_fp8(recipe):
    """The same in FP8, E4M3 throughout: casts read the operands as the policy rounds them. Delayed scaling's first step."""
    def multiply_operands(a, b, *precisions):
        operands = [round_tf32(x) if precision == "tf32" else rounded(x, precision) for x, precision in zip((a, b), precisions)]
        if recipe not in blocks.RECIPES:
            scales = [reference.current_scale(reference.amax(x), E4M3) if recipe == "current" else np.float32(1) for x in operands]
            return reference.scaled_matmul(*(reference.cast(x, scale, E4M3) for x, scale in zip(operands, scales)), *map(reference.scale_inv, scales))
        options = SimpleNamespace(recipe=recipe, eps=0, power_2_scale=recipe == "block")
        sources = [precision if precision in LOW else "f32" for precision in precisions]
        return blocks.multiply_one(options, *operands, ["E4M3"] * 2, ["input"] * 2, sources, split=False)
    return multiply_operands


def check(bin_dir, folder, seed, *options, recipe="none"):
    graph = Graph(random_generator(91, seed), multiply if recipe == "none" else multiply_fp8(recipe)).build(14)
    precision = graph.pick(["bf16", "f16", "tf32", "off"])
    options = [*options, *(["--sites=all", "--format=e4m3"] if recipe != "none" else [])]
    program = Program(bin_dir, folder, graph.text(), f"--recipe={recipe}", f"--mixed-precision={precision}", *options)
    for name, actual, wanted in zip(graph.results, program.call("main", *graph.inputs.values()), graph.evaluate(precision)):
        try:
            assert_same_bits(actual, wanted)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, {precision}, {name}: {error}") from None


@pytest.mark.parametrize("seed", range(8))
def test_some(bin_dir, tmp_path, seed):
    check(bin_dir, tmp_path, seed)


@pytest.mark.parametrize("seed, recipe", [*enumerate(["delayed", "current", "row", "block", "mxfp8"])])
def test_with_a_recipe(bin_dir, tmp_path, seed, recipe):
    check(bin_dir, tmp_path, 1000 + seed, recipe=recipe)


@pytest.mark.parametrize("seed, chip", [*enumerate(["sm_89", "sm_90a", "sm_100a", "sm_120a"])])
def test_on_a_gpu(bin_dir, tmp_path, monkeypatch, seed, chip):
    """The emulator, with sums in the order of K."""
    monkeypatch.setenv("FP8EMU_SUMS", "korder")
    check(bin_dir, tmp_path, 2000 + seed, f"--target={chip}", "--order=program")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8, 200))
def test_many(bin_dir, tmp_path, seed):
    check(bin_dir, tmp_path, seed, recipe=["none", "none", "delayed", "current", "row", "block", "mxfp8"][seed % 7])
