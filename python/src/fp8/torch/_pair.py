# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The calls of a compiled pair: as what AOT autograd runs, or as an autograd function of our own.

AOT autograd's way around the two calls takes longer than they do where tensors are small. It is for graphs
that change arguments, return views and the like; `direct` goes without it where there is none of that.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch._dynamo import trace_rules
from torch._functorch._aot_autograd.schemas import MutationType, OutputType, ViewAndMutationMeta
from torch._functorch._aot_autograd.utils import top_saved_tensors_hooks
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor
from torch.fx import GraphModule

from .._library import Library
from . import _capture
from ._casts import Casts, pointers
from ._memory import Memory
from ._run import Runner
from ._state import State, States

# A backward that runs within compiled code, as of a compiled training step, is not captured: it takes addresses.
trace_rules.add("fp8")

#: The tensor that PyTorch gets for the saved tensors after the first.
_EMPTY = torch.empty(0)

#: Outputs that are tensors of their own.
_OWN = (OutputType.non_alias, OutputType.unsafe_view_alias)

#: Types of tensors without a behaviour of their own, as they are while PyTorch compiles.
_PLAIN = (Tensor, nn.Parameter, FakeTensor, FunctionalTensor)


class Pair:
    """Forward and backward of one library.

    `parts` are PyTorch's graphs and the number of the user's results; `draws` make the random numbers that the library
    takes last. `choose_state` gives the state for the arguments of a call, None without state. One call runs at a time.
    """

    def __init__(
        self,
        library: Library,
        parts: tuple[GraphModule, GraphModule, int],
        draws: Sequence[Callable[[], Tensor]],
        states: States,
        choose_state: Callable[[Sequence[Tensor]], State | None],
        lock: threading.Lock,
        memory: Memory,
    ) -> None:
        forward, backward, outputs = parts
        values = _capture.values_of(forward)
        self._results, self._gradients = values[:outputs], _capture.values_of(backward)
        self._saved = len(values) - outputs
        self._inputs, self._tangents = len(_capture.placeholders(forward)), len(_capture.placeholders(backward)) - self._saved
        self._draws, self._states, self._choose_state, self._lock = draws, states, choose_state, lock
        self._forward, self._backward = Runner(library, "forward", self._results, memory), Runner(library, "backward", self._gradients, memory)
        self.casts, self._memory = Casts(library, "forward", memory), memory

    def forward(self, arguments: Sequence[Tensor]) -> tuple[list[Any], Tensor | None, State | None]:
        """The results, the arena of all residuals where there are any, and the state: backward takes both."""
        runner = self._forward
        with self._lock:
            state = self._choose_state(arguments)
            arena = runner.new_arena(state.number if state is not None else -1) if self._saved else None
            self.casts.update(arguments, state)
            addresses = pointers(runner.state_names, state, self.casts)
            if self._draws:
                arguments = [*arguments, *[draw() for draw in self._draws]]
            return runner(arguments, addresses, arena), arena, state

    def backward(self, tangents: Sequence[Tensor], arena: Tensor | None, state: State | None) -> list[Any]:
        """The gradients of all inputs, None for those that have none."""
        with self._lock:
            return self._backward(tangents, pointers(self._backward.state_names, state, self.casts), arena)

    def zeros(self, result: int) -> Tensor:
        """The gradient of a result that a loss does not use."""
        like = self._results[result]
        return self._memory.zeros(like.shape, like.dtype)

    def boxed_forward(self, arguments: list[Tensor]) -> list[Any]:
        """As AOT autograd calls it, which expects as many saved tensors as its graph has: the arena and empty ones."""
        results, arena, state = self.forward(arguments)
        if arena is None:
            return results
        return [*results, arena, *[_EMPTY] * (self._saved - 1)]

    def boxed_backward(self, arguments: list[Tensor]) -> list[Any]:
        arena = arguments[0] if self._saved else None
        state = self._states._modules.get(str(self._forward.number_of(arena))) if arena is not None else None
        return self.backward(arguments[self._saved :], arena, state)

    def direct(self, metadata: ViewAndMutationMeta, inputs: Sequence[Any]) -> Callable[..., Any] | None:
        """A function that runs the pair without AOT autograd's own around it; None where that has something
        to do.

        It does where inputs are changed, are other than plain tensors or have no gradient though they require one; where
        outputs share memory with others or with inputs; and for PyTorch's rarer means, such as hooks for saved tensors.
        """
        outputs = metadata.output_info
        self.constant = [i for i, o in enumerate(outputs) if not o.requires_grad and isinstance(self._results[i], Tensor)]
        self.differentiable = [i for i, o in enumerate(outputs) if o.requires_grad]
        plain = (
            torch.is_grad_enabled()
            and not top_saved_tensors_hooks()
            and all(type(value) in _PLAIN for value in inputs)
            and len(inputs) == len(metadata.input_info) == self._inputs == len(self._gradients)
            and all(i.mutation_type == MutationType.NOT_MUTATED for i in metadata.input_info)
            and all(gradient is not None for i, gradient in zip(metadata.input_info, self._gradients) if i.requires_grad)
            and len(outputs) == len(self._results)
            and all(o.output_type in _OWN and o.requires_grad == o.requires_grad_for_backward for o in outputs)
            and all(o.raw_type in _PLAIN or not issubclass(o.raw_type, Tensor) for o in outputs)
            and len(self.differentiable) == self._tangents
            and metadata.grad_enabled_mutation is None
            and not (metadata.num_intermediate_bases or metadata.tokens or metadata.num_backward_tokens or metadata.num_graphsafe_rng_states)
            and not (metadata.is_rng_op_functionalized or metadata.indices_of_inputs_that_requires_grad_with_mutations_in_bw)
        )
        return functools.partial(_Direct.apply, self) if plain else None


