# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`fp8.jax.jit`: a training step, called as jax.jit's would be, with its FP8 state beside it."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import jax

from .. import _device
from ._chosen import Argnames, Argnums
from ._step import Step


def jit(
    fun: Callable[..., Any] | None = None,
    *,
    recipe: Any = "delayed",
    donate_argnums: Argnums = None,
    donate_argnames: Argnames = None,
    static_argnums: Argnums = None,
    static_argnames: Argnames = None,
    keep_unused: bool = True,
    **options: Any,
) -> Any:
    """jax.jit with the function's matrix products in FP8: returns a `Step`.

    The arguments of the second line are jax.jit's, `options` are those of fp8.compile (sites,
    keep, first, last, require, …). The step runs where its arguments lie, on the CPU or on a GPU; with
    `device="emulator"` the code for a GPU (`target="sm_90a"`) runs on the CPU and is checked there. Also a decorator: `@fp8.jax.jit(recipe="current")`.
    `keep_unused=False` is not available: unused arguments are always kept.

    >>> import jax.numpy as jnp
    >>> step = jit(lambda x, w: x @ w, recipe="current")
    >>> step(jnp.ones((4, 16)), jnp.ones((16, 8))).shape
    (4, 8)
    >>> step.report()
    <fp8.Report: 1 products, 1 in FP8, 0 kept>
    """
    jit_options = dict(
        donate_argnums=donate_argnums,
        donate_argnames=donate_argnames,
        static_argnums=static_argnums,
        static_argnames=static_argnames,
    )
    if not keep_unused:
        raise ValueError("keep_unused=False: arguments that the function does not use are always kept")
    check_options("fp8.jax.jit", options, jit)
    options = {"recipe": recipe, **options}
    if fun is None:
        return lambda function: Step(function, options, jit_options)
    return Step(fun, options, jit_options)


def check_options(where: str, options: Mapping[str, Any], function: Callable[..., Any]) -> None:
    """Raises for options that are found without the user, for a device that is none, and for a misspelt argument of `function`."""
    if (device := options.get("device")) is not None:
        _device.check_name(device)
    for name, value in options.items():
        if name in ("pair", "carry", "name"):
            raise TypeError(f"{name}= is not an option of {where}, which finds it by itself")
        if name in inspect.signature(jax.jit).parameters and name != "device" and name not in inspect.signature(function).parameters:
            if value is None:
                continue
            raise TypeError(f"{where} has no argument {name}, which jax.jit has: compiled code runs whole, and on the one device that its arguments are on")
        if meant := difflib.get_close_matches(name, inspect.signature(function).parameters, 1, cutoff=0.8):
            raise TypeError(f"{where} has no argument {name}: did you mean {meant[0]}?")
