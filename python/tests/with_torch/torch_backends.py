# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models and training that the tests of fp8.torch.backend share."""

import fp8.torch
import torch
import torch.nn.functional as F
from torch import nn


class MLP(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.up = nn.Linear(16, width)
        self.down = nn.Linear(width, 4)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class Broken(MLP):
    def forward(self, x):
        h = F.gelu(self.up(x))
        torch._dynamo.graph_break()
        return self.down(h)


def batches(count, size=8, seed=1):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randn(16, 4, generator=generator)
    for _ in range(count):
        x = torch.randn(size, 16, generator=generator)
        yield x, (x @ labels).argmax(-1)


def train(model, forward, steps=5, autocast=False, scaler=None):
    """Losses of training steps."""
    optimizer, losses = torch.optim.AdamW(model.parameters(), 1e-2), []
    for x, y in batches(steps):
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            loss = F.cross_entropy(forward(x), y)
        optimizer.zero_grad()
        if scaler is None:
            loss.backward()
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        losses.append(loss.item())
    return losses


def new_model(kind=MLP):
    torch.manual_seed(0)
    return kind()


def compiled(kind=MLP, recipe="current", **options):
    model, backend = new_model(kind), fp8.torch.backend(recipe, **options)
    return model, torch.compile(model, backend=backend), backend


def layers():
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4))
