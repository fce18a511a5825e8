# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Requests to fp8-compile about a good program: targets, recipes, sites, carried results."""

import json
import re

import pytest


def test_an_output_of_another_target(box):
    pattern = r"--emit=ptx belongs to --target=sm_100a, sm_120a, sm_89, sm_90a, not to --target=cpu; drop one of the two"
    box.fails(2, pattern, "good.mlir", "-o", "out.so", "--emit=ptx")
    box.fails(2, r"--emit=gif is none of lib, obj, llvm, ", "good.mlir", "-o", "out.so", "--emit=gif")


@pytest.mark.parametrize("recipe", ["mxfp8", "#fp8.mx_scaling<format = hybrid>"])
@pytest.mark.parametrize("chip", ["sm_89", "sm_90a"])
def test_recipes_without_tensor_cores(box, recipe, chip):
    pattern = rf"^good\.mlir:5:8: error: site 'w': mxfp8 scales have no kernel on {chip}, which has no MX tensor cores; use --recipe=block"
    box.fails(1, pattern, "good.mlir", "-o", "out.so", f"--recipe={recipe}", f"--target={chip}")
    box.ok("good.mlir", "-o", "-", "--emit=recipe", f"--recipe={recipe}")


@pytest.mark.parametrize("recipe", ["block", "row", "mxfp8", "#fp8.block_scaling<block = 64>"])
def test_recipes_with_scales_per_row_or_block(box, recipe):
    box.ok("good.mlir", "-o", "out.so", f"--recipe={recipe}")


def test_remarks(box):
    """Operations that stay generic code on a GPU, and the reason."""
    options = ["--recipe=#fp8.block_scaling<block = 100>", "--target=sm_89", "--ptxas=none"]
    done = box.compile("good.mlir", "-o", "out.so", *options, "--remarks")
    reason = "kernels have an f32 scale for each multiple of 32 elements along K"
    assert re.search(rf"^good\.mlir:5:8: remark: .*'fp8\.scaled_matmul' stays generic code on the GPU: {reason}", done.stderr, re.M), done.stderr
    box.ok("good.mlir", "-o", "out.so", *options)


def test_user_functions_for_scales(box):
    """The error of a wrong function is at the function, of a missing one at the program."""
    recipe = "--recipe=#fp8.custom<base = #fp8.delayed_scaling, scale = @f>"
    missing = "the recipe's scale = @f names no function with a body in this module"
    box.fails(1, r"^good\.mlir:1:1: error: " + missing, "good.mlir", "-o", "out.so", recipe)
    box.rejects("func.func private @f(f32, f32, f32) -> f32\n" + box.good, "1:1", missing, recipe)
    two = box.good + "func.func @f(%a: f32, %b: f32) -> f32 {\n  return %a : f32\n}\n"
    box.rejects(two, "8:1", "must be .amax: f32, fp8_max: f32, old: f32. -> f32", recipe)
    printing = box.good + "func.func @f(%a: f32, %b: f32, %c: f32) -> f32 {\n  vector.print %a : f32\n  return %a : f32\n}\n"
    box.rejects(printing, "9:3", "'vector.print' may have effects", recipe, "--calibrate")
    branches = box.good + "func.func @f(%a: f32, %b: f32, %c: f32) -> f32 {\n  cf.br ^b\n^b:\n  return %a : f32\n}\n"
    box.write("branches.mlir", branches)  # become structured control flow at ingest
    box.ok("branches.mlir", "-o", "out.so", recipe, "--calibrate")
    recipe = "--recipe=#fp8.custom<base = #fp8.delayed_scaling, amax = @f>"
    other = box.good + "func.func @f(%a: tensor<4xf32>) -> f32 {\n  %z = arith.constant 0.0 : f32\n  return %z : f32\n}\n"
    box.rejects(other, "8:1", r"must be .column: tensor<\?xf32>. -> f32", recipe)


