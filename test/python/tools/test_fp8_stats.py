# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8-stats on logs whose content is known, and its search for a site that is known to be bad."""

import html.parser
import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from harness import F32, random_generator, save


@pytest.fixture
def stats(source_dir, tmp_path):
    def call(*arguments, code=0):
        done = subprocess.run([sys.executable, source_dir / "tools/fp8-stats/fp8-stats", *map(str, arguments)], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        return done

    return call


def line(step, column, site, tensor="input", **values):
    return (
        json.dumps(
            {
                "step": step,
                "column": column,
                "sites": [site],
                "tensor": tensor,
                "amax": 1.0,
                "scale": 448.0,
                "underflow": None,
                "overflow": None,
                "mse": None,
                **values,
            }
        )
        + "\n"
    )


@pytest.fixture
def log(tmp_path):
    """Three tensors over four steps: one is fine, of one 25% become 0, of one 5% are cut off."""
    text = ""
    for step in range(4):
        text += line(step, 0, "fine", underflow=0.0, overflow=0.0, mse=1e-4, printed=5.0 - step, amax=2.0**step)
        text += line(step, 1, "wide & <b>", underflow=0.25 if step == 2 else 0.0, overflow=0.0, mse=1e-3, printed=5.0 - step)
        text += line(step, 2, "fast", "weight", underflow=0.0, overflow=0.05 if step == 3 else 0.0, mse=2e-3, printed=5.0 - step)
    (tmp_path / "log").write_text(text)
    return tmp_path / "log"


def test_the_table_begins_with_what_needs_attention(stats, log):
    rows = stats(log).stdout.splitlines()
    assert rows[0] == f"{log}: 4 steps (0 to 3), 3 tensors; result 5 to 2"
    assert [row.split("  ")[0] for row in rows[2:]] == ["fast weight", "wide & <b> input", "fine input"]
    assert "5% cut off" in rows[2] and "25% become 0" in rows[3] and "▁▁█▁" in rows[3]
    assert rows[4].split() == ["fine", "input", "8", "▁▃▆█", "448", "0.00%", "▁▁▁▁", "0.00%", "0.0001"]


def test_the_first_nan_needs_attention_first(stats, tmp_path):
    """fp8-run writes null for NaN and Inf: as an error or amax that is measured, and as the result of a step."""
    measured = {"underflow": 0.0, "overflow": 0.0, "mse": 1e-3}
    text = ""
    for step in range(4):
        printed = None if step >= 2 else 3.0
        text += line(step, 0, "wide", **{**measured, "underflow": 0.5}, printed=printed)
        text += line(step, 1, "later", **{**measured, "mse": None if step == 3 else 1e-3}, printed=printed)
        text += line(step, 2, "first", **measured, amax=None if step == 2 else 1.0, printed=printed)
        text += line(step, 3, "zeros", **{**measured, "mse": None}, amax=0.0, printed=printed)
        text += line(step, 4, "not measured", amax=None, printed=printed)
    (tmp_path / "log").write_text(text)
    rows = stats("log", "--html=page").stdout.splitlines()
    assert rows[0] == "log: 4 steps (0 to 3), 5 tensors; result 3 to nan; NaN or Inf in 2 of 4 results, the first of step 2"
    reasons = [re.split("  +", row)[0] + ": " + re.split("  +", row)[-1] for row in rows[2:5]]
    assert reasons[:2] == ["first input: NaN or Inf in step 2", "later input: NaN or Inf in step 3"]
    assert reasons[2].startswith("wide input: 50% become 0: ") and not any("NaN" in row for row in rows[5:])
    assert "NaN or Inf in 2 of 4 results" in (tmp_path / "page").read_text()


def test_the_last_line_of_a_killed_run_is_left_out(stats, log):
    whole = stats(log).stdout
    log.write_text(log.read_text() + line(4, 0, "fine")[:40])
    done = stats(log)
    assert done.stdout == whole and done.stderr.startswith(f"fp8-stats: warning: {log}: its last line is not whole") and done.stderr.count("\n") == 1
    log.write_text(log.read_text() + "\n")
    assert "log:13: not a line of fp8-run --monitor" in stats(log, code=1).stderr


def test_a_run_that_went_on_from_a_checkpoint(stats, log):
    """Steps that are taken again replace those of the killed run."""
    lines = log.read_text().splitlines(keepends=True)
    expected = stats(log).stdout
    for cut, begin in ((12, 6), (10, 9), (9, 6), (8, 6)):  # three lines a step
        given_up = [text.replace('"overflow": 0.0', '"overflow": 0.5') for text in lines[begin:cut]]
        log.write_text("".join([*lines[:begin], *given_up, *lines[begin:]]))
        assert stats(log).stdout == expected, (cut, begin)


def test_a_page_of_many_steps_is_small(stats, tmp_path):
    (tmp_path / "log").write_text("".join(line(step, 0, "fc", amax=100.0 if step == 3001 else 1.0, scale=64.0) for step in range(5000)))
    stats("log", "--html=page")
    page = (tmp_path / "page").read_text()
    assert len(page) < 30_000 and "2^6.6" in page  # the one large amax is drawn
    points = re.findall(r'points="([^"]*)"', page)[0].split()
    assert len(points) < 600 and len({point.split(",")[1] for point in points}) == 2


def test_selections(stats, log):
    assert len(stats(log, "--sites=^f").stdout.splitlines()) == 4
    assert stats(log, "--rows=1").stdout.splitlines()[-1] == "and 2 more (--rows)"
    assert "no tensor of" in stats(log, "--sites=none", code=1).stderr
    assert "--sites=(: " in stats(log, "--sites=(", code=2).stderr
    assert "--rows=-1: expected at least 1" in stats(log, "--rows=-1", code=2).stderr


class Checker(html.parser.HTMLParser):
    """Every element is closed, and none refers to another file."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.text = [], [], ""

    def handle_starttag(self, tag, attributes):
        assert not {"src", "href", "xlink:href"} & {name for name, _ in attributes} and tag not in ("script", "link")
        self.tags.append(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_the_page_needs_nothing_else(stats, log, tmp_path):
    stats(log, "--html=page.html")
    page = Checker()
    page.feed((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert page.open == [] and "url(" not in page.text and "wide & <b> input" in page.text
    # One cell in each heat map; a chart of the result and one of each tensor.
    assert page.tags.count("rect") == 2 and page.tags.count("polyline") == 1 + 2 * 3
    assert "step 2: 25%" in page.text and "step 3: 5%" in page.text


def test_a_picture(stats, log, tmp_path):
    if not shutil.which("gnuplot"):
        pytest.importorskip("matplotlib", reason="the picture is drawn by matplotlib or gnuplot")
    stats(log, "--plot=picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_gnuplot_draws_the_same_curves(source_dir, log, monkeypatch):
    monkeypatch.syspath_prepend(source_dir / "tools/fp8-stats")
    import pictures
    from log import Log

    script = pictures.gnuplot_script(Log.read(log), log)
    assert "set multiplot layout 4,1" in script and script.count("with lines") == 1 + 3 * 3
    assert "2 0.25\n" in script and "'wide & <b> input'" in script


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "it has no steps"),
        ("{", "log:1: not a line of fp8-run --monitor"),
        ("[]", "log:1: not a line of fp8-run --monitor"),
        (line(0, 0, "a") + '{"step": 1}\n', "log:2: not a line of fp8-run --monitor"),
    ],
)
def test_wrong_logs(stats, log, text, message):
    log.write_text(text)
    done = stats(log, code=1)
    assert message in done.stderr and done.stderr.startswith("fp8-stats: error: ") and done.stderr.count("\n") == 1


def test_wrong_requests(stats, log):
    assert "none: No such file" in stats("none", code=1).stderr
    assert "--html=none/page: No such file" in stats(log, "--html=none/page", code=1).stderr
    stats(log, "--unknown", code=2)
    stats("bisect", "model", code=2)
    assert f"--html={log} would overwrite the log" in stats(log, f"--html={log}", code=2).stderr
    assert "--html and --plot both write page" in stats(log, "--html=page", "--plot=page", code=2).stderr
    assert "usage: fp8-stats LOG" in stats("--help").stdout and "--steps" in stats("bisect", "--help").stdout


def products(count):
    """A step with `count` products x·w and the sum of the squares of their elements, each on tensors of its own."""
    x, w, y, s = "tensor<8x64xf32>", "tensor<64x16xf32>", "tensor<8x16xf32>", "tensor<f32>"
    body = f"%e = tensor.empty() : {y}\n%i = linalg.fill ins(%z : f32) outs(%e : {y}) -> {y}\n%es = tensor.empty() : {s}\n%s0 = linalg.fill ins(%z : f32) outs(%es : {s}) -> {s}\n"
    for n in range(count):
        body += f"""%y{n} = linalg.matmul ins(%x{n}, %w{n} : {x}, {w}) outs(%i : {y}) -> {y} loc("jit(step)/site{n}/dot_general")
        %s{n + 1} = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>], iterator_types = ["reduction", "reduction"]}} ins(%y{n} : {y}) outs(%s{n} : {s}) {{
        ^bb0(%a: f32, %b: f32):
          %q = arith.mulf %a, %a : f32
          %t = arith.addf %q, %b : f32
          linalg.yield %t : f32
        }} -> {s}\n"""
    arguments = ", ".join(f'%x{n}: {x} loc("x{n}"), %w{n}: {w} loc("w{n}")' for n in range(count))
    return f'func.func @main({arguments}) -> ({s} {{jax.result_info = "loss"}}) {{\n%z = arith.constant 0.0 : f32\n{body}return %s{count} : {s}\n}}\n'


@pytest.mark.parametrize("bad", [[5], [0, 6]])
def test_bisect_finds_the_bad_sites(stats, tmp_path, bin_dir, bad):
    """An element too large for the others, which no weight reads, makes all others 0 in FP8."""
    draw, count = random_generator(*bad), 8
    tensors = {}
    for n in range(count):
        x, w = draw.standard_normal((8, 64), F32), draw.standard_normal((64, 16), F32)
        if n in bad:
            x[:, 0], w[0] = 1e6, 0
        tensors |= {f"x{n}": x, f"w{n}": w}
    save(tmp_path / "in", tensors)
    (tmp_path / "step.mlir").write_text(products(count))
    done = stats("bisect", "step.mlir", "--inputs=in", "--print=loss", "--steps=2", f"--bin={bin_dir}", "--part=0.9", "--", "--recipe=current")
    sites = "|".join(f"site{n}" for n in bad)
    assert done.stdout.splitlines()[-1] == f"--keep='^({sites})$'"
    assert re.fullmatch(r"(\[\d+\] \d of 8 sites kept: \S+ off\n)+", done.stderr)


def test_bisect_passes_options_to_every_training(stats, tmp_path, bin_dir):
    """The weights train only by --carry, in high precision too; a --keep of the caller's stays."""
    text = products(2).replace("return %s2 : tensor<f32>", "%w = arith.addf %w0, %w1 : tensor<64x16xf32>\nreturn %s2, %w : tensor<f32>, tensor<64x16xf32>")
    text = text.replace('{jax.result_info = "loss"})', '{jax.result_info = "loss"}, tensor<64x16xf32>)')
    draw = random_generator(9)
    tensors = {name: draw.standard_normal((8, 64) if name[0] == "x" else (64, 16), F32) for name in ("x0", "w0", "x1", "w1")}
    tensors["x1"][:, 0], tensors["w1"][0] = 1e6, 0
    save(tmp_path / "in", tensors)
    (tmp_path / "step.mlir").write_text(text)
    options = ["step.mlir", "--inputs=in", "--print=loss", "--steps=3", f"--bin={bin_dir}", "--part=0.9", "--"]
    done = stats("bisect", *options, "--recipe=current", "--carry=w0:1")
    assert done.stdout.splitlines()[-1] == "--keep='^(site1)$'" and "2 of 2 sites kept: 0 off" in done.stderr
    done = stats("bisect", *options, "--recipe=current", "--carry=w0:1", "--keep=site0")
    assert done.stdout.splitlines()[-1] == "--keep='site0|^(site1)$'"
    save(tmp_path / "in", {**tensors, "w1": tensors["w1"] * np.nan})
    assert "is NaN or Inf within 3 steps" in stats("bisect", *options, "--recipe=current", code=1).stderr


