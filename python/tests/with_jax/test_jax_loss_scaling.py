# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8-compile --loss-scaling on steps of JAX: losses of several terms, Adam and SGD in one step, clipping by the norm. A scale that is
a power of two changes no bit of f32, and a step with an overflow changes nothing, steps that optimizers count included.
"""

import sys

import fp8.jax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import ROOT
from test_jax_data_parallel import LOSSES, inputs

sys.path.append(str(ROOT / "test" / "python"))
from harness import Program, load  # noqa: E402


def adam(p, g, m, v, count):
    m = jax.tree.map(lambda old, d: 0.9 * old + 0.1 * d, m, g)
    v = jax.tree.map(lambda old, d: 0.99 * old + 0.01 * d * d, v, g)
    move = lambda w, m, v: w - 0.01 * (m / (1 - 0.9**count)) / (jnp.sqrt(v / (1 - 0.99**count)) + 1e-8)  # noqa: E731
    return jax.tree.map(move, p, m, v), m, v


def make_step(loss, clips):
    def step(p, m, v, count, batch):
        def both(p):
            return loss(p, batch) + 0.5 * sum(jnp.sum(w * w) for w in p.values()) * 1e-3

        value, g = jax.value_and_grad(both if clips else lambda p: loss(p, batch))(p)
        if clips:
            norm = jnp.sqrt(sum(jnp.sum(d * d) for d in g.values()))
            g = {name: d * jnp.minimum(1.0, 0.1 / norm) for name, d in g.items()}
        by_adam = {name: p[name] for name in m}
        moved, m, v = adam(by_adam, {name: g[name] for name in m}, m, v, count + 1)
        by_sgd = {name: w - 0.1 * (g[name] + 0.01 * w) for name, w in p.items() if name not in m}
        return {**moved, **by_sgd}, m, v, count + 1, value

    return step


@pytest.mark.parametrize("clips", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_scale_leaves_no_trace(tmp_path, loss, clips):
    params, batches = inputs(LOSSES[loss], 97)
    moments = {name: np.zeros_like(params[name]) for name in sorted(params)[::2]}
    arguments = (params, moments, moments, np.float32(0), batches[0])
    text = fp8.jax.jit(make_step(loss, clips), recipe="none").lower(*arguments).as_text()
    leaves = {str(i): np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(arguments))}
    carried = [str(i) for i in range(len(leaves) - len(batches[0]))]
    options = ["--recipe=none", f"--carry={','.join(f'{i}:{i}' for i in carried)}"]
    results = []
    for name, more in (("plain", []), ("scaled", ["--loss-scaling=65536", f"--loss={len(carried)}"])):
        (tmp_path / name).mkdir()
        program = Program(ROOT / "build" / "bin", tmp_path / name, text, *options, *more)
        program.run("main", leaves, f"--outputs={tmp_path / name / 'outputs'}", "--steps=2")
        results.append(load(tmp_path / name / "outputs"))
    plain, scaled = results
    assert all(scaled[i].tobytes() == plain[i].tobytes() for i in plain)

    for i, leaf in leaves.items():
        if i not in carried and leaf.dtype == np.float32:
            leaf = leaves[i] = leaf.copy()
            leaf.flat[3] = np.inf
    program.run("main", leaves, f"--outputs={tmp_path / 'outputs'}", f"--save-state={tmp_path / 'state'}")
    skipped, state = load(tmp_path / "outputs"), load(tmp_path / "state")
    assert all(skipped[i].tobytes() == leaves[i].tobytes() for i in carried)
    assert (state["loss_scale"], state["loss_scale_tracker"]) == (32768, 0)
