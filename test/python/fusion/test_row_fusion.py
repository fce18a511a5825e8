# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Norms and softmaxes are fused into the cast that reads them, and no bit changes.

Each program is compiled as one entry point, in which code is fused, and as two, in which it
cannot be: one that computes the tensors, one that casts. Their results must be equal bit for bit;
those of norms, which call only sqrt of the math library, must equal numpy's.
"""
import json
import subprocess

import numpy as np
import pytest
from test_fusion import cast, function

import row_code
from harness import BF16, E4M3, E5M2, F32, Program, assert_same_bits, random_generator, tensor_type

# The others have enough elements for threads, and rows that no vector length divides: their number is a prime, so that
# they run one by one, or runs eight at a time.
SHAPES = [(3, 5, 24), (4, 67, 131), (2, 128, 131)]
FORMS = ["layer_norm", "rms_norm", "softmax", "layer_norm_backward", "softmax_backward"]


def in_order(terms):
    """The sum of the last dimension, in f32, from 0 in the order of the elements."""
    return np.cumsum(np.concatenate([np.zeros_like(terms[..., :1]), terms], -1), axis=-1, dtype=F32)[..., -1:]


def build(form, shape, dtype, rng):
    """The code, its arguments as (name, array), and its results, the one to cast first."""
    code = row_code.RowCode(shape)
    sample = lambda *s: (rng.standard_normal(s) * 2).astype(F32)
    arguments = []

    def tensor(name, *s, dtype=F32):
        arguments.append((name, sample(*s).astype(dtype)))
        return code.argument(name, tensor_type(s, dtype))

    full, row, stat = shape, shape[-1:], (*shape[:2], 1)
    x = tensor("%x", *full, dtype=dtype)
    if form == "layer_norm":
        results = row_code.layer_norm(code, x, tensor("%gain", *row), tensor("%bias", *row), dtype)
    elif form == "rms_norm":
        results = row_code.rms_norm(code, x, tensor("%gain", *row), dtype)
    elif form == "softmax":
        results = row_code.softmax(code, x, dtype)
    elif form == "layer_norm_backward":
        results = row_code.layer_norm_backward(code, x, tensor("%centred", *full), tensor("%rstd", *stat), tensor("%gain", *row),
                                               tensor("%residual", *full), dtype)
    else:
        results = row_code.softmax_backward(code, x, tensor("%y", *full), dtype)
    return code, arguments, results


def expect(form, values, dtype):
    """The value by numpy; None where the math library decides."""
    v = {name: array.astype(F32) for name, array in values}
    x, size = v["%x"], F32.type(values[0][1].shape[-1])
    if form == "layer_norm":
        mean = in_order(x + F32.type(0)) / size
        centred = x - mean
        rstd = F32.type(1) / np.sqrt(in_order(centred * centred) / size + F32.type(1e-5))
        return [(centred * rstd * v["%gain"] + v["%bias"]).astype(dtype), centred, mean, rstd]
    if form == "layer_norm_backward":
        centred, rstd = v["%centred"], v["%rstd"]
        dn = x * v["%gain"]
        dot = in_order(centred * dn)
        factor = F32.type(0) + -(dot * (rstd * (rstd * rstd)) / size)
        dx = dn * rstd + factor * centred
        mean = F32.type(0) + in_order(-dx) / size
        both = v["%residual"] + dx + mean
        narrow = both.astype(dtype)
        flat = narrow.astype(F32).reshape(-1, x.shape[-1])
        return [narrow, both, in_order(flat.T)[:, 0]]
    if form == "softmax_backward":
        dot = in_order(x * v["%y"])
        return [((x - dot) * v["%y"]).astype(dtype), dot]
    return None


def compile_form(bin_dir, tmp_path, form, shape, dtype, format, current, rng):
    """The program, its inputs, the number of results of the cast, and the report's traffic."""
    code, arguments, results = build(form, shape, dtype, rng)
    type = code.types[results[0]]
    casting = cast(results[0], type, shape, format, current)
    casts = [("%q", tensor_type(shape, format)), ("%i", "tensor<f32>"), ("%amax", "tensor<f32>")]
    scale = ("%s", "tensor<f32>")
    types = [(name, code.types[name]) for name, _ in arguments]
    # The tensor that is cast has no other reader; all else has one, as backward would.
    extras = [(name, code.types[name]) for name in results[1:]]
    program = (function("fused", [*types, scale], code.text + casting, [*casts, *extras])
               + function("compute", types, code.text, [(results[0], type), *extras])
               + function("cast", [(results[0], type), scale], casting, casts))
    report = tmp_path / "report.json"
    compiled = Program(bin_dir, tmp_path, program, "--recipe=none", f"--report=json:{report}")
    traffic = next(t for t in json.loads(report.read_text())["memory"]["traffic"] if t["entry"] == "fused")
    return compiled, arguments, traffic


