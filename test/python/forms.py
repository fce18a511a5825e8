# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ways to write one matrix product, each as a function of MLIR with its meaning in numpy.

A form's body computes `%r` from `%a`, `%b` and, where it adds to something, `%c`; `spec` says as
in einsum what it multiplies, `dims` in what order dimensions iterate (K dimensions are summed in
that order, the last one fastest). `lhs` and `rhs` say what the program makes of its arguments
before it multiplies them, `finish` what it makes of the product.
"""

import re
from dataclasses import dataclass, field
from typing import Callable

import numpy as np

import reference
from harness import BF16, F16, F32, MLIR_NAMES, tensor_type

F64 = np.dtype(np.float64)
SIZES = {"b": 3, "c": 2, "m": 6, "p": 4, "n": 5, "q": 2, "k": 12, "l": 3, "u": 1, "o": 1}


def same(x):
    return x


@dataclass
class Form:
    name: str
    spec: str
    body: str
    dims: str = ""
    types: tuple = (F32, F32)  # of the arguments
    out: np.dtype = F32  # of the result
    shapes: tuple = ()  # of the arguments, where they are not those of the spec
    shape: tuple = None  # of the result, likewise
    sizes: dict = field(default_factory=dict)
    added: np.dtype = None  # element type of %c: the product is added to it
    lhs: Callable = same
    rhs: Callable = same
    finish: Callable = same
    product: np.dtype = F32  # what sums are rounded to before `finish`
    kept: bool = False  # no recipe makes it FP8
    extents: dict = field(default_factory=dict)  # batch, m, n and k in the report, where the spec differs

    def __post_init__(self):
        self.letters = self.spec.replace("->", ",").split(",")
        self.sizes = SIZES | self.sizes
        self.dims = self.dims or "".join(dict.fromkeys(self.letters[2] + self.letters[0] + self.letters[1]))
        self.shapes = self.shapes or tuple(self.extent_of(word) for word in self.letters[:2])
        self.shape = self.extent_of(self.letters[2]) if self.shape is None else self.shape

    def extent_of(self, word):
        return tuple(self.sizes[d] for d in word)

    def function(self):
        words = [(*self.shapes, self.shape), (*self.types, self.out)]
        names = dict(zip("ABR", (tensor_type(shape, dtype) for shape, dtype in zip(*words))))
        added = tensor_type(self.extent_of(self.letters[2]), self.added) if self.added else ""
        body = self.body.replace("!C", added)
        for letter, text in names.items():
            body = body.replace("!" + letter, text).replace("?" + letter, re.split("[x<]", text.rstrip(">"))[-1])
        arguments = f"%a: {names['A']}, %b: {names['B']}" + (f", %c: {added}" if added else "")
        return f"func.func @{self.name}({arguments}) -> {names['R']} {{\n{body}\n  return %r : {names['R']}\n}}\n"

    def arguments(self, rng):
        """Multiples of a quarter: their products and sums are exact in f32, in any order."""
        wanted = [*zip(self.shapes, self.types)]
        if self.added:
            wanted.append((self.extent_of(self.letters[2]), self.added))
        return [(rng.integers(-12, 13, shape) / 4).astype(dtype) for shape, dtype in wanted]

    def operands(self, arguments):
        """What is multiplied, in the shape that the spec names."""
        wanted = zip((self.lhs, self.rhs), arguments, self.letters)
        return [f(x).reshape(self.extent_of(word)) for f, x, word in wanted]

    def contract(self, a, b, scale=np.float32(1), c=None):
        value = scale * reference.contract(self.spec, self.dims, a, b)
        if c is not None:
            value = value + c.astype(F32)
        return self.finish(value.astype(self.product)).astype(self.out).reshape(self.shape)

    def extent(self, role):
        where = {"batch": (1, 1, 1), "m": (1, 0, 1), "n": (0, 1, 1), "k": (1, 1, 0)}[role]
        dims = [d for d in self.dims if tuple(int(d in word) for word in self.letters) == where]
        return self.extents.get(role, int(np.prod(self.extent_of(dims), dtype=np.int64)))


# ----- Text of single operations -----


def zeros(name, ttype):
    """%name: zeros."""
    element = ttype.replace("!", "?") if ttype[0] == "!" else re.split("[x<]", ttype.rstrip(">"))[-1]
    return (
        f"  %{name}_z = arith.constant 0.0 : {element}\n  %{name}_e = tensor.empty() : {ttype}\n"
        f"  %{name} = linalg.fill ins(%{name}_z : {element}) outs(%{name}_e : {ttype}) -> {ttype}\n"
    )


def maps(dims, *words):
    text = [f"affine_map<({', '.join(dims)}) -> ({', '.join(word)})>" for word in words]
    return f"indexing_maps = [{', '.join(text)}]"


def generic(name, dims, words, ins, outs, body, types, extra=""):
    """A linalg.generic: `ins` and `outs` as (value, tensor type), `types` those of its block arguments;
    dimensions that the last word lacks are summed."""
    iterators = ", ".join('"parallel"' if d in words[-1] else '"reduction"' for d in dims)
    values, kinds = (", ".join(part) for part in zip(*ins)) if ins else ("", "")
    arguments = ", ".join(f"%{v}: {t}" for v, t in zip("xyzw", types[:-1]))
    arguments += (", " if arguments else "") + f"%acc: {types[-1]}"
    lines = "\n    ".join(body.split("; "))
    return (
        f"  %{name} = linalg.generic {{{maps(dims, *words)}, iterator_types = [{iterators}]}}\n"
        + (f"      ins({values} : {kinds})" if ins else "")
        + f" outs({outs[0]} : {outs[1]}) {extra}{{\n  ^bb0({arguments}):\n    {lines}\n  }} -> {outs[1]}\n"
    )


def transpose(name, value, source, target, permutation):
    return (
        f"  %{name}_e = tensor.empty() : {target}\n  %{name} = linalg.transpose ins({value} : {source}) "
        f"outs(%{name}_e : {target}) permutation = {list(permutation)}\n"
    )


def cast(name, value, shape, source, target):
    """An elementwise cast of its own, as exporters write it."""
    dims = "defgh"[: len(shape)]
    op = "extf" if np.dtype(target).itemsize > np.dtype(source).itemsize else "truncf"
    old, new = MLIR_NAMES[np.dtype(source)], MLIR_NAMES[np.dtype(target)]
    body = f"%cast = arith.{op} %x : {old} to {new}; linalg.yield %cast : {new}"
    return f"  %{name}_e = tensor.empty() : {tensor_type(shape, target)}\n" + generic(
        name,
        dims,
        (dims, dims),
        [(value, tensor_type(shape, source))],
        (f"%{name}_e", tensor_type(shape, target)),
        body,
        (old, new),
    )


def product(op, init="%i", a="%a", b="%b", ta="!A", tb="!B", tr="!R", name="r", attributes=""):
    return f"  %{name} = linalg.{op} {attributes}ins({a}, {b} : {ta}, {tb}) outs({init} : {tr}) -> {tr}\n"


def named(op, **options):
    """A named operation on zeros."""
    return zeros("i", "!R") + product(op, **options)


def summed(dims, words, body, types=("f32",) * 3, init=None):
    return (zeros("i", "!R") if init is None else "") + generic(
        "r", dims, words, [("%a", "!A"), ("%b", "!B")], (init or "%i", "!R"), body, types
    )


MULTIPLY_ADD = "%p = arith.mulf %x, %y : f32; %s = arith.addf %acc, %p : f32; linalg.yield %s : f32"

WIDEN = "%u = arith.extf %x : {0} to f32; %v = arith.extf %y : {0} to f32; "


def named_forms():
    """Operations by name, and linalg.contract."""
    mm = ("mk", "kn", "mn")
    forms = [
        Form("matmul", "mk,kn->mn", named("matmul")),
        Form("matmul_tn", "km,kn->mn", named("matmul", attributes=maps("mnk", "km", "kn", "mn") + "\n")),
        Form("matmul_nt", "mk,nk->mn", named("matmul", attributes=maps("mnk", "mk", "nk", "mn") + "\n")),
        Form("matmul_tt", "km,nk->mn", named("matmul", attributes=maps("mnk", "km", "nk", "mn") + "\n")),
        Form("batch_matmul", "bmk,bkn->bmn", named("batch_matmul")),
        Form(
            "batch_matmul_ta",
            "bkm,bkn->bmn",
            named("batch_matmul", attributes=maps("bmnk", "bkm", "bkn", "bmn") + "\n"),
        ),
        Form(
            "batch_matmul_tb",
            "bmk,bnk->bmn",
            named("batch_matmul", attributes=maps("bmnk", "bmk", "bnk", "bmn") + "\n"),
        ),
        Form(
            "batch_matmul_shared",
            "bmk,kn->bmn",
            named("batch_matmul", attributes=maps("bmnk", "bmk", "kn", "bmn") + "\n"),
        ),
        Form("batch_reduce_matmul", "bmk,bkn->mn", named("batch_reduce_matmul"), dims="bmnk"),
        Form("matvec", "mk,k->m", named("matvec")),
        Form("vecmat", "k,kn->n", named("vecmat")),
        Form("batch_matvec", "bmk,bk->bm", named("batch_matvec")),
        Form("batch_vecmat", "bk,bkn->bn", named("batch_vecmat")),
        Form("dot", "k,k->", named("dot")),
        Form("mmt4d", "mkpl,nkql->mnpq", named("mmt4d"), dims="mnkpql"),
        Form("batch_mmt4d", "bmkpl,bnkql->bmnpq", named("batch_mmt4d"), dims="bmnkpql"),
        Form("contract", "mk,kn->nm", named("contract", attributes=maps("mnk", "mk", "kn", "nm") + " ")),
        Form(
            "contract_many",
            "bmlpk,lkqbn->pbnqm",
            named("contract", attributes=maps("bmpnqlk", "bmlpk", "lkqbn", "pbnqm") + " "),
            dims="bmpnqlk",
        ),
    ]
    for half in (BF16, F16):
        for out in (half, F32):
            name = f"matmul_{MLIR_NAMES[half]}_{MLIR_NAMES[out]}"
            forms.append(Form(name, "mk,kn->mn", named("matmul"), types=(half, half), out=out, product=out))
    return forms


def generic_forms():
    """linalg.generic: what its body may look like."""
    words, spec = ("mk", "kn", "mn"), "mk,kn->mn"
    narrow = "%p = arith.mulf %u, %v : f32; %s = arith.addf %acc, %p : f32; linalg.yield %s : f32"
    bodies = {
        "generic": MULTIPLY_ADD,
        "swapped_factors": MULTIPLY_ADD.replace("%x, %y", "%y, %x"),
        "swapped_sum": MULTIPLY_ADD.replace("%acc, %p", "%p, %acc"),
        "fast_math": MULTIPLY_ADD.replace("%x, %y", "%x, %y fastmath<reassoc,contract>").replace(
            "%acc, %p", "%acc, %p fastmath<fast>"
        ),
        "fma": "%s = math.fma %x, %y, %acc : f32; linalg.yield %s : f32",
    }
    forms = [Form(name, spec, summed("mnk", words, body)) for name, body in bodies.items()]
    negated = {
        "negated_factor": "%n = arith.negf %x : f32; %p = arith.mulf %n, %y : f32; %s = arith.addf %acc, %p : f32",
        "negated_other_factor": "%n = arith.negf %y : f32; %p = arith.mulf %x, %n : f32; %s = arith.addf %acc, %p : f32",
        "negated_product": "%p = arith.mulf %x, %y : f32; %n = arith.negf %p : f32; %s = arith.addf %acc, %n : f32",
        "subtracted": "%p = arith.mulf %x, %y : f32; %s = arith.subf %acc, %p : f32",
    }
    for name, body in negated.items():
        forms.append(Form(name, spec, summed("mnk", words, body + "; linalg.yield %s : f32"), lhs=np.negative))
    scaled = "%h = arith.constant 0.5 : f32; %n = arith.mulf %x, %h : f32; %p = arith.mulf %n, %y : f32; %s = arith.addf %acc, %p : f32; linalg.yield %s : f32"
    forms += [
        Form("scaled_factor", spec, summed("mnk", words, scaled), lhs=lambda x: x / 2),
        Form(
            "cast_inside",
            spec,
            summed("mnk", words, WIDEN.format("bf16") + narrow, ("bf16", "bf16", "f32")),
            types=(BF16, BF16),
        ),
        Form(
            "one_cast_inside",
            spec,
            summed(
                "mnk",
                words,
                "%u = arith.extf %x : f16 to f32; %p = arith.mulf %u, %y : f32; %s = arith.addf %acc, %p : f32; linalg.yield %s : f32",
                ("f16", "f32", "f32"),
            ),
            types=(F16, F32),
        ),
        Form(
            "rounded_inside",
            spec,
            summed(
                "mnk",
                words,
                "%n = arith.truncf %x : f32 to bf16; %u = arith.extf %n : bf16 to f32; %p = arith.mulf %u, %y : f32; %s = arith.addf %acc, %p : f32; linalg.yield %s : f32",
            ),
            lhs=lambda x: x.astype(BF16),
        ),
        Form(
            "narrow_accumulator",
            spec,
            summed("mnk", words, MULTIPLY_ADD.replace("f32", "bf16"), ("bf16",) * 3),
            types=(BF16, BF16),
            out=BF16,
            product=BF16,
        ),
        Form(
            "narrow_yield",
            spec,
            summed(
                "mnk",
                words,
                WIDEN.format("bf16")
                + "%c = arith.extf %acc : bf16 to f32; "
                + narrow.replace("%acc", "%c").replace(
                    "linalg.yield %s : f32", "%t = arith.truncf %s : f32 to bf16; linalg.yield %t : bf16"
                ),
                ("bf16",) * 3,
            ),
            types=(BF16, BF16),
            out=BF16,
            product=BF16,
        ),
        Form(
            "several_dims",
            "bcmpkl,nklcbq->cnmbqp",
            summed("bcmpnqkl", ("bcmpkl", "nklcbq", "cnmbqp"), MULTIPLY_ADD),
            dims="bcmpnqkl",
        ),
        Form(
            "integers_converted_inside",
            spec,
            summed(
                "mnk",
                words,
                "%v = arith.sitofp %y : i32 to f32; %p = arith.mulf %x, %v : f32; %s = arith.addf %acc, %p : f32; linalg.yield %s : f32",
                ("f32", "i32", "f32"),
            ),
            types=(F32, np.dtype(np.int32)),
            rhs=lambda b: b.astype(F32),
        ),
        Form(
            "f64_into_f32",
            spec,
            summed(
                "mnk",
                words,
                "%e = arith.extf %acc : f32 to f64; %p = arith.mulf %x, %y : f64; %s = arith.addf %e, %p : f64; %t = arith.truncf %s : f64 to f32; linalg.yield %t : f32",
                ("f64", "f64", "f32"),
            ),
            types=(F64, F64),
            kept=True,
        ),
        Form(
            "f64_added_to_bf16",
            spec,
            summed(
                "mnk",
                words,
                "%e = arith.extf %acc : bf16 to f64; %p = arith.mulf %x, %y : f64; %s = arith.addf %e, %p : f64; %t = arith.truncf %s : f64 to bf16; linalg.yield %t : bf16",
                ("f64", "f64", "bf16"),
                init="%c",
            ),
            types=(F64, F64),
            out=BF16,
            added=BF16,
            kept=True,
        ),
        Form("k_first", "mkl,lkn->mn", summed("lmkn", ("mkl", "lkn", "mn"), MULTIPLY_ADD), dims="lmkn"),
        Form("unit_dims", "umk,kno->uomn", summed("uomnk", ("umk", "kno", "uomn"), MULTIPLY_ADD)),
        Form("unit_k", "mu,un->mn", summed("mnu", ("mu", "un", "mn"), MULTIPLY_ADD)),
    ]
    for letter in "mnk":
        forms.append(Form(f"zero_{letter}", spec, named("matmul"), sizes={letter: 0}))
    forms.append(Form("zero_batch", "bmk,bkn->bmn", named("batch_matmul"), sizes={"b": 0}))
    return forms


def surrounded_forms():
    """Views, casts and transposes around a product."""
    spec = "mk,kn->mn"
    s = SIZES
    f32 = lambda word: tensor_type([s[d] for d in word], F32)
    bf16 = lambda word: tensor_type([s[d] for d in word], BF16)
    turn = transpose("t", "%b", "!B", f32("kn"), (1, 0))
    forms = [
        Form("transposed_weight", "mk,nk->mn", turn + named("matmul", b="%t", tb=f32("kn"))),
        Form(
            "generic_transpose",
            "mk,nk->mn",
            f"  %te = tensor.empty() : {f32('kn')}\n"
            + generic(
                "t", "kn", ("nk", "kn"), [("%b", "!B")], ("%te", f32("kn")), "linalg.yield %x : f32", ("f32", "f32")
            )
            + named("matmul", b="%t", tb=f32("kn")),
        ),
        Form(
            "transpose_chain",
            "mk,lnk->mln",
            transpose("t1", "%b", "!B", f32("nkl"), (1, 2, 0))
            + transpose("t2", "%t1", f32("nkl"), f32("kln"), (1, 2, 0))
            + named("contract", attributes=maps("mlnk", "mk", "kln", "mln") + " ", b="%t2", tb=f32("kln")),
        ),
        Form(
            "transposed_result",
            "mk,kn->nm",
            zeros("i", f32("mn"))
            + product("matmul", name="y", tr=f32("mn"))
            + transpose("r", "%y", f32("mn"), "!R", (1, 0)),
        ),
        Form(
            "extended_operands",
            spec,
            cast("u", "%a", (s["m"], s["k"]), BF16, F32)
            + cast("v", "%b", (s["k"], s["n"]), BF16, F32)
            + named("matmul", a="%u", b="%v", ta=f32("mk"), tb=f32("kn")),
            types=(BF16, BF16),
        ),
        Form(
            "linear_of_pytorch",
            "mk,nk->mn",
            transpose("t", "%b", "!B", bf16("kn"), (1, 0))
            + cast("u", "%a", (s["m"], s["k"]), BF16, F32)
            + cast("v", "%t", (s["k"], s["n"]), BF16, F32)
            + zeros("i", f32("mn"))
            + product("matmul", name="y", a="%u", b="%v", ta=f32("mk"), tb=f32("kn"), tr=f32("mn"))
            + cast("r", "%y", (s["m"], s["n"]), F32, BF16),
            types=(BF16, BF16),
            out=BF16,
            product=BF16,
        ),
        Form(
            "rounded_operand",
            spec,
            cast("u", "%a", (s["m"], s["k"]), F32, BF16) + named("matmul", a="%u", ta=bf16("mk")),
            types=(F32, BF16),
            lhs=lambda x: x.astype(BF16),
        ),
        Form(
            "rounded_result",
            spec,
            zeros("i", f32("mn"))
            + product("matmul", name="y", tr=f32("mn"))
            + cast("r", "%y", (s["m"], s["n"]), F32, F16),
            out=F16,
            product=F16,
        ),
        Form(
            "rounded_result_in_use_twice",
            spec,
            zeros("i", f32("mn"))
            + product("matmul", name="y", tr=f32("mn"))
            + cast("h", "%y", (s["m"], s["n"]), F32, BF16)
            + cast("w", "%h", (s["m"], s["n"]), BF16, F32)
            + "  %r = arith.addf %y, %w : !R\n",
            finish=lambda y: y + y.astype(BF16).astype(F32),
        ),
        Form(
            "collapsed",
            "bmk,kn->bmn",
            f"  %u = tensor.collapse_shape %a [[0, 1], [2]] : !A into tensor<18x12xf32>\n"
            + zeros("i", "tensor<18x5xf32>")
            + product("matmul", name="y", a="%u", ta="tensor<18x12xf32>", tr="tensor<18x5xf32>")
            + "  %r = tensor.expand_shape %y [[0, 1], [2]] output_shape [3, 6, 5] : tensor<18x5xf32> into !R\n",
        ),
        Form(
            "collapsed_k",
            "blm,bln->mn",
            "  %u = tensor.collapse_shape %a [[0, 1], [2]] : !A into tensor<9x6xf32>\n  %v = tensor.collapse_shape %b [[0, 1], [2]] : !B into tensor<9x5xf32>\n"
            + named(
                "matmul",
                a="%u",
                b="%v",
                ta="tensor<9x6xf32>",
                tb="tensor<9x5xf32>",
                attributes=maps("mnk", "km", "kn", "mn") + "\n",
            ),
        ),
        Form(
            "expanded_operand",
            "bmk,kn->bmn",
            "  %u = tensor.expand_shape %a [[0, 1], [2]] output_shape [3, 6, 12] : !A into tensor<3x6x12xf32>\n"
            + named("contract", attributes=maps("bmnk", "bmk", "kn", "bmn") + " ", a="%u", ta="tensor<3x6x12xf32>"),
            shapes=((18, 12), (12, 5)),
        ),
        Form(
            "unit_dims_by_reshape",
            spec,
            "  %u = tensor.expand_shape %a [[0, 1], [2]] output_shape [1, 6, 12] : !A into tensor<1x6x12xf32>\n  %v = tensor.expand_shape %b [[0, 1], [2]] output_shape [1, 12, 5] : !B into tensor<1x12x5xf32>\n"
            + zeros("i", "tensor<1x6x5xf32>")
            + product(
                "batch_matmul",
                name="y",
                a="%u",
                b="%v",
                ta="tensor<1x6x12xf32>",
                tb="tensor<1x12x5xf32>",
                tr="tensor<1x6x5xf32>",
            )
            + "  %r = tensor.collapse_shape %y [[0, 1], [2]] : tensor<1x6x5xf32> into !R\n",
        ),
        Form(
            "cast_to_dynamic",
            spec,
            "  %u = tensor.cast %a : !A to tensor<?x12xf32>\n  %z = arith.constant 0.0 : f32\n  %n = arith.constant 6 : index\n  %e = tensor.empty(%n) : tensor<?x5xf32>\n  %i = linalg.fill ins(%z : f32) outs(%e : tensor<?x5xf32>) -> tensor<?x5xf32>\n"
            + product("matmul", name="y", a="%u", ta="tensor<?x12xf32>", tr="tensor<?x5xf32>")
            + "  %r = tensor.cast %y : tensor<?x5xf32> to !R\n",
        ),
        Form(
            "sliced_weight",
            spec,
            "  %v = tensor.extract_slice %b[2, 0, 1] [1, 12, 5] [1, 1, 2] : !B to tensor<12x5xf32>\n"
            + named("matmul", b="%v", tb="tensor<12x5xf32>"),
            shapes=((6, 12), (4, 12, 11)),
            rhs=lambda b: b[2, :, 1::2],
        ),
        Form(
            "sliced_result",
            spec,
            zeros("i", "tensor<6x7xf32>")
            + product("matmul", name="y", tr="tensor<6x7xf32>")
            + "  %r = tensor.extract_slice %y[0, 1] [6, 5] [1, 1] : tensor<6x7xf32> to !R\n",
            shapes=((6, 12), (12, 7)),
            rhs=lambda b: b[:, 1:6],
            extents={"n": 7},
        ),
        Form(
            "broadcast_weight",
            "bmk,kn->bmn",
            f"  %we = tensor.empty() : {f32('bkn')}\n"
            + generic(
                "w", "bkn", ("kn", "bkn"), [("%b", "!B")], ("%we", f32("bkn")), "linalg.yield %x : f32", ("f32", "f32")
            )
            + named("batch_matmul", b="%w", tb=f32("bkn")),
        ),
        Form(
            "broadcast_named",
            "bmk,kn->bmn",
            f"  %we = tensor.empty() : {f32('bkn')}\n  %w = linalg.broadcast ins(%b : !B) outs(%we : {f32('bkn')}) dimensions = [0]\n"
            + named("batch_matmul", b="%w", tb=f32("bkn")),
        ),
        Form(
            "times_one",
            spec,
            f"  %one = arith.constant 1.0 : f32\n  %ue = tensor.empty() : !A\n"
            + generic(
                "u",
                "mk",
                ("mk", "mk"),
                [("%a", "!A")],
                ("%ue", "!A"),
                "%m = arith.mulf %x, %one : f32; linalg.yield %m : f32",
                ("f32", "f32"),
            )
            + named("matmul", a="%u"),
        ),
        Form(
            "copied_operand",
            spec,
            "  %ue = tensor.empty() : !A\n  %u = linalg.copy ins(%a : !A) outs(%ue : !A) -> !A\n"
            + named("matmul", a="%u"),
        ),
    ]
    return forms


def packed_forms():
    """linalg.mmt4d with its operands packed into tiles, padded or not."""
    a, b, c, p, i = (
        "tensor<6x12xf32>",
        "tensor<12x5xf32>",
        "tensor<6x5xf32>",
        "tensor<{}x4x{}x3xf32>",
        "tensor<{}x{}x{}x{}xf32>",
    )

    def body(m, n, tile_m, tile_n):
        pad = "padding_value(%z : f32) " if m * tile_m != 6 or n * tile_n != 5 else ""
        pa, pb, pc = p.format(m, tile_m), p.format(n, tile_n), i.format(m, n, tile_m, tile_n)
        return (
            f"  %z = arith.constant 0.0 : f32\n  %pae = tensor.empty() : {pa}\n  %pbe = tensor.empty() : {pb}\n  %re = tensor.empty() : {c}\n"
            + f"  %pa = linalg.pack %a {pad}inner_dims_pos = [0, 1] inner_tiles = [{tile_m}, 3] into %pae : {a} -> {pa}\n"
            + f"  %pb = linalg.pack %b {pad}outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] inner_tiles = [{tile_n}, 3] into %pbe : {b} -> {pb}\n"
            + zeros("i", pc)
            + product("mmt4d", name="y", a="%pa", b="%pb", ta=pa, tb=pb, tr=pc)
            + f"  %r = linalg.unpack %y inner_dims_pos = [0, 1] inner_tiles = [{tile_m}, {tile_n}] into %re : {pc} -> {c}\n"
        )

    return [
        Form("packed", "mk,kn->mn", body(3, 1, 2, 5)),
        Form("packed_and_padded", "mk,kn->mn", body(2, 2, 4, 3), extents={"m": 8, "n": 6}),
    ]


def added_forms():
    """What the products are added to."""
    spec = "mk,kn->mn"
    forms = [
        Form("residual", spec, product("matmul", init="%c"), added=F32),
        Form(
            "residual_bf16", spec, product("matmul", init="%c"), added=BF16, types=(BF16, BF16), out=BF16, product=BF16
        ),
        Form(
            "residual_subtracted",
            spec,
            summed("mnk", ("mk", "kn", "mn"), MULTIPLY_ADD.replace("addf", "subf"), init="%c"),
            added=F32,
            lhs=np.negative,
        ),
        Form(
            "bias_as_init",
            "mk,kn->mn",
            "  %e = tensor.empty() : !R\n  %h = arith.constant dense<[1.0, 2.0, -3.0, 0.5, 8.0]> : tensor<5xf32>\n  %i = linalg.broadcast ins(%h : tensor<5xf32>) outs(%e : !R) dimensions = [0]\n"
            + product("matmul"),
            finish=lambda y: y + np.array([1, 2, -3, 0.5, 8], F32),
        ),
        Form(
            "filled_with_ones",
            spec,
            "  %o = arith.constant 1.0 : f32\n  %e = tensor.empty() : !R\n  %i = linalg.fill ins(%o : f32) outs(%e : !R) -> !R\n"
            + product("matmul"),
            finish=lambda y: y + np.float32(1),
        ),
        Form("zeros_constant", spec, "  %i = arith.constant dense<0.0> : !R\n" + product("matmul")),
        Form(
            "zeros_shared",
            spec,
            named("matmul", name="y") + product("matmul", name="v") + "  %r = arith.addf %y, %v : !R\n",
            finish=lambda y: y + y,
        ),
        Form(
            "zeros_behind_views",
            spec,
            zeros("h", "tensor<30xf32>")
            + "  %i = tensor.expand_shape %h [[0, 1]] output_shape [6, 5] : tensor<30xf32> into !R\n"
            + product("matmul"),
        ),
        Form("residual_after", spec, named("matmul", name="y") + "  %r = arith.addf %y, %c : !R\n", added=F32),
        Form(
            "transposed_residual",
            "mk,kn->nm",
            product("contract", init="%c", attributes=maps("mnk", "mk", "kn", "nm") + " "),
            added=F32,
        ),
    ]
    return forms


def broadcasting_forms():
    """Dimensions that only one value has: the product is repeated, or an operand is."""
    row = maps("mnk", "k", "kn", "mn") + "\n"
    return [
        Form(
            "repeated_result",
            "k,kn->n",
            named("matmul", attributes=row),
            shape=(6, 5),
            finish=lambda y: np.broadcast_to(y, (6, 5)),
        ),
        Form(
            "repeated_result_added",
            "k,kn->n",
            zeros("z", "!R") + "  %o = arith.constant dense<1.5> : !R\n" + product("matmul", init="%o", attributes=row),
            shape=(6, 5),
            finish=lambda y: np.broadcast_to(y, (6, 5)) + np.float32(1.5),
        ),
        Form(
            "operand_without_a_k",
            "mkl,knl->mn",
            summed("mnkl", ("mkl", "kn", "mn"), MULTIPLY_ADD),
            dims="mnkl",
            shapes=((6, 12, 3), (12, 5)),
            rhs=lambda b: np.repeat(b[:, :, None], 3, 2),
        ),
    ]


def two_operation_forms():
    """A multiplication and a sum of its own, as PyTorch writes a matrix times a vector."""
    f32 = lambda word: tensor_type([SIZES[d] for d in word], F32)
    multiply = lambda dims, first, second: f"  %pe = tensor.empty() : {f32(dims)}\n" + generic(
        "p",
        dims,
        (first, second, dims),
        [("%a", "!A"), ("%b", "!B")],
        (f"%pe", f32(dims)),
        "%m = arith.mulf %x, %y : f32; linalg.yield %m : f32",
        ("f32",) * 3,
    )
    add = lambda dims, word: zeros("i", "!R") + generic(
        "r",
        dims,
        (dims, word),
        [("%p", f32(dims))],
        ("%i", "!R"),
        "%s = arith.addf %x, %acc : f32; linalg.yield %s : f32",
        ("f32",) * 2,
    )
    return [
        Form("matvec_in_two", "mk,k->m", multiply("mk", "mk", "k") + add("mk", "m")),
        Form("matmul_in_two", "mk,kn->mn", multiply("mnk", "mk", "kn") + add("mnk", "mn")),
        Form(
            "reduce_by_name",
            "mk,k->m",
            multiply("mk", "mk", "k")
            + zeros("i", "!R")
            + f"  %r = linalg.reduce {{ arith.addf }} ins(%p : {f32('mk')}) outs(%i : !R) dimensions = [1]\n",
        ),
    ]


def build_forms():
    groups = (
        named_forms,
        generic_forms,
        surrounded_forms,
        packed_forms,
        added_forms,
        broadcasting_forms,
        two_operation_forms,
    )
    return {form.name: form for group in groups for form in group()}
