# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8-run --monitor by value: what it says of each quantized tensor is what numpy computes of it."""

import json
import os
import pathlib
import pty
import re
import subprocess

import numpy as np
import pytest

from harness import E4M3, E5M2, F32, load, random_generator, save

STEP = pathlib.Path(__file__).parents[1] / "inputs" / "measured_step.mlir"
KEYS = {"step", "column", "sites", "tensor", "amax", "scale", "underflow", "overflow", "mse"}


@pytest.fixture(scope="module")
def folder(bin_dir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("monitor")
    for recipe in ("delayed", "current", "block", "none"):
        for measure in ([], ["--measure-errors"]):
            subprocess.run(
                [bin_dir / "fp8-compile", STEP, f"--recipe={recipe}", *measure, "-o", folder / f"{recipe}{'.measured' * bool(measure)}.so"], check=True
            )
    draw = random_generator(1)
    x = (draw.standard_normal((16, 32)) * np.exp(4 * draw.standard_normal((16, 32)))).astype(F32)
    x[0, 0] = 0
    save(folder / "in", {"x": x, "w": draw.standard_normal((32, 24)).astype(F32)})
    return folder


def run(bin_dir, folder, library, *args, code=0):
    done = subprocess.run([bin_dir / "fp8-run", folder / f"{library}.so", f"--inputs={folder / 'in'}", *args], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done


def monitored(bin_dir, folder, library, *args):
    run(bin_dir, folder, library, f"--monitor={folder / 'log'}", *args)
    return [json.loads(line) for line in (folder / "log").read_text().splitlines()]


def cast(x, scale, dtype):
    """Returns the cast values, and the fractions of elements that become 0 and that are cut off."""
    largest, middle = (448, 464) if dtype == E4M3 else (57344, 61440)
    scaled = (x * np.float32(scale)).astype(F32)
    back = np.clip(scaled, -largest, largest).astype(dtype).astype(F32) * (np.float32(1) / np.float32(scale))
    return back, np.mean((x != 0) & (back == 0)), np.mean(np.abs(scaled) > middle)


def expect(line, x, scale, dtype):
    back, underflow, overflow = cast(x, scale, dtype)
    assert line["underflow"] == pytest.approx(underflow, abs=1e-7)
    assert line["overflow"] == pytest.approx(overflow, abs=1e-7)
    assert line["mse"] == pytest.approx(np.sum((x - back) ** 2, dtype=np.float64) / np.sum(x**2, dtype=np.float64), rel=1e-4)
    assert line["amax"] == np.abs(x).max()


def test_delayed_scaling(bin_dir, folder):
    lines = monitored(bin_dir, folder, "delayed.measured", "--steps=3", "--print=loss", f"--save-state={folder / 'state'}")
    assert [(line["step"], line["column"], line["tensor"]) for line in lines] == [
        (step, column, tensor) for step in range(3) for column, tensor in enumerate(["input", "weight", "grad_output"])
    ]
    assert all(set(line) == KEYS | {"printed"} and line["sites"] == ["fc"] for line in lines)
    inputs, state = load(folder / "in"), load(folder / "state")
    x, w = inputs["x"], inputs["w"]
    # Step 0 casts with scale 1, step 1 with the scale that the log has of step 0.
    expect(lines[0], x, 1, E4M3)
    expect(lines[1], w, 1, E4M3)
    expect(lines[3], x, lines[0]["scale"], E4M3)
    y = cast(x, 1, E4M3)[0] @ cast(w, 1, E4M3)[0]
    assert lines[2]["amax"] == pytest.approx(np.abs(y).max(), rel=1e-5)
    assert lines[2]["underflow"] == cast(y, 1, E5M2)[1]
    np.testing.assert_array_equal(np.array([line["scale"] for line in lines[6:]], F32), state["scale"])
    np.testing.assert_array_equal(np.array([line["amax"] for line in lines[6:]], F32), state["amax_history"][-1])


def test_current_scaling_has_no_columns(bin_dir, folder):
    lines = {line["tensor"]: line for line in monitored(bin_dir, folder, "current.measured")}
    x = load(folder / "in")["x"]
    expect(lines["input"], x, np.float32(448) / np.abs(x).max(), E4M3)
    assert all(line["column"] is None and line["scale"] is None for line in lines.values())


def test_block_scaling_measures_both_directions(bin_dir, folder):
    lines = monitored(bin_dir, folder, "block.measured")
    x = load(folder / "in")["x"]
    by_tensor = [line for line in lines if line["tensor"] == "input"]
    assert len(by_tensor) == 2 and all(line["amax"] == np.abs(x).max() for line in by_tensor)
    back = np.empty_like(x)
    for i, row in enumerate(x):  # 1 x 128 along K, with powers of two for scales
        back[i] = cast(row, 2.0 ** np.floor(np.log2(448 / np.abs(row).max())), E4M3)[0]
    wanted = np.sum((x - back) ** 2, dtype=np.float64) / np.sum(x**2, dtype=np.float64)
    assert min(abs(line["mse"] / wanted - 1) for line in by_tensor) < 1e-4


def test_without_measurements_there_is_the_state(bin_dir, folder):
    lines = monitored(bin_dir, folder, "delayed", "--steps=2")
    assert len(lines) == 6 and all(set(line) == KEYS for line in lines)
    assert all(line["amax"] > 0 and line["mse"] is line["underflow"] is line["overflow"] is None for line in lines)


def test_some_steps_and_going_on(bin_dir, folder):
    lines = monitored(bin_dir, folder, "delayed", "--steps=7", "--monitor-every=3")
    assert sorted({line["step"] for line in lines}) == [0, 3, 6]
    more = monitored(bin_dir, folder, "delayed", "--steps=3", "--first-step=7")
    assert more[:9] == lines and sorted({line["step"] for line in more[9:]}) == [7, 8, 9]


def test_a_log_whose_writer_was_killed(bin_dir, folder):
    lines = monitored(bin_dir, folder, "delayed", "--steps=2")
    log = folder / "log"
    log.write_bytes(log.read_bytes()[:-20])
    more = monitored(bin_dir, folder, "delayed", "--steps=1", "--first-step=2")
    assert more[:5] == lines[:5] and [line["step"] for line in more[5:]] == [2, 2, 2]


def test_lines_where_there_is_no_terminal(bin_dir, folder):
    done = run(bin_dir, folder, "delayed", "--monitor")
    assert [json.loads(line)["column"] for line in done.stderr.splitlines()] == [0, 1, 2]


def run_in_terminal(command, both=False):
    """The text that the command writes to a terminal on standard error, with `both` on standard output
    too."""
    reader, writer = pty.openpty()
    with subprocess.Popen(command, stderr=writer, stdout=writer if both else subprocess.DEVNULL) as process:
        os.close(writer)
        text = b""
        try:
            while piece := os.read(reader, 4096):
                text += piece
        except OSError:  # the last writer has gone
            pass
    os.close(reader)
    assert process.returncode == 0
    return text.decode()


def show_in_terminal(bin_dir, folder, inputs, *args):
    """The text that fp8-run writes to a terminal, and the lines of its last table."""
    text = run_in_terminal([bin_dir / "fp8-run", folder / "delayed.measured.so", f"--inputs={inputs}", "--print=loss", "--monitor", *args])
    return text, text.split("\x1b[5A")[-1].replace("\x1b[K", "").replace("\x1b[J", "").splitlines()


def test_a_tensor_with_a_nan_is_first(bin_dir, folder):
    inputs = load(folder / "in")
    inputs["w"][3, 4] = np.nan
    inputs["x"] = inputs["x"] * 1e5  # most of it is cut off
    save(folder / "nan", inputs)
    _, lines = show_in_terminal(bin_dir, folder, folder / "nan")
    assert [line.split()[1] for line in lines[2:]] == ["weight", "grad_output", "input"]
    assert lines[2].split()[-1] == "nan" and float(lines[4].split()[-1]) > 0.9


def test_a_table_in_a_terminal(bin_dir, folder):
    text, last = show_in_terminal(bin_dir, folder, folder / "in", "--steps=3")
    assert text.count("\x1b[5A") == 2 and last[0].startswith("step 2  result ")
    assert last[1].split() == ["tensor", "amax", "scale", "underflow", "overflow", "mse"]
    assert sorted(line.split()[1] for line in last[2:]) == ["grad_output", "input", "weight"]
    row = next(line for line in last if line.startswith("fc input"))
    assert f"{np.abs(load(folder / 'in')['x']).max():.3g}" in row and any(bar in row for bar in "▁▂▃▄▅▆▇█")


def screen(text):
    """The lines of a terminal that has received `text`."""
    lines, row = [""], 0
    for piece in re.split(r"(\x1b\[\d*[AJK]|\r\n)", text):
        if piece == "\r\n":
            row += 1
            lines += [""] * (row == len(lines))
        elif piece.endswith("A") and piece.startswith("\x1b"):
            row -= int(piece[2:-1])
            assert row >= 0
        elif piece == "\x1b[J":
            lines = [*lines[:row], ""]
        elif piece != "\x1b[K":
            lines[row] = piece or lines[row]
    return lines


@pytest.mark.parametrize("every", [1, 2])
def test_results_in_the_same_terminal(bin_dir, folder, every):
    """The table is drawn over the results that --print writes below it."""
    options = [f"--inputs={folder / 'in'}", "--steps=5", "--print=loss", "--monitor", f"--monitor-every={every}"]
    lines = screen(run_in_terminal([bin_dir / "fp8-run", folder / "delayed.so", *options], both=True))
    assert [line.split("  ")[0] for line in lines if line.startswith("step")] == ["step 4"]
    assert lines[0].startswith("0\t") and lines[1].startswith("step 4") and len(lines) == 1 + 5 + 1 and lines[-1] == ""


@pytest.mark.parametrize(
    "args, code, message",
    [
        (["--monitor-every=2"], 2, "--monitor-every=2: expected at least 1, and --monitor"),
        (["--monitor", "--monitor-every=0"], 2, "--monitor-every=0"),
        (["--monitor=s", "--save-state=s"], 2, "--monitor=s: --save-state writes the same file"),
        (["--monitor=none/log"], 1, "none/log: cannot write"),
    ],
)
def test_wrong_requests(bin_dir, folder, args, code, message):
    assert message in run(bin_dir, folder, "delayed", *args, code=code).stderr


def test_a_program_without_fp8(bin_dir, folder):
    assert "--monitor: the program has no FP8 state" in run(bin_dir, folder, "none", "--monitor", code=1).stderr
