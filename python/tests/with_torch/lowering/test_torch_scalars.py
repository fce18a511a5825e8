# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors without dimensions, graphs without arguments, and floats of modules under dynamic=True, through torch.compile."""

import warnings

import fp8.torch
import pytest
import torch
from torch import nn
from torch_compare import check, in_halves, normal

FIRST, THREE = torch.tensor(0), torch.tensor(3.0)


def along_no_dimension(x):
    extremes = [x.amax(), x.amax(0), x.amin(-1, keepdim=True), x.argmin(), x.argmax(0), *x.max(0), *x.min(-1), *x.cummax(0)]
    norms = [x.log_softmax(0), x.softmax(-1), x.logsumexp(0), x.logcumsumexp(0), x.prod(0), x.std(0, correction=0).detach()]
    orders = [*x.sort(0), *x.sort(stable=True), *x.topk(1), x.argsort(), x.flip(0), x.cumsum(0), x.cumprod(0).detach(), (x > 0).any(0), (x > 0).all(0)]
    return [*extremes, *norms, *orders]


def by_index(x):
    three = THREE.to(x.dtype)
    reads = [x.gather(0, FIRST), x.gather(0, FIRST[None]), x.index_select(0, FIRST), x.index_select(0, FIRST[None])]
    writes = [x.index_copy(0, FIRST, three), x.index_add(0, FIRST, three), x.index_fill(0, FIRST, 3.0), x.scatter(0, FIRST, three)]
    sums = [x.scatter_add(0, FIRST, three), x.scatter(0, FIRST, 3.0)]
    return [*reads, *writes, *sums, *[x.scatter_reduce(0, FIRST, three, kind).detach() for kind in ("sum", "prod", "amax", "amin")]]


@pytest.mark.parametrize("function", [along_no_dimension, by_index])
def test_operations_along_a_dimension_take_tensors_without_dimensions(function):
    check(function, torch.tensor(1.25))


@pytest.mark.slow(one_of=2)
@pytest.mark.parametrize("function", [along_no_dimension, by_index])
def test_operations_along_a_dimension_in_halves(function):
    in_halves(function, torch.tensor(1.25))


def test_a_place_out_of_range_is_an_error_without_dimensions_too():
    torch._dynamo.reset()
    with pytest.raises(fp8.RunError, match="ndex|out of"):
        torch.compile(lambda x, i: x.index_copy(0, i, THREE), backend=fp8.torch.backend("none"))(torch.tensor(1.25), torch.tensor(1))


def test_graphs_without_arguments():
    check(lambda: [torch.arange(4) * 2, torch.ones(2, 2) @ torch.ones(2, 2), torch.rand(3), torch.randn(2) + torch.rand(2)])


class Block(nn.Module):
    """Modules that hold floats: eps, p, a slope, momentum."""

    def __init__(self):
        super().__init__()
        self.norm, self.dropout, self.act = nn.LayerNorm(8, eps=1e-3), nn.Dropout(0.3), nn.LeakyReLU(0.2)
        self.attention = nn.MultiheadAttention(8, 2, dropout=0.1, batch_first=True)
        self.batch = nn.BatchNorm1d(8, momentum=0.3)

    def forward(self, x):
        x = self.dropout(self.act(self.norm(x)))
        return self.batch(self.attention(x, x, x)[0].flatten(0, 1)) * x.shape[0]


def test_modules_that_hold_floats_under_dynamic():
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = Block()
    compiled = torch.compile(model, backend=fp8.torch.backend("none"), dynamic=True)
    for batch in (2, 3, 5):
        x = normal(batch, 4, 8)
        torch.manual_seed(batch)
        expected = model(x)
        torch.manual_seed(batch)
        # Sums in another order; batch norm divides by a deviation of about 0.1.
        torch.testing.assert_close(compiled(x), expected, rtol=1e-4, atol=1e-4)


def test_products_under_dynamic_are_in_fp8():
    torch._dynamo.reset()
    backend = fp8.torch.backend("current")
    compiled = torch.compile(Block(), backend=backend, dynamic=True)
    compiled(normal(2, 4, 8)).sum().backward()
    assert repr(backend.report()) == "<fp8.Report: 12 products, 6 in FP8, 6 kept>"


def test_a_float_that_changes_is_put_in_and_warned_of():
    torch._dynamo.reset()
    x = normal(3, 8)
    compiled = torch.compile(lambda x, scale: x * scale, backend=fp8.torch.backend("none"), dynamic=True)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for scale in (0.1, 0.2, 0.1, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9):
            assert torch.equal(compiled(x, scale), x * scale)
    messages = [str(w.message) for w in warned if issubclass(w.category, fp8.Warning)]
    assert len(messages) == 1 and "the graph was compiled 8 times because the number scale changed: give it as a tensor" in messages[0]
    assert "test_torch_scalars.py" in messages[0]
