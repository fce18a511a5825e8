# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A user's own functions for amax and scale, by value."""
import re
import subprocess

import numpy as np
import pytest

import reference
from harness import E4M3, F32, Program, assert_same_bits, load, save
from net import Current, Delayed, initial_tensors, train
from recipe_steps import COLUMNS, ROWS, check_steps, check_updates, f32, make, text, update_entry  # noqa: F401 (fixtures)

FUNCTIONS = """
// As often with user code: it calls a helper, which ingest inlines.
func.func private @half(%x: f32) -> f32 {
  %half = arith.constant 0.5 : f32
  %y = arith.mulf %x, %half : f32
  return %y : f32
}
func.func private @careful(%amax: f32, %max: f32, %old: f32) -> f32 {
  %one = arith.constant 1.0 : f32
  %larger = arith.maximumf %amax, %one : f32
  %quotient = arith.divf %max, %larger : f32
  %sum = arith.addf %quotient, %old : f32
  %mean = call @half(%sum) : (f32) -> f32
  return %mean : f32
}
func.func private @average(%column: tensor<?xf32>) -> f32 {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %none = arith.constant 0.0 : f32
  %rows = tensor.dim %column, %zero : tensor<?xf32>
  %sum = scf.for %i = %zero to %rows step %one iter_args(%s = %none) -> f32 {
    %x = tensor.extract %column[%i] : tensor<?xf32>
    %t = arith.addf %s, %x : f32
    scf.yield %t : f32
  }
  %count = arith.index_cast %rows : index to i32
  %divisor = arith.sitofp %count : i32 to f32
  %mean = arith.divf %sum, %divisor : f32
  return %mean : f32
}
// Tensors of its own: squares, their largest, and the root of it.
func.func private @largest(%column: tensor<?xf32>) -> f32 {
  %zero = arith.constant 0 : index
  %none = arith.constant 0.0 : f32
  %rows = tensor.dim %column, %zero : tensor<?xf32>
  %e = tensor.empty(%rows) : tensor<?xf32>
  %squares = linalg.square ins(%column : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %i = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%none : f32) outs(%i : tensor<f32>) -> tensor<f32>
  %max = linalg.reduce { arith.maximumf } ins(%squares : tensor<?xf32>) outs(%f : tensor<f32>) dimensions = [0]
  %x = tensor.extract %max[] : tensor<f32>
  %root = math.sqrt %x : f32
  return %root : f32
}
"""


def careful(amax, fp8_max, old):
    larger = amax if np.isnan(amax) else max(amax, f32(1))
    return (fp8_max / larger + old) * f32(0.5)


def average(column):
    total = f32(0)
    for x in column:
        total = total + x
    return total / f32(len(column))


def largest(column):
    return np.sqrt(np.max(column * column))


CUSTOM = {
    "scale": ("scale = @careful", dict(scale_function=careful)),
    "amax": ("amax = @average", dict(amax_function=average)),
    "both": ("scale = @careful, amax = @largest", dict(scale_function=careful, amax_function=largest)),
}


def test_functions_by_value(bin_dir, tmp_path):
    base = f"#fp8.delayed_scaling<amax_history_len = {ROWS}>"
    text = FUNCTIONS + "".join(update_entry(n, f"#fp8.custom<base = {base}, {p}>") for n, (p, _) in CUSTOM.items())
    ignoring = base.replace(">", ", ignore_non_finite = true>")
    text += update_entry("ignoring", f"#fp8.custom<base = {ignoring}, amax = @average>")
    text = text.replace("private @average", "@average")
    program = Program(bin_dir, tmp_path, text, "--recipe=none")
    for name, (_, options) in CUSTOM.items():
        check_updates(program, name, **options)
    check_updates(program, "ignoring", amax_function=average, ignore_non_finite=True)
    # A function that a recipe names is no entry of the program.
    assert {e["name"] for e in program.manifest["entries"]} == {*CUSTOM, "ignoring"}


