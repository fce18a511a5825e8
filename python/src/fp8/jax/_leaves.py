# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments and results that are no arrays, such as the functions in a module of Equinox.

JAX takes arrays and numbers only. Any other leaf is wrapped in a node of the tree without children,
so that JAX takes it as part of the tree's structure: as static. So is a number in a module of
Equinox, and True or False where the function asks in Python which of the two it is.
"""

from __future__ import annotations

import reprlib
import sys
import types
from typing import Any

import jax
import numpy as np


@jax.tree_util.register_pytree_node_class
class Static:
    """A leaf that is no array. It must be hashable, as what jax.jit calls static must be."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and (type(self.value), self.value) == (type(other.value), other.value)

    def __hash__(self) -> int:
        return hash(self.value)

    def tree_flatten(self) -> tuple[tuple[()], Any]:
        return (), self.value

    @classmethod
    def tree_unflatten(cls, value: Any, _: Any) -> Static:
        return cls(value)


#: The leaves that are static: none, those that JAX does not take, or also True and False.
NOTHING, OTHERS, BOOLS = range(3)

_NUMBERS = (bool, int, float, complex)


def needed(error: TypeError) -> int:
    """The leaves that must be static for a call that raised this error, if it is about leaves."""
    return BOOLS if isinstance(error, jax.errors.TracerBoolConversionError) else OTHERS


class ModulesHaveNumbers(TypeError):
    """Raised while JAX traces numbers that are leaves of Equinox's modules."""


def check_modules(tree: Any) -> None:
    """Raises ModulesHaveNumbers for traced numbers of Python in a module of Equinox, such as the probability of its Dropout.

    Equinox's filter_jit takes them as static; traced they would look like parameters to its other filters.
    """
    for module in filter(_is_module, jax.tree.leaves(tree, is_leaf=_is_module)):
        if any(jax.typeof(leaf).shape == () and jax.typeof(leaf).weak_type for leaf in jax.tree.leaves(module)):
            raise ModulesHaveNumbers


def check_static(tree: Any) -> None:
    """Raises TypeError for a static leaf that could change while it looks the same, such as a model of a class that JAX does not know."""
    for node in jax.tree.leaves(tree, is_leaf=_is_static):
        if _is_static(node) and _can_change(node.value):
            name = type(node.value).__name__
            raise TypeError(
                f"an argument is, or holds, {reprlib.repr(node.value)} of type {name}, which JAX does not know and which could change "
                f"without being noticed: register {name} as a pytree (jax.tree_util.register_dataclass, register_pytree_node), "
                "or name the argument in static_argnums or static_argnames, if it never changes"
            )


def _can_change(leaf: Any) -> bool:
    try:
        hash(leaf)
    except TypeError:
        return not isinstance(leaf, slice)  # Hashable since Python 3.12.
    if isinstance(leaf, (type, types.ModuleType)) or getattr(type(leaf), "__hash__", None) is not object.__hash__:
        return False
    attributes = getattr(leaf, "__dict__", {})
    return bool(attributes) and (not callable(leaf) or any(map(_is_array, jax.tree.leaves(attributes))))


def _is_module(node: Any) -> bool:
    equinox = sys.modules.get("equinox")
    return equinox is not None and isinstance(node, equinox.Module)


def is_array(leaf: Any, static: int = OTHERS) -> bool:
    if static == BOOLS and isinstance(leaf, bool):
        return False
    return _is_array(leaf) or isinstance(leaf, _NUMBERS)


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, (jax.Array, np.ndarray, np.generic, jax.ShapeDtypeStruct))


def has_static(tree: Any, static: int) -> bool:
    return any(isinstance(node, Static) for node in jax.tree.leaves(wrap(tree, static), is_leaf=_is_static))


def wrap(tree: Any, static: int = OTHERS) -> Any:
    def wrap_node(node: Any) -> Any:
        if _is_module(node):
            return jax.tree.map(lambda leaf: leaf if _is_array(leaf) else Static(leaf), node)
        return node if is_array(node, static) else Static(node)

    return jax.tree.map(wrap_node, tree, is_leaf=_is_module)


def unwrap(tree: Any) -> Any:
    return jax.tree.map(lambda node: node.value if isinstance(node, Static) else node, tree, is_leaf=_is_static)


def _is_static(node: Any) -> bool:
    return type(node) is Static
