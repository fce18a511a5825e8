# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps that the tests of fp8.torch.train_step share."""

import fp8.torch
import torch
import torch.nn.functional as F
from torch import nn

OPTIMIZERS = {
    "AdamW": lambda p: torch.optim.AdamW(p, 1e-2),
    "Adam, amsgrad": lambda p: torch.optim.Adam(p, 1e-2, amsgrad=True),
    "NAdam": lambda p: torch.optim.NAdam(p, 1e-2),
    "SGD, momentum": lambda p: torch.optim.SGD(p, 1e-1, momentum=0.9, weight_decay=0.01),
    "RMSprop": lambda p: torch.optim.RMSprop(p, 1e-2),
    "Adagrad": lambda p: torch.optim.Adagrad(p, 1e-2),
}


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.norm, self.down = nn.Linear(16, 32), nn.BatchNorm1d(32), nn.Linear(32, 4)

    def forward(self, x):
        return self.down(F.gelu(self.norm(self.up(x))))


def train(optimizer, recipe=None, steps=5, kind=MLP):
    """Losses with a scheduler; the model, the optimizer and the step."""
    torch.manual_seed(0)
    model = kind()
    optimizer = OPTIMIZERS[optimizer](model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    step = fp8.torch.train_step(model, F.cross_entropy, optimizer, recipe) if recipe else None
    generator, losses = torch.Generator().manual_seed(1), []
    labels = torch.randn(16, 4, generator=generator)
    for _ in range(steps):
        x = torch.randn(8, 16, generator=generator)
        y = (x @ labels).argmax(-1)
        if step:
            loss = step(x, y)
        else:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return losses, model, optimizer, step


class Shifted(nn.Module):
    """A tensor that is a plain attribute of a module."""

    def __init__(self):
        super().__init__()
        self.down, self.shift = nn.Linear(16, 4), torch.linspace(-1, 1, 16)

    def forward(self, x):
        return self.down(x + self.shift)


def step_of(model, optimizer=None, loss=F.cross_entropy, **options):
    options = {"recipe": "none", **options}
    return fp8.torch.train_step(model, loss, optimizer or torch.optim.SGD(model.parameters(), 0.1), **options)


BATCH = torch.linspace(-1, 1, 128).reshape(8, 16), torch.arange(8) % 4


def error_of(call):
    """The type and message of what a call raises."""
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"
