# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8.scaled_matmul and fp8.dequantize by value, with scales per row, per block of K, and MX.

Expected values are computed in numpy in f32, in the order that the operation's description gives, and
compared bit for bit. Sizes are odd on purpose: tails of tiles and of blocks.
"""
import math
import platform
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from numerics.products import fma

import reference
from harness import BF16, E4M3, E5M2, E8M0, F32, MLIR_NAMES, Program, assert_same_bits, random_generator

ONE = None  # as a block: one scale for the whole operand


@dataclass
class Product:
    """`spec` as in einsum, dimensions in iteration order in `dims`, sizes by letter. `blocks` has the extents
    for each operand, in the order of its dimensions."""

    name: str
    blocks: tuple
    sizes: dict = field(default_factory=lambda: dict(m=37, n=43, k=300))
    spec: str = "mk,kn->mn"
    dims: str = "mnk"
    formats: tuple = (E4M3, E4M3)
    scales: tuple = (F32, F32)
    out: np.dtype = F32
    split: bool = False
    accumulate: bool = False
    dynamic: str = ""  # the dimensions whose sizes are known at run time only

    @property
    def letters(self):
        operands, result = self.spec.split("->")
        return [*operands.split(","), result]

    def shape(self, i):
        return [self.sizes[d] for d in self.letters[i]]

    def scale_shape(self, i):
        if self.blocks[i] is ONE:
            return []
        return [1 if extent == 0 else -(-size // extent) for size, extent in zip(self.shape(i), self.blocks[i])]

    def type(self, i, dtype):
        sizes = ["?" if d in self.dynamic else str(self.sizes[d]) for d in self.letters[i]]
        return f"tensor<{'x'.join([*sizes, MLIR_NAMES[dtype]])}>"

    def scale_type(self, i):
        """A block of a dimension of unknown size is one of an unknown number."""
        sizes = []
        for letter, size, extent in zip(self.letters[i], self.scale_shape(i), self.blocks[i] or []):
            sizes.append("?" if letter in self.dynamic and extent else str(size))
        return f"tensor<{'x'.join([*sizes, MLIR_NAMES[self.scales[i]]])}>"

    def attributes(self):
        maps = ", ".join(f"affine_map<({', '.join(self.dims)}) -> ({', '.join(word)})>" for word in self.letters)
        text = f"indexing_maps = [{maps}]"
        for name, block in zip(("lhs_block", "rhs_block"), self.blocks):
            if block is not ONE:
                text += f", {name} = array<i64: {', '.join(map(str, block))}>"
        return text

    def entry(self):
        a, b, c = self.type(0, self.formats[0]), self.type(1, self.formats[1]), self.type(2, self.out)
        sa, sb = self.scale_type(0), self.scale_type(1)
        return f"""
