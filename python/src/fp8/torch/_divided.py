# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parameters of which each rank has a part, as torch.distributed.fsdp.fully_shard divides them (DTensors)."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from .._errors import UnsupportedError

if TYPE_CHECKING:
    from ._ranks import Ranks

#: The optimizers of torch.optim that compute each element of a parameter by itself, so that a part needs no other.
_ELEMENTWISE = frozenset("ASGD Adadelta Adagrad Adam AdamW Adamax NAdam RAdam RMSprop Rprop SGD".split())


def is_divided(tensor: Tensor) -> bool:
    """Whether it is a DTensor; there is none before PyTorch's module of them is loaded."""
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(tensor, module.DTensor)


def part(tensor: Tensor) -> Tensor:
    """This rank's part of a divided tensor; another tensor as it is."""
    return tensor._local_tensor if is_divided(tensor) else tensor


def dim_of(tensor: Tensor) -> int | None:
    """The dimension along which the ranks have parts; None for a tensor that is whole on each of them."""
    return int(tensor.placements[0].dim) if is_divided(tensor) and tensor.placements[0].is_shard() else None


def check(module: nn.Module, optimizer: torch.optim.Optimizer, ranks: Ranks | None) -> None:
    """Raises UnsupportedError for divided parameters that a compiled step cannot gather, ValueError without their group."""
    named = [(name.removeprefix("model."), p) for name, p in module.named_parameters() if is_divided(p)]
    if not named:
        return
    if ranks is None:
        raise ValueError(f"'{named[0][0]}' is divided over a mesh of ranks: pass data_parallel=mesh.get_group() to train_step")
    for name, parameter in named:
        mesh, placements = parameter.device_mesh, parameter.placements
        if len(placements) != 1:
            raise UnsupportedError(f"'{name}' is divided over a mesh of {len(placements)} dimensions: train_step takes parameters on one of one")
        if not ranks.has(mesh.get_group()):
            raise ValueError(f"'{name}' is divided over other ranks than those of data_parallel: pass data_parallel=mesh.get_group()")
        dim = dim_of(parameter)
        if dim is None and not placements[0].is_replicate():
            raise UnsupportedError(f"'{name}' has the placement {placements[0]}: train_step takes Shard and Replicate")
        if dim is not None and parameter.shape[dim] % mesh.size():
            raise UnsupportedError(
                f"dimension {dim} of '{name}' is {parameter.shape[dim]}, which {mesh.size()} ranks cannot divide evenly: leave its module out of "
                "fully_shard, or let shard_placement_fn choose another dimension"
            )
    if type(optimizer).__name__ not in _ELEMENTWISE:
        raise UnsupportedError(
            f"{type(optimizer).__name__} computes with whole parameters, and '{name}' is divided: use another optimizer, or fp8.torch.backend"
        )
    for path, m in module.named_modules():
        _check_hooks(path.removeprefix("model").removeprefix("."), m)


def _check_hooks(path: str, module: nn.Module) -> None:
    """Raises UnsupportedError for options of fully_shard that its hooks would obey, which are not called."""
    states = _states(module)
    if not states and any(kind.__name__ == "FSDPModule" for kind in type(module).__mro__):
        raise UnsupportedError(f"fully_shard was given '{path}' in a list with other modules: call it for each of them, or for the module that has them")
    for policy in (state._mp_policy for state in states):
        if policy.param_dtype or policy.reduce_dtype or policy.output_dtype:
            raise UnsupportedError(f"fully_shard of '{path}' has an mp_policy: leave it out, and pass autocast=torch.bfloat16 to train_step")


def _states(module: nn.Module) -> list[Any]:
    """The states of fully_shard whose hooks a module has."""
    owners = [getattr(hook, "__self__", None) for hook in module._forward_pre_hooks.values()]
    return [owner for owner in owners if _is_state(owner)]


def _is_state(owner: Any) -> bool:
    return type(owner).__name__ == "FSDPState"


def reshard(module: nn.Module) -> None:
    """Puts divided parameters back where a call of the model, as for evaluation, has left them whole."""
    for m in module.modules():
        if _states(m):
            m.reshard()


@contextlib.contextmanager
def whole(module: nn.Module, empty: Callable[[Sequence[int], torch.dtype, torch.device], Tensor]) -> Iterator[None]:
    """Within the block the module has whole parameters, that `empty` makes, in the place of divided ones, and gathers nothing."""
    stand_ins: dict[int, nn.Parameter] = {}
    places = [place for m in module.modules() for place in (m._parameters, m._forward_pre_hooks, m._forward_hooks)]
    before = [dict(place) for place in places]
    for m in module.modules():
        for name, p in m._parameters.items():
            if p is not None and is_divided(p):
                if id(p) not in stand_ins:
                    stand_ins[id(p)] = nn.Parameter(empty(p.shape, p.dtype, p.device), p.requires_grad)
                m._parameters[name] = stand_ins[id(p)]
        for hooks in (m._forward_pre_hooks, m._forward_hooks):
            for key in [key for key, hook in hooks.items() if _is_state(getattr(hook, "__self__", None))]:
                del hooks[key]
    try:
        yield
    finally:
        for place, values in zip(places, before):
            place.clear()
            place.update(values)  # In their order, which is that of the calls of hooks.
