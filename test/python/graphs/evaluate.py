# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Computes programs with numpy, products in FP8 where a plan says so.

Every arithmetic operation rounds to the type of the program. Products sum in f32 in the order
of the operation's reduction dimensions. In high precision the CPU target multiplies and adds
in one rounding; products of FP8 and f16 are exact, so that it makes no difference there.
"""
import math

import ml_dtypes
import numpy as np

import reference
from reference import F32

from . import blocks
from .expect import read_type
from .program import behind_views

DTYPES = {
    "f32": np.dtype(np.float32),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f16": np.dtype(np.float16),
    "i1": np.dtype(np.bool_),
    "E4M3": reference.E4M3,
    "E5M2": reference.E5M2,
}


class Casts:
    """Casts operands as `plan` says, with scales of the state or of the tensors themselves."""

    def __init__(self, plan, state):
        self.plan, self.recorded = plan, {}
        self.scales, self.history = state

    def cast(self, op, operand, value, tensor):
        """(data, scale_inv) of an operand of a product that is in FP8. The amax is that of the tensor that it
        shows: repeated no times, the operand has no elements but the tensor has."""
        column, fmt = self.plan.column(op, operand), DTYPES[self.plan.format(op, operand)]
        amax = reference.amax(tensor)
        options = self.plan.options
        if options.recipe == "delayed":
            self.recorded.setdefault(column, []).append(amax)
            scale = self.scales[column]
            if options.init == "current" and not self.history[:, column].any():
                scale = reference.delayed_scale(amax, fmt, options.margin, scale)
        else:
            scale = reference.current_scale(amax, fmt, options.eps, options.power_2_scale)
        return reference.cast(value, scale, fmt), reference.scale_inv(scale)


def evaluate(function, inputs, casts):
    """Results; `casts` notes the amaxes. `bounds` of approximate results are their second part."""
    return Evaluator(casts).run(function, inputs)


def fused_multiply_add(a, b, c):
    """a · b + c in f32 with one rounding: f64, rounded to odd, loses nothing that counts."""
    product, c = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
    total = product + c
    part = total - product
    error = (product - (total - part)) + (c - part)
    inexact = (error != 0) & (total.view(np.int64) % 2 == 0) & np.isfinite(total)
    return np.where(inexact, np.nextafter(total, np.copysign(np.inf, error)), total).astype(F32)


def high_dot(a, b):
    """Products along the last axes of a [B, M, K] and b [B, N, K]."""
    if a.dtype == DTYPES["f16"] and b.dtype == DTYPES["f16"]:
        return reference.dot(a, b)
    total = np.zeros((a.shape[0], a.shape[1], b.shape[1]), F32)
    for k in range(a.shape[-1]):
        total = fused_multiply_add(a[:, :, None, k], b[:, None, :, k], total)
    return total


class Evaluator:
    def __init__(self, casts):
        self.casts, self.known = casts, {}

    def run(self, function, inputs):
        self.known.update(zip(function.body.arguments, inputs))
        return self.run_block(function.body)

    def run_block(self, block):
        for op in block.ops:
            values = getattr(self, "run_" + op.kind)(op, *(self.known[v] for v in op.inputs))
            results = values if op.blocks else [values]
            for result, value in zip(op.results, results):
                self.known[result] = value
        return [self.known[v] for v in block.results]

    # --- moving elements about ---

    def run_fill(self, op):
        return np.full(op.results[0].shape, op["value"], DTYPES[op.results[0].dtype])

    def run_cast(self, op, value):
        return value.astype(DTYPES[op.results[0].dtype])

    def run_transpose(self, op, value):
        return value.transpose(op["permutation"])

    def run_reshape(self, op, value):
        return value.reshape(op.results[0].shape)

    def run_broadcast(self, op, value):
        return np.broadcast_to(value, op.results[0].shape)

    def run_slice(self, op, value, *index):
        return value[index[0] if index else op["index"]]

    def run_insert(self, op, target, value, *index):
        target = target.copy()
        target[index[0] if index else op["index"]] = value
        return target

    # --- arithmetic ---

    def run_elementwise(self, op, *values):
        shape, dtype = op.results[0].shape, DTYPES[op.results[0].dtype]
        spread = []
        for value, dims in zip(values, op["dims"]):
            spread.append(value.reshape([n if d in dims else 1 for d, n in enumerate(shape)]))
        return np.broadcast_to(compute(op["expression"], spread, dtype), shape)

    def run_sum(self, op, value):
        value = value.astype(F32).astype(np.float64)
        value = value * value if op["square"] else value
        axes = tuple(d for d in range(value.ndim) if d not in op["keep"])
        # Any order is right; the bound is that of the worst. There is none where a partial sum may overflow f32.
        count = math.prod(value.shape[d] for d in axes) + 2
        largest = np.abs(value).sum(axes)
        return value.sum(axes), np.where(largest < np.finfo(np.float32).max, largest * count * 2.0**-24, np.inf)

    # --- products ---

    def run_contract(self, op, a, b, *init):
        plan = self.casts.plan
        in_fp8 = plan.is_fp8(op)
        by_blocks = in_fp8 and plan.options.recipe in blocks.RECIPES
        if in_fp8 and not by_blocks:
            tensors = [self.known[behind_views(operand)] for operand in op.inputs[:2]]
            (a, a_inv), (b, b_inv) = (self.casts.cast(op, i, v, tensors[i]) for i, v in enumerate((a, b)))
        letters, loops = op["letters"], op["loops"]
        sizes = {l: n for text, value in zip(letters, (a, b)) for l, n in zip(text, value.shape)}
        batch = [l for l in loops if all(l in text for text in letters)]
        rows = [l for l in loops if l in letters[0] and l in letters[2] and l not in batch]
        columns = [l for l in loops if l in letters[1] and l in letters[2] and l not in batch]
        summed = [l for l in loops if l not in letters[2]]
        count = lambda group: math.prod(sizes[l] for l in group)

        def arrange(value, text, free):
            value = value.transpose([text.index(l) for l in [*batch, *free, *summed]])
            return value.reshape(count(batch), count(free), count(summed))

        a, b = arrange(a, letters[0], rows), arrange(b, letters[1], columns)
        if by_blocks:
            names, kinds = zip(*((plan.format(op, i), op["kinds"][i][0]) for i in (0, 1)))
            sources = [read_type(value) for value in op.inputs[:2]]
            value = blocks.multiply(plan.options, a, b, names, kinds, sources, plan.is_split(op))
        elif in_fp8:
            value = reference.scaled_matmul(a, b, a_inv, b_inv, split=plan.is_split(op))
        else:
            value = high_dot(a, b)
        order = [*batch, *rows, *columns]
        value = value.reshape([sizes[l] for l in order]).transpose([order.index(l) for l in letters[2]])
        if init:
            value = value + init[0].astype(F32)
        return value.astype(DTYPES[op.results[0].dtype])

    # --- control flow ---

    def run_backwards(self, op, index):
        return op["last"] - index

    def run_for(self, op, *carried):
        (block,) = op.blocks
        for i in range(op["trips"]):
            self.known.update(zip(block.arguments, [i, *carried]))
            carried = self.run_block(block)
        return carried

    def run_if(self, op, condition):
        return self.run_block(op.blocks[0 if condition > 0 else 1])


def compute(tree, inputs, dtype):
    """An expression tree; every operation rounds."""
    if isinstance(tree, int):
        return inputs[tree]
    if isinstance(tree, float):
        return np.array(tree, dtype)
    word, *rest = tree
    values = [compute(part, inputs, dtype) for part in rest]
    if word == "gt":
        return values[0].astype(F32) > values[1].astype(F32)
    if word == "select":
        return np.where(*values)
    a, b = (value.astype(F32) for value in values)
    if word == "max":
        return np.where((a > b) | np.isnan(a), a, b).astype(dtype)
    return {"add": np.add, "sub": np.subtract, "mul": np.multiply}[word](a, b).astype(dtype)
