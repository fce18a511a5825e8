# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tinygrad, which writes PTX itself and loads it through libcuda.so.1: operations against numpy, then a training
step that is captured as a graph. Prints a line per check and "ok" at the end.

    DEV=CUDA:PTX LD_LIBRARY_PATH=build/lib/fp8emu python tinygrad_training.py
"""
import numpy as np
from tinygrad import Tensor, TinyJit, dtypes, nn
from tinygrad.helpers import Context
from tinygrad.nn.state import get_parameters

rng = np.random.default_rng(0)
Tensor.manual_seed(0)


def check(what, got, want, tolerance):
    """tolerance: of the greatest value, for f32 sums of a hundred products in another order."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    error = np.abs(got - want).max() / np.abs(want).max()
    print(f"{what}: {error:.1e}", flush=True)
    assert error <= tolerance, what


def quarters(*shape):
    """Exact in every type from FP8 E4M3 on, as are sums of their products in f32."""
    return rng.integers(-8, 9, shape).astype(np.float32) / 4


a, b = quarters(64, 96), quarters(96, 48)
check("matmul", (Tensor(a) @ Tensor(b)).numpy(), a @ b, 0)
# f16 by mma.sync; FP8, which tinygrad takes apart itself, in f32.
check("f16", Tensor(a).half().matmul(Tensor(b).half(), dtype=dtypes.float).numpy(), a @ b, 0)
check("E4M3", Tensor(a).cast(dtypes.fp8e4m3).matmul(Tensor(b).cast(dtypes.fp8e4m3), dtype=dtypes.float).numpy(), a @ b, 0)

x = rng.standard_normal((64, 96)).astype(np.float32)
e = np.exp(x - x.max(1, keepdims=True))
check("softmax", Tensor(x).softmax(1).numpy(), e / e.sum(1, keepdims=True), 1e-5)
check("functions", (Tensor(x).sin() + Tensor(x).exp() + Tensor(x * x + 1).log() + Tensor(x * x).sqrt()).numpy(),
      np.sin(x) + np.exp(x) + np.log(x * x + 1) + np.abs(x), 1e-5)
check("argmax", Tensor(x).argmax(1).numpy(), x.argmax(1), 0)
check("cumulative sum", Tensor(x).cumsum(1).numpy(), x.cumsum(1), 1e-5)


class Net:
    def __init__(self):
        self.first, self.norm, self.last = nn.Linear(16, 32), nn.LayerNorm(32), nn.Linear(32, 4)

    def __call__(self, x):
        return self.last(self.norm(self.first(x)).gelu())


net = Net()
optimizer = nn.optim.Adam(get_parameters(net), lr=0.02)
inputs = rng.standard_normal((64, 16)).astype(np.float32)
labels = (inputs @ rng.standard_normal((16, 4))).argmax(1).astype(np.int32)


@TinyJit
def step(x, y):
    with Context(TRAINING=1):
        optimizer.zero_grad()
        loss = net(x).sparse_categorical_crossentropy(y).backward()
        optimizer.step()
        return loss.realize()


losses = [step(Tensor(inputs).realize(), Tensor(labels).realize()).item() for _ in range(8)]
print("losses:", *(f"{loss:.3f}" for loss in losses))
assert all(later < earlier for earlier, later in zip(losses, losses[1:])) and losses[-1] < losses[0] / 2
print("ok")
