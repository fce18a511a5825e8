# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of tools/on-gpu that need PyTorch, on the emulator."""

import on_gpu
import pytest


@pytest.mark.slow(one_of=2)
def test_losses_on_the_emulator(pytestconfig, tmp_path):
    parts = on_gpu.run(pytestconfig, tmp_path, "train_step,backend,steps")
    for name in ("train_step", "backend"):
        (row,) = parts[name]
        on_gpu.check_losses(row)
    own = parts["steps"].pop(1)
    peers = parts["steps"]
    assert len(peers) == 3 and all((row["status"], row["reason"]) == ("left out", "needs a GPU") for row in peers)
    assert own["case"] == "fp8.torch.train_step delayed" and own["status"] == "ok" and own["values"]["ms"] > 0
