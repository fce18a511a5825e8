# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of PyTorch through torch.compile, forward and backward, beside eager PyTorch."""

import math

import fp8.torch
import pytest
import torch
import torch.nn.functional as F
from torch import nn

aten = torch.ops.aten


def normal(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def integers(high, *shape):
    return torch.randint(high, shape, generator=torch.Generator().manual_seed(high))


ROWS = torch.tensor([3, 0, 3, 1, -1])
DISTINCT = torch.stack([torch.randperm(7, generator=torch.Generator().manual_seed(i))[:4] for i in range(5)])
COLUMNS = integers(7, 5, 4)
PLACES = integers(8, 6, 3)
TIES = integers(5, 4, 11)
TOKENS = integers(10, 4, 3)
LABELS = integers(9, 6)
PLANES = integers(9, 2, 4)
CLASSES = integers(7, 5)
IGNORING, ONCE, TWICE = torch.tensor([1, 2, -100, 3, 0, 8]), torch.tensor([1, 2, 3]), torch.tensor([1, 1, 3])
FAR = torch.tensor([1e30, 1e-30, math.inf, -math.inf, math.nan, 0.0, -3.0, 0.0, -1e-30, 1.0, math.nan, 2e30])
SPECIAL = normal(5, 9)
SPECIAL[1, 2], SPECIAL[2, 3], SPECIAL[3, 1], SPECIAL[3, 2] = float("nan"), SPECIAL[2, 4], -torch.inf, -torch.inf


def beside_numbers(x):
    """A number that is too large for the type of the tensor beside it loses its high bits; limits do not."""
    comparisons = [x > 150, 150 > x, x < -200, x == 300, x != 256, x >= -129, x > torch.tensor(150), x > 1.5]
    return [*comparisons, x // 200, x // -200, x % 200, x / 200, x & 300, x + 300, 300 - x, x * torch.tensor(300), x.clamp(max=300)]


def beside_large_numbers(x):
    return [x > 40000, x <= 2**33 + 5, x == 2**40, x < torch.tensor(70000), x // (2**33 + 3), x.clamp(-(2**40), 2**40)]


def places(x):
    return [*x.max(1), *x.min(0), x.argmax(1), x.argmin(0), x.argmax(), x.argmin(), x.argmin(-1, keepdim=True)]


def on_bytes(x):
    """Operations whose results depend on the sign, or overflow."""
    order = (*x.max(0), *x.sort(stable=True), x.max(), x.min(), x.argmax(), torch.maximum(x, x * 2), x > 50)
    return *order, x.sum(), x.cumsum(0), x * 2, x + x, -x, x / 2, x // 3, x % 3, x >> 1, x & 3, x.abs(), x.long(), x.float() / 255, x[ONCE]


# Name: the function and its arguments; gradients are taken of those that are floating point.
OPERATIONS = {
    "index_put, accumulating": (lambda x, v: x.index_put((ROWS,), v, True), normal(5, 7), normal(5, 7)),
    "index_put": (lambda x, v: x.index_put((ONCE,), v), normal(5, 7), normal(3, 7)),
    "index_put of columns": (lambda x, v: aten.index_put(x, [None, TWICE], v, True), normal(5, 7), normal(5, 3)),
    "numbers beside uint8": (beside_numbers, torch.tensor([1, 44, 200, 255, 0], dtype=torch.uint8)),
    "numbers beside int8": (beside_numbers, torch.tensor([1, -106, 100, -128, 127], dtype=torch.int8)),
    "numbers beside int16": (beside_large_numbers, torch.tensor([1, -25536, 100, -(2**15), 2**15 - 1], dtype=torch.int16)),
    "numbers beside int32": (beside_large_numbers, torch.tensor([1, 70000, -(2**31), 2**31 - 1], dtype=torch.int32)),
    "bytes": (on_bytes, torch.tensor([100, 200, 250, 3], dtype=torch.uint8)),
    "bytes with signs": (on_bytes, torch.tensor([100, -56, -128, 3], dtype=torch.int8)),
    "constants of the function": (lambda x: x[torch.tensor([0, 2])] * torch.tensor([[1.0], [2.0]]), normal(5, 7)),
    "index": (lambda x: x[ROWS], normal(5, 7)),
    "scatter": (lambda x, v: x.scatter(1, DISTINCT, v), normal(5, 7), normal(5, 4)),
    "scatter, last dimension": (lambda x, v: x.scatter(-1, DISTINCT, v), normal(5, 7), normal(5, 4)),
    "scatter a number": (lambda x: x.scatter(1, DISTINCT, 2.5), normal(5, 7)),
    "scatter_add": (lambda x, v: x.scatter_add(-1, COLUMNS, v), normal(5, 7), normal(5, 4)),
    "scatter_reduce": (lambda x, v: x.scatter_reduce(1, COLUMNS, v, "amax").detach(), normal(5, 7), normal(5, 4)),
    "index_add": (lambda x, v: x.index_add(1, TWICE, v, alpha=2), normal(5, 7), normal(5, 3)),
    "as_strided_scatter": (lambda x, v: torch.as_strided_scatter(x, v, (3, 2), (4, 2), 1).detach(), normal(4, 4), normal(3, 2)),
    "as_strided_scatter of all": (lambda x, v: torch.as_strided_scatter(x, v, (2, 8), (8, 1)).detach(), normal(4, 4), normal(2, 8)),
    "gather": (lambda x: x.gather(1, PLACES), normal(6, 8)),
    "cumsum": (lambda x: x.cumsum(0), normal(5, 7)),
    "cumsum of bool": (lambda x: (x > 0).cumsum(-1), normal(5, 7)),
    "cumprod": (lambda x: x.cumprod(1).detach(), normal(5, 7)),
    "sort": (lambda x: torch.sort(x, dim=0, descending=True, stable=True), normal(5, 9)),
    "sort of special numbers": (lambda x: torch.sort(x.detach(), dim=-1, stable=True), SPECIAL),
    "argsort of ties": (lambda: torch.argsort(TIES, dim=-1, stable=True),),
    "cummax": (lambda x: torch.cummax(x, 1), normal(5, 7)),
    "cummin of special numbers": (lambda x: [v for dim in (0, 1) for v in torch.cummin(x.detach(), dim)], SPECIAL),
    "cummax of ties": (lambda: torch.cummax(TIES, 1),),
    "places of extremes": (lambda x: [*x.max(1), *x.min(0), x.argmax(), x.argmin(-1), x.argmax(0, keepdim=True)], SPECIAL[3:]),
    "places of NaN": (lambda x: [*places(x.detach()), *places(x.detach().bfloat16())], SPECIAL),
    "fmod": (lambda x, y: x.fmod(y), normal(5, 7) * 100, normal(1, 7)),
    "fmod of special numbers": (lambda: [torch.fmod(x.to(t), x.flip(0).to(t)) for x in [FAR] for t in (torch.float32, torch.bfloat16)],),
    "fmod by a number": (lambda x: [x.fmod(-0.3), (x * 100).to(torch.int32).fmod(7), (x * 100).to(torch.int64).fmod(-1.5)], normal(5, 7)),
    "topk": (lambda x: x.topk(3, -1), normal(5, 9)),
    "topk, smallest": (lambda x: x.topk(2, 0, largest=False), normal(5, 9)),
    "embedding": (lambda w: F.embedding(TOKENS, w, padding_idx=2), normal(10, 6)),
    "max_pool2d": (lambda x: F.max_pool2d(x, 3, 2, 1), normal(2, 3, 9, 9)),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, 1), normal(2, 3, 9, 9)),
    "adaptive_avg_pool2d, uneven": (lambda x: F.adaptive_avg_pool2d(x, (2, 10)), normal(2, 3, 9, 7)),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 3), normal(2, 3, 8, 9)),
    "avg_pool2d, overlapping": (lambda x: F.avg_pool2d(x, (3, 2), (2, 1), 1, ceil_mode=True), normal(2, 3, 8, 9)),
    "avg_pool2d, padding not counted": (lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False), normal(2, 3, 8, 9)),
    "avg_pool2d, a divisor": (lambda x: F.avg_pool2d(x, 2, divisor_override=3), normal(2, 3, 8, 9)),
    "avg_pool1d": (lambda x: F.avg_pool1d(x, 3, 2, 1), normal(3, 8, 9)),
    "avg_pool3d": (lambda x: F.avg_pool3d(x, 2), normal(2, 3, 4, 6, 5)),
    "avg_pool3d, overlapping": (lambda x: F.avg_pool3d(x, (2, 3, 2), (1, 2, 2), (1, 1, 0), True, False), normal(2, 3, 4, 5, 6)),
    "avg_pool3d, a divisor": (lambda x: F.avg_pool3d(x, 3, 1, 1, divisor_override=5), normal(2, 3, 4, 5, 6)),
    "pooling without a batch": (lambda x: [F.avg_pool2d(x, 3), F.max_pool2d(x, 3, 2), F.avg_pool1d(x[0], 2)], normal(3, 8, 9)),
    "hypot": (lambda x, y: torch.hypot(x, y), normal(5, 7), normal(1, 7)),
    "hypot of special numbers": (
        lambda: [torch.hypot(x.to(t), x.flip(0).to(t)) for x in [FAR] for t in (torch.float32, torch.float64, torch.bfloat16)],),
    "cube": (lambda x: x**3, normal(5, 7)),
    "inverse square": (lambda x: x**-2, normal(5, 7)),
    "conv2d": (lambda x, w: F.conv2d(x, w, None, 2, 1), normal(2, 3, 9, 9), normal(4, 3, 3, 3)),
    "conv2d, patches": (lambda x, w, b: F.conv2d(x, w, b, 4), normal(2, 3, 8, 8), normal(4, 3, 4, 4), normal(4)),
    "conv2d, depthwise": (lambda x, w: F.conv2d(x, w, None, 1, 3, groups=4), normal(2, 4, 9, 9), normal(4, 1, 7, 7)),
    "conv2d, groups": (lambda x, w, b: F.conv2d(x, w, b, 1, 1, groups=2), normal(2, 4, 9, 9), normal(6, 2, 3, 3), normal(6)),
    "conv2d, groups and strides": (lambda x, w: F.conv2d(x, w, None, 2, 1, groups=3), normal(2, 6, 9, 9), normal(3, 2, 3, 3)),
    "conv2d, depthwise with strides": (lambda x, w: F.conv2d(x, w, None, 2, 1, groups=4), normal(2, 4, 9, 9), normal(4, 1, 3, 3)),
    "conv1d, groups": (lambda x, w: F.conv1d(x, w, None, 1, 1, groups=2), normal(2, 4, 9), normal(6, 2, 3)),
    "conv_transpose2d": (lambda x, w, b: F.conv_transpose2d(x, w, b, 2, 1, 1), normal(2, 4, 5, 5), normal(4, 3, 3, 3), normal(3)),
    "conv_transpose1d": (lambda x, w: F.conv_transpose1d(x, w, None, 2), normal(2, 4, 5), normal(4, 3, 4)),
    "conv_transpose2d, groups": (lambda x, w: F.conv_transpose2d(x, w, None, 2, 1, groups=2), normal(2, 4, 5, 5), normal(4, 3, 3, 3)),
    "conv1d": (lambda x, w: F.conv1d(x, w, None, 1, 1), normal(2, 4, 9), normal(6, 4, 3)),
    "batch_norm": (lambda x, w: F.batch_norm(x, None, None, w, None, True), normal(4, 3, 5, 5), normal(3)),
    "group_norm": (lambda x, w: F.group_norm(x, 2, w), normal(4, 6, 5, 5), normal(6)),
    "layer_norm": (lambda x, w: F.layer_norm(x, (7,), w), normal(4, 7), normal(7)),
    "rms_norm": (lambda x, w: F.rms_norm(x, (7,), w), normal(4, 7), normal(7)),
    "weight_norm": (lambda v, g: torch._weight_norm(v, g, 0), normal(4, 3, 5), normal(4, 1, 1)),
    "weight_norm, last dimension": (lambda v, g: torch._weight_norm(v, g, 1), normal(4, 7), normal(1, 7)),
    "cross_entropy": (lambda x: F.cross_entropy(x, IGNORING), normal(6, 9)),
    "cross_entropy, weights and smoothing": (
        lambda x, w: F.cross_entropy(x, LABELS, w.detach().abs(), label_smoothing=0.1), normal(6, 9), normal(9)),
    "cross_entropy, none": (lambda x: F.cross_entropy(x, LABELS, reduction="none"), normal(6, 9)),
    "cross_entropy, planes": (lambda x: F.cross_entropy(x, PLANES), normal(2, 9, 4)),
    "binary_cross_entropy": (lambda x, y: F.binary_cross_entropy_with_logits(x, y.detach().sigmoid()), normal(6, 9), normal(6, 9)),
    "attention": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), normal(2, 2, 6, 8), normal(2, 2, 6, 8), normal(2, 2, 6, 8)),
    "attention with a mask": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=torch.ones(6, 6, dtype=torch.bool).tril()),
        normal(2, 2, 6, 8), normal(2, 2, 6, 8), normal(2, 2, 6, 8)),
    "einsum": (lambda x, y: torch.einsum("bij,kj->bki", x, y), normal(2, 3, 4), normal(5, 4)),
    "histc": (lambda x: torch.histc(x.detach(), 4, -1, 1), normal(20)),
    "one_hot": (lambda: F.one_hot(CLASSES, 7),),
    "interpolate": (lambda x: F.interpolate(x, scale_factor=2), normal(1, 2, 3, 4)),
    "pad and crop": (lambda x: F.pad(x, (1, -1)), normal(3, 5)),
}  # fmt: skip
for name, function in {
    "gelu": F.gelu, "gelu, tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu, "elu": F.elu, "leaky_relu": F.leaky_relu,
    "softplus": F.softplus, "hardswish": F.hardswish, "mish": F.mish, "glu": F.glu, "tanh": torch.tanh, "sigmoid": torch.sigmoid,
    "softmax": lambda x: x.softmax(-1), "log_softmax": lambda x: x.log_softmax(-1), "logsumexp": lambda x: x.logsumexp(-1),
    "norm": lambda x: x.norm(dim=-1), "std": lambda x: x.std(-1), "var": lambda x: x.var(0), "amax": lambda x: x.amax(1),
    "prod": lambda x: x.prod(1), "roll": lambda x: x.roll(2, 1), "flip": lambda x: x.flip(0), "tril": torch.tril, "erf": torch.erf,
    "repeat_interleave": lambda x: x.repeat_interleave(2, 1), "clamp": lambda x: x.clamp(-0.5, 0.5), "slices": lambda x: x[1:5:2, ::3],
    "masked_fill": lambda x: x.masked_fill(x > 0, -3.0), "max": lambda x: x.max(1)[0],
}.items():  # fmt: skip
    OPERATIONS[name] = (function, normal(6, 8))


