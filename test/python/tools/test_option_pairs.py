# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pairs of options of fp8-compile: their combined effect, or an error that says what to change."""
import json
import re

import pytest

# Two layers with a product of weights each, scores without a weight, and a head in no layer.
PRODUCT = """
  %{0} = linalg.matmul ins({1}, {2} : tensor<8x8xbf16>, tensor<8x8xbf16>) outs(%z : tensor<8x8xbf16>) -> tensor<8x8xbf16> loc("jvp({3})/dot_general")"""
PROGRAM = """
func.func @main(%x: tensor<8x8xbf16>, %w0: tensor<8x8xbf16>, %w1: tensor<8x8xbf16>, %w2: tensor<8x8xbf16>) -> tensor<8x8xbf16> {
  %zero = arith.constant 0.0 : bf16
  %e = tensor.empty() : tensor<8x8xbf16>
  %z = linalg.fill ins(%zero : bf16) outs(%e : tensor<8x8xbf16>) -> tensor<8x8xbf16>PRODUCTS
  return %y : tensor<8x8xbf16>
}
""".replace("PRODUCTS", "".join(PRODUCT.format(*row) for row in [
    ("a", "%x", "%w0", "h0/fc"), ("b", "%a", "%w1", "h1/fc"), ("s", "%a", "%b", "scores"), ("y", "%s", "%w2", "head")]))
SITES = {"h0/fc", "h1/fc", "head", "scores"}

# Two options, and the sites that become FP8.
CHOICES = [
    ("--sites=linear", "--keep=head", {"h0/fc", "h1/fc"}),
    ("--sites=all", "--keep=head", {"h0/fc", "h1/fc", "scores"}),
    ("--sites=h[01]", "--keep=h1", {"h0/fc"}),
    ("--sites=head", "--keep=head", set()),
    ("--sites=linear", "--first=1", {"h1/fc", "head"}),
    ("--sites=h0|head", "--first=1", {"head"}),
    ("--first=1", "--last=1", {"head"}),
    ("--first=1", "--keep=h1", {"head"}),
    ("--first=1", "--require=h1", {"h1/fc", "head"}),
    ("--keep=h0", "--require=h1|head", {"h1/fc", "head"}),
    ("--sites=all", "--require=all", SITES),
    ("--fprop=bf16", "--sites=all", {"scores"}),
    ("--fprop=bf16", "--keep=scores", set()),
    ("--recipe=none", "--sites=all", set()),
    ("--recipe=none", "--keep=head", set()),
    ("--recipe=none", "--first=1", set()),
    ("--recipe=none", "--calibrate", set()),
    ("--recipe=current", "--calibrate", {"h0/fc", "h1/fc", "head"}),
    ("--format=e4m3", "--dgrad=e5m2", {"h0/fc", "h1/fc", "head"}),
    ("--recipe=none", "--site-recipe=h1=current", {"h1/fc"}),
    ("--fprop=bf16", "--site-recipe=h1=current", {"h1/fc"}),
    ("--sites=all", "--site-recipe=.=none", set()),
    ("--keep=h1", "--site-recipe=h=current", {"h0/fc", "head"}),
    ("--first=1", "--site-recipe=h0=current", {"h1/fc", "head"}),
    ("--sites=linear", "--site-recipe=scores=current", {"h0/fc", "h1/fc", "head"}),
    ("--recipe=current", "--fprop=delayed", {"h0/fc", "h1/fc", "head"}),
    ("--fprop=none", "--sites=all", {"scores"}),
    ("--sites=linear", "--fp8-attention", SITES),
    ("--keep=scores", "--fp8-attention", {"h0/fc", "h1/fc", "head"}),
    ("--fprop=bf16", "--fp8-attention", {"scores"}),
    ("--fprop=#fp8.current_scaling<format = e5m2>", "--sites=linear", {"h0/fc", "h1/fc", "head"}),
]

