# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random numbers through torch.compile: those that eager PyTorch draws after the same seed."""

import fp8.torch
import pytest
import torch
import torch.nn.functional as F
from fp8.torch import _capture
from torch.distributions import Gumbel, Normal, Uniform
from torch.fx.experimental.proxy_tensor import make_fx
from torch_compare import check, in_halves, normal


def in_place(x):
    """Only the sizes and strides of these tensors matter."""
    normals = [torch.empty(5, 7).normal_(), torch.empty(5, 7).normal_(1.0, 2.0), torch.empty(3).normal_(), torch.empty_like(x.t()).normal_().t()]
    others = [torch.empty_like(x).uniform_(-1, 1), torch.empty(5, 7).exponential_(2.0), torch.empty_like(x).cauchy_(), torch.empty_like(x).log_normal_()]
    return [x + n for n in (normals[0], normals[1], normals[3], *others)] + [normals[2], torch.empty_like(x).geometric_(0.3), torch.empty(0).normal_()]


def distributions(mean, deviation):
    deviation = deviation.abs() + 0.1
    of_tensors = [torch.normal(mean.detach(), deviation.detach()), torch.normal(mean.detach(), 1.5), torch.normal(0.5, deviation.detach())]
    samples = [Normal(mean, deviation).rsample((3,)), Uniform(mean, mean + 1).rsample(), Gumbel(mean, 1.0).rsample()]
    return [*of_tensors, *samples, torch.bernoulli(mean.detach().sigmoid())]


def gumbels(x):
    return F.gumbel_softmax(x, 0.5), F.gumbel_softmax(x, 0.5, hard=True, dim=0)


@pytest.mark.parametrize("function", [in_place, gumbels])
def test_drawn_numbers(function):
    check(function, normal(5, 7))


def test_distributions():
    check(distributions, normal(5, 7), normal(5, 7, seed=1))


@pytest.mark.slow(one_of=2)
def test_gumbel_softmax_in_halves():
    in_halves(gumbels, normal(5, 7))


def test_numbers_that_depend_on_a_tensor_are_refused():
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as raised:
        torch.compile(lambda x: torch.multinomial(x, 3), backend=fp8.torch.backend("none"))(torch.ones(5, 7))
    error = raised.value.inner_exception
    assert isinstance(error, fp8.UnsupportedError) and error.location.file == __file__
    assert error.message == "'aten.multinomial.default' draws random numbers that depend on a tensor"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_kernel_that_draws_and_multiplies(dtype):
    """Dropout as eager PyTorch computes it on a GPU: the mask is drawn outside, by the same kernel; the product is rounded once."""
    x = torch.randn(16, 8, generator=torch.Generator().manual_seed(0)).to(dtype).T
    graph = make_fx(lambda x: torch.native_dropout(x, 0.25, True), tracing_mode="fake")(x)
    draws = _capture.draw_outside(graph)
    torch.manual_seed(1)
    found, mask = graph(x, *[draw() for draw in draws])
    torch.manual_seed(1)
    eager, eager_mask = torch.native_dropout(x, 0.25, True)
    assert torch.equal(mask, eager_mask) and 0 < mask.sum() < mask.numel()
    # That of the CPU rounds the factor to bf16 first.
    assert torch.equal(found, (x.float() * mask * (1 / 0.75)).to(dtype)) and (dtype == torch.bfloat16 or torch.equal(found, eager))
