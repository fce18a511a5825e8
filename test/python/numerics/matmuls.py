# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of scaled products with scales per tensor, row, block and MX block, their operands, and what must come out."""
from dataclasses import dataclass

import numpy as np
from numerics import products, reference
from numerics.conversions import DTYPES
from numerics.formats import E4M3, F32, SINGLE, Format, decode_e8m0

import harness

# By name: the blocks of the lhs [m, k] and the rhs [k, n] (None: one scale), and whether scales are E8M0.
KINDS = {
    "tensor": (None, None, False),
    "row": ((1, 0), (0, 1), False),
    "block_1d_1d": ((1, 128), (128, 1), False),
    "block_1d_2d": ((1, 128), (128, 128), False),
    "block_2d_1d": ((128, 128), (128, 1), False),
    "mx": ((1, 32), (32, 1), True),
    "mx_1d_2d": ((1, 32), (32, 32), True),
    "mx_2d_1d": ((32, 32), (32, 1), True),
}


@dataclass(frozen=True)
class Product:
    """One fp8.scaled_matmul of [m, k] and [k, n]. `lhs_order` and `rhs_order` say how an operand lies in
    memory: "mk" or "km", "kn" or "nk"."""

    kind: str
    m: int
    n: int
    k: int
    formats: tuple = (E4M3, E4M3)
    out: Format = SINGLE
    split: bool = False
    accumulate: bool = False
    lhs_order: str = "mk"
    rhs_order: str = "kn"

    def sides(self):
        """(order in memory, plain order, block, format) of lhs and rhs."""
        lhs_block, rhs_block, _ = KINDS[self.kind]
        return (self.lhs_order, "mk", lhs_block, self.formats[0]), (self.rhs_order, "kn", rhs_block, self.formats[1])

    def sizes(self, letters):
        return [getattr(self, letter) for letter in letters]

    def types(self):
        """lhs, rhs, their scale_inv, C."""
        data, scales = [], []
        for order, plain, block, fmt in self.sides():
            data.append(harness.tensor_type(self.sizes(order), DTYPES[fmt]))
            shape = reference.scale_shape(block, self.sizes(plain)) if block else []
            shape = [shape[plain.index(letter)] for letter in order] if block else []
            scales.append(harness.tensor_type(shape, harness.E8M0 if KINDS[self.kind][2] else F32))
        return [*data, *scales, harness.tensor_type([self.m, self.n], DTYPES[self.out])]

    def text(self, number):
        """The operation on arguments %a0, %b0, … and the name of its result."""
        a, b, sa, sb, c = self.types()
        maps = ", ".join(f"affine_map<(m, n, k) -> ({', '.join(word)})>" for word in (self.lhs_order, self.rhs_order, "mn"))
        blocks = ""
        for side, (order, plain, block, _) in zip(("lhs", "rhs"), self.sides()):
            if block:
                blocks += f", {side}_block = array<i64: {', '.join(str(block[plain.index(letter)]) for letter in order)}>"
        accumulate = "accumulate " if self.accumulate else ""
        return (
            f"  %e{number} = tensor.empty() : {c}\n"
            f"  %r{number} = fp8.scaled_matmul {'split' if self.split else 'fast'} {accumulate}ins(%a{number}, %b{number} : {a}, {b})\n"
            f"      scales(%sa{number}, %sb{number} : {sa}, {sb}) outs({'%c' if self.accumulate else '%e'}{number} : {c})\n"
            f"      {{indexing_maps = [{maps}]{blocks}}} -> {c}"
        )

    def operands(self, rng, spread=4):
        """Any finite FP8 bytes, scales within 2^±spread, in memory order."""
        values = []
        for _, plain, _, fmt in self.sides():
            codes = rng.integers(0, 256, self.sizes(plain), dtype=np.uint8)
            codes = np.where(np.isfinite(fmt.decode(codes)), codes, 0).astype(np.uint8)
            values.append(codes)
        for _, plain, block, _ in self.sides():
            shape = reference.scale_shape(block, self.sizes(plain)) if block else []
            if KINDS[self.kind][2]:
                values.append(rng.integers(127 - spread, 128 + spread, shape, dtype=np.uint8))
            else:
                values.append((2.0 ** rng.uniform(-spread, spread, shape)).astype(np.float32))
        values.append((rng.standard_normal([self.m, self.n]) * 100).astype(np.float32).astype(DTYPES[self.out]))
        return values

    def inputs(self, operands):
        """The operands as the arguments of the program."""
        a, b, sa, sb, c = operands
        lie = lambda array, order, plain: np.array(array if order == plain else array.T, order="C")
        scale = harness.E8M0 if KINDS[self.kind][2] else F32
        return [
            lie(a, self.lhs_order, "mk").view(DTYPES[self.formats[0]]),
            lie(b, self.rhs_order, "kn").view(DTYPES[self.formats[1]]),
            lie(np.asarray(sa), self.lhs_order, "mk").view(scale),
            lie(np.asarray(sb), self.rhs_order, "kn").view(scale),
            c,
        ]

    def expected(self, operands):
        """The codes of the result."""
        a, b, sa, sb, c = operands
        a, b = self.formats[0].decode(a).astype(F32), self.formats[1].decode(b).astype(F32).T
        lhs_block, rhs_block, is_mx = KINDS[self.kind]
        if is_mx:
            sa, sb = decode_e8m0(sa).astype(F32), decode_e8m0(sb).astype(F32)
        if lhs_block:  # one row of scales per m and per n, as products.py wants them
            sa = np.repeat(sa, lhs_block[0], axis=0)[: self.m]
            sb = np.repeat(sb.T, rhs_block[1], axis=0)[: self.n]
        added = c.astype(F32) if self.accumulate else None
        if self.kind.startswith("block"):
            value = products.block_product(a, b, sa, sb, rhs_first=self.kind == "block_2d_1d", added=added)
        elif is_mx:
            value = products.mx_product(a, b, sa, sb, self.split, added)
        else:
            value = products.scaled_product(a, b, sa, sb, self.split, added)
        return self.out.round(value)


def entry(name, cases):
    """A function that computes all of the cases; its arguments are those of the first, of the second, …"""
    arguments = [
        f"%{word}{i}: {type_}" for i, case in enumerate(cases) for word, type_ in zip(("a", "b", "sa", "sb", "c"), case.types())
    ]
    types = ", ".join(case.types()[-1] for case in cases)
    body = "\n".join(case.text(i) for i, case in enumerate(cases))
    values = ", ".join(f"%r{i}" for i in range(len(cases)))
    return f"func.func @{name}({', '.join(arguments)}) -> ({types}) {{\n{body}\n  return {values} : {types}\n}}\n"


def check(program, name, cases, operands):
    """One call of `entry`, every result bit for bit; NaN is NaN."""
    inputs = [array for case, of in zip(cases, operands) for array in case.inputs(of)]
    for case, of, got in zip(cases, operands, program.call(name, *inputs)):
        wanted = case.expected(of)
        codes = got.view(wanted.dtype)
        differ = codes != wanted
        differ &= ~(np.isnan(got.astype(F32)) & np.isnan(wanted.view(got.dtype).astype(F32)))
        wrong = np.argwhere(differ)
        where = [(tuple(map(int, at)), got[tuple(at)], wanted.view(got.dtype)[tuple(at)]) for at in wrong[:4]]
        assert not len(wrong), f"{case}: {len(wrong)} of {wanted.size} differ (place, got, expected): {where}"
