# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled libraries called from Python: values, state, carried arguments, dynamic sizes, pointers."""

import os
import pathlib
import shutil
import subprocess
import sys
import threading

import fp8
import ml_dtypes
import numpy as np
import pytest

from small_programs import COUNTER, DYNAMIC, PAIR, compile_product, product

X = np.linspace(-3, 3, 64, dtype=np.float32).reshape(4, 16)
W = np.linspace(2, -1, 128, dtype=np.float32).reshape(16, 8)


def e4m3(array, scale):
    return (np.clip(array * np.float32(scale), -448, 448)).astype(ml_dtypes.float8_e4m3fn).astype(np.float32)


def test_a_call_computes_the_product_of_the_casts():
    (y,) = compile_product(recipe="current").entries["main"](X, W)
    sx, sw = (np.float32(448) / np.max(np.abs(a)) for a in (X, W))
    # The sums of 16 products are taken in f32, in an order that numpy does not share.
    np.testing.assert_allclose(y, e4m3(X, sx) @ e4m3(W, sw) / (sx * sw), rtol=1e-6)


def test_the_state_is_a_dict_that_each_call_updates():
    library = compile_product(amax_history_len=4, calibrate=True)
    state = library.state()
    assert {name: value.shape for name, value in state.items()} == {"scale": (2,), "amax_history": (4, 2), "layout_hash": (8,)}
    assert state["scale"].tolist() == [1, 1]
    first = library.entries["main"](X, W, state=state)[0].numpy()
    np.testing.assert_array_equal(state["scale"], [np.float32(448) / 3, np.float32(448) / 2])
    second = library.entries["main"](X, W, state=state)[0].numpy()
    assert not np.array_equal(first, second)


def test_a_state_goes_to_another_process(tmp_path):
    """By numpy's files, beside the library as a file: the next call there has the bits of the next call here."""
    library = compile_product(amax_history_len=4)
    state, step = library.state(), library.entries["main"]
    step(X, W, state=state)
    library.save(tmp_path / "step.so")
    np.savez(tmp_path / "state.npz", **state)
    np.savez(tmp_path / "tensors.npz", x=2 * X, w=W)
    code = """import sys, numpy as np, fp8
state, tensors = dict(np.load("state.npz")), np.load("tensors.npz")
(y,) = fp8.load("step.so").entries["main"](tensors["x"], tensors["w"], state=state)
np.savez("after.npz", y=y, **state)"""
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(fp8.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, env=environment)
    (y,) = step(2 * X, W, state=state)
    after = np.load(tmp_path / "after.npz")
    assert sorted(after) == sorted(["y", *state])
    np.testing.assert_array_equal(after["y"], y)
    for name, tensor in state.items():
        np.testing.assert_array_equal(after[name], tensor)


def test_buffers_are_aligned_and_arrays_of_numpy():
    (y,) = compile_product(recipe="none").entries["main"](X, W)
    assert y.pointer % 64 == 0
    assert np.asarray(y, np.float64).dtype == np.float64
    np.testing.assert_array_equal(np.asarray(y), np.from_dlpack(y))
    copy = np.array(y)
    copy[0, 0] += 1
    assert copy[0, 0] != y.numpy()[0, 0]


def test_a_state_is_needed_and_must_be_the_programs():
    library = compile_product()
    with pytest.raises(fp8.StateError, match=r"main has FP8 state: pass state=library.state\(\)"):
        library.entries["main"](X, W)
    other = compile_product(amax_history_len=8).state()
    with pytest.raises(fp8.StateError, match=r"amax_history .* shape \(8, 2\), not \(1024, 2\); fp8.state.resize"):
        library.entries["main"](X, W, state=other)
    library.entries["main"](X, W, state=fp8.state.resize(other, 1024))
    with pytest.raises(fp8.StateError, match="another layout than this program, whose columns are 0: input of w in E4M3"):
        library.entries["main"](X, W, state={**library.state(), "layout_hash": np.zeros(8, np.uint8)})
    with pytest.raises(fp8.StateError, match="the state lacks scale"):
        library.entries["main"](X, W, state={name: value for name, value in library.state().items() if name != "scale"})


WEIGHT_STEP = """func.func @main(%x: tensor<4x16xf32> loc("x"), %w: tensor<16x8xf32> loc("w")) -> (tensor<4x8xf32>, tensor<16x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x8xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = linalg.matmul ins(%x, %w : tensor<4x16xf32>, tensor<16x8xf32>) outs(%fill : tensor<4x8xf32>) -> tensor<4x8xf32>
  %next = arith.addf %w, %w : tensor<16x8xf32>
  return %y, %next : tensor<4x8xf32>, tensor<16x8xf32>
}
"""


