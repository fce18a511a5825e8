# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors without elements through torch.compile: results that have none, results from nothing, and writes of nothing."""

import pytest
import torch
import torch.nn.functional as F
from torch_compare import check, normal

NOTHING, PLACES = torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64)

FUNCTIONS = {
    "without elements": lambda x, none: [none * 2, x[:, :0].exp(), none.reshape(3, 0), torch.stack([none, none]), F.pad(none, (1, 1)), x[PLACES]],
    "products": lambda x, none: [none @ x[:3], x[:, :0] @ x[:0], F.linear(none, x[:2, :3], x[0, :2]), torch.einsum("ij,ik->jk", none, none)],
    "reductions": lambda x, none: [none.sum(), none.sum(0), none.prod(), none.mean(1), none.detach().mean(), none.logsumexp(0), (none > 0).all(0), none.norm()],
    "layouts": lambda x, none: [F.unfold(x[:0].reshape(0, 1, 2, 2), 2), none.unflatten(1, (3, 1)), none.flip(0)],
    # Of pixel_unshuffle, eager PyTorch has the argument's shape where that has no elements.
    "pixels": lambda x, none: F.pixel_shuffle(x.detach()[:0].reshape(0, 4, 1, 1), 2),
    "norms": lambda x, none: [F.group_norm(x[:0].reshape(0, 4, 1), 2), F.layer_norm(none, (3,)), none.softmax(1), F.batch_norm(none, x[0, :3], x[0, :3].abs())],
    "convolution": lambda x, none: [F.conv1d(none.reshape(0, 3, 1), x[:2, :3].reshape(2, 3, 1), x[0, :2])],
    "concatenation": lambda x, none: [torch.cat([x, x[:0], x]), torch.cat([none, none]), torch.cat([none, x[:1, :3]])],
    "writes": lambda x, none: [
        x.index_put((PLACES,), x[:0]), x.index_add(0, PLACES, x[:0]), x.index_copy(0, PLACES, x[:0]), x.scatter(0, PLACES.reshape(0, 1), x[:0, :1]),
        x.index_fill(1, PLACES, 3.0), x.slice_scatter(x[:0], 0, 2, 2), x.scatter_add(0, PLACES.reshape(0, 1), x[:0, :1])],
    "extremes": lambda x, none: [*x[:, :0].aminmax(dim=0), none.amax(1), *none.max(1), none.argmin(1), *none.sort(1), *x[:0].topk(2), none.cumsum(0)],
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nothing(name):
    check(FUNCTIONS[name], normal(5, 4), NOTHING)


def test_types_and_numbers_of_nothing():
    def sums(x):
        none = x[:0].to(torch.int8)
        return [none.sum(), none.long().prod(0), none.bool().any(0), none.double().mean(0), none.half() + 1, none == 3]

    check(sums, normal(5, 4))
