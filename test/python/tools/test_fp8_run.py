# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the command fp8-run on the runtime's hand-written library (runtime/test/fixture.c)."""

import json
import os
import re
import subprocess

import ml_dtypes
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

W = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)
M = np.array([10, 20, 30, 40], np.uint16).view(ml_dtypes.bfloat16)
X = np.array([0.5, -1.5, 0.25], np.float32)
N = np.array(4, np.int32)


def reference(steps, xs=(X,)):
    """Entry 'main' of the fixture: carried w, losses, scale and history after some steps."""
    w, scale, history, losses = W.copy(), np.ones(2, np.float32), np.zeros((3, 2), np.float32), []
    for step in range(steps):
        x = xs[step % len(xs)]
        term = np.float32(0.01) * np.broadcast_to(x, (2, 3)) / scale[:, None]
        w = np.float32(0.9) * w + term
        losses.append(float(w.sum()))
        for column, amax in enumerate((np.abs(x).max(), np.abs(w).max())):
            scale[column] = np.float32(448) / max(amax, history[1, column], history[2, column])
            history[1, column], history[2, column] = history[2, column], amax
    return w, losses, scale, history


@pytest.fixture(scope="session")
def fixture(build_dir):
    return str(build_dir / "lib" / "libfp8rt_test_fixture.so")


@pytest.fixture
def box(tmp_path, bin_dir, fixture):
    """A folder with valid inputs, and fp8-run in it."""

    class Box:
        def path(self, name):
            return str(tmp_path / name)

        def files(self):
            return sorted(os.listdir(tmp_path))

        def write(self, name, tensors):
            save_file(tensors, self.path(name))

        def run(self, *args, library=fixture, inputs="in"):
            given = [f"--inputs={inputs}"] if inputs else []
            return subprocess.run([bin_dir / "fp8-run", library, *given, *args], cwd=tmp_path, capture_output=True, text=True)

        def ok(self, *args, **kwargs):
            done = self.run(*args, **kwargs)
            assert done.returncode == 0, done.stderr
            return done

        def fails(self, code, pattern, *args, **kwargs):
            """One line on standard error, that exit code, and no file more than before."""
            before = self.files()
            done = self.run(*args, **kwargs)
            assert (done.returncode, done.stdout) == (code, ""), done
            assert done.stderr.count("\n") == 1 and done.stderr.startswith("fp8-run: "), done.stderr
            assert re.search(pattern, done.stderr), done.stderr
            assert self.files() == before

    box = Box()
    box.write("in", {"0": W, "1": M, "2": X, "3": N})
    return box


def test_results_of_one_step(box):
    box.ok("--outputs=out")
    out, (w, losses, _, _) = load_file(box.path("out")), reference(1)
    assert sorted(out) == ["0", "1", "2", "3", "4"]
    np.testing.assert_allclose(out["0"], w, rtol=1e-6)
    np.testing.assert_array_equal(out["1"].view(np.uint16), M.view(np.uint16) + 1)
    np.testing.assert_allclose(out["2"], losses[0], rtol=1e-6)
    assert out["3"].dtype == ml_dtypes.bfloat16 and out["3"].shape == ()
    np.testing.assert_array_equal(out["4"], np.arange(4))


def test_steps_carry_weights_and_state(box):
    box.ok("--steps=10", "--outputs=out", "--save-state=state")
    w, _, scale, history = reference(10)
    np.testing.assert_allclose(load_file(box.path("out"))["0"], w, rtol=1e-5)
    state = load_file(box.path("state"))
    np.testing.assert_allclose(state["scale"], scale, rtol=1e-5)
    np.testing.assert_allclose(state["amax_history"], history, rtol=1e-5)
    with safe_open(box.path("state"), "np") as file:
        metadata = file.metadata()
    assert metadata["version"] == "1" and metadata["layout_hash"] == "abc123"
    assert '"sites":["fc"]' in metadata["columns"]


def test_ten_steps_are_four_and_six_bit_for_bit(box):
    box.ok("--steps=10", "--save-state=ten", "--with-carry", "--outputs=out10")
    box.ok("--steps=4", "--save-state=four", "--with-carry")
    box.ok("--steps=6", "--state=four", "--with-carry", "--save-state=six", "--outputs=out6")
    for a, b in (("ten", "six"), ("out10", "out6")):
        assert open(box.path(a), "rb").read() == open(box.path(b), "rb").read()
    assert sorted(load_file(box.path("ten"))) == ["amax_history", "carry.m", "carry.w", "scale"]