@pytest.mark.parametrize("recipe", [{"recipe": "current"}, {"recipe": "delayed", "amax_history_len": 4}], ids=str)
def test_weights_kept_in_fp8_are_no_part_of_the_dict(recipe):
    kept, plain = (fp8.compile(WEIGHT_STEP, sites="all", carry={1: 1}, fp8_parameters=k, **recipe) for k in (True, False))
    states = kept.state(), plain.state()
    assert states[0].keys() == states[1].keys()
    w = W
    for _ in range(3):
        (y, after), (wanted, new) = (library.entries["main"](X, w, state=state) for library, state in zip((kept, plain), states))
        np.testing.assert_array_equal(y, wanted)
        w = np.array(new.numpy()) - W / 3
        for name in states[1]:
            np.testing.assert_array_equal(states[0][name], states[1][name])


def test_a_carried_argument_is_not_changed():
    entry = fp8.compile(COUNTER, recipe="none", carry={"count": 0}).entries["main"]
    count = np.array([5, 7], np.int32)
    results = entry(count, np.array([1, 2], np.int32))
    assert [r.numpy().tolist() for r in results] == [[6, 9], [12, 18]]
    assert count.tolist() == [5, 7]


def test_results_of_dynamic_size():
    entry = fp8.compile(DYNAMIC, recipe="none").entries["main"]
    for rows in (1, 5, 0, 3):
        x = np.arange(rows * 16, dtype=np.float32).reshape(rows, 16)
        (y,) = entry(x, W)
        assert y.shape == (rows, 8)
        np.testing.assert_allclose(y, x @ W, rtol=1e-6, atol=1e-6 * rows * 16)


def test_wrong_tensors_are_errors_that_name_the_argument():
    entry = compile_product(recipe="current").entries["main"]
    with pytest.raises(TypeError, match=r"main takes 2 tensors \(x, w\), not 1"):
        entry(X)
    with pytest.raises(fp8.StateError, match="main, argument w: "):
        entry(X, W.T)
    with pytest.raises(fp8.StateError, match="main, argument x: "):
        entry(X.astype(np.float64), W)
    with pytest.raises(TypeError, match="arrays of datetime64"):
        entry(np.zeros((4, 16), "datetime64[s]"), W)


def test_arrays_with_gaps_are_copied():
    entry = compile_product(recipe="none").entries["main"]
    np.testing.assert_array_equal(entry(X, np.asfortranarray(W))[0], entry(X, W)[0])
    np.testing.assert_array_equal(entry(np.repeat(X, 2, axis=1)[:, ::2], W)[0], entry(X, W)[0])


class Exported:
    """Memory that numpy shares by DLPack, as other packages do."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **keywords):
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_tensors_pass_by_dlpack():
    entry = compile_product(recipe="none").entries["main"]
    expected = entry(X, W)[0].numpy()
    np.testing.assert_array_equal(entry(Exported(X.copy()), Exported(np.asfortranarray(W)))[0], expected)
    # A Buffer too, and it gives its memory to others.
    buffer = fp8.Buffer("f32", (4, 16))
    buffer.numpy()[...] = X
    shared = np.from_dlpack(buffer)
    assert shared.ctypes.data == buffer.pointer
    del buffer
    np.testing.assert_array_equal(entry(shared, W)[0], expected)


def test_a_buffer_of_bf16_goes_through_dlpack():
    buffer = fp8.Buffer("bf16", (3,))
    buffer.numpy()[...] = [1, 2, 3]
    text = product().replace("xf32", "xbf16").replace(": f32", ": bf16").replace("0.0 : f32", "0.0 : bf16")
    entry = fp8.compile(text, recipe="none").entries["main"]
    x, w = fp8.Buffer("bf16", (4, 16)), fp8.Buffer("bf16", (16, 8))
    x.numpy()[...], w.numpy()[...] = 2, 3
    (y,) = entry(Exported(x), w)
    assert (y.type, y.numpy().dtype.name) == ("bf16", "bfloat16")
    np.testing.assert_array_equal(y.numpy().astype(np.float32), 96)


def test_prepared_calls_take_pointers_only():
    library = compile_product()
    state, expected = library.state(), library.state()
    (y,) = library.entries["main"](X, W, state=expected)
    prepared, out = library.prepare("main"), fp8.Buffer("f32", (4, 8))
    assert [a["name"] for a in prepared.arguments] == ["x", "w", "scale", "amax_history"]
    pointers = [a.ctypes.data for a in (X, W, state["scale"], state["amax_history"])]
    prepared.call(pointers, [out.pointer] + [0] * (len(prepared.results) - 1))
    np.testing.assert_array_equal(out, y)
    with pytest.raises(fp8.RunError, match="x"):
        prepared.call([0, *pointers[1:]], [out.pointer] + [0] * (len(prepared.results) - 1))


def test_prepared_calls_of_dynamic_sizes():
    library = fp8.compile(DYNAMIC, recipe="none")
    prepared = library.prepare("main", {"arguments": [(4, 16), (16, 8)], "results": [(4, 8)]})
    out = fp8.Buffer("f32", (4, 8))
    prepared.call([X.ctypes.data, W.ctypes.data], [out.pointer])
    np.testing.assert_array_equal(out, library.entries["main"](X, W)[0])


def test_a_pair_passes_residuals():
    library = fp8.compile(PAIR, recipe="none", pair=("forward", "backward", 1))
    forward, backward = library.entries["forward"], library.entries["backward"]
    y, *residuals = forward(X, W)
    np.testing.assert_allclose(y, X @ W, rtol=1e-6, atol=1e-5)
    (dw,) = backward(*residuals, np.ones((4, 8), np.float32))
    np.testing.assert_allclose(dw, X.T @ np.ones((4, 8), np.float32), rtol=1e-6, atol=1e-5)


def test_saved_libraries_load_again(tmp_path):
    library = compile_product(amax_history_len=16)
    library.save(tmp_path / "step.so")
    loaded = fp8.load(tmp_path / "step.so")
    results = [each.entries["main"](X, W, state=each.state())[0] for each in (library, loaded)]
    np.testing.assert_array_equal(*results)
    assert loaded.report.sites == library.report.sites
    assert loaded.report.memory == {name: library.report.memory[name] for name in ("state_bytes", "workspace_bytes")}
    with pytest.raises(fp8.Error, match="the source of .* is not known"):
        loaded.ir("fusion")


def test_the_runtime_alone_runs_a_saved_library(tmp_path):
    compile_product(recipe="none").save(tmp_path / "step.so")
    (tmp_path / "lib").mkdir()
    shutil.copy(fp8._tools.find("libfp8rt.so"), tmp_path / "lib")
    code = """import numpy as np, fp8
