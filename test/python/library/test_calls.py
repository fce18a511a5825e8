# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of an FP8 training step from a host program: what they write, in parallel and repeatedly.

test_c_abi.py tests the checks of a call; here a call is a whole step with state.
"""
import ctypes
import json
import threading

import numpy as np
import pytest
from c_abi import Call, DLTensor, describe

from harness import F32, Program, load, random_generator

ALIGNMENT = 64


def aligned(array):
    """A copy of `array` on a 64-byte boundary."""
    raw = np.zeros(array.nbytes + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    copy = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def pointers(arrays):
    return (ctypes.POINTER(DLTensor) * len(arrays))(*(ctypes.pointer(describe(array)) for array in arrays))


class Caller:
    """The arguments, results and workspace of one caller of `main`."""

    def __init__(self, library, manifest, tensors):
        self.function = library.fp8_call_main
        self.entry = next(entry for entry in manifest["entries"] if entry["name"] == "main")
        initial = {t["name"]: np.full(t["shape"], t["initial"], F32) for t in manifest["state"]["tensors"]}
        self.arguments = [aligned({**tensors, **initial}[a["name"]]) for a in self.entry["arguments"]]
        self.results = [
            self.arguments[r["alias"]] if r["alias"] is not None else aligned(np.zeros(r["shape"], F32))
            for r in self.entry["results"]
        ]
        self.workspace = aligned(np.zeros(self.entry["workspace_bytes"], np.uint8))

    def call(self):
        arguments, results = pointers(self.arguments), pointers(self.results)
        call = Call(1, len(self.arguments), len(self.results), 0, arguments, results)
        call.workspace, call.workspace_bytes = self.workspace.ctypes.data, self.workspace.nbytes
        assert self.function(ctypes.byref(call)) == 0

    def bytes(self):
        return b"".join(array.tobytes() for array in self.arguments + self.results)


@pytest.fixture(scope="module")
def program(bin_dir, source_dir, tmp_path_factory):
    text = (source_dir / "test/python/inputs/net.mlir").read_text()
    return Program(bin_dir, tmp_path_factory.mktemp("calls"), text, "--amax-history-len=3")


@pytest.fixture(scope="module")
def library(program):
    library = ctypes.CDLL(str(program.library))
    library.fp8_manifest.restype = ctypes.c_char_p
    return library


@pytest.fixture
def make_caller(program, library):
    def make(seed=0):
        rng = random_generator(40, seed)
        shapes = {"w1": [140, 20], "w2": [20, 5], "x": [150, 140], "t": [150, 5]}
        tensors = {name: (rng.standard_normal(shape) / 4).astype(F32) for name, shape in shapes.items()}
        return Caller(library, program.manifest, tensors)

    return make


def test_manifest_in_the_library_is_the_file(program, library):
    assert json.loads(library.fp8_manifest()) == program.manifest


def test_only_state_and_carried_arguments_are_written(make_caller):
    caller = make_caller()
    before = [array.tobytes() for array in caller.arguments]
    caller.call()
    for argument, old, now in zip(caller.entry["arguments"], before, caller.arguments):
        assert (old != now.tobytes()) == argument["written"], argument["name"]


def test_agrees_with_fp8_run(program, make_caller):
    caller = make_caller(1)
    tensors = {a["name"]: v.copy() for a, v in zip(caller.entry["arguments"], caller.arguments) if a["kind"] == "user"}
    for _ in range(3):
        caller.call()
    state, outputs = program.folder / "state", program.folder / "outputs"
    program.run("main", tensors, "--steps=3", f"--save-state={state}", f"--outputs={outputs}")
    for index, value in load(outputs).items():
        assert caller.results[int(index)].tobytes() == value.tobytes()
    saved = load(state)
    for argument, value in zip(caller.entry["arguments"], caller.arguments):
        if argument["kind"] == "state":
            assert value.tobytes() == saved[argument["name"]].tobytes()


@pytest.fixture(scope="module")
def runtime(build_dir):
    runtime = ctypes.CDLL(str(build_dir / "lib/libfp8rt.so"))
    runtime.fp8rt_last_error.restype = ctypes.c_char_p
    return runtime


def test_prepared_calls(program, make_caller, runtime):
    """Through fp8rt, with nothing but pointers: what calls of the compiled code do, FP8 state included."""

    def checked(function, *arguments):
        status = getattr(runtime, function)(*arguments)
        assert status == 0, runtime.fp8rt_last_error().decode()

    direct, flat = make_caller(7), make_caller(7)
    handle, prepared = ctypes.c_void_p(), ctypes.c_void_p()
    checked("fp8rt_library_load", str(program.library).encode(), ctypes.byref(handle))
    counts = [len(flat.arguments), None, len(flat.results)]
    checked("fp8rt_prepare", handle, b"main", None, None, *counts, ctypes.byref(prepared))
    runtime.fp8rt_library_destroy(handle)
    data = [(ctypes.c_void_p * len(list_))(*(array.ctypes.data for array in list_)) for list_ in (flat.arguments, flat.results)]
    for i, result in enumerate(flat.entry["results"]):
        if result["alias"] is not None:
            data[1][i] = None  # in place
    for _ in range(3):
        direct.call()
        checked("fp8rt_prepared_call", prepared, *data)
        assert flat.bytes() == direct.bytes()
    data[0][0] = None
    assert runtime.fp8rt_prepared_call(prepared, *data) == 8
    assert b"entry 'main' failed: argument 0 '" in runtime.fp8rt_last_error()
    runtime.fp8rt_prepared_destroy(prepared)


def test_calls_at_the_same_time(make_caller):
    """No state is shared: four callers in threads get what they get one by one."""

    def run(caller):
        for _ in range(5):
            caller.call()

    alone, together = [make_caller(i) for i in range(4)], [make_caller(i) for i in range(4)]
    for caller in alone:
        run(caller)
    threads = [threading.Thread(target=run, args=[caller]) for caller in together]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [caller.bytes() for caller in alone] == [caller.bytes() for caller in together]


def test_repeated_runs_are_equal(make_caller):
    """No sum depends on which thread does what when."""
    results = set()
    for _ in range(5):
        caller = make_caller(3)
        for _ in range(3):
            caller.call()
        results.add(caller.bytes())
    assert len(results) == 1