def test_state_file_supplies_carried_arguments(box):
    box.ok("--steps=4", "--save-state=four", "--with-carry")
    box.write("rest", {"x": X, "n": N})
    box.ok("--state=four", "--with-carry", "--outputs=out", inputs="rest")
    np.testing.assert_allclose(load_file(box.path("out"))["0"], reference(5)[0], rtol=1e-5)


def test_streams_wrap_and_resume(box):
    data = np.stack([X, 2 * X, -3 * X])
    box.write("in", {"w": W, "m": M, "data": data, "3": N})
    printed = box.ok("--steps=5", "--stream=x=data", "--print=loss").stdout
    losses = reference(5, data)[1]
    assert [line.split("\t")[0] for line in printed.splitlines()] == ["0", "1", "2", "3", "4"]
    np.testing.assert_allclose([float(line.split("\t")[1]) for line in printed.splitlines()], losses, rtol=1e-5)
    first = box.ok("--steps=2", "--stream=2=data", "--print=2", "--save-state=s", "--with-carry").stdout
    second = box.ok("--steps=3", "--stream=2=data", "--print=2", "--state=s", "--with-carry", "--first-step=2").stdout
    assert first + second == printed


def test_half_types_print_as_numbers(box):
    value = box.ok("--print=half").stdout.split("\t")[1]
    bits = np.float32(reference(1)[1][0]).view(np.uint32) >> 16 << 16
    np.testing.assert_allclose(float(value), bits.view(np.float32), rtol=1e-2)
    assert value == f"{float(value):.9g}\n"


def test_zero_missing(box):
    box.write("in", {"w": W})
    box.fails(1, "argument 1 'm' of entry 'main' has no value", "--outputs=out")
    box.ok("--zero-missing", "--outputs=out")
    out = load_file(box.path("out"))
    np.testing.assert_array_equal(out["0"], np.float32(0.9) * W)
    assert out["4"].shape == (0,)


def test_save_every_leaves_the_last_state(box):
    box.ok("--steps=5", "--save-every=2", "--save-state=a", "--with-carry")
    box.ok("--steps=5", "--save-state=b", "--with-carry")
    assert open(box.path("a"), "rb").read() == open(box.path("b"), "rb").read()
    # The fixture fails on a negative n: of a run that dies in its third step the checkpoint of the second remains.
    box.write("in", {"0": W, "1": M, "2": X, "ns": np.array([4, 4, -1], np.int32)})
    died = box.run("--steps=5", "--stream=n=ns", "--save-every=2", "--save-state=c", "--with-carry", "--outputs=out")
    assert died.returncode == 1 and "step 2: entry 'main' failed: no memory for result 4" in died.stderr
    assert box.files() == ["a", "b", "c", "in"]
    np.testing.assert_allclose(load_file(box.path("c"))["carry.w"], reference(2)[0], rtol=1e-6)


def test_evaluation_reads_the_state_only(box):
    box.ok("--steps=3", "--save-state=before")
    box.write("x", {"x": X})
    box.ok("--entry=evaluate", "--state=before", "--save-state=after", "--steps=4", "--print=0", inputs="x")
    assert open(box.path("before"), "rb").read() == open(box.path("after"), "rb").read()


def test_pairs_hand_residuals_over(box):
    box.write("in", {"x": X, "backward.0": np.array(10, np.float32)})
    printed = box.ok("--entry=forward,backward", "--outputs=out", "--print=forward.1").stdout
    out = load_file(box.path("out"))
    assert sorted(out) == ["backward.0", "forward.0", "forward.1"] and printed == "0\t3\n"
    np.testing.assert_array_equal(out["backward.0"], 20 * X)
    box.fails(1, "takes residuals of another: run both", "--entry=backward")
    box.fails(1, "no pair: 0 residuals given, 1 taken", "--entry=evaluate,backward")


def test_profile_of_a_pair(box):
    box.write("in", {"x": X, "backward.0": np.array(10, np.float32)})
    box.ok("--entry=forward,backward", "--steps=4", "--profile=profile")
    with open(box.path("profile")) as file:
        profile = json.load(file)
    # Forward records these lines in each step; backward has no kernels. The fixture waits a millisecond in 'sum'.
    assert [(line["name"], line["calls"], line["sites"]) for line in profile["kernels"][:1]] == [("sum", 1, [])]
    assert profile["kernels"][0]["ms"] >= 1
    doubled = next(line for line in profile["kernels"] if line["name"] == "double_fc")
    assert (doubled["calls"], doubled["sites"], doubled["operations"], doubled["bytes_read"]) == (3, ["h1/fc", "fc"], 9, 36)
    assert "\nProfile of one step, the first" in box.ok("--entry=evaluate", "--profile").stderr


