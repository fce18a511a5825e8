# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products under recipes with a scale per row or block: operands are cast along K, by ../numerics."""
import numpy as np
from numerics import formats, products, reference

RECIPES = ["row", "block", "mxfp8"]
FORMATS = {"E4M3": formats.E4M3, "E5M2": formats.E5M2}
SOURCES = {"f32": formats.SINGLE, "bf16": formats.BF16, "f16": formats.F16}


def multiply(options, a, b, names, kinds, sources, split):
    """The f32 values of a · bᵀ, [B, M, N], of a [B, M, K] and b [B, N, K]. Of both operands: the formats' names, what
    tensors of their site they are, and the types that they are cast from."""
    each = [multiply_one(options, *pair, names, kinds, sources, split) for pair in zip(a, b)]
    return np.stack(each) if each else np.zeros((0, a.shape[1], b.shape[1]), np.float32)


def multiply_one(options, a, b, names, kinds, sources, split):
    fmts = [FORMATS[name] for name in names]
    is_weight = [kind == "weight" for kind in kinds]
    if options.recipe == "mxfp8":
        casts = [reference.quantize_mx(x, (1, 32), fmt) for x, fmt in zip((a, b), fmts)]
    elif options.recipe == "row":
        rule = lambda amaxes, fmt: reference.current_scale(amaxes, fmt, options.eps, options.power_2_scale)
        casts = [reference.quantize_blocks(x, (1, 0), fmt, rule) for x, fmt in zip((a, b), fmts)]
    else:
        casts = []
        for x, fmt, weight, source in zip((a, b), fmts, is_weight, sources):
            rule = lambda amaxes, fmt, of=SOURCES[source]: reference.block_scale(amaxes, fmt, of, options.eps, options.power_2_scale)
            data, inverse = reference.quantize_blocks(x, (128 if weight else 1, 128), fmt, rule)
            casts.append((data, np.repeat(inverse, 128 if weight else 1, axis=0)[: len(x)]))
    (a, a_inv), (b, b_inv) = ((fmt.decode(data).astype(np.float32), inverse) for (data, inverse), fmt in zip(casts, fmts))
    if options.recipe == "row":
        return products.scaled_product(a, b, a_inv, b_inv, split)
    if options.recipe == "mxfp8":
        return products.mx_product(a, b, *map(formats.decode_e8m0, (a_inv, b_inv)), split)
    return products.block_product(a, b, a_inv, b_inv, rhs_first=is_weight[0] and not is_weight[1])
