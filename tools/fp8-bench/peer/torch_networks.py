# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The networks of fp8-bench as one writes them in PyTorch: its layers, its attention, its fused optimizers."""

from collections.abc import Callable

import model_torch
import parameters
import sizes
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Mlp(nn.Module):
    def __init__(self, size: sizes.Mlp):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(size.pixels, size.hidden), nn.Linear(size.hidden, size.hidden)
        self.head = nn.Linear(size.hidden, sizes.CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(F.relu(self.fc2(F.relu(self.fc1(x)))))


class MixerLayer(nn.Module):
    def __init__(self, size: sizes.Mixer):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(size.width), nn.LayerNorm(size.width)
        self.token1, self.token2 = nn.Linear(size.patches, size.token_hidden), nn.Linear(size.token_hidden, size.patches)
        self.channel1, self.channel2 = nn.Linear(size.width, size.channel_hidden), nn.Linear(size.channel_hidden, size.width)

    def forward(self, x: Tensor) -> Tensor:
        y = self.token1(self.norm1(x).transpose(1, 2))
        x = x + self.token2(F.gelu(y, approximate="tanh")).transpose(1, 2)
        return x + self.channel2(F.gelu(self.channel1(self.norm2(x)), approximate="tanh"))


class Mixer(nn.Module):
    def __init__(self, size: sizes.Mixer):
        super().__init__()
        self.embed, self.final = nn.Linear(size.values, size.width), nn.LayerNorm(size.width)
        self.layers = nn.Sequential(*(MixerLayer(size) for _ in range(size.layers)))
        self.head = nn.Linear(size.width, sizes.CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.final(self.layers(self.embed(x))).mean(1))


def parts(name: str) -> tuple[nn.Module, torch.optim.Optimizer, Tensor, Tensor]:
    """The network, its optimizer, a batch and its labels."""
    if name == "gpt":
        network: nn.Module = model_torch.Gpt()
        optimizer: torch.optim.Optimizer = torch.optim.AdamW(network.parameters(), lr=4e-3, betas=(0.9, 0.95), weight_decay=0.05, fused=True)
        tokens = torch.randint(0, parameters.VOCABULARY, (parameters.BATCH, parameters.SEQUENCE + 1))
        return network, optimizer, tokens[:, :-1].contiguous(), tokens[:, 1:].flatten()
    size = sizes.MODELS[name]
    network = Mlp(size) if isinstance(size, sizes.Mlp) else Mixer(size)
    optimizer = torch.optim.SGD(network.parameters(), lr=sizes.LEARNING_RATE, momentum=sizes.MOMENTUM, fused=True)
    return network, optimizer, torch.randn(size.inputs), torch.randint(0, sizes.CLASSES, size.inputs[:1])


def training(name: str, kind: str) -> Callable[[], None]:
    """A call is one step: forward, backward, optimizer. bf16 is PyTorch's autocast."""
    network, optimizer, inputs, labels = parts(name)

    def step() -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=kind == "bf16"):
            scores = network(inputs)
        F.cross_entropy(scores.float(), labels).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step
