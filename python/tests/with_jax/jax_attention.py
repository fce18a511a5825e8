# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention as users of JAX write it, each from queries, keys and values [batch, tokens, heads, width] to the output.

`FUSED` has the forms that become one operation, `WRITTEN` those that do not, with the reason that the report gives.
A form may have parameters of its own, which get gradients.
"""

import math

import jax
import jax.numpy as jnp
from jax import lax


def scores_of(q, k):
    return jnp.einsum("bqhd,bkhd->bhqk", q, k)


def output_of(p, v):
    return jnp.einsum("bhqk,bkhd->bqhd", p, v)


def indices(s):
    return jnp.arange(s.shape[-2])[:, None], jnp.arange(s.shape[-1])[None, :]


def causal_of(s):
    i, j = indices(s)
    return j <= i


def plain(q, k, v):
    return output_of(jax.nn.softmax(scores_of(q, k) / math.sqrt(q.shape[-1]), axis=-1), v)


def causal_where(q, k, v):
    s = scores_of(q, k) * q.shape[-1] ** -0.5
    return output_of(jax.nn.softmax(jnp.where(causal_of(s), s, -jnp.inf), axis=-1), v)


def causal_finfo(q, k, v):
    s = scores_of(q * q.shape[-1] ** -0.5, k)
    s = jnp.where(causal_of(s), s, jnp.finfo(s.dtype).min)
    return output_of(jax.nn.softmax(s.astype(jnp.float32), axis=-1).astype(q.dtype), v)


def causal_added(q, k, v):
    s = scores_of(q, k * q.shape[-1] ** -0.5)
    return output_of(jax.nn.softmax(jnp.where(causal_of(s), 0.0, -1e9).astype(s.dtype) + s, axis=-1), v)


def scaled_on_both(q, k, v):
    root = q.shape[-1] ** -0.25
    s = scores_of(q * root, k * root).astype(jnp.float32)
    return output_of(jax.nn.softmax(jnp.where(causal_of(s), s, -1e30), axis=-1).astype(q.dtype), v)


def rotary(q, k, v):
    """The halves of a depth are turned by the position as a dimension of their own, in f32."""

    def turn(x):
        *rest, depth = x.shape
        angles = jnp.arange(x.shape[1])[:, None] * 100.0 ** (jnp.arange(depth // 2) * (-2.0 / depth))
        sine = jnp.stack([-jnp.sin(angles), jnp.sin(angles)], axis=1)[:, None]
        pair = x.astype(jnp.float32).reshape(*rest, 2, depth // 2)
        return (pair * jnp.cos(angles)[:, None, None] + jnp.flip(pair, 3) * sine).reshape(x.shape).astype(x.dtype)

    return causal_where(turn(q), turn(k), v)


def by_logarithm(q, k, v):
    return output_of(jnp.exp(jax.nn.log_softmax(scores_of(q, k), axis=-1)), v)


def by_hand(q, k, v):
    s = scores_of(q, k).astype(jnp.float32) * 0.3
    e = jnp.exp(s - s.max(axis=-1, keepdims=True))
    return output_of((e / e.sum(axis=-1, keepdims=True)).astype(q.dtype), v)


def divided_after(q, k, v):
    s = scores_of(q, k).astype(jnp.float32)
    e = jnp.exp(s - lax.stop_gradient(s.max(axis=-1, keepdims=True)))
    total = e.sum(axis=-1)
    return (output_of(e.astype(q.dtype), v) / jnp.swapaxes(total, 1, 2)[..., None]).astype(q.dtype)


def softmax_where(q, k, v):
    s = scores_of(q, k) * 0.25
    return output_of(jax.nn.softmax(s, axis=-1, where=causal_of(s)), v)


def padded(q, k, v):
    lengths = jnp.array([5, 3])
    s = scores_of(q, k) * 0.25
    seen = indices(s)[1] < lengths[:, None, None, None]
    return output_of(jax.nn.softmax(jnp.where(seen, s, -1e9), axis=-1), v)


def packed(q, k, v):
    segments = jnp.arange(k.shape[1]) // 4
    s = scores_of(q, k) * 0.25
    return output_of(jax.nn.softmax(jnp.where((segments[:, None] == segments) & causal_of(s), s, -1e9), axis=-1), v)


def window(q, k, v):
    s = scores_of(q, k) * 0.25
    i, j = indices(s)
    return output_of(jax.nn.softmax(jnp.where((j <= i) & (i - j < 4), s, -1e9), axis=-1), v)


def local_window(q, k, v):
    """With positions that are constants of the program."""
    return jax.nn.dot_product_attention(q, k, v, local_window_size=(3, 0))


def near(q, k, v):
    s = scores_of(q, k) * 0.25
    i, j = indices(s)
    return output_of(jax.nn.softmax(jnp.where(jnp.abs(i - j) < 5, s, -1e9), axis=-1), v)


def prefix(q, k, v):
    s = scores_of(q, k) * 0.25
    return output_of(jax.nn.softmax(jnp.where(causal_of(s) | (indices(s)[1] < 3), s, -1e9), axis=-1), v)


def alibi(q, k, v):
    s = scores_of(q, k) * 0.25
    i, j = indices(s)
    slopes = 2.0 ** -(1.0 + jnp.arange(q.shape[2]))
    s = s + (slopes[:, None, None] * (j - i)).astype(s.dtype)
    return output_of(jax.nn.softmax(jnp.where(causal_of(s), s, -1e9), axis=-1), v)


def softcap(q, k, v):
    s = jnp.tanh(scores_of(q, k).astype(jnp.float32) / 5.0) * 5.0
    return output_of(jax.nn.softmax(jnp.where(causal_of(s), s, -1e30), axis=-1).astype(q.dtype), v)


def dropout(q, k, v):
    p = jax.nn.softmax(scores_of(q, k) * 0.25, axis=-1)
    kept = jax.random.bernoulli(jax.random.key(3), 0.75, p.shape)
    return output_of(jnp.where(kept, p / 0.75, 0), v)


def grouped_repeat(q, k, v):
    half = q.shape[2] // 2
    k, v = (jnp.repeat(x[:, :, :half], 2, axis=2) for x in (k, v))
    return causal_where(q, k, v)


def grouped_einsum(q, k, v):
    b, t, h, d = q.shape
    k, v = k[:, :, : h // 2], v[:, :, : h // 2]
    s = jnp.einsum("bqhgd,bkhd->bhgqk", q.reshape(b, t, h // 2, 2, d), k) * 0.25
    return jnp.einsum("bhgqk,bkhd->bqhgd", jax.nn.softmax(s, axis=-1), v).reshape(b, t, h, d)


def multi_query(q, k, v):
    s = jnp.einsum("bqhd,bkd->bhqk", q, k[:, :, 0]) * 0.25
    return jnp.einsum("bhqk,bkd->bqhd", jax.nn.softmax(s, axis=-1), v[:, :, 0])


def heads_first(q, k, v):
    q, k, v = (jnp.swapaxes(x, 1, 2) for x in (q, k, v))
    p = jax.nn.softmax(q @ jnp.swapaxes(k, 2, 3) * 0.25, axis=-1)
    return jnp.swapaxes(p @ v, 1, 2)


def by_vmap(q, k, v):
    def one(q, k, v):
        return jax.nn.softmax(q @ k.T * 0.25, axis=-1) @ v

    return jax.vmap(jax.vmap(one, in_axes=1, out_axes=1))(q, k, v)


def jax_nn(q, k, v):
    return jax.nn.dot_product_attention(q, k, v, is_causal=True)


def cross(q, k, v):
    return plain(q[:, :5], k, v)


def rematerialized(q, k, v):
    return jax.checkpoint(causal_where)(q, k, v)


def biased(q, k, v, bias):
    """An additive bias of heads, rows and keys, with its gradient."""
    return output_of(jax.nn.softmax(scores_of(q, k) * 0.25 + bias, axis=-1), v)


def shared_bias(q, k, v, bias):
    """One bias for all batches and heads."""
    return output_of(jax.nn.softmax(scores_of(q, k) * 0.25 + bias, axis=-1), v)


def relative(q, k, v, table):
    """The bias of T5: a learned number for each head and distance."""
    rows, keys = jnp.arange(q.shape[1])[:, None], jnp.arange(k.shape[1])
    bias = table[jnp.clip(rows - keys + 8, 0, 15)]
    return output_of(jax.nn.softmax(scores_of(q, k) + bias.transpose(2, 0, 1), axis=-1), v)


def biased_masked(q, k, v, bias):
    s = jnp.where(jnp.tril(jnp.ones((q.shape[1], k.shape[1]), bool)), scores_of(q, k) + bias, -jnp.inf)
    return output_of(jax.nn.softmax(s, axis=-1), v)


def biased_causal(q, k, v, bias):
    """A mask of finite numbers, below which a bias can be."""
    s = scores_of(q, k) + bias
    return output_of(jax.nn.softmax(jnp.where(causal_of(s), s, -1e9), axis=-1), v)


def sink(q, k, v, logits):
    """A learned score for each head that takes part in the softmax and has no value, as in gpt-oss."""
    s = jnp.where(causal_of(scores_of(q, k)), scores_of(q, k).astype(jnp.float32) * 0.25, -1e30)
    last = jnp.broadcast_to(logits[:, None, None].astype(jnp.float32), (*s.shape[:3], 1))
    p = jax.nn.softmax(jnp.concatenate([s, last], axis=-1), axis=-1)[..., :-1]
    return output_of(p.astype(q.dtype), v)


def sink_first(q, k, v, logits):
    s = scores_of(q, k) * 0.25
    first = jnp.broadcast_to(logits[:, None, None], (*s.shape[:3], 1))
    return output_of(jax.nn.softmax(jnp.concatenate([first, s], axis=-1), axis=-1)[..., 1:], v)


def causal_sink_first(q, k, v, logits):
    s = jnp.where(causal_of(scores_of(q, k)), scores_of(q, k) * 0.25, -1e9)
    first = jnp.broadcast_to(logits[:, None, None], (*s.shape[:3], 1))
    return output_of(jax.nn.softmax(jnp.concatenate([first, s], axis=-1), axis=-1)[..., 1:], v)


def sink_by_hand(q, k, v, logits):
    s, last = scores_of(q, k).astype(jnp.float32) * 0.25, logits[:, None, None].astype(jnp.float32)
    top = lax.stop_gradient(jnp.maximum(s.max(axis=-1, keepdims=True), last))
    e = jnp.exp(s - top)
    return output_of((e / (e.sum(axis=-1, keepdims=True) + jnp.exp(last - top))).astype(q.dtype), v)


def off_by_one(q, k, v):
    """The softmax whose denominator has a 1 more: a sink of 0."""
    s = scores_of(q, k).astype(jnp.float32) * 0.25
    top = lax.stop_gradient(jnp.maximum(s.max(axis=-1, keepdims=True), 0))
    e = jnp.exp(s - top)
    return output_of((e / (jnp.exp(-top) + e.sum(axis=-1, keepdims=True))).astype(q.dtype), v)


def sigmoid(q, k, v):
    return output_of(jax.nn.sigmoid(scores_of(q, k)), v)


def linear(q, k, v):
    return output_of(scores_of(q, k), v)


def permuted_keys(q, k, v):
    p = jax.nn.softmax(scores_of(q, k), axis=-1)
    return output_of(p[..., ::-1], v)


def over_queries(q, k, v):
    return output_of(jax.nn.softmax(scores_of(q, k), axis=-2), v)


def over_heads(q, k, v):
    return output_of(jax.nn.softmax(scores_of(q, k), axis=1), v)


FUSED = [
    *(plain, causal_where, causal_finfo, rotary, causal_added, scaled_on_both, by_logarithm, by_hand, softmax_where, padded, packed, window, prefix),
    *(local_window, near, alibi, softcap, dropout, grouped_repeat, heads_first, by_vmap, jax_nn, cross, rematerialized),
    *(biased, shared_bias, relative, biased_masked, biased_causal),
    *(sink, sink_first, causal_sink_first, sink_by_hand, off_by_one),
]

# The shape of a bias or sink with a gradient, from the numbers of heads and tokens.
BIASES = {
    biased: lambda heads, tokens: (heads, tokens, tokens),
    shared_bias: lambda heads, tokens: (tokens, tokens),
    relative: lambda heads, tokens: (16, heads),
    biased_masked: lambda heads, tokens: (heads, tokens, tokens),
    biased_causal: lambda heads, tokens: (heads, tokens, tokens),
    **dict.fromkeys((sink, sink_first, causal_sink_first, sink_by_hand), lambda heads, tokens: (heads,)),
}

# Gradients of their keys are sums over queries, then heads, those of their values the other way round: one operation on
# the CPU would change bits. On GPUs, whose sums have an order of their own, they are fused.
OUT_OF_ORDER = [grouped_einsum, multi_query]

# `divided_after` is attention that is not recognized yet.
WRITTEN = {
    **dict.fromkeys(OUT_OF_ORDER, "its backward pass sums in another order than that of its rows"),
    divided_after: "the code between its matmuls is no softmax of the scores along the keys",
    sigmoid: "no softmax is between its matmuls",
    linear: "",
    permuted_keys: "the keys of its probabilities are not in the order of those of its scores",
    over_queries: "its softmax is along another dimension than the one that its second matmul sums over",
    over_heads: "its softmax is along another dimension than the one that its second matmul sums over",
}
