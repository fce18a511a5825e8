# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One of the two trainings of `train.py --jax`: prints the loss of each step, and at the end that on held-out text.

    python variant_jax.py BIN TEXT STEPS REPORT.json --recipe=RECIPE [--keep=REGEX]
"""

import os
import pathlib
import statistics
import sys

tools, path, steps, report, *given = sys.argv[1:]
os.environ["FP8_TOOLS"] = tools  # Read when fp8 is imported.
# train.py shows the first line.
sys.excepthook = lambda kind, error, _: print(f"{kind.__name__}: {error}", file=sys.stderr)

import fp8  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import model  # noqa: E402
import parameters  # noqa: E402
import text  # noqa: E402
import train  # noqa: E402

options = dict(option.removeprefix("--").split("=", 1) for option in given)
step = fp8.jax.jit(model.main, donate_argnums=(0, 1, 2, 3), **options)
learned, held_out = text.split(text.read(path))
params = {name: jnp.array(values).reshape(shape) for name, (shape, values) in parameters.initial().items()}
carried = [params, *({name: jnp.zeros_like(p) for name, p in params.items()} for _ in range(2)), jnp.array(0.0)]


def token_batches(data, count, seed):
    return jnp.array(text.batches(data, count, seed)).reshape(count, parameters.BATCH, text.WINDOW)


for number, batch in enumerate(token_batches(learned, int(steps), seed=1)):
    *carried, loss = step(*carried, batch)
    print(number, float(loss), sep="\t", flush=True)
pathlib.Path(report).write_text(step.report().to_json())

# Scales of its own for each batch, where training has a history: another program, another state.
evaluate = fp8.jax.jit(model.evaluate, **{**options, "recipe": "none" if options["recipe"] == "none" else "current"})
print("held_out", statistics.fmean(float(evaluate(carried[0], b)) for b in token_batches(held_out, train.HELD_OUT_BATCHES, seed=2)), sep="\t")
