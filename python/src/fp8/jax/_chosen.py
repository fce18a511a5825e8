# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arguments of a step that are donated or static, as jax.jit finds them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

TRACER = jax.core.Tracer

Argnums = int | Sequence[int] | None
Argnames = str | Sequence[str] | None


class Chosen:
    """The arguments that are donated, or static: those given by number or by name, as jax.jit completes the two.

    If only one of numbers and names is given, the other follows from the function's signature.
    """

    def __init__(self, fun: Callable[..., Any], numbers: Argnums, names: Argnames) -> None:
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        known = [p.name for p in parameters_of(fun) or () if p.kind in positional]
        self.numbers = () if numbers is None else (numbers,) if isinstance(numbers, int) else tuple(numbers)
        self.names = () if names is None else (names,) if isinstance(names, str) else tuple(names)
        if numbers is None:
            self.numbers = tuple(known.index(name) for name in self.names if name in known)
        elif names is None:
            self.names = tuple(known[n] for n in self.numbers if -len(known) <= n < len(known))

    def shifted(self) -> tuple[int, ...]:
        """The numbers with one more argument in front."""
        return tuple(n + 1 if n >= 0 else n for n in self.numbers)

    def _has(self, number: int, count: int) -> bool:
        return number in self.numbers or number - count in self.numbers

    def flags(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[bool]:
        """For each traced leaf of the arguments whether it is chosen."""
        chosen = [self._has(i, len(args)) for i in range(len(args))] + [name in self.names for name in sorted(kwargs)]
        values = [*args, *(kwargs[name] for name in sorted(kwargs))]
        return [c for c, value in zip(chosen, values) for leaf in jax.tree.leaves(value) if is_traced(leaf)]

    def without(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The arguments that are not chosen."""
        return [a for i, a in enumerate(args) if not self._has(i, len(args))], {k: v for k, v in kwargs.items() if k not in self.names}

    def completed(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Callable[[Sequence[Any], Mapping[str, Any]], tuple[list[Any], dict[str, Any]]]:
        """A function that completes arguments, given without those that are chosen, by the chosen ones of `args` and `kwargs`."""
        chosen = {i: arg for i, arg in enumerate(args) if self._has(i, len(args))}
        others = len(args) - len(chosen)
        by_name = {name: value for name, value in kwargs.items() if name in self.names}

        def complete(given: Sequence[Any], named: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
            if len(given) != others:
                raise TypeError(f"the step was compiled for {others} positional arguments (static ones are left out), not {len(given)}")
            rest = iter(given)
            return [chosen[i] if i in chosen else next(rest) for i in range(len(chosen) + others)], {**by_name, **named}

        return complete


def parameters_of(fun: Callable[..., Any]) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return None


def is_traced(leaf: Any) -> bool:
    return isinstance(leaf, TRACER)
