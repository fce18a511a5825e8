# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers in a loop over their stacked weights, and the loop back, as scans are exported.

The forward loop stacks what the backward loop reads at the same index, from the other end.
"""
from .program import Site

LEAD = "abcde"


class StackedLayers:
    def __init__(self, step, layer, x, expressions):
        self.step, self.layer, self.builder = step, layer, step.builder
        self.name, self.shape, self.dtype = layer.linear.name, x.shape, x.dtype
        self.weights = step.weights[self.name]
        self.forward_expression, self.backward_expression = expressions
        lead = LEAD[: len(x.shape) - 1]
        self.letters = {"x": lead + "k", "w": "nk" if layer.linear.turned else "kn", "y": lead + "n"}
        self.site = Site(self.name, self.name, self.letters["w"])

    def product(self, role, one, other, result, a, b, dtype, kinds):
        form = self.layer.linear.forms[("fprop", "dgrad", "wgrad").index(role)]
        letters = tuple(self.letters[l] for l in (one, other, result))
        tags = dict(site=self.site, role=role, kinds=kinds, again=self.step.again, loop=True)
        return self.builder.contract(letters, a, b, dtype, form=form, **tags)

    def weight(self, index):
        return self.builder.cast(self.builder.slice(self.weights, index), self.dtype)

    def forward(self, x):
        b, count = self.builder, self.layer.count
        stack = (count, *self.shape)
        inits = [x, b.fill(0.0, stack, self.dtype), b.fill(0.0, stack, self.dtype)]
        with self.step.inside_loop(count, inits) as (index, (x, xs, hs), op):
            h = self.product("fprop", "x", "w", "y", x, self.weight(index), self.dtype, (("input", 0), ("weight", 1)))
            y = b.elementwise(self.forward_expression, h)
            op.blocks[0].results = [y, b.insert(xs, x, index), b.insert(hs, h, index)]
        y, self.xs, self.hs = op.results
        return y

    def backward(self, dy):
        b, step, trained = self.builder, self.step, self.name in self.step.trained
        dtype = "f32" if self.layer.linear.wide else self.dtype
        inits = [dy, *([b.fill(0.0, self.weights.shape, dtype)] if trained else [])]
        with step.inside_loop(self.layer.count, inits) as (position, (dy, *gradients), op):
            index = b.backwards(position, self.layer.count - 1)
            x, h = b.slice(self.xs, index), b.slice(self.hs, index)
            dh = b.elementwise(self.backward_expression, dy, h)
            for i, gradient in enumerate(gradients):
                dw = self.product("wgrad", "x", "y", "w", x, dh, dtype, (("input", 0), ("grad_output", 2)))
                gradients[i] = b.insert(gradient, dw, index)
            kinds = (("grad_output", 2), ("weight", 1))
            dx = self.product("dgrad", "y", "w", "x", dh, self.weight(index), self.dtype, kinds)
            op.blocks[0].results = [dx, *gradients]
        if trained:
            before, after = step.gradients.get(self.name), op.results[1]
            total = before and b.elementwise(("add", 0, 1), b.cast(before, "f32"), b.cast(after, "f32"))
            step.gradients[self.name] = total or after
        return op.results[0]
