# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The C ABI of compiled libraries, called as any host program would: what a call checks and
# reports, what it writes and what it leaves unchanged.

import ctypes
import json
import subprocess

import numpy as np
import pytest
from c_abi import Call, DLTensor, describe, integers, library_of

PROGRAM = """
func.func @step(%w: tensor<4x8xf32> {tf.aliasing_output = 0 : i32} loc("w"), %x: tensor<8xf32> loc("x"),
                %flag: tensor<i1> loc("flag")) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<i1>) {
  %empty = tensor.empty() : tensor<4x8xf32>
  %next = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
                                           affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%w, %x : tensor<4x8xf32>, tensor<8xf32>) outs(%empty : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %sum = arith.addf %a, %b : f32
    linalg.yield %sum : f32
  } -> tensor<4x8xf32>
  return %next, %w, %flag : tensor<4x8xf32>, tensor<4x8xf32>, tensor<i1>
}
"""


class Step:
    """The compiled step, its tensors, and what a call made of them."""

    def __init__(self, library):
        self.entry = library.fp8_call_step
        self.manifest = json.loads(library.fp8_manifest())
        self.w = np.arange(32, dtype=np.float32).reshape(4, 8)
        self.x = np.linspace(-1, 1, 8, dtype=np.float32)
        self.flag = np.array(True)
        self.out = [self.w, np.full((4, 8), -1, np.float32), np.array(False)]
        self.arguments = [describe(a) for a in (self.w, self.x, self.flag)]
        self.results = [describe(a) for a in self.out]
        size = self.manifest["entries"][0]["workspace_bytes"]
        memory = np.zeros(size + 64, np.uint8)
        start = -memory.ctypes.data % 64
        self.workspace = memory[start:start + size]
        self.call = Call(version=1, num_arguments=3, num_results=3, workspace=self.workspace.ctypes.data,
                         workspace_bytes=size)
        self.buffer = ctypes.create_string_buffer(b"untouched", 200)
        self.call.error, self.call.error_capacity = ctypes.cast(self.buffer, ctypes.c_char_p), 200

    def __call__(self):
        pointers = [(ctypes.POINTER(DLTensor) * len(list_))(*map(ctypes.pointer, list_))
                    for list_ in (self.arguments, self.results)]
        self.call.arguments, self.call.results = pointers
        return self.entry(ctypes.byref(self.call)), self.buffer.value.decode()


@pytest.fixture(scope="module")
def library_path(run, tmp_path_factory):
    path = tmp_path_factory.mktemp("abi") / "step.so"
    done = run("fp8-compile", "-", "-o", path, "--recipe=none", stdin=PROGRAM)
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture
def step(library_path):
    return Step(library_of(library_path))


def test_exports_nothing_else(library_path):
    listed = subprocess.run(["nm", "-D", "--defined-only", library_path], capture_output=True, text=True, check=True)
    assert sorted(line.split()[-1] for line in listed.stdout.splitlines()) == ["fp8_call_step", "fp8_kernels", "fp8_manifest"]


def test_writes_in_place_and_nothing_else(step):
    old, x = step.w.copy(), step.x.copy()
    assert step() == (0, "untouched")
    np.testing.assert_array_equal(step.w, old + x)
    np.testing.assert_array_equal(step.out[1], old)  # the value that came in
    assert step.out[2]
    np.testing.assert_array_equal(step.x, x)
    assert step.flag


def test_carried_result_elsewhere_gets_a_copy(step):
    old, elsewhere = step.w.copy(), np.zeros((4, 8), np.float32)
    step.results[0] = describe(elsewhere)
    assert step()[0] == 0
    np.testing.assert_array_equal(elsewhere, old + step.x)
    np.testing.assert_array_equal(step.w, elsewhere)


def test_strides_and_byte_offset(step):
    old = step.w.copy()
    padded = np.concatenate([np.zeros(3, np.float32), step.x])
    tensor = describe(padded[3:], strides=True)
    tensor.data, tensor.byte_offset = padded.ctypes.data, 12
    step.arguments[0], step.arguments[1] = describe(step.w, strides=True), tensor
    assert step()[0] == 0
    np.testing.assert_array_equal(step.w, old + padded[3:])


