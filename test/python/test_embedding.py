# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Others build on us in two ways: on an installation (find_package), or with our sources
# in their tree (add_subdirectory). test/Embedding holds a project for each.

import subprocess

import pytest

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
                      "lib/fp8emu/libcuda.so.1", "include/fp8rt/call.h"]:
        assert (prefix / installed).exists()
    configure(source_dir / "test/Embedding/FindPackage", build, build_dir, "-DCMAKE_PREFIX_PATH=%s" % prefix)
    command("cmake", "--build", build)
    (tmp_path / "model.mlir").write_text(MODEL)
    assert command(build / "embed", tmp_path / "model.mlir") == "matmul0 fprop current\n"


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
