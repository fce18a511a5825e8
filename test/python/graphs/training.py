# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a model to the program of its training step, and of its evaluation.

layers.py builds the layers; here are the functions around them, with arguments, loss and results.
"""
from contextlib import contextmanager

import numpy as np

from . import model as m
from .builder import Builder
from .layers import Layers
from .program import Dynamic, split

LEARNING_RATE, LOSS_SCALE = 0.03125, 0.015625


def build_program(model):
    """The functions of the program, training first."""
    functions = [Step(model, "main").train()]
    if model.evaluate:
        functions.append(Step(model, "evaluate").evaluate())
    return functions


class Step(Layers):
    """Builds one function."""

    def __init__(self, model, name):
        self.model, self.training = model, name == "main"
        self.builder = Builder(name, np.random.default_rng([model.seed, 1]))
        self.weights, self.biases, self.users, self.trained = {}, {}, {}, []
        self.gradients, self.bias_gradients, self.flag = {}, [], None
        self.lead = tuple(Dynamic(n) if i == model.dynamic else n for i, n in enumerate(model.lead))
        self.again, self.depth = False, 0  # building what is computed again; in how many loops and branches

    # --- functions ---

    def train(self):
        model, b = self.model, self.builder
        batches = (model.microbatches,) if model.microbatches > 1 else ()
        x = b.argument("x", (*batches, *self.lead, model.features), model.dtype)
        features = self.declare(model.layers, model.features)
        shape = (*batches, *self.lead, features)
        target = b.argument("t", shape, model.dtype)
        if model.looped and batches and not model.pair:
            return self.results([self.loop(x, target)])
        slices = lambda value: [b.slice(value, i) for i in range(model.microbatches)] if batches else [value]
        if model.pair:
            return self.pair(slices(x), target, slices)
        return self.results([self.microbatch(*both) for both in zip(slices(x), slices(target))])

    def pair(self, xs, target, slices):
        """Forward of all microbatches, then backward of all."""
        b, wanted = self.builder, self.model.input_gradient
        ys, tapes = zip(*(self.sequence(self.model.layers, x, wanted) for x in xs))
        losses = lambda: list(zip(*(self.loss(y, t) for y, t in zip(ys, slices(target)))))
        early = self.model.pair == "loss" and losses()
        cut, forward = len(b.block.ops), [*ys, *(early[0] if early else [])]
        sums, gradients = early or losses()
        dxs = [tape(b.elementwise(("mul", 0, LOSS_SCALE), d)) for tape, d in zip(tapes, gradients)]
        names = [name for name in self.trained if name in self.gradients]
        weights = [b.cast(self.gradients[name], self.weights[name].dtype) for name in names]
        biases = self.bias_gradients
        results = [*forward, *([] if early else sums), *weights, *(dx for dx in dxs if dx is not None), *biases]
        approximate = [i for i, v in enumerate(results) if any(v is s for s in (*sums, *biases))]
        function = b.finish(results, {}, approximate)
        if results[len(forward) :]:
            function.parts = split(function, cut, len(forward), [] if early else [target])
        return function

    def loss(self, y, target):
        """The sum of squares of the difference, and the difference."""
        d = self.builder.elementwise(("sub", 0, 1), y, target)
        return self.builder.sum(d, square=True), d

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
        x = b.argument("x", (*self.lead, model.features), model.dtype)
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
        lead = self.lead
        experts = lead[:1] if layer.experts and len(lead) > 1 and not isinstance(lead[0], Dynamic) else ()
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
