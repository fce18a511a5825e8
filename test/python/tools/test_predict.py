# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# fp8-bench predict, and the part of the report that it prints; the model's prediction of a GPT's steps beside what an
# H100 took for them. Its products and casts are in test/Unit/KernelTimeTest.cpp.

import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path += [str(ROOT / "tools/fp8-bench"), str(ROOT / "python/examples/gpt")]

import attention_kernels  # noqa: E402
import predict  # noqa: E402
import product_speed  # noqa: E402
from failure import Failure  # noqa: E402

# Multiply-adds of bf16 and bytes a second, by the data sheets (lib/Dialect/FP8/IR/Chips.cpp).
CHIPS = {"sm_89": (512 * 142 * 2.505e9, 960e9), "sm_90a": (2048 * 132 * 1.83e9, 3350e9),
         "sm_100a": (4096 * 148 * 1.85e9, 8000e9), "sm_120a": (256 * 170 * 2.407e9, 1792e9)}
TERMS = {"memory", "l2", "tensor", "issue", "latency"}

# Milliseconds of a step on an H100 (lib/Conversion/FP8ToGPU/FIGURES.md), of attention that is written out.
STEPS = {"none": 49.3, "delayed": 39.2, "current": 40.6, "block": 46.5}
WIDE = {"LAYERS": 4, "HEADS": 16, "WIDTH": 2048, "HIDDEN": 8192, "SEQUENCE": 1024, "BATCH": 8}
LOOPS = {"elementwise", "reductions", "copies", "other"}  # kinds of code without a kernel of its own

LOOP = """
func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %y = scf.for %i = %c0 to %c5 step %c1 iter_args(%a = %x) -> tensor<64x64xf32> {
    %e = tensor.empty() : tensor<64x64xf32>
    %b = linalg.exp ins(%a : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
    scf.yield %b : tensor<64x64xf32>
  }
  return %y : tensor<64x64xf32>
}
"""
DYNAMIC = """
func.func @step(%x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %y = linalg.exp ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %y : tensor<?xf32>
}
"""


@pytest.fixture
def bench(run, tmp_path):
    """bench(program, "--option", …): fp8-bench predict of the text of a program."""

    def call(program, *options):
        (tmp_path / "p.mlir").write_text(program)
        return run("fp8-bench", "predict", tmp_path / "p.mlir", "--recipe=none", *options)

    return call


@pytest.fixture
def steps(bin_dir, tmp_path):
    """steps(program, chip): the predicted steps in the compiler's report."""

    def call(program, chip):
        (tmp_path / "s.mlir").write_text(program)
        return predict.compile_steps(bin_dir, tmp_path / "s.mlir", chip, "--recipe=none")

    return call


@pytest.mark.parametrize("chip", CHIPS)
def test_a_step_is_the_sum_of_its_kernels(steps, chip):
    m, n, k = 512, 256, 4096
    (step,) = steps(product_speed.PROGRAM.format(m=m, n=n, k=k, t="bf16"), chip)
    assert step["launches"] == sum(kernel["launches"] for kernel in step["kernels"]) and step["unknown_launches"] == 0
    times = 0.0
    for kernel in step["kernels"]:
        time = kernel["microseconds"]
        terms, lost = time["terms"], time["lost"]
        assert set(terms) == set(lost) == TERMS
        assert time["total"] == pytest.approx(max(terms["memory"], terms["l2"], terms["tensor"] + terms["issue"]) + terms["latency"])
        assert sum(lost.values()) == pytest.approx(time["total"] - time["floor"]) and min(lost.values()) >= 0
        times += kernel["launches"] * time["total"]
    assert step["microseconds"] == pytest.approx(times + step["gap_microseconds"])
    # The rate of the matmul and that of its tensors, of which a kernel's clocks are whole numbers.
    rate, memory = CHIPS[chip]
    floor = max(m * n * k / rate, 2 * (m * k + k * n + m * n) / memory)
    assert step["floor_microseconds"] == pytest.approx(floor * 1e6, rel=1e-3)


def test_a_launch_in_a_loop_counts_as_often_as_it_runs(steps):
    (step,) = steps(LOOP, "sm_90a")
    (exp,) = (kernel for kernel in step["kernels"] if "exp" in kernel["name"])
    assert exp["launches"] == 5 and (exp["read"], exp["written"]) == (4 * 64 * 64, 4 * 64 * 64)
    assert exp["microseconds"]["floor"] == pytest.approx(8 * 64 * 64 / 3350e9 * 1e6)


def test_attention_under_a_causal_mask_computes_the_tiles_that_see_keys(steps):
    """One head of 4,096 tokens: tiles of 128 queries or keys, which see 1 to 32 such tiles under the mask and all 32 without."""
    masks = [attention_kernels.Mask("full", None), attention_kernels.Mask("causal", 4096)]
    full, causal = ({k["name"]: k["microseconds"]["terms"] for k in steps(attention_kernels.step(4096, 128, mask), "sm_90a")[0]["kernels"]
                     if k["kind"] == "attention"} for mask in masks)
    assert set(full) == set(causal) and len(full) == 3
    for name in full:
        assert causal[name]["tensor"] / full[name]["tensor"] == pytest.approx(sum(range(1, 33)) / 32**2, rel=1e-3)
    # Two products of each score; 32 blocks leave the other multiprocessors idle; the share is that of KernelTime.h.
    (output,) = (terms for name, terms in full.items() if "grad" not in name)
    assert output["tensor"] == pytest.approx(2 * 4096**2 * 128 / 2048 / 32 / 0.821 / 1830, rel=1e-3)


