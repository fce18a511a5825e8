# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes of the example GPT, and the name, shape and initial value of every parameter.

Standard library only: the model (JAX) and the training script (no JAX) both
take them from here, so neither can drift from the other.
"""

import array
import random

VOCABULARY = 256  # a token is a byte
LAYERS = 4
HEADS = 4
WIDTH = 128
HIDDEN = 512
SEQUENCE = 64
BATCH = 16


def linear(name, inputs, outputs):
    return {f"{name}/weight": (inputs, outputs), f"{name}/bias": (outputs,)}


def norm(name):
    return {f"{name}/gain": (WIDTH,), f"{name}/bias": (WIDTH,)}


def shapes():
    """Name -> shape of every parameter; the first component is the layer."""
    found = {"embed/weight": (VOCABULARY, WIDTH)}
    for layer in range(LAYERS):
        block = f"h{layer}"
        found |= norm(f"{block}/norm1") | linear(f"{block}/qkv", WIDTH, 3 * WIDTH)
        found |= linear(f"{block}/proj", WIDTH, WIDTH)
        found |= norm(f"{block}/norm2") | linear(f"{block}/fc1", WIDTH, HIDDEN)
        found |= linear(f"{block}/fc2", HIDDEN, WIDTH)
    return found | norm("final") | {"head/weight": (WIDTH, VOCABULARY)}


def deviation(name, shape):
    """Standard deviation of a parameter's initial values (0: all zero)."""
    if name == "embed/weight":
        return 1.0
    if not name.endswith("/weight"):
        return 0.0
    scale = shape[0] ** -0.5
    if name == "head/weight":
        return 0.5 * scale  # the first predictions are close to uniform
    # The residual stream sums up the outputs of all blocks: their initial weights are smaller in deeper models.
    return scale * (2 * LAYERS) ** -0.5 if "/proj/" in name or "/fc2/" in name else scale


def initial(seed=0):
    """Name -> (shape, array of f32 values), the same on every machine."""
    draw, values = random.Random(seed), {}
    for name, shape in sorted(shapes().items()):
        count, scale = shape[0] * (shape[1] if len(shape) > 1 else 1), deviation(name, shape)
        if name.endswith("/gain"):
            values[name] = shape, array.array("f", [1.0]) * count
        else:
            data = (draw.gauss(0.0, scale) for _ in range(count)) if scale else bytes(0)
            values[name] = shape, array.array("f", data) if scale else array.array("f", [0.0]) * count
    return values
