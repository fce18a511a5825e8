# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Unsigned integers in a program, such as the keys of JAX's random numbers: those of the caller
# stay unsigned, and casts between signed and unsigned types are free, also around loops.

import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

# The program that jaxlib makes of a key that is split in a loop: unsigned between operations, signless in
# them.
PROGRAM = """
#id = affine_map<(i) -> (i)>
func.func private @mix(%k: tensor<2xui32>) -> tensor<2xui32> {
  %s = builtin.unrealized_conversion_cast %k : tensor<2xui32> to tensor<2xi32>
  %e = tensor.empty() : tensor<2xi32>
  %m = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%s : tensor<2xi32>) outs(%e : tensor<2xi32>) {
  ^bb0(%in: i32, %out: i32):
    %c = arith.constant 1664525 : i32
    %v = arith.muli %in, %c : i32
    %five = arith.constant 5 : i32
    %w = arith.shrui %v, %five : i32
    linalg.yield %w : i32
  } -> tensor<2xi32>
  %r = builtin.unrealized_conversion_cast %m : tensor<2xi32> to tensor<2xui32>
  return %r : tensor<2xui32>
}
func.func @main(%key: tensor<2xui32> {tf.aliasing_output = 0 : i32}, %bytes: tensor<?xui8>, %x: tensor<4x8xbf16>,
                %w: tensor<8x4xbf16>) -> (tensor<2xui32>, tensor<?xui8>, tensor<2xf32>, tensor<4x4xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %new = scf.for %i = %c0 to %c3 step %c1 iter_args(%k = %key) -> tensor<2xui32> {
    %n = func.call @mix(%k) : (tensor<2xui32>) -> tensor<2xui32>
    scf.yield %n : tensor<2xui32>
  }
  %s = tensor.bitcast %new : tensor<2xui32> to tensor<2xi32>
  %e = tensor.empty() : tensor<2xf32>
  %f = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%s : tensor<2xi32>) outs(%e : tensor<2xf32>) {
  ^bb0(%in: i32, %out: f32):
    %v = arith.uitofp %in : i32 to f32
    linalg.yield %v : f32
  } -> tensor<2xf32>
  %zero = arith.constant 0.0 : bf16
  %o = tensor.empty() : tensor<4x4xbf16>
  %z = linalg.fill ins(%zero : bf16) outs(%o : tensor<4x4xbf16>) -> tensor<4x4xbf16>
  %y = linalg.matmul ins(%x, %w : tensor<4x8xbf16>, tensor<8x4xbf16>) outs(%z : tensor<4x4xbf16>) -> tensor<4x4xbf16>
  return %new, %bytes, %f, %y : tensor<2xui32>, tensor<?xui8>, tensor<2xf32>, tensor<4x4xbf16>
}
"""


def mixed(key):
    for _ in range(3):
        key = key * np.uint32(1664525) >> np.uint32(5)
    return key


@pytest.fixture
def library(run, tmp_path):
    done = run("fp8-compile", "-", "-o", tmp_path / "main.so", "--manifest", tmp_path / "main.json",
               "--calibrate", stdin=PROGRAM)
    assert done.returncode == 0, done.stderr
    return tmp_path / "main.so"


def inputs(**changed):
    import ml_dtypes

    tensors = {"0": np.array([0x89ABCDEF, 0xFFFFFFFF], np.uint32), "1": np.array([0, 127, 128, 255, 9], np.uint8),
               "2": np.ones((4, 8), ml_dtypes.bfloat16), "3": np.ones((8, 4), ml_dtypes.bfloat16)}
    return tensors | changed


def test_values_and_types(library, run, tmp_path):
    save_file(inputs(), tmp_path / "in.safetensors")
    done = run("fp8-run", library, f"--inputs={tmp_path / 'in.safetensors'}", "--steps=2",
               f"--outputs={tmp_path / 'out.safetensors'}")
    assert done.returncode == 0, done.stderr
    results = load_file(tmp_path / "out.safetensors")
    key = mixed(mixed(inputs()["0"]))
    assert results["0"].dtype == np.uint32 and (results["0"] == key).all()
    assert results["1"].dtype == np.uint8 and (results["1"] == inputs()["1"]).all()
    assert (results["2"] == key.astype(np.float32)).all()
    assert (results["3"].astype(np.float32) == 8).all()


def test_manifest_says_unsigned(library, tmp_path):
    entry = json.loads((tmp_path / "main.json").read_text())["entries"][0]
    assert [value["type"] for value in entry["arguments"]][:4] == ["ui32", "ui8", "bf16", "bf16"]
    assert [value["type"] for value in entry["results"]][:4] == ["ui32", "ui8", "f32", "bf16"]


def test_signed_input_is_an_error(library, run, tmp_path):
    save_file(inputs(**{"0": np.array([1, 2], np.int32)}), tmp_path / "in.safetensors")
    done = run("fp8-run", library, f"--inputs={tmp_path / 'in.safetensors'}")
    assert done.returncode == 1
    assert "ui32[2]" in done.stderr and "i32[2]" in done.stderr
