# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of several ranks, by value: every collective of the shard dialect, positions on the grid, the
reduction of amaxes, and what a call reports. The ranks are threads (ranks.py)."""

import numpy as np
import pytest
from ranks import Ranks, combine

from harness import BF16, E4M3, F32, Program, assert_same_bits, random_generator

GRID, SIZE = "shard.grid @grid(shape = 2x3)\n", 6


@pytest.fixture
def compile_program(bin_dir, tmp_path):
    return lambda text, *options: Program(bin_dir, tmp_path, text, "--recipe=none", "--cpu=x86-64-v3", *options)


def run(program, inputs, size=SIZE):
    results, errors = Ranks(program.library, size).step(inputs)
    assert errors == [""] * size
    return results


def one_op(op, input_type, result_type):
    return (
        GRID
        + f"""func.func @main(%x: tensor<{input_type}>) -> tensor<{result_type}> {{
  %r = shard.{op} : tensor<{input_type}> -> tensor<{result_type}>
  return %r : tensor<{result_type}>
}}"""
    )


def values(shape, dtype=F32):
    rng = random_generator(170)
    return [rng.standard_normal(shape).astype(F32).astype(dtype) for _ in range(SIZE)]


ROWS, COLUMNS = [[0, 1, 2], [3, 4, 5]], [[0, 3], [1, 4], [2, 5]]  # the groups along axis 1, and along axis 0


def check(program, parts, groups, expected):
    """`expected` gives what rank `i` of a group receives of the list of its parts."""
    results = run(program, [{"0": part} for part in parts])
    for group in groups:
        for position, rank in enumerate(group):
            assert_same_bits(results[rank][0], expected([parts[r] for r in group], position))


@pytest.mark.parametrize("dtype, name", [(F32, "f32"), (BF16, "bf16")])
@pytest.mark.parametrize("kind, reduction", [("sum", "sum"), ("max", "max"), ("min", "min"), ("average", "mean"), ("product", "product")])
def test_all_reduce(compile_program, kind, reduction, dtype, name):
    program = compile_program(one_op(f"all_reduce %x on @grid grid_axes = [1] reduction = {kind}", f"4x5x{name}", f"4x5x{name}"))
    check(program, values([4, 5], dtype), ROWS, lambda parts, _: combine(parts, reduction))


def test_all_reduce_over_the_grid_to_wider_elements(compile_program):
    program = compile_program(one_op("all_reduce %x on @grid grid_axes = [1, 0]", "7xbf16", "7xf32"))
    check(program, values([7], BF16), [range(6)], lambda parts, _: combine([p.astype(F32) for p in parts], "sum"))


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_all_gather(compile_program, dim):
    shape = [2, 3, 4]
    shape[dim] *= 3
    program = compile_program(one_op(f"all_gather %x on @grid grid_axes = [1] gather_axis = {dim}", "2x3x4xf32", "x".join(map(str, shape)) + "xf32"))
    check(program, values([2, 3, 4]), ROWS, lambda parts, _: np.concatenate(parts, axis=dim))


@pytest.mark.parametrize("dim", [0, 1])
def test_reduce_scatter(compile_program, dim):
    shape = ["4x6", "2x6"] if dim == 0 else ["4x6", "4x3"]
    program = compile_program(one_op(f"reduce_scatter %x on @grid grid_axes = [0] scatter_axis = {dim}", shape[0] + "xf32", shape[1] + "xf32"))
    check(program, values([4, 6]), COLUMNS, lambda parts, i: np.split(combine(parts, "sum"), 2, axis=dim)[i])


@pytest.mark.parametrize("split, concat", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_all_to_all(compile_program, split, concat):
    shape = [6, 3]
    shape[split] //= 3
    shape[concat] *= 3
    program = compile_program(
        one_op(f"all_to_all %x on @grid grid_axes = [1] split_axis = {split} concat_axis = {concat}", "6x3xf32", "x".join(map(str, shape)) + "xf32")
    )
    check(program, values([6, 3]), ROWS, lambda parts, i: np.concatenate([np.split(p, 3, axis=split)[i] for p in parts], axis=concat))


def test_shift(compile_program):
    program = compile_program(one_op("shift %x on @grid grid_axes = [1] shift_axis = 1 offset = 2 rotate", "5xf32", "5xf32"))
    check(program, values([5]), ROWS, lambda parts, i: parts[(i - 2) % 3])


def test_all_slice(compile_program):
    program = compile_program(one_op("all_slice %x on @grid grid_axes = [1] slice_axis = 1", "2x6xf32", "2x2xf32"))
    check(program, values([2, 6]), ROWS, lambda parts, i: np.split(parts[i], 3, axis=1)[i])


def test_broadcast_and_scatter(compile_program):
    text = (
        GRID
        + """func.func @main(%x: tensor<6xf32>) -> (tensor<6xf32>, tensor<2xf32>) {
  %all = shard.broadcast %x on @grid grid_axes = [1] root = [2] : (tensor<6xf32>) -> tensor<6xf32>
  %part = shard.scatter %x on @grid grid_axes = [1] scatter_axis = 0 root = [1] : (tensor<6xf32>) -> tensor<2xf32>
  return %all, %part : tensor<6xf32>, tensor<2xf32>
}"""
    )
    parts = values([6])
    results = run(compile_program(text), [{"0": part} for part in parts])
    for rank, (everything, part) in enumerate(results):
        assert_same_bits(everything, parts[rank // 3 * 3 + 2])
        assert_same_bits(part, np.split(parts[rank // 3 * 3 + 1], 3)[rank % 3])


def test_fp8_bytes_are_gathered(compile_program):
    text = """func.func @main(%x: tensor<2x4xf8E4M3FN>) -> tensor<12x4xf8E4M3FN> {
  %e = tensor.empty() : tensor<12x4xf8E4M3FN>
  %r = fp8.all_gather dim 0 on(6) axes [0] ins(%x : tensor<2x4xf8E4M3FN>) outs(%e : tensor<12x4xf8E4M3FN>) -> tensor<12x4xf8E4M3FN>
  return %r : tensor<12x4xf8E4M3FN>
}"""
    parts = values([2, 4], E4M3)
    for (result,) in run(compile_program(text), [{"0": part} for part in parts]):
        assert_same_bits(result, np.concatenate(parts))


def test_places_on_the_grid(compile_program):
    text = (
        GRID
        + """func.func @main() -> tensor<5xi64> {
  %rank = shard.process_linear_index on @grid : index
  %row, %column = shard.process_multi_index on @grid : index, index
  %only = shard.process_multi_index on @grid axes = [1] : index
  %extent = shard.grid_shape @grid axes = [1] : index
  %i0 = arith.index_cast %rank : index to i64
  %i1 = arith.index_cast %row : index to i64
  %i2 = arith.index_cast %column : index to i64
  %i3 = arith.index_cast %only : index to i64
  %i4 = arith.index_cast %extent : index to i64
  %r = tensor.from_elements %i0, %i1, %i2, %i3, %i4 : tensor<5xi64>
  return %r : tensor<5xi64>
}"""
    )
    for rank, (place,) in enumerate(run(compile_program(text), [{}] * SIZE)):
        assert place.tolist() == [rank, rank // 3, rank % 3, rank % 3, 3]


def test_collectives_in_a_loop_start_in_one_order(compile_program):
    text = """shard.grid @grid(shape = ?)
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x, %b = %y) -> (tensor<4xf32>, tensor<4xf32>) {
    %s = shard.all_reduce %a on @grid grid_axes = [0] : tensor<4xf32> -> tensor<4xf32>
    %m = shard.all_reduce %b on @grid grid_axes = [0] reduction = max : tensor<4xf32> -> tensor<4xf32>
    %t = arith.addf %s, %m : tensor<4xf32>
    scf.yield %t, %s : tensor<4xf32>, tensor<4xf32>
  }
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}"""
    ranks = Ranks(compile_program(text).library, 3)
    x, y = values([4])[:3], values([4])[3:]
    results, errors = ranks.step([{"0": a, "1": b} for a, b in zip(x, y)])
    assert errors == [""] * 3
    for _ in range(3):
        total, largest = combine(x, "sum"), combine(y, "max")
        x, y = [total + largest] * 3, [total] * 3
    for result in results:
        assert_same_bits(result[0], x[0])
        assert_same_bits(result[1], y[0])
    assert all(rank.log == ranks.all[0].log for rank in ranks.all) and len(ranks.all[0].log) == 6


PRODUCT = """
func.func @main(%x: tensor<4x8xf32> loc("x"), %w: tensor<8x4xf32> loc("w"), %g: tensor<4x4xf32> loc("g")) -> (tensor<4x4xf32>, tensor<8x4xf32>) {
  %e = tensor.empty() : tensor<4x4xf32>
  %z = arith.constant 0.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x4xf32>) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32> loc("jit(f)/jvp(fc)/dot_general")
  %e2 = tensor.empty() : tensor<8x4xf32>
  %f2 = linalg.fill ins(%z : f32) outs(%e2 : tensor<8x4xf32>) -> tensor<8x4xf32>
  %dw = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %g : tensor<4x8xf32>, tensor<4x4xf32>) outs(%f2 : tensor<8x4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<8x4xf32> loc("jit(f)/transpose(jvp(fc))/dot_general")
  return %y, %dw : tensor<4x4xf32>, tensor<8x4xf32>
}
"""


@pytest.mark.parametrize(
    "options, groups",
    [([], [range(6)]), (["--reduce-amax-axes=1"], ROWS), (["--reduce-amax-axes=0"], COLUMNS), (["--reduce-amax=false"], [[r] for r in range(6)])],
)
def test_amaxes_are_combined_once(bin_dir, tmp_path, options, groups):
    program = Program(bin_dir, tmp_path, GRID + PRODUCT, "--recipe=delayed", "--amax-history-len=2", *options)
    rng = random_generator(171)
    inputs = [{"x": rng.standard_normal([4, 8]), "w": rng.standard_normal([8, 4]), "g": rng.standard_normal([4, 4])} for _ in range(SIZE)]
    ranks = Ranks(program.library, SIZE)
    results, errors = ranks.step(inputs)
    assert errors == [""] * SIZE
    kinds = [column["tensor"] for column in program.manifest["state"]["columns"]]
    for group in groups:
        for rank in group:
            amaxes = [max(np.abs(np.float32(inputs[r][{"input": "x", "weight": "w", "grad_output": "g"}[kind]])).max() for r in group) for kind in kinds]
            assert_same_bits(results[rank][-1][1], np.array(amaxes, F32))
    expected = 0 if "--reduce-amax=false" in options else 1
    assert [len(rank.log) for rank in ranks.all] == [expected] * SIZE


def test_one_rank_has_no_collectives(bin_dir, tmp_path):
    program = Program(bin_dir, tmp_path, PRODUCT, "--recipe=delayed")
    assert program.manifest["call"] == 1 and "grid" not in program.manifest


def test_what_a_call_reports(compile_program):
    text = one_op("all_reduce %x on @grid grid_axes = [1]", "4xf32", "4xf32")
    program = compile_program(text)
    entry = program.manifest["entries"][0]
    assert program.manifest["call"] == 2 and program.manifest["grid"] == {"shape": [2, 3], "axes": ["0", "1"]}
    assert [(c["kind"], c["reduction"], c["axes"], c["bytes"]) for c in entry["collectives"]] == [("all_reduce", "sum", [1], 16)]
    inputs = [{"0": np.ones(4)}] * 4
    wanted = "this program runs on 6 ranks (grid 2x3), and the call's communicator has another number"
    assert all(error.startswith(wanted) for error in Ranks(program.library, 4).step(inputs)[1])
    assert Ranks(program.library, 1).step(inputs, alone=True)[1][0].startswith(wanted)
    _, errors = Ranks(program.library, 6, failing="all_reduce").step([{"0": np.ones(4)}] * 6)
    assert set(errors) == {"rank 1 is gone"}


@pytest.mark.parametrize("line, reason", [
    ("%r = shard.recv %x on @grid grid_axes = [1] : (tensor<6xf32>) -> tensor<6xf32>", "'shard.recv' is not supported"),
    ("%r = shard.all_reduce %x on @grid grid_axes = [1] reduction = bitwise_or : tensor<6xf32> -> tensor<6xf32>", "there are sum, max, min, product and average"),
    ("%r = shard.all_gather %x on @grid grid_axes = [1, 0] gather_axis = 0 : tensor<6xf32> -> tensor<36xf32>", "axes of the grid out of their order"),
])  # fmt: skip
def test_errors_are_at_their_line(bin_dir, tmp_path, line, reason):
    import subprocess

    (tmp_path / "p.mlir").write_text(GRID + f"func.func @main(%x: tensor<6xf32>) {{\n  {line}\n  return\n}}\n")
    done = subprocess.run([bin_dir / "fp8-compile", tmp_path / "p.mlir", "-o", tmp_path / "p.so"], capture_output=True, text=True)
    assert done.returncode == 1 and "p.mlir:3:8: error: " in done.stderr and reason in done.stderr
