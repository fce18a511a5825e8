# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of models of transformers: one operation, with the values of eager PyTorch."""

import fp8.torch
import pytest
import torch

TOKENS = 32


class Layer(torch.nn.Module):
    """The attention of transformers' gpt-oss, in its eager form: scores and sinks are concatenated."""

    def __init__(self):
        from transformers.models.gpt_oss.modeling_gpt_oss import GptOssAttention, GptOssConfig, GptOssRotaryEmbedding

        super().__init__()
        config = GptOssConfig(hidden_size=64, num_attention_heads=4, num_key_value_heads=2, head_dim=16, num_hidden_layers=2,
                              intermediate_size=32, vocab_size=96, num_local_experts=2, max_position_embeddings=64)  # fmt: skip
        config._attn_implementation = "eager"
        self.attention, self.positions = GptOssAttention(config, 1), GptOssRotaryEmbedding(config)
        with torch.no_grad():
            self.attention.sinks.normal_()

    def forward(self, x):
        places = torch.arange(TOKENS)
        mask = torch.where(places[:, None] >= places, 0.0, torch.finfo(x.dtype).min).to(x.dtype)
        return self.attention(x, self.positions(x, places[None]), mask[None, None])[0]


@pytest.mark.parametrize(("dtype", "options"), [(torch.float32, {}), (torch.bfloat16, {}), (torch.bfloat16, {"target": "sm_90a", "device": "emulator"})])
def test_sinks(dtype, options):
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


SMALL = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16,
         "vocab_size": 96, "max_position_embeddings": 256, "use_cache": False, "pad_token_id": 0}  # fmt: skip
GPT2 = {"n_embd": 32, "n_head": 2, "n_layer": 1, "vocab_size": 96, "n_positions": 256, "bos_token_id": 0, "eos_token_id": 0, "use_cache": False}
#: The keywords of configurations, and what the report says of their masks.
MODELS = {
    "Llama": (SMALL, "causal", 255 / 512),
    "GPT2": (GPT2, "causal", 255 / 512),
    "Mistral": (SMALL | {"sliding_window": 64}, "window 64", 1 - (64 * 256 - 63 * 32) / 256**2),
    "Gemma2": (SMALL | {"sliding_window": 64}, "window 64", 1 - (64 * 256 - 63 * 32) / 256**2),
}


@pytest.mark.parametrize("name", MODELS)
def test_keys_that_the_masks_of_models_hide(name):
    """Forward and backward in training, with the masks that transformers computes from the positions of tokens."""
    import transformers

    config, mask, share = MODELS[name]
    torch.manual_seed(0)
    model = getattr(transformers, name + "Model")(getattr(transformers, name + "Config")(**config, attn_implementation="eager")).eval()
    x, weights, results = torch.randn(2, 256, 32), torch.randn(2, 256, 32), {}

    def run(function):
        model.zero_grad()
        leaf = x.clone().requires_grad_()
        y = function(inputs_embeds=leaf).last_hidden_state
        (y * weights).sum().backward()
        return [y.detach(), leaf.grad, *(p.grad for p in model.parameters() if p.grad is not None)]

    for attention in ("written", "fused"):
        torch._dynamo.reset()
        backend = fp8.torch.backend("none", attention=attention)
        results[attention] = run(torch.compile(model, backend=backend))
    sites = [site for graph in backend.graphs for site in graph.report.attention]
    assert sites and all(site.is_fused and (site.mask, site.keys_skipped) == (mask, share) for site in sites)
    assert all(torch.equal(one, other) for one, other in zip(results["fused"], results["written"], strict=True))
    # Sums in another order than PyTorch's.
    for found, expected in zip(results["fused"], run(model), strict=True):
        assert (found - expected).abs().max() <= 1e-4 * expected.abs().max()
