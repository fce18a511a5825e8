# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Other projects can use this one as an installation (find_package) or with its sources in
# their tree (add_subdirectory). test/Embedding holds a project for each way.

import subprocess

import numpy as np
import pytest

from harness import load, save

pytestmark = pytest.mark.slow

MODEL = """
func.func @main(%x: tensor<4x8xbf16>, %w: tensor<8x16xbf16>) -> tensor<4x16xbf16> {
  %zero = arith.constant 0.0 : bf16
  %empty = tensor.empty() : tensor<4x16xbf16>
  %init = linalg.fill ins(%zero : bf16) outs(%empty : tensor<4x16xbf16>) -> tensor<4x16xbf16>
  %y = linalg.matmul ins(%x, %w : tensor<4x8xbf16>, tensor<8x16xbf16>) outs(%init : tensor<4x16xbf16>) -> tensor<4x16xbf16>
  return %y : tensor<4x16xbf16>
}
"""

#: One operation for each set of patterns, and the operations that take its place.
REWRITES = """
#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (n, k)>
#out = affine_map<(m, n, k) -> (m, n)>
#row = affine_map<(i, j) -> (i, j)>
#sum = affine_map<(i, j) -> (i)>
func.func @main(%bytes: tensor<4x8xi8>, %none: tensor<0x?xf32>, %one: tensor<4x1xf32>, %w: tensor<8x16xf8E4M3FN>, %scale: tensor<f32>,
    %rows: memref<?xf32>, %m: index, %n: index)
    -> (tensor<?xf32>, tensor<4xf32>, tensor<4x16xf32>, memref<?x?xf32>) {
  %x = tensor.bitcast %bytes : tensor<4x8xi8> to tensor<4x8xf8E4M3FN>
  %flat = tensor.collapse_shape %none [[0, 1]] : tensor<0x?xf32> into tensor<?xf32>
  %zero = arith.constant 0.0 : f32
  %no_sums = tensor.empty() : tensor<4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%no_sums : tensor<4xf32>) -> tensor<4xf32>
  %sums = linalg.generic {indexing_maps = [#row, #sum], iterator_types = ["parallel", "reduction"]}
      ins(%one : tensor<4x1xf32>) outs(%zeros : tensor<4xf32>) {
    ^bb0(%element: f32, %before: f32):
      %added = arith.addf %element, %before : f32
      linalg.yield %added : f32
  } -> tensor<4xf32>
  %turned = tensor.empty() : tensor<16x8xf8E4M3FN>
  %wt = linalg.transpose ins(%w : tensor<8x16xf8E4M3FN>) outs(%turned : tensor<16x8xf8E4M3FN>) permutation = [1, 0]
  %empty = tensor.empty() : tensor<4x16xf32>
  %y = fp8.scaled_matmul fast ins(%x, %wt : tensor<4x8xf8E4M3FN>, tensor<16x8xf8E4M3FN>) scales(%scale, %scale : tensor<f32>, tensor<f32>)
      outs(%empty : tensor<4x16xf32>) {indexing_maps = [#lhs, #rhs, #out]} -> tensor<4x16xf32>
  %matrix = memref.expand_shape %rows [[0, 1]] output_shape [%m, %n] : memref<?xf32> into memref<?x?xf32>
  return %flat, %sums, %y, %matrix : tensor<?xf32>, tensor<4xf32>, tensor<4x16xf32>, memref<?x?xf32>
}
"""


def command(*arguments, **options):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def configure(source, build, build_dir, *definitions):
    """With the compiler and the MLIR that the build itself uses."""
    cache = dict(
        line.split("=", 1) for line in (build_dir / "CMakeCache.txt").read_text().splitlines() if "=" in line
    )
    known = {key.split(":")[0]: value for key, value in cache.items()}
    keep = ["CMAKE_C_COMPILER", "CMAKE_CXX_COMPILER", "CMAKE_EXE_LINKER_FLAGS", "MLIR_DIR"]
    command("cmake", "-G", "Ninja", "-S", source, "-B", build, "-DCMAKE_BUILD_TYPE=Release",
            *("-D%s=%s" % (name, known[name]) for name in keep), *definitions)


