# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""StableHLO's norms of batches, written in JAX: computed in f32 or wider, and rounded at the end.

Each feature, a number of the dimension `feature`, is normalized by its mean and variance over all other dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

Array = Any


def training(operand: Array, scale: Array, offset: Array, *, epsilon: float, feature: int) -> tuple[Array, Array, Array]:
    """The normalized operand, and the mean and variance of each feature."""
    x, (scale, offset), others = _wide(operand, (scale, offset), feature)
    mean = x.mean(others, keepdims=True)
    variance = ((x - mean) ** 2).mean(others, keepdims=True)
    normalized = (x - mean) / jnp.sqrt(variance + epsilon) * scale + offset
    mean, variance = (lax.squeeze(a, others).astype(operand.dtype) for a in (mean, variance))
    return normalized.astype(operand.dtype), mean, variance


def inference(operand: Array, scale: Array, offset: Array, mean: Array, variance: Array, *, epsilon: float, feature: int) -> Array:
    x, (scale, offset, mean, variance), _ = _wide(operand, (scale, offset, mean, variance), feature)
    return ((x - mean) / jnp.sqrt(variance + epsilon) * scale + offset).astype(operand.dtype)


def gradient(operand: Array, scale: Array, mean: Array, variance: Array, cotangent: Array, *, epsilon: float, feature: int) -> tuple[Array, Array, Array]:
    """The gradients of the operand, the scale and the offset of `training`."""
    x, (scale, mean, variance), others = _wide(operand, (scale, mean, variance), feature)
    dy, _, _ = _wide(cotangent, (), feature)
    deviation = jnp.sqrt(variance + epsilon)
    normalized = (x - mean) / deviation
    dscale, doffset = ((dy * a).sum(others, keepdims=True) for a in (normalized, 1))
    dx = scale / deviation * (dy - dy.mean(others, keepdims=True) - normalized * (dy * normalized).mean(others, keepdims=True))
    dscale, doffset = (lax.squeeze(a, others).astype(operand.dtype) for a in (dscale, doffset))
    return dx.astype(operand.dtype), dscale, doffset


def _wide(operand: Array, features: Sequence[Array], feature: int) -> tuple[Array, list[Array], list[int]]:
    """All in f32 or wider, the numbers of the features in the operand's rank, and the other dimensions."""
    dtype = jnp.promote_types(operand.dtype, jnp.float32)
    others = [d for d in range(operand.ndim) if d != feature]
    return operand.astype(dtype), [lax.expand_dims(f.astype(dtype), others) for f in features], others
