# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors of --pair: one line, at the function."""

import pytest

SMALL = """\
func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  return %x, %x, %x : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
func.func @b(%r: tensor<4xf32>, %s: tensor<8xf32>) -> tensor<4xf32> {
  return %r : tensor<4xf32>
}
func.func private @p(tensor<4xf32>)
"""


@pytest.mark.parametrize(
    "code, pair, place, message",
    [
        (1, "g:b", "1:1", "there is no function 'g'; the public functions are f, b"),
        (1, "f:g", "1:1", "there is no function 'g'"),
        (1, "f:p", "7:1", "'p' must be a public function with a body"),
        (1, "f:f", "1:1", "must be two functions"),
        (1, "f:b:3", "1:1", "'f' has 3 results, so none is left from 3 on; give a smaller K"),
        (1, "f:b:0", "4:1", "'b' has 2 arguments for the 3 results of 'f' from 0 on; give another K"),
        (1, "f:b", "4:1", "argument 1 of 'b' is 'tensor<8xf32>', but result 2 of 'f', which it receives, is 'tensor<4xf32>'"),
        (2, "f", None, "must be FORWARD:BACKWARD"),
        (2, "f:", None, "must be FORWARD:BACKWARD"),
        (2, "f:b:x", None, "must be FORWARD:BACKWARD"),
        (2, "f:b:-1", None, "must be FORWARD:BACKWARD"),
        (2, "f:b:1:1", None, "must be FORWARD:BACKWARD"),
    ],
)
def test_errors(run, tmp_path, code, pair, place, message):
    source, output = tmp_path / "small.mlir", tmp_path / "out.so"
    source.write_text(SMALL)
    done = run("fp8-compile", source, "-o", output, f"--pair={pair}")
    assert done.returncode == code
    start = f"{source}:{place}: error: " if place else "fp8-compile: error: "
    assert done.stderr.startswith(start) and message in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1
    assert not output.exists()
