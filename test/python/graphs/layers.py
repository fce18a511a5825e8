# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers of a model in a program.

Every layer has a function that builds its forward half and returns, with the result, a function
that builds the backward half: from the gradient of the result to that of the input.
"""
from contextlib import nullcontext

from . import model as m
from .program import Site
from .stack import StackedLayers

# Forward and backward of activations: x, or dy and x.
ACTIVATIONS = {
    "relu": (("select", ("gt", 0, 0.0), 0, 0.0), ("select", ("gt", 1, 0.0), 0, 0.0)),
    "max": (("max", 0, 0.0), ("select", ("gt", 1, 0.0), 0, 0.0)),
    "leaky": (("select", ("gt", 0, 0.0), 0, ("mul", 0, 0.125)), ("select", ("gt", 1, 0.0), 0, ("mul", 0, 0.125))),
    "square": (("mul", ("mul", 0, 0), 0.25), ("mul", 0, ("mul", 1, 0.5))),
    "scale": (("mul", 0, 0.75), ("mul", 0, 0.75)),
}


class Layers:
    """The part of a step that knows layers; training.Step adds the functions."""

    def sequence(self, layers, x, wanted):
        """`wanted`: whether the gradient of x is."""
        tape = []
        for layer in layers:
            x, backward = getattr(self, type(layer).__name__.lower())(layer, x, wanted)
            tape.append(backward)
            wanted = wanted or self.trains(layer)

        def run(dy):
            for backward in reversed(tape):
                dy = dy and backward(dy)
            return dy

        return x, run

    def activation(self, layer, x, wanted):
        forward, backward = ACTIVATIONS[layer.kind]
        y = self.builder.elementwise(forward, x)
        return y, lambda dy: self.builder.elementwise(backward, dy, x)

    def stack(self, layer, x, wanted):
        stacked = StackedLayers(self, layer, x, ACTIVATIONS[layer.kind])
        needed = wanted or self.trains(layer)
        return stacked.forward(x), lambda dy: stacked.backward(dy) if needed else None

    def residual(self, layer, x, wanted):
        y, backward = self.sequence(layer.body, x, wanted)
        if y is x or y.shape != x.shape:
            return y, backward

        def run(dy):
            dx = backward(dy)
            return dx and self.builder.elementwise(("add", 0, 1), dx, dy)

        return self.builder.elementwise(("add", 0, 1), y, x), run

    def remat(self, layer, x, wanted):
        drawn = self.builder.drawn_so_far()
        y, _ = self.sequence(layer.body, x, wanted)

        def run(dy):
            self.again = True
            with nullcontext() if layer.rewritten else self.builder.drawing_again(drawn):
                _, backward = self.sequence(layer.body, x, wanted)
            self.again = False
            return backward(dy)

        return y, run

    def conditional(self, layer, x, wanted):
        b = self.builder
        if self.flag is None:
            self.flag = b.argument("flag", (), "f32")
        self.depth += 1
        (y,) = b.branch(self.flag, lambda: [self.sequence(layer.body, x, wanted)[0]], lambda: [x])
        self.depth -= 1
        owners = [name for name in self.trained if any(name == self.users.get(l.name) for l in linears(layer.body))]

        def again(dy):
            _, backward = self.sequence(layer.body, x, wanted)
            outer, self.gradients = self.gradients, {}
            dx = backward(dy)
            gradients, self.gradients = self.gradients, outer
            return [*([dx] if wanted else []), *(b.cast(gradients[name], "f32") for name in owners)]

        def run(dy):
            if not wanted and not owners:
                return None
            zeros = lambda: [b.fill(0.0, self.weights[name].shape, "f32") for name in owners]
            self.depth, self.again = self.depth + 1, True
            results = b.branch(self.flag, lambda: again(dy), lambda: [*([dy] if wanted else []), *zeros()])
            self.depth, self.again = self.depth - 1, False
            for name, gradient in zip(owners, results[len(results) - len(owners) :]):
                before = self.gradients.get(name)
                total = before and b.elementwise(("add", 0, 1), b.cast(before, "f32"), gradient)
                self.gradients[name] = total or gradient
            return results[0] if wanted else None

        return y, run

    def branch(self, layer, x, wanted):
        b = self.builder
        pairs = [self.linear(path, x, wanted) for path in layer.paths]
        if layer.scaled:
            pairs = [self.scaled(*pair, 0.5**i) for i, pair in enumerate(pairs)]
        ys = [y for y, _ in pairs]
        fits = [y for y in ys if y.shape == ys[0].shape]
        word = "mul" if layer.combine == "mul" and len(fits) == 2 else "add"
        total = ys[0]
        for y in fits[1:]:
            total = b.elementwise((word, 0, 1), total, y)

        def run(dy):
            dx = None
            for i, (y, backward) in enumerate(pairs):
                if y not in fits:
                    continue
                mine = b.elementwise(("mul", 0, 1), dy, fits[1 - i]) if word == "mul" else dy
                if layer.chained or dx is None:
                    dx = backward(mine, dx)
                else:
                    dx = b.elementwise(("add", 0, 1), dx, backward(mine))
            return dx

        return total, run

    def scaled(self, y, backward, factor):
        scale = lambda value: self.builder.elementwise(("mul", 0, factor), value)
        return scale(y), lambda dy, added=None: backward(scale(dy), added)

    def linear(self, layer, x, wanted):
        b, dtype, owner = self.builder, self.model.dtype, self.users[layer.name]
        weight = self.weights[owner]
        lead = "abcde"[: len(x.shape) - 1]
        experts = lead[:1] if len(weight.shape) == 3 else ""
        matrix = weight.shape[-2:]
        turned = layer.turned if matrix[0] == matrix[1] else matrix != (x.shape[-1], layer.out)
        letters = {"x": lead + "k", "w": experts + ("nk" if turned else "kn"), "y": lead + "n"}
        orientation = "" if matrix == (1, 1) else letters["w"][-2:]
        site = Site(layer.name, owner, orientation)
        tags = dict(site=site, again=self.again, loop=self.depth > 0)
        product = lambda one, other, result: (letters[one], letters[other], letters[result])

        residual = layer.residual and x.shape[-1] == layer.out
        narrow = b.cast(weight, dtype)
        kept = bool(self.model.pair) and b.chance(0.5)  # backward gets the weight as forward made it
        y = b.contract(
            product("x", "w", "y"),
            x,
            narrow,
            dtype,
            init=x if residual else None,
            form=layer.forms[0],
            role="fprop",
            kinds=(("input", 0), ("weight", 1)),
            **tags,
        )
        if layer.bias:
            rank = len(y.shape)
            y = b.elementwise(("add", 0, 1), y, self.biases[layer.name], dims=[tuple(range(rank)), (rank - 1,)])

        def run(dy, added=None):
            if layer.bias and not self.depth:
                self.bias_gradients.append(b.sum(dy, keep=[len(dy.shape) - 1]))
            if owner in self.trained:
                self.weight_gradient(layer, owner, product("x", "y", "w"), x, dy, tags)
            if not wanted:
                return None
            dx = b.contract(
                product("y", "w", "x"),
                dy,
                narrow if kept else b.cast(weight, dtype),
                dtype,
                init=added,
                form=layer.forms[1],
                role="dgrad",
                kinds=(("grad_output", 2), ("weight", 1)),
                **tags,
            )
            return b.elementwise(("add", 0, 1), dx, dy) if residual else dx

        return y, run

    def weight_gradient(self, layer, owner, letters, x, dy, tags):
        b, before = self.builder, self.gradients.get(owner)
        dtype = "f32" if layer.wide else self.model.dtype
        summed = before is not None and before.dtype == dtype and b.chance(0.5)
        gradient = b.contract(
            letters,
            x,
            dy,
            dtype,
            init=before if summed else None,
            form=layer.forms[2],
            role="wgrad",
            kinds=(("input", 0), ("grad_output", 2)),
            **tags,
        )
        if before is not None and not summed:
            gradient = b.elementwise(("add", 0, 1), b.cast(before, "f32"), b.cast(gradient, "f32"))
        self.gradients[owner] = gradient

    def attention(self, layer, x, wanted):
        (q, dq), (k, dk), (v, dv) = (self.linear(path, x, wanted) for path in (layer.q, layer.k, layer.v))
        b = self.builder
        if len(x.shape) == 1 or q.shape != k.shape:
            return v, dv
        lead = "abcde"[: len(x.shape) - 2]
        scores = self.product(layer, 0, [lead + "qh", lead + "kh", lead + "qk"])
        mixed = self.product(layer, 1, [lead + "qk", lead + "kv", lead + "qv"])
        s = b.elementwise(("mul", 0, 0.125), scores.forward(q, k))
        y = mixed.forward(s, v)

        # As automatic differentiation does, no product for what nobody reads: dead code has no column.
        read_q, read_k, read_v = (wanted or self.trains(path) or path.bias for path in (layer.q, layer.k, layer.v))

        def run(dy):
            ds, gradient_v = mixed.backward(dy, read_q or read_k, read_v)
            gradient_q = gradient_k = None
            if ds is not None:
                gradient_q, gradient_k = scores.backward(b.elementwise(("mul", 0, 0.125), ds), read_q, read_k)
            dx = dv(gradient_v) if read_v else None
            for backward, gradient in ((dk, gradient_k), (dq, gradient_q)):
                if gradient is None:
                    continue
                part = backward(gradient)
                dx = part if dx is None else b.elementwise(("add", 0, 1), dx, part)
            return dx

        return y, run

    def product(self, layer, number, letters):
        forms = layer.forms[3 * number : 3 * number + 3]
        tags = dict(site=Site(f"{layer.name}/{'qv'[number]}", None, ""), again=self.again, role="other", loop=self.depth > 0)
        return WeightlessProduct(self.builder, letters, forms, tags)


def linears(layers):
    """All linear layers among these."""
    for layer in layers:
        if isinstance(layer, m.Linear):
            yield layer
        yield from linears(getattr(layer, "body", None) or getattr(layer, "paths", None) or [])


class WeightlessProduct:
    """A product of two activations and its two gradients."""

    def __init__(self, builder, letters, forms, tags):
        self.builder, self.letters, self.forms, self.tags = builder, letters, forms, tags

    def forward(self, a, b):
        self.a, self.b = a, b
        return self.emit(self.letters, a, b, 0, (("input", 0), ("input", 1)))

    def backward(self, dy, read_a, read_b):
        """Both gradients, None for those that are not read."""
        a, b, y = self.letters
        da = self.emit([y, b, a], dy, self.b, 1, (("grad_output", 2), ("input", 1))) if read_a else None
        db = self.emit([a, y, b], self.a, dy, 2, (("input", 0), ("grad_output", 2))) if read_b else None
        return da, db

    def emit(self, letters, a, b, form, kinds):
        return self.builder.contract(letters, a, b, a.dtype, form=self.forms[form], kinds=kinds, **self.tags)
