# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that programs make of their indices on a GPU: waited for, or, where nothing waits, made by a kernel."""

import os
import pathlib
import subprocess
import sys

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


#: Calls in a process with a driver of one GPU; `call(rows)` enqueues one, `wait()` waits for it.
PROCESS = """
import ctypes, sys
import fp8, numpy as np
from fp8 import _device
driver = ctypes.CDLL(%r)
device = next(d for d in (f"cuda:{i}" for i in range(4)) if _device.chip_of(d) == "sm_90a")
library = fp8.compile(%r, recipe="none", target="sm_90a", device=device)
main, prepared = library.entries["main"], library.prepare("main")
table, rows = library.put(np.arange(128, dtype=np.float32).reshape(8, 16)), library.put(np.array([7, 0, 3, 3]))
right, wrong = 2 * table.numpy()[rows.numpy()], np.array(%s)
assert (main(table, rows)[0].numpy() == right).all()
result = main(table, rows)[0]

def attempt(call):
    try:
        call()
    except fp8.RunError as error:
        print(error)

def enqueue(stream=0):
    prepared.enqueue([table.pointer, rows.pointer], [result.pointer], stream)

def write_wrong_rows():
    library.opened().write(rows.pointer, wrong.ctypes.data, wrong.nbytes)
"""
#: Nothing waits for the checks of these calls.
LATER = """
for _ in range(3):
    enqueue()
write_wrong_rows()
attempt(lambda: (enqueue(), library.opened().wait(0)))
"""
#: The work is a graph, and its indices are wrong when it is launched the second time.
CAPTURED = """
def check(name, *arguments):
    assert getattr(driver, name)(*arguments) == 0, name

number, context, stream, graph, launched = ctypes.c_int(), *(ctypes.c_void_p() for _ in range(4))
check("cuDeviceGet", ctypes.byref(number), int(device[5:]))
check("cuDevicePrimaryCtxRetain", ctypes.byref(context), number)
check("cuCtxPushCurrent_v2", context)
check("cuStreamCreateWithPriority", ctypes.byref(stream), 1, 0)
check("cuStreamBeginCapture_v2", stream, 1)
enqueue(stream.value)
check("cuStreamEndCapture", stream, ctypes.byref(graph))
check("cuGraphInstantiateWithFlags", ctypes.byref(launched), graph, ctypes.c_ulonglong(0))
zeros = np.zeros_like(right)
library.opened().write(result.pointer, zeros.ctypes.data, zeros.nbytes)
check("cuGraphLaunch", launched, stream)
check("cuStreamSynchronize", stream)
assert (result.numpy() == right).all()
write_wrong_rows()
driver.cuGraphLaunch(launched, stream)
attempt(lambda: library.opened().wait(stream.value))
"""
AFTERWARDS = """
for _ in range(2):
    attempt(lambda: main(table, rows))
"""


@pytest.mark.parametrize("which", WRONG)
@pytest.mark.parametrize("case", [LATER, CAPTURED], ids=["later", "captured"])
def test_where_nothing_waits_a_later_call_tells(request, case, which):
    """In a process of its own, as all work of the process on the GPU ends."""
    wrong, message = WRONG[which]
    driver = str(pathlib.Path(request.config.getoption("--build")).resolve() / "lib" / "fp8emu" / "libcuda.so.1")
    code = PROCESS % (driver, ROWS, wrong.tolist()) + case + AFTERWARDS
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "FP8RT_CUDA_DRIVER": driver}
    if case is LATER:
        environment["FP8RT_CHECKS"] = "later"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)
    told = message.replace("\\", "") + "; as no call waited for this check, it has ended all work of this process on the GPU"
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) == 3, done.stderr + done.stdout
    assert all(line.endswith(told) for line in lines), lines
