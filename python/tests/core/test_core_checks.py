# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that programs make of their indices on a GPU: waited for, or, where nothing waits, made by a kernel."""

import os
import pathlib
import subprocess
import sys
import textwrap

import fp8
import numpy as np
import pytest

SOURCE = pathlib.Path(fp8.__file__).resolve().parents[1]

#: Twice the rows of a table by their indices.
ROWS = """
#map = affine_map<(d0, d1) -> (d0)>
#all = affine_map<(d0, d1) -> (d0, d1)>
func.func @main(%table: tensor<8x16xf32>, %rows: tensor<4xi64>) -> tensor<4x16xf32> {
  %empty = tensor.empty() : tensor<4x16xf32>
  %taken = linalg.generic {indexing_maps = [#map, #all], iterator_types = ["parallel", "parallel"]}
      ins(%rows : tensor<4xi64>) outs(%empty : tensor<4x16xf32>) {
  ^bb0(%row: i64, %out: f32):
    %zero = arith.constant 0 : i64
    %eight = arith.constant 8 : i64
    %low = arith.cmpi sge, %row, %zero : i64
    cf.assert %low, "a row is below 0" loc("model.py":7:5)
    %high = arith.cmpi slt, %row, %eight : i64
    cf.assert %high, "a row is above 7" loc("model.py":8:5)
    %i = arith.index_cast %row : i64 to index
    %j = linalg.index 1 : index
    %value = tensor.extract %table[%i, %j] : tensor<8x16xf32>
    %two = arith.addf %value, %value : f32
    linalg.yield %two : f32
  } -> tensor<4x16xf32>
  return %taken : tensor<4x16xf32>
}
"""
TABLE = np.arange(128, dtype=np.float32).reshape(8, 16)
GOOD = np.array([7, 0, 3, 3])
WRONG = {"low": (np.array([7, 0, -1, 3]), r"a row is below 0 \(model.py:7:5\)"), "high": (np.array([8, 0, 1, 3]), r"a row is above 7 \(model.py:8:5\)")}


@pytest.mark.parametrize("chip", ["sm_89", "sm_90a", "sm_100a", "sm_120a"])
def test_the_manifest_counts_them(chip):
    library = fp8.compile(ROWS, recipe="none", target=chip, device="emulator")
    entry = library.entries["main"].description
    assert (entry["capturable"], entry["checks"]) == (True, 2)
    np.testing.assert_array_equal(library.entries["main"](TABLE, GOOD)[0], 2 * TABLE[GOOD])


@pytest.mark.parametrize("which", WRONG)
@pytest.mark.parametrize("device", ["cpu", "emulator"])
def test_a_call_waits_for_them_and_the_next_one_runs(device, which):
    main = fp8.compile(ROWS, recipe="none", device=device).entries["main"]
    wrong, message = WRONG[which]
    for _ in range(2):
        with pytest.raises(fp8.RunError, match=f"{message}$"):
            main(TABLE, wrong)
        np.testing.assert_array_equal(main(TABLE, GOOD)[0], 2 * TABLE[GOOD])


LATER = """
import fp8, numpy as np
from fp8 import _device
chip = "sm_90a"
device = next(d for d in (f"cuda:{i}" for i in range(4)) if _device.chip_of(d) == chip)
library = fp8.compile(%r, recipe="none", target=chip, device=device)
main = library.entries["main"]
table = library.put(np.arange(128, dtype=np.float32).reshape(8, 16))
rows, wrong = library.put(np.array([7, 0, 3, 3])), library.put(np.array(%s))
right = 2 * table.numpy()[rows.numpy()]
prepared = library.prepare("main")
for _ in range(3):
    assert (main(table, rows)[0].numpy() == right).all()
result = main(table, rows)[0]
try:
    for _ in range(2):
        prepared.enqueue([table.pointer, wrong.pointer], [result.pointer], 0)
    print("enqueued")
    library.opened().wait(0)
except fp8.RunError as error:
    print(error)
for _ in range(2):
    try:
        main(table, rows)
    except fp8.RunError as error:
        print(error)
"""


@pytest.mark.parametrize("which", WRONG)
def test_where_nothing_waits_a_later_call_tells(request, which):
    """In a process of its own, as all work of the process on the GPU ends."""
    wrong, message = WRONG[which]
    driver = pathlib.Path(request.config.getoption("--build")).resolve() / "lib" / "fp8emu" / "libcuda.so.1"
    code = textwrap.dedent(LATER) % (ROWS, wrong.tolist())
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "FP8RT_CUDA_DRIVER": str(driver), "FP8RT_CHECKS": "later"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) == 3, done.stderr + done.stdout
    for line in lines[-2:]:
        assert message.replace("\\", "") + "; as no call waited for this check, it has ended all work of this process on" in line
