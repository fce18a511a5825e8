# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A folder with a good program, in which fp8-compile is right or wrong."""

import os
import re

import pytest

GOOD = """\
func.func @main(%x: tensor<4x8xf32> loc("x"), %w: tensor<8x16xf32> loc("w")) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x16xf32>) -> tensor<4x16xf32>
  %y = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%f : tensor<4x16xf32>) -> tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}
"""


@pytest.fixture
def box(tmp_path, run):
    class Box:
        good = GOOD

        def write(self, name, content):
            (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())

        def compile(self, *arguments, stdin=None):
            return run("fp8-compile", *arguments, stdin=stdin, cwd=tmp_path)

        def ok(self, *arguments, stdin=None):
            done = self.compile(*arguments, stdin=stdin)
            assert (done.returncode, done.stderr) == (0, ""), done
            return done

        def files(self):
            return {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path) if (tmp_path / name).is_file()}

        def fails(self, code, pattern, *arguments, stdin=None):
            before = self.files()
            done = self.compile(*arguments, stdin=stdin)
            assert (done.returncode, done.stdout) == (code, ""), done
            assert done.stderr.count("\n") == 1, done.stderr
            assert re.search(pattern, done.stderr), done.stderr
            assert self.files() == before

        def rejects(self, text, place, pattern, *options):
            """The program `text` is wrong at `place` (line:column)."""
            self.write("bad.mlir", text)
            self.fails(1, rf"^bad\.mlir:{place}: error: .*{pattern}", "bad.mlir", "-o", "out.so", *options)

    box = Box()
    box.write("good.mlir", GOOD)
    return box
