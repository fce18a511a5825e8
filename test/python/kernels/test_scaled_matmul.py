# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products by value: fp8.scaled_matmul and fp8.matmul through compiled code.

Sums are compared bit for bit with a numpy sum in f32 that runs along K in order (`fast`), or
over blocks of 128 that are added in order (`split`). Sizes are odd on purpose.
"""
from dataclasses import dataclass

import numpy as np
import pytest

import reference
from harness import BF16, E4M3, E5M2, F16, F32, MLIR_NAMES, Program, assert_same_bits, random_generator, tensor_type


@dataclass
class Product:
    """`spec` as in einsum, dimensions in iteration order in `dims`, sizes by letter."""

    name: str
    sizes: dict
    spec: str = "mk,kn->mn"
    dims: str = "mnk"
    formats: tuple = (E4M3, E4M3)
    out: np.dtype = F32
    split: bool = False
    accumulate: bool = False
    special: bool = False  # Inf and NaN among the operands

    @property
    def letters(self):
        operands, result = self.spec.split("->")
        return [*operands.split(","), result]

    def shape(self, i):
        return [self.sizes[d] for d in self.letters[i]]

    def maps(self):
        return ", ".join(f"affine_map<({', '.join(self.dims)}) -> ({', '.join(word)})>" for word in self.letters)

    def entry(self):
        a, b = (tensor_type(self.shape(i), self.formats[i]) for i in (0, 1))
        c, accumulate = tensor_type(self.shape(2), self.out), "accumulate" if self.accumulate else ""
        is_fp8 = self.formats[0].itemsize == 1
        op = f"fp8.scaled_matmul {'split' if self.split else 'fast'}" if is_fp8 else "fp8.matmul"
        scales = "scales(%sa, %sb : tensor<f32>, tensor<f32>)" if is_fp8 else ""
        return f"""
