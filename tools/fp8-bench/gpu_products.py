#!/usr/bin/env python3
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times the three products of a linear layer on a GPU beside PyTorch's, which are cuBLASLt's, and casts beside a copy.

A layer's forward product, its gradient of the input and that of the weight are compiled for the GPU, all of them in bf16
from bf16; fp8-run measures each kernel by events. Needs a GPU, numpy, ml_dtypes, safetensors and PyTorch.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import torch
from safetensors.numpy import save_file

BIN = pathlib.Path(__file__).resolve().parent.parent.parent / "build/bin"
MAPS = {"ik": "i, k", "ki": "k, i", "kj": "k, j", "jk": "j, k"}


def product(name: str, lhs: str, rhs: str, maps: tuple[str, str], types: dict[str, str], result: str) -> str:
    left, right = (f"affine_map<(i, j, k) -> ({MAPS[of]})>" for of in maps)
    return f"""  %{name}_empty = tensor.empty() : tensor<{result}xf32>
  %{name}_zero = linalg.fill ins(%zero : f32) outs(%{name}_empty : tensor<{result}xf32>) -> tensor<{result}xf32>
  %{name}_sums = linalg.matmul indexing_maps = [{left}, {right}, affine_map<(i, j, k) -> (i, j)>]
      ins(%{lhs}, %{rhs} : tensor<{types[lhs]}xbf16>, tensor<{types[rhs]}xbf16>) outs(%{name}_zero : tensor<{result}xf32>) -> tensor<{result}xf32>
  %{name} = arith.truncf %{name}_sums : tensor<{result}xf32> to tensor<{result}xbf16>
"""


def layer(m: int, n: int, k: int) -> str:
    """y = x w, dx = g w^T and dw = x^T g, of x [m, k], w [k, n], g [m, n]."""
    types = {"x": f"{m}x{k}", "w": f"{k}x{n}", "g": f"{m}x{n}"}
    arguments = ", ".join(f"%{name}: tensor<{shape}xbf16>" for name, shape in types.items())
    results = ", ".join(f"tensor<{types[name]}xbf16>" for name in "gxw")
    body = product("y", "x", "w", ("ik", "kj"), types, types["g"])
    body += product("dx", "g", "w", ("ik", "jk"), types, types["x"])
    body += product("dw", "x", "g", ("ki", "kj"), types, types["w"])
    zero = "  %zero = arith.constant 0.0 : f32\n"
    return f"func.func @main({arguments}) -> ({results}) {{\n{zero}{body}  return %y, %dx, %dw : {results}\n}}\n"


def profile(shape: tuple[int, int, int], recipe: str, target: str, folder: pathlib.Path) -> list[dict[str, Any]]:
    """The kernels of a step, as fp8-run --profile has them."""
    m, n, k = shape
    random = np.random.default_rng(0)
    values = {str(i): random.standard_normal(size, dtype=np.float32).astype(ml_dtypes.bfloat16) for i, size in enumerate([(m, k), (k, n), (m, n)])}
    save_file(values, folder / "in.safetensors")
    (folder / "layer.mlir").write_text(layer(m, n, k))
    library, out = folder / "layer.so", folder / "profile.json"
    subprocess.run([BIN / "fp8-compile", folder / "layer.mlir", "-o", library, f"--target={target}", f"--recipe={recipe}"], check=True)
    command = [BIN / "fp8-run", library, f"--inputs={folder}/in.safetensors", "--device=cuda", "--steps=12", f"--profile={out}"]
    subprocess.run(command, check=True)
    kernels: list[dict[str, Any]] = json.loads(out.read_text())["kernels"]
    return kernels


def milliseconds(call: Callable[[], object]) -> float:
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


def peers(m: int, n: int, k: int) -> dict[str, float]:
    """TFLOP/s of PyTorch: bf16, and E4M3 with sums in the tensor core alone (fast) or promoted to f32 (split)."""
    a, b = (torch.randn(rows, k, device="cuda", dtype=torch.bfloat16) for rows in (m, n))
    a8, b8, one = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn), torch.ones((), device="cuda")

    def scaled(fast: bool) -> Callable[[], object]:
        return lambda: torch._scaled_mm(a8, b8.t(), one, one, out_dtype=torch.bfloat16, use_fast_accum=fast)

    calls: dict[str, Callable[[], object]] = {"bf16": lambda: a @ b.t(), "fast": scaled(True), "split": scaled(False)}
    return {name: 2e-9 * m * n * k / milliseconds(call) for name, call in calls.items()}


def copy_speed() -> float:
    """GB/s, read and written, of a copy of 2 GiB."""
    x = torch.randn(1 << 30, device="cuda", dtype=torch.bfloat16)
    y = torch.empty_like(x)
    return 2e-6 * x.nbytes / milliseconds(lambda: y.copy_(x))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", default="4096x4096x4096,8192x8192x8192,8192x16384x2048", help="MxNxK,… of the forward product")
    parser.add_argument("--recipes", default="none,delayed,current,row,block", help="recipes of fp8-compile")
    parser.add_argument("--target", default="sm_90a", help="the GPU, as fp8-compile names it")
    options = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}; a copy moves {copy_speed():.0f} GB/s")
    for text in options.shapes.split(","):
        m, n, k = map(int, text.split("x"))
        beside = ", ".join(f"{name} {speed:.0f}" for name, speed in peers(m, n, k).items())
        print(f"\n{text}: PyTorch {beside} TFLOP/s")
        for recipe in options.recipes.split(","):
            with tempfile.TemporaryDirectory() as folder:
                kernels = profile((m, n, k), recipe, options.target, pathlib.Path(folder))
            speeds = {one["name"].split("_")[1]: one["gflops"] / 1e3 for one in kernels if one["kind"] == "products"}
            casts = [one for one in kernels if one["kind"] == "casts"]
            moved = sum(one["bytes_read"] + one["bytes_written"] for one in casts)
            line = ", ".join(f"{role} {speeds[role]:.0f}" for role in ("fprop", "dgrad", "wgrad")) + " TFLOP/s"
            print(f"  {recipe:8} {line}" + (f"; casts {moved / 1e6 / sum(one['ms'] for one in casts):.0f} GB/s" if casts else ""), flush=True)


if __name__ == "__main__":
    main()