def test_checked_call_is_not_checked_again(step):
    old = step.w.copy()
    step.arguments[1].code = 0  # an integer type
    assert step()[0] == 1
    step.call.flags = 2  # FP8RT_CALL_IS_CHECKED
    assert step() == (0, step.buffer.value.decode())
    np.testing.assert_array_equal(step.w, old + step.x)
    step.call.num_results = 2
    assert step()[0] == 1


def set_argument(index, array, **fields):
    def change(step):
        step.arguments[index] = describe(array)
        for name, value in fields.items():
            setattr(step.arguments[index], name, value)
    return change


def set_call(**fields):
    def change(step):
        for name, value in fields.items():
            setattr(step.call, name, value)
    return change


def set_result(index, array):
    def change(step):
        step.results[index] = describe(array)
    return change


def transpose_w(step):
    step.arguments[0] = describe(np.asfortranarray(step.w), strides=True)


X = "argument 1 'x': expected f32 [8] (row-major, in host memory)"
W = "argument 0 'w': expected f32 [4, 8] (row-major, in host memory)"


@pytest.mark.parametrize("change, message", [
    (set_call(version=2), "this library needs version 1 of fp8rt_call"),
    (set_call(num_arguments=2), "'step': the number of arguments must be 3, that of results 3"),
    (set_call(num_results=4), "'step': the number of arguments must be 3, that of results 3"),
    (set_argument(1, np.zeros(7, np.float32)), X),
    (set_argument(1, np.zeros((1, 8), np.float32)), X),
    (set_argument(1, np.zeros(8, np.float64)), X),
    (set_argument(1, np.zeros(8, np.float32), lanes=2), X),
    (set_argument(1, np.zeros(8, np.float32), device_type=2), X),
    (set_argument(1, np.zeros(8, np.float32), data=None), X),
    (set_argument(1, np.zeros(8, np.float32), shape=None), X),
    (set_argument(1, np.zeros(8, np.float32), strides=integers([2])), X),
    (transpose_w, W),
    (set_result(1, np.zeros((8, 4), np.float32)), "result 1: expected f32 [4, 8] (row-major, in host memory)"),
], ids=lambda value: value if isinstance(value, str) else "")
def test_wrong_call(step, change, message):
    old = step.w.copy()
    change(step)
    status, error = step()
    assert status != 0
    assert error == message
    np.testing.assert_array_equal(step.w, old)


@pytest.mark.parametrize("field, message", [
    ("arguments", W), ("results", "result 0: expected f32 [4, 8] (row-major, in host memory)")])
def test_absent_lists_of_tensors(step, field, message):
    pointers = [(ctypes.POINTER(DLTensor) * 3)(*map(ctypes.pointer, list_)) for list_ in (step.arguments, step.results)]
    step.call.arguments, step.call.results = pointers
    setattr(step.call, field, None)
    assert step.entry(ctypes.byref(step.call)) == 1
    assert step.buffer.value.decode() == message


def test_error_is_cut_to_the_buffer(step):
    step.call.version, step.call.error_capacity = 2, 8
    assert step() == (1, "this li")


def test_error_buffer_may_be_absent(step):
    step.call.version, step.call.error, step.call.error_capacity = 2, None, 0
    assert step()[0] == 1


def test_workspace_is_checked(step):
    size = step.manifest["entries"][0]["workspace_bytes"]
    assert size > 0
    for fields in ({"workspace": None}, {"workspace_bytes": size - 1},
                   {"workspace": step.call.workspace + 4}):
        good = {name: getattr(step.call, name) for name in fields}
        set_call(**fields)(step)
        assert step() == (1, f"'step' needs a workspace of {size} bytes, aligned to 64")
        set_call(**good)(step)
    assert step()[0] == 0


