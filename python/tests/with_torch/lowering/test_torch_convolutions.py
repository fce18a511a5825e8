# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions through torch.compile: of one channel per group, transposed, in three dimensions, and those that are matrix products."""

import fp8.torch
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch_compare import check, in_halves, normal

CONVOLUTIONS = {
    "transposed, 1": (lambda x, w: F.conv_transpose1d(x, w, None, 2, 1, groups=4), normal(2, 4, 9), normal(4, 1, 3)),
    "transposed, 2": (lambda x, w, b: F.conv_transpose2d(x, w, b, 2, 1, 1, 4), normal(2, 4, 5, 6), normal(4, 1, 3, 3), normal(4)),
    "transposed, dilated": (lambda x, w: F.conv_transpose2d(x, w, None, (1, 2), 3, groups=4, dilation=2), normal(2, 4, 5, 6), normal(4, 1, 2, 2)),
    "transposed, 3": (lambda x, w: F.conv_transpose3d(x, w, None, 2, 1, groups=4), normal(2, 4, 3, 4, 3), normal(4, 1, 3, 3, 3)),
    "transposed, 3, groups": (lambda x, w: F.conv_transpose3d(x, w, None, 2, 1, groups=2), normal(2, 4, 3, 4, 3), normal(4, 3, 3, 3, 3)),
    "transposed, several outputs": (lambda x, w: F.conv_transpose2d(x, w, None, 2, 1, groups=4), normal(2, 4, 5, 6), normal(4, 2, 3, 3)),
    "3": (lambda x, w, b: F.conv3d(x, w, b, 1, 1, groups=4), normal(2, 4, 3, 4, 3), normal(4, 1, 3, 3, 3), normal(4)),
    "3, strides": (lambda x, w: F.conv3d(x, w, None, (2, 1, 2), (1, 0, 2), groups=4), normal(2, 4, 5, 4, 6), normal(4, 1, 3, 2, 3)),
    "3, several outputs": (lambda x, w: F.conv3d(x, w, None, groups=4, dilation=2), normal(1, 4, 5, 4, 6), normal(8, 1, 2, 2, 2)),
    "2, strides": (lambda x, w: F.conv2d(x, w, None, 2, 1, groups=8), normal(2, 8, 8, 9), normal(8, 1, 3, 3)),
    "2, dilated": (lambda x, w: F.conv2d(x, w, None, 1, 2, 2, groups=4), normal(2, 4, 7, 6), normal(4, 1, 3, 3)),
    "2, several outputs": (lambda x, w: F.conv2d(x, w, None, 2, 1, groups=4), normal(2, 4, 5, 6), normal(8, 1, 3, 3)),
    "1, causal": (lambda x, w, b: F.conv1d(F.pad(x, (3, 0)), w, b, groups=4), normal(2, 4, 9), normal(4, 1, 4), normal(4)),
    "one element": (lambda x, w: F.conv_transpose2d(x, w, None, 3, groups=2), normal(1, 2, 1, 1), normal(2, 1, 1, 1)),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_depthwise_convolutions(name):
    # Gradients are sums of some hundred terms of size 10.
    check(*CONVOLUTIONS[name], rtol=1e-4, atol=1e-4)


@pytest.mark.slow(one_of=3)
@pytest.mark.parametrize("name", ["transposed, 1", "3", "2, strides"])
def test_depthwise_convolutions_in_halves(name):
    function, *arguments = CONVOLUTIONS[name]
    in_halves(function, *[a / 4 for a in arguments])


#: Convolutions whose windows do not overlap, with M × N × K of their products for a batch of 4: forward, gradient of the input, gradient of the weight.
PRODUCTS = {
    "1 x 1": (nn.Conv2d(16, 32, 1), (16, 4, 6), [(96, 32, 16), (96, 16, 32), (32, 16, 96)]),
    "1 x 1, strides": (nn.Conv2d(16, 32, 1, 3), (16, 7, 8), [(36, 32, 16), (36, 16, 32), (32, 16, 36)]),
    "1 x 1, one place": (nn.Conv2d(16, 32, 1), (16, 1, 1), [(4, 32, 16), (4, 16, 32), (32, 16, 4)]),
    "1 x 1, dilated": (nn.Conv2d(16, 32, 1, dilation=2), (16, 4, 6), [(96, 32, 16), (96, 16, 32), (32, 16, 96)]),
    "patch": (nn.Conv2d(16, 32, 2, 2), (16, 4, 6), [(24, 32, 64), (24, 64, 32), (32, 64, 24)]),
    "patch, rest": (nn.Conv2d(16, 32, 2, 2, bias=False), (16, 5, 7), [(24, 32, 64), (24, 64, 32), (32, 64, 24)]),
    "patch, gaps": (nn.Conv2d(16, 32, (1, 3), (2, 4)), (16, 4, 9), [(16, 32, 48), (16, 48, 32), (32, 48, 16)]),
    "patch, one": (nn.Conv2d(16, 32, 4, 4), (16, 4, 4), [(4, 32, 256), (4, 256, 32), (32, 256, 4)]),
    "patch, padded": (nn.Conv2d(16, 32, 3, 4, 1), (16, 5, 9), [(24, 32, 144), (24, 144, 32), (32, 144, 24)]),
    "patch, padded by more": (nn.Conv2d(16, 32, 2, 2, 3), (16, 4, 6), [(120, 32, 64), (120, 64, 32), (32, 64, 120)]),
    "1": (nn.Conv1d(16, 32, 4, 4), (16, 16), [(16, 32, 64), (16, 64, 32), (32, 64, 16)]),
    "3": (nn.Conv3d(16, 32, 2, 2), (16, 4, 2, 4), [(16, 32, 128), (16, 128, 32), (32, 128, 16)]),
    "3, 1 x 1 x 1, strides": (nn.Conv3d(16, 32, 1, 2), (16, 4, 2, 5), [(24, 32, 16), (24, 16, 32), (32, 16, 24)]),
    "transposed": (nn.ConvTranspose2d(16, 8, 2, 2), (16, 3, 4), [(48, 32, 16), (48, 16, 32), (16, 32, 48)]),
    "transposed, gaps": (nn.ConvTranspose2d(16, 8, 2, 3, 1, 2), (16, 3, 4), [(48, 32, 16), (48, 16, 32), (16, 32, 48)]),
    "transposed, 1": (nn.ConvTranspose1d(16, 8, 4, 4), (16, 4), [(16, 32, 16), (16, 16, 32), (16, 32, 16)]),
    "transposed, 3": (nn.ConvTranspose3d(16, 8, 2, 2, bias=False), (16, 2, 3, 1), [(24, 64, 16), (24, 16, 64), (16, 64, 24)]),
}
OFTEN = ("1 x 1, strides", "patch", "patch, padded", "3", "transposed, gaps")
SOMETIMES = [name if name in OFTEN else pytest.param(name, marks=pytest.mark.slow(one_of=3)) for name in PRODUCTS]


def of_parameters(model):
    names = [name for name, _ in model.named_parameters()]
    return lambda x, *values: torch.func.functional_call(model, dict(zip(names, values)), (x,))


def drawn_for(model):
    return [normal(*p.shape, seed=1) / 4 for p in model.parameters()]


@pytest.mark.parametrize("name", SOMETIMES)
def test_convolutions_of_windows_that_do_not_overlap_are_products(name):
    """One product each, whose rows are the windows of all images, in FP8; without FP8 the values are PyTorch's."""
    model, shape, sizes = PRODUCTS[name]
    x = normal(4, *shape)
    # Gradients are sums of some hundred terms of size 10.
    check(of_parameters(model), x, *drawn_for(model), rtol=1e-4, atol=1e-4)
    torch._dynamo.reset()
    backend = fp8.torch.backend("current")
    torch.compile(model, backend=backend)(x.requires_grad_()).square().sum().backward()
    found = [(site.site, site.role, site.batch, site.m, site.n, site.k) for site in backend.graphs[0].report.fp8]
    assert found == [("weight", role, 1, *size) for role, size in zip(("fprop", "dgrad", "wgrad"), sizes)]


@pytest.mark.slow(one_of=3)
@pytest.mark.parametrize("name", OFTEN)
def test_convolutions_of_windows_that_do_not_overlap_in_halves(name):
    model, shape, _ = PRODUCTS[name]
    in_halves(of_parameters(model), normal(4, *shape) / 4, *[p / 4 for p in drawn_for(model)])
