# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Libraries for a GPU, from source to results: each program is compiled for the CPU and for sm_89, which runs on the
emulator, and both must give the same bits. Products sum in the order of K (FP8EMU_SUMS=korder), as the CPU's do."""
import json
import os
import shutil
import subprocess

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

# A constant, bf16 arithmetic with its roundings, math functions.
CONSTANTS = """
#map = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
func.func @main(%x: tensor<37x4xbf16>) -> tensor<37x4xf32> {
  %c = arith.constant dense<[1.5, -2.0, 3.25, 0.1]> : tensor<4xbf16>
  %e = tensor.empty() : tensor<37x4xf32>
  %r = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]}
      ins(%x, %c : tensor<37x4xbf16>, tensor<4xbf16>) outs(%e : tensor<37x4xf32>) {
  ^bb0(%a: bf16, %b: bf16, %o: f32):
    %0 = arith.mulf %a, %b : bf16
    %1 = arith.addf %0, %a : bf16
    %2 = math.tanh %1 : bf16
    %3 = arith.extf %2 : bf16 to f32
    %4 = math.exp %3 : f32
    linalg.yield %4 : f32
  } -> tensor<37x4xf32>
  return %r : tensor<37x4xf32>
}
"""

# Sizes from the call, and a result that the caller allocates; both arguments must have one size.
DYNAMIC = """
#map = affine_map<(i) -> (i)>
func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]}
      ins(%x, %y : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.divf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}
"""

# Rows, and of how many elements, are known when the program runs; sums of integers are exact in any order.
DYNAMIC_ROWS = """
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @main(%x: tensor<?x?xf32>, %y: tensor<?x77xf32>) -> (tensor<?xf32>, tensor<?xf32>, tensor<?x77xf32>, tensor<f32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %none = arith.constant dense<0.0> : tensor<f32>
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %sums = linalg.reduce {arith.addf} ins(%x : tensor<?x?xf32>) outs(%f : tensor<?xf32>) dimensions = [1]
  %most = linalg.reduce {arith.maximumf} ins(%y : tensor<?x77xf32>) outs(%f : tensor<?xf32>) dimensions = [1]
  %ey = tensor.empty(%n) : tensor<?x77xf32>
  %shifted = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%y, %most : tensor<?x77xf32>, tensor<?xf32>) outs(%ey : tensor<?x77xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.subf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<?x77xf32>
  %all = linalg.reduce {arith.addf} ins(%x : tensor<?x?xf32>) outs(%none : tensor<f32>) dimensions = [0, 1]
  return %sums, %most, %shifted, %all : tensor<?xf32>, tensor<?xf32>, tensor<?x77xf32>, tensor<f32>
}
"""

# The host reads the condition of a loop, and of a branch, from the device.
CONTROL = """
#map = affine_map<(i) -> (i)>
#none = affine_map<(i) -> ()>
func.func @main(%x: tensor<5xf32>, %b: tensor<i1>) -> (tensor<5xf32>, tensor<5xf32>) {
  %limit = arith.constant 100.0 : f32
  %zero = arith.constant dense<0.0> : tensor<f32>
  %w = scf.while (%v = %x) : (tensor<5xf32>) -> tensor<5xf32> {
    %s = linalg.generic {indexing_maps = [#map, #none], iterator_types = ["reduction"]}
        ins(%v : tensor<5xf32>) outs(%zero : tensor<f32>) {
    ^bb0(%a: f32, %o: f32):
      %0 = arith.addf %a, %o : f32
      linalg.yield %0 : f32
    } -> tensor<f32>
    %sum = tensor.extract %s[] : tensor<f32>
    %more = arith.cmpf olt, %sum, %limit : f32
    scf.condition(%more) %v : tensor<5xf32>
  } do {
  ^bb0(%v: tensor<5xf32>):
    %d = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%v : tensor<5xf32>) outs(%v : tensor<5xf32>) {
    ^bb0(%a: f32, %o: f32):
      %0 = arith.addf %a, %a : f32
      linalg.yield %0 : f32
    } -> tensor<5xf32>
    scf.yield %d : tensor<5xf32>
  }
  %c = tensor.extract %b[] : tensor<i1>
  %z = scf.if %c -> tensor<5xf32> {
    %d = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
        ins(%w : tensor<5xf32>) outs(%x : tensor<5xf32>) {
    ^bb0(%a: f32, %o: f32):
      %0 = arith.negf %a : f32
      linalg.yield %0 : f32
    } -> tensor<5xf32>
    scf.yield %d : tensor<5xf32>
  } else {
    scf.yield %x : tensor<5xf32>
  }
  return %w, %z : tensor<5xf32>, tensor<5xf32>
}
"""

PRODUCT = """
func.func @main(%x: tensor<40x48xbf16>, %w: tensor<48x32xbf16>) -> tensor<40x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<40x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<40x32xf32>) -> tensor<40x32xf32>
  %r = linalg.matmul ins(%x, %w : tensor<40x48xbf16>, tensor<48x32xbf16>) outs(%f : tensor<40x32xf32>) -> tensor<40x32xf32>
  return %r : tensor<40x32xf32>
}
"""


