# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cuda/pipelines.cu and tma.cu: asynchronous copies, barriers with phases, the bulk copy
# engine with tensor maps.

import numpy
import pytest

from programs import on


def integers(count, seed=0, low=-100, high=100):
    return numpy.random.default_rng(seed).integers(low, high, count).astype(numpy.int32)


@on("pipelines")
@pytest.mark.parametrize("steps", [1, 2, 3, 10])
def test_stages_of_copies(kernels, steps):
    x = integers(steps * 64 * 4).reshape(steps, 64, 4)
    y = kernels.empty(64, numpy.int32)
    kernels("staged_sum", 1, 64, steps, kernels.upload(x), y)
    assert (kernels.read(y) == (x[:, ::-1] * [1, 2, 3, 4]).sum((0, 2))).all()


@on("pipelines")
def test_short_copies(kernels):
    x = integers(7 * 32)
    y = kernels.empty(x.size, numpy.int32)
    kernels("short_copies", 1, 32, kernels.upload(x), y)
    kept = numpy.arange(4) < 4 - numpy.arange(32)[:, None] % 5
    expected = numpy.concatenate([x[:96], (x[96:].reshape(32, 4) * kept).ravel()])
    assert (kernels.read(y) == expected).all()


@on("pipelines")
def test_pipeline_of_a_block(kernels):
    x = numpy.random.default_rng(1).normal(size=(7, 128)).astype(numpy.float32)
    y = kernels.empty(x.shape, numpy.float32)
    kernels("block_pipeline", 1, 128, 7, kernels.upload(x), y)
    assert (kernels.read(y) == 2 * x[:, ::-1]).all()


@on("pipelines")
@pytest.mark.parametrize("steps", [1, 2, 9])
def test_producer_and_consumers(kernels, steps):
    x = integers(steps * 96).reshape(steps, 96)
    y = kernels.empty(96, numpy.int32)
    kernels("producer_consumer", 1, 128, steps, kernels.upload(x), y)
    total = numpy.zeros(96, numpy.int64)
    for row in x:
        total = 3 * total + row[numpy.arange(32, 128) * 7 % 96]
    assert (kernels.read(y) == total).all()


@on("pipelines")
def test_threads_that_drop_out(kernels):
    x = integers(64)
    y = kernels.upload(numpy.full(64, 77, numpy.int32))
    kernels("dropping", 1, 64, kernels.upload(x), y)
    mine = (10 * x + x[::-1])[:48]
    assert (kernels.read(y) == numpy.concatenate([mine[::-1], numpy.full(16, 77)])).all()


@on("pipelines")
def test_named_barriers(kernels):
    x = integers(128)
    y = kernels.empty(128, numpy.int32)
    kernels("named_barriers", 1, 128, kernels.upload(x), y)
    low, high = x[63::-1], x[:63:-1]
    assert (kernels.read(y) == numpy.concatenate([low, high + 2 * low])).all()


@on("tma")
def test_bulk_copies(kernels):
    x = integers(3 * 256)
    y = kernels.empty(x.size, numpy.int32)
    kernels("bulk_copy", 3, 64, kernels.upload(x), y)
    assert (kernels.read(y) == 2 * x).all()


@on("tma")
def test_copy_through_a_barrier(kernels):
    x = integers(128)
    y = kernels.empty(128, numpy.int32)
    kernels("barrier_copy", 1, 128, kernels.upload(x), y)
    assert (kernels.read(y) == x[::-1]).all()


@on("tma")
def test_bulk_reductions(kernels):
    x = integers(5 * 64).reshape(5, 64)
    sums, least = kernels.zeros(64, numpy.int32), kernels.upload(numpy.full(64, 50, numpy.int32))
    floats = kernels.zeros(64, numpy.float32)
    kernels("bulk_reduce", 5, 64, kernels.upload(x), sums, least, floats)
    assert (kernels.read(sums) == x.sum(0)).all()
    assert (kernels.read(least) == numpy.minimum(x.min(0), 50)).all()
    assert (kernels.read(floats) == x.sum(0) * 0.25).all()


