# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes of the call beyond what kernels count, in 32 bits. No memory of these sizes is needed: the call must end before
its product, with addresses where nothing is. Sizes that are known are test/Conversion/FP8ToGPU/large-sizes.mlir."""
import ctypes
import os
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from c_abi import DLTensor, integers  # noqa: E402

# Rows alone; rows of two dimensions, each of which is small.
ROWS = """
func.func @main(%x: tensor<?x16xbf16>, %w: tensor<16x32xbf16>) -> tensor<?x32xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x16xbf16>
  %e = tensor.empty(%m) : tensor<?x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x32xf32>) -> tensor<?x32xf32>
  %r = linalg.matmul ins(%x, %w : tensor<?x16xbf16>, tensor<16x32xbf16>) outs(%f : tensor<?x32xf32>) -> tensor<?x32xf32>
  return %r : tensor<?x32xf32>
}
"""
TWO = """
#lhs = affine_map<(a, b, n, k) -> (a, b, k)>
#rhs = affine_map<(a, b, n, k) -> (k, n)>
#out = affine_map<(a, b, n, k) -> (a, b, n)>
func.func @main(%x: tensor<?x?x16xbf16>, %w: tensor<16x32xbf16>) -> tensor<?x?x32xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = tensor.dim %x, %c0 : tensor<?x?x16xbf16>
  %b = tensor.dim %x, %c1 : tensor<?x?x16xbf16>
  %e = tensor.empty(%a, %b) : tensor<?x?x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?x32xf32>) -> tensor<?x?x32xf32>
  %r = linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x?x16xbf16>, tensor<16x32xbf16>) outs(%f : tensor<?x?x32xf32>) {
  ^bb0(%p: bf16, %q: bf16, %o: f32):
    %0 = arith.extf %p : bf16 to f32
    %1 = arith.extf %q : bf16 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %o, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<?x?x32xf32>
  return %r : tensor<?x?x32xf32>
}
"""
MOST = 2**31 - 512
BF16, F32 = (4, 16), (2, 32)


def describe(kind, shape, number):
    tensor = DLTensor(None, 2, number, len(shape), *kind, 1, integers(shape), None, 0)
    return ctypes.pointer(tensor)


def call(bin_dir, library, rows):
    """Returns the error of a call with so many rows."""
    runtime = ctypes.CDLL(os.fspath(bin_dir.parent / "lib/libfp8rt.so"))
    runtime.fp8rt_last_error.restype = ctypes.c_char_p
    loaded, gpu, prepared = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()

    def checked(function, *arguments):
        assert getattr(runtime, function)(*arguments) == 0, runtime.fp8rt_last_error().decode()

    checked("fp8rt_library_load", os.fsencode(library), ctypes.byref(loaded))
    checked("fp8rt_gpu_open", b"emulator", loaded, ctypes.byref(gpu))
    pair, one = ctypes.POINTER(DLTensor) * 2, ctypes.POINTER(DLTensor) * 1
    for number in range(4):  # of the chip among the emulator's devices
        given = pair(describe(BF16, [*rows, 16], number), describe(BF16, [16, 32], number))
        results = one(describe(F32, [*rows, 32], number))
        if runtime.fp8rt_prepare_on(gpu, b"main", None, given, 2, results, 1, ctypes.byref(prepared)) == 0:
            break
    assert prepared, runtime.fp8rt_last_error().decode()
    nowhere = [ctypes.c_void_p(1 << 20)] * 2
    assert runtime.fp8rt_prepared_call(prepared, (ctypes.c_void_p * 2)(*nowhere), (ctypes.c_void_p * 1)(nowhere[0])) != 0
    error = runtime.fp8rt_last_error().decode()
    runtime.fp8rt_prepared_destroy(prepared)
    runtime.fp8rt_gpu_close(gpu)
    runtime.fp8rt_library_destroy(loaded)
    return error


CASES = [(chip, ROWS, [rows]) for chip in ["sm_89", "sm_90a", "sm_100a", "sm_120a"] for rows in [MOST + 1, 2**32 + 5]]


@pytest.mark.parametrize("chip, source, rows, recipe, kernel", [
    *((*case, "none", "product") for case in CASES), ("sm_89", TWO, [2**16, 2**16], "none", "product"),
    ("sm_90a", TWO, [2**16, 2**16], "current", "amax")])  # the rows of a cast are those of both dimensions
def test_a_size_of_the_call_is_too_large(bin_dir, tmp_path, chip, source, rows, recipe, kernel):
    (tmp_path / "p.mlir").write_text(source)
    library = tmp_path / "p.so"
    subprocess.run([bin_dir / "fp8-compile", tmp_path / "p.mlir", "-o", library, f"--target={chip}", f"--recipe={recipe}", "--sites=all", "--ptxas=none"], check=True)
    # In a process of its own: a fill in front of the product leaves the device's context unusable.
    command = [sys.executable, __file__, bin_dir, library, *map(str, rows)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    error = done.stdout.strip()
    assert f"kernel 'kernel_{kernel}" in error and f"counts to {MOST}, and a size of this call is more" in error, error
    assert "p.mlir" in error and "\n" not in error, error


if __name__ == "__main__":
    print(call(pathlib.Path(sys.argv[1]), sys.argv[2], [int(rows) for rows in sys.argv[3:]]))