REQUIRED = r"site '{}' is required to be FP8 \(--require={}\) but stays in high precision: {}"
# Two options that cannot both hold; the exit code and what to change.
CONTRADICTIONS = [
    ("--keep=head", "--require=head", 1, REQUIRED.format("head", "head", "matches --keep=head")),
    ("--keep=head", "--require=all", 1, REQUIRED.format("(head|scores)", "all", "")),
    ("--first=1", "--require=h0", 1, REQUIRED.format("h0/fc", "h0", "in the first layers, --first=1")),
    ("--last=1", "--require=h1", 1, REQUIRED.format("h1/fc", "h1", "in the last layers, --last=1")),
    ("--sites=h0", "--require=h1", 1, REQUIRED.format("h1/fc", "h1", "does not match --sites=h0")),
    ("--sites=linear", "--require=scores", 1, REQUIRED.format("scores", "scores", r"no weight operand")),
    ("--fprop=bf16", "--require=head", 1, REQUIRED.format("head", "head", "--fprop=bf16")),
    ("--recipe=none", "--require=head", 1, REQUIRED.format("head", "head", "--recipe=none")),
    ("--first=2", "--last=1", 1, "--first=2 and --last=1 name more than the 2 layers of this program"),
    ("--attention=written", "--require-attention=scores", 2, "--require-attention belongs to --attention=fused, not to --attention=written; drop one of the two"),
    ("--attention=fused", "--require-attention=scores", 1, "no attention is at a site that matches --require-attention=scores; the report lists the places of attention"),
    ("--attention=flash", "--sites=all", 2, "--attention=flash must be fused or written"),
    ("--sites=all", "--sites=linear", 2, "--sites is given 2 times; give it once"),
    ("--recipe=current", "--margin=1", 2, "--margin belongs to --recipe=delayed, not to --recipe=current; drop one of the two"),
    ("--recipe=current", "--executed-mask=true", 2, "--executed-mask belongs to --recipe=delayed"),
    ("--recipe=none", "--format=e4m3", 2, "--format belongs to recipes that make FP8"),
    ("--recipe=none", "--dgrad=e5m2", 2, "--dgrad=e5m2 belongs to recipes that make FP8"),
    ("--recipe=none", "--fprop=current", 2, "--fprop=current belongs to recipes that make FP8"),
    ("--recipe=#fp8.custom<base = #fp8.current_scaling>", "--fprop=delayed", 2, "--fprop=delayed belongs to the words delayed"),
    ("--recipe=#fp8.current_scaling", "--eps=1", 2, "--eps belongs to the words delayed"),
    ("--recipe=current", "--amax-history-len=4", 2, "--amax-history-len belongs to --recipe=delayed"),
    ("--recipe=row", "--amax-compute-algo=max", 2, "--amax-compute-algo belongs to --recipe=delayed"),
    ("--recipe=mxfp8", "--init=current", 2, "--init belongs to --recipe=delayed"),
    ("--recipe=block", "--margin=1", 2, "--margin belongs to --recipe=delayed"),
    ("--recipe=mxfp8", "--eps=1", 2, "--eps belongs to --recipe=current and block and row"),
    ("--recipe=mxfp8", "--power-2-scale=true", 2, "--power-2-scale belongs to --recipe=current and block and row"),
    ("--recipe=block", "--mx-rounding=up", 2, "--mx-rounding belongs to --recipe=mxfp8"),
    ("--recipe=mxfp8", "--x-block-scaling-dim=2", 2, "--x-block-scaling-dim belongs to --recipe=block"),
    ("--recipe=row", "--reduce-amax=true", 2, "--reduce-amax belongs to --recipe=delayed and current"),
    ("--recipe=none", "--accumulation=fast", 2, "--accumulation belongs to --recipe=delayed and current and row and mxfp8, not to --recipe=none"),
    ("--fprop=block", "--fprop-accumulation=fast", 2, "--fprop-accumulation belongs to recipes other than block, whose parts have scales of their own, not to --fprop=block"),
    ("--fprop=bf16", "--fprop-accumulation=fast", 2, "--fprop-accumulation belongs to delayed, current, row and mxfp8, not to --fprop=bf16"),
    ("--recipe=none", "--fp8-attention", 2, "--fp8-attention belongs to recipes that make FP8, not to --recipe=none; drop one of the two"),
    ("--sites=h0", "--fp8-attention", 2, "--fp8-attention belongs to --sites=linear, not to --sites=h0; drop one of the two"),
    ("--fprop=none", "--fp8-parameters", 1, "--fp8-parameters keeps no weight in FP8, because no matmul of a weight becomes FP8"),
    ("--site-recipe=.=none", "--fp8-parameters", 1, "--fp8-parameters keeps no weight in FP8, because no matmul of a weight becomes FP8"),
    ("--recipe=#fp8.delayed_scaling<format = e5m2>", "--sites=all", 1, "has E5M2 for all tensors, too few bits for activations and weights; say format = hybrid"),
    ("--recipe=none", "--site-recipe=h0=#fp8.current_scaling<format = e5m2>", 1, "has E5M2 for all tensors"),
    ("--site-recipe=h0=none", "--require=h0", 1, REQUIRED.format("h0/fc", "h0", "--site-recipe=h0=none")),
    ("--init=current", "--amax-history-len=1", 2, "--init=current needs an --amax-history-len of 2 or more"),
    ("--target=sm_89", "--math=libm", 2, "--math=libm belongs to --target=cpu, not to --target=sm_89; drop one of the two"),
    ("--target=sm_89", "--sums=hardware", 2, "--sums=hardware belongs to --target=cpu, not to --target=sm_89; drop one of the two"),
    ("--target=cpu", "--ptxas=/bin/true", 2, "--ptxas=/bin/true belongs to a --target that is a GPU, not to --target=cpu; drop one of the two"),
    ("--accumulation=fast", "--strict-accumulation", 2, "--strict-accumulation sums gradients in parts of 128, and --accumulation=fast none; drop one of the two"),
    ("--loss=0", "--recipe=current", 2, "--loss belongs to --loss-scaling and --data-parallel; give one of them, or drop it"),
    ("--loss-scaling", "--recipe=current", 1, "loss scaling finds no matmul of a backward pass: compile the whole training step, or drop --loss-scaling"),
    ("--reduce-amax-axes=dp", "--recipe=mxfp8", 2, "--reduce-amax-axes belongs to --recipe=delayed and current, not to --recipe=mxfp8; drop one of the two"),
    ("--mixed-precision=f16", "--fprop=f32", 1, "--fprop=f32 keeps matmuls as they are, and the program has this one in bf16; say --fprop=bf16"),
    ("--emit=ingest", "--report=text:sites", 2, "--report"),
    ("--emit=ingest", "--manifest=m.json", 2, "--manifest"),
]

