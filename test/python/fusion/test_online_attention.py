# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention on GPUs as one operation is as exact as the matmuls and rows that it stands for."""
import copy
import json

import numpy as np
import pytest
from attention import Attention

from harness import BF16, F16, F32, Program, random_generator

CHIPS = ["sm_89", "sm_90a", "sm_100a", "sm_120a"]
SEEDS = [*range(4), *(pytest.param(seed, marks=pytest.mark.slow(one_of=16)) for seed in range(4, 100))]
# The error of fused attention is at most this times the error of the written-out program. Its gradients of scores
# hold the rounding of the output, whose products with the output's gradient stand for a sum over keys. That fades with
# the number of keys; for rows of few keys it counts as one unit in the last place of the output's type.
RATIO = 1.5
FEW_KEYS = 16


def build(bin_dir, folder, text, *options):
    folder.mkdir()
    return Program(bin_dir, folder, text, "--recipe=none", f"--report=json:{folder / 'report.json'}", *options)


def report(program):
    return json.loads((program.folder / "report.json").read_text())["attention"]


def rms(values):
    return float(np.sqrt(np.mean(np.square(values)))) if values.size else 0.0


def random_step(seed):
    rng = random_generator(46, seed)
    program = Attention(rng, "small")
    program.sizes |= {"i": int(rng.integers(2, 140)), "j": int(rng.integers(3, 140)), "d": 8 * int(rng.integers(1, 7)),
                      "e": 8 * int(rng.integers(1, 7))}
    program.operand = program.probability = (BF16, F16)[seed % 2]
    program.result = F32 if program.result == F32 else program.operand
    program.scale = 0.25  # probabilities of several keys
    program.divides = False
    program.has_bias_gradient = "i" in program.bias_dims  # kernels do not sum over queries
    return rng, program


@pytest.mark.parametrize("seed", SEEDS)
def test_error(bin_dir, tmp_path, seed):
    """Against the same program in f32, whose operands are the same numbers. Rows that see no key are NaN in all."""
    rng, program = random_step(seed)
    arrays = program.arrays(rng, grad=True)
    exact = copy.copy(program)
    exact.operand = exact.score = exact.probability = exact.result = F32
    wide = [array.astype(F32) if array.dtype in (BF16, F16) else array for array in arrays]
    expected = build(bin_dir, tmp_path / "exact", exact.step(), "--attention=written").call("main", *wide)
    results = {}
    for form in ("written", "fused"):
        step = build(bin_dir, tmp_path / form, program.step(), f"--attention={form}", f"--target={CHIPS[seed // 2 % 4]}")
        results[form] = step.call("main", *arrays)
    (site,) = report(step)
    assert (site["decision"], site["reason"]) == ("fused", "")
    # Rows that see one key have gradients of scores that are the difference of two equal sums in f32, of about the
    # output's size: the two orders of a sum leave a few units of 2**-24, not always 0.
    has_few_keys = min(program.sizes["i"], program.sizes["j"]) < FEW_KEYS
    rounding = 2**-20 * max(rms(right[~np.isnan(right)]) for right in expected)
    for number, (written, fused, right) in enumerate(zip(results["written"], results["fused"], expected, strict=True)):
        missing = np.isnan(right)
        assert (np.isnan(fused.astype(F32)) == missing).all() and (np.isnan(written.astype(F32)) == missing).all()
        errors = [rms((values.astype(float) - right)[~missing]) for values in (fused, written)]
        # Results that are exact when written out may differ by half a unit in the last place of f16.
        least = 2**-12 * rms(right[~missing]) + rounding
        # The gradients of sinks are few numbers, whose errors may be 0 by chance: those of the output and its gradient
        # count, half a unit in the last place of 8 or 11 bits each.
        if program.sink_dims and number + 1 == len(expected):
            least += (2**-8 if program.operand == BF16 else 2**-11) * rms(right[~missing])
        if has_few_keys:
            least += {BF16: 2**-7, F16: 2**-10, F32: 0}[program.result] * rms(right[~missing])
        assert errors[0] <= RATIO * errors[1] + least, errors


def test_output_with_fewer_digits_than_operands(bin_dir, tmp_path):
    """The gradients would have the output's error: such a backward pass stays written out."""
    rng, program = random_step(1)
    program.operand, program.result = F16, BF16
    step = build(bin_dir, tmp_path / "step", program.step(), "--target=sm_90a")
    assert "its output has fewer digits than its operands" in report(step)[0]["reason"]


def test_gradient_of_a_bias_that_queries_share(bin_dir, tmp_path):
    rng, program = random_step(2)
    program.mask, program.bias_dims, program.has_bias_gradient = "bias", "j", True
    step = build(bin_dir, tmp_path / "step", program.step(), "--target=sm_90a")
    assert "sums gradients of scores over its queries" in report(step)[0]["reason"]


