# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a model to the program of its training step, and of its evaluation.

Every layer has a function that builds its forward half and returns, with the result, a function
that builds the backward half: from the gradient of the result to that of the input.
"""
from contextlib import contextmanager, nullcontext

import numpy as np

from . import model as m
from .builder import Builder
from .program import Site
from .stack import StackedLayers

LEARNING_RATE, LOSS_SCALE = 0.03125, 0.015625

# Forward and backward of activations: x, or dy and x.
ACTIVATIONS = {
    "relu": (("select", ("gt", 0, 0.0), 0, 0.0), ("select", ("gt", 1, 0.0), 0, 0.0)),
    "max": (("max", 0, 0.0), ("select", ("gt", 1, 0.0), 0, 0.0)),
    "leaky": (("select", ("gt", 0, 0.0), 0, ("mul", 0, 0.125)), ("select", ("gt", 1, 0.0), 0, ("mul", 0, 0.125))),
    "square": (("mul", ("mul", 0, 0), 0.25), ("mul", 0, ("mul", 1, 0.5))),
    "scale": (("mul", 0, 0.75), ("mul", 0, 0.75)),
}


def build_program(model):
    """The functions of the program, training first."""
    functions = [Step(model, "main").train()]
    if model.evaluate:
        functions.append(Step(model, "evaluate").evaluate())
    return functions


class Step:
    """Builds one function."""

    def __init__(self, model, name):
        self.model, self.training = model, name == "main"
        self.builder = Builder(name, np.random.default_rng([model.seed, 1]))
        self.weights, self.biases, self.users, self.trained = {}, {}, {}, []
        self.gradients, self.bias_gradients, self.flag = {}, [], None
        self.again, self.depth = False, 0  # building what is computed again; in how many loops and branches

    # --- functions ---

    def train(self):
        model, b = self.model, self.builder
        batches = (model.microbatches,) if model.microbatches > 1 else ()
        x = b.argument("x", (*batches, *model.lead, model.features), model.dtype)
        features = self.declare(model.layers, model.features)
        shape = (*batches, *model.lead, features)
        target = b.argument("t", shape, model.dtype)
        if model.looped and batches:
            outputs = [self.loop(x, target)]
        elif not batches:
            outputs = [self.microbatch(x, target)]
        else:
            outputs = [self.microbatch(b.slice(x, i), b.slice(target, i)) for i in range(model.microbatches)]
        return self.results(outputs)

    def microbatch(self, x, target):
        """Forward, loss and backward; gradients are added up in self.gradients."""
        b = self.builder
        y, backward = self.sequence(self.model.layers, x, self.model.input_gradient)
        d = b.elementwise(("sub", 0, 1), y, target)
        loss = None if self.depth else b.sum(d, square=True)
        return y, loss, backward(b.elementwise(("mul", 0, LOSS_SCALE), d))

    def loop(self, x, target):
        """All microbatches in one loop; what they make is stacked, gradients are carried."""
        b, owners = self.builder, list(self.trained)
        inits = [b.fill(0.0, self.weights[name].shape, "f32") for name in owners]
        inits += [b.fill(0.0, v.shape, v.dtype) for v in ([target, x] if self.model.input_gradient else [target])]
        with self.inside_loop(x.shape[0], inits) as (index, carried, op):
            self.gradients = dict(zip(owners, carried))
            y, _, dx = self.microbatch(b.slice(x, index), b.slice(target, index))
            stacks = [b.insert(s, v, index) for s, v in zip(carried[len(owners) :], (y, dx))]
            op.blocks[0].results = [*(self.gradients[name] for name in owners), *stacks]
        self.gradients = dict(zip(owners, op.results))
        y, *dx = op.results[len(owners) :]
        loss = b.sum(b.elementwise(("sub", 0, 1), y, target), square=True)
        return y, loss, dx[0] if dx else None

    @contextmanager
    def inside_loop(self, trips, inits):
        self.depth += 1
        with self.builder.loop(trips, inits) as parts:
            yield parts
        self.depth -= 1

    def results(self, outputs):
        results, carried, approximate = [], {}, []
        for name in self.trained:
            weight, gradient = self.weights[name], self.gradients.get(name)
            if gradient is None:
                continue
            gradient = self.builder.cast(gradient, weight.dtype)
            if self.model.update == "gradients":
                results.append(gradient)
                continue
            carried[self.builder.function.body.arguments.index(weight)] = len(results)
            results.append(self.builder.elementwise(("sub", 0, ("mul", 1, LEARNING_RATE)), weight, gradient))
        for y, loss, dx in outputs:
            approximate.append(len(results))
            results += [loss, y, *([dx] if dx is not None else [])]
        for gradient in self.bias_gradients:
            approximate.append(len(results))
            results.append(gradient)
        return self.builder.finish(results, carried, approximate)

    def evaluate(self):
        model, b = self.model, self.builder
        x = b.argument("x", (*model.lead, model.features), model.dtype)
        self.declare(model.layers, model.features)
        y, _ = self.sequence(model.layers, x, False)
        return b.finish([y], {}, [])

    # --- weights ---

    def declare(self, layers, features):
        """Weights and biases become arguments, in the order of the layers."""
        for layer in layers:
            if isinstance(layer, m.Linear):
                features = self.declare_linear(layer, features)
            elif isinstance(layer, (m.Residual, m.Remat, m.Conditional)):
                features = self.declare(layer.body, features)
            elif isinstance(layer, m.Branch):
                features = [self.declare_linear(path, features) for path in layer.paths][0]
            elif isinstance(layer, m.Stack):
                self.declare_stack(layer, features)
            elif isinstance(layer, m.Attention):
                features = [self.declare_linear(path, features) for path in (layer.q, layer.k, layer.v)][-1]
        return features

    def declare_stack(self, layer, features):
        name, shape = layer.linear.name, (layer.count, features, features)
        self.weights[name] = self.builder.argument(f"w.{name}", shape, self.model.weight_dtype)
        if not layer.linear.frozen and self.training:
            self.trained.append(name)

    def declare_linear(self, layer, features):
        lead = self.model.lead
        experts = lead[:1] if layer.experts and len(lead) > 1 else ()
        shapes = [(*experts, features, layer.out), (*experts, layer.out, features)]
        owner = layer.tied if layer.tied in self.weights else layer.name
        if owner in self.weights and self.weights[owner].shape not in shapes:
            owner = layer.name  # a tie that does not fit
        if owner not in self.weights:
            self.weights[owner] = self.builder.argument(f"w.{owner}", shapes[layer.turned], self.model.weight_dtype)
            if not layer.frozen and self.training:
                self.trained.append(owner)
        self.users[layer.name] = owner
        if layer.bias:
            self.biases[layer.name] = self.builder.argument(f"b.{layer.name}", (layer.out,), self.model.dtype)
        return layer.out

    def trains(self, layer):
        """True if the layer has a weight that is trained."""
        if isinstance(layer, m.Linear):
            return self.users[layer.name] in self.trained
        if isinstance(layer, m.Stack):
            return layer.linear.name in self.trained
        inner = getattr(layer, "body", None) or getattr(layer, "paths", None) or []
        return any(map(self.trains, [*inner, layer.q, layer.k, layer.v] if isinstance(layer, m.Attention) else inner))

    # --- layers: the result, and a function from its gradient to the input's ---

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
        site = Site(layer.name, owner, "nk" if turned else "kn")
        tags = dict(site=site, again=self.again, loop=self.depth > 0)
        product = lambda one, other, result: (letters[one], letters[other], letters[result])

        residual = layer.residual and x.shape[-1] == layer.out
        y = b.contract(
            product("x", "w", "y"),
            x,
            b.cast(weight, dtype),
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
                b.cast(weight, dtype),
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

        def run(dy):
            ds, gradient_v = mixed.backward(dy)
            gradient_q, gradient_k = scores.backward(b.elementwise(("mul", 0, 0.125), ds))
            dx = dv(gradient_v)
            for backward, gradient in ((dk, gradient_k), (dq, gradient_q)):
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

    def backward(self, dy):
        a, b, y = self.letters
        da = self.emit([y, b, a], dy, self.b, 1, (("grad_output", 2), ("input", 1)))
        db = self.emit([a, y, b], self.a, dy, 2, (("input", 0), ("grad_output", 2)))
        return da, db

    def emit(self, letters, a, b, form, kinds):
        return self.builder.contract(letters, a, b, a.dtype, form=self.forms[form], kinds=kinds, **self.tags)