@on("tma")
def test_copy_to_a_neighbour(kernels):
    x = integers(6 * 64).reshape(3, 2, 64)
    y = kernels.empty(x.shape, numpy.int32)
    kernels("bulk_to_neighbour", 6, 64, kernels.upload(x), y)
    assert (kernels.read(y) == x[:, ::-1, ::-1] + 1).all()


def swizzled(tile, swizzle):
    """The bytes of a tile as shared memory holds them: chunks of 16 bytes change places."""
    flat = numpy.ascontiguousarray(tile).view(numpy.uint8).ravel()
    at = numpy.arange(flat.size)
    mask = swizzle // 16 - 1 if swizzle else 0
    out = numpy.empty_like(flat)
    out[at ^ ((at >> 7 & mask) << 4)] = flat
    return out


def cut(x, start, box, fill=0):
    """x[start : start + box], filled where that lies outside."""
    out = numpy.full(box, fill, x.dtype)
    inside, source = [], []
    for begin, size, limit in zip(start, box, x.shape):
        low, high = max(begin, 0), max(min(begin + size, limit), max(begin, 0))
        inside.append(slice(low - begin, high - begin))
        source.append(slice(low, high))
    out[tuple(inside)] = x[tuple(source)]
    return out


def map_of(kernels, buffer, kind, x, box, **options):
    return kernels.tensor_map(buffer, kind, x.shape[::-1], [s for s in x.strides[::-1][1:]], box[::-1], **options)


def load(kernels, x, kind, start, box, swizzle=0, **options):
    size = int(numpy.prod(box)) * x.itemsize
    y = kernels.empty(size, numpy.uint8)
    tensor = map_of(kernels, kernels.upload(x), kind, x, box, swizzle=swizzle, **options)
    kernels("load_tile_%dd" % x.ndim, 1, 64, tensor, kernels.upload(numpy.array(start[::-1], numpy.int32)),
            numpy.uint32(size), y, shared=size + 1024)
    return kernels.read(y)


TILES = [
    ((500,), (64,), (128,)), ((500,), (448,), (128,)), ((40, 64), (8, 16), (16, 32)), ((40, 64), (-3, 40), (16, 32)),
    ((40, 64), (36, -8), (8, 64)), ((40, 64), (100, 0), (8, 32)), ((6, 9, 32), (1, 2, 4), (2, 4, 8)),
    ((6, 9, 32), (5, -2, 28), (2, 4, 8)), ((3, 4, 5, 16), (1, -1, 3, 0), (2, 3, 4, 16)),
    ((2, 3, 4, 5, 16), (0, 1, 2, 3, 8), (2, 2, 2, 3, 8)), ((2, 3, 4, 5, 16), (-1, 2, 3, 4, 12), (2, 2, 2, 3, 8)),
]


@on("tma")
@pytest.mark.parametrize("shape, start, box", TILES, ids=[str(tile[:2]) for tile in TILES])
def test_tiles_of_tensors(kernels, shape, start, box):
    x = integers(shape, low=1, high=10**9)
    assert (load(kernels, x, "int32", start, box).view(numpy.int32).reshape(box) == cut(x, start, box)).all()


