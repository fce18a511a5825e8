# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The update of an optimizer of torch.optim as a graph: its own class, traced on tensors that stand for the user's."""

from __future__ import annotations

import contextlib
import inspect
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode
from torch.func import functionalize
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode

from .._errors import UnsupportedError
from . import _divided
from ._memory import Memory

#: The examples of one trace are of one mode.
_FAKES = FakeTensorMode(allow_non_fake_inputs=True)

_backward_hooks = operator.attrgetter("_backward_hooks")
_accumulation_hooks = operator.attrgetter("_post_accumulate_grad_hooks")


def check(optimizer: torch.optim.Optimizer) -> None:
    """Raises UnsupportedError for an optimizer whose update cannot be traced."""
    kind = type(optimizer)
    if not hasattr(kind, "_init_group"):
        raise UnsupportedError(f"train_step takes the optimizers of torch.optim; {kind.__name__} has no _init_group: use fp8.torch.backend")
    check_options(optimizer)


def check_options(optimizer: torch.optim.Optimizer) -> None:
    """Raises UnsupportedError for what users may add to an optimizer at any time."""
    if optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks:
        raise UnsupportedError("the optimizer has hooks, which a compiled update does not call: use fp8.torch.backend")
    for group in optimizer.param_groups:
        if group.get("maximize"):
            raise UnsupportedError("maximize: negate the loss instead")
        # map, as this is done at every call.
        if any(map(_backward_hooks, group["params"])) or any(map(_accumulation_hooks, group["params"])):
            raise UnsupportedError("a parameter has hooks on its gradient, which a compiled step does not call: use fp8.torch.backend")
        if not all(map(Tensor.is_contiguous, group["params"])):
            raise UnsupportedError("a parameter is not contiguous: call .contiguous() before the optimizer is made")


def beginning(optimizer: torch.optim.Optimizer) -> tuple[Tensor, ...]:
    """The parameters whose next step SGD treats apart: the first one with momentum, which dampening leaves as it is."""
    if not isinstance(optimizer, torch.optim.SGD):
        return ()
    groups = [group for group in optimizer.param_groups if group["momentum"] and group["dampening"]]
    return tuple(p for group in groups for p in group["params"] if optimizer.state.get(p, {}).get("momentum_buffer") is None)


def initial_state(optimizer: torch.optim.Optimizer, parameters: Sequence[Tensor], memory: Memory) -> dict[Tensor, dict[str, Tensor]]:
    """The optimizer's state of each parameter, as it is or as it begins, in the memory of the parameters."""
    wanted = set(parameters)
    result = {p: {k: v for k, v in optimizer.state[p].items() if v is not None} for p in parameters if optimizer.state.get(p)}
    for group in optimizer.param_groups:
        new = [p for p in group["params"] if p in wanted and p not in result]
        copies = [p.detach().requires_grad_() for p in new]
        for copy in copies:
            # One element in memory, as nothing reads them.
            copy.grad = torch.zeros_like(copy) if _divided.is_divided(copy) else copy.new_zeros(()).expand_as(copy)
        if not copies:
            continue
        scratch = type(optimizer)(copies, **_settings(optimizer, group))
        lists = [[] for _ in list(inspect.signature(scratch._init_group).parameters)[1:]]  # type: ignore[var-annotated]
        scratch._init_group(scratch.param_groups[0], *lists)
        for parameter, copy in zip(new, copies):
            state = {k: v for k, v in scratch.state[copy].items() if v is not None}
            if group.get("momentum") and isinstance(optimizer, torch.optim.SGD):
                state["momentum_buffer"] = torch.zeros_like(copy)
            result[parameter] = state
    for state in result.values():
        for key, value in state.items():
            if not isinstance(value, Tensor):
                raise UnsupportedError(f"the optimizer's state has '{key}', which is no tensor: use fp8.torch.backend")
    return {p: {key: memory.put(value) for key, value in result[p].items()} for p in parameters}


def _settings(optimizer: torch.optim.Optimizer, group: dict[str, Any]) -> dict[str, Any]:
    """The options of a group, for a new optimizer of the same class whose step can be traced."""
    known = inspect.signature(type(optimizer).__init__).parameters
    settings = {key: value for key, value in group.items() if key in known and key != "params"}
    settings["lr"] = float(settings.get("lr", 1e-3))
    forced = {"foreach": False, "fused": False, "capturable": True, "differentiable": False}
    return {**settings, **{key: value for key, value in forced.items() if key in known}}


