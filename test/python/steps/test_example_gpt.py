# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The example GPT: tests of its files without the compiler, then (slow) a short training.

import gzip
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys

import numpy
import pytest
import safetensors.numpy

HERE = pathlib.Path(__file__).resolve().parents[3] / "python/examples/gpt"
sys.path.insert(0, str(HERE))

import display  # noqa: E402
import parameters  # noqa: E402
import tensors  # noqa: E402
import text  # noqa: E402

NAMED = re.compile(r'%arg\d+: tensor<([^>]*)>( {tf\.aliasing_output = (\d+) : i32})? loc\("([^"]*)"\)')


def signature(function):
    """(type, carried result or None, name) of each argument, and the results' types."""
    line = next(l for l in (HERE / "gpt.mlir").open() if f"func.func public @{function}(" in l)
    arguments, results = line.split(" -> ", 1)
    found = [(t, int(carried) if carried else None, name) for t, _, carried, name in NAMED.findall(arguments)]
    assert len(found) == arguments.count("%arg")
    return found, re.findall(r"tensor<([^>]*)>", results)


def type_of(shape):
    return "x".join([*map(str, shape), "f32"])


def make_text(path, size=40000):
    words = b"the quick brown fox jumps over a lazy dog and runs into the dark wood "
    path.write_bytes((words * (size // len(words) + 1))[:size])
    return path


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
@pytest.mark.parametrize("recipe", ["none", "delayed"])
def test_attention_is_one_operation(run, tmp_path, recipe, target):
    """In training and in evaluation, of every layer; keys after a token are left out."""
    done = run("fp8-compile", HERE / "gpt.mlir", f"--recipe={recipe}", f"--target={target}", "--emit=fusion", "--report=json", "-o", tmp_path / "ir.mlir")
    sites = json.loads(done.stdout)["attention"]
    assert len(sites) == 2 * parameters.LAYERS and all((site["decision"], site["mask"]) == ("fused", "causal") for site in sites), sites


def test_tensors_are_safetensors(tmp_path):
    a, b = numpy.arange(6, dtype=numpy.float32).reshape(2, 3), numpy.array([[1], [-2]], dtype=numpy.int32)
    file = tmp_path / "t.safetensors"
    tensors.write(file, {"params['h0/x']": ("F32", (2, 3), a.tobytes()), "b": ("I32", (2, 1), memoryview(b))})
    read = safetensors.numpy.load_file(file)
    numpy.testing.assert_array_equal(read["params['h0/x']"], a)
    numpy.testing.assert_array_equal(read["b"], b)
    assert read["b"].dtype == numpy.int32
    (length,) = struct.unpack("<Q", file.read_bytes()[:8])
    assert length % 8 == 0


def test_tensors_reads_what_safetensors_writes(tmp_path):
    values = {"x": numpy.float32([[1.5, -2]]), "s": numpy.array(3, numpy.float32)}
    safetensors.numpy.save_file(values, tmp_path / "t", metadata={"version": "1"})
    assert tensors.read(tmp_path / "t") == {"x": ("F32", [1, 2], values["x"].tobytes()), "s": ("F32", [], values["s"].tobytes())}


def test_batches_are_deterministic_windows_of_the_text():
    data = bytes(range(256)) * 3
    tokens = text.batches(data, 4, seed=7)
    assert tokens == text.batches(data, 4, seed=7)
    assert tokens != text.batches(data, 4, seed=8)
    windows = numpy.array(tokens).reshape(-1, text.WINDOW)
    assert windows.shape == (4 * parameters.BATCH, 65)
    assert tokens.itemsize == 4
    assert all(bytes(window.tolist()) in data for window in windows)
    assert len({tuple(window) for window in windows}) > 1


def test_the_shortest_text_has_one_window():
    data = bytes(range(text.WINDOW))
    assert bytes(text.batches(data, 1, seed=0)) == bytes(numpy.int32([list(data)] * parameters.BATCH))


def test_held_out_text_is_not_trained_on():
    data = bytes(numpy.random.RandomState(0).bytes(26000))
    train, held_out = text.split(data)
    assert train + held_out == data
    assert len(held_out) == 1300
    with pytest.raises(ValueError, match="1299 bytes are too few: at least 1300"):
        text.split(data[:1299])


def test_gzipped_text_is_read(tmp_path):
    (tmp_path / "a").write_bytes(b"plain")
    (tmp_path / "b").write_bytes(gzip.compress(b"packed"))
    assert text.read(tmp_path / "a") == b"plain"
    assert text.read(tmp_path / "b") == b"packed"


def test_initial_values_fit_the_arguments_of_main():
    arguments, results = signature("main")
    initial = parameters.initial()
    want = [(type_of(shape), f"['{name}']") for name, (shape, _) in sorted(initial.items())]
    count = len(want)
    for group, prefix in enumerate(["params", "moment1", "moment2"]):
        part = arguments[group * count : (group + 1) * count]
        assert [(t, name) for t, _, name in part] == [(t, prefix + name) for t, name in want]
    assert [(t, name) for t, _, name in arguments[3 * count :]] == [("f32", "steps"), ("16x65xi32", "tokens")]
    # Everything but the batch is carried, in order; the loss is the result after those.
    assert [carried for _, carried, _ in arguments] == [*range(3 * count + 1), None]
    assert results == [t for t, _, _ in arguments[:-1]] + ["f32"]


def test_evaluate_takes_the_parameters_of_main():
    arguments, results = signature("evaluate")
    main, _ = signature("main")
    count = len(parameters.shapes())
    assert [(t, name) for t, _, name in arguments] == [(t, name) for t, _, name in [*main[:count], main[-1]]]
    assert all(carried is None for _, carried, _ in arguments)
    assert results == ["f32"]


def test_initial_values():
    initial = parameters.initial()
    assert initial == parameters.initial()
    for name, (shape, values) in initial.items():
        array = numpy.array(values).reshape(shape)
        if name.endswith("/gain"):
            assert (array == 1).all()
        elif name.endswith("/bias"):
            assert (array == 0).all()
        else:
            want = parameters.deviation(name, shape)
            assert abs(array.std() / want - 1) < 0.02 and abs(array.mean()) < 0.02 * want, name


def test_gpt_mlir_is_stock_and_names_no_path():
    ir = (HERE / "gpt.mlir").read_text()
    assert not re.search(r"(fp8|stablehlo|chlo)\.\w", ir.split("\n\n", 1)[1])
    assert not re.search(r'loc\("[^"]*"(:\d|\s*:)', ir)
    subprocess.run(["mlir-opt-22", HERE / "gpt.mlir", "-o", "/dev/null"], check=True)


def test_exporter_writes_the_committed_file(tmp_path):
    jax = pytest.importorskip("jax")
    if jax.__version__ != "0.10.2":
        pytest.skip(f"the file was made with jax 0.10.2, this is {jax.__version__}")
    subprocess.run([sys.executable, HERE / "export.py", tmp_path / "gpt.mlir"], check=True)
    assert (tmp_path / "gpt.mlir").read_bytes() == (HERE / "gpt.mlir").read_bytes()


def site(name, role, decision, reason=""):
    return {"site": name, "role": role, "decision": decision, "reason": reason}


def test_summary_counts_every_contraction(tmp_path):
    sites = [
        site("h0/qkv", "fprop", "fp8"),
        site("h1/qkv", "fprop", "fp8"),
        site("h0/qkv", "wgrad", "fp8"),
        site("h1/attention", "other", "high", "no weight"),
        site("head", "fprop", "high", "keep"),
    ]
    (tmp_path / "report.json").write_text(json.dumps({"sites": sites}))
    assert list(display.summary(tmp_path / "report.json")) == [
        "   5 contractions found",
        "   3 in FP8: 2 fprop, 1 wgrad",
        "          h*/qkv",
        "   1 kept: no weight",
        "          h*/attention",
        "   1 kept: keep",
        "          head",
    ]


@pytest.mark.skipif(not shutil.which("gnuplot"), reason="gnuplot is not installed")
def test_picture_is_drawn(tmp_path):
    (tmp_path / "losses.tsv").write_text("# step\tbf16\tfp8\n0\t5\t5.1\n1\t4\t4.1\n")
    display.picture(tmp_path / "curves.png", tmp_path / "losses.tsv")
    assert (tmp_path / "curves.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def train(bin_dir, tmp_path, *options):
    command = [sys.executable, HERE / "train.py", "--bin", bin_dir, "--out", tmp_path / "out", *options]
    return subprocess.run(list(map(str, command)), text=True, capture_output=True)


@pytest.fixture
def tools(tmp_path):
    """A folder of stand-ins for the tools; tools(name, script) adds one."""

    def add(name, script):
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path.parent

    add("fp8-compile", "exit 0")
    add("gnuplot", "exit 0")
    add("fp8-run", "exit 0")
    return add


def failure(result):
    assert result.returncode == 1
    assert len(result.stderr.splitlines()) == 1, result.stderr
    return result.stderr.strip()


def test_missing_tools_say_how_to_build_them(tmp_path):
    message = failure(train(tmp_path, tmp_path))
    assert message.startswith(f"train.py: {tmp_path}/fp8-compile is missing: build it with 'cmake --preset release")


def test_missing_text_is_one_line(tmp_path, tools, monkeypatch):
    folder = tools("gnuplot", "exit 0")
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    message = failure(train(folder, tmp_path, "--text", tmp_path / "none"))
    assert message == f"train.py: text {tmp_path}/none: No such file or directory"


def test_failing_tools_are_one_line(tmp_path, tools, monkeypatch):
    folder = tools("fp8-compile", "echo 'gpt.mlir:1:2: error: bad' >&2; exit 1")
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    data = make_text(tmp_path / "text")
    assert failure(train(folder, tmp_path, "--text", data)).endswith(": gpt.mlir:1:2: error: bad")
    tools("fp8-compile", "exit 0")
    tools("fp8-run", "exit 3")
    assert failure(train(folder, tmp_path, "--text", data)).endswith(": fp8-run ended with code 3")
    tools("fp8-run", "exit 0")
    assert failure(train(folder, tmp_path, "--text", data)) == "train.py: fp8-run ended without an error before step 200"


def test_steps_below_one_are_a_wrong_command_line(tmp_path):
    assert train(tmp_path, tmp_path, "--steps=0").returncode == 2


def test_unknown_devices_are_a_wrong_command_line(tmp_path):
    result = train(tmp_path, tmp_path, "--device=gpu")
    assert result.returncode == 2 and "--device=gpu: expected cpu, cuda, cuda:N or emulator" in result.stderr


def test_without_a_gpu_the_emulator_is_named(tmp_path, tools, monkeypatch):
    folder = tools("gnuplot", "exit 0")
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    monkeypatch.setenv("FP8RT_CUDA_DRIVER", "none.so")
    message = failure(train(folder, tmp_path, "--device=cuda"))
    assert message.startswith("train.py: --device=cuda: no CUDA driver was found (none.so: ")
    assert message.endswith("; --device=emulator needs no GPU")


@pytest.mark.parametrize("chip", ["sm_89", "sm_90a", "sm_100a", "sm_120a"])
def test_the_chip_of_a_gpu(build_dir, chip):
    """The emulator in place of a GPU's driver, which reads its environment once."""
    script = "import gpu; print(gpu.find_chip(0))\ntry: gpu.find_chip(1)\nexcept gpu.NoGPU as reason: print(reason)"
    environment = {**os.environ, "FP8RT_CUDA_DRIVER": str(build_dir / "lib/libfp8emu.so"), "FP8EMU_CHIP": chip}
    done = subprocess.run([sys.executable, "-c", script], cwd=HERE, env=environment, text=True, capture_output=True, check=True)
    assert done.stdout == f"{chip}\nthe CUDA driver finds no GPU 1 (cuDeviceGet: error 101)\n"


def test_what_is_said_of_kernels(tmp_path):
    sites = [("h0/fc1", "wgmma e4m3"), ("h1/fc1", "wgmma e4m3; left operand copied first: it is so"), ("head", "wgmma bf16")]
    (tmp_path / "report").write_text(json.dumps({"sites": [{"site": site, "code": code} for site, code in sites]}))
    assert list(display.instructions(tmp_path / "report")) == [
        "Instructions of the products:",
        "   2 wgmma e4m3",
        "          h*/fc1",
        "   1 wgmma bf16",
        "          head",
        "     of all products, 1 read a copy of an operand, which lies otherwise in memory",
    ]
    kernels = [{"calls": 1}, {"calls": 2}, {"calls": 0}]
    kinds = [{"name": "casts", "calls": 2}, {"name": "products", "calls": 1}, {"name": "outside kernels", "calls": 0}]
    (tmp_path / "profile").write_text(json.dumps({"kernels": kernels, "kinds": kinds, "step": {"calls": 3}}))
    assert list(display.launches(tmp_path / "profile")) == ["2 kernels, 3 launches per step:", "     2 casts", "     1 products"]


@pytest.mark.slow
def test_it_trains(bin_dir, tmp_path):
    if not shutil.which("gnuplot"):
        pytest.skip("gnuplot is not installed")
    result = train(bin_dir, tmp_path, "--text", make_text(tmp_path / "text"), "--steps=30")
    assert result.returncode == 0, result.stderr
    # 77 contractions of the step and 26 of its evaluation: 4 x 4 linear layers, forward,
    # two gradients, and forward again.
    assert " 103 contractions found\n  64 in FP8: " in result.stdout
    losses = numpy.loadtxt(tmp_path / "out/losses.tsv")
    assert losses.shape == (30, 3)
    assert (losses[0, 1:] > 5).all() and (losses[-1, 1:] < 3).all()
    assert (abs(losses[:, 2] - losses[:, 1]) < 0.1).all() and (losses[:, 2] != losses[:, 1]).any()
    assert (tmp_path / "out/curves.png").stat().st_size > 1000