class _Direct(torch.autograd.Function):  # type: ignore[misc]
    """A pair as an autograd function."""

    @staticmethod
    def forward(ctx: Any, pair: Pair, *arguments: Tensor) -> tuple[Any, ...]:
        results, arena, ctx.state = pair.forward(arguments)
        ctx.pair = pair
        # PyTorch would make zeros for all results whose gradient nobody asks for, such as those that have none.
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(arena)
        if pair.constant:
            ctx.mark_non_differentiable(*[results[i] for i in pair.constant])
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *tangents: Tensor) -> tuple[Any, ...]:
        if torch._C._functorch.peek_interpreter_stack() is not None:
            raise RuntimeError("the backward of a compiled model was called within vmap, grad or vjp: put these inside of torch.compile")
        (arena,) = ctx.saved_tensors
        pair = ctx.pair
        gradients = pair.backward([pair.zeros(i) if tangents[i] is None else tangents[i] for i in pair.differentiable], arena, ctx.state)
        if torch.is_grad_enabled():
            leaves = _leaves(ctx)
            gradients = _Once.apply(len(leaves), *leaves, *gradients)
        return None, *gradients


class _Once(torch.autograd.Function):  # type: ignore[misc]
    """Gradients of create_graph=True: they depend on the leaves, and their own gradient is an error, not silently zero."""

    @staticmethod
    def forward(ctx: Any, count: int, *tensors: Any) -> tuple[Any, ...]:
        return tensors[count:]

    @staticmethod
    def backward(ctx: Any, *tangents: Tensor) -> Any:
        raise RuntimeError("double backward: a model that fp8.torch.backend compiled has first derivatives only; leave it uncompiled for this loss")


def _leaves(node: Any) -> list[Tensor]:
    """The leaves of autograd's graph before a node, such as parameters."""
    found: dict[Any, None] = {}
    waiting = [node]
    while waiting:
        for previous, _ in waiting.pop().next_functions:
            if previous is not None and previous not in found:
                found[previous] = None
                waiting.append(previous)
    return [previous.variable for previous in found if hasattr(previous, "variable")]


__all__ = ["Pair"]
