# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One column for one quantized tensor: microbatches, shared weights, shared activations.

The amaxes that several casts record for one column in one step are combined with max.
"""
import numpy as np
import pytest

import reference
from harness import E4M3, F32, Program, assert_same_bits, load, random_generator

LAYER = """
func.func private @layer(%x: tensor<6x10xf32>, %w: tensor<10x8xf32>) -> tensor<6x8xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x8xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  %y = linalg.matmul ins(%x, %w : tensor<6x10xf32>, tensor<10x8xf32>) outs(%f : tensor<6x8xf32>)
      -> tensor<6x8xf32> loc("fc/dot_general")
  return %y : tensor<6x8xf32>
}
func.func @main(%w: tensor<10x8xf32>, %x: tensor<6x10xf32>, %y: tensor<6x10xf32>) -> (tensor<6x8xf32>, tensor<6x8xf32>) {
  %0 = call @layer(%x, %w) : (tensor<6x10xf32>, tensor<10x8xf32>) -> tensor<6x8xf32> loc("FIRST")
  %1 = call @layer(%y, %w) : (tensor<6x10xf32>, tensor<10x8xf32>) -> tensor<6x8xf32> loc("SECOND")
  return %0, %1 : tensor<6x8xf32>, tensor<6x8xf32>
}
"""


@pytest.fixture(scope="module")
def make(bin_dir, tmp_path_factory):
    def compile(first, second):
        text = LAYER.replace("FIRST", first).replace("SECOND", second)
        return Program(bin_dir, tmp_path_factory.mktemp("shared"), text, "--calibrate", "--amax-history-len=2")

    return compile


def columns_of(program):
    return [(c["sites"], c["tensor"]) for c in program.manifest["state"]["columns"]]


def step(program, amaxes):
    """Runs one step on inputs of these largest magnitudes (w, x, y); the state after it by column."""
    rng = random_generator(60)
    shapes = [[10, 8], [6, 10], [6, 10]]
    inputs = [rng.uniform(-0.5, 0.5, shape).astype(F32) for shape in shapes]
    for value, amax in zip(inputs, amaxes):
        value[1, 2] = -amax
    state, outputs = program.folder / "state", program.folder / "outputs"
    program.run("main", inputs, f"--save-state={state}", f"--outputs={outputs}")
    w, x, y = ((reference.cast(value, 1, E4M3), np.float32(1)) for value in inputs)
    for index, operand in enumerate([x, y]):
        assert_same_bits(load(outputs)[str(index)], reference.scaled_matmul(operand[0], w[0].T, 1, 1))
    return load(state)["amax_history"][-1].tolist()


def test_microbatches_are_one_site(make):
    program = make("net", "net")
    assert columns_of(program) == [(["net/fc"], "input"), (["net/fc"], "weight")]
    assert [s["site"] for s in program.manifest["sites"]] == ["net/fc"] * 2
    assert step(program, [2, 3, 5]) == [5, 2]
    assert step(program, [2, 7, 5]) == [7, 2]


def test_a_weight_used_in_two_scopes_has_one_column(make):
    program = make("embed", "head")
    assert [s["site"] for s in program.manifest["sites"]] == ["embed/fc", "head/fc"]
    columns = dict((tuple(sites), tensor) for sites, tensor in columns_of(program))
    assert columns == {("embed/fc",): "input", ("embed/fc", "head/fc"): "weight", ("head/fc",): "input"}
    after = dict(zip([tuple(sites) for sites, _ in columns_of(program)], step(program, [2, 3, 5])))
    assert after == {("embed/fc",): 3, ("embed/fc", "head/fc"): 2, ("head/fc",): 5}


def test_the_weight_is_cast_once(make, run):
    program = make("net", "net")
    done = run("fp8-compile", program.source, "-o", "-", "--emit=batching", "--calibrate")
    assert done.stdout.count("= fp8.quantize") == 3
    assert done.stdout.count("= fp8.update_amax_history") == 1