print(fp8.load("step.so").entries["main"](np.ones((4, 16), np.float32), np.ones((16, 8), np.float32))[0].numpy().sum())
print([line.split()[-1] for line in open("/proc/self/maps") if "libfp8rt" in line][0])
try: fp8.compile("module {}")
except fp8.MissingToolError as error: print(error)"""
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(fp8.__file__).parents[1]), "FP8_TOOLS": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.stdout.splitlines() == [
        "512.0",
        f"{tmp_path}/lib/libfp8rt.so",
        f"{tmp_path} has no fp8-compile (FP8_TOOLS, fp8.config.tool_dir): give a build or installation folder, or its bin",
    ], done.stderr


def test_loading_what_is_no_library(tmp_path):
    (tmp_path / "text.so").write_text("no library")
    for path in (tmp_path / "text.so", tmp_path / "missing.so"):
        with pytest.raises(fp8.RunError, match=path.name):
            fp8.load(path)


def test_ir_after_a_stage():
    library = compile_product(recipe="current")
    assert "fp8.matmul" in library.ir("ingest")
    assert "fp8.scaled_matmul" in library.ir("fusion")
    with pytest.raises(ValueError, match="stage='code' is none of ingest, recipe"):
        library.ir("code")


def test_threads_share_an_entry():
    entry = compile_product(recipe="current").entries["main"]
    expected, wrong = entry(X, W)[0].numpy(), []

    def work():
        for _ in range(20):
            if not np.array_equal(entry(X, W)[0].numpy(), expected):
                wrong.append(True)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_traceback_ends_with_the_users_call():
    with pytest.raises(fp8.CompileError) as raised:
        fp8.compile("no MLIR")
    assert [frame.path.name for frame in raised.traceback] == ["test_core_library.py"]
    library = compile_product(recipe="none")
    for call in (
        lambda: library.entries["main"](X),
        lambda: library.entries["main"](X, X),
        lambda: library.ir("nothing"),
        lambda: fp8.load("no/file"),
        lambda: fp8.opt("no MLIR", "canonicalize"),
    ):
        with pytest.raises((fp8.Error, TypeError, ValueError)) as raised:
            call()
        assert [frame.path.name for frame in raised.traceback] == ["test_core_library.py"] * 2


def test_an_error_of_the_package_itself_keeps_its_frames(monkeypatch):
    monkeypatch.setattr("fp8._compile._options", None)
    with pytest.raises(AttributeError) as raised:
        fp8.compile("no MLIR")
    assert raised.traceback[-1].path.name == "_compile.py"


def test_profiles_of_prepared_calls():
    library = compile_product(recipe="none")
    prepared = library.prepare("main")
    y = np.zeros((4, 8), np.float32)
    addresses = [X.ctypes.data, W.ctypes.data], [y.ctypes.data]
    prepared.call(*addresses)
    with library.profile() as profile:
        prepared.call(*addresses)
        prepared.call(*addresses)
    prepared.call(*addresses)
    np.testing.assert_array_equal(y, library.entries["main"](X, W)[0])
    assert [kernel.calls for kernel in profile.kernels if kernel.kind == "products"] == [2]
    with pytest.warns(fp8.Warning, match=r"no call was measured: Library\.profile measures those of Library\.entries"), library.profile():
        pass
