# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A training step of two layers with attention, one variant a process: python torch_attention.py VARIANT TOKENS STEPS WINDOW. A token
sees itself and WINDOW - 1 tokens before it; all before it, if that is 0.

The answer is a line of JSON: the least seconds of a step, and the most bytes that the process had during steps after the
first one, beyond those before the model.
"""

import ctypes
import gc
import json
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

LAYERS, WIDTH, HEADS = 2, 768, 12


class Layer(nn.Module):
    def __init__(self, window):
        super().__init__()
        self.window = window
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in self.qkv(self.first(x)).chunk(3, -1))
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=self.make_mask(x.shape[1]), is_causal=not self.window)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.second(x)), approximate="tanh"))

    def make_mask(self, tokens):
        places = torch.arange(tokens)
        distance = places[:, None] - places
        return (distance >= 0) & (distance < self.window) if self.window else None


def bytes_taken(field):
    """A number of bytes of this process in /proc: VmRSS is what it has, VmHWM the most that it had."""
    with open("/proc/self/status") as file:
        return 1024 * next(int(line.split()[1]) for line in file if line.startswith(field))


def make_step(variant, tokens, window):
    """A call is a step: forward, backward and AdamW. VARIANT is f32 or bf16 for eager PyTorch, or ATTENTION:RECIPE."""
    torch.manual_seed(0)
    model = nn.Sequential(*[Layer(window) for _ in range(LAYERS)])
    inputs, targets = torch.randn(1, tokens, WIDTH), torch.randn(1, tokens, WIDTH)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False)
    if ":" in variant:
        import fp8.torch

        attention, recipe = variant.split(":")
        step = fp8.torch.train_step(model, F.mse_loss, optimizer, recipe, autocast=torch.bfloat16, attention=attention)
        return lambda: step(inputs, targets)

    def step():
        with torch.autocast("cpu", torch.bfloat16, enabled=variant == "bf16"):
            outputs = model(inputs)
        F.mse_loss(outputs.float(), targets).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def forget_peak():
    """Gives back what compilation freed, and makes the peak what the process has now."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def main(variant, tokens, steps, window):
    import torch._dynamo  # noqa: F401 - PyTorch's optimizers import it: its memory is not the step's.

    if ":" in variant:
        import fp8.torch  # noqa: F401
    before = bytes_taken("VmRSS")
    step = make_step(variant, int(tokens), int(window))
    step()
    forget_peak()
    best = float("inf")
    for _ in range(int(steps)):
        start = time.perf_counter()
        step()
        best = min(best, time.perf_counter() - start)
    print(json.dumps({"seconds": best, "bytes": bytes_taken("VmHWM") - before, "version": torch.__version__}))


if __name__ == "__main__":
    main(*sys.argv[1:])
