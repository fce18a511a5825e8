# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments and results that are no arrays, such as the functions in a module of Equinox.

JAX takes arrays and numbers only. Any other leaf is wrapped in a node of the tree without children,
so that JAX takes it as part of the tree's structure: as static. So is True or False where the
function asks in Python which of the two it is, as Equinox's Dropout does.
"""

from __future__ import annotations

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


#: Which leaves are static: none, those that JAX does not take, or also True and False.
NOTHING, OTHERS, BOOLS = range(3)


def needed(error: TypeError) -> int:
    """Which leaves must be static for a call that raised this error, if it is about leaves."""
    return BOOLS if isinstance(error, jax.errors.TracerBoolConversionError) else OTHERS


def is_array(leaf: Any, static: int = OTHERS) -> bool:
    if static == BOOLS and isinstance(leaf, bool):
        return False
    return isinstance(leaf, (jax.Array, np.ndarray, np.generic, bool, int, float, complex, jax.ShapeDtypeStruct))


def has_static(tree: Any, static: int) -> bool:
    return not all(is_array(leaf, static) for leaf in jax.tree.leaves(tree))


def wrap(tree: Any, static: int = OTHERS) -> Any:
    return jax.tree.map(lambda leaf: leaf if is_array(leaf, static) else Static(leaf), tree)


def unwrap(tree: Any) -> Any:
    return jax.tree.map(lambda node: node.value if isinstance(node, Static) else node, tree, is_leaf=_is_static)


def _is_static(node: Any) -> bool:
    return isinstance(node, Static)