def test_timing_and_help(box):
    done = box.ok("--steps=3", "--timing")
    assert re.fullmatch(r"3 steps in [\d.]+ s; ms per step: mean [\d.]+, min [\d.]+, median [\d.]+, max [\d.]+\n", done.stderr)
    done = box.ok("--help", inputs=None)
    assert "EXAMPLES" in done.stdout and "--with-carry" in done.stdout and "--inline-threshold" not in done.stdout


def write_with_dtype(box, name, dtype):
    """The inputs, with a tensor of 4 bytes of a dtype that numpy does not have."""
    box.write("in", {key: value for key, value in {"0": W, "1": M, "2": X, "3": N}.items() if key != name})
    with open(box.path("in"), "rb") as file:
        data = file.read()
    end = 8 + int.from_bytes(data[:8], "little")
    header, count = json.loads(data[8:end]), len(data) - end
    header[name] = {"dtype": dtype, "shape": [8], "data_offsets": [count, count + 4]}
    text = json.dumps(header).encode()
    with open(box.path("in"), "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data[end:] + b"1234")


@pytest.mark.parametrize("dtype", ["F4", "F8_E4M3FNUZ", "C64"])
def test_tensors_of_unknown_dtypes_matter_only_where_they_are_used(box, dtype):
    write_with_dtype(box, "y", dtype)
    assert box.ok().stderr == "fp8-run: warning: in has tensors that are no arguments: y\n"
    box.fails(1, f"error: --stream=2=y: in: tensor 'y': its dtype '{dtype}' is not supported$", "--stream=2=y")
    write_with_dtype(box, "1", dtype)
    box.fails(1, f"error: in: tensor '1': its dtype '{dtype}' is not supported$")


def test_unknown_input_tensors_are_warned_of(box):
    box.write("in", {"0": W, "1": M, "2": X, "3": N, "y": X, "z": X})
    assert box.ok().stderr == "fp8-run: warning: in has tensors that are no arguments: y, z\n"
    box.write("in", {"0": W, "1": M, "y": X, "3": N})
    box.fails(1, r"argument 2 'x' of entry 'main' has no value: .*no arguments: y\)")


@pytest.mark.parametrize(
    "args",
    [
        ["--steps=0"],
        ["--steps=x"],
        ["--steps=-1"],
        ["--stepz=1"],
        ["--O3"],
        ["--device=tpu"],
        ["--device=cuda:"],
        ["--device=cuda:x"],
        ["--device="],
        ["--stream=x"],
        ["--stream==x"],
        ["--entry=a,b,c"],
        ["--entry="],
        ["--save-every=2"],
        ["--save-every=0", "--save-state=s"],
        ["--with-carry"],
        ["--outputs=s", "--save-state=s"],
        ["--profile=s", "--outputs=s"],
        ["--outputs=./in"],
        ["--save-state=in"],
        ["--monitor=in"],
        ["--state=s", "--outputs=s"],
        ["second.so"],
        ["--history=newest"],
        ["--history=x", "--state=s"],
        ["--keep-last=2"],
        ["--keep-last=0", "--save-every=1", "--save-state=s"],
        ["--strict"],
        ["--rename=a=b"],
        ["--rename=a", "--state=s"],
        ["--rename==b", "--state=s"],
    ],
)
def test_wrong_command_lines(box, args):
    box.fails(2, "", *args)


def test_the_library_is_not_overwritten(box, fixture):
    box.fails(2, "--outputs=.*: would overwrite the library", f"--outputs={fixture}")


def test_no_library_at_all(run):
    done = run("fp8-run")
    assert done.returncode == 2 and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "args, pattern",
    [
        (["--device=emulator"], "--device=emulator: the library was compiled for the CPU: run it with --device=cpu"),
        (["--profile=none/p"], "none/p: cannot write"),
        (["--entry=mian"], "no entry 'mian'; it has main, evaluate"),
        (["--print=9"], "no result '9' among 5"),
        (["--print=0"], "not a scalar"),
        (["--stream=y=data"], "no argument 'y'"),
        (["--stream=x=data"], "in has no tensor 'data'"),
        (["--stream=x=3"], "no leading dimension"),
        (["--stream=x=0", "--stream=2=0"], "already has a stream"),
        (["--stream=n=0"], r"slice of tensor '0': argument 3 'n' is i32\[\], the given tensor f32\[3\]"),
        (["--outputs=none/out"], "none/out: cannot write: No such file"),
        (["--outputs=/"], "Is a directory"),
        (["--save-state=none/out"], "none/out: cannot write"),
        (["--state=none"], "none: No such file"),
        (["--state=in"], "in: not a state file"),
    ],
)
def test_requests_that_cannot_be_met(box, args, pattern):
    box.fails(1, pattern, *args)


