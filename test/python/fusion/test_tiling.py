# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations that upstream tiled and fused compute the same bits as without tiling."""
import ml_dtypes
import numpy as np
from safetensors.numpy import load_file, save_file

PROGRAM = """
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>
func.func @main(%x: tensor<12x40xbf16>, %w: tensor<24x40xbf16>, %gain: tensor<40xbf16>, %bias: tensor<24xf32>,
                %scale: tensor<f32>, %c: tensor<24x12xbf16>)
    -> (tensor<12x24xbf16>, tensor<40x12xbf16>, tensor<24x12xbf16>) {
  %d = tensor.empty() : tensor<12x40xf8E4M3FN>
  %t = tensor.empty() : tensor<40x12xf8E4M3FN>
  %v = tensor.empty() : tensor<24x40xf8E4M3FN>
  %i = tensor.empty() : tensor<f32>
  %q:3 = fp8.quantize ins(%x, %gain : tensor<12x40xbf16>, tensor<40xbf16>) scale(%scale : tensor<f32>)
      outs(%d, %t, %i : tensor<12x40xf8E4M3FN>, tensor<40x12xf8E4M3FN>, tensor<f32>)
      {transposition = array<i64: 1, 0>, indexing_maps = [#id, #row]} producer {
    ^bb0(%e: bf16, %g: bf16):
      %p = arith.mulf %e, %g : bf16
      fp8.yield %p : bf16
    } -> tensor<12x40xf8E4M3FN>, tensor<40x12xf8E4M3FN>, tensor<f32>
  %r:2 = fp8.quantize ins(%w : tensor<24x40xbf16>) scale(%scale : tensor<f32>)
      outs(%v, %i : tensor<24x40xf8E4M3FN>, tensor<f32>) -> tensor<24x40xf8E4M3FN>, tensor<f32>
  %y0 = tensor.empty() : tensor<12x24xbf16>
  %y = fp8.scaled_matmul fast ins(%q#0, %r#0 : tensor<12x40xf8E4M3FN>, tensor<24x40xf8E4M3FN>)
      scales(%q#2, %r#1 : tensor<f32>, tensor<f32>) epilogue_ins(%bias : tensor<24xf32>)
      outs(%y0 : tensor<12x24xbf16>)
      {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                        affine_map<(m, n, k) -> (m, n)>], epilogue_maps = [#row]} epilogue {
    ^bb0(%sum: f32, %b: f32):
      %s = arith.addf %sum, %b : f32
      %n = arith.truncf %s : f32 to bf16
      fp8.yield %n : bf16
    } -> tensor<12x24xbf16>
  %z0 = tensor.empty() : tensor<40x12xbf16>
  %z = fp8.dequantize ins(%q#1 : tensor<40x12xf8E4M3FN>) scale_inv(%q#2 : tensor<f32>) outs(%z0 : tensor<40x12xbf16>)
      -> tensor<40x12xbf16>
  %p = fp8.matmul accumulate ins(%w, %x : tensor<24x40xbf16>, tensor<12x40xbf16>) outs(%c : tensor<24x12xbf16>)
      {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                        affine_map<(m, n, k) -> (m, n)>]} -> tensor<24x12xbf16>
  return %y, %z, %p : tensor<12x24xbf16>, tensor<40x12xbf16>, tensor<24x12xbf16>
}
"""

# Tiles of products have static sizes; the last ones of the dequantize are short. Casts are
# computed in the loop that reads them.
STRATEGY = """
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %y = transform.structured.match ops{["fp8.scaled_matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %y1, %yl:2 = transform.structured.fuse %y tile_sizes [4, 8, 0]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %z = transform.structured.match ops{["fp8.dequantize"]} in %root : (!transform.any_op) -> !transform.any_op
    %z1, %zl:2 = transform.structured.fuse %z tile_sizes [16, 5]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %p = transform.structured.match ops{["fp8.matmul"]} in %root : (!transform.any_op) -> !transform.any_op
    %p1, %pl:2 = transform.structured.tile_using_for %p tile_sizes [8, 4]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}
"""


def check_tiles(run, tmp_path, strategy, loops):
    """The program tiled by `strategy` gives what the whole gives, bit for bit."""
    (tmp_path / "strategy.mlir").write_text(strategy)
    (tmp_path / "whole.mlir").write_text(PROGRAM)
    preload = f"transform-preload-library{{transform-library-paths={tmp_path / 'strategy.mlir'}}}"
    tiled = run("fp8-opt", f"--pass-pipeline=builtin.module({preload},transform-interpreter,canonicalize,cse)",
                stdin=PROGRAM)
    assert tiled.returncode == 0, tiled.stderr
    assert [tiled.stdout.count(f"scf.{kind} ") for kind in ("for", "forall")] == loops, tiled.stdout
    (tmp_path / "tiled.mlir").write_text(tiled.stdout)

    rng = np.random.default_rng(7)
    bf16 = ml_dtypes.bfloat16
    save_file({
        "0": rng.standard_normal((12, 40), np.float32).astype(bf16),
        "1": rng.standard_normal((24, 40), np.float32).astype(bf16),
        "2": rng.standard_normal(40, np.float32).astype(bf16),
        "3": rng.standard_normal(24, np.float32),
        "4": np.array(37.5, np.float32),
        "5": rng.standard_normal((24, 12), np.float32).astype(bf16),
    }, tmp_path / "in")
    for name in ("whole", "tiled"):
        done = run("fp8-compile", f"{name}.mlir", "-o", f"{name}.so", "--recipe=none", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        done = run("fp8-run", f"./{name}.so", "--inputs=in", f"--outputs={name}.out", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    whole, tiles = load_file(tmp_path / "whole.out"), load_file(tmp_path / "tiled.out")
    assert sorted(whole) == sorted(tiles) == ["0", "1", "2"]
    for name, value in whole.items():
        assert np.abs(value.astype(np.float32)).max() > 1
        np.testing.assert_array_equal(tiles[name].view(np.uint16), value.view(np.uint16))


def test_tiles_compute_what_the_whole_computes(run, tmp_path):
    check_tiles(run, tmp_path, STRATEGY, [6, 0])


def test_threads_have_panels_of_their_own(run, tmp_path):
    """Tiles of a scf.forall run at the same time, and each packs its operands."""
    strategy = STRATEGY.replace("%p1, %pl:2 = transform.structured.tile_using_for ", "%p1, %pl = transform.structured.tile_using_forall ")
    head, tail = strategy.rsplit("(!transform.any_op, !transform.any_op, !transform.any_op)", 1)
    check_tiles(run, tmp_path, head + "(!transform.any_op, !transform.any_op)" + tail, [4, 1])