# Reductions that are divided into parts, which none of the lengths is a multiple of; sums of integers are exact in any order.
LONG = """
#id = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<3x70001xf32>, %b: tensor<3x70001xbf16>) -> (tensor<3xf32>, tensor<70001xf32>, tensor<f32>, tensor<3xbf16>, tensor<i1>) {
  %zero = arith.constant dense<0.0> : tensor<3xf32>
  %zeros = arith.constant dense<0.0> : tensor<70001xf32>
  %none = arith.constant dense<0.0> : tensor<f32>
  %least = arith.constant dense<0xFF80> : tensor<3xbf16>
  %true = arith.constant dense<true> : tensor<i1>
  %limit = arith.constant 9.5 : f32
  %rows = linalg.reduce {arith.addf} ins(%x : tensor<3x70001xf32>) outs(%zero : tensor<3xf32>) dimensions = [1]
  %columns = linalg.reduce {arith.addf} ins(%x : tensor<3x70001xf32>) outs(%zeros : tensor<70001xf32>) dimensions = [0]
  %norm = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> ()>], iterator_types = ["reduction", "reduction"]}
      ins(%x : tensor<3x70001xf32>) outs(%none : tensor<f32>) {
  ^bb0(%a: f32, %sum: f32):
    %0 = arith.mulf %a, %a : f32
    %1 = arith.addf %sum, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  %most = linalg.reduce {arith.maximumf} ins(%b : tensor<3x70001xbf16>) outs(%least : tensor<3xbf16>) dimensions = [1]
  %small = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> ()>], iterator_types = ["reduction", "reduction"]}
      ins(%x : tensor<3x70001xf32>) outs(%true : tensor<i1>) {
  ^bb0(%a: f32, %all: i1):
    %0 = arith.cmpf olt, %a, %limit : f32
    %1 = arith.andi %all, %0 : i1
    linalg.yield %1 : i1
  } -> tensor<i1>
  return %rows, %columns, %norm, %most, %small : tensor<3xf32>, tensor<70001xf32>, tensor<f32>, tensor<3xbf16>, tensor<i1>
}
"""


class Both:
    """A program for the CPU and for a GPU."""

    def __init__(self, bin_dir, folder, text, *options):
        self.bin, self.folder = bin_dir, folder
        (folder / "p.mlir").write_text(text)
        for target in ["cpu", "sm_89"]:
            done = self.compile(f"--target={target}", "-o", f"{target}.so", f"--manifest={target}.json", "--ptxas=none", *options)
            assert done.returncode == 0, done.stderr

    def compile(self, *options):
        return subprocess.run([self.bin / "fp8-compile", "p.mlir", *options], cwd=self.folder, capture_output=True, text=True)

    def run(self, target, inputs, *options, **environment):
        save_file({str(i): np.asarray(value, order="C") for i, value in enumerate(inputs)}, self.folder / "in")
        device = "cpu" if target == "cpu" else "emulator"
        command = [self.bin / "fp8-run", f"{target}.so", "--inputs=in", f"--outputs={target}.out", f"--device={device}", *options]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, env={**os.environ, "FP8EMU_SUMS": "korder", **environment})

    def results(self, *inputs, **kwargs):
        """The results on the GPU, whose bits are those on the CPU."""
        for target in ["cpu", "sm_89"]:
            done = self.run(target, inputs, **kwargs)
            assert done.returncode == 0, done.stderr
        cpu, gpu = load_file(self.folder / "cpu.out"), load_file(self.folder / "sm_89.out")
        assert cpu.keys() == gpu.keys()
        for name, value in cpu.items():
            assert value.dtype == gpu[name].dtype and value.tobytes() == gpu[name].tobytes(), (name, value, gpu[name])
        return gpu

    def entry(self):
        return json.loads((self.folder / "sm_89.json").read_text())["entries"][0]


@pytest.fixture
def both(bin_dir, tmp_path):
    return lambda *arguments: Both(bin_dir, tmp_path, *arguments)


def test_constants_and_math(both):
    program = both(CONSTANTS)
    x = np.random.default_rng(1).normal(size=(37, 4)).astype(ml_dtypes.bfloat16)
    assert program.results(x)["0"].shape == (37, 4)
    manifest = json.loads((program.folder / "sm_89.json").read_text())
    assert manifest["call"] == 2 and manifest["target"] == "sm_89"
    assert manifest["entries"][0]["capturable"] is True and manifest["entries"][0]["workspace_alignment"] == 256
    assert "capturable" not in json.loads((program.folder / "cpu.json").read_text())["entries"][0]


