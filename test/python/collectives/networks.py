# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training steps of stock JAX for tests of several ranks: text, inputs, and where the gradients are."""

import re

import numpy as np

from harness import F32, random_generator


class Network:
    """A training step. `inputs` has the parameters; make_batch(rows) the arguments of a batch, of `rows` rows for one rank.
    Results in `gradients` of a step from zero moments are the gradients; result `loss` is the loss."""

    def __init__(self, text, batch, moments, first_moment, loss):
        self.text, self.batch, self.moments, self.loss = text, batch, moments, loss
        names = re.findall(r'%arg\d+: tensor<[^>]*> (?:{tf.aliasing_output = (\d+) : i32} )?loc\("([^"]*)"\)', self.signature())
        self.gradients = [int(result) for result, name in names if name.startswith(first_moment)]
        assert self.gradients

    def signature(self):
        return next(line for line in self.text.splitlines() if "func.func public @main(" in line)

    def make_parameters(self, salt):
        rng, parameters = random_generator(salt), {}
        for shape, name in re.findall(r'%arg\d+: tensor<([^>]*)xf32> {[^}]*} loc\("(params[^"]*)"\)', self.signature()):
            sizes = [int(size) for size in shape.split("x")]
            scale = sizes[0] ** -0.5 if len(sizes) == 2 else 0.1
            parameters[name] = (rng.standard_normal(sizes) * scale + ("gain" in name)).astype(F32)
        return parameters


def make_mlp(source_dir):
    """The perceptron of fp8-bench with smaller layers."""
    text = (source_dir / "tools/fp8-bench/networks/mlp.mlir").read_text()
    for old, new in (("1024", "64"), ("784", "48"), ("256", "16")):
        text = re.sub(rf"(?<=[<x[ ]){old}(?=[x,\]])", new, text)

    def batch(rows, rng):
        return {"inputs": rng.standard_normal([rows * 16, 48]).astype(F32), "labels": rng.integers(0, 10, rows * 16).astype(np.int32)}

    return Network(text, batch, "moments", "moments", 12)  # moment = 0.9 · moment + gradient


def make_gpt(source_dir):
    """The GPT of python/examples, but that moment1 = 0.9 · moment1 + gradient, without the factor 0.1."""
    text = (source_dir / "python/examples/gpt/gpt.mlir").read_text()
    factor = "arith.constant dense<1.000000e-01> : tensor<f32>"
    assert text.count(factor) == 1
    text = text.replace(factor, "arith.constant dense<1.000000e+00> : tensor<f32>")

    def batch(rows, rng):
        return {"tokens": rng.integers(0, 256, [rows * 16, 65]).astype(np.int32)}

    return Network(text, batch, "moment1", "moment1", 157)
