# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention as users of PyTorch write it, forward and backward: `attention="fused"` has the bits of "written" and the values of
eager PyTorch, and the report tells what was fused.
"""

import math
import re

import fp8.torch
import pytest
import torch
import torch.nn.functional as F
import torch_attention

TOKENS, HEADS, WIDTH = 32, 4, 32


def parameters(form, dtype, tokens, width=WIDTH, batch=2):
    random = torch.Generator().manual_seed(1)
    values = {name: torch.randn(width, width, generator=random) * 0.3 for name in "qkvo"}
    if form in torch_attention.BIASES:
        values["bias"] = torch.randn(*torch_attention.BIASES[form](HEADS, tokens), generator=random)
    x = torch.randn(batch, tokens, width, generator=random)
    return {name: value.to(dtype) for name, value in values.items()}, x.to(dtype)


def make_layer(form):
    """A layer of attention between products of weights: the mean square of its output."""

    def layer(params, x):
        q, k, v = ((x @ params[name]).unflatten(-1, (HEADS, -1)).transpose(1, 2) for name in "qkv")
        y = form(q, k, v, *([params["bias"]] if "bias" in params else []))
        return (y.transpose(1, 2).flatten(2) @ params["o"]).float().square().mean()

    return layer


def differentiate(layer, params, x):
    """The result and all gradients."""
    params, x = {name: value.clone().requires_grad_() for name, value in params.items()}, x.clone().requires_grad_()
    torch.manual_seed(5)  # of dropout
    result = layer(params, x)
    result.backward()
    return [result.detach(), x.grad, *(value.grad for value in params.values())]


def compile(form, params, x, attention, **options):
    """The results of a step, and what became of attention."""
    torch._dynamo.reset()
    backend = fp8.torch.backend("none", attention=attention, **options)
    results = differentiate(torch.compile(make_layer(form), backend=backend), params, x)
    return results, [site for graph in backend.graphs for site in graph.report.attention]


def check(form, dtype, tokens, batch=2):
    """Returns what became of attention in the program whose attention is to be fused."""
    params, x = parameters(form, dtype, tokens, batch=batch)
    written, _ = compile(form, params, x, "written")
    fused, sites = compile(form, params, x, "fused")
    assert all(torch.equal(one, other) for one, other in zip(fused, written, strict=True))
    if dtype == torch.float32:  # but for sums in another order
        for found, expected in zip(fused, differentiate(make_layer(form), params, x), strict=True):
            assert (found - expected).abs().max() <= 1e-5 * expected.abs().max()
    return sites


QUICK = [torch_attention.causal_masked_fill, torch_attention.by_einsum, torch_attention.sink, torch_attention.sdpa_bias, torch_attention.by_maximum]
FUSED = [form if form in QUICK else pytest.param(form, marks=pytest.mark.slow) for form in torch_attention.FUSED]
name_of = lambda value: getattr(value, "__name__", str(value).removeprefix("torch."))


@pytest.mark.parametrize(("dtype", "tokens", "batch"), [(torch.float32, 17, 2), pytest.param(torch.bfloat16, 100, 1, marks=pytest.mark.slow)], ids=name_of)
@pytest.mark.parametrize("form", FUSED, ids=name_of)
def test_fused(form, dtype, tokens, batch):
    (site,) = check(form, dtype, tokens, batch)
    assert site.is_fused, site.reason
    assert site.score_bytes > 0


def tiled(q, k, v):
    """Head h reads the key h mod 2."""
    return torch_attention.causal_where(q, k[:, :2].repeat(1, q.shape[1] // 2, 1, 1), v[:, :2].repeat(1, q.shape[1] // 2, 1, 1))


GROUPED = [torch_attention.repeat_interleave, torch_attention.expanded, torch_attention.sdpa_grouped, torch_attention.one_key_head, tiled]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=name_of)
@pytest.mark.parametrize("form", GROUPED, ids=name_of)
def test_heads_of_a_group_read_one_key(form, dtype):
    """No tensor of keys or values is repeated for them, forward and backward."""
    params, x = parameters(form, dtype, 17, batch=2)
    torch._dynamo.reset()
    backend = fp8.torch.backend("none")
    differentiate(torch.compile(make_layer(form), backend=backend), params, x)
    found = re.findall(r"fp8\.attention(?:_grad)? ins\([^:]*: ([^)]*)\)", backend.graphs[0].ir("fusion"))
    assert len(found) == 2
    count = lambda tensor: math.prod(int(size) for size in re.findall(r"(\d+)x", tensor))
    for query, key, value in (map(count, operands.split(", ")[:3]) for operands in found):
        assert key == value == query // (4 if form is torch_attention.one_key_head else 2)


@pytest.mark.slow
@pytest.mark.parametrize("form", torch_attention.FUSED, ids=name_of)
def test_fused_in_kernels(form):
    """On sm_90a, by the emulator with all checks: as near to f32 as where attention is written out."""
    params, x = parameters(form, torch.bfloat16, 32, width=64)
    exact = differentiate(make_layer(form), {name: value.float() for name, value in params.items()}, x.float())
    errors = {}
    for attention in ("written", "fused"):
        results, sites = compile(form, params, x, attention, target="sm_90a", device="emulator")
        errors[attention] = sum((value.float() - right).square().sum().item() for value, right in zip(results, exact, strict=True))
    (site,) = sites
    assert site.reason == torch_attention.WRITTEN_ON_GPUS.get(form, "")
    # Roundings to bf16 at other places: at most 1.5 times the error, whose square this is.
    assert 0 < errors["fused"] <= 1.5**2 * errors["written"]


@pytest.mark.parametrize(("form", "reason"), torch_attention.WRITTEN.items(), ids=name_of)
def test_written_with_a_reason(form, reason):
    sites = check(form, torch.float32, 8)
    assert bool(sites) == bool(reason)
    assert not any(site.is_fused for site in sites)
    assert not sites or sites[0].reason == reason


class Layer(torch.nn.Module):
    """The attention of transformers' gpt-oss, in its eager form: scores and sinks are concatenated."""

    def __init__(self, tokens=TOKENS):
        from transformers.models.gpt_oss.modeling_gpt_oss import GptOssAttention, GptOssConfig, GptOssRotaryEmbedding

        super().__init__()
        self.tokens = tokens
        config = GptOssConfig(hidden_size=64, num_attention_heads=4, num_key_value_heads=2, head_dim=16, num_hidden_layers=2,
                              intermediate_size=32, vocab_size=96, num_local_experts=2, max_position_embeddings=256)  # fmt: skip
        config._attn_implementation = "eager"
        self.attention, self.positions = GptOssAttention(config, 1), GptOssRotaryEmbedding(config)
        with torch.no_grad():
            self.attention.sinks.normal_()

    def forward(self, x):
        places = torch.arange(self.tokens)
        mask = torch.where(places[:, None] >= places, 0.0, torch.finfo(x.dtype).min).to(x.dtype)
        return self.attention(x, self.positions(x, places[None]), mask[None, None])[0]


