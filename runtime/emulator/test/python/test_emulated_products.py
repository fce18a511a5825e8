# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Tensor cores: cuda/wmma.cu, tensor_cores.cu, wgmma.cu, block_scaled.cu and tcgen05.cu.
# Small integers give exact sums in every model of the hardware; other numbers must lie
# within what aligning the summands to the largest may lose.

import numpy
import pytest
from formats import BF16, E2M1, E2M3, E3M2, E4M3, E5M2, F16

from programs import on

RANDOM = 0x5EED


def small(shape, seed=0, limit=4):
    return numpy.random.default_rng([RANDOM, seed]).integers(-limit, limit + 1, shape).astype(numpy.float64)


def normal(kind, shape, seed=0):
    """Codes of numbers around 1, and their values."""
    codes = kind.encode(numpy.random.default_rng([RANDOM, seed]).normal(size=shape), saturate=True)
    return codes, kind.decode(codes)


def near(actual, a, b, c=0.0, bits=13):
    """a x b^T + c, each summand cut `bits` bits below the greatest among them and the sum so far."""
    exact = a @ b.T + c
    terms = numpy.abs(a)[:, None, :] * numpy.abs(b)[None, :, :]
    reach = numpy.maximum(terms.sum(-1), numpy.abs(c) + terms.max(-1))
    limit = (a.shape[1] + 2) * reach * 2.0**-bits
    assert (numpy.abs(actual - exact) <= limit).all(), numpy.max(numpy.abs(actual - exact) / limit)


def encoded(kind, values):
    codes = kind.encode(values)
    assert (kind.decode(codes) == values).all()
    return codes


@on("wmma")
@pytest.mark.parametrize("exact", [True, False])
def test_wmma_f16(kernels, exact):
    (ca, a), (cb, b) = normal(F16, (16, 16), 1), normal(F16, (16, 16), 2)
    if exact:
        a, b = small((16, 16), 1), small((16, 16), 2)
        ca, cb = encoded(F16, a), encoded(F16, b)
    c = small((16, 16), 3).astype(numpy.float32)
    d = kernels.empty((16, 16), numpy.float32)
    kernels("wmma_f16", 1, 32, kernels.upload(ca), kernels.upload(cb), kernels.upload(c), d)
    if exact:
        assert (kernels.read(d) == a @ b.T + c).all()
    else:
        near(kernels.read(d), a, b, c, bits=22)


@on("wmma")
def test_wmma_sums_in_f16(kernels):
    a, b = small((32, 48), 1), small((48, 8), 2)
    d = kernels.empty((32, 8), numpy.uint16)
    kernels("wmma_f16_sums", 1, 32, 48, kernels.upload(encoded(F16, a.T.copy())), kernels.upload(encoded(F16, b)), d)
    assert (F16.decode(kernels.read(d)) == a @ b).all()


@on("wmma")
def test_wmma_bf16(kernels):
    a, b = small((8, 16), 1), small((16, 32), 2)
    d = kernels.empty((32, 8), numpy.float32)
    kernels("wmma_bf16", 1, 32, kernels.upload(encoded(BF16, a)), kernels.upload(encoded(BF16, b)), d)
    assert (kernels.read(d) == 2 * (a @ b + 0.5).T).all()


@on("wmma")
def test_wmma_tf32(kernels):
    random = numpy.random.default_rng(3)
    a, b = random.normal(size=(2, 16, 8)).astype(numpy.float32)
    d = kernels.empty((16, 16), numpy.float32)
    kernels("wmma_tf32", 1, 32, kernels.upload(a), kernels.upload(b), d)

    def tf32(x):  # rounded to 10 bits of mantissa, ties away from zero
        return ((x.view(numpy.uint32) + 0x1000) & 0xffffe000).astype(numpy.uint32).view(numpy.float32).astype(numpy.float64)

    near(kernels.read(d), tf32(a), tf32(b), bits=22)


@on("wmma")
def test_wmma_integers(kernels):
    random = numpy.random.default_rng(4)
    a, b = random.integers(-128, 128, (2, 16, 16)).astype(numpy.int8)
    c = random.integers(-2**31, 2**31, (16, 16)).astype(numpy.int32)
    d = kernels.empty((16, 16), numpy.int32)
    kernels("wmma_s8", 1, 32, kernels.upload(a), kernels.upload(b), kernels.upload(c), d)
    assert (kernels.read(d) == (a.astype(numpy.int64) @ b.T.astype(numpy.int64) + c.T).astype(numpy.int32)).all()
    a, b, c[:] = a.view(numpy.uint8), b.view(numpy.uint8), 2**31 - 200000
    kernels("wmma_u8_saturating", 1, 32, kernels.upload(a), kernels.upload(b), kernels.upload(c), d)
    assert (kernels.read(d) == numpy.minimum(a.astype(numpy.int64) @ b.astype(numpy.int64) + c, 2**31 - 1)).all()


