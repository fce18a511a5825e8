# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The report and the manifest list every option with its value."""

import json
import subprocess

import pytest

from recipe_steps import text  # noqa: F401 (a fixture)

DEFAULTS = {
    "recipe": "delayed",
    "recipe_attribute": "#fp8.delayed_scaling",
    "format": "hybrid",
    "margin": 0,
    "amax_history_len": 1024,
    "amax_compute_algo": "max",
    "reduce_amax": True,
    "ignore_non_finite": False,
    "executed_mask": False,
    "init": "one",
    "accumulation": "by_role",
    "fprop": "fp8",
    "dgrad": "fp8",
    "wgrad": "fp8",
    "site_recipe": [],
    "fprop_accumulation": None,
    "dgrad_accumulation": None,
    "wgrad_accumulation": None,
    "sites": "linear",
    "fp8_parameters": False,
    "keep": None,
    "first": 0,
    "last": 0,
    "require": None,
    "fp8_attention": False,
    "attention": "fused",
    "require_attention": None,
    "measure_errors": False,
    "calibrate": False,
    "unused_options": "error",
    "stochastic_rounding": False,
    "target": "cpu",
    "mixed_precision": "off",
    "loss_scaling": None,
    "loss": None,
    "cpu": "native",
    "math": "expanded",
    "sums": "exact",
    "order": "kernel",
    "strict_accumulation": False,
    "separate_temporaries": False,
    "carry": [],
    "data_parallel": None,
    "shard": [],
    "average": [],
    "bucket_bytes": 1048576,
    "reduce_amax_axes": [],
    "pair": None,
}


def options_of(bin_dir, source, *options):
    """The options in the report, which are those in the manifest."""
    command = [bin_dir / "fp8-compile", source, "-o", source.with_suffix(".so"), *options]
    report, manifest = source.with_suffix(".json"), source.with_suffix(".manifest")
    done = subprocess.run([*command, f"--report=json:{report}", f"--manifest={manifest}"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    values = json.loads(report.read_text())["options"]
    assert values == json.loads(manifest.read_text())["options"]
    done = subprocess.run([*command, "--report=text"], capture_output=True, text=True)
    printed = " ".join(done.stdout.split("options:")[1].split())
    for name, value in values.items():
        assert f"{name}={'-' if value is None else value if isinstance(value, str) else json.dumps(value, separators=(',', ':'))}" in printed
    return values


@pytest.fixture
def source(tmp_path, text):
    (tmp_path / "net.mlir").write_text(text)
    return tmp_path / "net.mlir"


def test_every_option_is_in_report_and_manifest(bin_dir, source):
    assert options_of(bin_dir, source) == DEFAULTS
    given = ["--margin=1", "--amax-history-len=8", "--amax-compute-algo=most_recent", "--reduce-amax=false", "--format=e4m3"]
    given += ["--ignore-non-finite=true", "--executed-mask=true", "--init=current", "--dgrad=bf16", "--sites=net", "--keep=l1$", "--require=l2.*x|l2$"]
    given += ["--calibrate", "--carry=x:0"]
    expected = dict(DEFAULTS, margin=1, amax_history_len=8, amax_compute_algo="most_recent", reduce_amax=False, format="e4m3")
    expected.update(ignore_non_finite=True, executed_mask=True, init="current", wgrad="e5m2", sites="net", keep="l1$", calibrate=True)
    del expected["recipe_attribute"]
    options = [o for o in given if o[2:7] not in ("dgrad", "carry", "requi")] + ["--wgrad=e5m2"]
    values = options_of(bin_dir, source, *options)
    base = "margin = 1, amax_history_len = 8, amax_compute_algo = most_recent, reduce_amax = false, ignore_non_finite = true, executed_mask = true, init = current>"
    assert values.pop("recipe_attribute") == (f"#fp8.custom<base = #fp8.delayed_scaling<format = e4m3, {base}, wgrad = #fp8.delayed_scaling<{base}>")
    assert values == expected


def test_options_of_ranks(bin_dir, tmp_path):
    (tmp_path / "p.mlir").write_text("""
func.func @main(%a: tensor<4xf32> loc("a"), %b: tensor<4x4xf32> loc("b")) -> (tensor<4xf32>, tensor<4x4xf32>) {
  return %a, %b : tensor<4xf32>, tensor<4x4xf32>
}""")
    values = options_of(bin_dir, tmp_path / "p.mlir", "--shard=tp:a,b=1,result1=1", "--bucket-bytes=0")
    assert (values["shard"], values["bucket_bytes"]) == (["tp:a=0,b=1,result1=1"], 0)


def test_an_attribute_says_its_parameters(bin_dir, source):
    recipe = "#fp8.current_scaling<eps = 0.25, power_2_scale = true>"
    values = options_of(bin_dir, source, f"--recipe={recipe}")
    assert (values["recipe"], values["eps"], values["power_2_scale"], values["format"]) == (recipe, 0.25, True, "hybrid")
    assert "margin" not in values
    values = options_of(bin_dir, source, "--recipe=none")
    assert values["recipe_attribute"] is None and "format" not in values


def test_auto_says_what_it_became(bin_dir, source):
    values = options_of(bin_dir, source, "--recipe=auto")
    manifest = json.loads(source.with_suffix(".manifest").read_text())
    (recipe,) = {s["recipe"] for s in manifest["sites"]}
    assert (values["recipe"], manifest["recipe"]) == ("auto", recipe)
    assert values["recipe_attribute"] == f"#fp8.{dict(mxfp8='mx').get(recipe, recipe)}_scaling"


def test_auto_in_a_pipeline(run, source):
    pipeline = "builtin.module(fp8-ingest-pipeline,fp8-recipe-pipeline{recipe=auto target=TARGET})"
    done = run("fp8-opt", source, "--pass-pipeline=" + pipeline.replace("TARGET", "sm_89"))
    assert done.returncode == 0, done.stderr
    chosen = json.loads(run("fp8-compile", source, "-o", "/dev/null", "--emit=recipe", "--recipe=auto", "--target=sm_89", "--report=json").stdout)
    assert f"recipe({chosen['options']['recipe_attribute']})" in done.stdout
    done = run("fp8-opt", source, "--pass-pipeline=" + pipeline.replace("TARGET", "tpu"))
    assert done.returncode == 1 and "--target=tpu is none of cpu" in done.stderr