@pytest.mark.parametrize("largest", [9, 10])
def test_long_reductions(both, largest):
    x = np.random.default_rng(largest).integers(-9, 10, (3, 70001)).astype(np.float32)
    x[2, 70000] = largest  # of the last part
    program = both(LONG)
    results = program.results(x, x.astype(ml_dtypes.bfloat16))
    assert results["0"].tolist() == x.sum(1).tolist() and (results["1"] == x.sum(0)).all()
    assert results["2"] == (x * x).sum() and results["3"].tolist() == [9, 9, largest] and results["4"] == (largest == 9)
    assert program.compile("--target=sm_89", "--emit=kernels", "-o", "kernels.mlir").returncode == 0
    assert (program.folder / "kernels.mlir").read_text().count("func.func @kernel_combine_parts") == 4


@pytest.mark.parametrize("size", [0, 1, 1000])
def test_dynamic_sizes(both, size):
    program = both(DYNAMIC)
    rng = np.random.default_rng(size)
    x, y = rng.normal(size=(2, size)).astype(np.float32)
    assert (program.results(x, y)["0"] == x / y).all()
    assert program.entry()["capturable"] is False


@pytest.mark.parametrize("rows, columns", [(0, 5), (1, 1), (9, 0), (300, 130)])
def test_rows_of_dynamic_sizes(both, rows, columns):
    program = both(DYNAMIC_ROWS)
    rng = np.random.default_rng(rows)
    x, y = rng.integers(-9, 10, (rows, columns)).astype(np.float32), rng.integers(-9, 10, (rows, 77)).astype(np.float32)
    results = program.results(x, y)
    most = np.maximum(y.max(1, initial=-9), 0)
    assert (results["0"] == x.sum(1)).all() and (results["1"] == most).all() and (results["2"] == y - most[:, None]).all()
    assert results["3"] == x.sum()
    assert program.compile("--target=sm_89", "--emit=ptx", "-o", "p.ptx").returncode == 0
    kernels = (program.folder / "p.ptx").read_text().split(".visible .entry ")
    assert ["shfl.sync.bfly" in kernel for kernel in kernels if kernel.startswith("kernel_reduce")] == [True] * 3  # lanes share a row


def test_a_failed_check_is_the_error_of_the_call(both):
    program = both(DYNAMIC)
    errors = [program.run(target, [np.ones(3, np.float32), np.ones(4, np.float32)]) for target in ["cpu", "sm_89"]]
    assert [done.returncode for done in errors] == [1, 1]
    assert errors[0].stderr == errors[1].stderr and "p.mlir" in errors[0].stderr


@pytest.mark.parametrize("branch", [True, False])
def test_conditions_are_read(both, branch):
    program = both(CONTROL)
    results = program.results(np.array([1, 2, 3, 4, 5], np.float32), np.array(branch))
    assert results["0"].tolist() == [8, 16, 24, 32, 40]
    assert results["1"].tolist() == ([-8, -16, -24, -32, -40] if branch else [1, 2, 3, 4, 5])
    assert program.entry()["capturable"] is False


@pytest.mark.parametrize("recipe", ["none", "delayed", "current"])
def test_products(both, recipe):
    program = both(PRODUCT, f"--recipe={recipe}", "--report=json:report")
    rng = np.random.default_rng(7)
    x, w = rng.normal(size=(40, 48)).astype(ml_dtypes.bfloat16), rng.normal(size=(48, 32)).astype(ml_dtypes.bfloat16)
    program.results(x, w)
    assert "mma.sync" in json.loads((program.folder / "report").read_text())["sites"][0]["code"]


def test_ptx_is_the_text_in_the_library(both):
    program = both(CONSTANTS)
    assert program.compile("--target=sm_89", "--emit=ptx", "-o", "p.ptx").returncode == 0
    text = (program.folder / "p.ptx").read_bytes()
    assert b".target sm_89" in text and text in (program.folder / "sm_89.so").read_bytes()
    again = program.compile("--target=sm_89", "--emit=ptx", "-o", "again.ptx", "--threads=1")
    assert again.returncode == 0 and (program.folder / "again.ptx").read_bytes() == text


def test_a_library_for_a_gpu_needs_a_device(both):
    program = both(CONSTANTS)
    done = subprocess.run([program.bin / "fp8-run", "sm_89.so", "--zero-missing"], cwd=program.folder, capture_output=True, text=True)
    assert done.returncode == 1 and "run it on a GPU" in done.stderr


def test_machine_code_of_ptxas(both):
    program = both(CONSTANTS)
    done = program.compile("--target=sm_89", "-o", "wrong.so", "--ptxas=/no/such/ptxas")
    assert done.returncode == 1 and "'/no/such/ptxas' failed" in done.stderr
    done = program.compile("--target=sm_89", "-o", "failing.so", "--ptxas=/bin/false")
    assert done.returncode == 1 and "'/bin/false' failed" in done.stderr
    if not shutil.which("ptxas"):
        pytest.skip("no ptxas here")
    done = program.compile("--target=sm_89", "-o", "sm_89.so", f"--ptxas={shutil.which('ptxas')}")
    assert done.returncode == 0 and done.stderr == ""
    assert b"\x7fELF" in (program.folder / "sm_89.so").read_bytes()[1:]
    program.results(np.ones((37, 4), ml_dtypes.bfloat16))  # from the text, which the library still has