@on("wmma")
def test_wmma_f64(kernels):
    a, b = small((8, 4), 1), small((8, 4), 2)
    d = kernels.empty((8, 8), numpy.float64)
    kernels("wmma_f64", 1, 32, kernels.upload(a), kernels.upload(b), d)
    assert (kernels.read(d) == a @ b.T + 1).all()


FLOAT_PRODUCTS = [("mma_e4m3", E4M3, E4M3, 32, 13), ("mma_e5m2", E5M2, E5M2, 32, 13), ("mma_mixed", E4M3, E5M2, 32, 13),
                  ("mma_f16", F16, F16, 16, 22), ("mma_bf16", BF16, BF16, 16, 22)]


@on("tensor_cores")
@pytest.mark.parametrize("name, kind_a, kind_b, k, bits", FLOAT_PRODUCTS, ids=[case[0] for case in FLOAT_PRODUCTS])
def test_mma(kernels, name, kind_a, kind_b, k, bits):
    a, b, c = small((16, k), 1), small((8, k), 2), small((16, 8), 3, 100).astype(numpy.float32)
    d = kernels.empty((16, 8), numpy.float32)
    kernels(name, 1, 32, kernels.upload(encoded(kind_a, a)), kernels.upload(encoded(kind_b, b)), kernels.upload(c), d)
    assert (kernels.read(d) == a @ b.T + c).all()
    (ca, a), (cb, b) = normal(kind_a, (16, k), 4), normal(kind_b, (8, k), 5)
    kernels(name, 1, 32, kernels.upload(ca), kernels.upload(cb), kernels.upload(c), d)
    near(kernels.read(d), a, b, c, bits)


@on("tensor_cores")
@pytest.mark.parametrize("name", ["mma_e4m3", "mma_e5m2"])
def test_mma_of_nan_and_infinity(kernels, name):
    kind = E4M3 if name == "mma_e4m3" else E5M2
    codes = encoded(kind, numpy.ones((16, 32)))
    codes[3, 5], c = kind.nan, numpy.zeros((16, 8), numpy.float32)
    if kind is E5M2:
        codes[7, 1], codes[9, 2], codes[9, 3] = 0x7c, 0x7c, 0xfc
    c[12, 2] = -numpy.inf
    d = kernels.empty((16, 8), numpy.float32)
    kernels(name, 1, 32, kernels.upload(codes), kernels.upload(encoded(kind, numpy.ones((8, 32)))), kernels.upload(c), d)
    with numpy.errstate(invalid="ignore"):
        expected = kind.decode(codes).sum(1)[:, None] + c
    numpy.testing.assert_array_equal(kernels.read(d), expected.astype(numpy.float32))


@on("tensor_cores")
def test_mma_tf32(kernels):
    a, b = numpy.random.default_rng(6).normal(size=(16, 8)), numpy.random.default_rng(7).normal(size=(8, 8))
    a, b = ((x.astype(numpy.float32).view(numpy.uint32) & 0xffffe000).view(numpy.float32) for x in (a, b))
    c, d = numpy.zeros((16, 8), numpy.float32), kernels.empty((16, 8), numpy.float32)
    kernels("mma_tf32", 1, 32, kernels.upload(a), kernels.upload(b), kernels.upload(c), d)
    near(kernels.read(d), a.astype(numpy.float64), b.astype(numpy.float64), bits=22)


@on("tensor_cores")
def test_mma_integers(kernels):
    random = numpy.random.default_rng(8)
    a, b = random.integers(-128, 128, (16, 32)).astype(numpy.int8), random.integers(-128, 128, (8, 32)).astype(numpy.int8)
    c, d = random.integers(-1000, 1000, (16, 8)).astype(numpy.int32), kernels.empty((16, 8), numpy.int32)
    wide_b = b.astype(numpy.int64).T
    kernels("mma_s8", 1, 32, kernels.upload(a), kernels.upload(b), kernels.upload(c), d)
    assert (kernels.read(d) == a.astype(numpy.int64) @ wide_b + c).all()
    c[:8], c[8:] = 2**31 - 1, -2**31
    kernels("mma_u8s8", 1, 32, kernels.upload(a), kernels.upload(b), kernels.upload(c), d)
    sums = a.view(numpy.uint8).astype(numpy.int64) @ wide_b + c
    assert (kernels.read(d) == numpy.clip(sums, -2**31, 2**31 - 1)).all()


