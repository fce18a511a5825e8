# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention as users of PyTorch write it, each from queries, keys and values [batch, heads, tokens, width] to the output.

`FUSED` has the forms that become one operation, `WRITTEN` those that do not, with the reason that the report gives. A form
may have parameters of its own, which get gradients.
"""

import math

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


def scores_of(q, k):
    return q @ k.transpose(-2, -1)


def causal(q, k, diagonal=0):
    return torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).tril(diagonal)


def distances(q, k):
    return torch.arange(q.shape[-2])[:, None] - torch.arange(k.shape[-2])


def plain(q, k, v):
    return F.softmax(scores_of(q, k) / math.sqrt(q.shape[-1]), dim=-1) @ v


# Masks


def causal_where(q, k, v):
    s = scores_of(q, k) * q.shape[-1] ** -0.5
    return torch.where(causal(q, k), s, -torch.inf).softmax(-1) @ v


def causal_masked_fill(q, k, v):
    s = scores_of(q, k) / math.sqrt(q.shape[-1])
    return s.masked_fill(~causal(q, k), float("-inf")).softmax(-1) @ v


def causal_finfo(q, k, v):
    s = scores_of(q, k) * 0.25
    return s.masked_fill(causal(q, k).logical_not(), torch.finfo(s.dtype).min).softmax(-1) @ v


def causal_added(q, k, v):
    s = scores_of(q, k) * 0.25
    mask = torch.full(s.shape[-2:], -torch.inf, dtype=s.dtype).triu(1)
    return (s + mask).softmax(-1) @ v


def causal_mask_first(q, k, v):
    """The mask is the left operand of the sum; of the lowest number."""
    s = scores_of(q, k) * 0.25
    mask = torch.zeros(s.shape[-2:], dtype=s.dtype).masked_fill(~causal(q, k), torch.finfo(s.dtype).min)
    return torch.add(mask, s).softmax(-1) @ v


def causal_by_comparison(q, k, v):
    s = scores_of(q, k) * 0.25
    return s.masked_fill(distances(q, k) < 0, -1e9 if s.dtype != torch.float16 else -1e4).softmax(-1) @ v


def padded(q, k, v):
    lengths = torch.arange(q.shape[0]) + 3
    seen = torch.arange(k.shape[-2]) < lengths[:, None, None, None]
    return scores_of(q, k).mul(0.25).masked_fill(~seen, torch.finfo(q.dtype).min).softmax(-1) @ v


def packed(q, k, v):
    segments = torch.arange(k.shape[-2]) // 4
    seen = (segments[:, None] == segments) & causal(q, k)
    return scores_of(q, k).mul(0.25).masked_fill(~seen, -torch.inf).softmax(-1) @ v


def window(q, k, v):
    distance = distances(q, k)
    return torch.where((distance >= 0) & (distance < 4), scores_of(q, k) * 0.25, -torch.inf).softmax(-1) @ v


def prefix(q, k, v):
    seen = causal(q, k) | (torch.arange(k.shape[-2]) < 3)
    return torch.where(seen, scores_of(q, k) * 0.25, -torch.inf).softmax(-1) @ v


# Scales


def scaled_queries(q, k, v):
    return (scores_of(q * 0.25, k)).softmax(-1) @ v


def scaled_keys(q, k, v):
    return (scores_of(q, k / 4)).softmax(-1) @ v


def scaled_on_both(q, k, v):
    scale = math.sqrt(0.25)
    return (scores_of(q * scale, k * scale)).softmax(-1) @ v


def by_baddbmm(q, k, v):
    b, h, t, d = q.shape
    s = torch.baddbmm(q.new_zeros(b * h, t, k.shape[-2]), q.flatten(0, 1), k.flatten(0, 1).transpose(1, 2), beta=0, alpha=0.25)
    return torch.bmm(s.softmax(-1), v.flatten(0, 1)).view(b, h, t, d)


def by_bmm(q, k, v):
    """Batches and heads are one dimension, also in the softmax and the mask."""
    b, h, t, d = q.shape
    s = torch.bmm(q.flatten(0, 1) * 0.5, k.flatten(0, 1).transpose(1, 2))
    s = s.masked_fill(~causal(q, k), torch.finfo(s.dtype).min)
    return torch.bmm(s.float().softmax(-1).to(v.dtype), v.flatten(0, 1)).view(b, h, t, d)


def alibi_by_baddbmm(q, k, v):
    """As BLOOM has it: heads are told apart behind the bias."""
    b, h, t, d = q.shape
    slopes = (torch.arange(h)[:, None] * -0.125 * torch.arange(k.shape[-2])).to(q.dtype).repeat(b, 1)[:, None]
    s = slopes.baddbmm(q.flatten(0, 1), k.flatten(0, 1).transpose(1, 2), beta=1.0, alpha=0.25).view(b, h, t, -1)
    s = s.masked_fill(~causal(q, k), torch.finfo(s.dtype).min)
    return torch.bmm(s.softmax(-1).flatten(0, 1), v.flatten(0, 1)).view(b, h, t, d)


# Softmaxes


def in_f32(q, k, v):
    return F.softmax(scores_of(q, k) * 0.25, dim=-1, dtype=torch.float32).to(q.dtype) @ v


def by_logarithm(q, k, v):
    return F.log_softmax(scores_of(q, k) * 0.25, dim=-1).exp() @ v


def by_hand(q, k, v):
    s = scores_of(q, k).float() * 0.25
    e = torch.exp(s - s.amax(-1, keepdim=True).detach())
    return (e / e.sum(-1, keepdim=True)).to(q.dtype) @ v


def by_maximum(q, k, v):
    """The maximum has a gradient, as in the models of gpt-oss."""
    s = scores_of(q, k) * 0.25
    return (s - s.max(dim=-1, keepdim=True).values).softmax(-1) @ v


# Dropout


def dropout(q, k, v):
    return F.dropout(F.softmax(scores_of(q, k) * 0.25, dim=-1), 0.25, training=True) @ v


def sdpa_dropout(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, dropout_p=0.25)


# Biases and functions of scores


def alibi(q, k, v):
    slopes = 2.0 ** -(1.0 + torch.arange(q.shape[1]))
    s = scores_of(q, k) * 0.25 - (slopes[:, None, None] * distances(q, k)).to(q.dtype)
    return s.masked_fill(~causal(q, k), -torch.inf).softmax(-1) @ v


def softcap(q, k, v):
    s = torch.tanh(scores_of(q, k).float() / 5.0) * 5.0
    return s.masked_fill(~causal(q, k), -torch.inf).softmax(-1).to(q.dtype) @ v


def biased(q, k, v, bias):
    return (scores_of(q, k) * 0.25 + bias).softmax(-1) @ v


def shared_bias(q, k, v, bias):
    """One bias for all batches and heads."""
    return (scores_of(q, k) * 0.25 + bias).softmax(-1) @ v


def biased_causal(q, k, v, bias):
    return (scores_of(q, k) * 0.25 + bias).masked_fill(~causal(q, k), torch.finfo(q.dtype).min).softmax(-1) @ v


def sdpa_bias(q, k, v, bias):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)


def relative(q, k, v, table):
    """The bias of T5: a learned number for each head and distance."""
    buckets = torch.clamp(distances(q, k) + 8, 0, 15)
    return (scores_of(q, k) + F.embedding(buckets, table).permute(2, 0, 1)[None]).softmax(-1) @ v


# Sinks


def sink(q, k, v, logits):
    """A learned score for each head that takes part in the softmax and has no value."""
    s = scores_of(q, k) * 0.25
    s = s.masked_fill(~causal(q, k), torch.finfo(s.dtype).min)
    p = torch.cat([s, logits.reshape(1, -1, 1, 1).expand(*s.shape[:-1], 1)], dim=-1).softmax(-1)
    return p[..., :-1] @ v


def sink_less_maximum(q, k, v, logits):
    """As the models of gpt-oss have it: the maximum, whose gradient goes to one element, is subtracted first."""
    s = scores_of(q, k) * 0.25
    s = torch.cat([s, logits.reshape(1, -1, 1, 1).expand(*s.shape[:-1], -1)], dim=-1)
    s = s - s.max(dim=-1, keepdim=True).values
    return F.softmax(s, dim=-1, dtype=s.dtype)[..., :-1] @ v


def sink_by_hand(q, k, v, logits):
    s, last = scores_of(q, k).float() * 0.25, logits[:, None, None].float()
    top = torch.maximum(s.amax(-1, keepdim=True), last).detach()
    e = torch.exp(s - top)
    return (e / (e.sum(-1, keepdim=True) + torch.exp(last - top))).to(q.dtype) @ v


def sink_by_logsumexp(q, k, v, logits):
    s = scores_of(q, k) * 0.25
    all_scores = torch.logaddexp(s.logsumexp(-1, keepdim=True), logits[:, None, None])
    return torch.exp(s - all_scores) @ v


# Heads


def repeat_interleave(q, k, v):
    k, v = (x[:, : q.shape[1] // 2].repeat_interleave(2, dim=1) for x in (k, v))
    return causal_where(q, k, v)


def expanded(q, k, v):
    """As transformers repeats heads."""
    b, h, t, d = k.shape
    k, v = (x[:, : h // 2, None].expand(b, h // 2, 2, t, d).reshape(b, h, t, d) for x in (k, v))
    return causal_where(q, k, v)


def sdpa_grouped(q, k, v):
    return F.scaled_dot_product_attention(q, k[:, : q.shape[1] // 2], v[:, : q.shape[1] // 2], is_causal=True, enable_gqa=True)


def one_key_head(q, k, v):
    return causal_where(q, k[:, :1].expand(-1, q.shape[1], -1, -1), v[:, :1].expand(-1, q.shape[1], -1, -1))


def by_einsum(q, k, v):
    p = (torch.einsum("bhqd,bhkd->bhqk", q, k) * 0.25).softmax(-1)
    return torch.einsum("bhqk,bhkd->bhqd", p, v)


def by_vmap(q, k, v):
    one = lambda q, k, v: (scores_of(q, k) * 0.25).softmax(-1) @ v
    return torch.vmap(torch.vmap(one))(q, k, v)


def cross(q, k, v):
    return plain(q[:, :, :5], k, v)


# Functions of PyTorch


def sdpa(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


def sdpa_causal(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3)


def sdpa_masked(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=causal(q, k, 1))


def checkpointed(q, k, v):
    return checkpoint(causal_where, q, k, v, use_reentrant=False)


# Code that only resembles it


def sigmoid(q, k, v):
    return scores_of(q, k).sigmoid() @ v


def linear(q, k, v):
    return scores_of(q, k) @ v


def permuted_keys(q, k, v):
    return scores_of(q, k).softmax(-1).flip(-1) @ v


def over_queries(q, k, v):
    return scores_of(q, k).softmax(-2) @ v


def over_heads(q, k, v):
    return scores_of(q, k).softmax(1) @ v


MASKED = [causal_where, causal_masked_fill, causal_finfo, causal_added, causal_mask_first, causal_by_comparison]
FUSED = [
    *(plain, *MASKED, padded, packed, window, prefix),
    *(scaled_queries, scaled_keys, scaled_on_both, by_baddbmm, by_bmm, alibi_by_baddbmm),
    *(in_f32, by_logarithm, by_hand, by_maximum, dropout, sdpa_dropout),
    *(alibi, softcap, biased, shared_bias, biased_causal, sdpa_bias, relative),
    *(sink, sink_less_maximum, sink_by_hand, sink_by_logsumexp),
    *(repeat_interleave, expanded, sdpa_grouped, one_key_head, by_einsum, by_vmap, cross),
    *(sdpa, sdpa_causal, sdpa_masked, checkpointed),
]

# The shape of a bias or sink with a gradient, from the numbers of heads and tokens.
BIASES = {
    **dict.fromkeys((biased, biased_causal, sdpa_bias), lambda heads, tokens: (heads, tokens, tokens)),
    shared_bias: lambda heads, tokens: (tokens, tokens),
    relative: lambda heads, tokens: (16, heads),
    **dict.fromkeys((sink, sink_less_maximum, sink_by_hand, sink_by_logsumexp), lambda heads, tokens: (heads,)),
}

# The sum of the keys alone, without the sink, is none of a kernel's numbers.
WRITTEN_ON_GPUS = {sink_by_logsumexp: "a statistic of its backward pass reduces its rows to another number than a kernel does"}
WRITTEN = {
    sigmoid: "no softmax is between its matmuls",
    linear: "",  # of no interest to the report
    permuted_keys: "the keys of its probabilities are not in the order of those of its scores",
    **dict.fromkeys((over_queries, over_heads), "its softmax is along another dimension than the one that its second matmul sums over"),
}
