# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The GPT of model_torch.py trained in FP8 from PyTorch: fp8.torch.backend compiles it, the rest is ordinary PyTorch.

PYTHONPATH=python/src python python/examples/gpt/train_torch.py [RECIPE [STEPS [TEXT]]]
"""

import sys

import fp8.torch
import model_torch
import parameters
import text
import torch
import torch.nn.functional as F

recipe, steps, path = (sys.argv[1:] + ["delayed", "200", "/usr/share/doc/jargon-text/jargon.txt.gz"][len(sys.argv) - 1 :])[:3]
network = model_torch.initial()
backend = fp8.torch.backend(recipe, keep="embed|head")
forward = torch.compile(network, backend=backend)  # was torch.compile(network)

matrices, vectors = ([p for p in network.parameters() if (p.dim() == 2) == is_matrix] for is_matrix in (True, False))
optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.05}, {"params": vectors, "weight_decay": 0}], 4e-3, (0.9, 0.95))
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min((step + 1) / 60, (60 / (step + 1)) ** 0.5))
tokens = torch.tensor(text.batches(text.split(text.read(path))[0], int(steps), seed=0)).reshape(int(steps), parameters.BATCH, -1)
losses = []
for i, batch in enumerate(tokens.long()):
    with torch.autocast("cpu", torch.bfloat16):
        loss = F.cross_entropy(forward(batch[:, :-1]), batch[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    losses.append(loss.item())
    if i % 20 == 0 or i + 1 == len(tokens):
        print(f"step {i}: loss {losses[-1]:.4f}", flush=True)
print(repr(backend.report()), f"last 10: {sum(losses[-10:]) / len(losses[-10:]):.3f}")
