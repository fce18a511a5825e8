# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The GPT of model.py trained in FP8 from JAX: the step is compiled by fp8.jax.jit, the rest is ordinary JAX.

PYTHONPATH=python/src python python/examples/gpt/train_jax.py [RECIPE [STEPS [TEXT]]] [--device=emulator]
"""

import argparse

import fp8
import jax.numpy as jnp
import model
import parameters
import text

options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
options.add_argument("recipe", nargs="?", default="delayed", help="delayed, current, row, block, mxfp8 or none (%(default)s)")
options.add_argument("steps", nargs="?", type=int, default=200, help="(%(default)s)")
options.add_argument("text", nargs="?", default="/usr/share/doc/jargon-text/jargon.txt.gz", help="the text to learn (%(default)s)")
options.add_argument("--device", help="cpu, cuda or emulator (where JAX puts its arrays: on a GPU, if it has one)")
given = options.parse_args()
step = fp8.jax.jit(model.main, recipe=given.recipe, keep="embed|head", donate_argnums=(0, 1, 2, 3), device=given.device)  # was jax.jit(model.main, …)

params = {name: jnp.array(values).reshape(shape) for name, (shape, values) in parameters.initial().items()}
moment1, moment2 = ({name: jnp.zeros_like(p) for name, p in params.items()} for _ in range(2))
count = jnp.array(0.0)
tokens = jnp.array(text.batches(text.split(text.read(given.text))[0], given.steps, seed=0)).reshape(given.steps, parameters.BATCH, -1)
losses = []
for i, batch in enumerate(tokens):
    params, moment1, moment2, count, loss = step(params, moment1, moment2, count, batch)
    losses.append(loss)
    if i % 20 == 0 or i + 1 == len(tokens):
        print(f"step {i}: loss {float(loss):.4f}", flush=True)
print(repr(step.report()), f"last 10: {float(jnp.mean(jnp.array(losses[-10:]))):.3f}")
