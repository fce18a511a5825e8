# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions through torch.compile beside eager PyTorch: their results, and the gradients of the sum of squares."""

import fp8.torch
import torch


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape) + seed))


def results_and_gradients(function, arguments, seed=0):
    """The results, as tensors, and the gradients of what is floating point among the arguments."""
    inputs = [a.clone().requires_grad_(a.is_floating_point()) if isinstance(a, torch.Tensor) else a for a in arguments]
    torch.manual_seed(seed)
    results = function(*inputs)
    results = list(results) if isinstance(results, (tuple, list)) else [results]
    losses = [r.float().square().sum() for r in results if r.requires_grad]
    if losses:
        sum(losses).backward()
    gradients = [i.grad for i in inputs if isinstance(i, torch.Tensor) and i.grad is not None]
    return [r.detach() for r in results] + gradients


def check(function, *arguments, rtol=2e-5, atol=2e-5, exact=False, **options):
    """Compares a function, compiled without FP8, with eager PyTorch. Sums of some ten terms in f32 may be in another order.

    With `exact`, elements that are as near to PyTorch's results in f64 as its own are right too.
    """
    torch._dynamo.reset()
    compiled = torch.compile(function, backend=fp8.torch.backend("none"), fullgraph=True, **options)
    expected, found = results_and_gradients(function, arguments), results_and_gradients(compiled, arguments)
    assert len(found) == len(expected)
    for place, (want, got) in enumerate(zip(expected, found)):
        assert got.dtype == want.dtype and got.shape == want.shape
        if exact and not torch.allclose(got, want, rtol=rtol, atol=atol, equal_nan=True):
            want = _nearer(want, got, results_and_gradients(function, [*map(_in_f64, arguments)])[place])
        torch.testing.assert_close(got, want, rtol=rtol, atol=atol, equal_nan=True)


def _in_f64(value):
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def _nearer(want, got, exact):
    """Of each element the one that is nearer to the exact one."""
    return torch.where((got.double() - exact).abs() <= (want.double() - exact).abs(), got, want)


def in_halves(function, *arguments):
    """The same in bf16 and f16: results that are rounded once, or after other sums in f32, differ by one unit in the last place.

    With AVX2 alone the input gradient of PyTorch's depthwise convolution of bf16 in three dimensions is 3.4 times as far from f64.
    """
    for dtype, unit in ((torch.bfloat16, 2**-7), (torch.float16, 2**-10)):
        check(function, *[a.to(dtype) if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in arguments], rtol=unit, atol=unit, exact=True)