def run(function, arguments):
    """The results, and the gradients of the sum of their squares."""
    inputs = [a.clone().requires_grad_(a.is_floating_point()) for a in arguments]
    results = function(*inputs)
    results = list(results) if isinstance(results, (tuple, list)) else [results]
    loss = sum((r.square().sum() for r in results if r.requires_grad), torch.zeros(()))
    if loss.requires_grad:
        loss.backward()
    return [r.detach() for r in results] + [i.grad for i in inputs if i.grad is not None]


@pytest.mark.parametrize("name", OPERATIONS)
def test_operation(name):
    function, *arguments = OPERATIONS[name]
    torch._dynamo.reset()
    compiled = torch.compile(function, backend=fp8.torch.backend("none"), fullgraph=True)
    expected, found = run(function, arguments), run(compiled, arguments)
    assert len(found) == len(expected)
    for want, got in zip(expected, found):
        assert got.dtype == want.dtype
        # Sums of some ten terms in another order.
        torch.testing.assert_close(got, want, rtol=2e-5, atol=2e-5, equal_nan=True)


def test_constants_keep_their_bits():
    def constants(x):
        odd = torch.tensor([0.1, -0.0, 1e-45, 3.4028234663852886e38, float("-inf"), float("nan")])
        return torch.cat([odd, x]), torch.full_like(x, 1 / 3), x * 1e-45, torch.tensor([2**53 + 1, -(2**63)]) + 0, x.double() * math.pi

    torch._dynamo.reset()
    x = torch.tensor([1.0, -1.0, 3.0, -0.0, -2.0, 1.0])
    for want, got in zip(constants(x), torch.compile(constants, backend=fp8.torch.backend("none"))(x)):
        assert torch.equal(got.view(torch.uint8), want.view(torch.uint8))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_limits_and_extremes_keep_nan(dtype):
    def limits(x):
        y = x.flip(0)
        numbers = [x.clamp(-1, 1), x.clamp(min=0.3), x.clamp(max=0.3), x.clamp(2, 1), F.relu6(x), F.hardtanh(x, -0.5, 0.1), F.hardsigmoid(x), F.relu(x)]
        return [*numbers, torch.maximum(x, y), torch.minimum(x, y), x.clamp(y, y + 1), x.clamp_min(y), x.clamp_max(y), x.amax(0), x.amin(1), x.max(), x.min()]

    torch._dynamo.reset()
    x = SPECIAL.to(dtype)
    for want, got in zip(limits(x), torch.compile(limits, backend=fp8.torch.backend("none"), fullgraph=True)(x)):
        torch.testing.assert_close(got, want, rtol=2**-8 if dtype == torch.bfloat16 else 1e-6, atol=0, equal_nan=True)


