# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The example GPT from PyTorch, by fp8.torch.train_step and fp8.torch.backend, its losses beside the CPU's."""

from collections.abc import Callable, Iterator
from typing import Any

import example
import torch
import torch.nn.functional as F
from rows import LeftOut, Place, Row, attempt

RECIPES = ("delayed", "current")

#: A call takes a batch and returns the loss before its update.
Step = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def need_torch(place: Place) -> str:
    """PyTorch's device."""
    if place.device == "emulator":
        return "cpu"
    if not torch.cuda.is_available():
        raise LeftOut(f"PyTorch {torch.__version__} finds no GPU (torch.cuda.is_available()): install a PyTorch with CUDA")
    return "cuda"


def make_optimizer(network: torch.nn.Module) -> torch.optim.Optimizer:
    matrices, vectors = ([p for p in network.parameters() if (p.dim() == 2) == is_matrix] for is_matrix in (True, False))
    return torch.optim.AdamW([{"params": matrices, "weight_decay": 0.05}, {"params": vectors, "weight_decay": 0.0}], 1e-3, (0.9, 0.95))


def whole_step(network: torch.nn.Module, recipe: str, options: dict[str, Any]) -> Step:
    import fp8.torch

    optimizer = make_optimizer(network)
    return fp8.torch.train_step(network, F.cross_entropy, optimizer, recipe, autocast=torch.bfloat16, keep=example.KEEP, **options)


def ordinary_step(network: torch.nn.Module, forward: Callable[..., torch.Tensor]) -> Step:
    """A step as one writes it in PyTorch, in bf16 by autocast."""
    optimizer = make_optimizer(network)

    def step(inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        with torch.autocast(inputs.device.type, torch.bfloat16):
            loss = F.cross_entropy(forward(inputs), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def compiled_step(network: torch.nn.Module, recipe: str, options: dict[str, Any]) -> Step:
    import fp8.torch

    torch._dynamo.reset()
    return ordinary_step(network, torch.compile(network, backend=fp8.torch.backend(recipe, keep=example.KEEP, **options)))


def losses(make: Callable[..., Step], recipe: str, device: str, options: dict[str, Any], steps: int) -> list[float]:
    import model_torch

    network = model_torch.initial().to(device)
    step = make(network, recipe, options)
    batches = torch.from_numpy(example.tokens(steps)).to(device).long()
    return [float(step(batch[:, :-1].contiguous(), batch[:, 1:].flatten())) for batch in batches]


def compare(make: Callable[..., Step], place: Place) -> Iterator[Row]:
    device, steps = need_torch(place), example.prepare(place)

    def run(recipe: str) -> dict[str, Any]:
        return example.compare(losses(make, recipe, device, place.options, steps), losses(make, recipe, "cpu", {}, steps))

    for recipe in RECIPES[:1] if place.quick else RECIPES:
        yield attempt(recipe, run, recipe)


def train_step(place: Place) -> Iterator[Row]:
    return compare(whole_step, place)


def backend(place: Place) -> Iterator[Row]:
    return compare(compiled_step, place)
