# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Casts, amaxes and transpositions bit for bit against a model in numpy: the rules of section "Cast" and "amax" of the
# dialect's documentation.

import numpy
import pytest
from compiled import PTX_VERSIONS, TYPES

FORMATS = {"f8E4M3FN": 448, "f8E5M2": 57344}
CHIPS = list(PTX_VERSIONS)
SPECIAL = [0.0, -0.0, numpy.nan, numpy.inf, -numpy.inf, 448.0, 464.0, 465.0, -500.0, 57344.0, 61440.0, -70000.0,
           2.0**-6, 2.0**-9, 2.0**-10, 1.5 * 2.0**-10, 2.0**-14, 2.0**-16, 2.0**-17, -(2.0**-18), 2.0**-126, 2.0**-130,
           1.0625, 1.1875, 1.125, -1.375, 3.3895e38]


def values(shape, dtype, seed, special=True):
    """Numbers of many magnitudes, special ones among them."""
    print("seed", seed)
    rng = numpy.random.default_rng(seed)
    x = rng.standard_normal(shape) * 2.0 ** rng.integers(-12, 12, shape)
    flat = x.reshape(-1)
    if special and flat.size > 4 * len(SPECIAL):
        flat[rng.choice(flat.size, len(SPECIAL), replace=False)] = SPECIAL
    with numpy.errstate(over="ignore"):
        return x.astype(dtype)


def cast(x, scale, format):
    """The bytes of x · scale."""
    with numpy.errstate(over="ignore"):
        scaled = numpy.asarray(x.astype(numpy.float32) * numpy.float32(scale))
    bytes = numpy.asarray(numpy.clip(scaled, -FORMATS[format], FORMATS[format]).astype(TYPES[format])).view(numpy.uint8)
    bytes[numpy.isnan(scaled)] = 0x7F
    return bytes


def unwritten(shape, element):
    """Memory for a result: the helper leaves arrays of NaN unwritten, so that reading it is an error."""
    return numpy.full(shape, numpy.nan, numpy.float32).astype(TYPES[element])


def same_bits(got, expected):
    got, expected = (numpy.asarray(a).view("u%d" % a.dtype.itemsize) for a in (got, expected))
    assert got.shape == expected.shape and (got == expected).all(), numpy.argwhere(got != expected)[:5]


def amax(x):
    wide = numpy.abs(x.astype(numpy.float32))
    return numpy.max(wide, initial=0, where=~numpy.isnan(wide)).astype(numpy.float32)


def memref(shape, element):
    return "memref<%s%s>" % ("".join("%dx" % size for size in shape), element)


class Cast:
    """A function with one cast of x by a scale. Results: data, data_t, scale_inv, amax."""

    def __init__(self, shape, element="bf16", format="f8E4M3FN", transposition=None, record=True):
        self.shape, self.element, self.format, self.transposition = shape, element, format, transposition
        self.results = [(shape, format)] + ([([shape[d] for d in transposition], format)] if transposition else [])
        self.results += [((), "f32")] * (2 if record else 1)
        self.record = record

    def source(self, arch):
        x, outs = memref(self.shape, self.element), [memref(*result) for result in self.results]
        return """module attributes {fp8.target = #fp8.chip<"%s">} {
  func.func @f(%%x: %s, %%s: memref<f32>, %s) {
    fp8.quantize %s ins(%%x : %s) scale(%%s : memref<f32>) outs(%s : %s) %s
    return
  }
}""" % (arch, x, ", ".join("%%o%d: %s" % out for out in enumerate(outs)), "record_amax" if self.record else "", x,
        ", ".join("%%o%d" % i for i in range(len(outs))), ", ".join(outs),
        "{transposition = array<i64: %s>}" % str(list(self.transposition))[1:-1] if self.transposition else "")

    def check(self, compile, arch, seed=1, scale=1.5):
        x = values(self.shape, TYPES[self.element], seed)
        function = compile(self.source(arch), arch)
        _, _, data, *rest = function(x, numpy.array(scale, numpy.float32), *(unwritten(*result) for result in self.results))
        expected = cast(x, scale, self.format)
        same_bits(data, expected)
        if self.transposition:
            same_bits(rest.pop(0), expected.transpose(self.transposition))
        same_bits(rest[0], numpy.float32(1) / numpy.float32(scale))
        if self.record:
            same_bits(rest[1], amax(x))


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("shape", [(1, 1), (100, 77), (128, 128), (300, 260), (130, 200)], ids=str)
@pytest.mark.parametrize("element", ["bf16", "f32"])
def test_rows_and_columns(compile, arch, shape, element):
    Cast(shape, element, transposition=(1, 0)).check(compile, arch)


@pytest.mark.parametrize("shape, transposition", [
    ((), None), ((1,), None), ((300,), None), ((3, 20, 33), (2, 0, 1)), ((3, 20, 40), (0, 2, 1)),
    ((2, 3, 16, 24), (0, 1, 3, 2)), ((2, 3, 16, 24), (3, 0, 1, 2)), ((2, 3, 17, 9), (0, 3, 1, 2)),
    ((2, 3, 16, 24), (2, 0, 3, 1)), ((5, 3, 24), (1, 0, 2)), ((4, 1, 30), (1, 0, 2)), ((7, 1), (1, 0)), ((1, 50), (1, 0)),
    ((0, 8), (1, 0)), ((8, 0), (1, 0))], ids=str)
def test_ranks_and_transpositions(compile, shape, transposition):
    Cast(shape, transposition=transposition).check(compile, "sm_89")


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("element", ["f16", "bf16", "f32"])
def test_formats(compile, element, format):
    Cast((72, 96), element, format, (1, 0)).check(compile, "sm_90a", seed=2, scale=0.75)


def test_rows_alone(compile):
    Cast((72, 96), record=False).check(compile, "sm_89")
