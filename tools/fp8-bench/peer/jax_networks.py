# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The networks of fp8-bench in plain JAX: f32 weights, bf16 products, f32 norms and loss.

The GPT is the example's, with any number of layers.
"""

import dataclasses
import pathlib
from collections.abc import Callable
from typing import Any

import export
import jax
import jax.numpy as jnp
import model
import numpy
import parameters
import sizes

Params = dict[str, jax.Array]
Step = Callable[..., tuple[Any, ...]]


def linear(p: Params, name: str, x: jax.Array) -> jax.Array:
    with jax.named_scope(name):
        y = jnp.matmul(x.astype(jnp.bfloat16), p[f"{name}/weight"].astype(jnp.bfloat16))
        return y + p[f"{name}/bias"].astype(jnp.bfloat16)


def mlp(p: Params, x: jax.Array) -> jax.Array:
    x = jax.nn.relu(linear(p, "fc1", x))
    x = jax.nn.relu(linear(p, "fc2", x))
    return linear(p, "head", x)


def mix(p: Params, layer: str, x: jax.Array) -> jax.Array:
    """One layer of the mixer; x is the residual stream, f32."""
    y = model.normalize(p, f"{layer}/norm1", x).swapaxes(1, 2)
    y = linear(p, f"{layer}/token2", jax.nn.gelu(linear(p, f"{layer}/token1", y).astype(jnp.float32)))
    x = x + y.swapaxes(1, 2).astype(jnp.float32)
    y = jax.nn.gelu(linear(p, f"{layer}/channel1", model.normalize(p, f"{layer}/norm2", x)).astype(jnp.float32))
    return x + linear(p, f"{layer}/channel2", y).astype(jnp.float32)


def mixer(p: Params, x: jax.Array) -> jax.Array:
    x = linear(p, "embed", x).astype(jnp.float32)
    for i in range(sizes.Mixer().layers):
        x = mix(p, f"h{i}", x)
    return linear(p, "head", model.normalize(p, "final", x).mean(1))


def classifier(network: Callable[[Params, jax.Array], jax.Array]) -> Step:
    """The training step of a network that tells classes: momentum, in place of AdamW."""

    def loss_of(params: Params, inputs: jax.Array, labels: jax.Array) -> jax.Array:
        scores = network(params, inputs).astype(jnp.float32)
        right = jax.nn.one_hot(labels, sizes.CLASSES, dtype=jnp.float32)
        return jnp.mean(jax.nn.logsumexp(scores, axis=-1) - jnp.sum(scores * right, axis=-1))

    def main(params: Params, moments: Params, inputs: jax.Array, labels: jax.Array) -> tuple[Params, Params, jax.Array]:
        loss, gradients = jax.value_and_grad(loss_of)(params, inputs, labels)
        moments = {name: sizes.MOMENTUM * moments[name] + g for name, g in gradients.items()}
        params = {name: p - sizes.LEARNING_RATE * moments[name] for name, p in params.items()}
        return params, moments, loss

    return main


@dataclasses.dataclass
class Network:
    step: Step  # (*state, *batch) -> (*state, loss)
    state: tuple[Any, ...]  # shapes and types
    batch: tuple[Any, ...]

    def lowered(self) -> Any:
        donated = tuple(range(len(self.state)))
        return jax.jit(self.step, donate_argnums=donated).lower(*self.state, *self.batch)

    def initial(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """State and batch with values; the state of the optimizer starts at zero."""
        draw = numpy.random.default_rng(0)

        def random(shape: jax.ShapeDtypeStruct) -> jax.Array:
            if shape.dtype == jnp.int32:
                return jnp.asarray(draw.integers(0, sizes.CLASSES, shape.shape, dtype=numpy.int32))
            return jnp.asarray(draw.normal(0.0, (shape.shape or (1,))[0] ** -0.5, shape.shape), jnp.float32)

        zero = lambda shape: jnp.zeros(shape.shape, shape.dtype)
        state = (jax.tree.map(random, self.state[0]), *(jax.tree.map(zero, s) for s in self.state[1:]))
        return state, jax.tree.map(random, self.batch)


def find(name: str, layers: int | None = None) -> Network:
    """A network by its name; `layers` only for the GPT."""
    if name == "gpt":
        parameters.LAYERS = layers or 4
        *state, tokens = export.arguments()
        return Network(model.main, tuple(state), (tokens,))
    found = sizes.MODELS[name]
    params = {key: jax.ShapeDtypeStruct(shape, jnp.float32) for key, shape in found.shapes().items()}
    batch = jax.ShapeDtypeStruct(found.inputs, jnp.float32), jax.ShapeDtypeStruct(found.inputs[:1], jnp.int32)
    return Network(classifier({"mlp": mlp, "mixer": mixer}[name]), (params, params), batch)


HEADER = """\
// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A training step that fp8-bench measures. Generated from peer/jax_networks.py by the command in
// README.md; do not edit.

"""


def write(name: str, file: pathlib.Path, layers: int | None = None) -> None:
    """Exports a network's step to linalg on tensors, by jaxlib's own passes."""
    lowered = find(name, layers).lowered().compiler_ir("stablehlo")
    file.write_text(HEADER + export.text(export.to_linalg({"main": lowered})))