def test_a_function_that_reads_outside_of_its_column(bin_dir, tmp_path):
    """Checks of a program hold in its functions: the call fails and names the place."""
    text = """
func.func private @ninth(%column: tensor<?xf32>) -> f32 {
  %nine = arith.constant 9 : index
  %amax = tensor.extract %column[%nine] : tensor<?xf32>
  return %amax : f32
}""" + update_entry("main", f"#fp8.custom<base = #fp8.delayed_scaling<amax_history_len = {ROWS}>, amax = @ninth>")
    program = Program(bin_dir, tmp_path, text, "--recipe=none")
    values = [np.ones(6, F32), np.ones([ROWS, 6], F32), np.ones(len(COLUMNS), F32)]
    save(tmp_path / "in", {str(i): value for i, value in enumerate(values)})
    done = subprocess.run([bin_dir / "fp8-run", program.library, f"--inputs={tmp_path / 'in'}"], capture_output=True, text=True)
    assert done.returncode == 1 and re.search(r"an index is outside of dimension 0 of argument 0 .* \(.*:4:11\)", done.stderr)


@pytest.mark.parametrize("name", ["both", *(pytest.param(name, marks=pytest.mark.slow) for name in ("scale", "amax"))])
def test_steps_with_functions(make, name):
    parameters, options = CUSTOM[name]
    program = make(f"--recipe=#fp8.custom<base = #fp8.delayed_scaling<amax_history_len = 3>, {parameters}>", functions=FUNCTIONS)
    assert {e["name"] for e in program.manifest["entries"]} == {"main", "evaluate"}
    assert {s["recipe"] for s in program.manifest["sites"]} == {"custom delayed"}
    check_steps(program, Delayed(program, rows=3, **options))


@pytest.mark.slow
def test_current_scaling_with_a_function(make, tmp_path):
    program = make("--recipe=#fp8.custom<base = #fp8.current_scaling, scale = @careful>", functions=FUNCTIONS)

    class Careful(Current):
        def scale_of(self, value, key, fmt):
            return careful(reference.amax(value), reference.FP8_MAX[fmt], f32(1))

    assert {s["recipe"] for s in program.manifest["sites"]} == {"custom current"}
    check_steps(program, Careful(), steps=2)


@pytest.mark.slow
def test_functions_and_formats_of_roles(make):
    """One history: the recipes differ in format only."""
    base = "#fp8.delayed_scaling<amax_history_len = 3, init = current>"
    dgrad = base.replace("<", "<format = e4m3, ")
    program = make(f"--recipe=#fp8.custom<base = {base}, dgrad = {dgrad}, scale = @careful>", functions=FUNCTIONS)

    class Careful(Delayed):
        def scale_of(self, value, key, fmt):
            empty = (self.history[:, self.index[(*key, fmt)]] == 0).all()
            scale = super().scale_of(value, key, fmt)
            return careful(reference.amax(value), reference.FP8_MAX[fmt], f32(1)) if empty else scale

    check_steps(program, Careful(program, rows=3, roles={"dgrad": {"grad_output": E4M3}}, scale_function=careful))


@pytest.mark.slow
def test_products_in_functions_are_not_for_fp8(bin_dir, tmp_path, text):
    function = """
func.func @norm(%column: tensor<?xf32>) -> f32 {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %d = linalg.dot ins(%column, %column : tensor<?xf32>, tensor<?xf32>) outs(%f : tensor<f32>) -> tensor<f32>
  %x = tensor.extract %d[] : tensor<f32>
  return %x : f32
}
"""
    recipe = "--recipe=#fp8.custom<base = #fp8.delayed_scaling<amax_history_len = 3>, amax = @norm>"
    program = Program(bin_dir, tmp_path, text + function, recipe, "--sites=all", "--require=all")
    (site,) = [s for s in program.manifest["sites"] if s["entry"] == "norm"]
    assert (site["decision"], site["reason"]) == ("high", "in a function that the recipe names")
    # Three products in one order or another, fused or not: the last bits of the sums differ.
    recipe, tensors = Delayed(program, rows=3, amax_function=lambda column: np.sum(column * column)), initial_tensors()
    train(recipe, *tensors.values())
    program.run("main", tensors, f"--save-state={tmp_path / 'state'}")
    np.testing.assert_allclose(load(tmp_path / "state")["scale"], recipe.scale, rtol=1e-6)
    assert_same_bits(load(tmp_path / "state")["amax_history"], recipe.history)
