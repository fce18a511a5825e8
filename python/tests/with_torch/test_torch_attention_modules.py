# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of PyTorch's own modules in training, `torch.nn.MultiheadAttention` and the layers of `torch.nn.Transformer`:
`attention="fused"` has the bits of "written" and the values of eager PyTorch, and the report tells what was fused.
"""

import fp8.torch
import pytest
import torch
from torch import nn

TOKENS, WIDTH, HEADS = 24, 32, 4
X = torch.randn(2, TOKENS, WIDTH, generator=torch.Generator().manual_seed(1))
WEIGHTS = torch.randn(2, TOKENS, WIDTH, generator=torch.Generator().manual_seed(3))
MEMORY = torch.randn(2, 18, WIDTH, generator=torch.Generator().manual_seed(2))
#: The second sequence has 17 tokens: as truths, and as numbers that are added.
PADDING = torch.arange(TOKENS) >= torch.tensor([[TOKENS], [17]])
MINUS_INF = torch.zeros(2, TOKENS).masked_fill(PADDING, -torch.inf)
CAUSAL = nn.Transformer.generate_square_subsequent_mask(TOKENS)


def attend(**options):
    return nn.MultiheadAttention(WIDTH, HEADS, **({"batch_first": True} | options))


def encode(dropout=0.0, **options):
    return nn.TransformerEncoderLayer(WIDTH, HEADS, 64, dropout, batch_first=True, **options)


def decode(dropout=0.0):
    return nn.TransformerDecoderLayer(WIDTH, HEADS, 64, dropout, batch_first=True)


#: A module, its call, and the mask of each of its attentions in the report.
MODULES = {
    "attention": (attend, lambda m, x: m(x, x, x, need_weights=False)[0], [""]),
    "attention, weights dropped": (attend, lambda m, x: m(x, x, x)[0], [""]),
    "attention, tokens first": (lambda: attend(batch_first=False), lambda m, x: m(x, x, x, need_weights=False)[0], [""]),
    "attention, hidden keys": (attend, lambda m, x: m(x, x, x, need_weights=False, attn_mask=torch.ones(TOKENS, TOKENS).triu(1).bool())[0], ["causal"]),
    "attention, one sequence": (attend, lambda m, x: m(x[0], x[0], x[0], need_weights=False)[0], [""]),
    "attention, zero key": (lambda: attend(bias=False, add_zero_attn=True), lambda m, x: m(x, x, x, need_weights=False)[0], [""]),
    "attention, learned key": (lambda: attend(add_bias_kv=True), lambda m, x: m(x, x, x, need_weights=False)[0], [""]),
    "attention, other widths": (lambda: attend(kdim=16, vdim=20), lambda m, x: m(x, MEMORY[..., :16], MEMORY[..., :20], need_weights=False)[0], [""]),
    "attention, dropout": (lambda: attend(dropout=0.1), lambda m, x: m(x, x, x, need_weights=False)[0], [""]),
    "encoder": (encode, lambda m, x: m(x), [""]),
    "encoder, norms first": (lambda: encode(norm_first=True), lambda m, x: m(x), [""]),
    "encoder, padding": (encode, lambda m, x: m(x, src_key_padding_mask=PADDING), [""]),
    "encoder, causal": (encode, lambda m, x: m(x, src_mask=CAUSAL, is_causal=True), ["causal"]),
    "encoder, causal and padding": (encode, lambda m, x: m(x, src_mask=CAUSAL, src_key_padding_mask=MINUS_INF, is_causal=True), [""]),
    "encoder, dropout": (lambda: encode(0.1), lambda m, x: m(x, src_key_padding_mask=PADDING), [""]),
    "decoder": (decode, lambda m, x: m(x, MEMORY, tgt_mask=CAUSAL, tgt_is_causal=True), ["causal", ""]),
    "decoder, dropout": (lambda: decode(0.1), lambda m, x: m(x, MEMORY, tgt_mask=CAUSAL, tgt_is_causal=True), ["causal", ""]),
}
FAST = ("attention", "decoder")


def differentiate(function, module, x):
    module.zero_grad()
    leaf = x.clone().requires_grad_()
    torch.manual_seed(5)  # of dropout
    y = function(leaf)
    (y * WEIGHTS).sum().backward()
    return [y.detach(), leaf.grad, *(p.grad for p in module.parameters() if p.grad is not None)]


@pytest.mark.parametrize("name", [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in MODULES])
@pytest.mark.parametrize("recipe", ["none", pytest.param("delayed", marks=pytest.mark.slow)])
def test_modules(name, recipe):
    make, call, masks = MODULES[name]
    torch.manual_seed(0)
    module, results = make().train(), {}
    for attention in ("written", "fused"):
        torch._dynamo.reset()
        backend = fp8.torch.backend(recipe, attention=attention)
        results[attention] = differentiate(torch.compile(lambda x: call(module, x), backend=backend), module, X)
    sites = [site for graph in backend.graphs for site in graph.report.attention]
    assert [(site.is_fused, site.reason, site.mask) for site in sites] == [(True, "", mask) for mask in masks]
    assert all(torch.equal(one, other) for one, other in zip(results["fused"], results["written"], strict=True))
    if recipe != "none" or "dropout" in name:
        return
    # Sums in another order than PyTorch's. The gradient of the keys' bias is zero but for roundings.
    for found, expected in zip(results["fused"], differentiate(lambda x: call(module, x), module, X), strict=True):
        assert (found - expected).abs().max() <= 1e-5 * max(expected.abs().max(), 1)


def test_weights_that_are_returned():
    """Probabilities that the program reads are written out."""
    torch._dynamo.reset()
    module, backend = attend(), fp8.torch.backend("none")
    leaf = X.clone().requires_grad_()
    y, weights = torch.compile(lambda x: module(x, x, x), backend=backend)(leaf)
    y.square().sum().backward()
    ((is_fused, reason),) = [(site.is_fused, site.reason) for graph in backend.graphs for site in graph.report.attention]
    assert not is_fused and "also read by" in reason
    expected, expected_weights = module(X, X, X)
    assert (y - expected).abs().max() <= 1e-5 and (weights - expected_weights).abs().max() <= 1e-6
