# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One small function for each kind of JAX operation, its values compared with jax.jit's."""

import functools

import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import optax  # noqa: E402
from jax import lax  # noqa: E402
from jax.ad_checkpoint import checkpoint_name  # noqa: E402

from jax_values import compare  # noqa: E402

# f32 with sums of up to 128 terms in another order, and functions that differ by a few ulp of 6e-8.
TOLERANCE = 3e-6

RANDOM = np.random.default_rng(0)


def normal(*shape):
    return jnp.asarray(RANDOM.normal(size=shape), jnp.float32)


X, W, SQUARE = normal(8, 16), normal(16, 16) / 4, normal(8, 8)
IMAGE, FILTER = normal(2, 8, 8, 3), normal(3, 3, 3, 4)
TABLE = normal(32, 16)
IDS = jnp.asarray(RANDOM.integers(0, 32, (4, 5)), jnp.int32)
LABELS = jnp.asarray(RANDOM.integers(0, 16, (8, 1)), jnp.int32)
KEY = jax.random.key(0)
TIES = jnp.asarray(RANDOM.integers(0, 3, (4, 17)), jnp.int32)
#: Ends of integer types, numbers beyond them, and just inside.
OUTSIDE = jnp.array([3.7, -3.7, 127.9, 128, -128.9, -129, 255.9, 256, -0.9, 32768, -32769, 65535, 2147483520, 2147483648, -2147483648, 4294967040], jnp.float32)
OUTSIDE = jnp.concatenate([OUTSIDE, jnp.array([4294967296, 1e10, -1e10, 1e30, -1e30, jnp.nan, jnp.inf, -jnp.inf], jnp.float32)])
SPECIAL = jnp.array([3, jnp.nan, -0.0, 0.0, -jnp.inf, jnp.inf, -jnp.nan, 1, -5, 2, 2], jnp.float32)


def windows(initial, combine):
    return lambda x: lax.reduce_window(x, initial, combine, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


max_pool, sum_pool = windows(-jnp.inf, lax.max), windows(0.0, lax.add)


def conv(x, w):
    return lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def weighted(fun):
    """The sum of a function's results, each with another weight, so that no two gradients are equal."""

    def total(*args):
        y = fun(*args).astype(jnp.float32)
        return (y * jnp.cos(jnp.arange(y.size, dtype=jnp.float32)).reshape(y.shape)).sum()

    return total


def gradient(fun):
    return jax.grad(weighted(fun))


def cross_entropy(x, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(x), labels, axis=-1).mean()


def scan_layers(w, x):
    return lax.scan(lambda h, _: (jnp.tanh(h @ w), h.sum()), x, None, length=3)


CONTROL_FLOW = {
    "scan": (lambda x, w: scan_layers(w, x), X, W),
    "scan_gradient": (gradient(lambda w, x: scan_layers(w, x)[0]), W, X),
    "scan_over_weights": (lambda ws, x: lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, ws)[0], normal(3, 16, 16) / 4, X),
    "scan_reverse": (lambda x: lax.scan(lambda c, r: (c + r, c * r), jnp.zeros(16), x, reverse=True), X),
    "fori": (lambda x: lax.fori_loop(0, 5, lambda i, x: x * i + 1, x), X),
    "fori_of_argument": (lambda x, n: lax.fori_loop(2, n, lambda i, x: x * 0.5 + i, x), X, 7),
    "fori_never": (lambda x, n: lax.fori_loop(2, n, lambda i, x: x * 0.5 + i, x), X, 1),
    "fori_counter": (lambda n: lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] + c[0]), (3, 0)), 9),
    "unsigned_counter": (
        lambda n: lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 2), (jnp.uint32(3), jnp.uint32(1))),
        jnp.uint32(9),
    ),
    "limit_changes": (lambda n: lax.while_loop(lambda c: c[0] < c[1], lambda c: (c[0] + 1, c[1] - 1), (0, n)), 9),
    "while": (lambda x: lax.while_loop(lambda x: jnp.abs(x).sum() < 1000, lambda x: x * 2, x), X),
    "cond": (lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x), True, X),
    "cond_false": (lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x), False, X),
    "switch": (lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.tanh], x), 1, X),
    "switch_beyond": (lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.tanh], x), 7, X),
    "switch_one_branch": (lambda i, x: lax.switch(i, [jnp.sin], x), 0, X),
    "remat": (gradient(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))), X),
    "nested": (
        lambda x: lax.scan(
            lambda c, _: (
                lax.cond(c.sum() > 20, lambda c: c * 0.5, lambda c: lax.fori_loop(0, 3, lambda i, a: a + i, c), c),
                c.max(),
            ),
            x, None, length=6,
        ),
        jnp.ones((2, 3)),
    ),
}  # fmt: skip

