# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of PyTorch on CUDA tensors, with a stand-in for torch.cuda: kernels run on the emulator, on tensors in its memory."""

import fp8.torch
import pytest
import torch
import torch.nn.functional as F
import torch_backends
import torch_standin
import torch_steps
from torch import nn

pytestmark = pytest.mark.usefixtures("fresh_dynamo")
GPU = torch.device("cuda:0")


@pytest.fixture
def cuda(monkeypatch):
    return torch_standin.install(monkeypatch)


class WithLoss(nn.Module):
    """A model and its loss: one scalar leaves the compiled program."""

    def __init__(self):
        super().__init__()
        self.model = torch_backends.layers()

    def forward(self, x, y):
        return F.cross_entropy(self.model(x), y)


def train(cuda, place, steps=3, **options):
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = WithLoss()
    if place:
        cuda.move(model, place)
    backend = fp8.torch.backend("delayed", **options)
    forward = torch.compile(model, backend=backend)
    optimizer, losses = torch.optim.AdamW(model.parameters(), 1e-2), []
    for x, y in torch_backends.batches(steps):
        loss = forward(*((cuda.put(x, place), cuda.put(y, place)) if place else (x, y)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, backend


def test_values(cuda):
    found, backend = train(cuda, GPU)
    library = backend.graphs[0].library
    print(library.device, library.target, cuda.reached())
    assert library.device == "cuda:0"
