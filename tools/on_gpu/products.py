# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A linear layer's forward product and both gradients beside PyTorch's products, which are cuBLASLt's; all give bf16."""

import statistics
from collections.abc import Callable, Iterator
from typing import Any

from rows import LeftOut, Place, Row, attempt

import programs

SHAPES = [(4096, 4096, 4096), (8192, 8192, 8192), (8192, 16384, 2048)]
QUICK = [(64, 48, 64)]
BLOCK = 128
# Scales, and where FP8 is summed: in the tensor core alone (fast), or promoted to f32 (split).
PEERS = ("bf16", "tensor fast", "tensor split", "row fast", "row split", "1x128 split")
ROLES = ("fprop", "dgrad", "wgrad")


def import_torch(place: Place) -> Any:
    place.need_gpu()
    try:
        import torch
    except ImportError:
        raise LeftOut("needs PyTorch") from None
    if not torch.cuda.is_available():
        raise LeftOut(f"PyTorch {torch.__version__} finds no GPU")
    return torch


def milliseconds(torch: Any, call: Callable[[], object]) -> float:
    """The median of 30 calls, each between two events."""
    for _ in range(5):
        call()
    times = []
    for _ in range(30):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times)


def cublas(place: Place, shape: tuple[int, int, int], kind: str) -> dict[str, Any]:
    """TFLOP/s of a [m, k] times b [n, k] transposed."""
    torch = import_torch(place)
    m, n, k = shape
    a, b = (torch.randn(rows, k, device="cuda", dtype=torch.bfloat16) for rows in (m, n))
    scales, _, sums = kind.partition(" ")

    def ones(*sizes: int) -> Any:
        return torch.ones(sizes, device="cuda")

    def bf16() -> Any:
        return a @ b.t()

    def scaled() -> Any:
        return torch._scaled_mm(x, y.t(), *factors, out_dtype=torch.bfloat16, use_fast_accum=sums == "fast")

    if scales != "bf16":
        if not hasattr(torch, "_scaled_mm"):
            raise LeftOut(f"PyTorch {torch.__version__} has no torch._scaled_mm")
        x, y = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
        # The scales of 1 x 128 lie in memory beside those of the rows below and above, those of 128 x 128 row by row.
        factors = {
            "tensor": lambda: (ones(), ones()),
            "row": lambda: (ones(m, 1), ones(1, n)),
            "1x128": lambda: (ones(k // BLOCK, m).t(), ones(n // BLOCK, k // BLOCK).t()),
        }[scales]()
    return {"TFLOP/s": 2e-9 * m * n * k / milliseconds(torch, bf16 if scales == "bf16" else scaled)}


def ours(place: Place, shape: tuple[int, int, int], recipe: str) -> dict[str, Any]:
    library = programs.library(programs.layer, shape, recipe, place.device, place.chip)
    kernels = programs.profile(library, programs.inputs(programs.layer, shape), 1 if place.quick else 8)
    products = {kernel.name.split("_")[1]: kernel for kernel in kernels if kernel.kind == "products"}
    flops = 2 * shape[0] * shape[1] * shape[2]
    if place.device == "emulator":  # Its times say nothing of a GPU.
        operations = {role: products[role].operations for role in ROLES}
        return {"ok": all(count == flops for count in operations.values()), **{f"operations {role}": count for role, count in operations.items()}}
    return {f"TFLOP/s {role}": 1e-9 * flops * products[role].calls / products[role].milliseconds for role in ROLES}


def measure(place: Place) -> Iterator[Row]:
    for shape in QUICK if place.quick else SHAPES:
        name = "x".join(map(str, shape))
        for kind in PEERS:
            yield attempt(f"{name} cuBLASLt {kind}", cublas, place, shape, kind)
        for recipe in programs.RECIPES:
            yield attempt(f"{name} {recipe}", ours, place, shape, recipe)