INDEXING = {
    "embedding": (lambda table, ids: table[ids], TABLE, IDS),
    "embedding_gradient": (gradient(lambda table, ids: table[ids]), TABLE, IDS),
    "take": (lambda table, ids: jnp.take(table, ids, axis=0), TABLE, IDS),
    "take_along_axis": (lambda x, i: jnp.take_along_axis(x, i, axis=-1), X, LABELS),
    "cross_entropy_gradient": (jax.grad(cross_entropy), X, LABELS),
    "one_hot": (lambda ids: jax.nn.one_hot(ids, 32), IDS),
    "set": (lambda x: x.at[2].set(1.0), X),
    "add": (lambda x, i: x.at[i].add(1.0), X, jnp.array([1, 2, 1])),
    "subtract": (lambda x, i: x.at[i].subtract(1.0), X, jnp.array([1, 2, 1])),
    "max": (lambda x, i: x.at[i].max(1.0), X, jnp.array([1, 2])),
    "min": (lambda x, i: x.at[i].min(0.5), X, jnp.array([1, 2])),
    "apply": (lambda x, i: x.at[i].apply(jnp.exp), X, jnp.array([1, 2])),
    "set_drop": (lambda x, i: x.at[i].set(9.0, mode="drop"), jnp.zeros(5), jnp.array([1, 7, -9])),
    "add_clip": (lambda x, i: x.at[i].add(9.0, mode="clip"), jnp.zeros(5), jnp.array([1, 7, -9])),
    "set_pairs": (lambda x, i, j, v: x.at[i, j].set(v), jnp.zeros((5, 6)), jnp.array([1, 2]), jnp.array([3, 4]), jnp.array([1.0, 2.0])),
    "multiply_slice": (lambda x, v: x.at[1:4, ::2].multiply(v), normal(5, 6), jnp.full((3, 3), 2.0)),
    "byte_indices": (lambda x, i: x.at[i].add(1.0), jnp.zeros(300), jnp.array([1, 200, 255], jnp.uint8)),
    "set_keys": (lambda k, i: jax.random.split(k, 4).at[i].set(k), KEY, 2),
    "vmap_add": (jax.vmap(lambda x, i, v: x.at[i].add(v)), normal(3, 5), jnp.asarray(RANDOM.integers(0, 5, (3, 4))), normal(3, 4)),
    "vmap_slice_gradient": (
        gradient(lambda x, i: jax.vmap(lambda r, k: lax.dynamic_slice(r, (k,), (3,)))(x, i)), normal(4, 8), jnp.array([0, 2, 9, 5]),
    ),
    "gather_gradient": (gradient(lambda x, i, j: x[i, :, j] ** 2), normal(3, 4, 5), jnp.array([0, 2, 2]), jnp.array([4, 4, 4])),
    "set_bool": (lambda x, i: x.at[i].set(True), jnp.zeros(5, bool), jnp.array([1, 3])),
    "dynamic_slice": (lambda x, i: lax.dynamic_slice(x, (i, 0), (2, 16)), X, 7),
    "dynamic_update": (lambda x, u, i: lax.dynamic_update_slice(x, u, (i, 0)), X, jnp.ones((2, 16)), 1),
    "vmap_dynamic_slice": (jax.vmap(lambda x, i: lax.dynamic_slice(x, (i,), (2,))), X, jnp.arange(8)),
    "roll": (lambda x, i: jnp.roll(x, i), X, 3),
    "flip": (lambda x: x[::-1], X),
    "pad": (lambda x: jnp.pad(x, 1), X),
    "bincount": (lambda ids: jnp.bincount(ids.ravel(), length=8), IDS),
    "segment_sum": (lambda x, i: jax.ops.segment_sum(x, i, 4), normal(6, 2), jnp.array([0, 1, 1, 3, 3, 3])),
    "histogram": (lambda x: jnp.histogram(x, bins=5)[0], normal(20)),
}  # fmt: skip