ACTIVATIONS = {
    "elu": F.elu, "celu": F.celu, "selu": F.selu, "elu in place": lambda x: F.elu(x * 1, alpha=0.5, inplace=True), "hardtanh": F.hardtanh,
    "relu6": F.relu6, "hardsigmoid": F.hardsigmoid, "hardswish": F.hardswish, "leaky_relu": F.leaky_relu, "softplus": F.softplus,
    "softshrink": F.softshrink, "logsigmoid": F.logsigmoid, "mish": F.mish, "silu": F.silu, "gelu": F.gelu,
    "softsign": F.softsign, "clamp": lambda x: x.clamp(-1, 1), "abs": torch.abs, "threshold": lambda x: F.threshold(x, 0.1, 20),
    "huber": lambda x: F.huber_loss(x, torch.zeros_like(x), reduction="none"),
    "smooth l1": lambda x: F.smooth_l1_loss(x, torch.zeros_like(x), reduction="none"), "smooth l1, mean": lambda x: F.smooth_l1_loss(x, torch.zeros_like(x)),
    "smooth l1, beta": lambda x: F.smooth_l1_loss(x, torch.zeros_like(x), reduction="sum", beta=0.5),
}  # fmt: skip


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_gradients_of_activations_at_edges(name):
    """NaN among them. PyTorch's loops take vectors of 32 numbers, and treat NaN otherwise in what these leave over."""
    torch._dynamo.reset()
    function, numbers = ACTIVATIONS[name], [0.0, 0.25, 0.5, 1.0, 1.5, 3.0, 3.5, 6.0, math.inf]
    edges = torch.tensor([math.nan, *numbers, *[-number for number in numbers]])
    x = edges.repeat_interleave(32).requires_grad_()
    (want,) = torch.autograd.grad(function(x).sum(), x)
    (got,) = torch.autograd.grad(torch.compile(function, backend=fp8.torch.backend("none"), fullgraph=True)(x).sum(), x)
    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-7, equal_nan=True)