DYNAMIC = """
#q = affine_map<(b, h, i, j, d) -> (b, i, h, d)>
#k = affine_map<(b, h, i, j, d) -> (b, j, h, d)>
#s = affine_map<(b, h, i, j, d) -> (b, h, i, j)>
#p = affine_map<(b, h, i, j, d) -> (b, h, i, j)>
func.func @main(%q: tensor<2x?x3x16xbf16>, %k: tensor<2x?x3x16xbf16>, %v: tensor<2x?x3x16xbf16>) -> tensor<2x?x3x16xbf16> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %scale = arith.constant 0.25 : f32
  %one = arith.constant 1 : index
  %n = tensor.dim %q, %one : tensor<2x?x3x16xbf16>
  %m = tensor.dim %k, %one : tensor<2x?x3x16xbf16>
  %scores = tensor.empty(%n, %m) : tensor<2x3x?x?xf32>
  %rows = tensor.empty(%n) : tensor<2x3x?xf32>
  %s = fp8.matmul site("h0") role(other) kinds(input, input) ins(%q, %k : tensor<2x?x3x16xbf16>, tensor<2x?x3x16xbf16>)
      outs(%scores : tensor<2x3x?x?xf32>) {indexing_maps = [#q, #k, #s]} -> tensor<2x3x?x?xf32>
  %x = linalg.generic {indexing_maps = [affine_map<(b, h, i, j) -> (b, h, i, j)>, affine_map<(b, h, i, j) -> (b, h, i, j)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s : tensor<2x3x?x?xf32>) outs(%scores : tensor<2x3x?x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %i = linalg.index 2 : index
      %j = linalg.index 3 : index
      %later = arith.cmpi ugt, %j, %i : index
      %t = arith.mulf %in, %scale : f32
      %y = arith.select %later, %lowest, %t : f32
      linalg.yield %y : f32
  } -> tensor<2x3x?x?xf32>
  %below = linalg.fill ins(%lowest : f32) outs(%rows : tensor<2x3x?xf32>) -> tensor<2x3x?xf32>
  %none = linalg.fill ins(%zero : f32) outs(%rows : tensor<2x3x?xf32>) -> tensor<2x3x?xf32>
  %top = linalg.reduce { arith.maximumf } ins(%x : tensor<2x3x?x?xf32>) outs(%below : tensor<2x3x?xf32>) dimensions = [3]
  %tops = linalg.broadcast ins(%top : tensor<2x3x?xf32>) outs(%scores : tensor<2x3x?x?xf32>) dimensions = [3]
  %shifted = arith.subf %x, %tops : tensor<2x3x?x?xf32>
  %exp = math.exp %shifted : tensor<2x3x?x?xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<2x3x?x?xf32>) outs(%none : tensor<2x3x?xf32>) dimensions = [3]
  %sums = linalg.broadcast ins(%sum : tensor<2x3x?xf32>) outs(%scores : tensor<2x3x?x?xf32>) dimensions = [3]
  %ratio = arith.divf %exp, %sums : tensor<2x3x?x?xf32>
  %probabilities = arith.truncf %ratio : tensor<2x3x?x?xf32> to tensor<2x3x?x?xbf16>
  %out = tensor.empty(%n) : tensor<2x?x3x16xbf16>
  %o = fp8.matmul site("h0#2") role(other) kinds(input, input) ins(%probabilities, %v : tensor<2x3x?x?xbf16>, tensor<2x?x3x16xbf16>)
      outs(%out : tensor<2x?x3x16xbf16>)
      {indexing_maps = [affine_map<(b, h, i, e, j) -> (b, h, i, j)>, affine_map<(b, h, i, e, j) -> (b, j, h, e)>,
                        affine_map<(b, h, i, e, j) -> (b, i, h, e)>]} -> tensor<2x?x3x16xbf16>
  return %o : tensor<2x?x3x16xbf16>
}
"""


def test_tokens_that_the_call_tells(bin_dir, tmp_path):
    """One library for any number of queries and keys, also of none."""
    program = build(bin_dir, tmp_path / "program", DYNAMIC, "--target=sm_90a")
    (site,) = report(program)
    assert site["decision"] == "fused", site["reason"]
    rng = random_generator(47)
    for queries, keys in ((1, 1), (17, 17), (130, 130), (20, 90), (0, 5)):
        q, k, v = (rng.standard_normal((2, n, 3, 16)).astype(BF16) for n in (queries, keys, keys))
        (o,) = program.call("main", q, k, v)
        q, k, v = (x.astype(float) for x in (q, k, v))
        x = np.einsum("bihd,bjhd->bhij", q, k) * 0.25
        x = np.where(np.arange(keys) > np.arange(queries)[:, None], -np.inf, x)
        p = np.exp(x - x.max(-1, keepdims=True, initial=-np.inf))
        right = np.einsum("bhij,bjhe->bihe", p / p.sum(-1, keepdims=True), v)
        assert o.shape == right.shape
        np.testing.assert_allclose(o.astype(float), right, atol=2**-8 * 4)
