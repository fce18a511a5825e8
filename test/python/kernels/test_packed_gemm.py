# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Compiled contractions of every shape and order of dimensions, compared bit for bit with
# the specified sum: in f32, one product after the other along K.

import platform
import string

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

pytestmark = pytest.mark.slow  # compiles programs of many kernels

TYPES = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16}

# einsum formula, size of each dimension, element type
CASES = [
    ("mk,kn->mn", dict(m=8, n=32, k=16), "f32"),  # whole panels
    ("mk,kn->mn", dict(m=1, n=1, k=1), "f32"),
    ("mk,kn->mn", dict(m=9, n=33, k=7), "f32"),  # ragged in both
    ("mk,kn->mn", dict(m=29, n=64, k=7), "f32"),  # the sums are the result: whole columns, ragged rows
    ("bmk,bnk->bmn", dict(b=3, m=9, n=32, k=40), "bf16"),
    ("abk,kn->abn", dict(a=3, b=11, n=96, k=256), "f32"),
    ("mk,kn->mn", dict(m=7, n=31, k=300), "bf16"),  # longer than one block of 128
    ("mk,nk->mn", dict(m=17, n=40, k=50), "bf16"),  # both operands contiguous along K
    ("km,kn->mn", dict(m=24, n=70, k=33), "f16"),  # neither is
    ("mk,kn->nm", dict(m=10, n=20, k=30), "bf16"),  # transposed output
    ("bmk,bkn->bmn", dict(b=3, m=5, n=6, k=7), "f32"),
    ("bthe,bshe->bhts", dict(b=2, t=9, s=10, h=3, e=4), "bf16"),  # attention
    ("abk,kn->abn", dict(a=3, b=11, n=12, k=13), "f32"),  # two dimensions of M, side by side
    ("bka,kn->abn", dict(a=3, b=11, n=12, k=13), "f32"),  # and apart
    ("bta,btc->ac", dict(b=3, t=5, a=9, c=34), "bf16"),  # two of K
    ("mab,ban->mn", dict(a=3, b=4, m=5, n=6), "bf16"),  # in another order
    ("mk,k->m", dict(m=19, k=21), "f32"),
    ("k,kn->n", dict(n=40, k=21), "f32"),
    ("k,k->", dict(k=200), "bf16"),
    ("mk,kn->mn", dict(m=0, n=4, k=4), "f32"),
    ("mk,kn->mn", dict(m=4, n=4, k=0), "f32"),  # an empty sum is 0
    ("abk,kn->abn", dict(a=0, b=5, n=4, k=4), "f32"),
    ("bta,btc->ac", dict(b=0, t=5, a=9, c=34), "bf16"),
]

# Products that are large enough for several threads and blocks of K.
LARGE = [
    ("mk,kn->mn", dict(m=300, n=40, k=300), "bf16"),  # rows are cut
    ("abk,kn->abn", dict(a=7, b=50, n=33, k=200), "f32"),  # by the first dimension of M, and ragged
    ("mk,kn->mn", dict(m=100, n=500, k=100), "bf16"),  # columns are cut
    ("abk,kn->abn", dict(a=3, b=30, n=500, k=100), "f32"),  # of rows in two dimensions
    ("abk,kn->abn", dict(a=5, b=7, n=2000, k=100), "bf16"),
    ("km,kn->mn", dict(m=100, n=500, k=401), "bf16"),  # as in wgrad: neither operand is contiguous along K
    ("mk,kn->mn", dict(m=130, n=40, k=2000), "f16"),  # both are cut
    ("bmk,bnk->bmn", dict(b=9, m=70, n=65, k=64), "bf16"),  # as in attention
    ("bthe,bshe->bhts", dict(b=3, t=65, s=70, h=4, e=40), "bf16"),
    ("mk,kn->mn", dict(m=70, n=1100, k=300), "f32"),  # a task computes its sums in parts
    ("mk,kn->mn", dict(m=20, n=40, k=2100), "bf16"),  # K is packed in segments
    ("mk,kab->mab", dict(m=70, a=3, b=20, k=3100), "f32"),
    ("kam,kn->amn", dict(a=3, m=60, n=70, k=150), "f32"),  # M is in two places: the operand is copied
]


def tensor_type(dims, sizes, element):
    return "tensor<%s>" % "x".join([str(sizes[d]) for d in dims] + [element])


def program(formula, sizes, element):
    inputs, out = formula.split("->")
    left, right = inputs.split(",")
    reduced = [d for d in left if d not in out]
    dims = [*out, *reduced]  # the reduction order is that of the left operand
    maps = ["affine_map<(%s) -> (%s)>" % (", ".join(dims), ", ".join(part)) for part in (left, right, out)]
    kinds = ['"parallel"'] * len(out) + ['"reduction"'] * len(reduced)
    x, y = (tensor_type(part, sizes, element) for part in (left, right))
    z = tensor_type(out, sizes, "f32")
    extend = "" if element == "f32" else f"""
    %ea = arith.extf %a : {element} to f32
    %eb = arith.extf %b : {element} to f32"""
    names = ("%a", "%b") if element == "f32" else ("%ea", "%eb")
    return f"""
func.func @main(%x: {x}, %y: {y}) -> {z} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {z}
  %init = linalg.fill ins(%zero : f32) outs(%empty : {z}) -> {z}
  %z = linalg.generic {{indexing_maps = [{", ".join(maps)}], iterator_types = [{", ".join(kinds)}]}}
      ins(%x, %y : {x}, {y}) outs(%init : {z}) {{
  ^bb0(%a: {element}, %b: {element}, %sum: f32):{extend}
    %product = arith.mulf {names[0]}, {names[1]} : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  }} -> {z}
  return %z : {z}
}}
"""