ORDER = {
    "sort": (jnp.sort, X),
    "argsort": (jnp.argsort, X),
    "top_k": (lambda x: lax.top_k(x, 2), X),
    "argmax": (lambda x: jnp.argmax(x, -1), X),
    "sort_special": (jnp.sort, SPECIAL),
    "argsort_special": (jnp.argsort, SPECIAL),
    "sort_descending": (lambda x: jnp.sort(x, descending=True), SPECIAL),
    "argsort_ties": (lambda x: jnp.argsort(x, axis=1), TIES),
    "argsort_columns": (lambda x: jnp.argsort(x, axis=0), TIES),
    "lexsort": (lambda a, b: jnp.lexsort((a, b)), TIES[0], TIES[1]),
    "top_k_ties": (lambda x: lax.top_k(x, 5), TIES),
    "top_k_zeros": (lambda x: lax.top_k(x, 4), jnp.array([-1.0, -5, -0.0, 0.0, 2, 2, -jnp.inf])),
    "sort_bf16": (jnp.sort, normal(3, 9).astype(jnp.bfloat16)),
    "sort_u8": (jnp.sort, jnp.array([200, 3, 255, 0, 7], jnp.uint8)),
    "sort_i8": (jnp.sort, jnp.array([-100, 3, 127, -128, 7], jnp.int8)),
    "sort_one": (jnp.sort, normal(3, 1)),
    "median": (jnp.median, normal(33)),
    "searchsorted": (lambda x, v: jnp.searchsorted(jnp.sort(x[0]), v), X, 0.3),
    "unique": (lambda x: jnp.unique(x, size=4), TIES[0]),
    "approx_max": (lambda x: lax.approx_max_k(x, 3), X),
    "approx_min": (lambda x: lax.approx_min_k(x, 3, reduction_dimension=0), X),
}

RANDOM_NUMBERS = {
    "bernoulli": (lambda k, x: jax.random.bernoulli(k, 0.9, x.shape) * x, KEY, X),
    "normal": (lambda k: jax.random.normal(k, (8,)), KEY),
    "truncated_normal": (lambda k: jax.random.truncated_normal(k, -2, 2, (64,)), KEY),
    "split": (lambda k: jax.random.split(k, 3), KEY),
    "fold_in": (lambda k: jax.random.fold_in(k, 3), KEY),
    "randint": (lambda k: jax.random.randint(k, (8,), 0, 10), KEY),
    "permutation": (lambda k: jax.random.permutation(k, 1000), KEY),
    "choice": (lambda k: jax.random.choice(k, 10, (4,), replace=False), KEY),
    "categorical": (lambda k, x: jax.random.categorical(k, x), KEY, X),
    "gumbel": (lambda k: jax.random.gumbel(k, (8,)), KEY),
    "gamma": (lambda k: jax.random.gamma(k, 2.0, (4,)), KEY),
    "rbg": (lambda k: jax.random.bits(k, (8,)), jax.random.key(0, impl="rbg")),
    "rbg_key": (lambda k: jax.random.split(k, 2), jax.random.key(0, impl="rbg")),
    "scan_key": (lambda k: lax.scan(lambda k, _: (jax.random.split(k)[0], jax.random.normal(k)), k, None, length=3), KEY),
    "while_key": (lambda k: lax.while_loop(lambda c: c[1] < 2, lambda c: (jax.random.split(c[0])[0], c[1] + jax.random.uniform(c[0])), (k, 0.0)), KEY),
    "old_key": (lambda k: jax.random.split(k)[0], jax.random.PRNGKey(4)),
}

