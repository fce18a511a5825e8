# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`step.lower(…)` and `.compile()`, as jax.jit has them: a step's program for some arguments, and the step to be called with such."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping
from typing import Any

import jax

from .. import _dtypes
from .._errors import hiding_frames
from .._library import Library
from ._chosen import Chosen
from ._program import Program


class Lowered:
    """A function as MLIR (linalg on tensors), as fp8-compile reads it."""

    def __init__(self, program: Program, call: Callable[..., Any], pure: Callable[[Any, Any], Any], args: Any, kwargs: Any, static: Chosen) -> None:
        """`call` is the step; `pure` is what of its arguments and keyword arguments is compiled for."""
        self.program = program
        self._calls = call, pure
        self._arguments = args, kwargs
        self._static = static

    def as_text(self) -> str:
        return self.program.text

    def compile(self) -> Compiled:
        """The step, compiled for these arguments."""
        _ = self.program.library
        return Compiled(self.program, *self._calls, *self._arguments, self._static)


class Compiled:
    """A step compiled for arguments of one structure, shapes and types.

    It is called like the step, without static arguments, and reads and replaces the step's state.

    >>> import fp8.jax
    >>> step = fp8.jax.jit(lambda w, x: x @ w, recipe="current", sites="all")
    >>> w, x = jax.numpy.ones((16, 8)), jax.numpy.ones((4, 16))
    >>> compiled = step.lower(w, x).compile()
    >>> compiled(w, x).shape, compiled.library.report
    ((4, 8), <fp8.Report: 1 products, 1 in FP8, 0 kept>)
    """

    def __init__(self, program: Program, call: Callable[..., Any], pure: Callable[[Any, Any], Any], args: Any, kwargs: Any, static: Chosen) -> None:
        self._program = program
        self._call, self._pure = call, pure
        self._types = _types(pure(args, kwargs))
        self._completed = static.completed(args, kwargs)

    @property
    def library(self) -> Library:
        """The compiled library, which the step's calls use too."""
        return self._program.library

    @hiding_frames
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's result. Raises TypeError for arguments of another structure, shape or type."""
        positional, named = self._completed(args, kwargs)
        if (given := _types(self._pure(positional, named))) != self._types:
            raise TypeError(f"the step was compiled for other arguments: {_described(self._types)}, not {_described(given)}")
        return self._call(*positional, **named)

    def as_text(self, stage: str = "kernels") -> str:
        """The compiler's IR after a stage, by default the last one."""
        return self.library.ir(stage)

    def memory_analysis(self) -> types.SimpleNamespace:
        """Bytes of arguments, results and workspace, by JAX's names."""
        entry: Mapping[str, Any] = self.library.entries["main"].description
        sizes = {kind: sum(_bytes(t) for t in entry[f"{kind}s"]) for kind in ("argument", "result")}
        return types.SimpleNamespace(
            argument_size_in_bytes=sizes["argument"], output_size_in_bytes=sizes["result"], temp_size_in_bytes=int(entry.get("workspace_bytes") or 0)
        )

    def cost_analysis(self) -> dict[str, float]:
        """The floating-point operations of the matrix products."""
        return {"flops": float(sum(2 * (s.batch or 0) * (s.m or 0) * (s.n or 0) * (s.k or 0) for s in self.library.report.sites))}


def _bytes(tensor: Mapping[str, Any]) -> int:
    return int(math.prod(tensor["shape"]) * _dtypes.to_numpy(tensor["type"]).itemsize)


def _types(arguments: Any) -> tuple[Any, tuple[Any, ...]]:
    leaves, tree = jax.tree.flatten(arguments)
    return tree, tuple(map(_type, leaves))


def _type(leaf: Any) -> Any:
    """Shape and type of an array or a number; another leaf is static and stands for itself."""
    if not hasattr(leaf, "shape"):
        try:
            leaf = jax.typeof(leaf)
        except TypeError:
            return leaf
    return tuple(leaf.shape), leaf.dtype


def _described(types: tuple[Any, tuple[Any, ...]]) -> str:
    tree, leaves = types
    return f"({', '.join(f'{leaf[1]}{list(leaf[0])}' if isinstance(leaf, tuple) else repr(leaf) for leaf in leaves)}) in {tree}"