def test_find_package(source_dir, build_dir, tmp_path):
    prefix, build = tmp_path / "prefix", tmp_path / "build"
    command("cmake", "--install", build_dir, "--prefix", prefix)
    for installed in ["bin/fp8-opt", "bin/fp8-compile", "bin/fp8-run", "bin/fp8-ptx", "lib/FP8Plugin.so", "lib/libfp8emu.so",
                      "lib/fp8emu/libcuda.so.1", "include/fp8rt/call.h", "include/fp8-c/Compiler.h", "lib/libFP8C.so"]:
        assert (prefix / installed).exists()
    configure(source_dir / "test/Embedding/FindPackage", build, build_dir, "-DCMAKE_PREFIX_PATH=%s" % prefix)
    command("cmake", "--build", build)
    (tmp_path / "rewrites.mlir").write_text(REWRITES)
    rewritten = command(build / "patterns", tmp_path / "rewrites.mlir")
    for before in ["tensor.bitcast", "tensor<0x?xf32> into", '"reduction"', "linalg.transpose", "memref.expand_shape"]:
        assert before in REWRITES and before not in rewritten
    for after in ["arith.bitcast", "memref.reinterpret_cast"]:
        assert after in rewritten
    (tmp_path / "model.mlir").write_text(MODEL)
    assert command(build / "embed", tmp_path / "model.mlir") == "matmul0 fprop current\n"
    assert "1 contractions: 1 in FP8, 0 in high precision" in command(build / "compile", tmp_path / "model.mlir")
    command(build / "compile-in-c", tmp_path / "model.mlir", tmp_path / "step.so")
    command(prefix / "bin/fp8-compile", tmp_path / "model.mlir", "-o", tmp_path / "same.so")
    assert (tmp_path / "step.so").read_bytes() == (tmp_path / "same.so").read_bytes()


def test_installed_tools_and_plugin_run(build_dir, tmp_path):
    prefix = tmp_path / "prefix"
    command("cmake", "--install", build_dir, "--prefix", prefix)
    (tmp_path / "model.mlir").write_text(MODEL)
    plugin = prefix / "lib/FP8Plugin.so"
    pipeline = "--pass-pipeline=builtin.module(fp8-ingest-pipeline,fp8-recipe-pipeline{recipe=current})"
    own = command(prefix / "bin/fp8-opt", pipeline, tmp_path / "model.mlir")
    stock = command("mlir-opt-22", "--load-dialect-plugin=%s" % plugin, "--load-pass-plugin=%s" % plugin, pipeline,
                    tmp_path / "model.mlir")
    assert own == stock and own.count("fp8.scaled_matmul") == 1


def test_add_subdirectory(source_dir, build_dir, tmp_path):
    configure(source_dir / "test/Embedding/AddSubdirectory", tmp_path, build_dir, "-DFP8_SOURCE_DIR=%s" % source_dir)
    command("cmake", "--build", tmp_path, "--target", "embed", "-j2")
    assert command(tmp_path / "embed") == "delayed\n"


STEP = """
func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x16xf32>) -> tensor<4x16xf32>
  %y = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%init : tensor<4x16xf32>) -> tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}
"""


@pytest.fixture(scope="module")
def extend(source_dir, build_dir, tmp_path_factory):
    """A compiler with a recipe and a target that fp8-mlir does not know."""
    folder = tmp_path_factory.mktemp("extend")
    command("cmake", "--install", build_dir, "--prefix", folder / "prefix")
    configure(source_dir / "test/Embedding/Extend", folder / "build", build_dir, "-DCMAKE_PREFIX_PATH=%s" % (folder / "prefix"))
    command("cmake", "--build", folder / "build")
    (folder / "step.mlir").write_text(STEP)

    def run(output, *options):
        return subprocess.run([folder / "build/extend", folder / "step.mlir", output, *options], capture_output=True, text=True)

    return run


