# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The part of tools/on-gpu that needs JAX, on the emulator."""

import on_gpu
import pytest


@pytest.mark.slow(one_of=2)
def test_losses_on_the_emulator(pytestconfig, tmp_path):
    rows = on_gpu.run(pytestconfig, tmp_path, "jax")["jax"]
    on_gpu.check_losses(rows[0])
    assert [row["case"] for row in rows] == ["delayed", "step, jax.jit (bf16)", "step, fp8.jax.jit delayed", "step, fp8.jax.jit current"]
    assert all(row["reason"] == "needs a GPU" for row in rows[1:])