def test_roles_in_a_type_the_program_does_not_have(box):
    pattern = r"^good\.mlir:5:8: error: site 'w': --fprop=%s keeps matmuls as they are, and the program has this one in f32; say --fprop=f32"
    box.fails(1, pattern % "f64", "good.mlir", "-o", "out.so", "--fprop=f64")
    # Wider than asked for is no error, and said.
    box.ok("good.mlir", "-o", "out.so", "--fprop=bf16", "--report=json:r")
    (site,) = json.loads(box.files()["r"])["sites"]
    assert site["reason"] == "--fprop=bf16; the program has it in f32, where it stays"
    # A site that is kept for another reason is not asked.
    box.ok("good.mlir", "-o", "out.so", "--fprop=f64", "--keep=w")
    narrow = box.good.replace("f32", "bf16")
    box.rejects(narrow, "5:8", "--fprop=f32 keeps matmuls as they are, and the program has this one in bf16; say --fprop=bf16", "--fprop=f32")
    box.rejects(narrow, "5:8", "required to be FP8 .--require=all. but stays in high precision: --fprop=bf16", "--fprop=bf16", "--require=all")


def test_required_sites(box):
    box.ok("good.mlir", "-o", "out.so", "--require=all")
    pattern = r"^good\.mlir:5:8: error: site 'w' is required to be FP8 .* stays in high precision: "
    before = ["good.mlir", "-o", "again.so"]
    box.fails(1, pattern + "--recipe=none", *before, "--require=all", "--recipe=none")
    box.fails(1, pattern + "matches --keep=w", *before, "--require=^w", "--keep=w")
    # A pattern that matches nothing is an error; with --keep, which models share, only a warning.
    nothing = r"^good\.mlir:1:1: error: no site matches --%s=other; the report lists the sites"
    box.fails(1, nothing % "require", *before, "--require=other", "--keep=w")
    box.fails(1, nothing % "sites", *before, "--sites=other")
    done = box.compile(*before, "--require=w", "--keep=other", "--sites=w")
    assert done.returncode == 0 and "warning: no site matches --keep=other" in done.stderr


def test_report_lists_what_was_in_fp8_already(box):
    box.ok("good.mlir", "-o", "again.mlir", "--emit=recipe", "--recipe=current", "--report=json:first")
    box.ok("again.mlir", "-o", "again.so", "--require=w", "--report=json:second")
    (first,), (second,) = (json.loads(box.files()[name])["sites"] for name in ("first", "second"))
    same = ("entry", "site", "role", "m", "n", "k", "decision", "formats")
    assert first["decision"] == "fp8" and [first[key] for key in same] == [second[key] for key in same]
    # Only the second has become code.
    assert (first["code"], second["code"]) == (None, "packed f32 products of decoded FP8 (CPU)")


def test_products_without_names_are_no_layers(box):
    again = box.good.replace("%y =", "%z =").replace("  return", box.good.split("\n")[4] + "\n  return")
    assert again.count("linalg.matmul") == 2
    box.write("two.mlir", again)
    for number in (1, 2**63 - 1):
        box.fails(1, r"^two\.mlir:.*--first and --last need layers", "two.mlir", "-o", "out.so", f"--first={number}")


def test_carry_option(box):
    before = ["good.mlir", "-o", "out.so"]
    box.fails(1, r"^good\.mlir:1:1: error: --carry=x:0: .* differ in type", *before, "--carry=x:0")
    box.fails(1, r"^good\.mlir:1:1: error: --carry=9:0: no public function", *before, "--carry=9:0")
    box.fails(1, r"^good\.mlir:1:1: error: --carry=none:0: no public function", *before, "--carry=none:0")
    box.fails(1, r"^good\.mlir:1:1: error: --carry=x:7: no public function", *before, "--carry=x:7")


def test_carry_takes_the_names_of_the_manifest(box):
    """One rule: the outermost name of the location, also in a fused one; else arg and the index."""
    for location, name in (("", "arg0"), (' loc("w")', "w"), (' loc(fused["w"("inner"), "other"])', "w")):
        box.write("p.mlir", f"func.func @main(%a: tensor<4xf32>{location}) -> tensor<4xf32> {{ return %a : tensor<4xf32> }}")
        box.ok("p.mlir", "-o", "out.so", f"--carry={name}:0", "--manifest=m")
        (argument,) = json.loads(box.files()["m"])["entries"][0]["arguments"]
        assert (argument["name"], argument["carry"]) == (name, 0)
