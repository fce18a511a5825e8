# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes of the MLP and the mixer, and the shape and initial deviation of their parameters.

Standard library only: this compiler's side, JAX and PyTorch all take them from here. The GPT's
are the example's, python/examples/gpt/parameters.py.
"""

import dataclasses

Shapes = dict[str, tuple[int, ...]]

CLASSES = 10
LEARNING_RATE, MOMENTUM = 0.01, 0.9


def linear(name: str, inputs: int, outputs: int) -> Shapes:
    return {f"{name}/weight": (inputs, outputs), f"{name}/bias": (outputs,)}


def norm(name: str, width: int) -> Shapes:
    return {f"{name}/gain": (width,), f"{name}/bias": (width,)}


@dataclasses.dataclass(frozen=True)
class Mlp:
    """Images of 28 x 28 through two wide layers."""

    batch: int = 256
    pixels: int = 784
    hidden: int = 1024

    @property
    def inputs(self) -> tuple[int, ...]:
        return self.batch, self.pixels

    def shapes(self) -> Shapes:
        return linear("fc1", self.pixels, self.hidden) | linear("fc2", self.hidden, self.hidden) | linear("head", self.hidden, CLASSES)


@dataclasses.dataclass(frozen=True)
class Mixer:
    """Images of 32 x 32 x 3 as 64 patches; layers mix the patches, then the channels."""

    batch: int = 32
    patches: int = 64
    values: int = 48
    width: int = 128
    token_hidden: int = 128
    channel_hidden: int = 512
    layers: int = 2

    @property
    def inputs(self) -> tuple[int, ...]:
        return self.batch, self.patches, self.values

    def shapes(self) -> Shapes:
        found = linear("embed", self.values, self.width)
        for i in range(self.layers):
            found |= norm(f"h{i}/norm1", self.width) | linear(f"h{i}/token1", self.patches, self.token_hidden)
            found |= linear(f"h{i}/token2", self.token_hidden, self.patches)
            found |= norm(f"h{i}/norm2", self.width) | linear(f"h{i}/channel1", self.width, self.channel_hidden)
            found |= linear(f"h{i}/channel2", self.channel_hidden, self.width)
        return found | norm("final", self.width) | linear("head", self.width, CLASSES)


MODELS: dict[str, Mlp | Mixer] = {"mlp": Mlp(), "mixer": Mixer()}


def deviation(name: str, shape: tuple[int, ...]) -> float:
    """Standard deviation of a parameter's initial values. Gains and biases are small numbers too:
    the time of a step does not depend on them."""
    return shape[0] ** -0.5 if name.endswith("/weight") else 0.1
