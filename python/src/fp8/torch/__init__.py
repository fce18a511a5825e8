# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FP8 for PyTorch.

    model = torch.compile(model, backend=fp8.torch.backend(recipe="current"))          # was torch.compile(model)
    step = fp8.torch.train_step(model, F.cross_entropy, optimizer, recipe="delayed")   # loss = step(inputs, targets)
    run = fp8.torch.compile_exported(torch.export.export(model.eval(), (x,)))          # y = run(x)

Programs run where their tensors lie, on the CPU or a GPU; with device="emulator" a GPU's code runs on the CPU.
Needs torch 2.15 and iree-base-compiler.
"""

from __future__ import annotations

from .._frameworks import importing, warn_if_untested

with importing("torch"):
    import torch

    from ._backend import Backend, backend
    from ._exported import Exported, compile_exported
    from ._graph import Graph
    from ._state import State
    from ._train_step import TrainStep, train_step

warn_if_untested("torch", torch.__version__)

__all__ = ["Backend", "Exported", "Graph", "State", "TrainStep", "backend", "compile_exported", "train_step"]
