# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A step in bf16 (or f16) as exporters write it, bit for bit, with and without FP8.

In the input, products accumulate in the narrow type, and weights are first narrowed from f32. In
the compiled code sums are in f32 and rounded once, casts to FP8 read the narrowed weight (not the
f32 one), and every rounding of elementwise operations is kept, also in the backward pass.
"""
import numpy as np
import pytest

import reference
from harness import BF16, E4M3, E5M2, F16, F32, MLIR_NAMES, Program, assert_same_bits, load, random_generator

pytestmark = pytest.mark.slow  # compiles programs of many kernels

# y = x·wᵀ + b, d = y - t; the weight is [out, in], as PyTorch has it, transposed by an operation.
STEP = """
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#row = affine_map<(m, n) -> (n)>
#all = affine_map<(m, n) -> (m, n)>
func.func @main(%w: tensor<9x135xf32> {tf.aliasing_output = 0 : i32} loc("w"), %b: tensor<9xTYPE> loc("b"),
                %x: tensor<133x135xTYPE> loc("x"), %t: tensor<133x9xTYPE> loc("t"))
    -> (tensor<9x135xf32>, tensor<133x9xTYPE>, tensor<133x135xTYPE>) {
  %zero = arith.constant 0.0 : TYPE
  %narrow = arith.truncf %w : tensor<9x135xf32> to tensor<9x135xTYPE>
  %e0 = tensor.empty() : tensor<135x9xTYPE>
  %wt = linalg.transpose ins(%narrow : tensor<9x135xTYPE>) outs(%e0 : tensor<135x9xTYPE>) permutation = [1, 0]
  %e1 = tensor.empty() : tensor<133x9xTYPE>
  %f1 = linalg.fill ins(%zero : TYPE) outs(%e1 : tensor<133x9xTYPE>) -> tensor<133x9xTYPE>
  %product = linalg.matmul ins(%x, %wt : tensor<133x135xTYPE>, tensor<135x9xTYPE>) outs(%f1 : tensor<133x9xTYPE>)
      -> tensor<133x9xTYPE> loc("jvp(fc)/dot_general")
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%product, %b : tensor<133x9xTYPE>, tensor<9xTYPE>) outs(%e1 : tensor<133x9xTYPE>) {
    ^bb0(%p: TYPE, %q: TYPE, %r: TYPE):
      %s = arith.addf %p, %q : TYPE
      linalg.yield %s : TYPE
  } -> tensor<133x9xTYPE>
  %d = arith.subf %y, %t : tensor<133x9xTYPE>
  %e2 = tensor.empty() : tensor<9x135xTYPE>
  %f2 = linalg.fill ins(%zero : TYPE) outs(%e2 : tensor<9x135xTYPE>) -> tensor<9x135xTYPE>
  %g = linalg.generic {indexing_maps = [#km, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%d, %x : tensor<133x9xTYPE>, tensor<133x135xTYPE>) outs(%f2 : tensor<9x135xTYPE>) {
    ^bb0(%p: TYPE, %q: TYPE, %r: TYPE):
      %m = arith.mulf %p, %q : TYPE
      %s = arith.addf %r, %m : TYPE
      linalg.yield %s : TYPE
  } -> tensor<9x135xTYPE> loc("transpose(jvp(fc))/dot_general")
  %e3 = tensor.empty() : tensor<133x135xTYPE>
  %f3 = linalg.fill ins(%zero : TYPE) outs(%e3 : tensor<133x135xTYPE>) -> tensor<133x135xTYPE>
  %dx = linalg.matmul ins(%d, %narrow : tensor<133x9xTYPE>, tensor<9x135xTYPE>) outs(%f3 : tensor<133x135xTYPE>)
      -> tensor<133x135xTYPE> loc("transpose(jvp(fc))/dot_general")
  %wide = arith.extf %g : tensor<9x135xTYPE> to tensor<9x135xf32>
  %rate = arith.constant dense<0.01> : tensor<9x135xf32>
  %u = arith.mulf %wide, %rate : tensor<9x135xf32>
  %n = arith.subf %w, %u : tensor<9x135xf32>
  return %n, %y, %dx : tensor<9x135xf32>, tensor<133x9xTYPE>, tensor<133x135xTYPE>
}
"""


def evaluate(dtype, w, b, x, t, product):
    """(new w, y, dx); product(a, b, kinds, split) is the f32 value of a [M, K] · b [N, K]."""
    rounded = lambda value: value.astype(dtype)
    narrow = rounded(w)
    y = rounded(rounded(product(x, narrow, ("input", "weight"), False)).astype(F32) + b.astype(F32))
    d = rounded(y.astype(F32) - t.astype(F32))
    g = rounded(product(d.T, x.T, ("grad_output", "input"), True))
    dx = rounded(product(d, narrow.T, ("grad_output", "weight"), True))
    return w - g.astype(F32) * np.float32(0.01), y, dx


def high_product(a, b, kinds, split):
    return reference.dot(a, b)


class Recipe:
    """Products on casts; `scales` maps kinds to scales, or is None for current scaling."""

    def __init__(self, scales=None):
        self.scales, self.amaxes = scales, {}

    def product(self, a, b, kinds, split):
        casts = [self.cast(value, kind) for value, kind in zip((a, b), kinds)]
        (qa, ia), (qb, ib) = casts
        return reference.scaled_matmul(qa, qb, ia, ib, split)

    def cast(self, value, kind):
        fmt = E5M2 if kind == "grad_output" else E4M3
        self.amaxes[kind] = reference.amax(value)
        scale = self.scales[kind] if self.scales else reference.current_scale(self.amaxes[kind], fmt)
        return reference.cast(value, scale, fmt), reference.scale_inv(scale)


@pytest.fixture(scope="module")
def make(bin_dir, tmp_path_factory):
    def compile(dtype, *options):
        text = STEP.replace("TYPE", MLIR_NAMES[dtype])
        return Program(bin_dir, tmp_path_factory.mktemp("bf16"), text, *options)

    return compile


def tensors(dtype):
    rng = random_generator(50)
    w, b, x, t = (rng.standard_normal(shape) for shape in ([9, 135], [9], [133, 135], [133, 9]))
    return {"w": (w / 8).astype(F32), "b": b.astype(dtype), "x": x.astype(dtype), "t": t.astype(dtype)}


def check(program, inputs, expected):
    for actual, wanted in zip(program.call("main", *inputs.values()), expected):
        assert_same_bits(actual, wanted)


@pytest.mark.parametrize("dtype", [BF16, F16], ids=MLIR_NAMES.get)
def test_high_precision(make, dtype):
    inputs = tensors(dtype)
    expected = evaluate(dtype, **inputs, product=high_product)
    check(make(dtype, "--recipe=none"), inputs, expected)
    # A site that is kept is the same product.
    check(make(dtype, "--recipe=current", "--keep=fc"), inputs, expected)


@pytest.mark.parametrize("dtype", [BF16, F16], ids=MLIR_NAMES.get)
def test_current_scaling(make, dtype):
    inputs = tensors(dtype)
    check(make(dtype, "--recipe=current"), inputs, evaluate(dtype, **inputs, product=Recipe().product))


@pytest.mark.parametrize("dtype", [BF16, F16], ids=MLIR_NAMES.get)
def test_delayed_scaling(make, dtype):
    program, inputs = make(dtype, "--amax-history-len=2"), tensors(dtype)
    columns = program.manifest["state"]["columns"]
    kinds = [c["tensor"] for c in columns]
    assert sorted(kinds) == ["grad_output", "input", "weight"]
    formats = [E5M2 if kind == "grad_output" else E4M3 for kind in kinds]
    scale, history = np.ones(3, F32), np.zeros((2, 3), F32)
    carried = dict(inputs)
    for steps in (1, 2, 3):
        recipe = Recipe(dict(zip(kinds, scale)))
        expected = evaluate(dtype, **carried, product=recipe.product)
        amaxes = [recipe.amaxes[kind] for kind in kinds]
        scale, history = reference.update(scale, history, [0, 1, 2], amaxes, formats)
        carried["w"] = expected[0]
        outputs, state = program.folder / "outputs", program.folder / "state"
        program.run("main", inputs, f"--steps={steps}", f"--outputs={outputs}", f"--save-state={state}")
        results = load(outputs)
        for index, wanted in enumerate(expected):
            assert_same_bits(results[str(index)], wanted)
        assert_same_bits(load(state)["scale"], scale)
        assert_same_bits(load(state)["amax_history"], history)
