# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""--sums=hardware on a processor with AMX: products of bf16 and FP8 in tile registers, bit for bit.

The machine code runs as it is: on processors without AMX, amx/AMXTraps.c does what its instructions would. Sums
are compared with the order that Intel's manual states for TDPBF16PS.
"""

import json
import pathlib
import shutil
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from numerics.products import fma
from test_packed_gemm import program
from test_scaled_matmul import Product
from test_scaled_products import Product as ScaledProduct
from test_scaled_products import expand, random_scales

from harness import E4M3, E5M2, E8M0, F32, assert_same_bits, load, random_generator, save

HERE = pathlib.Path(__file__).resolve().parent / "amx"
CPUINFO = pathlib.Path("/proc/cpuinfo")
# All other instructions of the processor that the code is for must be there.
HAS_OTHERS = CPUINFO.exists() and {"avx512_bf16", "avx512_fp16"} <= set(CPUINFO.read_text().split())
COMPILER = shutil.which("clang-22") or shutil.which("cc")
needs_others = pytest.mark.skipif(
    not (HAS_OTHERS and COMPILER), reason="this processor has no AVX512_FP16, which those with AMX have, or there is no C compiler"
)
OPTIONS = ["--recipe=none", "--sums=hardware", "--cpu=sapphirerapids"]
STEP = 32  # indices of K of one instruction


@pytest.fixture(scope="module")
def traps(tmp_path_factory):
    library = tmp_path_factory.mktemp("amx") / "AMXTraps.so"
    subprocess.run([COMPILER, "-O2", "-shared", "-fPIC", HERE / "AMXTraps.c", "-o", library, "-lm"], check=True)
    return library


def compiled(run, folder, text):
    library, report = folder / "main.so", folder / "report.json"
    done = run("fp8-compile", "-", "-o", library, *OPTIONS, f"--report=json:{report}", stdin=text)
    assert done.returncode == 0, done.stderr
    return library, json.loads(report.read_text())


def call(traps, library, name, *inputs):
    """The results of an entry, in a process of its own, which takes the traps."""
    source, target = library.with_suffix(".in"), library.with_suffix(".out")
    save(source, {str(i): array for i, array in enumerate(inputs)})
    done = subprocess.run(
        [sys.executable, HERE / "call_library.py", library, name, source, target], env={"LD_PRELOAD": str(traps)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    results = load(target)
    return [results[str(i)] for i in range(len(results))]


def tile_sums(a, b, start=None):
    """Sums of [..., M, K] times [..., K, N]: of each 32 indices of K the even and the odd ones apart."""
    a, b = (np.asarray(x).astype(F32) for x in (a, b))
    padding = -a.shape[-1] % STEP
    a = np.concatenate([a, np.zeros((*a.shape[:-1], padding), F32)], axis=-1)
    b = np.concatenate([b, np.zeros((*b.shape[:-2], padding, b.shape[-1]), F32)], axis=-2)
    total = start
    for first in range(0, a.shape[-1], STEP):
        halves = []
        for odd in range(2):
            half = np.float32(0)
            for k in range(first + odd, first + STEP, 2):
                half = fma(a[..., :, k, None], b[..., None, k, :], half)
            halves.append(half)
        step = (halves[0] + halves[1]).astype(F32)
        total = (np.float32(0) if total is None else total) + step
    return total


def in_parts(a, b, length, scale=lambda part, number, total: part if total is None else total + part):
    total = None
    for number, first in enumerate(range(0, a.shape[-1], length)):
        part = tile_sums(a[..., :, first : first + length], b[..., first : first + length, :])
        total = scale(part, number, total)
    return total


CASES = [
    ("mk,kn->mn", dict(m=16, n=16, k=32)),  # one tile register of sums
    ("mk,kn->mn", dict(m=32, n=32, k=64)),
    ("mk,kn->mn", dict(m=8, n=32, k=34)),  # K is filled up
    ("mk,nk->mn", dict(m=33, n=49, k=50)),  # both operands contiguous along K, all sizes ragged
    ("km,kn->mn", dict(m=24, n=70, k=98)),  # neither is
    ("mk,kn->nm", dict(m=10, n=20, k=40)),  # transposed output
    ("mk,kn->mn", dict(m=17, n=70, k=600)),  # several blocks of K
    ("bthe,bshe->bhts", dict(b=2, t=9, s=10, h=3, e=32)),  # attention
    ("bta,btc->ac", dict(b=3, t=12, a=9, c=34)),  # two dimensions of K
    ("mk,kn->mn", dict(m=300, n=40, k=300)),  # on several threads
    ("km,kn->mn", dict(m=100, n=500, k=402)),
    ("mk,kn->mn", dict(m=20, n=40, k=2100)),  # K is packed in segments
]


def matrices(formula, sizes, x, y):
    """The operands as [batch, M, K] and [batch, K, N], and how the product becomes the result."""
    left, right, out = *formula.split("->")[0].split(","), formula.split("->")[1]
    batch = [d for d in out if d in left and d in right]
    rows, columns = ([d for d in out if d in part and d not in batch] for part in (left, right))
    depth = [d for d in left if d not in out]
    volume = lambda dims: int(np.prod([sizes[d] for d in dims], dtype=int))
    arrange = lambda array, part, *groups: np.transpose(array, [part.index(d) for g in groups for d in g]).reshape([volume(g) for g in groups])
    a, b = arrange(x, left, batch, rows, depth), arrange(y, right, batch, depth, columns)
    order = [*batch, *rows, *columns]
    return a, b, lambda sums: np.transpose(sums.reshape([sizes[d] for d in order]), [order.index(d) for d in out])


@needs_others
@pytest.mark.parametrize("formula, sizes", CASES, ids=lambda value: str(value).replace(" ", ""))
def test_bf16(run, tmp_path, traps, formula, sizes):
    random = random_generator(60)
    x, y = (random.standard_normal([sizes[d] for d in part]).astype(ml_dtypes.bfloat16) for part in formula.split("->")[0].split(","))
    library, report = compiled(run, tmp_path, program(formula, sizes, "bf16"))
    assert [site["code"] for site in report["sites"]] == ["AMX tile products (CPU)"]
    (got,) = call(traps, library, "main", x, y)
    if formula.endswith("nm"):  # the columns of the result are the rows of the product
        formula, x, y = "nk,km->nm", y.T, x.T
    a, b, shape = matrices(formula, sizes, x, y)
    assert_same_bits(got, shape(tile_sums(a, b)))


@needs_others
@pytest.mark.parametrize("spec", ["mk,kn->mn", "km,nk->mn"])
@pytest.mark.parametrize("split", [False, True], ids=["fast", "split"])
@pytest.mark.parametrize("formats", [(E4M3, E4M3), (E5M2, E4M3)], ids=["E4M3", "E5M2"])
def test_fp8(run, tmp_path, traps, spec, split, formats):
    product = Product("main", dict(m=21, n=70, k=300), spec, formats=formats, split=split)
    library, report = compiled(run, tmp_path, product.entry())
    assert "AMX tile products of decoded FP8" in report["sites"][0]["code"]
    random = random_generator(61)
    x, y = (random.standard_normal(product.shape(i)).astype(formats[i]) for i in (0, 1))
    one = np.float32(1)
    (got,) = call(traps, library, "main", x, y, one, one, np.zeros((21, 70), F32))
    a, b, _ = matrices(spec, product.sizes, x, y)
    a, b = a[0], b[0]
    assert_same_bits(got, in_parts(a, b, 128) if split else tile_sums(a, b))


@needs_others
@pytest.mark.parametrize("k", [320, 2112])
@pytest.mark.parametrize("name", ["rows", "blocks", "mx"])
def test_scales_per_row_and_block(run, tmp_path, traps, name, k):
    block = {"rows": ((1, 0), (0, 1)), "blocks": ((1, 128), (128, 128)), "mx": ((1, 32), (32, 1))}[name]
    product = ScaledProduct("main", block, dict(m=21, n=70, k=k), scales=(E8M0, E8M0) if name == "mx" else (F32, F32))
    library, report = compiled(run, tmp_path, product.entry())
    assert "AMX tile products of decoded FP8" in report["sites"][0]["code"]
    random = random_generator(62)
    a, b = (random.standard_normal(product.shape(i)).astype(E4M3) for i in (0, 1))
    sa, sb = (random_scales(random, product.scale_shape(i), product.scales[i]) for i in (0, 1))
    (got,) = call(traps, library, "main", a, b, sa, sb, np.zeros((21, 70), F32))
    wide = [expand(s.astype(F32), x.shape, part) for x, s, part in zip((a, b), (sa, sb), product.blocks)]
    if name == "rows":
        sums = tile_sums(a, b)
        expected = (sums * (wide[0][:, :1] * wide[1][:1])).astype(F32)
    elif name == "mx":  # powers of two, exact in bf16
        expected = tile_sums(a.astype(F32) * wide[0], b.astype(F32) * wide[1])
    else:
        zero = np.zeros((21, 70), F32)
        expected = in_parts(
            a, b, 128, lambda part, number, total: fma(part * wide[0][:, 128 * number, None], wide[1][128 * number], zero if total is None else total)
        )
    assert_same_bits(got, expected)


@needs_others
def test_sums_that_begin_with_others(run, tmp_path, traps):
    """Two products of one output: the second goes on where the first ended."""
    text = """
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @main(%x: tensor<40x64xbf16>, %y: tensor<64x50xbf16>, %z: tensor<40x50xf32>) -> tensor<40x50xf32> {
  %r = fp8.matmul resume ins(%x, %y : tensor<40x64xbf16>, tensor<64x50xbf16>) outs(%z : tensor<40x50xf32>) {indexing_maps = [#a, #b, #c]} -> tensor<40x50xf32>
  return %r : tensor<40x50xf32>
}
"""
    library, _ = compiled(run, tmp_path, text)
    random = random_generator(63)
    x, y = (random.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((40, 64), (64, 50)))
    start = random.standard_normal((40, 50)).astype(F32)
    (got,) = call(traps, library, "main", x, y, start)
    assert_same_bits(got, tile_sums(x, y, start))


@needs_others
@pytest.mark.parametrize("sizes", [dict(m=4, n=32, k=64), dict(m=32, n=4, k=64), dict(m=32, n=32, k=16)], ids=str)
def test_thin_products_have_no_tiles(run, tmp_path, sizes):
    _, report = compiled(run, tmp_path, program("mk,kn->mn", sizes, "bf16"))
    assert [site["code"] for site in report["sites"]] == ["AVX512_BF16 dot products (CPU)"]


def test_a_processor_without_amx_is_named(run, tmp_path):
    """fp8-run asks before the first call; where there is AMX, it runs."""
    library, _ = compiled(run, tmp_path, program("mk,kn->mn", dict(m=16, n=16, k=32), "bf16"))
    if "amx_bf16" in CPUINFO.read_text():
        pytest.skip("this processor has AMX")
    x, y = (np.ones(shape, ml_dtypes.bfloat16) for shape in ((16, 32), (32, 16)))
    save(tmp_path / "in", {"0": x, "1": y})
    done = run("fp8-run", library, f"--inputs={tmp_path / 'in'}")
    assert done.returncode == 1
    assert "it was compiled for the processor 'sapphirerapids', and this machine lacks its " in done.stderr
    assert "amx-tile, amx-bf16" in done.stderr
