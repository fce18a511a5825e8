# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results do not depend on the floating-point environment of who calls, nor on that of OpenMP's threads.

Environments are set through the C library (glibc's fenv_t on x86-64: the last of its eight words is MXCSR).
"""
import ctypes
import json
import os
import platform
import subprocess
import sys

import numpy as np
import pytest
from c_abi import Call, describe, library_of

from harness import F32, random_generator

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="sets x86-64's MXCSR")

FLUSH, TOWARD_ZERO, TRAP_NOTHING = 0x8040, 0x6000, 0x1F80
ENVIRONMENTS = {"flush": TRAP_NOTHING | FLUSH, "toward zero": TRAP_NOTHING | TOWARD_ZERO,
                "both": TRAP_NOTHING | FLUSH | TOWARD_ZERO, "overflow traps": TRAP_NOTHING & ~0x400}
SHAPE = (1024, 512)  # enough work for several threads

# Sums whose rounding shows the direction, and products of any magnitude down to subnormals.
TYPE = "tensor<1024x512xf32>"
PROGRAM = f"""
#id = affine_map<(i, j) -> (i, j)>
func.func @step(%x: {TYPE}, %y: {TYPE}) -> ({TYPE}, {TYPE}) {{
  %empty = tensor.empty() : {TYPE}
  %0:2 = linalg.generic {{indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}}
      ins(%x, %y : {TYPE}, {TYPE})
      outs(%empty, %empty : {TYPE}, {TYPE}) {{
  ^bb0(%a: f32, %b: f32, %o: f32, %p: f32):
    %product = arith.mulf %a, %b : f32
    %sum = arith.addf %a, %b : f32
    linalg.yield %product, %sum : f32, f32
  }} -> ({TYPE}, {TYPE})
  return %0#0, %0#1 : {TYPE}, {TYPE}
}}
"""

libm = ctypes.CDLL("libm.so.6")


def get_environment():
    words = (ctypes.c_uint32 * 8)()
    assert libm.fegetenv(words) == 0
    return words[7] & 0xFFC0  # without the flags of what has happened


def set_environment(value):
    words = (ctypes.c_uint32 * 8)()
    libm.fegetenv(words)
    words[7] = value
    assert libm.fesetenv(words) == 0


def call(library, inputs):
    """The bytes of the results, and the environment after the call."""
    manifest = json.loads(library.fp8_manifest())
    outputs = [np.zeros(SHAPE, F32) for _ in range(2)]
    size = manifest["entries"][0]["workspace_bytes"]
    memory = np.zeros(size + 64, np.uint8)
    arguments, results = ([describe(a) for a in arrays] for arrays in (inputs, outputs))
    pointers = [(ctypes.POINTER(type(list_[0])) * 2)(*map(ctypes.pointer, list_)) for list_ in (arguments, results)]
    call = Call(1, 2, 2, 0, *pointers, memory.ctypes.data + -memory.ctypes.data % 64, size)
    status = library.fp8_call_step(ctypes.byref(call))
    after = get_environment()
    set_environment(TRAP_NOTHING)
    assert status == 0
    return [output.tobytes() for output in outputs], after


def make_inputs():
    rng = random_generator(41)
    exponents = rng.uniform(-150, 0, SHAPE)
    x = (np.exp2(exponents) * rng.standard_normal(SHAPE)).astype(F32)
    y = rng.standard_normal(SHAPE).astype(F32) * np.exp2(rng.integers(-20, 3, SHAPE)).astype(F32)
    return x, y


def expected(x, y):
    with np.errstate(all="ignore"):
        product, total = x * y, x + y
    assert np.count_nonzero((product != 0) & (np.abs(product) < np.finfo(F32).tiny)) > product.size // 100
    return [product.tobytes(), total.tobytes()]


@pytest.fixture(scope="module")
def path(run, tmp_path_factory):
    path = tmp_path_factory.mktemp("environment") / "step.so"
    done = run("fp8-compile", "-", "-o", path, "--recipe=none", stdin=PROGRAM)
    assert done.returncode == 0, done.stderr
    return path


@pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=ENVIRONMENTS.keys())
def test_the_callers_environment(path, environment):
    library, inputs = library_of(path), make_inputs()
    set_environment(environment)
    results, after = call(library, inputs)
    assert results == expected(*inputs)
    assert after == environment


WORKERS = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_int32), ctypes.POINTER(ctypes.c_int32))
IDENT = (ctypes.c_uint64 * 3)(2 << 32, 0, 0)


def in_every_thread(action):
    """Runs `action` in the threads of libomp's pool."""
    libomp = ctypes.CDLL("libomp.so.5")
    found = []
    task = WORKERS(lambda *_: found.append(action()))
    libomp.__getattr__("__kmpc_fork_call")(IDENT, 0, task)
    return found


def check_workers(path):
    """The work of the subprocess: the threads were left with another environment, which they keep."""
    library, inputs = library_of(path), make_inputs()
    expectation = expected(*inputs)
    other = ENVIRONMENTS["both"]
    assert len(in_every_thread(lambda: set_environment(other))) == 4
    set_environment(TRAP_NOTHING)
    results, _ = call(library, inputs)
    assert results == expectation
    assert sorted(in_every_thread(get_environment)) == sorted([TRAP_NOTHING, other, other, other])


def check_inheriting_workers(path):
    library, inputs = library_of(path), make_inputs()
    expectation = expected(*inputs)
    in_every_thread(lambda: set_environment(ENVIRONMENTS["both"]))
    set_environment(ENVIRONMENTS["both"])
    results, after = call(library, inputs)
    assert results == expectation
    assert after == ENVIRONMENTS["both"]


@pytest.mark.parametrize("inherit, check", [("true", check_inheriting_workers), ("false", check_workers)])
def test_the_environment_of_openmps_threads(path, inherit, check):
    """By default libomp's threads take over the caller's environment on x86-64, and on no other processor."""
    script = f"import sys, test_float_environment as test; test.{check.__name__}(sys.argv[1])"
    environment = {**os.environ, "OMP_NUM_THREADS": "4", "KMP_INHERIT_FP_CONTROL": inherit,
                   "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script, path], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
