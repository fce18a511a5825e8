# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A user's own functions for quantize and dequantize, by value."""

import gradient_step
import numpy as np
import pytest
from numerics import formats, products, reference
from numerics.formats import E4M3, E5M2, F32

from harness import Program, load, random_generator

# Truncation to E4M3, without subnormals; 127 steps on either side of 0 in place of FP8.
FUNCTIONS = """
func.func private @truncate(%value: f32, %scale: f32) -> i8 {
  %scaled = arith.mulf %value, %scale : f32
  %bits = arith.bitcast %scaled : f32 to i32
  %mask = arith.constant 0xFFF00000 : i32
  %kept = arith.andi %bits, %mask : i32
  %short = arith.bitcast %kept : i32 to f32
  %magnitude = math.absf %scaled : f32
  %smallest = arith.constant 0.015625 : f32
  %small = arith.cmpf olt, %magnitude, %smallest : f32
  %zero = arith.constant 0.0 : f32
  %result = scf.if %small -> f32 {
    scf.yield %zero : f32
  } else {
    scf.yield %short : f32
  }
  %narrow = arith.truncf %result : f32 to f8E4M3FN
  %byte = arith.bitcast %narrow : f8E4M3FN to i8
  return %byte : i8
}
func.func private @to_steps(%value: f32, %scale: f32) -> i8 {
  %ratio = arith.constant 0.25 : f32
  %scaled = arith.mulf %value, %scale : f32
  %units = arith.mulf %scaled, %ratio : f32
  %whole = math.roundeven %units : f32
  %byte = arith.fptosi %whole : f32 to i8
  return %byte : i8
}
func.func private @from_steps(%byte: i8, %inverse: f32) -> f32 {
  %four = arith.constant 4.0 : f32
  %whole = arith.sitofp %byte : i8 to f32
  %scaled = arith.mulf %whole, %four : f32
  %value = arith.mulf %scaled, %inverse : f32
  return %value : f32
}
"""
N = 24


def truncated(x, scale):
    """The values of the bytes."""
    codes = formats.cast(x, scale, E4M3, np.floor)
    return np.where(abs(x * F32(scale)) < 2.0**-6, 0, E4M3.decode(codes)).astype(F32)


def nearest(fmt):
    return lambda x, scale: fmt.decode(formats.cast(x, scale, fmt)).astype(F32)


def in_steps(x, scale):
    return np.rint(x * F32(scale) * F32(0.25)) * F32(4) * formats.scale_inv(scale)


def fma_sum(a, b):
    """a · b in f32, in the order of K, each product added with one rounding."""
    total = np.zeros((len(a), b.shape[1]), F32)
    for k in range(a.shape[1]):
        total = products.fma(a[:, k, None], b[None, k], total)
    return total


def inputs(salt):
    rng = random_generator(salt)
    return {name: rng.standard_normal((N, N)).astype(F32) for name in ("w", "1", "2")}


def scales_of(state, tensors, y):
    """The scales of x, w and g: of current scaling or, with the scales of the state, of delayed scaling."""
    x, w, t = tensors["1"], tensors["w"], tensors["2"]
    if state is None:
        return [reference.current_scale(reference.amax(value), fmt) for value, fmt in ((x, E4M3), (w, E4M3), (y - t, E5M2))]
    return [state[kind] for kind in ("input", "weight", "grad_output")]


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
@pytest.mark.parametrize("recipe", ["current", "delayed"])
def test_quantize(bin_dir, tmp_path, monkeypatch, recipe, target):
    """Bytes of the user's, products of FP8: inputs and weights are truncated, gradients rounded as always."""
    monkeypatch.setenv("FP8EMU_SUMS", "korder")  # tensor cores add in the order of the CPU
    base = {"current": "#fp8.current_scaling", "delayed": "#fp8.delayed_scaling<amax_history_len = 3>"}[recipe]
    option = f"--recipe=#fp8.custom<base = {base}, quantize = {{input = @truncate, weight = @truncate}}>"
    program = Program(bin_dir, tmp_path, FUNCTIONS + gradient_step.text(N), option, f"--target={target}")
    assert {entry["name"] for entry in program.manifest["entries"]} == {"step", "evaluate"}
    assert {site["decision"] for site in program.manifest["sites"]} == {"fp8"}
    tensors, saved = inputs(90), tmp_path / "state"
    x, w, t = tensors["1"], tensors["w"], tensors["2"]
    state = {"input": F32(1), "weight": F32(1), "grad_output": F32(1)} if recipe == "delayed" else None
    for step in range(2):
        program.run("step", tensors, f"--outputs={tmp_path / 'out'}", f"--save-state={saved}", *([f"--state={saved}"] if step else []))
        dw, dx, y = (load(tmp_path / "out")[str(i)] for i in range(3))
        sx, sw, sg = scales_of(state, tensors, y)
        qx, qw, qg = truncated(x, sx), truncated(w, sw), nearest(E5M2)(y - t, sg)
        ix, iw, ig = (formats.scale_inv(scale) for scale in (sx, sw, sg))
        np.testing.assert_array_equal(y, products.scaled_product(qx, qw.T, ix, iw))
        np.testing.assert_array_equal(dw, products.scaled_product(qx.T, qg.T, ix, ig))
        np.testing.assert_array_equal(dx, products.scaled_product(qg, qw, ig, iw))
        if state is not None:
            columns = [column["tensor"] for column in program.manifest["state"]["columns"]]
            assert load(saved)["amax_history"][-1].tolist() == [
                {"input": abs(x).max(), "weight": abs(w).max(), "grad_output": abs(y - t).max()}[kind] for kind in columns
            ]
            state = dict(zip(columns, load(saved)["scale"]))


