# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments and results that are no arrays, such as the functions in a module of Equinox.

JAX takes arrays and numbers only. Any other leaf is wrapped in a node of the tree without children,
so that JAX takes it as part of the tree's structure: as static.
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

    def tree_flatten(self) -> tuple[tuple[()], Any]:
        return (), self.value

    @classmethod
    def tree_unflatten(cls, value: Any, _: Any) -> Static:
        return cls(value)


def is_array(leaf: Any) -> bool:
    return isinstance(leaf, (jax.Array, np.ndarray, np.generic, bool, int, float, complex, jax.ShapeDtypeStruct))


def has_others(tree: Any) -> bool:
    return not all(is_array(leaf) for leaf in jax.tree.leaves(tree))


def wrap(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf if is_array(leaf) else Static(leaf), tree)


def unwrap(tree: Any) -> Any:
    return jax.tree.map(lambda node: node.value if isinstance(node, Static) else node, tree, is_leaf=_is_static)


def _is_static(node: Any) -> bool:
    return isinstance(node, Static)