func.func @{self.name}(%a: {a}, %b: {b}, %sa: {sa}, %sb: {sb}, %c: {c}) -> {c} {{
  %r = fp8.scaled_matmul {'split' if self.split else 'fast'} {"accumulate" if self.accumulate else ""}
      ins(%a, %b : {a}, {b}) scales(%sa, %sb : {sa}, {sb}) outs(%c : {c}) {{{self.attributes()}}} -> {c}
  return %r : {c}
}}"""

    def along_k(self, i):
        (k,) = [d for d in self.dims if d not in self.letters[2]][:1]
        return 0 if self.blocks[i] is ONE else self.blocks[i][self.letters[i].index(k)]

    def spans_rows(self, i):
        if self.blocks[i] is ONE:
            return True
        return any(e != 1 for d, e in zip(self.letters[i], self.blocks[i]) if d in self.letters[2])

    def reference(self, a, b, sa, sb, c):
        operands = [self.arrange(i, x.astype(F32)) for i, x in enumerate((a, b))]
        scales = [self.arrange(i, self.expand(i, s.astype(F32))) for i, s in enumerate((sa, sb))]
        length = max(self.along_k(0), self.along_k(1))
        of_elements = [length and self.along_k(i) and self.scales[i] == E8M0 for i in (0, 1)]
        if length and not any(of_elements):
            value = self.sum_blocks(operands, scales, length)
        else:
            first = [s[..., :1] if s.shape[-1] else np.ones([*s.shape[:-1], 1], F32) for s in scales]
            first = [np.ones_like(s) if of else s for s, of in zip(first, of_elements)]
            factor = first[0] * first[1].swapaxes(-1, -2)
            operands = [x * s if of else x for x, s, of in zip(operands, scales, of_elements)]
            value = factor * reference.dot(*operands, self.split)
        value = self.restore(value)
        return (value + c.astype(F32) if self.accumulate else value).astype(self.out)

    def sum_blocks(self, operands, scales, length):
        (a, b), (sa, sb) = operands, scales
        total = np.zeros([*a.shape[:-1], b.shape[-2]], F32)
        for k in range(0, a.shape[-1], length):
            p = reference.dot(a[..., k : k + length], b[..., k : k + length])
            of_a, of_b = sa[..., k, None], sb[..., None, :, k]
            if self.spans_rows(0) and not self.spans_rows(1):
                of_a, of_b = of_b, of_a
            total = fma(p * of_a, np.broadcast_to(of_b, p.shape), total)
        return total

    def groups(self):
        first, second, result = self.letters
        batch = [d for d in self.dims if d in first and d in second and d in result]
        own = [[d for d in self.dims if d in x and d not in y] for x, y in ((first, second), (second, first))]
        return batch, own, [d for d in self.dims if d not in result]

    def arrange(self, i, x):
        """[batch, M or N, K]"""
        batch, own, k = self.groups()
        extent = lambda group: int(np.prod([self.sizes[d] for d in group], dtype=np.int64))
        order = [self.letters[i].index(d) for d in [*batch, *own[i], *k]]
        return x.transpose(order).reshape(extent(batch), extent(own[i]), extent(k))

    def restore(self, value):
        batch, own, _ = self.groups()
        order = [*batch, *own[0], *own[1]]
        return value.reshape([self.sizes[d] for d in order]).transpose([order.index(d) for d in self.letters[2]])

    def expand(self, i, scales):
        return expand(scales, self.shape(i), self.blocks[i])


def expand(scales, shape, block):
    """One scale per element."""
    for axis, (size, extent) in enumerate(zip(shape, block or [])):
        scales = scales.repeat(size if extent == 0 else extent, axis).take(range(size), axis)
    return np.broadcast_to(scales, shape)


def sized(m, n, k):
    return dict(m=m, n=n, k=k)


def build_rows():
    more = dict(b=3, c=2, m=4, p=3, n=5, q=2, k=13, l=11)
    rows = ((1, 0), (0, 1))
    return [
        Product("rows", rows),
        Product("rows_split", rows, split=True),
        Product("rows_first", ((1, 0), ONE)),
        Product("rows_second", (ONE, (0, 1))),
        Product("rows_tn", ((0, 1), (0, 1)), spec="km,kn->mn"),
        Product("rows_nt", ((1, 0), (1, 0)), spec="mk,nk->mn"),
        Product("rows_tt", ((0, 1), (1, 0)), spec="km,nk->mn", split=True),
        Product("rows_result_t", rows, spec="mk,kn->nm"),
        Product("rows_large", rows, sized(130, 500, 200), out=BF16),
        Product("rows_segments", rows, sized(9, 35, 2200), out=BF16, accumulate=True),
        Product("rows_added", rows, out=BF16, accumulate=True),
        Product("rows_mix", rows, formats=(E5M2, E4M3)),
        Product("rows_powers", rows, scales=(E8M0, E8M0)),
        Product("rows_empty", rows, sized(5, 7, 0)),
        Product("rows_none", rows, sized(0, 7, 9)),
        Product("rows_one", rows, sized(1, 1, 17)),
        Product("rows_batch", ((1, 1, 0), (1, 0, 1)), more, spec="bmk,bkn->bmn", dims="bmnk"),
        Product("rows_batches", ((1, 1, 1, 0), (1, 0, 1, 1)), more, spec="bmck,ckbn->bcmn", dims="bcmnk"),
        Product("rows_several", ((1, 0, 1), (1, 0, 1)), more, spec="mkp,qkn->mpqn", dims="mpqnk"),
        Product("rows_several_k", ((1, 0, 0), (0, 0, 1)), more, spec="mkl,lkn->mn", dims="lmkn", split=True),
        Product("rows_vector", ((1, 0), (0,)), more, spec="mk,k->m", dims="mk"),
        Product("rows_dot", ((0,), (0,)), more, spec="k,k->", dims="k"),
        Product("rows_of_some", ((16, 0), (0, 1))),  # several rows share a scale
        Product("rows_dynamic", rows, dynamic="mnk"),
    ]


def build_blocks():
    one, two, weight = (1, 128), (128, 1), (128, 128)
    more = dict(b=3, c=2, m=40, n=35, k=200)
    products = [
        Product("blocks_1x1", (one, two)),
        Product("blocks_1x2", (one, weight)),
        Product("blocks_2x1", (weight, two)),
        Product("blocks_2x2", (weight, weight)),
        Product("blocks_2x1_large", (weight, two), sized(300, 200, 260)),
        Product("blocks_1x2_large", (one, weight), sized(150, 300, 260), out=BF16),
        Product("blocks_nt", (one, weight), sized(37, 143, 300), spec="mk,nk->mn"),
        Product("blocks_tn", (two, two), spec="km,kn->mn"),
        Product("blocks_tt", (two, one), spec="km,nk->mn"),
        Product("blocks_result_t", (one, weight), sized(37, 143, 300), spec="mk,kn->nm"),
        Product("blocks_result_t_2x1", (weight, two), sized(143, 37, 300), spec="mk,kn->nm"),
        Product("blocks_added", (one, weight), out=BF16, accumulate=True),
        Product("blocks_segments", (one, weight), sized(9, 35, 2200), out=BF16),
        Product("blocks_192", ((1, 192), (192, 192)), sized(9, 200, 2200)),
        Product("blocks_32", ((1, 32), (32, 1)), split=True),
        Product("blocks_3", ((1, 3), (3, 1)), sized(9, 35, 50)),
        Product("blocks_4096", ((1, 4096), (4096, 1)), sized(9, 35, 2200)),
        Product("blocks_of_lhs", (one, (0, 1))),
        Product("blocks_of_rhs", (ONE, weight)),
        Product("blocks_mix", (one, two), formats=(E5M2, E4M3)),
        Product("blocks_batch", ((1, 1, 128), (1, 128, 1)), more, spec="bmk,bkn->bmn", dims="bmnk"),
        Product("blocks_many_tasks", ((1, 1, 128), (1, 128, 1)), dict(b=300, m=9, n=35, k=40), spec="bmk,bkn->bmn", dims="bmnk"),
        Product("blocks_tasks_of_segments", (one, weight), sized(150, 130, 2200), out=BF16),
        Product("blocks_batches", ((1, 1, 1, 128), (1, 128, 1, 128)), more, spec="bmck,ckbn->bcmn", dims="bcmnk"),
        Product("blocks_rows_apart", ((1, 128, 1), (128, 1)), dict(m=5, p=7, n=35, k=150), spec="mkp,kn->pmn", dims="pmnk"),
        Product("blocks_vector", ((1, 128), (128,)), spec="mk,k->m", dims="mk"),
        Product("blocks_dynamic", (one, weight), dynamic="mnk"),
        Product("blocks_dynamic_empty", (one, weight), sized(5, 7, 0), dynamic="mnk"),
    ]
    for k in (0, 1, 127, 128, 129, 256):
        products.append(Product(f"blocks_k{k}", (one, weight), sized(5, 150, k)))
    return products


def build_mx():
    one, two, powers = (1, 32), (32, 1), (E8M0, E8M0)
    more = dict(b=3, c=2, m=40, n=35, k=70)
    products = [
        Product("mx", (one, two), scales=powers),
        Product("mx_split", (one, two), scales=powers, split=True),
        Product("mx_tn", (two, two), spec="km,kn->mn", scales=powers),
        Product("mx_nt", (one, one), spec="mk,nk->mn", scales=powers),
        Product("mx_result_t", (one, two), spec="mk,kn->nm", scales=powers),
        Product("mx_large", (one, two), sized(150, 300, 260), scales=powers, out=BF16),
        Product("mx_segments", (one, two), sized(9, 35, 2200), scales=powers, split=True, out=BF16, accumulate=True),
        Product("mx_mix", (one, two), formats=(E5M2, E4M3), scales=powers),
        Product("mx_square", (one, (32, 32)), scales=powers),
        Product("mx_of_lhs", (one, ONE), scales=(E8M0, F32)),
        Product("mx_of_rhs", ((1, 0), two), scales=(F32, E8M0)),
        Product("mx_batch", ((1, 1, 32), (1, 32, 1)), more, spec="bmk,bkn->bmn", dims="bmnk", scales=powers),
        Product("mx_batches", ((1, 1, 1, 32), (1, 32, 1, 1)), more, spec="bmck,ckbn->bcmn", dims="bcmnk", scales=powers),
        Product("mx_dynamic", (one, two), scales=powers, dynamic="mnk"),
        Product("mx_dynamic_empty", (one, two), sized(5, 7, 0), scales=powers, dynamic="mnk"),
    ]
    for k in (0, 1, 31, 32, 33, 40, 512, 530):
        products.append(Product(f"mx_k{k}", (one, two), sized(5, 50, k), scales=powers))
    return products


PRODUCTS = {product.name: product for product in [*build_rows(), *build_blocks(), *build_mx()]}

# An epilogue with inputs, and an FP8 result, whose amax is computed in loops after the product.
EPILOGUES = """
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#row = affine_map<(m, n) -> (n)>
func.func @epilogue(%a: tensor<9x140xf8E4M3FN>, %b: tensor<140x21xf8E4M3FN>, %sa: tensor<9x1xf32>, %sb: tensor<1x21xf32>,
                    %bias: tensor<21xbf16>) -> tensor<9x21xbf16> {
  %e = tensor.empty() : tensor<9x21xbf16>
  %r = fp8.scaled_matmul fast ins(%a, %b : tensor<9x140xf8E4M3FN>, tensor<140x21xf8E4M3FN>)
      scales(%sa, %sb : tensor<9x1xf32>, tensor<1x21xf32>) epilogue_ins(%bias : tensor<21xbf16>)
      outs(%e : tensor<9x21xbf16>) {indexing_maps = [#mk, #kn, #mn], epilogue_maps = [#row],
                                    lhs_block = array<i64: 1, 0>, rhs_block = array<i64: 0, 1>} epilogue {
    ^bb0(%sum: f32, %be: bf16):
      %wide = arith.extf %be : bf16 to f32
      %added = arith.addf %sum, %wide : f32
      %narrow = arith.truncf %added : f32 to bf16
      fp8.yield %narrow : bf16
  } -> tensor<9x21xbf16>
  return %r : tensor<9x21xbf16>
}
func.func @fp8_result(%a: tensor<9x140xf8E4M3FN>, %b: tensor<140x21xf8E5M2>, %sa: tensor<9x1xf32>, %sb: tensor<1x21xf32>,
                      %s: tensor<f32>) -> (tensor<9x21xf8E5M2>, tensor<f32>, tensor<f32>) {
  %d = tensor.empty() : tensor<9x21xf8E5M2>
  %e = tensor.empty() : tensor<f32>
  %q, %i, %x = fp8.scaled_matmul split ins(%a, %b : tensor<9x140xf8E4M3FN>, tensor<140x21xf8E5M2>)
      scales(%sa, %sb : tensor<9x1xf32>, tensor<1x21xf32>) out_scale(%s : tensor<f32>)
      outs(%d, %e, %e : tensor<9x21xf8E5M2>, tensor<f32>, tensor<f32>)
      {indexing_maps = [#mk, #kn, #mn], lhs_block = array<i64: 1, 0>, rhs_block = array<i64: 0, 1>}
      -> tensor<9x21xf8E5M2>, tensor<f32>, tensor<f32>
  return %q, %i, %x : tensor<9x21xf8E5M2>, tensor<f32>, tensor<f32>
}"""

DEQUANTIZED = {
    "rows": ((7, 33), (1, 0), F32),
    "columns": ((7, 33), (0, 1), F32),
    "blocks": ((7, 300), (1, 128), F32),
    "squares": ((150, 300), (128, 128), F32),
    "mx": ((7, 70), (1, 32), E8M0),
    "cube": ((3, 5, 70), (1, 2, 32), E8M0),
}


def dequantize_entry(name):
    shape, block, scales = DEQUANTIZED[name]
    text = lambda sizes, dtype: f"tensor<{'x'.join([*map(str, sizes), MLIR_NAMES[dtype]])}>"
    counts = [1 if extent == 0 else -(-size // extent) for size, extent in zip(shape, block)]
    q, s, x = text(shape, E4M3), text(counts, scales), text(shape, BF16)
    return f"""
func.func @dequantize_{name}(%q: {q}, %s: {s}) -> {x} {{
  %e = tensor.empty() : {x}
  %x = fp8.dequantize ins(%q : {q}) scale_inv(%s : {s}) outs(%e : {x})
      {{block = array<i64: {', '.join(map(str, block))}>}} -> {x}
  return %x : {x}
}}"""


ON_X86_64 = pytest.mark.skipif(platform.machine() != "x86_64", reason="a processor of x86-64")


@pytest.fixture(scope="module", params=["native", pytest.param("x86-64-v3", marks=ON_X86_64)])
def program(request, bin_dir, tmp_path_factory):
    text = [EPILOGUES, *(product.entry() for product in PRODUCTS.values()), *map(dequantize_entry, DEQUANTIZED)]
    folder = tmp_path_factory.mktemp("scaled_products")
    return Program(bin_dir, folder, "\n".join(text), "--recipe=none", f"--cpu={request.param}")


# The emulator is slow: fewer rows and columns.
ON_CHIP = {
    name: replace(product, sizes={d: min(size, 9) if d in product.letters[2] else size for d, size in product.sizes.items()})
    for name, product in PRODUCTS.items()
    if product.sizes["k"] <= 300 and not name.endswith("large")
}


@pytest.fixture(scope="module")
def on_chip(bin_dir, tmp_path_factory):
    text = "\n".join(product.entry() for product in ON_CHIP.values())
    return Program(bin_dir, tmp_path_factory.mktemp("on_chip"), text, "--recipe=none", "--target=sm_89")


def random_fp8(rng, shape, fmt):
    data = rng.integers(0, 256, shape, dtype=np.uint8).view(fmt)
    return np.where(np.isfinite(data.astype(F32)), data, np.zeros(shape, fmt))


def random_scales(rng, shape, dtype):
    if dtype == E8M0:
        return rng.integers(110, 140, shape, dtype=np.uint8).view(E8M0)
    return rng.uniform(1e-4, 1e-2, shape).astype(F32)


def check(program, product):
    rng = random_generator(24, *map(ord, product.name))
    a, b = (random_fp8(rng, product.shape(i), product.formats[i]) for i in (0, 1))
    sa, sb = (random_scales(rng, product.scale_shape(i), product.scales[i]) for i in (0, 1))
    c = (rng.standard_normal(product.shape(2)) * 10).astype(product.out)
    (result,) = program.call(product.name, a, b, sa, sb, c)
    assert_same_bits(result, product.reference(a, b, sa, sb, c))


@pytest.mark.parametrize("product", PRODUCTS.values(), ids=PRODUCTS)
def test_product(program, product):
    check(program, product)


@pytest.mark.parametrize("threads", [1, 3, 16])
def test_threads_change_nothing(program, threads, monkeypatch):
    """More threads than tasks, and fewer: every worker has panels and sums of its own."""
    monkeypatch.setenv("OMP_NUM_THREADS", str(threads))
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")
    shared = [product for product in PRODUCTS.values() if product.dynamic or math.prod(product.sizes.values()) >= 2**21]
    assert len(shared) > 3
    for product in shared:
        check(program, product)


@pytest.mark.parametrize("product", ON_CHIP.values(), ids=ON_CHIP)
def test_product_on_chip(on_chip, product, monkeypatch):
    monkeypatch.setenv("FP8EMU_SUMS", "korder")  # tensor cores add in the order of the CPU
    check(on_chip, product)


def test_epilogue(program):
    rng = random_generator(25)
    a, b = random_fp8(rng, [9, 140], E4M3), random_fp8(rng, [140, 21], E4M3)
    sa, sb = random_scales(rng, [9, 1], F32), random_scales(rng, [1, 21], F32)
    bias = rng.standard_normal(21).astype(BF16)
    (result,) = program.call("epilogue", a, b, sa, sb, bias)
    assert_same_bits(result, ((sa * sb) * reference.dot(a, b.T) + bias.astype(F32)).astype(BF16))


def test_fp8_result(program):
    rng = random_generator(26)
    a, b = random_fp8(rng, [9, 140], E4M3), random_fp8(rng, [140, 21], E5M2)
    sa, sb, scale = random_scales(rng, [9, 1], F32), random_scales(rng, [1, 21], F32), np.float32(0.3)
    value = (sa * sb) * reference.dot(a, b.T, split=True)
    data, inverse, amax = program.call("fp8_result", a, b, sa, sb, scale)
    assert_same_bits(data, reference.cast(value, scale, E5M2))
    assert_same_bits(inverse, reference.scale_inv(scale))
    assert_same_bits(amax, reference.amax(value))


@pytest.mark.parametrize("name", DEQUANTIZED)
def test_dequantize(program, name):
    shape, block, dtype = DEQUANTIZED[name]
    rng = random_generator(27, *map(ord, name))
    data = random_fp8(rng, shape, E4M3)
    counts = [1 if extent == 0 else -(-size // extent) for size, extent in zip(shape, block)]
    scales = random_scales(rng, counts, dtype)
    (result,) = program.call(f"dequantize_{name}", data, scales)
    assert_same_bits(result, (data.astype(F32) * expand(scales.astype(F32), shape, block)).astype(BF16))
