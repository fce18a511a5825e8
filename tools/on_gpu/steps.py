# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The time of a GPT's training step from PyTorch: forward, backward and AdamW."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import clock
import example
import parameters
import torch
import training
from rows import LeftOut, Place, Row, attempt

WIDE = {"LAYERS": 4, "HEADS": 16, "WIDTH": 2048, "HIDDEN": 8192, "SEQUENCE": 1024, "BATCH": 8}


def float8(network: torch.nn.Module) -> torch.nn.Module:
    """torchao's linear layers in FP8, with a scale per tensor, but for the output layer."""
    try:
        from torchao.float8 import convert_to_float8_training
    except ImportError as error:
        raise LeftOut(f"needs torchao ({error})") from None
    convert_to_float8_training(network, module_filter_fn=lambda module, name: "head" not in name)
    return network


def peers() -> dict[str, Callable[[torch.nn.Module], training.Step]]:
    return {
        "eager bf16": lambda network: training.ordinary_step(network, network),
        "torch.compile bf16": lambda network: training.ordinary_step(network, torch.compile(network)),
        "torchao float8, torch.compile": lambda network: training.ordinary_step(network, torch.compile(float8(network))),
    }


def ours(options: dict[str, Any]) -> dict[str, Callable[[torch.nn.Module], training.Step]]:
    recipes = ("delayed", "none", "current", "block")
    whole = {f"fp8.torch.train_step {recipe}": functools.partial(training.whole_step, recipe=recipe, options=options) for recipe in recipes}
    return {**whole, "fp8.torch.backend delayed": functools.partial(training.compiled_step, recipe="delayed", options=options)}


def time_step(make: Callable[[torch.nn.Module], training.Step], device: str, quick: bool) -> dict[str, Any]:
    import model_torch

    torch._dynamo.reset()
    torch.manual_seed(0)
    with torch.device(device):
        network = model_torch.Gpt()
        batch = torch.randint(0, parameters.VOCABULARY, (parameters.BATCH, parameters.SEQUENCE + 1))
    inputs, labels = batch[:, :-1].contiguous(), batch[:, 1:].flatten()
    step = make(network)
    # A loss is a number of the CPU: it waits for the step.
    milliseconds = clock.milliseconds(lambda: float(step(inputs, labels)), *((1, 1) if quick else ()))
    if device == "cuda":
        del network, step
        torch.cuda.empty_cache()
    return {"ms": milliseconds}


def measure(place: Place) -> Iterator[Row]:
    device = training.need_torch(place)
    example.resize(example.TINY if place.quick else WIDE)

    def run(make: Callable[[torch.nn.Module], training.Step], is_peer: bool) -> dict[str, Any]:
        if is_peer:
            place.need_gpu()
        return time_step(make, device, place.quick)

    eager, *others = ((name, make, True) for name, make in peers().items())
    first, *rest = ((name, make, False) for name, make in ours(place.options).items())
    # The time limit cuts off what matters least.
    for name, make, is_peer in (eager, first, *others, *(() if place.quick else rest)):
        yield attempt(name, run, make, is_peer)