WINDOWS_AND_SUMS = {
    "cumsum": (lambda x: jnp.cumsum(x, -1), X),
    "cumsum_gradient": (gradient(lambda x: jnp.cumsum(x, -1)), X),
    "cumprod": (lambda x: jnp.cumprod(x, 0), X),
    "cummax": (lax.cummax, X),
    "cummax_gradient": (gradient(lax.cummax), X[0]),
    "cumprod_gradient": (gradient(jnp.cumprod), X[0]),
    "cumlogsumexp_gradient": (gradient(lax.cumlogsumexp), X[0]),
    "cumlogsumexp": (lax.cumlogsumexp, X),
    "associative_scan": (lambda x: lax.associative_scan(jnp.add, x), X),
    "max_pool": (max_pool, IMAGE),
    "max_pool_gradient": (gradient(max_pool), IMAGE),
    "max_pool_overlapping_gradient": (gradient(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")), IMAGE),
    "max_pool_ties_gradient": (gradient(lambda x: lax.reduce_window(jnp.round(x) + x * 0, -jnp.inf, lax.max, (3, 2), (1, 2), ((1, 2), (0, 1)))), X),
    "min_pool_gradient": (gradient(lambda x: lax.reduce_window(x, jnp.inf, lax.min, (3, 2), (1, 1), "VALID")), X),
    "average_pool_gradient": (gradient(sum_pool), IMAGE),
    "conv": (conv, IMAGE, FILTER),
    "conv_filter_gradient": (jax.grad(weighted(conv), argnums=1), IMAGE, FILTER),
    "conv_input_gradient": (gradient(conv), IMAGE, FILTER),
    "sum_of_nothing": (lambda x: (x[:0].sum(), jnp.any(x[:, :0] > 0, axis=1), jnp.max(x[:0], axis=1)), X),
    "concatenate_nothing": (lambda x: jnp.concatenate([x[:0], x, x[8:], x * 2]), X),
    "logsumexp": (lambda x: jax.nn.logsumexp(x, -1), X),
    "ctc_loss": (
        gradient(lambda x, labels: optax.ctc_loss(x, jnp.zeros(x.shape[:2]), labels, jnp.zeros(labels.shape))),
        normal(2, 9, 5), jnp.array([[1, 2, 2], [3, 1, 4]]),
    ),
    "global_norm": (lambda x: jnp.sqrt(jnp.vdot(x, x)), X),
}  # fmt: skip

QUERY, KEYS, MASK = normal(2, 8, 4, 16), normal(2, 8, 2, 16), jnp.asarray(RANDOM.random((2, 1, 8, 8)) > 0.3) | jnp.eye(8, dtype=bool)


@jax.custom_vjp
def doubled_gradient(x):
    return jnp.tanh(x)


doubled_gradient.defvjp(lambda x: (jnp.tanh(x), x), lambda x, g: (2 * g * x,))


@jax.custom_jvp
def tripled_tangent(x):
    return jnp.sin(x)


tripled_tangent.defjvps(lambda tangent, answer, x: 3 * tangent * x)


def rematerialized(policy):
    @functools.partial(jax.checkpoint, policy=policy)
    def block(x, w):
        return jnp.tanh(checkpoint_name(jnp.tanh(x @ w), "hidden") @ w)

    return jax.grad(lambda w, x: block(x, w).sum())


POLICIES = jax.checkpoint_policies

PRODUCTS = {
    "einsum_ellipsis": (lambda a, b: jnp.einsum("...ij,...jk->...ik", a, b), normal(2, 3, 4, 8), normal(3, 8, 5)),
    "attention_of_groups": (lambda q, k, m: jax.nn.dot_product_attention(q, k, k, mask=m), QUERY, KEYS, MASK),
    "attention_with_bias": (lambda q, k, b: jax.nn.dot_product_attention(q, k, k, bias=b, is_causal=True, scale=0.2), QUERY, KEYS, normal(2, 4, 8, 8)),
    "attention_of_lengths": (
        lambda q, k, n: jax.nn.dot_product_attention(q, k, k, query_seq_lengths=n, key_value_seq_lengths=n), QUERY, KEYS, jnp.array([3, 8]),
    ),
    "attention_in_a_window": (lambda q, k: jax.nn.dot_product_attention(q, k, k, local_window_size=(2, 1)), QUERY, KEYS),
    "attention_gradient": (gradient(lambda q, k, m: jax.nn.dot_product_attention(q, k, k, mask=m)), QUERY, KEYS, MASK),
    "map": (lambda x, w: lax.map(lambda row: jnp.tanh(row @ w), x, batch_size=3), X, W),
    "custom_vjp": (gradient(lambda w, x: doubled_gradient(x @ w)), W, X),
    "custom_jvp": (gradient(lambda w, x: tripled_tangent(x @ w)), W, X),
    "remat_named": (rematerialized(POLICIES.save_only_these_names("hidden")), W, X),
    "remat_dots": (rematerialized(POLICIES.dots_with_no_batch_dims_saveable), W, X),
    "jacobian": (jax.jacfwd(lambda x, w: jnp.tanh(x @ w)), X[0], W),
    "hessian": (jax.hessian(lambda x, w: jnp.tanh(x @ w).sum()), X[0], W),
    "gradients_of_examples": (jax.vmap(jax.grad(lambda w, x: jnp.tanh(x @ w).sum()), (None, 0)), W, X),
    "nothing": (lambda x, w: (x[:0] @ w, x[:, :0] @ w[:0]), X, W),
    "attention": (lambda q: jax.nn.dot_product_attention(q, q, q, is_causal=True), normal(2, 8, 4, 16)),
    "ragged_dot": (lax.ragged_dot, X, normal(2, 16, 16), jnp.array([3, 5], jnp.int32)),
    "highest_precision": (lambda x, w: jnp.dot(x, w, precision="highest"), X, W),
    "experts": (
        lambda x, gate, w: jnp.einsum(
            "nk,nkf->nf",
            jax.nn.softmax(lax.top_k(x @ gate, 2)[0]),
            jnp.take_along_axis(jnp.einsum("nd,edf->nef", x, w), lax.top_k(x @ gate, 2)[1][:, :, None], axis=1),
        ),
        normal(10, 8), normal(8, 4), normal(4, 8, 6),
    ),
}  # fmt: skip


def f8_compared(x):
    return x.astype(bool), x != 0, x < x[::-1], jnp.isnan(x), jnp.isfinite(x), jnp.argmax(x), jnp.sort(x).astype(jnp.float32)


ELEMENTWISE = {
    "erf_inv": (lambda x: lax.erf_inv(jnp.tanh(x)), X),
    "gelu": (lambda x: jax.nn.gelu(x, approximate=False), X),
    "expm1": (jnp.expm1, X),
    "bitcast": (lambda x: lax.bitcast_convert_type(x, jnp.int32), X),
    "reduce_precision": (lambda x: lax.reduce_precision(x, 8, 7), X),
    "population_count": (lax.population_count, IDS),
    "to_integers": (
        lambda *numbers: [x.astype(type) for x in numbers for type in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "bool")],
        OUTSIDE, OUTSIDE.astype(jnp.float16), OUTSIDE.astype(jnp.bfloat16),
    ),
    "f8_to_integers": (lambda x: (x.astype(jnp.int8), x.astype(jnp.uint8), x.astype(jnp.int32)), OUTSIDE.astype(jnp.float8_e4m3fn)),
    "f8_e4m3_compared": (f8_compared, SPECIAL.astype(jnp.float8_e4m3fn)),
    "f8_e5m2_compared": (f8_compared, SPECIAL.astype(jnp.float8_e5m2)),
    "nan_to_num": (jnp.nan_to_num, SPECIAL),
    "f8": (lambda x: x.astype(jnp.float8_e4m3fn).astype(jnp.float32), X),
    "relu": (jax.nn.relu, X),
    "clip": (lambda x: jnp.clip(x, 0, 1), X),
    "unsigned": (lambda i: (i.astype(jnp.uint8) // 3, i.astype(jnp.uint32) - 40), IDS),
    "weak_type": (lambda x: (x.sum() * 0 + 1, 3, 2.5 * jnp.int32(2)), X),
}  # fmt: skip

GROUPS = {name: case for group in (CONTROL_FLOW, INDEXING, ORDER, RANDOM_NUMBERS, WINDOWS_AND_SUMS, PRODUCTS, ELEMENTWISE) for name, case in group.items()}


@pytest.mark.parametrize("name", GROUPS)
def test_values_are_those_of_jax_jit(name):
    fun, *args = GROUPS[name]
    compare(fun, *args, tolerance=TOLERANCE)