def test_recipe_of_another_project(extend, bin_dir, tmp_path):
    """Scales follow the mean of the last two amaxes, and the products are cast with them."""
    library = tmp_path / "step.so"
    done = extend(library, "recipe=#mean.last_two", "target=toy", "calibrate")
    assert done.returncode == 0, done.stderr
    random = np.random.default_rng(5)
    w = random.normal(size=(8, 16)).astype(np.float32)
    state, past = None, None
    for step in range(4):
        x = (random.normal(size=(4, 8)) * 2.0**step).astype(np.float32)
        save(tmp_path / "inputs", {"0": x, "1": w})
        options = ["--state=%s" % (tmp_path / "state")] if step else []
        command(bin_dir / "fp8-run", library, "--inputs=%s" % (tmp_path / "inputs"), "--save-state=%s" % (tmp_path / "state"),
                "--outputs=%s" % (tmp_path / "outputs"), *options)
        state = load(tmp_path / "state")
        current = np.array([abs(x).max(), abs(w).max()], np.float32)
        amax = current if past is None else ((past + current) * np.float32(0.5)).astype(np.float32)
        np.testing.assert_array_equal(state["scale"], np.float32(448) / amax)
        np.testing.assert_array_equal(state["amax_history"], [[0, 0], current])
        past = current
    # A step with this state is the product of the tensors as they are cast with its scales.
    scales = state["scale"]
    save(tmp_path / "inputs", {"0": x, "1": w})
    command(bin_dir / "fp8-run", library, "--inputs=%s" % (tmp_path / "inputs"), "--state=%s" % (tmp_path / "state"),
            "--outputs=%s" % (tmp_path / "outputs"))
    import ml_dtypes
    cast = [np.clip(t * s, -448, 448).astype(ml_dtypes.float8_e4m3fn).astype(np.float64) for t, s in zip((x, w), scales)]
    inverse = (np.float32(1) / scales).astype(np.float32)
    want = (cast[0] @ cast[1]).astype(np.float32) * (inverse[0] * inverse[1])
    # Products of two E4M3 values are exact in f32; sums of eight of them may round, twice at most in the last place.
    np.testing.assert_allclose(load(tmp_path / "outputs")["0"], want, rtol=2**-22, atol=2**-22 * abs(want).max())


def test_target_of_another_project(extend, tmp_path):
    out = tmp_path / "out"
    assert extend(out, "recipe=#mean.last_two", "target=toy", "emit=bufferize").returncode == 0
    assert "fp8.target = #toy.target" in out.read_text()
    # An output of its own, the target by its attribute.
    assert extend(out, "recipe=delayed", "target=#toy.target", "emit=kernel-list").returncode == 0
    assert out.read_text().startswith("kernel_")
    # A recipe without kernels is refused once, at selection.
    done = extend(out, "recipe=current", "target=toy")
    assert done.returncode == 1
    assert done.stderr.count("error") == 1 and "scales of the step itself have no kernel on toy; use --recipe=delayed" in done.stderr
    # The words of other targets are no words of this one.
    done = extend(out, "target=toy", "emit=obj")
    assert (done.returncode, done.stderr) == (
        2, "--emit=obj belongs to --target=cpu, sm_100a, sm_120a, sm_89, sm_90a, not to --target=toy; drop one of the two\n")
    done = extend(out, "target=toy", "emit=nothing")
    assert (done.returncode, done.stderr) == (
        2, "--emit=nothing is none of lib, kernel-list, ingest, recipe, fusion, batching, bufferize, kernels\n")
    done = extend(out, "target=tpu")
    assert done.returncode == 2 and "is none of cpu, sm_100a, sm_120a, sm_89, sm_90a, toy and no attribute of a target" in done.stderr
