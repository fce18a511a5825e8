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


def test_selections(stats, log):
    assert len(stats(log, "--sites=^f").stdout.splitlines()) == 4
    assert stats(log, "--rows=1").stdout.splitlines()[-1] == "and 2 more (--rows)"
    assert "no tensor of" in stats(log, "--sites=none", code=1).stderr
    assert "--sites=(: " in stats(log, "--sites=(", code=1).stderr


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


def test_bisect_errors(stats, tmp_path, bin_dir):
    (tmp_path / "step.mlir").write_text("func.func @main() { wrong }")
    assert "fp8-compile failed: step.mlir:1:" in stats("bisect", "step.mlir", "--print=0", f"--bin={bin_dir}", code=1).stderr
    if not shutil.which("fp8-compile"):
        assert "there is no fp8-compile: say where with --bin=DIR" in stats("bisect", "step.mlir", "--print=0", f"--bin={tmp_path}", code=1).stderr