def test_failing_code(box):
    box.fails(1, "step 0: entry 'failing' failed: it always fails", "--entry=failing", "--outputs=out", inputs=None)


def test_wrong_libraries(box, fixture):
    open(box.path("text"), "w").write("not a library")
    whole = open(fixture, "rb").read()
    open(box.path("half"), "wb").write(whole[: len(whole) // 2])
    box.fails(1, "none.so: No such file", library="none.so")
    box.fails(1, "text: not a shared library", library="text")
    box.fails(1, "half: the file is truncated", library="half")
    box.fails(1, "in: not a shared library", library="in")


def test_wrong_inputs(box):
    good = {"0": W, "1": M, "2": X, "3": N}
    cases = {
        r"tensor '2': argument 2 'x' is f32\[3\], the given tensor f32\[4\]": {"2": np.ones(4, np.float32)},
        r"argument 2 'x' is f32\[3\], the given tensor f64\[3\]": {"2": np.ones(3)},
        r"argument 1 'm' is bf16\[4\], the given tensor f16\[4\]": {"1": np.ones(4, np.float16)},
        "tensors '0' and 'w' are the same argument": {"w": W},
    }
    for pattern, change in cases.items():
        box.write("bad", {**good, **change})
        box.fails(1, "bad: .*" + pattern, "--outputs=out", inputs="bad")
    box.fails(1, "none: No such file", inputs="none")
    box.fails(1, "argument 0 'w' of entry 'main' has no value", inputs=None)
    whole = open(box.path("in"), "rb").read()
    for end in (0, 7, 20, len(whole) - 1):
        open(box.path("bad"), "wb").write(whole[:end])
        box.fails(1, "bad: not a valid safetensors file", "--outputs=out", inputs="bad")


def test_wrong_state_files(box):
    box.ok("--save-state=good", "--with-carry")
    good = load_file(box.path("good"))
    metadata = safe_open(box.path("good"), "np").metadata()

    def case(pattern, *args, change=None, drop=(), **meta):
        tensors = {name: value for name, value in {**good, **(change or {})}.items() if name not in drop}
        unchecked = {key: text for key, text in metadata.items() if key != "fp8_checksum"}
        save_file(tensors, box.path("bad"), {**unchecked, **meta})
        box.fails(1, "bad: " + pattern, "--state=bad", "--outputs=out", *args)

    case("its layout hash 'x' is not the program's 'abc123'", layout_hash="x")
    case("state file of version '2'", version="2")
    case("there is no tensor 'scale'", drop=["scale"])
    case(r"tensor 'scale' is f32\[3\], the program has f32\[2\]", change={"scale": np.ones(3, np.float32)})
    case(r"tensor 'scale' is f64\[2\]", change={"scale": np.ones(2)})
    case(
        "its 'amax_history' has 5 rows, the program's 3: take over its newest rows or its oldest .fp8-run --history.",
        change={"amax_history": np.ones((5, 2), np.float32)},
    )
    case(r"tensor 'amax_history' is f32\[5,3\], the program has f32\[3,2\]", "--history=newest", change={"amax_history": np.ones((5, 3), np.float32)})
    case("tensor 'extra' is not part of the program's state", "--strict", change={"extra": X})
    case("there is no tensor 'carry.w'", "--with-carry", drop=["carry.w"])
    case(r"tensor 'carry.w': argument 0 'w' is f32\[2,3\]", "--with-carry", change={"carry.w": X})


def test_every_element_type_is_read_as_safetensors_writes_it(box):
    """Python's library writes; fp8-run names the type it found."""
    types = {
        "i1": np.bool_,
        "i8": np.int8,
        "i16": np.int16,
        "i64": np.int64,
        "ui8": np.uint8,
        "ui16": np.uint16,
        "ui32": np.uint32,
        "ui64": np.uint64,
        "f16": np.float16,
        "f32": np.float32,
        "f64": np.float64,
        "f8E4M3FN": ml_dtypes.float8_e4m3fn,
        "f8E5M2": ml_dtypes.float8_e5m2,
    }
    for name, dtype in types.items():
        box.write("bad", {"m": np.zeros((2, 0), dtype)})
        box.fails(1, rf"given tensor {name}\[2,0\]", inputs="bad")


def test_a_full_device_is_reported(box, bin_dir, fixture):
    done = box.run("--outputs=/dev/full")
    assert done.returncode == 1 and "No space left" in done.stderr
    with open("/dev/full", "w") as full:
        done = subprocess.run([bin_dir / "fp8-run", fixture, f"--inputs={box.path('in')}", "--print=2"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "cannot write to standard output" in done.stderr