# A pattern that matches no site does nothing: with --keep, which many models may share, that is only said.
UNUSED = [
    ("--keep=h7", 0, r"^m\.mlir:1:1: warning: no site matches --keep=h7; the report lists them$"),
    ("--sites=h7", 1, r"^m\.mlir:1:1: error: no site matches --sites=h7; the report lists the sites$"),
    ("--require=h7", 1, r"^m\.mlir:1:1: error: no site matches --require=h7; the report lists the sites$"),
    ("--site-recipe=h7=none", 1, r"^m\.mlir:1:1: error: no site matches --site-recipe=h7; the report lists the sites$"),
    ("--first=3", 1, r"^m\.mlir:1:1: error: --first=3 and --last=0 name more than the 2 layers of this program$"),
]


@pytest.fixture
def compile(run, tmp_path):
    (tmp_path / "m.mlir").write_text(PROGRAM)
    return lambda *options: run("fp8-compile", "m.mlir", "-o", "m.so", *options, cwd=tmp_path)


@pytest.mark.parametrize("one, other, chosen", CHOICES)
def test_what_two_options_choose(compile, one, other, chosen):
    done = compile(one, other, "--report=json")
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert {s["site"] for s in report["sites"]} == SITES
    assert {s["site"] for s in report["sites"] if s["decision"] == "fp8"} == chosen
    for option in (one, other):
        name, _, value = option.removeprefix("--").partition("=")
        shown = report["options"][name.replace("-", "_")]
        assert (shown == [value] if isinstance(shown, list) else str(shown).lower() == (value or "true"))


@pytest.mark.parametrize("option", ["--format=hybrid", "--margin=0", "--amax-history-len=1024", "--amax-compute-algo=max", "--reduce-amax=true",
                                    "--sites=linear", "--first=0", "--last=0", "--fprop=fp8", "--math=expanded", "--cpu=native", "--target=cpu"])
def test_a_default_may_be_given(compile, tmp_path, option):
    """Also --reduce-amax for one rank: it makes the code that there is without the option."""
    codes = []
    for given in ([], [option]):
        done = compile(*given, "--emit=batching")
        assert done.returncode == 0, done.stderr
        codes.append((tmp_path / "m.so").read_text())
    assert codes[0] == codes[1]


@pytest.mark.parametrize("one, other, code, pattern", CONTRADICTIONS)
@pytest.mark.parametrize("swap", [False, True])
def test_what_two_options_contradict(compile, tmp_path, one, other, code, pattern, swap):
    done = compile(*((other, one) if swap else (one, other)))
    assert (done.returncode, done.stdout) == (code, "")
    assert re.search(r"^(m\.mlir:\d+:\d+|fp8-compile): (error: )?.*" + pattern, done.stderr, re.M), done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"m.mlir"}