@pytest.mark.parametrize(("dtype", "options"), [(torch.float32, {}), (torch.bfloat16, {}), (torch.bfloat16, {"target": "sm_90a", "device": "emulator"})])
def test_gpt_oss_in_inference(dtype, options):
    torch.manual_seed(0)
    torch._dynamo.reset()
    layer, x = Layer().to(dtype), torch.randn(2, TOKENS, 64, dtype=dtype)
    with torch.no_grad():
        results = {}
        for attention in ("written", "fused"):
            torch._dynamo.reset()
            backend = fp8.torch.backend("none", attention=attention, **options)
            results[attention] = torch.compile(layer, backend=backend)(x)
        expected = layer(x)
    (site,) = backend.graphs[0].report.attention
    assert site.is_fused, site.reason
    assert site.mask == "causal"
    if not options:
        assert torch.equal(results["fused"], results["written"])
    # Roundings to bf16 of probabilities and products, of 2^-9 each; in f32 sums in another order.
    size, rounding = expected.abs().max().item(), 2**-20 if dtype == torch.float32 else 2**-7
    assert (results["fused"].double() - expected.double()).abs().max().item() <= rounding * size


def test_gpt_oss_in_training():
    """The maximum that its code subtracts has a gradient, and so have the sinks. Hidden keys are left out, from 256 tokens on."""
    torch.manual_seed(0)
    layer, x, weights, results = Layer(256), torch.randn(1, 256, 64), torch.randn(1, 256, 64), {}

    def run(function):
        layer.zero_grad()
        leaf = x.clone().requires_grad_()
        y = function(leaf)
        (y * weights).sum().backward()
        return [y.detach(), leaf.grad, *(p.grad for p in layer.parameters())]

    for attention in ("written", "fused"):
        torch._dynamo.reset()
        backend = fp8.torch.backend("none", attention=attention)
        results[attention] = run(torch.compile(layer, backend=backend))
    (site,) = backend.graphs[0].report.attention
    assert (site.reason, site.mask, site.keys_skipped) == ("", "causal", 255 / 512)
    assert all(torch.equal(one, other) for one, other in zip(results["fused"], results["written"], strict=True))
    for found, expected in zip(results["fused"], run(layer), strict=True):
        assert (found - expected).abs().max() <= 1e-5 * expected.abs().max()


@pytest.mark.parametrize("number", [torch.finfo(torch.float32).min, -torch.inf], ids=["lowest", "infinite"])
def test_a_mask_in_a_bias_of_sdpa(number):
    """As T5's decoder has it: whether a row sees nothing is asked of the sum of scores, bias and mask, too."""

    def attend(q, k, v, bias):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=torch.where(torch_attention.causal(q, k), bias, number))

    q, k, v = torch.randn(3, 2, 2, 256, 16, generator=torch.Generator().manual_seed(0))
    bias, results = torch.randn(2, 256, 256, generator=torch.Generator().manual_seed(1)), {}
    for attention in ("written", "fused"):
        torch._dynamo.reset()
        backend = fp8.torch.backend("none", attention=attention)
        leaves = [x.clone().requires_grad_() for x in (q, k, v, bias)]
        torch.compile(attend, backend=backend)(*leaves).square().sum().backward()
        results[attention] = [leaf.grad for leaf in leaves]
    assert all(torch.equal(one, other) for one, other in zip(results["fused"], results["written"], strict=True))
    assert [site.mask for site in backend.graphs[0].report.attention] == ["causal"]
