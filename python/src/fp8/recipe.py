# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`fp8.recipe`: recipes as objects."""

from __future__ import annotations

from typing import Any


def to_text(recipe: Any) -> str:
    """What fp8-compile's --recipe says for a recipe. Raises TypeError."""
    raise TypeError(f"recipe={recipe!r}: a recipe is a word such as 'delayed', or an attribute such as '#fp8.delayed_scaling<margin = 1>'")