func.func @{self.name}(%a: {a}, %b: {b}, %sa: tensor<f32>, %sb: tensor<f32>, %c: {c}) -> {c} {{
  %e = tensor.empty() : {c}
  %r = {op} {accumulate} ins(%a, %b : {a}, {b}) {scales}
      outs({"%c" if self.accumulate else "%e"} : {c}) {{indexing_maps = [{self.maps()}]}} -> {c}
  return %r : {c}
}}"""

    def reference(self, a, b, sa, sb, c):
        sums = reference.contract(self.spec, self.dims, a, b, self.split)
        value = (sa * sb) * sums if self.formats[0].itemsize == 1 else sums
        return (value + c.astype(F32) if self.accumulate else value).astype(self.out)


def build_products():
    sizes = lambda m, n, k: {"m": m, "n": n, "k": k}
    products = []
    for k in (0, 1, 2, 127, 128, 129, 256, 300):
        for split in (False, True):
            products.append(Product(f"k{k}_{'split' if split else 'fast'}", sizes(5, 7, k), split=split))
    for m, n, k in [(0, 4, 8), (4, 0, 8), (1, 1, 17), (1, 65, 33), (67, 1, 130), (67, 129, 131)]:
        products.append(Product(f"size_{m}_{n}_{k}", sizes(m, n, k), split=k > 128))
    for name, spec in {"tn": "km,kn->mn", "nt": "mk,nk->mn", "tt": "km,nk->mn", "result": "mk,kn->nm"}.items():
        products.append(Product(f"form_{name}", sizes(9, 35, 150), spec=spec, split=name == "tt"))
    for left in (E4M3, E5M2):
        for right in (E4M3, E5M2):
            formats = (left, right)
            name = f"mix_{MLIR_NAMES[left]}_{MLIR_NAMES[right]}"
            products.append(Product(name, sizes(6, 11, 140), formats=formats, split=left == right))
            products.append(Product(f"{name}_special", sizes(40, 30, 6), formats=formats, special=True))
    for out in (F32, BF16, F16):
        for accumulate in (False, True):
            name = f"out_{MLIR_NAMES[out]}{'_added' if accumulate else ''}"
            products.append(Product(name, sizes(6, 10, 133), out=out, accumulate=accumulate, split=accumulate))
    for split in (False, True):  # K is packed in segments; the epilogue, which adds, runs once
        name = f"segments_{'split' if split else 'fast'}"
        products.append(Product(name, sizes(9, 35, 2200), split=split, out=BF16, accumulate=True))
    more = {"b": 3, "c": 2, "m": 4, "p": 3, "n": 5, "q": 2, "k": 13, "l": 11}
    products += [
        Product("batch", more, spec="bmk,bkn->bmn", dims="bmnk"),
        Product("batches", more, spec="bmck,ckbn->bcmn", dims="bcmnk"),
        Product("batch_inside", more, spec="mbk,nkb->mnb", dims="mnbk", split=True),
        Product("several_m_n", more, spec="mkp,qkn->mpqn", dims="mpqnk"),
        Product("several_k", more, spec="mkl,lkn->mn", dims="mnkl"),
        Product("several_k_other_order", more, spec="mkl,lkn->mn", dims="lmkn", split=True),
        Product("vector", more, spec="mk,k->m", dims="mk"),
        Product("dot", more, spec="k,k->", dims="k"),
        Product("outer_batch", more, spec="bk,bk->b", dims="bk"),
    ]
    for left, right, out in [(BF16, BF16, BF16), (F16, F16, F16), (F32, F32, F32), (BF16, F32, F32), (BF16, BF16, F32)]:
        name = "high_" + "_".join(MLIR_NAMES[t] for t in (left, right, out))
        products.append(Product(name, sizes(7, 19, 200), formats=(left, right), out=out))
    products.append(Product("high_added", sizes(7, 19, 37), formats=(BF16, BF16), out=BF16, accumulate=True))
    products.append(Product("high_empty", sizes(7, 19, 0), formats=(BF16, BF16), out=BF16))
    return {product.name: product for product in products}


PRODUCTS = build_products()

# Epilogues: bias and a gate in bf16; FP8 result with its own scale.
EPILOGUES = """
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#row = affine_map<(m, n) -> (n)>
#all = affine_map<(m, n) -> (m, n)>
func.func @epilogue(%a: tensor<9x140xf8E4M3FN>, %b: tensor<140x21xf8E4M3FN>, %sa: tensor<f32>, %sb: tensor<f32>,
                    %bias: tensor<21xbf16>, %gate: tensor<9x21xf32>) -> tensor<9x21xbf16> {
  %e = tensor.empty() : tensor<9x21xbf16>
  %r = fp8.scaled_matmul fast ins(%a, %b : tensor<9x140xf8E4M3FN>, tensor<140x21xf8E4M3FN>)
      scales(%sa, %sb : tensor<f32>, tensor<f32>) epilogue_ins(%bias, %gate : tensor<21xbf16>, tensor<9x21xf32>)
      outs(%e : tensor<9x21xbf16>) {indexing_maps = [#mk, #kn, #mn], epilogue_maps = [#row, #all]} epilogue {
    ^bb0(%sum: f32, %be: bf16, %ge: f32):
      %wide = arith.extf %be : bf16 to f32
      %added = arith.addf %sum, %wide : f32
      %gated = arith.mulf %added, %ge : f32
      %narrow = arith.truncf %gated : f32 to bf16
      fp8.yield %narrow : bf16
  } -> tensor<9x21xbf16>
  return %r : tensor<9x21xbf16>
}
func.func @fp8_result(%a: tensor<9x140xf8E4M3FN>, %b: tensor<140x21xf8E5M2>, %sa: tensor<f32>, %sb: tensor<f32>,
                      %s: tensor<f32>) -> (tensor<9x21xf8E5M2>, tensor<f32>, tensor<f32>) {
  %d = tensor.empty() : tensor<9x21xf8E5M2>
  %e = tensor.empty() : tensor<f32>
  %q, %i, %x = fp8.scaled_matmul split ins(%a, %b : tensor<9x140xf8E4M3FN>, tensor<140x21xf8E5M2>)
      scales(%sa, %sb : tensor<f32>, tensor<f32>) out_scale(%s : tensor<f32>)
      outs(%d, %e, %e : tensor<9x21xf8E5M2>, tensor<f32>, tensor<f32>) {indexing_maps = [#mk, #kn, #mn]}
      -> tensor<9x21xf8E5M2>, tensor<f32>, tensor<f32>
  return %q, %i, %x : tensor<9x21xf8E5M2>, tensor<f32>, tensor<f32>
}"""


@pytest.fixture(scope="module")
def program(bin_dir, tmp_path_factory):
    text = [EPILOGUES, *(product.entry() for product in PRODUCTS.values())]
    return Program(bin_dir, tmp_path_factory.mktemp("matmul"), "\n".join(text), "--recipe=none")


def random_fp8(rng, shape, fmt, special=False):
    """Any byte; Inf and NaN only on request."""
    data = rng.integers(0, 256, shape, dtype=np.uint8).view(fmt)
    return data if special else np.where(np.isfinite(data.astype(F32)), data, np.zeros(shape, fmt))


def random_operand(rng, shape, dtype, special=False):
    if dtype.itemsize == 1:
        return random_fp8(rng, shape, dtype, special)
    return rng.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("product", PRODUCTS.values(), ids=PRODUCTS)
def test_product(program, product):
    rng = random_generator(20, *map(ord, product.name))
    a, b = (random_operand(rng, product.shape(i), product.formats[i], product.special) for i in (0, 1))
    sa, sb = rng.uniform(1e-4, 1e-3, 2).astype(F32)
    c = (rng.standard_normal(product.shape(2)) * 10).astype(product.out)
    (result,) = program.call(product.name, a, b, sa, sb, c)
    expected = product.reference(a, b, sa, sb, c)
    if F32 not in product.formats:
        return assert_same_bits(result, expected)
    # Products of narrow values are exact in f32; of two f32 they are not, and fusing the
    # multiplication with the addition, which is left open, rounds them differently.
    k = a.shape[-1]
    magnitude = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
    assert (np.abs(result - expected) <= k * 2.0**-23 * magnitude).all()


def test_fast_and_split_differ():
    """The references of the two ways are not the same by accident."""
    rng = random_generator(21)
    a, b = random_fp8(rng, [5, 300], E4M3), random_fp8(rng, [7, 300], E4M3)
    assert (reference.dot(a, b) != reference.dot(a, b, split=True)).any()


def test_epilogue(program):
    rng = random_generator(22)
    a, b = random_fp8(rng, [9, 140], E4M3), random_fp8(rng, [140, 21], E4M3)
    bias, gate = rng.standard_normal(21).astype(BF16), rng.standard_normal([9, 21]).astype(F32)
    sa, sb = np.float32(3e-3), np.float32(1e-3)
    (result,) = program.call("epilogue", a, b, sa, sb, bias, gate)
    value = reference.scaled_matmul(a, b.T, sa, sb)
    assert_same_bits(result, ((value + bias.astype(F32)) * gate).astype(BF16))


def test_fp8_result(program):
    rng = random_generator(23)
    a, b = random_fp8(rng, [9, 140], E4M3), random_fp8(rng, [140, 21], E5M2)
    sa, sb = np.float32(3e-3), np.float32(1e-3)
    value = reference.scaled_matmul(a, b.T, sa, sb, split=True)
    for scale in np.float32([1.0, 1e5, 1e-7]):
        data, inverse, amax = program.call("fp8_result", a, b, sa, sb, scale)
        assert_same_bits(data, reference.cast(value, scale, E5M2))
        assert_same_bits(inverse, reference.scale_inv(scale))
        assert_same_bits(amax, reference.amax(value))
