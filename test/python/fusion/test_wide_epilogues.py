# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products whose epilogues read f64, i32 and i1 beside f32, bf16 and f16: no operand changes what the product is.

A program has a product that is kept and, with a recipe, one that becomes FP8; random code (`wide_code.py`) reads their
results and tensors of every type, and another product may read what it computes. An entry of its own computes the products
alone; numpy computes the code from their results, and every value must have the same bits.
"""
import numpy as np
import pytest
from test_fusion import function
from wide_code import BIT, F64, FLOATS, I32, Operand, WideCode, generic

from harness import BF16, F16, F32, Program, assert_same_bits, random_generator, tensor_type

SEEDS = [*range(3), *(pytest.param(seed, marks=pytest.mark.slow(one_of=24)) for seed in range(3, 60))]

# The dimensions of lhs, rhs and result; sizes are drawn.
FORMS = {
    "matmul": ("mk", "kn", "mn"),
    "transposed": ("km", "nk", "mn"),
    "batched": ("bmk", "bkn", "bmn"),
    "shared_weight": ("bmk", "kn", "bmn"),
    "two_sums": ("mkj", "jkn", "mn"),
    "vector": ("mk", "k", "m"),
    "grouped": ("mk", "gkn", "mn"),
}
RECIPES = ["none", "current", "delayed", "row", "mxfp8", "block"]


def draw_sizes(rng):
    sizes = {letter: int(rng.choice([1, 2, 5, 16, 33, int(rng.integers(1, 90))])) for letter in "mnk"}
    return sizes | {"b": int(rng.integers(1, 4)), "j": int(rng.integers(1, 4)), "g": 3}


def product(name, form, dtype, site, sizes, group_ends="%ends"):
    """%`name`, of %`name`_a and %`name`_b, with `dtype` and site `site`."""
    lhs, rhs, out = FORMS[form]
    types = [tensor_type([sizes[d] for d in dims], dtype) for dims in (lhs, rhs, out)]
    first, first_dims, extra = f"{name}_a", lhs, ""
    first_type = types[0]
    if form == "grouped":
        first, first_dims, first_type = f"{name}_g", "g" + lhs, tensor_type([sizes[d] for d in "g" + lhs], dtype)
        extra = f"""
  {first} = fp8.group_rows ins({name}_a, {group_ends} : {types[0]}, tensor<{sizes['g']}xi32>) -> {first_type}"""
    loops = sorted(set(first_dims + rhs), key=(first_dims + rhs).index)
    maps = ", ".join(f"affine_map<({', '.join(loops)}) -> ({', '.join(dims)})>" for dims in (first_dims, rhs, out))
    return f"""{extra}
  {name}_e = tensor.empty() : {types[2]}
  {name} = fp8.matmul ins({first}, {name}_b : {first_type}, {types[1]}) outs({name}_e : {types[2]})
      {{indexing_maps = [{maps}], fp8.site = "{site}"}} -> {types[2]}""", [(f"{name}_a", types[0]), (f"{name}_b", types[1])]


def draw_operands(rng, shape):
    """A tensor of each type, at some of the dimensions, with the values that go wrong first among its elements."""
    operands, places = [], [range(len(shape)), range(len(shape))[::-1], range(len(shape))[-1:], range(len(shape))[:1], ()]
    for i, dtype in enumerate([F64, F64, F64, BIT, BIT, I32, *FLOATS]):
        at = places[rng.integers(len(places))] if i else places[0]
        size = [shape[d] for d in at]
        array = rng.standard_normal(size) * 2.0 ** rng.integers(-3, 4)
        if dtype == BIT:
            array = array > 0
        elif dtype == I32:
            array = rng.integers(-9, 9, size)
        else:
            array = np.where(rng.random(size) < 0.05, rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan]), array)
        operands.append(Operand(f"%x{i}", np.asarray(array).astype(dtype), at))
    return operands


def check(bin_dir, folder, rng, form, recipe, target=None):
    sizes = draw_sizes(rng)
    shape = [sizes[d] for d in FORMS[form][2]]
    names = ["kept"] if recipe == "none" else ["kept", "scaled"]
    dtypes = [[F32, BF16, F16][rng.integers(3)] for _ in names]
    text, factors, arrays = "", [], []
    for name, dtype in zip(names, dtypes, strict=True):
        more, arguments = product(f"%{name}", form, dtype, name, sizes)
        text += more
        factors += arguments
        arrays += [rng.standard_normal([sizes[d] for d in dims]).astype(dtype) for dims in FORMS[form][:2]]
    if form == "grouped":
        factors.append(("%ends", f"tensor<{sizes['g']}xi32>"))
        arrays.append(np.sort(rng.integers(0, sizes["m"] + 1, sizes["g"])).astype(I32))
    results = [(f"%{name}", tensor_type(shape, dtype)) for name, dtype in zip(names, dtypes, strict=True)]

    alone = function("alone", factors, text, results)
    options = [f"--recipe={recipe}"] + (["--keep=kept"] if recipe != "none" else []) + ([f"--target={target}"] if target else [])
    # The products' values decide what numpy computes, so they are compiled and called first.
    (folder / "alone").mkdir()
    values = Program(bin_dir, folder / "alone", alone, *options).call("alone", *arrays)
    products = [Operand(name, value, range(len(shape))) for (name, _), value in zip(results, values, strict=True)]
    operands = draw_operands(rng, shape)
    code = WideCode(rng, shape, [*operands, *products], int(rng.integers(1, 6)))
    stored = [v for v in [*products, *code.inner] if rng.random() < 0.3]
    both = function("both", [*factors, *((o.name, o.type) for o in operands)], text + code.text,
                    [(v.name, v.type) for v in [code.final, *stored]])
    (folder / "both").mkdir()
    actual = Program(bin_dir, folder / "both", both, *options).call("both", *arrays, *(o.array for o in operands))
    for value, expected in zip(actual, [code.final, *stored], strict=True):
        assert_same_bits(value, expected.array)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("form", FORMS)
def test_epilogues(bin_dir, tmp_path, form, seed):
    rng = random_generator(91, seed, list(FORMS).index(form))
    check(bin_dir, tmp_path, rng, form, RECIPES[seed % len(RECIPES)])


@pytest.mark.parametrize("form, recipe", [("matmul", "none"), ("batched", "current"), ("transposed", "delayed")])
def test_epilogues_of_gpus(bin_dir, tmp_path, form, recipe):
    check(bin_dir, tmp_path, random_generator(92, len(form)), form, recipe, "sm_90a")


@pytest.mark.parametrize("dtype", [F32, BF16, F16])
@pytest.mark.parametrize("code", ["addf", "maximumf", "select"])
def test_a_kept_product_takes_f64_into_its_epilogue(bin_dir, run, tmp_path, code, dtype):
    """The sum is of the product's type, whatever is added to it: (1·1 + 1·1 + 1·1) + 3 in f64, then rounded."""
    t, wide = tensor_type([2, 2], dtype), "tensor<2x2xf64>"
    text, factors = product("%y", "matmul", dtype, "y", {"m": 2, "n": 2, "k": 3})
    value, other = Operand("%y", np.full((2, 2), 3, dtype), range(2)), Operand("%z", np.full((2, 2), 2.25), range(2))
    element = t.split("x")[-1].rstrip(">")
    line = {"addf": "%s = arith.addf %w, %a1 : f64", "maximumf": "%s = arith.maximumf %w, %a1 : f64",
            "select": "%over = arith.cmpf ogt, %w, %a1 : f64\n    %s = arith.select %over, %a1, %w : f64"}[code]
    text += generic("%r", 2, [value, other], t, [f"%w = arith.extf %a0 : {element} to f64", line, f"%n = arith.truncf %s : f64 to {element}"], "%n")
    program = function("main", [*factors, ("%z", wide)], text, [("%r", t)])
    compiled = Program(bin_dir, tmp_path, program, "--recipe=none")
    ir = run("fp8-compile", compiled.source, "-o", "-", "--emit=fusion", "--recipe=none").stdout
    assert "epilogue_ins(%arg2 : tensor<2x2xf64>)" in ir
    (actual,) = compiled.call("main", np.ones((2, 3), dtype), np.ones((3, 2), dtype), other.array)
    assert_same_bits(actual, np.full((2, 2), {"addf": 5.25, "maximumf": 3, "select": 2.25}[code], dtype))
