# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8.torch.train_step with SGD's dampening and Adafactor, and with weights that are tied, parametrized, or kept in lists."""

import fp8.torch
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, parametrize


class Tied(nn.Module):
    """The second layer has the weight of the first."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.head = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 4)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.head(torch.tanh(self.second(torch.tanh(self.first(x)))))


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).transpose(-1, -2)


def normed(norm):
    model = Tied()
    model.second = norm(nn.Linear(16, 16))
    return model


def parametrized():
    """A tied weight that is parametrized in one of both places."""
    model = Tied()
    parametrize.register_parametrization(model.first, "weight", Symmetric())
    return model


class Listed(Tied):
    """A weight that forward takes from a list."""

    def __init__(self):
        super().__init__()
        self.weights = [self.first.weight]

    def forward(self, x):
        return self.head(torch.tanh(F.linear(torch.tanh(self.first(x)), self.weights[0])))


def train(kind, optimizer, compiled, steps=3, interrupted=False):
    """Losses, parameters and the optimizer's state; an interrupted training goes on with another step and optimizer."""
    torch.manual_seed(0)
    model = kind()
    chosen = optimizer(model.parameters())
    step = fp8.torch.train_step(model, F.cross_entropy, chosen, "none") if compiled else None
    generator, losses = torch.Generator().manual_seed(1), []
    for number in range(steps):
        if interrupted and number == 1:
            saved, chosen = chosen.state_dict(), optimizer(model.parameters())
            chosen.load_state_dict(saved)
            step = fp8.torch.train_step(model, F.cross_entropy, chosen, "none")
        x, y = torch.randn(8, 16, generator=generator), torch.randint(4, (8,), generator=generator)
        if step:
            loss = step(x, y)
        else:
            loss = F.cross_entropy(model(x), y)
            chosen.zero_grad()
            loss.backward()
            chosen.step()
        losses.append(loss.item())
    state = [value for own in chosen.state_dict()["state"].values() for value in own.values() if isinstance(value, torch.Tensor)]
    return losses, [p.detach() for p in model.parameters()], state


def compare(kind, optimizer, **options):
    expected, found = train(kind, optimizer, False), train(kind, optimizer, True, **options)
    # Sums in another order, over three steps.
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


KINDS = {
    "tied": Tied,
    "weight_norm": lambda: normed(parametrizations.weight_norm),
    "spectral_norm": lambda: normed(parametrizations.spectral_norm),
    "an older weight_norm": lambda: normed(torch.nn.utils.weight_norm),
    "parametrized and tied": parametrized,
    "in a list": Listed,
}


@pytest.mark.parametrize("kind", KINDS)
def test_weights_that_other_modules_have_or_make(kind):
    compare(KINDS[kind], lambda p: torch.optim.SGD(p, 0.1))


DAMPENED = {
    "dampening": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, dampening=0.5, weight_decay=0.01),
    "without momentum": lambda p: torch.optim.SGD(p, 0.1, dampening=0.5),
    "Adafactor": lambda p: torch.optim.Adafactor(p, 0.1, weight_decay=0.1, d=2.0),
}


@pytest.mark.parametrize("name", DAMPENED)
def test_dampening_and_adafactor(name):
    compare(Tied, DAMPENED[name])


def test_dampening_goes_on_after_a_checkpoint():
    compare(Tied, DAMPENED["dampening"], interrupted=True)


def test_dampening_of_a_layer_that_is_trained_later():
    """Its first step is apart from the others' second."""

    def run(compiled):
        torch.manual_seed(0)
        model = Tied()
        optimizer = DAMPENED["dampening"](model.parameters())
        step = fp8.torch.train_step(model, F.cross_entropy, optimizer, "none") if compiled else None
        x, y = torch.linspace(-1, 1, 128).reshape(8, 16), torch.arange(8) % 4
        for number in range(3):
            model.head.requires_grad_(number > 0)
            if step:
                step(x, y)
            else:
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                optimizer.step()
        return [p.detach() for p in model.parameters()]

    torch.testing.assert_close(run(True), run(False), rtol=1e-5, atol=1e-6)


def test_adafactor_after_torch_compile():
    """Dynamo wraps methods of optimizers once something was compiled."""
    torch.compile(lambda x: x + 1, backend=fp8.torch.backend("none"))(torch.ones(3))
    test_dampening_and_adafactor("Adafactor")
