# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of transformers and timm, tiny and with random weights, as their users make them: dropout is on where it is by default."""

import collections

import torch
import torch.nn.functional as F
from torch import nn


def tokens(generator, length=16):
    return torch.randint(0, 96, (4, length), generator=generator)


def predict_tokens(generator):
    ids = tokens(generator)
    return {"input_ids": ids, "labels": ids}


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=96, n_positions=16, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0,
                        use_cache=False)  # fmt: skip
    return GPT2LMHeadModel(config), predict_tokens


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(vocab_size=96, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                         num_key_value_heads=2, max_position_embeddings=16, use_cache=False)  # fmt: skip
    return LlamaForCausalLM(config), predict_tokens


def mixtral():
    from transformers import MixtralConfig, MixtralForCausalLM

    config = MixtralConfig(vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=4,
                           num_key_value_heads=2, num_local_experts=4, max_position_embeddings=16, use_cache=False)  # fmt: skip
    return MixtralForCausalLM(config), predict_tokens


def bert():
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(vocab_size=96, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
                        max_position_embeddings=16)  # fmt: skip
    mask = torch.ones(4, 16, dtype=torch.int64).tril(12)
    return BertForMaskedLM(config), lambda generator: {**predict_tokens(generator), "attention_mask": mask}


def t5():
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(vocab_size=96, d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=2, use_cache=False,
                      decoder_start_token_id=0)  # fmt: skip
    return T5ForConditionalGeneration(config), lambda generator: {"input_ids": tokens(generator), "labels": tokens(generator, 8)}


def vit():
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, image_size=16, patch_size=4,
                       num_labels=10)  # fmt: skip
    return ViTForImageClassification(config), lambda generator: {
        "pixel_values": torch.randn(4, 3, 16, 16, generator=generator), "labels": torch.randint(0, 10, (4,), generator=generator)}  # fmt: skip


Output = collections.namedtuple("Output", "loss")


class Classifier(nn.Module):
    """A network of timm and its loss."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x, y):
        return Output(F.cross_entropy(self.net(x), y))


def classify_images(generator):
    return {"x": torch.randn(4, 3, 32, 32, generator=generator), "y": torch.randint(0, 10, (4,), generator=generator)}


def mixer():
    from timm.models.mlp_mixer import MlpMixer

    return Classifier(MlpMixer(num_classes=10, img_size=32, patch_size=8, num_blocks=2, embed_dim=32)), classify_images


def convnext():
    from timm.models.convnext import ConvNeXt

    return Classifier(ConvNeXt(num_classes=10, depths=(1, 1, 1, 1), dims=(8, 16, 24, 32), patch_size=2)), classify_images