def expected(formula, sizes, x, y):
    """Sums in f32, one product at a time; the products of these inputs are exact."""
    inputs, out = formula.split("->")
    left, right = inputs.split(",")
    reduced = [d for d in left if d not in out]
    result = np.zeros([sizes[d] for d in out], np.float32)
    for position in np.ndindex(*[sizes[d] for d in reduced]):
        at = dict(zip(reduced, position))
        a, b = (operand[tuple(at.get(d, slice(None)) for d in part)] for operand, part in ((x, left), (y, right)))
        rest = ["".join(d for d in part if d not in at) for part in (left, right)]
        result = result + np.einsum("%s,%s->%s" % (*rest, out), a.astype(np.float32), b.astype(np.float32))
    return result.astype(np.float32)


def run_case(run, folder, formula, sizes, element, x, y, *options):
    library, source, target = folder / "main.so", folder / "in.safetensors", folder / "out.safetensors"
    done = run("fp8-compile", "-", "-o", library, "--recipe=none", *options, stdin=program(formula, sizes, element))
    assert done.returncode == 0, done.stderr
    save_file({"0": x, "1": y}, source)
    done = run("fp8-run", library, f"--inputs={source}", f"--outputs={target}")
    assert done.returncode == 0, done.stderr
    return load_file(target)["0"]


def check(run, folder, formula, sizes, element, *options):
    assert set(formula) <= set(string.ascii_lowercase + ",->")
    random = np.random.default_rng(0)
    left, right = formula.split("->")[0].split(",")
    # 8 significant bits: every product is exact in f32, whether multiply and add are fused or not.
    x, y = (random.standard_normal([sizes[d] for d in part]).astype(ml_dtypes.bfloat16).astype(TYPES[element])
            for part in (left, right))
    got = run_case(run, folder, formula, sizes, element, x, y, *options)
    np.testing.assert_array_equal(got, expected(formula, sizes, x, y))


@pytest.mark.parametrize("formula, sizes, element", CASES + LARGE, ids=lambda value: str(value).replace(" ", ""))
def test_contraction(run, tmp_path, formula, sizes, element):
    check(run, tmp_path, formula, sizes, element)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names x86-64's processors")
@pytest.mark.parametrize("formula, sizes, element", CASES[:7] + LARGE, ids=lambda value: str(value).replace(" ", ""))
def test_contraction_for_other_registers(run, tmp_path, formula, sizes, element):
    """The tile of sums follows from the number and the width of the vector registers."""
    check(run, tmp_path, formula, sizes, element, "--cpu=x86-64-v3")


# The part of a tensor that a product is written to: offsets, sizes; the formula of the product.
PARTS = [
    ("mk,kn->mn", dict(m=29, n=64, k=40), [2, 1, 0, 0], [1, 29, 1, 64]),  # rows at a distance, as of one head
    ("mk,kn->mn", dict(m=29, n=64, k=300), [0, 0, 2, 64], [1, 29, 1, 64]),
    ("mk,kn->mn", dict(m=3, n=96, k=40), [1, 7, 0, 32], [1, 1, 3, 96]),
    ("mk,kn->mn", dict(m=29, n=40, k=40), [2, 1, 0, 0], [1, 29, 1, 40]),  # no whole panels
    ("mk,nk->mn", dict(m=31, n=128, k=256), [1, 0, 0, 0], [1, 31, 1, 128]),
    ("km,kn->mn", dict(m=31, n=32, k=64), [1, 0, 2, 96], [1, 31, 1, 32]),
]


@pytest.mark.parametrize("formula, sizes, offsets, shape", PARTS, ids=str)
def test_contraction_into_a_part(run, tmp_path, formula, sizes, offsets, shape):
    random = np.random.default_rng(0)
    left, right = formula.split("->")[0].split(",")
    x, y = (random.standard_normal([sizes[d] for d in part]).astype(ml_dtypes.bfloat16).astype(np.float32) for part in (left, right))
    whole = random.standard_normal((3, 31, 3, 128)).astype(np.float32)
    part = f"[{', '.join(map(str, offsets))}] [{', '.join(map(str, shape))}] [1, 1, 1, 1]"
    text = program(formula, sizes, "f32").replace(") -> tensor", ", %whole: tensor<3x31x3x128xf32>) -> tensor<3x31x3x128xf32> {\n//", 1)
    z = tensor_type("mn", sizes, "f32")
    text = text.replace(f"%empty = tensor.empty() : {z}", f"%empty = tensor.extract_slice %whole{part} : tensor<3x31x3x128xf32> to {z}")
    text = text.replace(f"return %z : {z}", f"%r = tensor.insert_slice %z into %whole{part} : {z} into tensor<3x31x3x128xf32>\n  return %r : tensor<3x31x3x128xf32>")
    library, source, target = tmp_path / "main.so", tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    done = run("fp8-compile", "-", "-o", library, "--recipe=none", "--carry=2:0", stdin=text)
    assert done.returncode == 0, done.stderr
    save_file({"0": x, "1": y, "2": whole}, source)
    done = run("fp8-run", library, f"--inputs={source}", f"--outputs={target}")
    assert done.returncode == 0, done.stderr
    wanted = whole.copy()
    wanted[tuple(slice(o, o + s) for o, s in zip(offsets, shape))] = expected(formula, sizes, x, y).reshape(shape)
    np.testing.assert_array_equal(load_file(target)["0"], wanted)
