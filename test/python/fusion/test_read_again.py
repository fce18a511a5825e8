# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tensors that a step reads more than once, in the report: their readers, bytes and reasons, by value."""

import json
import re

import pytest

MATMUL = "matmuls read their operands as they are"
ARGUMENT = "an argument is in memory when the step begins"


@pytest.fixture
def report(run, tmp_path):
    """report(program): what its functions read again, by their names; and the report's text."""

    def compile(program, *options):
        (tmp_path / "step.mlir").write_text(program)
        path = tmp_path / "report"
        done = run(
            "fp8-compile",
            tmp_path / "step.mlir",
            "-o",
            "-",
            "--emit=fusion",
            *(options or ["--recipe=none"]),
            f"--report=json:{path}.json",
            f"--report=text:{path}.txt",
        )
        assert done.returncode == 0, done.stderr
        traffic = json.loads(path.with_suffix(".json").read_text())["memory"]["traffic"]
        return {t["entry"]: t["read_again"] for t in traffic}, path.with_suffix(".txt").read_text()

    return compile


def readers(tensor):
    return [(r["op"], r["site"], r["role"], r["times"], r["reason"]) for r in tensor["readers"]]


def product(result, x, w, m, n, k, loc=""):
    return f"""
  %e{result} = tensor.empty() : tensor<{m}x{n}xf32>
  %f{result} = linalg.fill ins(%zero : f32) outs(%e{result} : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
  %{result} = linalg.matmul ins({x}, {w} : tensor<{m}x{k}xf32>, tensor<{k}x{n}xf32>) outs(%f{result} : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>{loc}"""


def test_an_argument_of_two_matmuls(report):
    """x [8, 4] f32: 128 bytes, read twice. The weights are read once."""
    again, text = report(f"""
func.func @main(%x: tensor<8x4xf32> loc("x"), %v: tensor<4x6xf32> loc("v"), %w: tensor<4x6xf32> loc("w")) -> (tensor<8x6xf32>, tensor<8x6xf32>) {{
  %zero = arith.constant 0.0 : f32{product("a", "%x", "%v", 8, 6, 4)}{product("b", "%x", "%w", 8, 6, 4)}
  return %a, %b : tensor<8x6xf32>, tensor<8x6xf32>
}}
""")
    (tensor,) = again["main"]
    assert (tensor["tensor"], tensor["type"], tensor["bytes"], tensor["bytes_read"]) == ("x", "8x4xf32", 128, 256)
    assert readers(tensor) == [("fp8.matmul", "v", "fprop", 1, MATMUL), ("fp8.matmul", "w", "fprop", 1, MATMUL)]
    listed = text.split("tensors that it reads more than once: 1, 128 B after their first reads\n")[1]
    assert re.match(rf"  128 B \(8x4xf32\): x\n    at x \(.*step.mlir:2:17\)\n    2 reads by fp8.matmul: {MATMUL}\noptions:", listed), listed


def test_what_is_read_once_is_left_out(report):
    """A chain of elementwise code, and two branches of which one runs."""
    again, text = report("""
func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>, %c: i1) -> (tensor<8xf32>, tensor<8xf32>) {
  %a = math.exp %x : tensor<8xf32>
  %b = arith.addf %a, %a : tensor<8xf32>
  %z = scf.if %c -> tensor<8xf32> {
    %p = math.exp %y : tensor<8xf32>
    scf.yield %p : tensor<8xf32>
  } else {
    %q = math.log %y : tensor<8xf32>
    scf.yield %q : tensor<8xf32>
  }
  return %b, %z : tensor<8xf32>, tensor<8xf32>
}
""")
    assert again == {"main": []} and "more than once" not in text


def test_fusion_gives_its_reasons(report):
    """exp(x) costs too much to be computed in both of its readers: a matmul's operand and a transposed reader."""
    again, _ = report(f"""
func.func @main(%x: tensor<8x4xf32>, %w: tensor<4x6xf32> loc("w")) -> (tensor<8x6xf32>, tensor<4x8xf32>) {{
  %zero = arith.constant 0.0 : f32
  %t = math.exp %x : tensor<8x4xf32>{product("a", "%t", "%w", 8, 6, 4)}
  %e = tensor.empty() : tensor<4x8xf32>
  %u = linalg.transpose ins(%t : tensor<8x4xf32>) outs(%e : tensor<4x8xf32>) permutation = [1, 0]
  return %a, %u : tensor<8x6xf32>, tensor<4x8xf32>
}}
""")
    (tensor,) = again["main"]
    assert (tensor["tensor"], tensor["bytes"], tensor["bytes_read"]) == ("linalg.generic", 128, 256)
    cost = "the tensor is read more than once, and computing it again costs more than reading it"
    assert readers(tensor) == [("fp8.matmul", "w", "fprop", 1, MATMUL), ("linalg.generic", "", "", 1, cost)]


def test_loops_read_what_they_leave_unchanged(report):
    """w is read in each of five iterations, or in as many as the caller wants."""

    def loop(name, count):
        return f"""
func.func @{name}(%x: tensor<4x4xf32>, %w: tensor<4x4xf32> loc("w"), %k: i32) -> tensor<4x4xf32> {{
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = {count} : {"i32 to " if "cast" in count else ""}index
  %y = scf.for %i = %c0 to %n step %c1 iter_args(%h = %x) -> tensor<4x4xf32> {{{product("a", "%h", "%w", 4, 4, 4)}
    %t = math.tanh %a : tensor<4x4xf32>
    scf.yield %t : tensor<4x4xf32>
  }}
  return %y : tensor<4x4xf32>
}}
"""

    again, text = report(loop("known", "arith.constant 5") + loop("unknown", "arith.index_cast %k"))
    for entry, times in (("known", 5), ("unknown", None)):
        (tensor,) = again[entry]
        assert (tensor["tensor"], tensor["bytes"], tensor["bytes_read"]) == ("w", 64, 64 * (times or 1))
        assert readers(tensor) == [("fp8.matmul", "w", "fprop", times, MATMUL)]
    assert "    5 reads by fp8.matmul" in text and "    at least 1 read by fp8.matmul" in text
