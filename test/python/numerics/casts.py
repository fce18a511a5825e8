# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that cast by rows, blocks and MX blocks, the tensors that they are tried on, and what must come out."""

from dataclasses import dataclass

import numpy as np
from numerics import reference, stochastic
from numerics.conversions import DTYPES
from numerics.formats import E4M3, F32, SINGLE, Format, cast

import harness


def hostile(rng, shape, dtype):
    """Heavy tails, and runs of 8 to 200 elements, along rows and along columns, that are zero, -0, subnormal,
    tiny, huge, or hold an Inf or a NaN."""
    x = rng.standard_normal(shape) * 10.0 ** (rng.standard_normal(shape) * rng.choice([0.5, 3]))
    smallest = float(np.finfo(dtype).smallest_subnormal) if dtype == np.float16 else 2.0**-133 if dtype != np.float32 else 2.0**-149
    for _ in range(1 + x.size // 500):
        if not x.size:
            break
        fill = rng.choice([0.0, -0.0, 5 * smallest, -1e-38, 3e38, 1.0, np.inf, -np.inf, np.nan])
        at = [int(rng.integers(size)) for size in shape]
        run = [slice(i, i + 1) for i in at]
        axis = rng.integers(len(shape))
        run[axis] = slice(at[axis], at[axis] + int(rng.integers(8, 200)))
        if np.isfinite(fill):
            x[tuple(run)] = fill
        else:
            x[tuple(at)] = fill
    return x.astype(np.float32).astype(dtype)


def row_rule(**options):
    return lambda amaxes, fmt, source: reference.current_scale(amaxes, fmt, **options)


def block_rule(**options):
    return lambda amaxes, fmt, source: reference.block_scale(amaxes, fmt, source, **options)


ROWS, BLOCKS, MX_BLOCKS = [(1, 0), (0, 1)], [(1, 128), (128, 1), (128, 128)], [(1, 32), (32, 1), (32, 32)]

# By name: the attribute, the blocks that it is used with, and the rule of its scales (None: MX).
RECIPES = {
    "row": ("#fp8.row_scaling", ROWS, row_rule()),
    "row_power": ("#fp8.row_scaling<power_2_scale = true, eps = 1.0e-3>", ROWS, row_rule(power_2_scale=True, eps=1e-3)),
    "block": ("#fp8.block_scaling", BLOCKS, block_rule()),
    "block_f32": ("#fp8.block_scaling<power_2_scale = false>", BLOCKS, block_rule(power_2_scale=False)),
    "block_eps": ("#fp8.block_scaling<eps = 2.0e-2, power_2_scale = false>", BLOCKS, block_rule(power_2_scale=False, eps=2e-2)),
    "mx": ("#fp8.mx_scaling", MX_BLOCKS, None),
}


@dataclass(frozen=True)
class BlockCast:
    """One fp8.quantize_blocks: `directions` are (block, permutation) of a tensor of `source` elements."""

    recipe: str
    directions: tuple
    fmt: Format = E4M3
    source: Format = SINGLE
    random: str = ""  # random and stream of the operation, where it rounds stochastically

    def expected(self, x, fractions=None):
        """Data (bytes) and scale_inv of every direction; `fractions` for stochastic rounding."""
        to_whole = np.rint if fractions is None else stochastic.up_below(fractions)
        cast_block = lambda values, scale, fmt: cast(values, scale, fmt, to_whole)
        _, _, rule = RECIPES[self.recipe]
        results = []
        for block, permutation in self.directions:
            if rule is None:
                pair = reference.quantize_mx(x, block, self.fmt, cast_block=cast_block)
            else:
                of_source = lambda amaxes, fmt: rule(amaxes, fmt, self.source)
                pair = reference.quantize_blocks(x, block, self.fmt, of_source, cast_block)
            results += [np.transpose(part, permutation) for part in pair]
        return results

    def types(self, shape):
        types = []
        for block, permutation in self.directions:
            permuted = lambda sizes, order=permutation: [sizes[d] for d in order]
            types.append(harness.tensor_type(permuted(shape), DTYPES[self.fmt]))
            scale = harness.E8M0 if RECIPES[self.recipe][2] is None else F32
            types.append(harness.tensor_type(permuted(reference.scale_shape(block, shape)), scale))
        return types

    def text(self, shape, prefix, value):
        """The operation on `value`, and the names of its results."""
        types, x = self.types(shape), harness.tensor_type(shape, DTYPES[self.source])
        names = [f"%{prefix}r{i}" for i in range(len(types))]
        outs = [f"%{prefix}o{i}" for i in range(len(types))]
        blocks = ", ".join(f"array<i64: {', '.join(map(str, block))}>" for block, _ in self.directions)
        orders = ", ".join(f"array<i64: {', '.join(map(str, order))}>" for _, order in self.directions)
        permuted = any(list(order) != sorted(order) for _, order in self.directions)
        lines = [f"  {out} = tensor.empty() : {type_}" for out, type_ in zip(outs, types)]
        lines.append(
            f"  {', '.join(names)} = fp8.quantize_blocks recipe({RECIPES[self.recipe][0]}) ins({value} : {x}) {self.random}\n"
            f"      outs({', '.join(outs)} : {', '.join(types)})\n"
            f"      {{blocks = [{blocks}]{f', transpositions = [{orders}]' if permuted else ''}}} -> {', '.join(types)}"
        )
        return "\n".join(lines), names


def straight(blocks, rank=2):
    """Directions in the layout of the tensor."""
    return tuple((block, tuple(range(rank))) for block in blocks)


def entry(name, shape, casts, arguments=""):
    """A function that applies casts of one source type to its argument; `arguments` are further ones."""
    x = harness.tensor_type(shape, DTYPES[casts[0].source])
    body, values, types = [], [], []
    for i, block_cast in enumerate(casts):
        text, names = block_cast.text(shape, f"c{i}", "%x")
        body.append(text)
        values += names
        types += block_cast.types(shape)
    return (
        f"func.func @{name}(%x: {x}{arguments}) -> ({', '.join(types)}) {{\n" + "\n".join(body) + f"\n  return {', '.join(values)} : {', '.join(types)}\n}}\n"
    )


def check(results, casts, x, fractions=None):
    """Every result of `entry` bit for bit; `fractions` as for BlockCast.expected."""
    results = iter(results)
    for block_cast in casts:
        for number, expected in enumerate(block_cast.expected(x, fractions)):
            got = next(results)
            assert got.shape == expected.shape
            codes, wanted = (np.ascontiguousarray(a).view(np.dtype(f"u{a.dtype.itemsize}")) for a in (got, expected))
            wrong = np.argwhere(codes != wanted)
            where = [(tuple(map(int, at)), hex(codes[tuple(at)]), hex(wanted[tuple(at)])) for at in wrong[:4]]
            part = ["data", "scale_inv"][number % 2]
            assert not len(wrong), f"{block_cast}, {part} of direction {number // 2} of {x.shape}: {len(wrong)} differ (place, got, expected): {where}"
