# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of models of transformers in training: `attention="fused"` has the bits of "written", and the report tells what was
fused and which keys are left out.
"""

import fp8.torch
import pytest
import torch

SMALL = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16,
         "vocab_size": 96, "max_position_embeddings": 256, "use_cache": False, "pad_token_id": 0}  # fmt: skip
GPT2 = {"n_embd": 32, "n_head": 2, "n_layer": 1, "vocab_size": 96, "n_positions": 256, "bos_token_id": 0, "eos_token_id": 0, "use_cache": False}
#: The keywords of configurations, and what the report says of their masks, with padding and without.
MODELS = {
    "Llama": (SMALL, "causal", 255 / 512),
    "GPT2": (GPT2, "causal", 255 / 512),
    "Mistral": (SMALL | {"sliding_window": 64}, "window 64", 1 - (64 * 256 - 63 * 32) / 256**2),
    "Bloom": ({"hidden_size": 32, "n_layer": 1, "n_head": 2, "vocab_size": 96, "use_cache": False}, "causal", 255 / 512),
    "Gemma2": (SMALL | {"sliding_window": 64}, "window 64", 1 - (64 * 256 - 63 * 32) / 256**2),
}
PADDED = [("Llama", (256, 100)), ("Mistral", (256, 256)), ("Mistral", (200, 256))]


@pytest.mark.parametrize(("name", "lengths"), [*((name, None) for name in MODELS), *PADDED], ids=str)
def test_keys_that_the_masks_of_models_hide(name, lengths):
    """In training, with the masks that transformers computes from the positions of tokens, and from the lengths of sequences."""
    import transformers

    config, mask, share = MODELS[name]
    torch.manual_seed(0)
    model = getattr(transformers, name + "Model")(getattr(transformers, name + "Config")(**config, attn_implementation="eager")).eval()
    x, weights, results = torch.randn(2, 256, 32), torch.randn(2, 256, 32), {}
    padding = {"attention_mask": (torch.arange(256) < torch.tensor(lengths)[:, None]).long()} if lengths else {}

    def run(function):
        model.zero_grad()
        leaf = x.clone().requires_grad_()
        y = function(inputs_embeds=leaf, **padding).last_hidden_state
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
        assert (found - expected).abs().max() <= 1e-5 * expected.abs().max()


SIZES = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32, "vocab_size": 96}
DECODER = SIZES | {"use_cache": False, "pad_token_id": 0}
GROUPED = DECODER | {"num_key_value_heads": 1}
#: A model, its configuration, and for each of its attentions the mask in the report, or why it stays written out. The second
#: sequence is padded on the right.
ATTENTIONS = {
    "Bert": (SIZES, [""]),
    "Roberta": (SIZES, [""]),
    "DistilBert": ({"dim": 32, "n_layers": 1, "n_heads": 2, "hidden_dim": 32, "vocab_size": 96}, [""]),
    "ViT": (SIZES | {"image_size": 32, "patch_size": 4}, [""]),
    # Biases of windows are gathered for pairs of tokens in one dimension, and the second layer's windows have masks.
    "Swin": ({"image_size": 32, "patch_size": 2, "window_size": 4, "embed_dim": 32, "depths": [2], "num_heads": [2], "drop_path_rate": 0.0}, ["", ""]),
    "GPT2": (GPT2, ["causal"]),
    "GPTJ": ({"n_embd": 32, "n_head": 2, "n_layer": 1, "rotary_dim": 8, "vocab_size": 96, "use_cache": False}, ["causal"]),
    "GPTNeoX": (DECODER, ["causal"]),
    "OPT": (DECODER | {"word_embed_proj_dim": 32, "ffn_dim": 32}, ["causal"]),
    "Mpt": ({"d_model": 32, "n_heads": 2, "n_layers": 1, "vocab_size": 96, "use_cache": False}, ["causal"]),
    "Bloom": ({"hidden_size": 32, "n_layer": 1, "n_head": 2, "vocab_size": 96, "use_cache": False}, ["causal"]),
    "Falcon": (DECODER | {"multi_query": True}, ["causal"]),
    "Phi3": (GROUPED, ["causal"]),
    "Qwen3": (GROUPED | {"head_dim": 16}, ["causal"]),
    "Cohere": (GROUPED, ["causal"]),
    "Starcoder2": (GROUPED | {"sliding_window": 32}, ["window 32"]),
    "Gemma2": (GROUPED | {"num_hidden_layers": 2, "head_dim": 16, "sliding_window": 32}, ["window 32", "causal"]),
    "DeepseekV3": (DECODER | {"num_key_value_heads": 2, "moe_intermediate_size": 32, "q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8,
                              "v_head_dim": 16, "qk_nope_head_dim": 16, "first_k_dense_replace": 1}, ["causal"]),
    "T5": ({"d_model": 32, "d_kv": 16, "d_ff": 32, "num_layers": 1, "num_heads": 2, "vocab_size": 96, "use_cache": False}, ["", "causal", ""]),
    "Bart": ({"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 32,
              "decoder_ffn_dim": 32, "vocab_size": 96, "use_cache": False}, ["", "causal", ""]),
    # Its bias is looked up for each pair of tokens, before batches and heads are told apart.
    "DebertaV2": (SIZES | {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]}, ["its scores have another shape than its probabilities"]),
}  # fmt: skip


@pytest.mark.parametrize("name", [name if name in ("Bert", "Phi3") else pytest.param(name, marks=pytest.mark.slow) for name in ATTENTIONS])
def test_models(name):
    import transformers

    config, expected = ATTENTIONS[name]
    torch.manual_seed(0)
    model = getattr(transformers, name + "Model")(getattr(transformers, name + "Config")(**config)).train()
    tokens = torch.randint(1, 90, (2, 96))
    inputs = {"input_ids": tokens, "attention_mask": (torch.arange(96) < torch.tensor([[96], [60]])).long()}
    if "image_size" in config:
        inputs = {"pixel_values": torch.randn(2, 3, 32, 32)}
    if model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = tokens
    results = {}
    for attention in ("written", "fused"):
        torch._dynamo.reset()
        model.zero_grad()
        backend = fp8.torch.backend("none", attention=attention)
        torch.manual_seed(5)  # of dropout
        y = torch.compile(model, backend=backend)(**inputs).last_hidden_state
        y.square().sum().backward()
        results[attention] = [y.detach(), *(p.grad for p in model.parameters() if p.grad is not None)]
    (graph,) = backend.graphs
    assert [site.mask if site.is_fused else site.reason for site in graph.report.attention] == expected
    assert all(torch.equal(one, other) for one, other in zip(results["fused"], results["written"], strict=True))
