# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""--sums=hardware: products of bf16 and FP8 by the dot products of AVX512_BF16.

Their sums are compared with the sums in f64, within the error of as many roundings as the sum has summands.
"""
import json
import pathlib

import ml_dtypes
import numpy as np
import pytest
from test_packed_gemm import expected, program, run_case
from test_scaled_matmul import Product
from test_scaled_products import Product as ScaledProduct
from test_scaled_products import expand, random_scales

from harness import E4M3, E5M2, E8M0, F32, Program, random_generator

CPUINFO = pathlib.Path("/proc/cpuinfo")
HAS_DOTS = CPUINFO.exists() and "avx512_bf16" in CPUINFO.read_text()
needs_dots = pytest.mark.skipif(not HAS_DOTS, reason="this processor has no AVX512_BF16")

CASES = [
    ("mk,kn->mn", dict(m=8, n=32, k=16)),
    ("mk,kn->mn", dict(m=1, n=1, k=2)),  # element by element
    ("mk,kn->mn", dict(m=9, n=33, k=8)),
    ("mk,kn->mn", dict(m=17, n=70, k=600)),  # several blocks of K
    ("mk,nk->mn", dict(m=17, n=40, k=50)),  # both operands contiguous along K
    ("km,kn->mn", dict(m=24, n=70, k=34)),  # neither is
    ("mk,kn->nm", dict(m=10, n=20, k=30)),
    ("bthe,bshe->bhts", dict(b=2, t=9, s=10, h=3, e=4)),
    ("bta,btc->ac", dict(b=3, t=6, a=9, c=34)),
    ("mk,kn->mn", dict(m=300, n=40, k=300)),  # on several threads
    ("km,kn->mn", dict(m=100, n=500, k=402)),
    ("mk,kn->mn", dict(m=20, n=40, k=2100)),  # K is packed in segments
]


def operands(formula, sizes, element=ml_dtypes.bfloat16):
    random = random_generator(50)
    return [random.standard_normal([sizes[d] for d in part]).astype(element) for part in formula.split("->")[0].split(",")]


def assert_close(got, exact, magnitudes, summands):
    """Each of `summands` roundings is at most 2^-24 of the sum of the magnitudes."""
    assert (np.abs(got.astype(np.float64) - exact) <= summands * 2.0**-24 * magnitudes).all()


@needs_dots
@pytest.mark.parametrize("formula, sizes", CASES, ids=lambda value: str(value).replace(" ", ""))
def test_bf16(run, tmp_path, formula, sizes):
    x, y = operands(formula, sizes)
    got = run_case(run, tmp_path, formula, sizes, "bf16", x, y, "--sums=hardware")
    wide = [operand.astype(np.float64) for operand in (x, y)]
    summands = np.prod([sizes[d] for d in set(formula.split("->")[0]) - set(formula.split("->")[1]) - {","}])
    assert_close(got, np.einsum(formula, *wide), np.einsum(formula, *map(np.abs, wide)), summands)


def build_products():
    products = []
    for spec in ("mk,kn->mn", "km,nk->mn"):
        for formats in ((E4M3, E4M3), (E4M3, E5M2), (E5M2, E4M3)):
            for split in (False, True):
                products.append(Product(f"f{len(products)}", dict(m=21, n=70, k=300), spec, formats=formats, split=split))
    return products


@needs_dots
def test_fp8(bin_dir, tmp_path):
    products = build_products()
    program = Program(bin_dir, tmp_path, "\n".join(map(Product.entry, products)), "--recipe=none", "--sums=hardware")
    random = random_generator(51)
    for product in products:
        a, b = (random.standard_normal(product.shape(i)).astype(product.formats[i]) for i in (0, 1))
        one = np.float32(1)
        (got,) = program.call(product.name, a, b, one, one, np.zeros((21, 70), F32))
        wide = [operand.astype(np.float64) for operand in (a, b)]
        # The three blocks of a split sum are three more summands.
        assert_close(got, np.einsum(product.spec, *wide), np.einsum(product.spec, *map(np.abs, wide)), 303)


@needs_dots
def test_scales_per_row_and_block(bin_dir, tmp_path):
    blocks = {"rows": ((1, 0), (0, 1)), "blocks": ((1, 128), (128, 128)), "mx": ((1, 32), (32, 1)), "odd": ((1, 3), (3, 1))}
    products = [
        ScaledProduct(f"{name}_{k}", block, dict(m=21, n=70, k=k), scales=(E8M0, E8M0) if name == "mx" else (F32, F32))
        for name, block in blocks.items()
        for k in (300, 2100)
    ]
    program = Program(bin_dir, tmp_path, "\n".join(map(ScaledProduct.entry, products)), "--recipe=none", "--sums=hardware")
    random = random_generator(52)
    for product in products:
        a, b = (random.standard_normal(product.shape(i)).astype(E4M3) for i in (0, 1))
        sa, sb = (random_scales(random, product.scale_shape(i), product.scales[i]) for i in (0, 1))
        (got,) = program.call(product.name, a, b, sa, sb, np.zeros((21, 70), F32))
        scaled = [x.astype(np.float64) * expand(s.astype(np.float64), x.shape, block) for x, s, block in zip((a, b), (sa, sb), product.blocks)]
        # Each block has three roundings of its own: two scales and a sum.
        assert_close(got, np.matmul(*scaled), np.matmul(*map(np.abs, scaled)), 2 * product.sizes["k"] + 3)


@needs_dots
@pytest.mark.parametrize("k, element", [(301, "bf16"), (300, "f32"), (300, "f16")])
def test_others_stay_exact(run, tmp_path, k, element):
    """An odd K, and types that are not exact in bf16."""
    formula, sizes = "mk,kn->mn", dict(m=20, n=40, k=k)
    types = {"bf16": ml_dtypes.bfloat16, "f32": np.float32, "f16": np.float16}
    x, y = (operand.astype(types[element]) for operand in operands(formula, sizes))
    got = run_case(run, tmp_path, formula, sizes, element, x, y, "--sums=hardware")
    np.testing.assert_array_equal(got, expected(formula, sizes, x, y))


@needs_dots
def test_report_and_manifest(run, tmp_path):
    library, manifest, report = (tmp_path / name for name in ("a.so", "manifest.json", "report.json"))
    done = run("fp8-compile", "-", "-o", library, "--recipe=none", "--sums=hardware", f"--manifest={manifest}",
               f"--report=json:{report}", stdin=program("mk,kn->mn", dict(m=8, n=32, k=16), "bf16"))
    assert done.returncode == 0, done.stderr
    assert "avx512bf16" in manifest.read_text()
    assert json.loads(report.read_text())["sites"][0]["code"] == "AVX512_BF16 dot products (CPU)"


def test_processor_without_the_instructions(run, tmp_path):
    library = tmp_path / "a.so"
    done = run("fp8-compile", "-", "-o", library, "--sums=hardware", "--cpu=x86-64-v3",
               stdin=program("mk,kn->mn", dict(m=8, n=32, k=16), "bf16"))
    assert done.returncode != 0 and not library.exists()
    assert "--sums=hardware needs a processor with AVX512_BF16, which x86-64-v3 lacks" in done.stderr