@on("tma")
@pytest.mark.parametrize("swizzle", [32, 64, 128])
@pytest.mark.parametrize("kind, columns", [("uint8", 1), ("bfloat16", 2), ("float32", 4)])
def test_swizzles(kernels, swizzle, kind, columns):
    random = numpy.random.default_rng(1)
    x = random.integers(1, 100, (40, 256)).astype({1: numpy.uint8, 2: numpy.uint16, 4: numpy.uint32}[columns])
    for start in ((8, 0), (-3, 32), (30, 256 - 16)):
        box = (24, swizzle // columns)
        assert (load(kernels, x, kind, start, box, swizzle=swizzle) == swizzled(cut(x, start, box), swizzle)).all()


@on("tma")
def test_fill_with_nan(kernels):
    kernels.exact = False  # an H100 fills with another NaN
    x = numpy.random.default_rng(2).normal(size=(20, 32)).astype(numpy.float32)
    tile = load(kernels, x, "float32", (10, 16), (16, 32), fill_nan=True).view(numpy.float32).reshape(16, 32)
    expected = cut(x, (10, 16), (16, 32), numpy.nan)
    numpy.testing.assert_array_equal(tile, expected)


@on("tma")
def test_steps_between_elements(kernels):
    x = integers((40, 64))
    y = kernels.empty((4, 32), numpy.int32)
    # Every second row of eight: four rows arrive.
    tensor = map_of(kernels, kernels.upload(x), "int32", x, (8, 32), element_strides=[1, 2])
    kernels("load_tile_2d", 1, 64, tensor, kernels.upload(numpy.array([16, 5], numpy.int32)), numpy.uint32(512), y,
            shared=1536)
    assert (kernels.read(y) == x[5:13:2, 16:48]).all()


@on("tma")
@pytest.mark.parametrize("add", [0, 1])
@pytest.mark.parametrize("swizzle", [0, 128])
@pytest.mark.parametrize("row, column", [(8, 32), (35, 40), (0, 36)])
def test_stores_of_tiles(kernels, add, swizzle, row, column):
    x, tile = integers((40, 64)), integers((8, 32), seed=1)
    buffer = kernels.upload(x)
    tensor = map_of(kernels, buffer, "int32", x, (8, 32), swizzle=swizzle)
    kernels("store_tile_2d", 1, 64, tensor, column, row, numpy.uint32(1024),
            kernels.upload(swizzled(tile, swizzle).view(numpy.int32)), add, shared=2048)
    rows, columns = row + numpy.arange(8)[:, None], column + numpy.arange(32)
    inside = (rows >= 0) & (rows < 40) & (columns >= 0) & (columns < 64)
    at = (numpy.broadcast_to(rows, inside.shape)[inside], numpy.broadcast_to(columns, inside.shape)[inside])
    expected = x.copy()
    expected[at] = tile[inside] + (x[at] if add else 0)
    assert (kernels.read(buffer) == expected).all()


@on("tma")
@pytest.mark.parametrize("row, column", [(0, 1), (0, 33), (0, -4), (-1, 0), (-2, -8)])
def test_stores_that_begin_where_none_may(kernels, row, column):
    """Within 16 bytes of a row, or before the tensor."""
    x = integers((40, 64))
    tensor = map_of(kernels, kernels.upload(x), "int32", x, (8, 32))
    tile = kernels.upload(integers((8, 32)).astype(numpy.int32))
    error = kernels.fails("store_tile_2d", 1, 64, tensor, column, row, numpy.uint32(1024), tile, 0, shared=2048)
    assert error.name == ("CUDA_ERROR_ILLEGAL_INSTRUCTION" if kernels.is_gpu else "CUDA_ERROR_LAUNCH_FAILED")


@on("tma")
@pytest.mark.parametrize("tiles", [2, 5])
def test_tiles_in_turns(kernels, tiles):
    x = integers((48, 32))
    tensor = map_of(kernels, kernels.upload(x), "int32", x, (8, 32), swizzle=128)
    y = kernels.empty(tiles * 1024, numpy.uint8)
    kernels("stream_tiles", 1, 64, kernels.upload(numpy.frombuffer(tensor.bytes(), numpy.uint8)), tiles, numpy.uint32(1024),
            y, shared=2048 + 1024)
    assert (kernels.read(y) == numpy.concatenate([swizzled(x[i * 8:i * 8 + 8], 128) for i in range(tiles)])).all()


@on("tma")
def test_multicast(kernels):
    x = integers((16, 32))
    tensor = map_of(kernels, kernels.upload(x), "int32", x, (8, 32))
    y = kernels.empty((2, 16, 32), numpy.int32)
    kernels("multicast", 2, 64, tensor, numpy.uint32(1024), y, shared=2048 + 1024)
    assert (kernels.read(y) == x).all()