def test_quantize_and_dequantize(bin_dir, tmp_path):
    """Bytes that are no FP8: products multiply what the user's function dequantizes, in f32."""
    every = "{input = @{0}, weight = @{0}, grad_output = @{0}}"
    pairs = ", ".join(f"{name} = " + every.replace("{0}", function) for name, function in (("quantize", "to_steps"), ("dequantize", "from_steps")))
    recipe = f"--recipe=#fp8.custom<base = #fp8.current_scaling<format = e4m3>, {pairs}>"
    program = Program(bin_dir, tmp_path, FUNCTIONS + gradient_step.text(N), recipe)
    tensors = inputs(91)
    x, w, t = tensors["1"], tensors["w"], tensors["2"]
    program.run("step", tensors, f"--outputs={tmp_path / 'out'}")
    dw, dx, y = (load(tmp_path / "out")[str(i)] for i in range(3))
    steps = lambda value: in_steps(value, reference.current_scale(reference.amax(value), E4M3))
    np.testing.assert_array_equal(y, fma_sum(steps(x), steps(w)))
    np.testing.assert_array_equal(dw, fma_sum(steps(x).T, steps(y - t)))
    np.testing.assert_array_equal(dx, fma_sum(steps(y - t), steps(w).T))


def test_functions_of_a_role(bin_dir, tmp_path):
    """Products of one role alone read the bytes of a user's function; the same tensors are cast as always for the others."""
    own = "#fp8.custom<base = #fp8.current_scaling, quantize = {input = @truncate}>"
    program = Program(bin_dir, tmp_path, FUNCTIONS + gradient_step.text(N), "--recipe=current", f"--wgrad={own}")
    tensors = inputs(92)
    x, w, t = tensors["1"], tensors["w"], tensors["2"]
    program.run("step", tensors, f"--outputs={tmp_path / 'out'}")
    dw, dx, y = (load(tmp_path / "out")[str(i)] for i in range(3))
    sx, sw, sg = scales_of(None, tensors, y)
    ix, iw, ig = (formats.scale_inv(scale) for scale in (sx, sw, sg))
    qw, qg = nearest(E4M3)(w, sw), nearest(E5M2)(y - t, sg)
    np.testing.assert_array_equal(y, products.scaled_product(nearest(E4M3)(x, sx), qw.T, ix, iw))
    np.testing.assert_array_equal(dw, products.scaled_product(truncated(x, sx).T, qg.T, ix, ig))
    np.testing.assert_array_equal(dx, products.scaled_product(qg, qw, ig, iw))


def test_weights_cast_by_functions_are_no_fp8_parameters(run, source_dir, tmp_path):
    (tmp_path / "net.mlir").write_text((source_dir / "test/python/inputs/net.mlir").read_text() + FUNCTIONS)
    recipe = "--recipe=#fp8.custom<base = #fp8.current_scaling, quantize = {weight = @truncate}>"
    done = run("fp8-compile", tmp_path / "net.mlir", "-o", tmp_path / "net.so", recipe, "--fp8-parameters")
    assert done.returncode == 1 and "a function of the recipe casts it" in done.stderr, done.stderr


def test_errors(run, tmp_path):
    """Each says what to change."""
    (tmp_path / "step.mlir").write_text(FUNCTIONS + gradient_step.text(N))
    current = "#fp8.custom<base = #fp8.current_scaling, "
    for code, options, words in [
        (
            1,
            [f"--recipe={current}dequantize = {{weight = @from_steps}}>", "--target=sm_90a"],
            "the tensor cores of sm_90a multiply FP8, not what a recipe's own function dequantizes",
        ),
        (
            1,
            [f"--recipe={current}quantize = {{grad_output = @truncate}}>", "--stochastic-rounding=true"],
            "does not reach gradients that the recipe's own function quantizes",
        ),
        (2, [f"--recipe={current}quantize = {{bias = @truncate}}>"], "it takes functions for input, weight and grad_output"),
        (
            2,
            ["--recipe=#fp8.custom<base = #fp8.row_scaling, quantize = {input = @truncate}>"],
            "quantize casts with one scale per tensor, and #fp8.row_scaling has more",
        ),
        (
            1,
            [f"--recipe={current}quantize = {{input = @from_steps}}>"],
            "'from_steps' is the recipe's function for quantize and must be (value: f32, scale: f32) -> i8",
        ),
        (
            1,
            [f"--recipe={current}dequantize = {{input = @truncate}}>"],
            "'truncate' is the recipe's function for dequantize and must be (data: i8, scale_inv: f32) -> f32",
        ),
        (1, [f"--recipe={current}quantize = {{input = @missing}}>"], "the recipe's quantize = @missing names no function with a body"),
    ]:
        done = run("fp8-compile", tmp_path / "step.mlir", "-o", tmp_path / "step.so", *options)
        assert done.returncode == code and words in done.stderr, (options, done.stderr)
