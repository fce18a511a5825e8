# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A byte-level GPT and its training step in plain JAX; nothing in it knows of FP8.

Master weights are f32, matmuls take bf16 operands, and norms, softmax and loss
are f32. A named scope around each linear layer gives its contractions their names.
"""

import jax
import jax.numpy as jnp
import parameters as sizes

LEARNING_RATE = 4e-3
WARM_UP = 60  # steps
BETA1, BETA2, EPSILON, DECAY = 0.9, 0.95, 1e-8, 0.05
NARROW = jnp.bfloat16  # the type of matmuls; export.py --f32 has f32 instead


def normalize(p, name, x):
    x = x - x.mean(-1, keepdims=True)
    x = x * jax.lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-5)
    return x * p[f"{name}/gain"] + p[f"{name}/bias"]


def linear(p, block, name, x):
    """x: f32 or bf16 [batch, time, inputs]; the result is bf16."""
    with jax.named_scope(name):
        w = p[f"{block}/{name}/weight"].astype(NARROW)
        y = jnp.einsum("bti,io->bto", x.astype(NARROW), w)
        return y + p[f"{block}/{name}/bias"].astype(NARROW)


def rotate(x):
    """Rotary positions: turns the two halves of bf16 [batch, time, heads, depth] by the time."""
    b, t, h, d = x.shape
    angles = jnp.arange(t)[:, None] * 10000.0 ** (jnp.arange(d // 2) * (-2.0 / d))
    sine = jnp.stack([-jnp.sin(angles), jnp.sin(angles)], axis=1)[:, None]
    pair = x.astype(jnp.float32).reshape(b, t, h, 2, d // 2)
    turned = pair * jnp.cos(angles)[:, None, None] + jnp.flip(pair, 3) * sine
    return turned.reshape(b, t, h, d).astype(NARROW)


def attention(qkv):
    """Causal attention of bf16 [batch, time, 3 * width]."""
    b, t, _ = qkv.shape
    with jax.named_scope("attention"):
        q, k, v = (a.reshape(b, t, sizes.HEADS, -1) for a in jnp.split(qkv, 3, axis=-1))
        scores = jnp.einsum("bqhd,bkhd->bhqk", rotate(q), rotate(k)).astype(jnp.float32)
        scores = scores * (sizes.WIDTH // sizes.HEADS) ** -0.5
        causal = jnp.arange(t)[:, None] >= jnp.arange(t)[None, :]
        weights = jax.nn.softmax(jnp.where(causal, scores, -1e30), axis=-1)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", weights.astype(NARROW), v)
        return mixed.reshape(b, t, sizes.WIDTH)


def block(p, name, x):
    """One layer; x is the residual stream, f32."""
    with jax.named_scope(name):
        qkv = linear(p, name, "qkv", normalize(p, f"{name}/norm1", x))
        x = x + linear(p, name, "proj", attention(qkv)).astype(jnp.float32)
        hidden = linear(p, name, "fc1", normalize(p, f"{name}/norm2", x))
        hidden = jax.nn.gelu(hidden.astype(jnp.float32))
        return x + linear(p, name, "fc2", hidden).astype(jnp.float32)


def logits(p, tokens):
    with jax.named_scope("embed"):
        one_hot = jax.nn.one_hot(tokens, sizes.VOCABULARY, dtype=NARROW)
        w = p["embed/weight"].astype(NARROW)
        x = jnp.einsum("btv,vi->bti", one_hot, w).astype(jnp.float32)
    for layer in range(sizes.LAYERS):
        x = block(p, f"h{layer}", x)
    x = normalize(p, "final", x)
    with jax.named_scope("head"):
        w = p["head/weight"].astype(NARROW)
        return jnp.einsum("bti,io->bto", x.astype(NARROW), w).astype(jnp.float32)


def evaluate(params, tokens):
    """Mean cross-entropy, in nats per byte, of each byte given those before it."""
    scores = logits(params, tokens[:, :-1])
    right = jax.nn.one_hot(tokens[:, 1:], sizes.VOCABULARY, dtype=jnp.float32)
    return jnp.mean(jax.nn.logsumexp(scores, axis=-1) - jnp.sum(scores * right, axis=-1))


def main(params, moment1, moment2, steps, tokens):
    """One AdamW step: the carried values in their order, then the loss before the step."""
    loss, gradients = jax.value_and_grad(evaluate)(params, tokens)
    steps = steps + 1.0
    # Linear warm-up, then the inverse square root: fits a run of any length.
    rate = LEARNING_RATE * jnp.minimum(steps / WARM_UP, jax.lax.rsqrt(steps / WARM_UP))
    unbias1, unbias2 = 1.0 - BETA1**steps, 1.0 - BETA2**steps
    for name, g in gradients.items():
        moment1[name] = BETA1 * moment1[name] + (1.0 - BETA1) * g
        moment2[name] = BETA2 * moment2[name] + (1.0 - BETA2) * jnp.square(g)
        change = moment1[name] / unbias1 / (jnp.sqrt(moment2[name] / unbias2) + EPSILON)
        shrink = DECAY if name.endswith("/weight") else 0.0
        params[name] = params[name] - rate * (change + shrink * params[name])
    return params, moment1, moment2, steps, loss