IDENTITIES = {"same": lambda x: x, "clone": torch.clone, "detach": torch.detach, "alias": lambda x: x[:], "sum": lambda x: x + 0, "f32": torch.Tensor.float}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.int32], ids=str)
@pytest.mark.parametrize("comparison", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_comparisons_of_a_tensor_with_itself(comparison, dtype):
    """`x == x` is a common check for NaN."""
    torch._dynamo.reset()
    x = torch.tensor([0.0, 1.0, -1.0] if dtype == torch.int32 else [math.nan, 1.0, 0.0, -math.nan]).to(dtype)

    def compare(x):
        return [getattr(torch, comparison)(same(x), x) for same in IDENTITIES.values()] + [torch.where(getattr(x, comparison)(x), 1.0, 2.0)]

    for got, want in zip(torch.compile(compare, backend=fp8.torch.backend("none"), fullgraph=True)(x), compare(x), strict=True):
        assert torch.equal(got, want)


def test_an_index_out_of_range_is_an_error_of_the_call():
    torch._dynamo.reset()
    put = torch.compile(lambda x, i, v: x.index_put((i,), v, True), backend=fp8.torch.backend("none"))
    with pytest.raises(fp8.RunError, match="index out of range"):
        put(normal(5, 7), torch.tensor([1, 9]), normal(2, 7))


def test_an_operation_without_linalg_form_is_named_with_the_users_line():
    def factor(x):
        return torch.linalg.qr(x).R  # the line

    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as raised:
        torch.compile(factor, backend=fp8.torch.backend())(torch.eye(3))
    error = raised.value.inner_exception
    assert isinstance(error, fp8.UnsupportedError)
    assert "linalg_qr" in error.message
    assert error.location.file == __file__
    assert "# the line" in open(__file__).readlines()[error.location.line - 1]


INT8, UINT8, INT16 = (torch.tensor([1, -2, 3]).to(t) for t in (torch.int8, torch.uint8, torch.int16))
F16, F32, SOME = normal(3).half(), normal(3), torch.tensor([True, False, True])


def assign(x, number):
    x[1] = number
    return x


#: Functions, and numbers: the first does not fit into the type of the function's tensor.
TOO_LARGE = {
    "masked_fill": (lambda n: INT8.masked_fill(SOME, n), 128, -128),
    "masked_fill, negative": (lambda n: INT8.masked_fill(SOME, n), -129, 127),
    "where": (lambda n: torch.where(SOME, INT16, n), 1 << 15, -(1 << 15)),
    "where, unsigned": (lambda n: torch.where(SOME, n, UINT8), 256, -1),
    "full_like": (lambda n: torch.full_like(INT8, n) + INT8, 300, -100),
    "full": (lambda n: torch.full((3,), n, dtype=torch.int16) + INT16, 1 << 15, 7),
    "new_full": (lambda n: INT8.new_full((3,), n) + INT8, -129, 7),
    "alpha of add": (lambda n: torch.add(INT8, INT8, alpha=n), 300, 127),
    "alpha of sub": (lambda n: torch.sub(UINT8, UINT8, alpha=n), 256, -255),
    "alpha of wider tensors": (lambda n: torch.add(INT8, INT16, alpha=n), 1 << 15, 300),
    "fill_": (lambda n: INT16.clone().fill_(n) + INT16, 1 << 15, 7),
    "assignment": (lambda n: assign(INT8 + INT8, n), 128, 7),
    "scatter": (lambda n: INT8.scatter(0, torch.tensor([0, 2]), n), 128, -128),
    "index_fill": (lambda n: INT8.index_fill(0, torch.tensor([0, 2]), n), 128, -128),
    "pad": (lambda n: F.pad(INT16, (1, 1), value=n), 1 << 15, 7),
    "float16": (lambda n: F16.masked_fill(SOME, n), -1e9, float("-inf")),
    "fill_ of float16": (lambda n: F16.clone().fill_(n), -1e9, 1.5),
    "float16 of clamp": (lambda n: F16.clamp(max=n), 1e6, 0.5),
    "float16 of hardtanh": (lambda n: F.hardtanh(F16, -n, n), 1e6, 0.5),
    "float16 of threshold": (lambda n: F.threshold(F16, 0.1, n), 1e6, 20.0),
    "bfloat16": (lambda n: torch.full_like(F16, n, dtype=torch.bfloat16), 3.4028234663852886e38, float("nan")),
    "float32": (lambda n: torch.add(F32, F32, alpha=n), 1e39, 1e38),
}  # fmt: skip


@pytest.mark.parametrize("name", TOO_LARGE)
def test_numbers_that_a_type_cannot_hold_are_errors_as_in_eager(name):
    function, too_large, fits = TOO_LARGE[name]
    torch._dynamo.reset()
    compiled = torch.compile(function, backend=fp8.torch.backend("none"), fullgraph=True)
    torch.testing.assert_close(compiled(fits), function(fits), rtol=0, atol=0, equal_nan=True)
    for call in (function, compiled):
        with pytest.raises(RuntimeError, match="value cannot be converted to type .* without overflow"):
            call(too_large)


NO_TRANSFORM = "'{}' has no form in linalg: under torch.compile, a function with @torch.compiler.disable leaves it to PyTorch"


class Spectrum(nn.Module):
    """Half of a spectrum, of which backward needs all of it; `transform` computes it."""

    def __init__(self, transform):
        super().__init__()
        self.fc, self.transform = nn.Linear(8, 8), transform

    def forward(self, x):
        return self.transform(self.fc(x))


def amplitudes(x):
    return torch.fft.fft(x).abs()  # the transform


@pytest.mark.parametrize("gradients", [True, False])
def test_fourier_transforms_are_left_to_pytorch(gradients):
    torch._dynamo.reset()
    x = normal(4, 8)
    with torch.set_grad_enabled(gradients):
        with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as raised:
            torch.compile(Spectrum(amplitudes), backend=fp8.torch.backend("none"))(x)
        error = raised.value.inner_exception
        assert isinstance(error, fp8.UnsupportedError) and error.message == NO_TRANSFORM.format("_fft_r2c")
        assert "# the transform" in open(__file__).readlines()[error.location.line - 1]
        # As it says.
        model = Spectrum(torch.compiler.disable(amplitudes))
        torch.testing.assert_close(torch.compile(model, backend=fp8.torch.backend("none"))(x), model(x))


def test_fourier_transforms_elsewhere_are_refused_likewise():
    x, model = normal(4, 8), Spectrum(amplitudes)
    step = fp8.torch.train_step(model, F.mse_loss, torch.optim.SGD(model.parameters(), 0.1))
    with pytest.raises(fp8.UnsupportedError) as error:
        step(x, x)
    assert str(error.value).endswith(NO_TRANSFORM.format("_fft_r2c"))
    with pytest.raises(fp8.UnsupportedError) as error:
        fp8.torch.compile_exported(torch.export.export(model.eval(), (x,)))
    assert error.value.message == NO_TRANSFORM.format("fft_fft") and error.value.location.file == __file__
