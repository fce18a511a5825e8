# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes by masks and by several indices, diagonals, and searches, through torch.compile."""

import fp8.torch
import pytest
import torch
from torch_compare import check, in_halves, normal

aten = torch.ops.aten
MASK = torch.tensor([True, False, True, True, False])
ALL = normal(5, 7) > 0
ROWS, COLUMNS = torch.tensor([0, 3, 0]), torch.tensor([2, 1, 2])


def set_items(x, rows, columns, one, all_of_it):
    """Every form of x[mask] = values whose mask stands alone among slices and numbers."""
    results = [x * 1 for _ in range(9)]
    results[0][MASK] = rows
    results[1][MASK] = one
    results[2][MASK] = 2.5
    results[3][:, columns_mask()] = columns
    results[4][MASK, 1] = one[:3]
    results[5][ALL] = all_of_it
    results[6][..., columns_mask()] = columns
    results[7][1:4][MASK[1:4]] = rows[:2]
    results[8][None, MASK] = rows[:1]
    return results


def beside_indices(x, values):
    results = [x * 1 for _ in range(4)]
    results[0][MASK, [2, 0, 1]] = values
    results[1][MASK, COLUMNS] = 2.5
    results[2][MASK & (torch.arange(5) == 2), [0, 4]] = values[:2]
    results[3].t()[[1, 0, 5], MASK] = values
    return results


def test_values_are_written_where_a_mask_and_indices_meet():
    check(beside_indices, normal(5, 7), normal(3), rtol=0, atol=0)


def test_a_mask_with_another_number_of_elements_than_indices_is_an_error_of_the_call():
    def put(x, mask):
        y = x * 1
        y[mask, [0, 1]] = 3.0
        return y

    torch._dynamo.reset()
    with pytest.raises(fp8.RunError, match="index out of range"):
        torch.compile(put, backend=fp8.torch.backend("none"))(normal(5, 7), MASK)


def columns_mask():
    return torch.tensor([False, True, False, True, False, False, True])


SET = normal(5, 7), normal(3, 7), normal(5, 3), normal(7), normal(int(ALL.sum()))


def test_values_are_written_where_a_mask_is_true():
    check(set_items, *SET, rtol=0, atol=0)


@pytest.mark.slow(one_of=2)
def test_values_are_written_where_a_mask_is_true_in_halves():
    in_halves(set_items, *SET)


@pytest.mark.parametrize("accumulate", [False, True])
def test_masks_as_arguments(accumulate):
    def put(x, mask, values, numbers):
        changed = x * 1
        changed.index_put_((mask,), values, accumulate)
        return x.index_put((mask,), values, accumulate), changed, aten.index_put(x, [None, numbers > 0], values[:1, :1], accumulate)

    check(put, normal(5, 7), MASK, normal(3, 7), normal(7))


def test_masks_of_nothing_and_of_one_element():
    def put(x, none, empty, one):
        y, z, w = x * 1, x * 1, one * 1
        y[none] = x[:0]
        z[~none] = 3.0
        w[none[:1]] = one[0]
        return y, z, w, x.masked_scatter(none[:, None], x * 2), empty.masked_fill(empty > 0, 1.0)

    check(put, normal(5, 7), torch.zeros(5, dtype=torch.bool), normal(0, 3), normal(1))


@pytest.mark.parametrize("values", [2, 4, 0])
def test_another_number_of_values_than_of_true_elements_is_an_error_of_the_call(values):
    def put(x, mask, v):
        y = x * 1
        y[mask] = v
        return y

    torch._dynamo.reset()
    with pytest.raises(fp8.RunError, match="ndex"):
        torch.compile(put, backend=fp8.torch.backend("none"))(normal(5, 7), MASK, normal(values, 7))


def test_masked_scatter():
    check(lambda x, s: [x.masked_scatter(ALL, s), x.masked_scatter(MASK[:, None], s), torch.masked_scatter(x, ALL, s)], normal(5, 7), normal(6, 7))


def several(x, values):
    """Indices beside each other and apart, whose gradients are sums."""
    read = [x[:, [0, 1], :, [0, 1]], x[:, ROWS, COLUMNS], x[[2, 0, 2]], x[[0, 1], :, [0, 2]], x[:, ROWS[:, None], COLUMNS]]
    written = [aten.index_put(x, [None, ROWS, None, COLUMNS], values, True), aten.index_put(x, [None, ROWS, COLUMNS], x[0, 0, 0], True)]
    return [*read, *written, aten.index_put(x, [None, ROWS[1:], None, COLUMNS[1:]], values[1:])]


def test_several_indices():
    check(several, normal(3, 4, 5, 6), normal(3, 3, 5))


def diagonals(x, y, source):
    product = x @ y.t()
    views = [torch.diag(x), torch.diag(x, 2), torch.diag(x, -2), torch.diag(x[0], -1), torch.einsum("ii->i", product), x.diagonal(-4)]
    losses = [product.diagonal().sum(), product.trace(), torch.cat([product.diag().exp(), product.diagonal(1)])]
    return [*views, *losses, torch.diagonal_scatter(x, source, 1), torch.diag_embed(x[:2], -1), torch.block_diag(x[:2], y[0], x[0, 0])]


def test_diagonals():
    check(diagonals, normal(5, 7), normal(5, 7, seed=1), normal(5), rtol=1e-4, atol=1e-4)


def test_diagonals_of_more_dimensions():
    def apart(x):
        changed = x * 1
        changed.diagonal(1, 2, 0).copy_(x.diagonal(0, 2, 0)[:, :2] * 2)
        return torch.einsum("bii->b", x[:, :3, :3]), x.diagonal(1, -1, 0), x.diagonal(9), changed

    check(apart, normal(3, 4, 5))


def test_contrastive_losses():
    """InfoNCE, in which the pairs that belong together lie on the diagonal; Barlow Twins, whose target is the unit matrix."""

    def losses(x, y):
        x, y = torch.nn.functional.normalize(x, dim=1), torch.nn.functional.normalize(y, dim=1)
        scores = x @ y.t() / 0.5
        contrast = -(scores.diagonal() - scores.logsumexp(1)).mean()
        correlation = x.t() @ y
        off = correlation.clone().fill_diagonal_(0)
        return contrast, (1 - correlation.diagonal()).square().sum() + 0.1 * off.square().sum()

    check(losses, normal(6, 8), normal(6, 8, seed=1), rtol=1e-4)


def test_index_reduce_and_searches():
    def reduce(x, v):
        index = torch.tensor([1, 0, 1])
        other = [x.index_reduce(0, index, v, kind, include_self=own).detach() for kind, own in (("prod", True), ("amax", False), ("amin", True))]
        ends = torch.tensor([-1.0, 0.0, 0.0, 1.0])
        found = [torch.searchsorted(ends, x.detach(), right=right) for right in (False, True)]
        rows = x.detach().sort(1)[0]
        special = torch.tensor([torch.nan, torch.inf, -torch.inf, 0.0])
        return [*other, *found, torch.searchsorted(rows, x.detach()), torch.bucketize(x.detach(), ends, right=True), torch.searchsorted(ends, special)]

    check(reduce, normal(5, 7), normal(3, 7))
