# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stochastic rounding by value against numerics/stochastic.py, bit for bit: casts on every target, and the
gradients of training steps with their state."""

import json

import gradient_step
import numpy as np
import pytest
from numerics import casts, formats, reference, stochastic
from numerics.casts import BlockCast, straight
from numerics.conversions import DTYPES
from numerics.formats import BF16, E4M3, E5M2, SINGLE

from harness import Program, load, random_generator, save, tensor_type

CPUS = {"native": ["--target=cpu"], "x86-64-v3": ["--target=cpu", "--cpu=x86-64-v3"]}
CHIPS = {chip: [f"--target={chip}", "--ptxas=none"] for chip in ("sm_89", "sm_90a", "sm_100a", "sm_120a")}
TARGETS = {**CPUS, **CHIPS}

SEED, STEP = 0x9E3779B97F4A7C15, 7
RANDOM = np.array([SEED, STEP], np.uint64).view(np.int64)
# Casts take a chip on the emulator five seconds.
on_each = pytest.mark.parametrize("target", [*CPUS, *(pytest.param(chip, marks=pytest.mark.slow(one_of=4)) for chip in CHIPS)])


def values_of(rng, shape, scale):
    """Values of every magnitude that matters with a scale: normal and subnormal results, ones so small that
    more than 32 bits are discarded, beyond the largest, and what is no number."""
    x = rng.standard_normal(shape) * 2.0 ** rng.integers(-50, 18, shape) / scale
    flat = x.ravel()
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 448 / scale, -57344 / scale, 1e-45, 2.0**-149, 3e38]
    flat[: len(special)] = special[: flat.size]
    return x.astype(np.float32)


def fractions_of(stream, shape, first=0, random=(SEED, STEP)):
    count = int(np.prod(shape))
    return stochastic.fractions_of(stochastic.random_words(random[0], stream, random[1], first + count)[first:], shape)


def cast_entry(name, shape, fmt, source, order=None, stream=3, elements=2):
    """A cast with random bits; also in the layout `order`."""
    x, data = tensor_type(shape, DTYPES[source]), tensor_type(shape, DTYPES[fmt])
    turned = tensor_type([shape[d] for d in order], DTYPES[fmt]) if order else ""
    more = lambda text: f", {text}" if order else ""
    return f"""
