# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Several devices: compiled code runs on one of them, or on each within a shard_map."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

import jax
import jax.extend.core
from jax._src.interpreters import ad, batching, mlir
from jax._src.sharding_impls import ShardingContext
from jax.sharding import AxisType, NamedSharding, PartitionSpec

SEVERAL = (
    "an argument lies on several devices, and compiled code runs on one: call step.apply, or what fp8.jax.function "
    "returns, within jax.shard_map, for the part of each device, and combine the results by jax.lax.pmean"
)


def refuse_explicit_shardings(leaves: Sequence[Any]) -> None:
    """Raises NotImplementedError for a traced array whose type says that it is divided over several devices."""
    for leaf in leaves:
        mesh = jax.typeof(leaf).sharding.mesh
        if math.prod(size for size, type in zip(mesh.axis_sizes, mesh.axis_types) if type == AxisType.Explicit) > 1:
            raise NotImplementedError(SEVERAL)


def on_one_device(arrays: Sequence[Any]) -> list[Any]:
    """The arrays; JAX raises NotImplementedError when it lowers them, or runs this, for several devices outside of shard_map.

    XLA would gather the arrays, and compute the same on every device.
    """
    return list(_on_one_device.bind(*arrays)) if arrays else []


def varying_alike(arrays: Sequence[Any]) -> list[Any]:
    """The arrays, each varying over all axes of a shard_map that one of them varies over, as a custom call wants them."""
    types = [jax.typeof(array).manual_axis_type.varying for array in arrays]
    axes = frozenset().union(*types)
    return [jax.lax.pcast(array, tuple(axes - type), to="varying") if axes - type else array for array, type in zip(arrays, types)]


def results_varying_as(arrays: Sequence[Any], results: Sequence[jax.ShapeDtypeStruct], shared: Collection[int] = ()) -> list[jax.ShapeDtypeStruct]:
    """The types of the results of a custom call, which within a shard_map vary as its arguments do, but for those that all devices share."""
    of_first = jax.typeof(arrays[0]) if arrays else None
    if of_first is None or not of_first.manual_axis_type.varying:
        return list(results)
    sharding = NamedSharding(of_first.sharding.mesh, PartitionSpec())
    own, common = of_first.manual_axis_type, type(of_first.manual_axis_type)()
    types = [common if i in shared else own for i in range(len(results))]
    return [jax.ShapeDtypeStruct(r.shape, r.dtype, sharding=sharding, manual_axis_type=t) for r, t in zip(results, types)]


def _run(*arrays: Any) -> list[Any]:
    if any(len(array.sharding.device_set) > 1 for array in arrays if isinstance(array, jax.Array)):
        raise NotImplementedError(SEVERAL)
    return list(arrays)


def _lower(context: mlir.LoweringRuleContext, *values: Any) -> Sequence[Any]:
    axes = context.module_context.axis_context
    if isinstance(axes, ShardingContext) and axes.num_devices > 1:
        raise NotImplementedError(SEVERAL)
    return values


def _refuse_second_derivative(*_: Any, **__: Any) -> Any:
    raise NotImplementedError(
        "what fp8.jax.function returns has a first derivative only: for a gradient of a gradient, a Hessian or jax.jvp of "
        "a gradient call the function itself, which is its __wrapped__"
    )


_on_one_device = jax.extend.core.Primitive("fp8_on_one_device")
_on_one_device.multiple_results = True
_on_one_device.def_impl(_run)
_on_one_device.def_abstract_eval(lambda *types: list(types))
batching.primitive_batchers[_on_one_device] = lambda arrays, dims: (_on_one_device.bind(*arrays), dims)
# Steps refuse before; of a function this is differentiated where its derivative is.
ad.primitive_jvps[_on_one_device] = _refuse_second_derivative
mlir.register_lowering(_on_one_device, _lower)
