# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pads: negative widths cut elements off, as PyTorch's F.pad does."""
import subprocess

import numpy as np
import pytest

from harness import F32, Program, assert_same_bits, random_generator, save


def pad(x, low, high, value):
    """Element i of the result is element i - low of x, where x has that one."""
    shape = [size + a + b for size, a, b in zip(x.shape, low, high)]
    y = np.full(shape, value, x.dtype)
    for place in np.ndindex(*shape):
        source = tuple(i - a for i, a in zip(place, low))
        if all(0 <= i < size for i, size in zip(source, x.shape)):
            y[place] = x[source]
    return y


# Widths of a 6x8 tensor. The last two are all padding: more is cut off than there is.
WIDTHS = [
    ([0, 1], [0, -1]),
    ([1, -1], [-1, 1]),
    ([-1, 2], [-1, -1]),
    ([0, -3], [0, 0]),
    ([-2, -3], [-3, -5]),
    ([-6, 0], [0, 0]),
    ([0, -9], [0, 5]),
    ([7, 0], [-8, 0]),
]

STATIC = """
func.func @main(%x: tensor<6x8xf32>) -> TYPE {
  %v = arith.constant 2.5 : f32
  %y = tensor.pad %x low[LOW] high[HIGH] {
  ^bb0(%i: index, %j: index):
    tensor.yield %v : f32
  } : tensor<6x8xf32> to TYPE
  return %y : TYPE
}
"""


@pytest.mark.parametrize("low, high", WIDTHS)
def test_constant_widths(low, high, bin_dir, tmp_path):
    x = random_generator(81).uniform(-1, 1, [6, 8]).astype(F32)
    expected = pad(x, low, high, 2.5)
    text = STATIC.replace("TYPE", f"tensor<{expected.shape[0]}x{expected.shape[1]}xf32>")
    text = text.replace("LOW", str(low)[1:-1]).replace("HIGH", str(high)[1:-1])
    (y,) = Program(bin_dir, tmp_path, text, "--recipe=none").call("main", x)
    assert_same_bits(y, expected)


# The value depends on where it stands; the widths of dimension 0 are arguments.
DYNAMIC = """
func.func @dynamic(%x: tensor<?x8xf32>, %low64: tensor<i64>, %high64: tensor<i64>) -> tensor<?x7xf32> {
  %a = tensor.extract %low64[] : tensor<i64>
  %b = tensor.extract %high64[] : tensor<i64>
  %low = arith.index_cast %a : i64 to index
  %high = arith.index_cast %b : i64 to index
  %y = tensor.pad %x low[%low, 1] high[%high, -2] {
  ^bb0(%i: index, %j: index):
    %sum = arith.addi %i, %j : index
    %k = arith.index_cast %sum : index to i32
    %v = arith.sitofp %k : i32 to f32
    tensor.yield %v : f32
  } : tensor<?x8xf32> to tensor<?x7xf32>
  return %y : tensor<?x7xf32>
}
func.func @fixed(%x: tensor<6x8xf32>, %shift: tensor<i64>) -> tensor<6x8xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %a = tensor.extract %shift[] : tensor<i64>
  %low = arith.index_cast %a : i64 to index
  %high = arith.subi %c0, %low : index
  %y = tensor.pad %x low[%low, 0] high[%high, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<6x8xf32> to tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}
func.func @changed(%x: tensor<6xf32>, %width: tensor<i64>) -> tensor<6xf32> {
  %zero = arith.constant 0.0 : f32
  %a = tensor.extract %width[] : tensor<i64>
  %low = arith.index_cast %a : i64 to index
  %y = tensor.pad %x low[%low] high[0] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<6xf32> to tensor<6xf32>
  return %y : tensor<6xf32>
}
"""


@pytest.fixture(scope="module")
def dynamic(bin_dir, tmp_path_factory):
    return Program(bin_dir, tmp_path_factory.mktemp("dynamic"), DYNAMIC, "--recipe=none")


@pytest.mark.parametrize("low, high", [(0, 0), (2, 3), (-2, 1), (1, -5), (-3, -3), (-7, 4), (9, -8)])
def test_widths_known_at_run_time(low, high, dynamic):
    x = random_generator(82).uniform(-1, 1, [6, 8]).astype(F32)
    kept = pad(x, [low, 1], [high, -2], np.nan)
    places = np.add.outer(np.arange(kept.shape[0]), np.arange(7)).astype(F32)
    (y,) = dynamic.call("dynamic", x, np.int64(low), np.int64(high))
    assert_same_bits(y, np.where(np.isnan(kept), places, kept))


@pytest.mark.parametrize("shift", [0, 1, -1, 6, -9])
def test_a_shift_by_a_width_known_at_run_time(shift, dynamic):
    x = random_generator(83).uniform(-1, 1, [6, 8]).astype(F32)
    (y,) = dynamic.call("fixed", x, np.int64(shift))
    assert_same_bits(y, pad(x, [shift, 0], [-shift, 0], 0))


@pytest.mark.parametrize("entry, widths, message", [
    ("dynamic", [-4, -3], "size 0 of a padded tensor must be 0 or more"),
    ("changed", [1], "size 0 of a padded tensor must be 6"),
    ("changed", [-1], "size 0 of a padded tensor must be 6"),
])
def test_sizes_that_cannot_be(entry, widths, message, dynamic):
    shape = [6, 8] if entry == "dynamic" else [6]
    inputs = [np.zeros(shape, F32), *(np.array(width, np.int64) for width in widths)]
    save(dynamic.folder / "inputs", {str(i): value for i, value in enumerate(inputs)})
    command = [dynamic.bin_dir / "fp8-run", dynamic.library, f"--entry={entry}", f"--inputs={dynamic.folder / 'inputs'}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert message in done.stderr
