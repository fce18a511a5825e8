# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers of equal shape share kernels: a deeper network has no more of them."""
import re

import pytest

TENSOR = "tensor<16x16xf32>"


def product(result, left, right):
    return (f"  %{result} = linalg.matmul ins(%{left}, %{right} : {TENSOR}, {TENSOR}) "
            f"outs(%zeros : {TENSOR}) -> {TENSOR}\n")


def transposed(result, operand):
    return (f"  %{result} = linalg.transpose ins(%{operand} : {TENSOR}) outs(%empty : {TENSOR}) "
            "permutation = [1, 0]\n")


def elementwise(result, op, left, right):
    return f"  %{result} = {op} %{left}, %{right} : {TENSOR}\n"


def normalized(result, operand):
    """Every row divided by 1 plus the sum of its squares."""
    return f"""  %{result}_sums = linalg.generic {{indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}}
      ins(%{operand} : {TENSOR}) outs(%one_per_row : tensor<16xf32>) {{
  ^bb0(%in: f32, %sum: f32):
    %square = arith.mulf %in, %in : f32
    %more = arith.addf %sum, %square : f32
    linalg.yield %more : f32
  }} -> tensor<16xf32>
  %{result} = linalg.generic {{indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}}
      ins(%{operand}, %{result}_sums : {TENSOR}, tensor<16xf32>) outs(%empty : {TENSOR}) {{
  ^bb0(%in: f32, %sum: f32, %out: f32):
    %quotient = arith.divf %in, %sum : f32
    linalg.yield %quotient : f32
  }} -> {TENSOR}
"""


def training_step(layers):
    """The step of a network of `layers` residual blocks: a norm of the rows, then a product. Results stand for the
    gradients of the weights, without those of the norms."""
    code = ""
    for i in range(layers):
        code += normalized(f"n{i}", f"h{i}") + product(f"p{i}", f"n{i}", f"w{i}")
        code += elementwise(f"h{i + 1}", "arith.addf", f"h{i}", f"p{i}")
    code += elementwise(f"g{layers}", "arith.subf", f"h{layers}", "target")
    for i in reversed(range(layers)):
        code += transposed(f"x{i}", f"n{i}") + product(f"r{i}", f"x{i}", f"g{i + 1}")
        code += transposed(f"v{i}", f"w{i}") + product(f"d{i}", f"g{i + 1}", f"v{i}")
        code += elementwise(f"g{i}", "arith.addf", f"g{i + 1}", f"d{i}")
    arguments = "".join(f', %w{i}: {TENSOR} loc("layer{i}/w")' for i in range(layers))
    results = ", ".join([TENSOR] * layers)
    return f"""#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @main(%h0: {TENSOR}, %target: {TENSOR}{arguments}) -> ({results}) {{
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %row = tensor.empty() : tensor<16xf32>
  %one_per_row = linalg.fill ins(%one : f32) outs(%row : tensor<16xf32>) -> tensor<16xf32>
  %empty = tensor.empty() : {TENSOR}
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : {TENSOR}) -> {TENSOR}
{code}  return {", ".join(f"%r{i}" for i in range(layers))} : {results}
}}
"""


def count_kernels(run, tmp_path, layers, recipe):
    source, kernels = tmp_path / "step.mlir", tmp_path / "kernels.mlir"
    source.write_text(training_step(layers))
    done = run("fp8-compile", str(source), "-o", str(kernels), "--emit=kernels", f"--recipe={recipe}")
    assert (done.returncode, done.stderr) == (0, "")
    outlined = run("fp8-opt", str(kernels), "--fp8-outline-kernels")
    assert outlined.returncode == 0, outlined.stderr
    return len(re.findall(r"func.func private @kernel_", outlined.stdout))


@pytest.mark.parametrize("recipe", ["delayed", "current"])
def test_a_deeper_network_has_no_more_kernels(run, tmp_path, recipe):
    few, many = (count_kernels(run, tmp_path, layers, recipe) for layers in (4, 9))
    assert few == many > 0
