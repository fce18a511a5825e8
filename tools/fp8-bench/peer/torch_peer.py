# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures PyTorch on the CPU, eager: the peer "torch" of fp8-bench. Usage: torch_peer.py EXAMPLES, then requests (server.py)."""

import sys
from typing import Any

sys.path.append(sys.argv[1])

import torch  # noqa: E402
import torch_networks  # noqa: E402
from server import best, serve  # noqa: E402

TYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
prepared: dict[Any, Any] = {}  # what a later round measures again


def version() -> dict[str, Any]:
    """Where oneDNN has no bf16 (AVX2), PyTorch multiplies bf16 one number at a time: nobody would use it."""
    kinds = ["f32", "bf16"] if torch.ops.mkldnn._is_mkldnn_bf16_supported() else ["f32"]
    return {"version": torch.__version__, "kinds": kinds}


def step(network: str, kind: str, seconds: float) -> dict[str, Any]:
    key = network, kind
    if key not in prepared:
        prepared[key] = torch_networks.training(network, kind)
        prepared[key]()
    return {"seconds": best(prepared[key], seconds)}


def product(shape: tuple[int, int, int], kind: str, seconds: float) -> dict[str, Any]:
    key = (*shape, kind)
    if key not in prepared:
        m, n, k = shape
        prepared[key] = torch.randn(m, k).to(TYPES[kind]), torch.randn(k, n).to(TYPES[kind])
    a, b = prepared[key]
    return {"seconds": best(lambda: a @ b, seconds)}


def forget() -> dict[str, Any]:
    prepared.clear()
    return {}


if __name__ == "__main__":
    torch.manual_seed(0)
    serve({"version": version, "step": step, "product": product, "forget": forget})