def test_bisect_errors(stats, tmp_path, bin_dir):
    (tmp_path / "step.mlir").write_text("func.func @main() { wrong }")
    assert "fp8-compile failed: step.mlir:1:" in stats("bisect", "step.mlir", "--print=0", f"--bin={bin_dir}", code=1).stderr
    if not shutil.which("fp8-compile"):
        assert "there is no fp8-compile: say where with --bin=DIR" in stats("bisect", "step.mlir", "--print=0", f"--bin={tmp_path}", code=1).stderr


@pytest.mark.parametrize("arguments", [[], ["--bogus"], ["log", "--rows=0"], ["bisect"], ["bisect", "model.mlir", "--bogus"]])
def test_an_error_of_the_command_line_is_one_line(stats, arguments):
    done = stats(*arguments, code=2)
    assert re.fullmatch(r"fp8-stats( bisect)?: error: .+\n", done.stderr) and not done.stdout


@pytest.mark.parametrize("arguments", [["--help"], ["bisect", "--help"], ["log"]])
def test_standard_output_that_is_full(source_dir, log, arguments):
    with open("/dev/full", "w") as full:
        command = [sys.executable, source_dir / "tools/fp8-stats/fp8-stats", *arguments]
        done = subprocess.run(command, cwd=log.parent, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (1, "fp8-stats: error: cannot write to standard output: No space left on device\n")
