# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times of fp8.torch beside eager PyTorch and torch.compile, as one line of JSON: python torch_package.py EXAMPLES ROUNDS."""

import functools
import json
import shutil
import sys
import time

import fp8.torch
import torch
import torch.nn.functional as F

sys.path.append(sys.argv[1])
import torch_networks  # noqa: E402

ROUNDS = int(sys.argv[2])
CALLS, PARTS = 100, 10
#: It needs a C++ compiler.
INDUCTOR = {"torch.compile": "inductor"} if shutil.which("g++") or shutil.which("clang++") else {}
STEPS = 6


def seconds_of_calls(function, arrays):
    """The mean of some calls, the least of several such means."""
    function(arrays)
    best = float("inf")
    for _ in range(PARTS):
        start = time.perf_counter()
        for _ in range(CALLS):
            function(arrays)
        best = min(best, time.perf_counter() - start)
    return best / CALLS


def seconds_of_step(step):
    best = float("inf")
    for _ in range(STEPS):
        start = time.perf_counter()
        step()
        best = min(best, time.perf_counter() - start)
    return best


def least(measures):
    """The least of all rounds; a round takes every variant once, so that a disturbance meets all alike."""
    best = {}
    for _ in range(ROUNDS):
        for name, measure in measures.items():
            best[name] = min(best.get(name, float("inf")), measure())
    return best


def compilers():
    """The backends given to torch.compile, by the name of the column."""
    return {**INDUCTOR, **{recipe: fp8.torch.backend(recipe, keep="embed|head") for recipe in ("none", "current", "delayed")}}


def plus(arrays):
    return [a + 1 for a in arrays]


class Product(torch.nn.Module):
    """A product, forward and backward."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2, 2))

    def forward(self, arrays):
        return [torch.tanh(arrays[0].reshape(2, 2) @ self.weight), *[a + 1 for a in arrays[1:]]]


def descending(compile_module):
    module = Product()
    forward = compile_module(module)

    def step(arrays):
        module.weight.grad = None
        forward(arrays)[0].sum().backward()

    return step


def calls():
    rows = {}
    for count in (1, 10, 100):
        arrays = [torch.ones(4) for _ in range(count)]
        variants = {"eager": plus}
        for name, backend in compilers().items():
            # A recipe counts where there is a product.
            if name in ("torch.compile", "none"):
                torch._dynamo.reset()
                variants[name] = torch.compile(plus, backend=backend)
                variants[name](arrays)
        variants["eager, gradient"] = descending(lambda module: module)
        for name, backend in [*INDUCTOR.items(), ("delayed", fp8.torch.backend("delayed", sites="all"))]:
            torch._dynamo.reset()
            variants[f"{name}, gradient"] = descending(functools.partial(torch.compile, backend=backend))
            variants[f"{name}, gradient"](arrays)
        best = least({name: lambda f=function, a=arrays: seconds_of_calls(f, a) for name, function in variants.items()})
        rows[str(count)] = {name: 1e6 * seconds for name, seconds in best.items()}
    return rows


def training(name, compile_network, bf16=True):
    """A call is one step, in bf16 unless told otherwise: forward, backward, optimizer."""
    network, optimizer, inputs, labels = torch_networks.parts(name)
    forward = compile_network(network)

    def step():
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            scores = forward(inputs)
        F.cross_entropy(scores.float(), labels).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def whole_step(name, recipe):
    network, optimizer, inputs, labels = torch_networks.parts(name)
    step = fp8.torch.train_step(network, F.cross_entropy, optimizer, recipe, autocast=torch.bfloat16, keep="embed|head")
    return lambda: step(inputs, labels)


def steps():
    rows = {}
    for name in ("mlp", "gpt"):
        torch._dynamo.reset()
        variants = {"eager, f32": training(name, lambda network: network, bf16=False), "eager": training(name, lambda network: network)}
        for column, backend in compilers().items():
            variants[column] = training(name, lambda network, backend=backend: torch.compile(network, backend=backend))
        variants["delayed, train_step"] = whole_step(name, "delayed")
        best = least({column: lambda s=step: seconds_of_step(s) for column, step in variants.items()})
        rows[name] = {column: 1e3 * seconds for column, seconds in best.items()}
    return rows


torch.manual_seed(0)
print(json.dumps({"version": torch.__version__, "calls": calls(), "steps": steps()}))
