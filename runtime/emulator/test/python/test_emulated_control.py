# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cuda/control.cu and debug.cu, llvm/kernels.c: calls, tables, memory of every space,
# messages, failures; unoptimised code; what LLVM's backend makes of C.

import re

import numpy
import pytest
from formats import BF16, F16, fma_odd, same_bits, same_codes

from cuda_driver import flush_messages
from programs import on

CALLS = [lambda x: 3 * x, lambda x: x * x, lambda x: -x]


def integers(count, seed=0, low=-100, high=100):
    return numpy.random.default_rng(seed).integers(low, high, count).astype(numpy.int32)


def run_call_table(kernels):
    which = integers(128, low=0, high=3)
    y = kernels.empty(128, numpy.int32)
    kernels("call_table", 2, 64, kernels.upload(which), y)
    assert kernels.read(y).tolist() == [CALLS[call](i) for i, call in enumerate(which)]


@on("control")
def test_call_table(kernels):
    run_call_table(kernels)


@on("kernels", "llvm")
def test_call_table_of_llvm(kernels):
    run_call_table(kernels)


@on("control")
def test_recursion(kernels):
    y = kernels.empty(24, numpy.uint32)
    kernels("recursion", 1, 24, y)
    # Ackermann's function has closed forms up to m = 2.
    assert kernels.read(y).tolist() == [(i // 3 + 1, i // 3 + 2, 2 * (i // 3) + 3)[i % 3] for i in range(24)]


@on("control")
def test_structures_by_value(kernels):
    kind = numpy.dtype([("a", "i4"), ("b", "f8"), ("c", "f4", 3)], align=True)
    x = numpy.array((5, 1.5, (1, 2, 3)), kind)
    y = kernels.empty(8, numpy.float64)
    kernels("structures", 1, 8, x.tobytes(), y)

    def rotate(a, b, c, by):
        return a + by, b * by, [c[(by + i) % 3] for i in range(3)]

    expected = []
    for t in range(8):
        a, b, c = rotate(*rotate(5, 1.5, [1, 2, 3], t), 2)
        expected.append(a + b + c[0] * 100 + c[1] * 1000 + c[2] * 10000)
    assert kernels.read(y).tolist() == expected


def wrap(x):
    return (x + 2**31) % 2**32 - 2**31


def dispatch(program, x, eighth):
    """The values of the switch in control.cu and kernels.c, which differ in case 8."""
    other, step = 1, 0
    while step < len(program):
        code = program[step]
        if code == 0:
            x = wrap(x + other)
        elif code == 1:
            x = wrap(x - 3)
        elif code == 2:
            x = wrap(x * 5)
        elif code == 3:
            other = x & 15
        elif code == 4:
            x ^= wrap(other << 3)
        elif code == 5:
            x = bin(x & 0xffffffff).count("1")
        elif code in (6, 7):
            x = min(x, 1000) if code == 6 else x
            other = wrap(other + x)
        elif code == 8:
            x = eighth(x)
        elif code == 9:
            step += 1
        else:
            x = wrap(-x)
        step += 1
    return wrap(x + other)


def run_dispatch(kernels, eighth):
    steps, threads = 40, 64
    program = integers(steps * threads, low=0, high=12).reshape(steps, threads)
    y = kernels.empty(threads, numpy.int32)
    kernels("dispatch", 1, threads, kernels.upload(program), steps, y)
    assert kernels.read(y).tolist() == [dispatch(program[:, t].tolist(), t, eighth) for t in range(threads)]


@on("control")
def test_switch(kernels):
    run_dispatch(kernels, lambda x: x)
    assert kernels.module.variable("zeros", numpy.int32).read().sum() > 0


@on("kernels", "llvm")
def test_branch_table(kernels):
    run_dispatch(kernels, lambda x: wrap(int(format(x & 0xffffffff, "032b")[::-1], 2)))


@on("control")
def test_local_arrays(kernels):
    x = integers(96 * 16).reshape(96, 16)
    y = kernels.empty(x.shape, numpy.int32)
    kernels("local_sort", 3, 32, kernels.upload(x), y)
    assert (kernels.read(y) == numpy.sort(x, 1)).all()


@on("control")
def test_arrays_on_the_stack(kernels):
    counts = integers(96, low=0, high=120)
    y = kernels.empty(96, numpy.int32)
    kernels("stack_array", 3, 32, kernels.upload(counts), y)

    def expected(count):
        total = 0
        for i in reversed(range(count)):
            total = (31 * total + (i ^ count)) & 0xffffffff
        return total - (total >> 31 << 32)

    assert kernels.read(y).tolist() == [expected(int(count)) for count in counts]


@on("control")
def test_generic_pointers(kernels):
    x, t = integers(32), numpy.arange(32)
    y = kernels.empty(32, numpy.int32)
    kernels("generic_pointers", 1, 32, kernels.upload(x), y)
    coefficients = numpy.array([3, -1, 4, 1, -5, 9, 2, 6])
    loaded = numpy.choose(t % 4, [x, 2 * (x[::-1] + 1), x + 1, coefficients[t % 8]])
    assert (kernels.read(y) == loaded * 8 + numpy.array([0, 1, 2, 4])[t % 4]).all()


@on("control")
def test_globals_and_dynamic_shared_memory(kernels):
    y = kernels.empty(64, numpy.float32)
    kernels.module.variable("scale_of_host", numpy.float32).write(numpy.array([0.5], numpy.float32))
    kernels("globals", 2, 32, y, shared=256)
    t = numpy.arange(64) % 32
    coefficients = numpy.array([3, -1, 4, 1, -5, 9, 2, 6])[(31 - t) % 8]
    letters = numpy.frombuffer(b"emulated", numpy.uint8)[t % 8]
    assert (kernels.read(y) == coefficients * 0.5 + 9.5 + letters).all()
    assert kernels.module.variable("counter", numpy.int32).read()[0] == 42


@on("control")
def test_messages(kernels, capfd):
    x = numpy.array([-1.5, 2.25, 1e6, -0.0625], numpy.float32)
    kernels("messages", 1, 32, 4, kernels.upload(x))
    flush_messages()
    expected = ["thread %d of 32: %s %.3f %c %d%%" % (i, "below" if v < 0 else "above", v, ord("a") + i, -5000000000 * i)
                for i, v in enumerate(x)]
    assert sorted(capfd.readouterr().out.splitlines()) == sorted(expected)


@on("control")
def test_assertions(kernels, capfd):
    kernels("asserts", 2, 32, 40, kernels.upload(numpy.ones(40, numpy.int32)))
    x = numpy.ones(40, numpy.int32)
    x[37] = -1
    error = kernels.fails("asserts", 2, 32, 40, kernels.upload(x))
    flush_messages()
    captured = capfd.readouterr()
    assert error.name == "CUDA_ERROR_ASSERT"
    assert re.search(r"control\.cu:\d+.*[Aa]ssertion `INDEX >= n \|\| x\[INDEX\] >= 0", captured.out + captured.err)


@on("control")
def test_traps(kernels):
    kernels("traps", 2, 32, -1)
    assert kernels.fails("traps", 2, 32, 33).name in ("CUDA_ERROR_LAUNCH_FAILED", "CUDA_ERROR_ILLEGAL_INSTRUCTION")


@on("control")
def test_divergence(kernels):
    x = integers(32, low=0, high=40)
    x[[3, 17]] = 13
    y = kernels.empty(32, numpy.int32)
    kernels("divergence", 1, 32, kernels.upload(x), y)
    mask = int((x != 13).sum())

    def one(value):
        total = 0
        for i in range(20):
            if value % 5 == i:
                break
            if (value ^ i) & 1:
                continue
            total += sum(i * j + 1 for j in range(i, value % 7))
        return total + (mask << 16)

    assert kernels.read(y).tolist() == [-7 if value == 13 else one(value) for value in x.tolist()]


@on("control")
def test_identities_are_plausible(kernels):
    kernels.exact = False
    y = kernels.empty((2 * 2, 96, 6), numpy.int64)
    kernels("identities", (4, 1), 96, y)
    lane, warp, _, timer, ticks, place = numpy.moveaxis(kernels.read(y), -1, 0)
    assert (lane == numpy.arange(96) % 32).all() and (timer == 1).all() and (ticks >= 0).all() and (place == 1).all()
    assert all(len(set(row)) == 3 for row in warp.tolist())


@on("debug")
def test_unoptimised_code(kernels):
    n = 90
    y = kernels.empty(n + 2, numpy.int32)
    kernels("collatz_steps", 2, 64, n, y)

    def steps(x):
        count = 0
        while x != 1:
            x, count = (3 * x + 1 if x % 2 else x // 2), count + 1
        return count

    expected = [steps(i + 1) for i in range(n)]
    assert kernels.read(y).tolist() == expected + [max(expected[:64]), max(expected[64:])]


@on("kernels", "llvm")
@pytest.mark.parametrize("name, kind", [("halves", F16), ("brains", BF16)])
def test_narrow_floats_of_llvm(kernels, name, kind):
    random = numpy.random.default_rng(1)
    n = 500
    codes = [kind.encode(random.normal(scale=5, size=n)) for _ in range(2)]
    y = kernels.empty((6 if kind is F16 else 4, n), numpy.uint16)
    kernels(name, 4, 128, n, *map(kernels.upload, codes), y)
    a, b = map(kind.decode, codes)
    rows = [fma_odd(1.0, a, b), a * b, (a / b).astype(numpy.float32)]
    rows += [numpy.trunc(a) + 0.0, fma_odd(a, b, a), numpy.where(a < b, a, b)] if kind is F16 else [
        (a.astype(numpy.float32) * numpy.float32(0.1))]
    actual = kernels.read(y)
    for row, values in enumerate(rows):
        same_codes(kind, actual[row], kind.encode(values))


@on("kernels", "llvm")
def test_packed_halves_of_llvm(kernels):
    random = numpy.random.default_rng(2)
    a, b = (F16.encode(random.normal(size=(200, 2))) for _ in range(2))
    y = kernels.empty(a.shape, numpy.uint16)
    kernels("half_pairs", 2, 128, 200, kernels.upload(a), kernels.upload(b), y)
    a, b = F16.decode(a), F16.decode(b)
    # Clang contracts a * b + c within an expression.
    same_codes(F16, kernels.read(y), F16.encode(fma_odd(a, b, a)))


@on("kernels", "llvm")
def test_wide_integers_of_llvm(kernels):
    a, b = numpy.random.default_rng(3).integers(0, 2**64, (2, 200), numpy.uint64)
    y = kernels.empty((6, 200), numpy.uint64)
    kernels("wide", 2, 128, 200, kernels.upload(a), kernels.upload(b), y)
    actual = kernels.read(y)
    for i, (high, low) in enumerate(zip(a.tolist(), b.tolist())):
        x = high << 64 | low
        shifted = x >> (high & 127)
        results = [x * 0x123456789abcdef, shifted, x + shifted]
        assert actual[:, i].tolist() == [part % 2**64 for result in results for part in (result, result >> 64 & 2**64 - 1)]


@on("kernels", "llvm")
def test_block_sum_of_llvm(kernels):
    x = numpy.random.default_rng(4).normal(size=(3, 256)).astype(numpy.float32)
    y = kernels.empty(3, numpy.float32)
    kernels("block_sum", 3, 256, kernels.upload(x), y)
    tree, half = x, 128
    while half:
        tree, half = tree[:, :half] + tree[:, half:2 * half], half // 2
    same_bits(kernels.read(y), tree[:, 0])


@on("kernels", "llvm")
def test_orderings_of_llvm(kernels):
    x = numpy.random.default_rng(5).uniform(0, 1000, 4 * 64).astype(numpy.float32)
    counts, greatest = kernels.zeros(3, numpy.int32), kernels.zeros(1, numpy.float32)
    kernels("orderings", 4, 64, kernels.upload(x), counts, greatest)
    whole = x.astype(numpy.int32)
    assert kernels.read(counts).tolist() == [x.size, whole.max(), numpy.bitwise_xor.reduce(whole)]
    assert kernels.read(greatest)[0] == x.max()


@on("kernels", "llvm")
def test_structures_of_llvm(kernels):
    kind = numpy.dtype({"names": ["name", "count", "weights", "colour"], "formats": ["(5,)i1", "i2", "(3,)f8", "(4,)f4"],
                        "offsets": [0, 6, 8, 32], "itemsize": 48})
    x = numpy.array(([1, 2, 3, 4, 64], 7, [0.25, 0.5, 1.0], [1, 2, 3, 4]), kind)
    y = kernels.empty(6, numpy.float32)
    kernels("records", 1, 6, x.tobytes(), y)
    t = numpy.arange(6)
    colour = numpy.array([1, 2, 3, 4]) + 0.5 + t[:, None]
    expected = (colour * [1, 2, 4, 8]).sum(1) + 9 + 64 + numpy.array([0.25, 0.5, 1.0])[t % 3]
    assert (kernels.read(y) == expected).all()