def test_the_first_site_recipe_holds(compile):
    """Another for the same sites would be ignored; one that matches more than those before it is not."""
    done = compile("--site-recipe=h0=current", "--site-recipe=fc=mxfp8", "--site-recipe=h1=row")
    assert done.returncode == 1 and "--site-recipe=h1=row is for no site: earlier --site-recipe options match the same ones" in done.stderr
    assert compile("--site-recipe=h0=current", "--site-recipe=fc=mxfp8").returncode == 0


def test_two_results_are_carried_by_one_argument(compile, tmp_path):
    text = PROGRAM.replace("%x: tensor<8x8xbf16>", "%x: tensor<8x8xbf16> {tf.aliasing_output = 0 : i32}", 1)
    (tmp_path / "m.mlir").write_text(text.replace("-> tensor<8x8xbf16> {", "-> (tensor<8x8xbf16>, tensor<8x8xbf16>) {").replace(
        "return %y : tensor<8x8xbf16>", "return %y, %s : tensor<8x8xbf16>, tensor<8x8xbf16>"))
    assert compile("--carry=0:0").returncode == 0
    done = compile("--carry=0:1")
    assert done.returncode == 1 and "--carry=0:1: the argument carries result 0 already" in done.stderr


@pytest.mark.parametrize("option, code, pattern", UNUSED)
def test_a_pattern_that_matches_nothing(compile, option, code, pattern):
    done = compile(option, "--report=text")
    assert done.returncode == code
    assert re.search(pattern, done.stderr) and done.stderr.count("\n") == 1
    if code == 0:
        assert f"\n  no site matches {option}\n" in done.stdout


# Options that no product fits, with the words of the report for them.
PARTS = [
    (["--keep=h7"], [("keep", None, "no site matches --keep=h7")]),
    (["--sites=h7", "--require=h8"], [("sites", None, "no site matches --sites=h7"), ("require", None, "no site matches --require=h8")]),
    (["--site-recipe=h0=none", "--site-recipe=h7=row", "--site-recipe=h0/=row"],
     [("site-recipe", 1, "no site matches --site-recipe=h7"),
      ("site-recipe", 2, "--site-recipe=h0/=row is for no site: earlier --site-recipe options match the same ones")]),
    (["--sites=h7", "--fp8-parameters", "--stochastic-rounding"],
     [("sites", None, "no site matches --sites=h7"),
      ("stochastic-rounding", None, "--stochastic-rounding=true: no gradient becomes FP8, so that nothing is rounded stochastically"),
      ("fp8-parameters", None, "--fp8-parameters keeps no weight in FP8, because no matmul of a weight becomes FP8")]),
    (["--keep=head"], []),
]


@pytest.mark.parametrize("options, unused", PARTS)
def test_options_that_no_product_of_a_part_fits(compile, options, unused):
    """--unused-options=report is for programs that are parts of a model: an option may fit a product of another one."""
    done = compile(*options, "--unused-options=report", "--report=json")
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert [(u["option"], u["place"], u["message"]) for u in report["unused_options"]] == unused
    if "--sites=h7" in options:
        assert {s["reason"] for s in report["sites"]} == {"does not match --sites=h7"}
    shown = compile(*options, "--unused-options=report", "--report=text").stdout
    assert all(f"\n  {message}\n" in shown for _, _, message in unused)


def test_layers_that_no_product_of_a_part_has(compile, tmp_path):
    (tmp_path / "m.mlir").write_text(PROGRAM.replace("h0", "a").replace("h1", "b"))
    done = compile("--last=1", "--unused-options=report", "--report=json")
    assert (done.returncode, done.stderr) == (0, "")
    assert [u["option"] for u in json.loads(done.stdout)["unused_options"]] == ["last"]
    assert compile("--last=1").returncode == 1


def test_lines_about_traffic_wrap(compile, tmp_path):
    names = ["a" * 60, "b" * 60]
    (tmp_path / "m.mlir").write_text("".join(PROGRAM.replace("@main", f"@{name}") for name in names))
    lines = compile("--report=text").stdout.splitlines()
    for name in names:
        at = lines.index(next(line for line in lines if line.startswith(f"memory traffic of a step of {name}:")))
        assert all(len(line) <= 120 for line in lines[at : at + 2])
        assert re.search(r"written \(before fusion: .* written\)", " ".join(" ".join(lines[at : at + 2]).split()))
