# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures XLA on the CPU: the peer "jax" of fp8-bench. Usage: jax_peer.py EXAMPLES, then requests (server.py)."""

import os
import pathlib
import resource
import sys
import time
from typing import Any

sys.path.append(sys.argv[1])
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import jax_networks  # noqa: E402
import numpy  # noqa: E402
from server import best, serve  # noqa: E402

TYPES = {"f32": jnp.float32, "bf16": jnp.bfloat16}
prepared: dict[Any, Any] = {}  # what a later round measures again


def version() -> dict[str, Any]:
    return {"version": jax.__version__, "kinds": list(TYPES)}


def export(network: str, layers: int | None, file: str) -> dict[str, Any]:
    jax_networks.write(network, pathlib.Path(file), layers)
    return {}


def compile(network: str, layers: int) -> dict[str, Any]:
    """Seconds from StableHLO to code; tracing and lowering are left out."""
    jax.clear_caches()
    lowered = jax_networks.find(network, layers).lowered()
    user, begin = resource.getrusage(resource.RUSAGE_SELF).ru_utime, time.perf_counter()
    lowered.compile()
    wall = time.perf_counter() - begin
    return {"wall": wall, "user": resource.getrusage(resource.RUSAGE_SELF).ru_utime - user}


class Training:
    """A step whose state is handed on, in place, from one call to the next."""

    def __init__(self, network: str):
        found = jax_networks.find(network)
        self.call = found.lowered().compile()
        self.state, self.batch = found.initial()

    def __call__(self) -> None:
        *state, _ = jax.block_until_ready(self.call(*self.state, *self.batch))
        self.state = tuple(state)


def step(network: str, kind: str, seconds: float) -> dict[str, Any]:
    if network not in prepared:
        prepared[network] = Training(network)
        prepared[network]()
    return {"seconds": best(prepared[network], seconds)}


def product(shape: tuple[int, int, int], kind: str, seconds: float) -> dict[str, Any]:
    key = (*shape, kind)
    if key not in prepared:
        (m, n, k), draw = shape, numpy.random.default_rng(0)
        operands = [jnp.asarray(draw.normal(size=size), TYPES[kind]) for size in ((m, k), (k, n))]
        prepared[key] = jax.jit(jnp.matmul), operands
        jax.block_until_ready(prepared[key][0](*operands))
    call, operands = prepared[key]
    return {"seconds": best(lambda: call(*operands).block_until_ready(), seconds)}


def forget() -> dict[str, Any]:
    prepared.clear()
    return {}


if __name__ == "__main__":
    serve({"version": version, "export": export, "compile": compile, "step": step, "product": product, "forget": forget})
