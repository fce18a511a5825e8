# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values of PyTorch's operations with all their bits: scatters that reduce, divisions that round down, casts to and from FP8."""

import itertools
import math

import fp8.torch
import pytest
import torch

FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
FP8 = (torch.float8_e4m3fn, torch.float8_e5m2)


def compiled(function):
    torch._dynamo.reset()
    return torch.compile(function, backend=fp8.torch.backend("none"), fullgraph=True)


def bits(values):
    """The bits of numbers; all NaN are alike."""
    if values.dtype.is_floating_point:
        values = torch.where(values.isnan(), torch.full((), math.nan, dtype=values.dtype), values)
    return values.contiguous().reshape(-1).view(torch.uint8).reshape(values.numel(), values.element_size())


def assert_same_bits(found, expected, name=""):
    assert found.dtype == expected.dtype and found.shape == expected.shape, name
    wrong = (bits(found) != bits(expected)).any(-1)
    places = wrong.nonzero()[:3, 0].tolist()
    examples = [(expected.reshape(-1)[place].item(), found.reshape(-1)[place].item()) for place in places]
    assert not places, f"{name}: {int(wrong.sum())} of {wrong.numel()} elements differ, expected and found: {examples}"


def assert_all_have_the_same_bits(found, expected):
    """Says all results that differ."""
    assert len(found) == len(expected)
    differences = []
    for place, (got, want) in enumerate(zip(found, expected)):
        try:
            assert_same_bits(got, want, f"result {place}")
        except AssertionError as error:
            differences.append(str(error).splitlines()[0])
    assert not differences, "\n".join(differences)


REDUCTIONS = ("mean", "sum", "prod", "amax", "amin")
TWICE = torch.tensor([0, 2, 1, 2, 2])


def reduced(x, values):
    kinds = itertools.product(REDUCTIONS, (True, False))
    return [x.scatter_reduce(0, TWICE, values, kind, include_self=with_old) for kind, with_old in kinds]


@pytest.mark.parametrize("dtype", [torch.float32, *(pytest.param(d, marks=pytest.mark.slow(one_of=3)) for d in (*FLOATS[1:], *INTEGERS))], ids=str)
def test_scatters_that_reduce(dtype):
    """The count of a mean grows by one, not by the value; places without a value keep what they have."""
    x, values = torch.tensor([10, 20, 30, 40]).to(dtype), torch.tensor([1, 3, 5, 7, 2]).to(dtype)
    for kind, found, expected in zip(itertools.product(REDUCTIONS, (True, False)), compiled(reduced)(x, values), reduced(x, values)):
        assert_same_bits(found, expected, f"{kind}")


def test_means_of_rows_and_columns():
    x, values = torch.linspace(-3, 5, 35).reshape(5, 7), torch.linspace(0.1, 9, 20).reshape(5, 4)
    index = torch.tensor([[0, 1, 1, 6], [2, 2, 2, 2], [0, 1, 2, 3], [5, 5, 0, 0], [6, 6, 6, 1]])

    def means(x, values):
        return [x.scatter_reduce(dim, index.clamp(max=4), values, "mean", include_self=old) for dim in (0, 1, -1) for old in (True, False)]

    for found, expected in zip(compiled(means)(x, values), means(x, values)):
        assert_same_bits(found, expected)


#: Every kind of number beside every other.
SPECIAL = torch.tensor(
    [0.0, -0.0, 1.0, -1.0, 6.0, 0.1, -0.1, 0.3, 3.0, -3.0, 7.5, math.inf, -math.inf, math.nan, 1e30, -1e30, 1e-30, 1e-40, 3e38, 65504.0], dtype=torch.float64
)
NUMBERS = (0.1, -0.1, 3, -0.0, math.inf, math.nan)


def pairs(dtype, special):
    first, second = torch.meshgrid(special.to(dtype), special.to(dtype), indexing="ij")
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.randn(4096, generator=generator, dtype=torch.float64).to(dtype) for _ in range(2))
    return torch.cat([first.reshape(-1), left * 30]), torch.cat([second.reshape(-1), right])


TENTH = torch.tensor(0.1)