def test_a_table_and_a_last_line_for_each_chip(bench):
    done = bench(product_speed.PROGRAM.format(m=4096, n=4096, k=4096, t="bf16"), "--target=sm_90a,sm_100a")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^step: \d+\.\d+ ms predicted on sm_90a$", done.stdout, re.MULTILINE)
    assert re.fullmatch(r"step: \d+\.\d+ ms predicted on sm_100a", done.stdout.splitlines()[-1])
    cells = next(line for line in done.stdout.splitlines() if line.startswith("| product_")).split("|")
    # 201 us were measured (FIGURES.md), for which the constants of the model are made.
    assert cells[1].strip().endswith(" x 1") and float(cells[2]) == pytest.approx(0.2, abs=0.01)
    assert float(cells[3]) == pytest.approx(4096**3 / CHIPS["sm_90a"][0] * 1000, abs=1e-3)


def test_unknown_sizes_are_left_out_and_said(bench):
    done = bench(DYNAMIC)
    assert done.returncode == 0, done.stderr
    assert "left out: 1 launches, whose sizes are known only when the step runs" in done.stdout


@pytest.mark.parametrize(
    "options, sentence",
    [
        (["--target=cpu"], "argument --target: 'cpu' is none of sm_89, sm_90a, sm_100a, sm_120a; see fp8-bench predict --help"),
        (["--entry=train"], "argument --entry: 'train' is none of main"),
        (["--kernels=0"], "argument --kernels: '0' is no number above 0; see fp8-bench predict --help"),
    ],
)
def test_wrong_command_line_is_one_sentence(bench, options, sentence):
    done = bench(LOOP, *options)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"fp8-bench: error: {sentence}\n")


def test_the_step_is_main_or_the_only_entry():
    steps = [{"entry": "train"}, {"entry": "evaluate"}]
    assert predict.choose(steps, "evaluate") == steps[1] and predict.choose(steps[:1], None) == steps[0]
    assert predict.choose([*steps, {"entry": "main"}], None) == {"entry": "main"}
    with pytest.raises(Failure, match="by --entry=train|evaluate"):
        predict.choose(steps, None)


@pytest.fixture(scope="module")
def wide_gpt(tmp_path_factory):
    """The example GPT of the size that was measured."""
    pytest.importorskip("jax")
    path = tmp_path_factory.mktemp("gpt") / "wide.mlir"
    sizes = "; ".join(f"parameters.{name} = {size}" for name, size in WIDE.items())
    script = f"import runpy, sys, parameters; {sizes}; sys.argv[1:] = [{str(path)!r}]; runpy.run_module('export', run_name='__main__')"
    subprocess.run([sys.executable, "-c", script], check=True, env=dict(os.environ, PYTHONPATH=str(ROOT / "python/examples/gpt")))
    return path


@pytest.mark.slow
def test_steps_of_an_h100_are_predicted_from_the_others(bin_dir, wide_gpt, capsys):
    """The one constant that comes from steps, the share of the memory's rate that loops reach, is fitted to the other three."""
    kernels, loops = {}, {}
    for recipe in STEPS:
        step = predict.choose(predict.compile_steps(bin_dir, wide_gpt, "sm_90a", f"--recipe={recipe}", "--attention=written"), None)
        loops[recipe] = sum(k["launches"] * k["microseconds"]["total"] for k in step["kernels"] if k["kind"] in LOOPS) / 1000
        kernels[recipe] = step["microseconds"] / 1000 - loops[recipe]
    # How many times as long as predicted loops took, if all else took as long as predicted.
    slower = {recipe: (STEPS[recipe] - kernels[recipe]) / loops[recipe] for recipe in STEPS}
    lines, errors = ["| step | measured ms | predicted ms | error |", "|---|---|---|---|"], []
    for recipe, measured in STEPS.items():
        predicted = kernels[recipe] + loops[recipe] * statistics.geometric_mean(v for other, v in slower.items() if other != recipe)
        errors.append(abs(predicted / measured - 1))
        lines.append(f"| {recipe} | {measured} | {predicted:.1f} | {100 * (predicted / measured - 1):+.1f} % |")
    with capsys.disabled():
        print("", *lines, sep="\n")
    assert statistics.median(errors) <= 0.15 and max(errors) <= 0.3
    # The compiler's own constant is the one that fits all four; a change of its code has to fit it again.
    assert math.isclose(statistics.geometric_mean(slower.values()), 1, abs_tol=0.05)


def test_the_report_of_a_cpu_has_no_steps(run, tmp_path):
    (tmp_path / "p.mlir").write_text(LOOP)
    done = run("fp8-compile", tmp_path / "p.mlir", "--report=json", "--emit=kernels", "-o", tmp_path / "k.mlir")
    assert done.returncode == 0 and json.loads(done.stdout)["predicted_steps"] == []