@on("tensor_cores")
def test_mma_of_four_bits(kernels):
    random = numpy.random.default_rng(9)
    a, b = random.integers(-8, 8, (16, 64)), random.integers(-8, 8, (8, 64))
    c, d = random.integers(-1000, 1000, (16, 8)).astype(numpy.int32), kernels.empty((16, 8), numpy.int32)
    packed = [(x[:, ::2] & 15 | (x[:, 1::2] & 15) << 4).astype(numpy.uint8) for x in (a, b)]
    kernels("mma_s4", 1, 32, *map(kernels.upload, packed), kernels.upload(c), d)
    assert (kernels.read(d) == a @ b.T + c).all()


@on("tensor_cores")
def test_mma_sums_in_f16(kernels):
    a, b, c = small((16, 16), 1), small((8, 16), 2), small((16, 8), 3)
    d = kernels.empty((16, 8), numpy.uint16)
    kernels("mma_f16_sums", 1, 32, *(kernels.upload(encoded(F16, x)) for x in (a, b, c)), d)
    assert (F16.decode(kernels.read(d)) == a @ b.T + c).all()


@on("tensor_cores")
def test_gemm_through_ldmatrix(kernels):
    m, n, k = 48, 24, 64
    a, b = small((m, k), 1, 2), small((k, n), 2, 1)
    c = kernels.empty((m, n), numpy.uint16)
    kernels("gemm_bf16", (n // 8, m // 16), 32, n, k, kernels.upload(encoded(BF16, a)), kernels.upload(encoded(BF16, b)), c)
    assert (kernels.read(c) == BF16.encode(a @ b)).all()


def fragments(matrix):
    """The elements of an 8 x 8 matrix of 16 bits that each lane gets: two neighbours of row lane / 4."""
    pairs = matrix.reshape(32, 2).astype(numpy.uint32)
    return pairs[:, 0] | pairs[:, 1] << 16


@on("tensor_cores")
def test_matrix_loads(kernels):
    x = numpy.arange(1, 257, dtype=numpy.uint16).reshape(4, 8, 8)
    y = kernels.empty((11, 32), numpy.uint32)
    kernels("matrix_loads", 1, 32, kernels.upload(x), y)
    straight, turned = [fragments(m) for m in x], [fragments(m.T.copy()) for m in x]
    assert (kernels.read(y) == numpy.stack([straight[0], turned[0], *turned, *straight, turned[0]])).all()


@pytest.mark.parametrize("x", [numpy.arange(1, 257, dtype=numpy.uint16).reshape(4, 8, 8)], ids=[""])
@on("tensor_cores")
def test_matrix_stores(kernels, x):
    if kernels.arch == "sm_89":
        pytest.skip("stmatrix needs sm_90")
    y = kernels.empty((4, 32, 8), numpy.uint16)
    kernels("matrix_stores", 1, 32, kernels.upload(numpy.stack([fragments(m) for m in x])), y)
    turned = x.transpose(0, 2, 1)
    expected = numpy.zeros((4, 4, 8, 8), numpy.uint16)
    expected[0, 0], expected[1, :2], expected[2], expected[3] = x[0], turned[:2], x, turned
    assert (kernels.read(y) == expected.reshape(4, 32, 8)).all()


def tile_map(kernels, codes, kind, rows, columns):
    return kernels.tensor_map(kernels.upload(codes), kind, codes.shape[::-1], [codes.strides[0]], (columns, rows), swizzle=128)


@on("wgmma")
@pytest.mark.parametrize("k", [128, 384])
@pytest.mark.parametrize("name, kind_a, kind_b, sign", [("wgmma_e4m3", E4M3, E4M3, 1), ("wgmma_e5m2_negated", E5M2, E4M3, -1)])
def test_wgmma_fp8(kernels, name, kind_a, kind_b, sign, k):
    a, b = small((64, k), 1), small((64, k), 2)
    c = kernels.empty((64, 64), numpy.float32)

    def multiply(a, b):
        kernels(name, 1, 128, tile_map(kernels, a, "uint8", 64, 128), tile_map(kernels, b, "uint8", 64, 128), k, c)
        return kernels.read(c)

    assert (multiply(encoded(kind_a, a), encoded(kind_b, b)) == sign * (a @ b.T)).all()
    (ca, a), (cb, b) = normal(kind_a, (64, k), 3), normal(kind_b, (64, k), 4)
    near(multiply(ca, cb), sign * a, b)


@on("wgmma")
def test_wgmma_integers(kernels):
    a, b = numpy.random.default_rng(1).integers(-128, 128, (2, 64, 256)).astype(numpy.int8)
    c = kernels.empty((64, 64), numpy.int32)
    kernels("wgmma_s8", 1, 128, *(tile_map(kernels, x, "uint8", 64, 128) for x in (a, b)), 256, c)
    assert (kernels.read(c) == a.astype(numpy.int64) @ b.T.astype(numpy.int64)).all()


@on("wgmma")
def test_wgmma_tf32(kernels):
    a, b = small((64, 64), 1).astype(numpy.float32), small((64, 64), 2).astype(numpy.float32)
    c = kernels.empty((64, 64), numpy.float32)
    kernels("wgmma_tf32", 1, 128, *(tile_map(kernels, x, "float32", 64, 32) for x in (a, b)), 256, c)
    assert (kernels.read(c) == a @ b.T).all()


@on("wgmma")
def test_wgmma_from_registers(kernels):
    a, b = small((64, 16), 1), small((16, 64), 2)
    c = kernels.empty((64, 64), numpy.float32)
    kernels("wgmma_bf16_registers", 1, 128, kernels.upload(encoded(BF16, a)), kernels.upload(encoded(BF16, b)), c)
    assert (kernels.read(c) == a @ b + 1).all()


@on("wgmma")
def test_wgmma_sums_in_f16(kernels):
    a, b = small((64, 16), 1), small((16, 16), 2)
    c = kernels.empty((64, 16), numpy.uint16)
    kernels("wgmma_f16_sums", 1, 128, kernels.upload(encoded(F16, a)), kernels.upload(encoded(F16, b)), c)
    assert (F16.decode(kernels.read(c)) == a @ b.T).all()


@on("wgmma")
@pytest.mark.parametrize("m, n, k", [(64, 64, 128), (64, 128, 640), (192, 64, 1024)])
def test_wgmma_pipeline(kernels, m, n, k):
    a, b = small((m, k), 1, 2), small((n, k), 2, 2)
    c = kernels.empty((m, n), numpy.float32)
    kernels("wgmma_pipeline", (n // 64, m // 64), 256, *(tile_map(kernels, encoded(E4M3, x), "uint8", 64, 128) for x in (a, b)),
            n, k, c, shared=3 * 2 * 64 * 128 + 1024)
    assert (kernels.read(c) == a @ b.T).all()


@on("block_scaled")
@pytest.mark.parametrize("name, kind_a, kind_b", [("mma_e3m2_e2m3", E3M2, E2M3), ("mma_e4m3_e2m1", E4M3, E2M1)])
def test_mma_of_mixed_widths(kernels, name, kind_a, kind_b):
    a, b, c = small((16, 32), 1), small((8, 32), 2), small((16, 8), 3).astype(numpy.float32)
    d = kernels.empty((16, 8), numpy.float32)

    def container(kind, x):  # four bits stand in bits 2 to 5 of their byte, six in the low ones
        return encoded(kind, x) << (2 if kind is E2M1 else 0)

    kernels(name, 1, 32, kernels.upload(container(kind_a, a)), kernels.upload(container(kind_b, b)), kernels.upload(c), d)
    assert (kernels.read(d) == a @ b.T + c).all()


SCALED = [("mma_mx_e4m3", E4M3, E4M3, 32, 1), ("mma_mx_e5m2_e2m1", E5M2, E2M1, 32, 1), ("mma_mxf4", E2M1, E2M1, 64, 2),
          ("mma_nvf4", E2M1, E2M1, 64, 4)]


@on("block_scaled")
@pytest.mark.parametrize("name, kind_a, kind_b, k, scales", SCALED, ids=[case[0] for case in SCALED])
def test_mma_with_block_scales(kernels, name, kind_a, kind_b, k, scales):
    a, b, c = small((16, k), 1), small((8, k), 2), small((16, 8), 3).astype(numpy.float32)
    random = numpy.random.default_rng(4)
    powers = [random.integers(-2, 3, (rows, scales)) for rows in (16, 8)]
    if name == "mma_nvf4":
        factors = [numpy.ldexp(1.0, p) * 1.5 for p in powers]
        codes = [encoded(E4M3, f).view(numpy.uint32) for f in factors]
    else:
        factors = [numpy.ldexp(1.0, p) for p in powers]
        codes = [(p + 127).astype(numpy.uint8).view("u%d" % scales) for p in powers]

    def container(kind, x):
        code = encoded(kind, x)
        return code[:, ::2] | code[:, 1::2] << 4 if k == 64 else code << (2 if kind is E2M1 else 0)

    d = kernels.empty((16, 8), numpy.float32)
    kernels(name, 1, 32, kernels.upload(container(kind_a, a)), kernels.upload(container(kind_b, b)), kernels.upload(c),
            *map(kernels.upload, codes), d)
    scaled = [x * numpy.repeat(f, k // scales, 1) for x, f in zip((a, b), factors)]
    assert (kernels.read(d) == scaled[0] @ scaled[1].T + c).all()


@on("tcgen05")
def test_tcgen05_fp8(kernels):
    a, b = small((128, 128), 1), small((64, 128), 2)
    c = kernels.empty((128, 64), numpy.float32)
    kernels("tcgen05_e4m3", 1, 128, tile_map(kernels, encoded(E4M3, a), "uint8", 128, 128),
            tile_map(kernels, encoded(E4M3, b), "uint8", 64, 128), c)
    assert (kernels.read(c) == a @ b.T).all()


@on("tcgen05")
def test_tcgen05_bf16(kernels):
    a, b = small((128, 64), 1), small((64, 64), 2)
    c = kernels.empty((128, 64), numpy.float32)
    kernels("tcgen05_bf16", 1, 128, tile_map(kernels, encoded(BF16, a), "bfloat16", 128, 64),
            tile_map(kernels, encoded(BF16, b), "bfloat16", 64, 64), c)
    assert (kernels.read(c) == a @ b.T).all()


@on("tcgen05")
def test_tcgen05_with_block_scales(kernels):
    a, b = small((128, 128), 1), small((64, 128), 2)
    powers = numpy.random.default_rng(3).integers(-2, 3, (2, 128, 4))
    # Row r, group g: byte r % 32 * 16 + r / 32 * 4 + g.
    codes = [(p + 127).astype(numpy.uint8).reshape(4, 32, 4).transpose(1, 0, 2).copy() for p in powers]
    c = kernels.empty((128, 64), numpy.float32)
    kernels("tcgen05_mx", 1, 128, tile_map(kernels, encoded(E4M3, a), "uint8", 128, 128),
            tile_map(kernels, encoded(E4M3, b), "uint8", 64, 128), *map(kernels.upload, codes), c)
    scaled_a = a * numpy.repeat(numpy.ldexp(1.0, powers[0]), 32, 1)
    scaled_b = b * numpy.repeat(numpy.ldexp(1.0, powers[1][:64]), 32, 1)
    assert (kernels.read(c) == scaled_a @ scaled_b.T).all()


@on("tcgen05")
def test_tcgen05_of_two_blocks(kernels):
    a, b = small((256, 128), 1), small((64, 128), 2)
    c = kernels.empty((256, 64), numpy.float32)
    kernels("tcgen05_pair", 2, 128, tile_map(kernels, encoded(E4M3, a), "uint8", 128, 128),
            tile_map(kernels, encoded(E4M3, b), "uint8", 32, 128), c)
    assert (kernels.read(c) == a @ b.T).all()


@on("tcgen05")
def test_shapes_of_tensor_memory(kernels):
    x = numpy.random.default_rng(5).integers(0, 2**32, (4, 32, 16)).astype(numpy.uint32)
    y = kernels.empty((4, 32, 20), numpy.uint32)
    kernels("tcgen05_shapes", 1, 128, kernels.upload(x), y)
    actual, lane = kernels.read(y), numpy.arange(32)
    for i in range(4):
        assert (actual[:, :, i] == x[:, lane // 4 + i // 2 * 8, 8 + lane % 4 * 2 + i % 2]).all()
    assert (actual[:, :, 4:12] == (x[:, :, ::2] & 0xffff | x[:, :, 1::2] << 16)).all()
    assert (actual[:, :, 12:] == x[:, :, :7:-1]).all()