def divided(x, y):
    by_tensors = [x // y, torch.div(x, y, rounding_mode="floor"), torch.div(x, y, rounding_mode="trunc"), 2.5 // y, -3 // y]
    by_one = [x // TENTH, torch.div(x, y[-1:], rounding_mode="floor")]
    return [*by_tensors, *by_one, *[x // number for number in NUMBERS]]


def remainders(x, y):
    by_tensors = [x % y, torch.fmod(x, y), 2.5 % y]
    return [*by_tensors, *[f(x, number) for number in NUMBERS for f in (torch.remainder, torch.fmod)]]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_divisions_of_floats_that_round_down(dtype):
    """1 // 0.1 is 9: the quotient as a float is 10, but ten times the float 0.1 are more than 1."""
    x, y = pairs(dtype, SPECIAL)
    assert_all_have_the_same_bits(compiled(divided)(x, y), divided(x, y))


@pytest.mark.slow(one_of=2)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_remainders_of_floats(dtype):
    """Where the quotient overflows PyTorch has NaN for many elements, and the remainder for one: these are left out."""
    size = SPECIAL.abs()
    x, y = pairs(dtype, SPECIAL[(size == 0) | (size > 1e-3) & (size < 1e5) | ~SPECIAL.isfinite()])
    assert_all_have_the_same_bits(compiled(remainders)(x, y), remainders(x, y))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_divisions_of_integers_that_round_down(dtype):
    low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    x = torch.tensor([low + 1, low // 2, 0, 1, 5, 7, high - 1, high, high // 3] * 9).to(dtype)
    y = torch.tensor([1, 2, 3, 7, 100, 5, 4, 9, 11]).repeat_interleave(9).to(dtype)
    y = y if dtype == torch.uint8 else torch.where(torch.arange(81) % 2 == 0, y, -y)

    def quotients(x, y):
        mixed = [x // 3, x % 3, 100 // y, x // 0.3, x % 0.3, x.float() // y, torch.div(x, y, rounding_mode="trunc"), torch.fmod(x, y)]
        return [x // y, x % y, torch.div(x, y, rounding_mode="floor"), torch.div(x, 4, rounding_mode="floor"), *mixed]

    assert_all_have_the_same_bits(compiled(quotients)(x, y), quotients(x, y))


#: Halfway between numbers of FP8, beside it by less than f32 holds, and around the largest ones.
TO_FP8 = torch.tensor(
    [
        0.0,
        -0.0,
        1.0,
        1.0625,
        1.0625 + 2.0**-40,
        1.0625 - 2.0**-40,
        1.125 + 2.0**-40,
        2.0**-9,
        2.0**-10,
        2.0**-10 + 2.0**-45,
        2.0**-17,
        1e-9,
        448.0,
        463.0,
        464.0,
    ]
    + [465.0, 480.0, 57343.0, 57344.0, 61439.0, 61439.999999, 61440.0, 61441.0, 65504.0, 65536.0, 1e6, 1e30, 1e300, math.inf, math.nan],
    dtype=torch.float64,
)
TO_FP8 = torch.cat([TO_FP8, -TO_FP8])


def to_fp8(x):
    return [x.to(dtype) for dtype in FP8]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_casts_to_fp8(dtype):
    """E5M2 overflows to infinities; in E4M3 what is too large is what the installed PyTorch makes of it."""
    x = TO_FP8.to(dtype)
    for found, expected in zip(compiled(to_fp8)(x), to_fp8(x)):
        assert_same_bits(found, expected)


class Cast(torch.nn.Module):
    def forward(self, x):
        return tuple(to_fp8(x))


def test_casts_to_fp8_of_an_exported_program():
    x = TO_FP8.float()
    run = fp8.torch.compile_exported(torch.export.export(Cast(), (x,)), recipe="none")
    for found, expected in zip(run(x), to_fp8(x)):
        assert_same_bits(found, expected)


#: On both sides of what integers of 8, 16, 32 and 64 bits hold.
TO_INTEGERS = torch.tensor(
    [sign * (2.0**power + step) for power in (0, 7, 8, 15, 16, 31, 32, 63, 64) for step in (-1, -0.5, 0, 1, 44, 512) for sign in (1, -1)]
    + [0.0, -0.0, 0.5, -0.5, 1e30, -1e30, math.inf, -math.inf, math.nan],
    dtype=torch.float64,
)
WHOLE = (*INTEGERS, torch.bool)


def to_integers(x):
    """Of many elements, of fewer than a vector has, and of one."""
    return [part.to(dtype) for dtype in WHOLE for part in (x, x[60:63], x[70])]


@pytest.mark.parametrize("dtype", (*FLOATS, *FP8), ids=str)
def test_casts_to_integers(dtype):
    """300 is 44 as int8: 32 bits, or 64, are cut; what these do not hold either, and NaN, is their lowest number before. At any place alike."""
    drawn = torch.randn(2048, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 2.0 ** torch.arange(2048).remainder(70)
    x = torch.cat([TO_INTEGERS, drawn]).to(dtype)
    assert_all_have_the_same_bits(compiled(to_integers)(x), to_integers(x))


@pytest.mark.slow(one_of=4)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_casts_to_integers_within_operations(dtype):
    """Writes into integers convert, as do sums and products with another type."""

    def converted(x):
        written = [torch.zeros(x.shape, dtype=whole).copy_(x) for whole in INTEGERS]
        sums = [f(x[:30], 0, dtype=whole) for whole in WHOLE for f in (torch.sum, torch.prod)]
        return [*written, *sums, *[torch.cumsum(x[:30], 0, dtype=whole) for whole in INTEGERS]]

    x = torch.cat([TO_INTEGERS, torch.linspace(-300, 300, 77, dtype=torch.float64)]).to(dtype)
    assert_all_have_the_same_bits(compiled(converted)(x), converted(x))


def test_casts_of_constants_to_integers():
    numbers = (300.0, -129.0, 3e9, 1e20, math.inf, -math.inf, math.nan, 44.7)

    def constants():
        return [torch.full((3,), number, dtype=dtype).to(whole) for number in numbers for dtype in FLOATS[:3] for whole in WHOLE]

    found = compiled(lambda x: (*constants(), x + 1))(torch.ones(2))[:-1]
    assert_all_have_the_same_bits(found, constants())


def sums_of_other_types(x):
    return [f(*where, dtype=whole) for f in (x.sum, x.prod) for where in ((), (0,), (0, True)) for whole in WHOLE]


@pytest.mark.parametrize("dtype", [torch.float32, *(pytest.param(d, marks=pytest.mark.slow(one_of=3)) for d in (torch.bool, *INTEGERS))], ids=str)
def test_sums_in_other_types(dtype):
    """Also in bool, where any number is true, and 8 bits."""
    x = torch.tensor([3, -2, 0, 100, 77, 1, 1]).to(dtype)
    for part in (x, x[:2], x[5:]):
        assert_all_have_the_same_bits(compiled(sums_of_other_types)(part), sums_of_other_types(part))


KINDS = (torch.float32, torch.bfloat16, torch.float64, torch.int64)
FIXED = {dtype: (0.1, -7.5, 0.0, 3.0, math.inf, math.nan) if dtype.is_floating_point else (0, -1, 5) for dtype in KINDS}


@pytest.mark.parametrize("dtype", KINDS, ids=str)
def test_comparisons_of_constants_with_numbers(dtype):
    """torch-mlir would compute them, and take the bits of 0.1 for an integer beside the integer 0."""

    def comparisons():
        constants = [torch.full((2,), number, dtype=dtype) for number in FIXED[dtype]]
        constants += [torch.zeros_like(constants[0]), constants[0] + 2]
        pairs = itertools.product(constants, (0, 2, 0.5))
        return torch.stack([f(x, number) for x, number in pairs for f in (torch.lt, torch.le, torch.gt, torch.ge, torch.eq, torch.ne)])

    found = compiled(lambda x: (comparisons(), x + 1))(torch.ones(2))[0]
    assert_same_bits(found, comparisons())


ALL_BYTES = torch.arange(256, dtype=torch.uint8)


@pytest.mark.parametrize("dtype", FP8, ids=str)
def test_casts_from_fp8(dtype):
    """Every number of FP8 to every other type of floats, the other FP8 among them, and what is finite to integers."""
    x = ALL_BYTES.view(dtype)
    small = torch.cat([ALL_BYTES[:72], ALL_BYTES[128:200]]).view(dtype)
    assert small.float().abs().max() < 128

    def casts(x, small):
        return [x.to(d) for d in (*FLOATS, *FP8)] + [small.to(d) for d in (torch.int64, torch.int32, torch.int8, torch.bool)]

    for found, expected in zip(compiled(casts)(x, small), casts(x, small)):
        assert_same_bits(found, expected, f"{found.dtype}")


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.bool], ids=str)
def test_casts_of_integers_to_fp8(dtype):
    x = torch.tensor([0, 1, 17, 255, -300, 464, 480, 61439, 61440, 2**24 + 1, 2**31 - 1, -(2**31)]).to(dtype)
    for found, expected in zip(compiled(to_fp8)(x), to_fp8(x)):
        assert_same_bits(found, expected)


VIEWS = {
    "f32 as i32": lambda x: (x * 2).view(torch.int32) + 1,
    "f32 there and back": lambda x: (x * 2).view(torch.int32).view(torch.float32) + 1,
    "f64 as i64": lambda x: x.double().view(torch.int64) >> 3,
    "f16 as i16": lambda x: x.half().view(torch.int16),
    "i16 as bf16": lambda x: (x * 100).to(torch.int16).view(torch.bfloat16),
    "FP8 as bytes": lambda x: [x.to(dtype).view(torch.uint8) for dtype in FP8],
    "one FP8 as the other": lambda x: x.to(FP8[0]).view(torch.uint8).view(FP8[1]).float(),
    "twice": lambda x: (x.to(FP8[0]).view(torch.uint8), x.to(FP8[0]).view(torch.uint8)[1:]),
    "bytes as signed ones": lambda x: (x * 100).to(torch.int32).to(torch.uint8).view(torch.int8),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_as_another_type_have_the_bits(name):
    x = torch.linspace(-3, 5, 35).reshape(5, 7)
    found, expected = (torch.utils._pytree.tree_leaves(function(x)) for function in (compiled(VIEWS[name]), VIEWS[name]))
    for got, want in zip(found, expected):
        assert_same_bits(got, want, name)


def test_arguments_in_fp8_are_seen_as_bytes():
    for dtype in FP8:
        x = torch.linspace(-3, 5, 35).to(dtype).reshape(5, 7)
        for found, expected in zip(*[function(x) for function in (compiled(as_bytes), as_bytes)]):
            assert_same_bits(found, expected)


def as_bytes(x):
    return x.view(torch.uint8), x.view(torch.uint8)[::2] & 3, x.view(torch.uint8).view(x.dtype).float()