@pytest.mark.parametrize("current", [False, True], ids=["known_scale", "own_scale"])
@pytest.mark.parametrize("dtype", [F32, BF16], ids=["f32", "bf16"])
@pytest.mark.parametrize("shape", SHAPES, ids=["small", "large", "several"])
@pytest.mark.parametrize("form", FORMS)
def test_rows(bin_dir, tmp_path, form, shape, dtype, current):
    rng = random_generator(43, FORMS.index(form), shape[2], dtype == BF16, current)
    format = E5M2 if form.endswith("backward") else E4M3
    compiled, arguments, traffic = compile_form(bin_dir, tmp_path, form, shape, dtype, format, current, rng)
    ir = subprocess.run([bin_dir / "fp8-compile", compiled.source, "-o", "-", "--emit=fusion", "--recipe=none"],
                        capture_output=True, text=True, check=True).stdout
    fused = ir[ir.index("@fused("):ir.index("@compute(")]
    outside = fused.split("producer {")
    outside = outside[0] + "".join(part[part.index("fp8.yield"):] for part in outside[1:])
    assert "rows = array<i64: 2>" in fused
    assert "linalg.generic" not in outside
    total = lambda t: t["read"] + t["written"]
    assert total(traffic["after_fusion"]) < total(traffic["before_fusion"])

    scale = np.float32(1.7)
    results = compiled.call("fused", *(array for _, array in arguments), scale)
    computed = compiled.call("compute", *(array for _, array in arguments))
    for actual, expected in zip(results, [*compiled.call("cast", computed[0], scale), *computed[1:]], strict=True):
        assert_same_bits(actual, expected)
    for actual, expected in zip(computed, expect(form, arguments, dtype) or computed, strict=True):
        assert_same_bits(actual, expected)


def test_threads_change_nothing(bin_dir, tmp_path, monkeypatch):
    rng = random_generator(44)
    compiled, arguments, _ = compile_form(bin_dir, tmp_path, "layer_norm_backward", SHAPES[1], BF16, E5M2, False, rng)
    inputs = [*(array for _, array in arguments), np.float32(1.7)]
    one = compiled.call("fused", *inputs)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    for actual, expected in zip(compiled.call("fused", *inputs), one, strict=True):
        assert_same_bits(actual, expected)


def test_the_report_counts_each_tensor_once(bin_dir, tmp_path):
    """LayerNorm of [3, 5, 24] f32: x, gain, bias and scale in; data, x - mean, two statistics out."""
    _, _, traffic = compile_form(bin_dir, tmp_path, "layer_norm", SHAPES[0], F32, E4M3, False, random_generator(45))
    elements, rows = 3 * 5 * 24, 15
    assert traffic["after_fusion"] == {"read": 4 * (elements + 2 * 24 + 1), "written": elements + 8 + 4 * (elements + 2 * rows)}


NAMED = """
func.func @main(%x: tensor<6x32xf32>, %s: tensor<f32>) -> (tensor<6x32xf32>, tensor<6xf32>, tensor<6x32xf8E4M3FN>, tensor<f32>, tensor<f32>) {
  %e = tensor.empty() : tensor<6x32xf32>
  %p = linalg.softmax dimension(1) ins(%x : tensor<6x32xf32>) outs(%e : tensor<6x32xf32>) -> tensor<6x32xf32>
  %zero = arith.constant 0.0 : f32
  %re = tensor.empty() : tensor<6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%re : tensor<6xf32>) -> tensor<6xf32>
  %sum = linalg.reduce { arith.addf } ins(%x : tensor<6x32xf32>) outs(%f : tensor<6xf32>) dimensions = [1]
  %wide = linalg.broadcast ins(%sum : tensor<6xf32>) outs(%e : tensor<6x32xf32>) dimensions = [1]
  %d = linalg.sub ins(%x, %wide : tensor<6x32xf32>, tensor<6x32xf32>) outs(%e : tensor<6x32xf32>) -> tensor<6x32xf32>
%CAST%
  return %p, %sum, %q, %i, %amax : tensor<6x32xf32>, tensor<6xf32>, tensor<6x32xf8E4M3FN>, tensor<f32>, tensor<f32>
}
"""


@pytest.mark.parametrize("tensor", ["%p", "%d"])
def test_named_operations(bin_dir, tmp_path, tensor):
    """linalg.softmax, and a centred row by linalg.reduce, linalg.broadcast and linalg.sub."""
    text = NAMED.replace("%CAST%", cast(tensor, "tensor<6x32xf32>", (6, 32), E4M3, False))
    done = subprocess.run([f"{bin_dir}/fp8-opt", "--fp8-fusion-pipeline"], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "rows = array<i64: 1>" in done.stdout and "linalg.softmax" not in done.stdout
    x = (random_generator(91).standard_normal((6, 32)) * 2).astype(F32)
    p, total, data, _, amax = Program(bin_dir, tmp_path, text).call("main", x, F32.type(16))
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(p, e / e.sum(1, keepdims=True), rtol=1e-5)  # 32 sums and two functions in f32
    assert_same_bits(total, in_order(x)[:, 0])
    cast_tensor = p if tensor == "%p" else x - in_order(x)
    assert_same_bits(amax, np.abs(cast_tensor).max())
    assert_same_bits(data, np.clip(cast_tensor * F32.type(16), -448, 448).astype(E4M3))