def trace_update(
    optimizer: torch.optim.Optimizer, groups: Sequence[Sequence[Tensor]], state: dict[Tensor, dict[str, Tensor]], first: Sequence[Tensor]
) -> Callable[..., list[Tensor]]:
    """A function of parameters, gradients, state and learning rates, flat, that returns new parameters and state.

    `first` are the parameters that `beginning` gave: their momentum begins as 0, to which the gradient is added as it is.
    """
    is_first = {id(p) for p in first}
    parameters = [p for group in groups for p in group]
    keys = [list(state[p]) for p in parameters]
    count = len(parameters)

    def step(settings: dict[str, Any], rate: Tensor, new: list[Tensor], states: list[dict[str, Tensor]], members: Sequence[int]) -> None:
        if not members:
            return
        # The constructor compares the learning rate: it gets a number.
        copy = type(optimizer)([new[i] for i in members], **settings)
        copy.param_groups[0]["lr"] = rate
        for i in members:
            copy.state[new[i]] = states[i]
        with _TensorFactors(), _extremes_of_tensors(optimizer):
            _plain_step(copy)
        for i in members:
            states[i] = copy.state[new[i]]

    def update(*values: Tensor) -> list[Tensor]:
        new = [v.clone() for v in values[:count]]
        flat = iter(values[2 * count :])
        states = [{key: next(flat).clone() for key in own} for own in keys]
        rates = list(flat)
        start = 0
        for group, options, rate in zip(groups, optimizer.param_groups, rates):
            members = range(start, start + len(group))
            start += len(group)
            for i in members:
                new[i].grad = values[count + i]
            settings = _settings(optimizer, options)
            later = [i for i in members if id(parameters[i]) not in is_first]
            step(settings, rate, new, states, later)
            step({**settings, "dampening": 0}, rate, new, states, [i for i in members if i not in later])
        return [*new, *(states[i][key] for i, own in enumerate(keys) for key in own)]

    examples = [example(p) for p in parameters] + [example(p) for p in parameters]
    examples += [example(state[p][key]) for p in parameters for key in state[p]]
    examples += [empty((), torch.float32, torch.device("cpu")) for _ in groups]
    with compiling(), torch.no_grad():
        try:
            return make_fx(functionalize(update), tracing_mode="fake")(*examples)  # type: ignore[no-any-return]
        except DataDependentOutputException:
            raise UnsupportedError(f"the update of {type(optimizer).__name__} reads values of tensors: use fp8.torch.backend") from None


class _TensorFactors(TorchFunctionMode):  # type: ignore[misc]
    """In-place sums whose factor, the learning rate, is a tensor, as products: PyTorch would read its value.

    Numbers that an update reads from tensors, as Adafactor does, stay tensors, with the bits that a number has.
    """

    def __torch_function__(self, function: Any, types: Any, arguments: Any = (), options: Any = None) -> Any:
        options = dict(options or {})
        if function is Tensor.item:
            return arguments[0].double()
        if function is Tensor.square_:
            # functionalize has no form for it.
            return arguments[0].mul_(arguments[0])
        if function is Tensor.lerp_ and isinstance(arguments[2], Tensor):
            return arguments[0].lerp_(arguments[1], arguments[2].to(arguments[0].dtype))
        factor = options.get("alpha", options.get("value"))
        if isinstance(factor, Tensor):
            if function is Tensor.add_:
                return arguments[0].add_(arguments[1] * factor)
            if function is Tensor.addcdiv_:
                return arguments[0].add_(arguments[1] * factor / arguments[2])
            if function is Tensor.addcmul_:
                return arguments[0].add_(arguments[1] * factor * arguments[2])
        return function(*arguments, **options)


@contextlib.contextmanager
def _extremes_of_tensors(optimizer: torch.optim.Optimizer) -> Iterator[None]:
    """`min` and `max` in the optimizer's module take tensors, whose values Python's own would compare."""
    names = inspect.unwrap(type(optimizer)._init_group).__globals__  # which dynamo wraps once something was compiled
    own = {"min": _extreme(min, torch.minimum), "max": _extreme(max, torch.maximum)}
    before = {name: names[name] for name in own if name in names}
    names.update(own)
    try:
        yield
    finally:
        for name in own:
            del names[name]
        names.update(before)


def _extreme(of_numbers: Callable[..., Any], of_tensors: Callable[..., Tensor]) -> Callable[..., Any]:
    def extreme(*values: Any, **options: Any) -> Any:
        if len(values) == 2 and any(isinstance(value, Tensor) for value in values):
            return of_tensors(*[torch.as_tensor(value, dtype=torch.float64) for value in values])
        return of_numbers(*values, **options)

    return extreme


def _plain_step(optimizer: torch.optim.Optimizer) -> None:
    """`optimizer.step()` without the profiler's wrapper, which cannot be traced."""
    step = type(optimizer).step
    getattr(step, "__wrapped__", step)(optimizer)


@contextlib.contextmanager
def compiling() -> Iterator[None]:
    """Optimizers and libraries read no tensor's value while torch.compiler.is_compiling()."""
    old = torch.compiler._is_compiling_flag
    torch.compiler._is_compiling_flag = True
    try:
        yield
    finally:
        torch.compiler._is_compiling_flag = old


def write_state(optimizer: torch.optim.Optimizer, state: dict[Tensor, dict[str, Tensor]]) -> None:
    """The optimizer holds the tensors that the step updates: its state_dict is that of eager training."""
    for parameter, tensors in state.items():
        optimizer.state[parameter].update(tensors)


def example(tensor: Tensor) -> Tensor:
    """A tensor of its own, as make_fx takes one that is given twice for one input, without memory for its elements. Of a divided
    one it is as this rank's part."""
    part = _divided.part(tensor)
    return empty(part.shape, part.dtype, part.device)


def empty(shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> Tensor:
    """A contiguous tensor for make_fx's tracing_mode "fake", without memory."""
    with _FAKES:
        return torch.empty(shape, dtype=dtype, device=device)
