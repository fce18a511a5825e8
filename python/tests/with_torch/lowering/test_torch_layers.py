# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers that PyTorch has one operation of its own for: recurrent ones, and a transformer's without gradients."""

import fp8.torch
import pytest
import torch
from torch_compare import normal


@pytest.mark.parametrize("kind", [torch.nn.LSTM, pytest.param(torch.nn.GRU, marks=pytest.mark.slow), pytest.param(torch.nn.RNN, marks=pytest.mark.slow)])
@torch._dynamo.config.patch(allow_rnn=True)  # Otherwise PyTorch runs them in eager mode.
def test_recurrent_layers(kind):
    """PyTorch's own operation for an LSTM (mkldnn's) has no form: it is captured as products."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = kind(4, 8, num_layers=2, bidirectional=True, batch_first=True)
    backend = fp8.torch.backend("none")
    results = []
    for forward in (torch.compile(lambda x: model(x), backend=backend), model):
        model.zero_grad()
        x = normal(3, 5, 4).requires_grad_()
        y, state = forward(x)
        sum(v.square().sum() for v in (y, *(state if isinstance(state, tuple) else [state]))).backward()
        with torch.no_grad():
            results.append([y, *state, x.grad, *(p.grad.clone() for p in model.parameters()), forward(x)[0]])
    # Sums in another order.
    torch.testing.assert_close(*results, rtol=1e-5, atol=1e-5)
    assert len(backend.graphs) == 2 and torch._C._get_mkldnn_enabled()


CAUSAL, PADDING = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1), torch.arange(5) >= torch.tensor([[5], [3]])
MASKS = {
    "none": {},
    "causal": {"src_mask": CAUSAL},
    "causal, -inf": {"src_mask": torch.zeros(5, 5).masked_fill(CAUSAL, -torch.inf)},
    "padding": {"src_key_padding_mask": PADDING},
    "both": {"src_mask": CAUSAL, "src_key_padding_mask": PADDING},
    # Two heads.
    "of each head": {"src_mask": torch.stack([CAUSAL, CAUSAL.T, CAUSAL.T, CAUSAL])},
    # PyTorch takes it for one that masks everything.
    "numbers": {"src_mask": normal(5, 5)},
}


@pytest.mark.parametrize(
    "mode, options", [(torch.no_grad, {}), pytest.param(torch.inference_mode, {"norm_first": True, "activation": "gelu"}, marks=pytest.mark.slow)]
)
def test_a_layer_of_a_transformer_without_gradients(mode, options):
    """PyTorch has one operation for all of it."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, **options).eval()
    compiled = torch.compile(layer, backend=fp8.torch.backend("none"))
    for name, masks in MASKS.items():
        with mode():
            found, expected = compiled(normal(2, 5, 16), **masks), layer(normal(2, 5, 16), **masks)
        # Sums in another order.
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5, equal_nan=True, msg=lambda text, n=name: f"{n}: {text}")


def test_a_stack_of_layers_of_a_transformer_without_gradients():
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2, enable_nested_tensor=False).eval()
    backend = fp8.torch.backend("current")
    with torch.no_grad():
        x = normal(2, 5, 16)
        found = torch.compile(model, backend=backend)(x, src_key_padding_mask=PADDING)
        expected = model(x, src_key_padding_mask=PADDING)
    # FP8 rounds operands to 1/16; normalized results are of size 1.
    torch.testing.assert_close(found, expected, rtol=0, atol=0.25)
    # Per layer four products with weights, and two of attention.
    assert repr(backend.report()) == "<fp8.Report: 12 products, 8 in FP8, 4 kept>"
