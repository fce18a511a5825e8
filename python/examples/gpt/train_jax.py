# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The GPT of model.py trained in FP8 from JAX: the step is compiled by fp8.jax.jit, the rest is ordinary JAX.

PYTHONPATH=python/src python python/examples/gpt/train_jax.py [RECIPE [STEPS [TEXT]]]
"""

import sys

import fp8
import jax.numpy as jnp
import model
import parameters
import text

recipe, steps, path = (sys.argv[1:] + ["delayed", "200", "/usr/share/doc/jargon-text/jargon.txt.gz"][len(sys.argv) - 1 :])[:3]
step = fp8.jax.jit(model.main, recipe=recipe, keep="embed|head", donate_argnums=(0, 1, 2, 3))  # was jax.jit(model.main, …)

params = {name: jnp.array(values).reshape(shape) for name, (shape, values) in parameters.initial().items()}
moment1, moment2 = ({name: jnp.zeros_like(p) for name, p in params.items()} for _ in range(2))
count = jnp.array(0.0)
tokens = jnp.array(text.batches(text.split(text.read(path))[0], int(steps), seed=0)).reshape(int(steps), parameters.BATCH, -1)
losses = []
for i, batch in enumerate(tokens):
    params, moment1, moment2, count, loss = step(params, moment1, moment2, count, batch)
    losses.append(loss)
    if i % 20 == 0 or i + 1 == len(tokens):
        print(f"step {i}: loss {float(loss):.4f}", flush=True)
print(repr(step.report()), f"last 10: {float(jnp.mean(jnp.array(losses[-10:]))):.3f}")
