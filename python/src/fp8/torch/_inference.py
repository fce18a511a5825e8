# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inference with the scales that training found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.fx import GraphModule
from torch.utils.weak import WeakIdKeyDictionary

from .._errors import warn
from .._library import Library
from ._casts import Casts, pointers
from ._run import Runner
from ._state import Place, State, States, columns_of, decode


class Trained(Protocol):
    """The graph, as far as it is asked."""

    @property
    def library(self) -> Library: ...
    def first_weight(self, arguments: Sequence[Tensor]) -> Tensor | None: ...
    def weights_of(self, arguments: Sequence[Tensor]) -> list[Tensor]: ...
    def build_without_state(self, part: GraphModule) -> Library: ...


class TrainedScales:
    """Runs an inference graph of a recipe with state, with the scales that training found.

    Columns are matched by name. Where one is missing the graph is compiled with current scaling
    instead, with a warning.
    """

    def __init__(self, graph: Trained, states: States, part: GraphModule, runner: Runner, casts: Casts, values: Sequence[Any]) -> None:
        self._graph, self._states, self._part, self._runner, self._casts, self._values = graph, states, part, runner, casts, values
        self._memory = casts.memory
        self._columns = columns_of(graph.library)
        # Made in the first call: compilation runs under PyTorch's mode of tensors without data.
        self._own: State | None = None
        self._sources: WeakIdKeyDictionary = WeakIdKeyDictionary()
        self._known = -1
        self._fallback: Runner | None = None

    def __call__(self, *arguments: Tensor) -> list[Any]:
        graph = self._graph
        if self._known != self._states.changes:
            self._known, self._sources = self._states.changes, WeakIdKeyDictionary()
        weight = graph.first_weight(arguments)
        key = self if weight is None else weight
        if key not in self._sources:
            self._sources[key] = self._find(graph.weights_of(arguments))
        source = self._sources[key]
        if source is None:
            return self._current()(arguments, ())
        if self._own is None:
            self._own = State(graph.library, self._memory)
        scales, places = source
        if scales.device == places.device == self._own.scale.device:
            torch.index_select(scales, 0, places, out=self._own.scale)
        else:
            self._own.scale.copy_(scales[places])
        self._casts.update(arguments, self._own)
        return self._runner(arguments, pointers(self._runner.state_names, self._own, self._casts))

    def _find(self, weights: Sequence[Tensor]) -> tuple[Tensor, Tensor] | None:
        """The scales of a state of these weights, and the place of each of our columns in them."""
        states = self._states
        place = states.place_of(weights)
        trained = [dict(s.named_buffers()) for s in states.children() if not weights or s.shares(weights) or _has(s.place, place)]
        for tensors in [*trained, *states.waiting.values()]:
            places = {(column[0], column[1], site): i for i, column in enumerate(decode(tensors.get("columns"))) for site in column[2:]}
            found = [places.get((tensor, form, sites[0])) for tensor, form, *sites in self._columns]
            if None not in found:
                return tensors["scale"], torch.tensor(found, dtype=torch.int64, device=tensors["scale"].device)
        return None

    def _current(self) -> Runner:
        if self._fallback is None:
            warn("a graph without gradients runs before training has found its scales: it uses current scaling instead")
            library = self._graph.build_without_state(self._part)
            self._fallback = Runner(library, "main", self._values, self._memory)
        return self._fallback


def _has(place: Place | None, other: Place | None) -> bool:
    """Whether both are of one module, and have a weight in common."""
    return place is not None and other is not None and place[0] is other[0] and bool(place[1] & other[1])
