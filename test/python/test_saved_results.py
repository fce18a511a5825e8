# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8-drop-bound-results drops the copies of results that were saved for nothing, and no others."""
import pytest

HEAD = """func.func @f(%a: memref<4xf32> {tf.aliasing_output = 0 : i32}, %b: memref<4xf32> {tf.aliasing_output = 1 : i32}, %v: f32)
    -> (memref<4xf32>, memref<4xf32>) {
  %s = memref.alloc() : memref<4xf32>
  memref.copy %a, %s : memref<4xf32> to memref<4xf32>
"""
COPY = "  memref.copy %{}, %{} : memref<4xf32> to memref<4xf32>\n"
END = "  return %a, %b : memref<4xf32>, memref<4xf32>\n}\n"
CASES = {
    "in_place": (COPY.format("s", "a"), 0),  # the result is in its carrier already
    "elsewhere": (COPY.format("s", "b"), 1),  # copied there directly
    "swap": ("  %t = memref.alloc() : memref<4xf32>\n" + COPY.format("b", "t") + COPY.format("s", "b") + COPY.format("t", "a"), 3),
    "written": ("  linalg.fill ins(%v : f32) outs(%a : memref<4xf32>)\n" + COPY.format("s", "a"), 2),
}


@pytest.mark.parametrize("case", CASES)
def test_copies(run, case):
    body, copies = CASES[case]
    done = run("fp8-opt", "--fp8-drop-bound-results", stdin=HEAD + body + END)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("memref.copy") == copies
