# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`fp8.jax`: training steps and functions of JAX with their matrix products in FP8.

step = fp8.jax.jit(train_step, recipe="delayed", donate_argnums=0)     # was jax.jit(train_step, donate_argnums=0)
dense = fp8.jax.function(dense, recipe="current")                      # one function inside of the user's own jit
train = fp8.jax.nnx_jit(train)                                         # was flax.nnx.jit(train)
"""

from __future__ import annotations

import os

from .._frameworks import importing, warn_if_untested

with importing("jax"):
    import jax

    from .lowering._places import hide_frames

warn_if_untested("jax", jax.__version__)
hide_frames(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

with importing("jax"):
    from ._compiled import Compiled, Lowered
    from ._function import Function, function
    from ._jit import jit
    from ._nnx import NnxStep, nnx_jit
    from ._step import Step

__all__ = ["Compiled", "Function", "Lowered", "NnxStep", "Step", "function", "jit", "nnx_jit"]
