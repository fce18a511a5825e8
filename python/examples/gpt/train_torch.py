# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The GPT of model_torch.py trained in FP8 from PyTorch: fp8.torch.backend compiles it, the rest is ordinary PyTorch.

PYTHONPATH=python/src python python/examples/gpt/train_torch.py [--device=cpu|cuda|emulator] [RECIPE [STEPS [TEXT]]]
"""

import argparse

import fp8.torch
import model_torch
import parameters
import text
import torch
import torch.nn.functional as F

parser = argparse.ArgumentParser(description="Trains a small GPT in FP8 from PyTorch.")
parser.add_argument("recipe", nargs="?", default="delayed")
parser.add_argument("steps", nargs="?", type=int, default=200)
parser.add_argument("text", nargs="?", default="/usr/share/doc/jargon-text/jargon.txt.gz")
parser.add_argument("--device", choices=("cpu", "cuda", "emulator"), default="cpu", help="the emulator runs a GPU's code on the CPU, slowly")
options = parser.parse_args()
place = "cuda" if options.device == "cuda" else "cpu"  # the emulator takes the CPU's tensors
network = model_torch.initial().to(place)
backend = fp8.torch.backend(options.recipe, keep="embed|head", device=options.device)
forward = torch.compile(network, backend=backend)  # was torch.compile(network)

matrices, vectors = ([p for p in network.parameters() if (p.dim() == 2) == is_matrix] for is_matrix in (True, False))
optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.05}, {"params": vectors, "weight_decay": 0}], 4e-3, (0.9, 0.95))
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min((step + 1) / 60, (60 / (step + 1)) ** 0.5))
tokens = torch.tensor(text.batches(text.split(text.read(options.text))[0], options.steps, seed=0)).reshape(options.steps, parameters.BATCH, -1).to(place)
losses = []
for i, batch in enumerate(tokens.long()):
    with torch.autocast(place, torch.bfloat16):
        loss = F.cross_entropy(forward(batch[:, :-1]), batch[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    losses.append(loss.item())
    if i % 20 == 0 or i + 1 == len(tokens):
        print(f"step {i}: loss {losses[-1]:.4f}", flush=True)
print(repr(backend.report()), f"last 10: {sum(losses[-10:]) / len(losses[-10:]):.3f}")