func.func @{name}(%x: {x}, %s: tensor<f32>, %r: tensor<{elements}xi64>) -> ({data}, tensor<f32>{more(turned)}) {{
  %d = tensor.empty() : {data}
  {f"%t = tensor.empty() : {turned}" if order else ""}
  %i = tensor.empty() : tensor<f32>
  %q, {"%qt, " if order else ""}%si = fp8.quantize ins(%x : {x}) scale(%s : tensor<f32>) random(%r : tensor<{elements}xi64>) stream({stream})
    outs(%d, {"%t, " if order else ""}%i : {data}, {f"{turned}, " if order else ""}tensor<f32>) {f"{{transposition = array<i64: {', '.join(map(str, order))}>}}" if order else ""} -> {data}, {f"{turned}, " if order else ""}tensor<f32>
  return %q, %si{more("%qt")} : {data}, tensor<f32>{more(turned)}
}}"""


@on_each
def test_casts(bin_dir, tmp_path, target):
    """Both formats, every layout that kernels know, and sizes that fill no tile or vector."""
    shapes = {
        "vector": ((777,), None),
        "ragged": ((70, 150), (1, 0)),
        "whole": ((128, 256), (1, 0)),
        "batch": ((3, 40, 21), (0, 2, 1)),
        "turned": ((3, 5, 40), (2, 1, 0)),
    }
    cases = {
        f"{name}_{fmt.name}_{source.name}": (shape, order, fmt, source)
        for name, (shape, order) in shapes.items()
        for fmt, source in [(E4M3, SINGLE), (E5M2, BF16)]
    }
    text = "".join(cast_entry(name, shape, fmt, source, order) for name, (shape, order, fmt, source) in cases.items())
    program = Program(bin_dir, tmp_path, text, "--recipe=none", *TARGETS[target])
    rng = random_generator(80)
    for name, (shape, order, fmt, source) in cases.items():
        scale = np.float32(rng.choice([1.0, 448 / 3, 2.0**-7]))
        x = values_of(rng, shape, scale).astype(DTYPES[source])
        wanted = formats.cast(x.astype(np.float32), scale, fmt, stochastic.up_below(fractions_of(3, shape)))
        data, inverse, *turned = program.call(name, x, scale, RANDOM)
        assert inverse == formats.scale_inv(scale)
        np.testing.assert_array_equal(data.view(np.uint8), wanted, err_msg=name)
        for copy in turned:
            np.testing.assert_array_equal(copy.view(np.uint8), np.transpose(wanted, order), err_msg=name)


@pytest.mark.parametrize("target", ["native", "sm_90a"])
def test_part_of_a_tensor(bin_dir, tmp_path, target):
    """A third element numbers the first element, here across 2^32."""
    first, shape = 2**32 - 100, (5, 77)
    text = cast_entry("f", shape, E4M3, SINGLE, stream=2**32 - 1, elements=3)
    program = Program(bin_dir, tmp_path, text, "--recipe=none", *TARGETS[target])
    x = values_of(random_generator(81), shape, 1)
    index = np.arange(x.size, dtype=np.uint64) + np.uint64(first)
    words = stochastic.philox((np.uint64(2**32 - 1), np.uint64(STEP), index & np.uint64(2**32 - 1), index >> np.uint64(32)), (SEED & 2**32 - 1, SEED >> 32))[0]
    wanted = stochastic.cast_stochastic(x, 1, E4M3, words)
    got = program.call("f", x, np.float32(1), np.append(RANDOM, first))
    np.testing.assert_array_equal(got[0].view(np.uint8), wanted)


@on_each
def test_casts_by_block(bin_dir, tmp_path, target):
    """Rows, blocks and MX blocks, in both directions and layouts: an element has the same bits in each."""
    plain, turned = (0, 1), (1, 0)
    bits = "random(%r : tensor<2xi64>) stream(5)"
    directions = {
        "row": straight([(1, 0), (0, 1)]),
        "rows": straight([(1, 0)]),
        "block": (((1, 128), plain), ((128, 1), turned)),
        "mx": (((1, 32), plain), ((32, 1), turned)),
    }
    of = [BlockCast(name.rstrip("s"), pair, fmt, source, bits) for name, pair in directions.items() for fmt, source in [(E4M3, SINGLE), (E5M2, BF16)]]
    shape = (70, 150)
    for source in (SINGLE, BF16):
        mine = [cast for cast in of if cast.source == source]
        text = casts.entry("f", shape, mine, ", %r: tensor<2xi64>")
        folder = tmp_path / source.name
        folder.mkdir()
        program = Program(bin_dir, folder, text, "--recipe=none", *TARGETS[target])
        x = casts.hostile(random_generator(82), shape, DTYPES[source])
        casts.check(program.call("f", x, RANDOM), mine, x, fractions_of(5, shape))


N = 96
STEP_TEXT = gradient_step.text(N)


def gradient_inputs(rng):
    """w, x, t."""
    return {"w": rng.standard_normal((N, N)).astype(np.float32), "1": np.eye(N, dtype=np.float32), "2": rng.standard_normal((N, N)).astype(np.float32)}


def expected_gradient(recipe, g, fractions, step_scale):
    """dw: one product per element, 1 in FP8 by the element of g."""
    x = np.eye(N, dtype=np.float32)
    cast_block = lambda values, scale, fmt: formats.cast(values, scale, fmt, stochastic.up_below(fractions))
    if recipe in ("delayed", "current"):
        scale_x, scale_g = step_scale
        ones = E4M3.decode(formats.cast(x, scale_x, E4M3)).max().astype(np.float32)
        data = E5M2.decode(cast_block(g, scale_g, E5M2)).astype(np.float32)
        return (ones * data) * (formats.scale_inv(scale_x) * formats.scale_inv(scale_g))
    block = {"row": (0, 1), "block": (128, 1)}[recipe]
    rule = {"row": reference.current_scale, "block": lambda amaxes, fmt: reference.block_scale(amaxes, fmt, SINGLE)}[recipe]
    (codes_x, inverse_x), (codes_g, inverse_g) = reference.quantize_blocks(x, block, E4M3, rule), reference.quantize_blocks(g, block, E4M3, rule, cast_block)
    product = E4M3.decode(codes_x).max().astype(np.float32) * E4M3.decode(codes_g).astype(np.float32)
    return product * (inverse_x[0, 0] * inverse_g) if recipe == "row" else (product * inverse_x[0, 0]) * inverse_g


STEP_CASES = [(recipe, "native") for recipe in ("delayed", "current", "row", "block")] + [
    ("delayed", "sm_89"),
    ("current", "sm_100a"),
    ("row", "sm_90a"),
    ("block", "sm_120a"),
]


@pytest.mark.parametrize("recipe, target", STEP_CASES)
def test_steps(bin_dir, tmp_path, recipe, target):
    """Gradients alone are rounded stochastically; the state counts steps, is saved, and begins where it is told to."""
    program = Program(bin_dir, tmp_path, STEP_TEXT, f"--recipe={recipe}", "--stochastic-rounding=true", *TARGETS[target])
    state = program.manifest["state"]
    assert {"name": "rounding", "type": "i64", "shape": [2], "initial": 0} in state["tensors"]
    kinds = [column["tensor"] for column in state["columns"]]
    stream = kinds.index("grad_output") if recipe == "delayed" else 0
    (evaluate,) = [entry for entry in program.manifest["entries"] if entry["name"] == "evaluate"]
    assert "rounding" not in [argument["name"] for argument in evaluate["arguments"]]

    inputs = gradient_inputs(random_generator(83))
    seed, amax = -5, None
    for step in range(2):
        saved, begin = tmp_path / "saved", tmp_path / "begin"
        if step == 0:
            shapes = {"scale": np.ones(len(kinds), np.float32), "amax_history": np.zeros((1024, len(kinds)), np.float32)} if kinds else {}
            save(
                begin,
                {**shapes, "rounding": np.array([seed, 0])},
                {"version": "1", "layout_hash": state["layout_hash"], "columns": json.dumps(state["columns"])},
            )
        program.run("step", inputs, f"--state={saved if step else begin}", f"--save-state={saved}", f"--outputs={tmp_path / 'outputs'}")
        assert load(saved)["rounding"].tolist() == [seed, step + 1]
        results = load(tmp_path / "outputs")
        g = results["2"] - inputs["2"]
        amax = amax if recipe == "delayed" else abs(g).max()  # of the step before
        scales = (1, 1) if amax is None else (448, np.float32(57344) / amax)
        wanted = expected_gradient(recipe, g, fractions_of(stream, g.shape, random=(seed % 2**64, step)), scales)
        np.testing.assert_array_equal(results["0"], wanted)
        amax = abs(g).max()


def test_nothing_to_round(run, tmp_path):
    """No gradient becomes FP8: an error that says what to change."""
    (tmp_path / "step.mlir").write_text(STEP_TEXT)
    for code, options, words in [
        (1, ["--dgrad=bf16", "--wgrad=bf16"], "no gradient becomes FP8"),
        (2, ["--recipe=none"], "--stochastic-rounding=true belongs to recipes that make FP8"),
    ]:
        done = run("fp8-compile", tmp_path / "step.mlir", "-o", tmp_path / "step.so", "--stochastic-rounding=true", *options)
        assert done.returncode == code and words in done.stderr, done.stderr


def test_off_changes_nothing(run, tmp_path):
    (tmp_path / "step.mlir").write_text(STEP_TEXT)
    compile_ = lambda *options: run("fp8-compile", tmp_path / "step.mlir", "-o", "-", "--emit=bufferize", *options).stdout
    assert compile_() == compile_("--stochastic-rounding=false") != compile_("--stochastic-rounding=true") == compile_("--stochastic-rounding")


ROWS_TEXT = """
func.func @rows(%x: tensor<MxNxf32>, %s: tensor<f32>, %r: tensor<2xi64>) -> (tensor<MxNxf8E4M3FN>, tensor<f32>, tensor<f32>) {
  %d = tensor.empty() : tensor<MxNxf8E4M3FN>
  %i = tensor.empty() : tensor<f32>
  %a = tensor.empty() : tensor<f32>
  %q, %si, %amax = fp8.quantize record_amax ins(%x : tensor<MxNxf32>) scale(%s : tensor<f32>) random(%r : tensor<2xi64>) stream(9)
      outs(%d, %i, %a : tensor<MxNxf8E4M3FN>, tensor<f32>, tensor<f32>)
      {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], rows = array<i64: 1>} producer {
    ^bb0(%row: index, %e: tensor<Nxf32>):
      %lowest = arith.constant dense<0xFF800000> : tensor<f32>
      %largest = linalg.reduce {arith.maximumf} ins(%e : tensor<Nxf32>) outs(%lowest : tensor<f32>) dimensions = [0]
      %top = tensor.extract %largest[] : tensor<f32>
      %init = tensor.empty() : tensor<Nxf32>
      %below = linalg.generic {indexing_maps = [affine_map<(j) -> (j)>, affine_map<(j) -> (j)>], iterator_types = ["parallel"]}
          ins(%e : tensor<Nxf32>) outs(%init : tensor<Nxf32>) {
        ^bb0(%in: f32, %out: f32):
          %v = arith.subf %in, %top : f32
          linalg.yield %v : f32
      } -> tensor<Nxf32>
      fp8.yield %below : tensor<Nxf32>
  } -> tensor<MxNxf8E4M3FN>, tensor<f32>, tensor<f32>
  return %q, %si, %amax : tensor<MxNxf8E4M3FN>, tensor<f32>, tensor<f32>
}
"""


@pytest.mark.parametrize("shape", [(33, 200), (7, 2051)])
@pytest.mark.parametrize("target", ["native", "sm_90a"])
def test_casts_of_computed_rows(bin_dir, tmp_path, target, shape):
    """A cast that reduces each row before: rows are computed apart, their elements counted in the whole tensor."""
    text = ROWS_TEXT.replace("MxN", "{}x{}".format(*shape)).replace("<Nx", f"<{shape[1]}x")
    program = Program(bin_dir, tmp_path, text, "--recipe=none", *TARGETS[target])
    x = random_generator(84).standard_normal(shape).astype(np.float32)
    below = x - x.max(axis=1, keepdims=True)
    data, _, amax = program.call("rows", x, np.float32(3), RANDOM)
    wanted = formats.cast(below, 3, E4M3, stochastic.up_below(fractions_of(9, shape)))
    np.testing.assert_array_equal(data.view(np.uint8), wanted)
    assert amax == abs(below).max()
