# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A form: one way to write a matrix product, as a function of MLIR with its meaning in numpy.

The body of a form computes `%r` from `%a`, `%b` and, if it accumulates, `%c`. `spec` describes the
product as in einsum, `dims` the order in which dimensions iterate (K dimensions are summed in
that order, the last one fastest). `lhs` and `rhs` are the functions that the program applies to
its arguments before the product, `finish` the one that it applies to the result.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

import reference
from harness import F32, MLIR_NAMES, tensor_type

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
        """The operands of the product, in the shape that the spec names."""
        wanted = zip((self.lhs, self.rhs), arguments, self.letters)
        return [f(x).reshape(self.extent_of(word)) for f, x, word in wanted]

    def contract(self, a, b, scale=None, c=None):
        value = (np.float32(1) if scale is None else scale) * reference.contract(self.spec, self.dims, a, b)
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
