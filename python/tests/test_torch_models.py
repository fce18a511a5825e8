# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Third-party models with one changed line: losses beside eager PyTorch, and the report's counts."""

import fp8.torch
import pytest
import torch
import torch_models

# Model: the number of products, and how many of them are of weights and run in FP8; the others are of attention.
COUNTS = {
    "gpt2": (39, 27),
    "llama": (57, 45),
    "bert": (54, 42),
    "t5": (135, 99),
    "mixtral": (30, 24),
    "vit": (51, 39),
    "mixer": (27, 27),
    "convnext": (27, 27),
}
EAGER = {}


def train(name, recipe=None, steps=4, autocast=True):
    """Losses of steps with AdamW, and the backend."""
    torch.manual_seed(0)
    torch._dynamo.reset()
    model, new_batch = getattr(torch_models, name)()
    model.train()
    forward, backend = model, None
    if recipe:
        backend = fp8.torch.backend(recipe)
        forward = torch.compile(model, backend=backend)
    optimizer, losses = torch.optim.AdamW(model.parameters(), 3e-3), []
    generator = torch.Generator().manual_seed(1)
    for _ in range(steps):
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            loss = forward(**new_batch(generator)).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, backend


def eager(name, autocast):
    if (name, autocast) not in EAGER:
        EAGER[name, autocast] = train(name, autocast=autocast)[0]
    return EAGER[name, autocast]


@pytest.mark.parametrize("name", [n if n in ("gpt2", "mixer") else pytest.param(n, marks=pytest.mark.slow) for n in COUNTS])
def test_none_is_eager(name):
    losses, backend = train(name, "none", autocast=False)
    # Sums in f32 in another order; AdamW amplifies roundings of gradients near 0.
    torch.testing.assert_close(losses, eager(name, False), rtol=2e-5, atol=0)
    assert len(backend.graphs[0].report.sites) == COUNTS[name][0]


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["current", "delayed"])
@pytest.mark.parametrize("name", COUNTS)
def test_recipes(name, recipe):
    losses, backend = train(name, recipe)
    # FP8 rounds to 1/16 at most, bf16 under autocast to 1/256; losses are 2 to 6.
    torch.testing.assert_close(losses, eager(name, True), rtol=0.01, atol=0)
    report = backend.graphs[0].report
    assert (len(report.sites), len(report.fp8)) == COUNTS[name]
    assert {site.reason for site in report.kept} <= {"no weight operand"}
