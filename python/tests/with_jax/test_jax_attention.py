# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention as users of JAX write it, forward and backward: `attention="fused"` has the bits of "written", and the report
tells what was fused.
"""

import pytest

jax = pytest.importorskip("jax")
import fp8  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import jax_attention  # noqa: E402
import numpy as np  # noqa: E402

HEADS, WIDTH, BATCH = 4, 32, 2
RECIPES = ["none", "delayed", "current", "block", "mxfp8"]
#: Types and numbers of tokens.
CASES = [("bfloat16", 8), *(pytest.param(*case, marks=pytest.mark.slow) for case in (("float32", 1), ("float32", 17), ("bfloat16", 100)))]


def parameters(dtype, tokens, form, width=WIDTH):
    random = np.random.default_rng(1)
    values = {name: random.standard_normal((width, width)) * 0.3 for name in "qkvo"}
    if form in jax_attention.BIASES:
        values["bias"] = random.standard_normal(jax_attention.BIASES[form](HEADS, tokens))
    x = random.standard_normal((BATCH, tokens, width))
    return {name: jnp.asarray(value, dtype) for name, value in values.items()}, jnp.asarray(x, dtype)


def make_step(form):
    """A layer of attention between products of weights: the mean square of its output, and all gradients."""

    def loss(params, x):
        q, k, v = ((x @ params[name]).reshape(*x.shape[:2], HEADS, -1) for name in "qkv")
        y = form(q, k, v, *([params["bias"]] if "bias" in params else []))
        y = y.reshape(*y.shape[:2], -1) @ params["o"]
        return (y.astype(jnp.float32) ** 2).mean()

    return lambda params, x: jax.value_and_grad(loss)(params, x)


def run(form, dtype, tokens, recipe, attention):
    """The results of three steps with the state after them, and what became of attention."""
    params, x = parameters(dtype, tokens, form)
    step = fp8.jax.jit(make_step(form), recipe=recipe, attention=attention)
    results = [step(params, x * scale) for scale in (1, 0.5, 2)]
    return jax.tree.leaves((results, step.state)), step.report().attention


def assert_same_bits(written, fused):
    for expected, actual in zip(map(np.asarray, written), map(np.asarray, fused), strict=True):
        assert actual.tobytes() == expected.tobytes()


def check(form, dtype, tokens, recipe):
    """Returns what became of attention in the program whose attention is to be fused."""
    written, _ = run(form, dtype, tokens, recipe, "written")
    fused, sites = run(form, dtype, tokens, recipe, "fused")
    assert_same_bits(written, fused)
    assert any(np.isfinite(np.asarray(value)).any() for value in written)
    return sites


@pytest.mark.parametrize(("dtype", "tokens"), CASES)
@pytest.mark.parametrize("form", jax_attention.FUSED, ids=lambda form: form.__name__)
def test_fused(form, dtype, tokens):
    (site,) = check(form, dtype, tokens, "none")
    if tokens == 1:
        assert site.reason == "it has one key, so that its softmax is no reduction"
        return
    assert site.is_fused, site.reason
    assert site.score_bytes > 0


GPU_FORMS = [*jax_attention.FUSED, *jax_attention.OUT_OF_ORDER]
QUICK = (jax_attention.by_hand, jax_attention.causal_where)


@pytest.mark.parametrize(
    "form", [form if form in QUICK else pytest.param(form, marks=pytest.mark.slow) for form in GPU_FORMS], ids=lambda form: form.__name__
)
def test_fused_in_kernels(form):
    """On sm_90a, by the emulator with all checks: as near to f32 as where attention is written out."""
    arguments, results = parameters("bfloat16", 32, form, width=64), {}
    for attention in ("written", "fused"):
        step = fp8.jax.jit(make_step(form), recipe="none", attention=attention, target="sm_90a", device="emulator")
        results[attention] = jax.tree.leaves(step(*arguments))
    (site,) = step.report().attention
    assert site.is_fused, site.reason
    exact = jax.tree.leaves(jax.jit(make_step(form))(*jax.tree.map(lambda value: value.astype(jnp.float32), arguments)))
    errors = {name: sum(float(jnp.sum((value.astype(jnp.float32) - right) ** 2)) for value, right in zip(values, exact, strict=True))
              for name, values in results.items()}  # fmt: skip
    # Roundings to bf16 at other places: at most 1.5 times the error, whose square this is.
    assert 0 < errors["fused"] <= 1.5**2 * errors["written"]


@pytest.mark.parametrize("recipe", RECIPES)
def test_fused_between_products_in_fp8(recipe):
    (site,) = check(jax_attention.causal_where, "bfloat16", 8, recipe)
    assert site.is_fused, site.reason


@pytest.mark.parametrize(("form", "reason"), jax_attention.WRITTEN.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_written_with_a_reason(form, reason):
    sites = check(form, "float32", 8, "none")
    assert bool(sites) == bool(reason)
    assert not any(site.is_fused for site in sites)
    assert not sites or sites[0].reason == reason


def test_attention_that_must_be_fused_and_is_not():
    params, x = parameters("float32", 8, jax_attention.over_heads)
    step = fp8.jax.jit(make_step(jax_attention.over_heads), recipe="none", attention="fused", require_attention=".")
    with pytest.raises(fp8.CompileError, match=r"required to be fused .* along another dimension") as error:
        step(params, x)
    assert error.value.location.file.endswith("jax_attention.py")


CAUSAL = [form for form in jax_attention.FUSED if "causal" in form.__name__]
BOUNDED = [jax_attention.biased_masked, jax_attention.biased_causal, jax_attention.sink, jax_attention.causal_sink_first]


#: The mask that the report names for 256 tokens, and the scores that are seen. Segments are of unknown size, in causal order.
MASKS = {
    **dict.fromkeys([*CAUSAL, *BOUNDED, jax_attention.packed], ("causal", 256 * 257 / 2)),
    **dict.fromkeys([jax_attention.window, jax_attention.local_window], ("window 4", 4 * 256 - 6)),
    jax_attention.near: ("window 9", 9 * 256 - 20),
}


@pytest.mark.parametrize(("form", "expected"), MASKS.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_keys_that_a_mask_hides(form, expected):
    """Blocks leave them out: from 256 tokens on there are several."""
    (site,) = check(form, "float32", 256, "none")
    assert site.is_fused, site.reason
    assert (site.mask, site.keys_skipped) == (expected[0], 1 - expected[1] / 256**2)


@pytest.mark.parametrize("number", [-1e30, -np.inf, np.nan, 1e9], ids=str)
@pytest.mark.parametrize("form", BOUNDED, ids=lambda form: form.__name__)
def test_biases_that_hide_what_a_mask_lets_pass(form, number):
    """Where a bias is as low as a mask, the keys behind it count as much as the others: the call computes with all of them."""
    params, x = parameters("float32", 256, form)
    bias = np.array(params["bias"])
    bias[0] = number
    results = []
    for attention in ("written", "fused"):
        step = fp8.jax.jit(make_step(form), recipe="none", attention=attention)
        results.append(jax.tree.leaves(step({**params, "bias": jnp.asarray(bias)}, x)))
    assert step.report().attention[0].mask == "causal"
    assert_same_bits(*results)


def of_lengths(q, k, v, tokens):
    return jax.nn.dot_product_attention(q, k, v, is_causal=True, key_value_seq_lengths=tokens.sum(1))


def of_lengths_in_window(q, k, v, tokens):
    return jax.nn.dot_product_attention(q, k, v, is_causal=True, key_value_seq_lengths=tokens.sum(1), local_window_size=(32, 0))


def of_tokens(q, k, v, tokens):
    """As flax.linen.combine_masks makes masks."""
    mask = jnp.tril(jnp.ones((q.shape[1], k.shape[1]), bool)) & (tokens[:, :, None] & tokens[:, None])
    return jax.nn.dot_product_attention(q, k, v, mask=mask[:, None])


@pytest.mark.parametrize(("form", "expected"), [(of_lengths, "causal"), (of_lengths_in_window, "window 33"), (of_tokens, "causal")])
def test_keys_that_are_hidden_beside_padding(form, expected):
    """Whether they may be left out depends on the tokens of each call."""
    q, k, v = jax.random.normal(jax.random.key(0), (3, 2, 256, 2, 16))
    steps = {name: fp8.jax.jit(jax.value_and_grad(lambda *args: jnp.square(form(*args)).mean(), (0, 1, 2)), recipe="none", attention=name)
             for name in ("written", "fused")}  # fmt: skip
    for lengths in ((256, 256), (256, 100), (1, 0)):
        tokens = jnp.arange(256) < jnp.array(lengths)[:, None]
        assert_same_bits(*(jax.tree.leaves(step(q, k, v, tokens)) for step in steps.values()))
        assert_same_bits(*(jax.tree.leaves(step(q, k, v, tokens[:, ::-1])) for step in steps.values()))
    (site,) = steps["fused"].report().attention
    assert (site.reason, site.mask) == ("", expected)