DYNAMIC = """
func.func @step(%w: tensor<?x8xf32> {tf.aliasing_output = 0 : i32} loc("w"), %x: tensor<?x8xf32> loc("x"))
    -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %next = arith.addf %w, %x : tensor<?x8xf32>
  %twice = arith.addf %next, %next : tensor<?x8xf32>
  return %next, %twice : tensor<?x8xf32>, tensor<?x8xf32>
}
"""
ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32, ctypes.POINTER(ctypes.c_int64),
                            ctypes.c_int32, ctypes.POINTER(DLTensor))


@pytest.fixture(scope="module")
def dynamic(run, tmp_path_factory):
    path = tmp_path_factory.mktemp("abi") / "dynamic.so"
    done = run("fp8-compile", "-", "-o", path, "--recipe=none", stdin=DYNAMIC)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(path))


def call_dynamic(library, w, x, refuse=False, forget=False, without=False, out=None):
    """(status, error, shapes asked for, memory given) of one call."""
    asked, memory, shapes = [], [], []

    def allocate(context, result, shape, ndim, tensor):
        asked.append((result, tuple(shape[:ndim])))
        if refuse:
            return 1
        if forget:
            return 0
        memory.append(np.full(asked[-1][1], np.nan, np.float32))
        shapes.append(integers(asked[-1][1]))
        target = tensor.contents
        target.data, target.ndim, target.shape = memory[-1].ctypes.data, ndim, shapes[-1]
        return 0

    arguments = [describe(w), describe(x)]
    results = [describe(w if out is None else out), DLTensor(None, 1, 0, 0, 2, 32, 1, None, None, 0)]
    pointers = [(ctypes.POINTER(DLTensor) * 2)(*map(ctypes.pointer, list_)) for list_ in (arguments, results)]
    buffer, callback = ctypes.create_string_buffer(200), ALLOCATE(allocate)
    call = Call(version=1, num_arguments=2, num_results=2, error_capacity=200)
    call.arguments, call.results = pointers
    call.error = ctypes.cast(buffer, ctypes.c_char_p)
    call.allocate = None if without else ctypes.cast(callback, ctypes.c_void_p)
    return library.fp8_call_step(ctypes.byref(call)), buffer.value.decode(), asked, memory


def rows(count):
    return np.arange(8 * count, dtype=np.float32).reshape(count, 8)


@pytest.mark.parametrize("count", [3, 0, 70])
def test_results_of_dynamic_shape_are_asked_for(dynamic, count):
    w, x, out = rows(count), rows(count) + 1, np.zeros([count, 8], np.float32)
    expected = w + x
    status, error, asked, (twice,) = call_dynamic(dynamic, w, x, out=out)
    assert (status, error, asked) == (0, "", [(1, (count, 8))])
    for got, want in ((w, expected), (out, expected), (twice, 2 * expected)):
        np.testing.assert_array_equal(got, want)


def test_dynamic_sizes_are_checked_before_anything_is_written(dynamic):
    for options, message in [
            ({"x": rows(4)}, "argument 1 'x': size 0 must be size 0 of argument 0 'w'"),
            ({"x": np.zeros([3, 7], np.float32)}, "argument 1 'x': expected f32 [?, 8] (row-major, in host memory)"),
            ({"out": rows(4)}, "result 0: expected f32 [?, 8] (row-major, in host memory)"),
            ({"without": True}, "result 1: expected f32 [?, 8] (in host memory that the call's 'allocate' gives)")]:
        w = rows(3)
        status, error, asked, _ = call_dynamic(dynamic, w, **{"x": rows(3), **options})
        assert status == 1 and error.startswith(message) and not asked
        np.testing.assert_array_equal(w, rows(3))


@pytest.mark.parametrize("fault", ["refuse", "forget"])
def test_allocator_that_gives_no_memory(dynamic, fault):
    status, error, asked, _ = call_dynamic(dynamic, rows(3), rows(3), **{fault: True})
    assert (status, asked) == (1, [(1, (3, 8))])
    assert error.startswith("no memory for result 1 (")
