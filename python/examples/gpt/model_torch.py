# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The GPT of model.py as one writes it in PyTorch, its layers and its attention; nothing in it knows of FP8."""

import re

import parameters as sizes
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class GptLayer(nn.Module):
    def __init__(self, cosine: Tensor, sine: Tensor):
        super().__init__()
        width = sizes.WIDTH
        # Buffers go where the network is moved; checkpoints need none.
        self.register_buffer("cosine", cosine, persistent=False)
        self.register_buffer("sine", sine, persistent=False)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc1, self.fc2 = nn.Linear(width, sizes.HIDDEN), nn.Linear(sizes.HIDDEN, width)

    def rotate(self, x: Tensor) -> Tensor:
        first, second = x.float().chunk(2, -1)
        return torch.cat([first * self.cosine - second * self.sine, second * self.cosine + first * self.sine], -1).to(x.dtype)

    def forward(self, x: Tensor) -> Tensor:
        b, t, width = x.shape
        split = self.qkv(self.norm1(x)).view(b, t, 3, sizes.HEADS, -1).permute(2, 0, 3, 1, 4)
        q, k, v = split.unbind(0)
        mixed = F.scaled_dot_product_attention(self.rotate(q), self.rotate(k), v, is_causal=True)
        x = x + self.proj(mixed.transpose(1, 2).reshape(b, t, width))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        depth = sizes.WIDTH // sizes.HEADS
        angles = torch.arange(sizes.SEQUENCE)[:, None] * 10000.0 ** (torch.arange(depth // 2) * (-2.0 / depth))
        self.embed, self.final = nn.Embedding(sizes.VOCABULARY, sizes.WIDTH), nn.LayerNorm(sizes.WIDTH)
        self.layers = nn.Sequential(*(GptLayer(angles.cos(), angles.sin()) for _ in range(sizes.LAYERS)))
        self.head = nn.Linear(sizes.WIDTH, sizes.VOCABULARY, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.final(self.layers(self.embed(tokens)))).flatten(0, 1)


def initial() -> Gpt:
    """The network with the first parameters of model.py."""
    values = {}
    for name, (shape, numbers) in sizes.initial().items():
        value = torch.tensor(numbers).reshape(shape)
        is_linear = name.endswith("/weight") and name != "embed/weight"
        name = re.sub(r"^h(\d+)/", r"layers/\1/", name).replace("gain", "weight").replace("/", ".")
        values[name] = value.T if is_linear else value
    network = Gpt()
    network.load_state_dict(values)
    return network
