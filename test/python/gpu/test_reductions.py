# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions of whole libraries: the results on the emulator are those on the CPU, bit for bit. Sums are of small integers, which
are exact in any order."""

import ml_dtypes
import numpy as np
import pytest
from test_libraries import both  # noqa: F401

# A product of dynamic M, the sum of its columns and of all squares.
EPILOGUE = """
#id = affine_map<(m, n) -> (m, n)>
#columns = affine_map<(m, n) -> (n)>
#all = affine_map<(m, n) -> ()>
func.func @main(%x: tensor<?x16xbf16>, %w: tensor<16x96xbf16>) -> (tensor<?x96xbf16>, tensor<96xf32>, tensor<f32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x16xbf16>
  %e = tensor.empty(%m) : tensor<?x96xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x96xf32>) -> tensor<?x96xf32>
  %p = linalg.matmul ins(%x, %w : tensor<?x16xbf16>, tensor<16x96xbf16>) outs(%f : tensor<?x96xf32>) -> tensor<?x96xf32>
  %eb = tensor.empty(%m) : tensor<?x96xbf16>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<?x96xf32>) outs(%eb : tensor<?x96xbf16>) {
  ^bb0(%a: f32, %o: bf16):
    %0 = arith.truncf %a : f32 to bf16
    linalg.yield %0 : bf16
  } -> tensor<?x96xbf16>
  %ec = tensor.empty() : tensor<96xf32>
  %fc = linalg.fill ins(%zero : f32) outs(%ec : tensor<96xf32>) -> tensor<96xf32>
  %c = linalg.generic {indexing_maps = [#id, #columns], iterator_types = ["reduction", "parallel"]} ins(%y : tensor<?x96xbf16>) outs(%fc : tensor<96xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %0 = arith.extf %a : bf16 to f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<96xf32>
  %es = tensor.empty() : tensor<f32>
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<f32>) -> tensor<f32>
  %s = linalg.generic {indexing_maps = [#id, #all], iterator_types = ["reduction", "reduction"]} ins(%y : tensor<?x96xbf16>) outs(%fs : tensor<f32>) {
  ^bb0(%a: bf16, %o: f32):
    %0 = arith.extf %a : bf16 to f32
    %1 = arith.mulf %0, %0 : f32
    %2 = arith.addf %o, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<f32>
  return %y, %c, %s : tensor<?x96xbf16>, tensor<96xf32>, tensor<f32>
}
"""


@pytest.mark.parametrize("rows", [0, 1, 300])
def test_sums_of_epilogues_over_dynamic_rows(both, rows):
    program = both(EPILOGUE, "--recipe=none")
    rng = np.random.default_rng(rows)
    x, w = (rng.integers(-2, 3, shape).astype(ml_dtypes.bfloat16) for shape in ((rows, 16), (16, 96)))
    y = x.astype(np.float32) @ w.astype(np.float32)
    results = program.results(x, w)
    assert (results["1"] == y.sum(0)).all() and results["2"] == (y * y).sum()
    assert program.compile("--target=sm_89", "--recipe=none", "--emit=kernels", "-o", "kernels.mlir").returncode == 0
    launches = (program.folder / "kernels.mlir").read_text().split("gpu.launch_func")[1:]
    assert sum("@kernel_sum_of_rows_batch_2 " in launch for launch in launches) == 1  # the parts of both sums


class Program:
    """The text of a program of many reductions, each of an argument into another one, whose elements are the initial values."""

    def __init__(self):
        self.arguments, self.results, self.body = [], [], ""

    def reduce(self, shape, elements, kept, code):
        """Reduces dimensions of %a into %o0, %o1, … by `code`, which yields %r0, %r1, …; `elements` are the types of these."""
        number, element = len(self.results), elements[0]
        given = [f"%x{number}: tensor<{'x'.join([*shape, element])}>"]
        outs = ["x".join([*(shape[d] for d in kept), e]) for e in elements]
        given += [f"%s{number}_{i}: tensor<{out}>" for i, out in enumerate(outs)]
        types = ", ".join(f"tensor<{out}>" for out in outs)
        dims, places = (", ".join("d%d" % d for d in of) for of in (range(len(shape)), kept))
        maps = ", ".join([f"affine_map<({dims}) -> ({dims})>"] + [f"affine_map<({dims}) -> ({places})>"] * len(outs))
        kinds = ", ".join('"parallel"' if d in kept else '"reduction"' for d in range(len(shape)))
        block = ", ".join([f"%a: {element}"] + [f"%o{i}: {e}" for i, e in enumerate(elements)])
        values, types_of = ", ".join(f"%r{i}" for i in range(len(outs))), ", ".join(elements)
        self.body += f"""  %y{number}:{len(outs)} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
      ins({given[0].replace(":", " :")}) outs({", ".join(f"%s{number}_{i}" for i in range(len(outs)))} : {types}) {{
  ^bb0({block}):
    {code}
    linalg.yield {values} : {types_of}
  }} -> ({types})
"""
        self.arguments += given
        self.results += [(f"%y{number}#{i}", f"tensor<{out}>") for i, out in enumerate(outs)]

    def text(self):
        names, types = ([result[i] for result in self.results] for i in range(2))
        return f"func.func @main({', '.join(self.arguments)}) -> ({', '.join(types)}) {{\n{self.body}  return {', '.join(names)} : {', '.join(types)}\n}}\n"


def sizes_of(shape):
    return [int(size) if size != "?" else 300 for size in shape]


def kernels(program):
    """Of the kernels of reductions whether lanes share them; others copy and widen the initial values."""
    assert program.compile("--target=sm_89", "--emit=ptx", "-o", "p.ptx").returncode == 0
    texts = [kernel.split("\n}")[0] for kernel in (program.folder / "p.ptx").read_text().split(".visible .entry ")[1:]]
    return {"shfl.sync.bfly" in text for text in texts if text.startswith("kernel_reduce")}


NUMPY = {"i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32,
         "f64": np.float64}
COMBINERS = [("i64", "addi"), ("i64", "minsi"), ("i32", "maxui"), ("i16", "maxsi"), ("i8", "addi"), ("i8", "muli"), ("i1", "andi"), ("i1", "ori"),
             ("i1", "xori"), ("bf16", "maximumf"), ("bf16", "addf"), ("f16", "minnumf"), ("f64", "addf"), ("f64", "maximumf"), ("f32", "minimumf")]


def numbers(rng, element, shape):
    """Numbers of which all sums are exact; all bits of integers."""
    if element == "i1":
        return rng.integers(0, 2, shape) > 0
    if element[0] == "i":
        bits = int(element[1:])
        return rng.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), shape, np.int64).astype(NUMPY[element])
    return rng.integers(-3, 4, shape).astype(NUMPY[element])


def test_types_of_reductions(both):
    """A warp, a block, several dimensions, columns; sizes that are known, and not."""
    shapes = [(["9", "70"], [0]), (["5", "3001"], [0]), (["2", "6", "111"], [0]), (["?", "?"], [0]), (["?"], []), (["?", "3"], [1])]
    text, rng, inputs = Program(), np.random.default_rng(7), []
    for element, combiner in COMBINERS:
        for shape, kept in shapes:
            text.reduce(shape, [element], kept, f"%r0 = arith.{combiner} %o0, %a : {element}")
            sizes = sizes_of(shape)
            inputs += [numbers(rng, element, sizes), numbers(rng, element, [sizes[d] for d in kept])]
    program = both(text.text(), "--recipe=none")
    assert len(program.results(*inputs)) == len(COMBINERS) * len(shapes)
    assert kernels(program) == {True}


# Conditions of a selection: if %v is true, the element %o0 is kept and not %a; if %c is true, its place %o1 and not %i.
SELECTIONS = {
    # jax.numpy.argmax: NaN is the greatest, and the first of equal ones.
    "jax": """%0 = arith.cmpf ogt, %o0, %a : {T}
    %1 = arith.cmpf une, %o0, %o0 : {T}
    %v = arith.ori %0, %1 : i1
    %3 = arith.cmpf oeq, %o0, %a : {T}
    %4 = arith.cmpi slt, %o1, %i : {I}
    %5 = arith.andi %3, %4 : i1
    %c = arith.ori %v, %5 : i1""",
    # NaN is passed over, unless it is the initial value.
    "first": "%v = arith.cmpf ule, %a, %o0 : {T}\n    %c = arith.cmpf ule, %a, %o0 : {T}",
    "last": "%v = arith.cmpf ugt, %o0, %a : {T}\n    %c = arith.cmpf ugt, %o0, %a : {T}",
    "highest place": """%v = arith.cmpf uge, %o0, %a : {T}
    %0 = arith.cmpf ugt, %o0, %a : {T}
    %1 = arith.cmpf oeq, %o0, %a : {T}
    %2 = arith.cmpi sge, %o1, %i : {I}
    %3 = arith.andi %1, %2 : i1
    %c = arith.ori %0, %3 : i1""",
    "integers": "%v = arith.cmpi uge, %o0, %a : {T}\n    %c = arith.cmpi uge, %o0, %a : {T}",
    # In order: NaN is taken and then never kept; the first of equal values, and the last place; both signs.
    "NaN": "%v = arith.cmpf ole, %o0, %a : {T}\n    %c = arith.cmpf ole, %o0, %a : {T}",
    "other places": "%v = arith.cmpf uge, %o0, %a : {T}\n    %c = arith.cmpf ugt, %o0, %a : {T}",
    "signs": "%v = arith.cmpi uge, %o0, %a : {T}\n    %c = arith.cmpi sge, %o0, %a : {T}",
}
BY_LANES = [("jax", "f32", "i32"), ("jax", "bf16", "i64"), ("first", "f32", "i64"), ("last", "f16", "i32"), ("highest place", "f64", "i32"),
            ("integers", "i8", "i32")]
IN_ORDER = [("NaN", "f32", "i32"), ("other places", "f32", "i32"), ("signs", "i32", "i32")]


def elements(rng, element, sizes, most):
    """Few different numbers: zeros of both signs, infinities, NaN if `most` is 6."""
    if element[0] == "i":
        return rng.integers(-most, most, sizes).astype(NUMPY[element])
    special = np.array([-np.inf, -0.0, 0.0, 1, np.inf, np.nan], NUMPY[element])[rng.integers(0, most, sizes)]
    return np.where(rng.random(sizes) < 0.99, NUMPY[element](1), special).astype(NUMPY[element]) if most == 6 else special


@pytest.mark.parametrize("cases, byLanes", [(BY_LANES, True), (IN_ORDER, False)])
def test_places_of_extremes(both, cases, byLanes):
    """The bits are those of one thread, in order."""
    shapes = [(["7", "64"], 1), (["4", "2050"], 1), (["9000"], 0), (["?", "?"], 1), (["?"], 0), (["1030", "3"], 0)]
    text = Program()
    for code, element, place in cases:
        for shape, dim in shapes:
            code_of = SELECTIONS[code].replace("{T}", element).replace("{I}", place)
            text.reduce(shape, [element, place], [d for d in range(len(shape)) if d != dim], f"""%n = linalg.index {dim} : index
    %i = arith.index_cast %n : index to {place}
    {code_of}
    %r0 = arith.select %v, %o0, %a : {element}
    %r1 = arith.select %c, %o1, %i : {place}""")
    program = both(text.text(), "--recipe=none")
    assert kernels(program) == {byLanes}
    remarks = program.compile("--target=sm_89", "--recipe=none", "--remarks", "-o", "remarks.so").stderr
    assert ("runs in one thread for each result" in remarks) == (not byLanes)
    for most, initial in [(3, -np.inf), (5, 0.0), (6, -1.0), (6, np.nan)]:
        rng, inputs, first = np.random.default_rng(most), [], []
        for code, element, place in cases:
            for shape, dim in shapes:
                sizes = sizes_of(shape)
                kept = [size for d, size in enumerate(sizes) if d != dim]
                start = np.full(kept, most if element[0] == "i" else initial, NUMPY[element])
                inputs += [elements(rng, element, sizes, most), start, rng.integers(0, sizes[dim], kept).astype(NUMPY[place])]
                first.append((code, inputs[-3], dim))
        results = program.results(*inputs)
        for i, (code, x, dim) in enumerate(first):
            if code == "jax" and initial == -np.inf and most == 3:
                expected = np.where((x == -np.inf).all(dim), results[str(2 * i + 1)], x.astype(np.float32).argmax(dim))
                assert (results[str(2 * i + 1)] == expected).all()
