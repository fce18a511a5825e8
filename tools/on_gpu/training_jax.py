# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The example GPT from JAX, by fp8.jax.jit: losses beside the CPU's, and the time of a step beside jax.jit."""

from collections.abc import Callable, Iterator
from typing import Any

import clock
import example
import jax
import jax.numpy as jnp
import parameters
from rows import LeftOut, Place, Row, attempt

RECIPES = ("delayed", "current")


def find_device(place: Place) -> Any:
    """JAX's device."""
    if place.device == "emulator":
        return jax.devices("cpu")[0]
    try:
        return jax.devices("cuda")[0]
    except RuntimeError:
        raise LeftOut(f"JAX {jax.__version__} finds no GPU (jax.devices('cuda')): install jax[cuda12] or jax[cuda13]") from None


def carried(device: Any) -> tuple[Any, ...]:
    """Parameters, moments and the number of steps."""
    params = {name: jnp.array(values).reshape(shape) for name, (shape, values) in parameters.initial().items()}
    moments = [{name: jnp.zeros_like(value) for name, value in params.items()} for _ in range(2)]
    placed: tuple[Any, ...] = jax.device_put((params, *moments, jnp.array(0.0)), device)
    return placed


def losses(step: Callable[..., Any], device: Any, steps: int) -> list[float]:
    found = []
    with jax.default_device(device):
        values = carried(device)
        for batch in example.tokens(steps):
            *values, loss = step(*values, jax.device_put(batch, device))
            found.append(float(loss))
    return found


def milliseconds(step: Callable[..., Any], device: Any) -> dict[str, Any]:
    values, batch = carried(device), jax.device_put(example.tokens(1)[0], device)

    def call() -> None:
        nonlocal values
        *values, _ = jax.block_until_ready(step(*values, batch))

    return {"ms": clock.milliseconds(call)}


def jit(place: Place) -> Iterator[Row]:
    device, steps = find_device(place), example.prepare(place)
    import fp8.jax
    import model

    def make(recipe: str, options: dict[str, Any]) -> Callable[..., Any]:
        made: Callable[..., Any] = fp8.jax.jit(model.main, recipe=recipe, keep=example.KEEP, donate_argnums=(0, 1, 2, 3), **options)
        return made

    def run(recipe: str) -> dict[str, Any]:
        return example.compare(losses(make(recipe, place.options), device, steps), losses(make(recipe, {}), jax.devices("cpu")[0], steps))

    def time(recipe: str | None) -> dict[str, Any]:
        place.need_gpu()
        return milliseconds(make(recipe, {}) if recipe else jax.jit(model.main, donate_argnums=(0, 1, 2, 3)), device)

    for recipe in RECIPES[:1] if place.quick else RECIPES:
        yield attempt(recipe, run, recipe)
    yield attempt("step, jax.jit (bf16)", time, None)
    for recipe in RECIPES:
        yield attempt(f"step, fp8.jax.jit {recipe}", time, recipe)
