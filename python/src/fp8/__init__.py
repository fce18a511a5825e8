# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FP8 training steps: compiles programs of JAX, PyTorch or MLIR so that their matrix products run in FP8.

    step = fp8.jax.jit(train_step, recipe="delayed", donate_argnums=0)            # was jax.jit
    model = torch.compile(model, backend=fp8.torch.backend(recipe="current"))
    library = fp8.compile("step.mlir", recipe="delayed")                          # from any other front end

`import fp8` needs numpy only; fp8.jax and fp8.torch are loaded on first use.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from . import recipe, state, te
from ._buffer import Buffer
from ._compile import compile, opt
from ._config import config
from ._device import DeviceBuffer
from ._entry import Entry
from ._errors import CompileError, Error, Location, MissingToolError, RunError, StateError, UnsupportedError, Warning
from ._frameworks import INSTALL
from ._library import Library, load
from ._prepared import Prepared
from ._report import AttentionSite, Report, Site
from .state import State

__version__ = "0.1.0"
__all__ = [
    "AttentionSite",
    "Buffer",
    "CompileError",
    "DeviceBuffer",
    "Entry",
    "Error",
    "Library",
    "Location",
    "MissingToolError",
    "Prepared",
    "Report",
    "RunError",
    "Site",
    "State",
    "StateError",
    "UnsupportedError",
    "Warning",
    "compile",
    "config",
    "load",
    "opt",
    "recipe",
    "state",
    "te",
]


def __getattr__(name: str) -> ModuleType:
    if name not in INSTALL:
        raise AttributeError(f"module 'fp8' has no attribute {name!r}")
    return importlib.import_module(f".{name}", __name__)
