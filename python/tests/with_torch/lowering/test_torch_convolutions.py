# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions of one channel per group, transposed and in three dimensions, through torch.compile."""

import pytest
import torch.nn.functional as F
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
