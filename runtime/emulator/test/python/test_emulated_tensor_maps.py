# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# cuTensorMapEncodeTiled and its kin: what cuda.h requires of their arguments.

import ctypes

import numpy
import pytest

import cuda_driver
from programs import on

PLAIN = dict(kind=7, rank=2, address=0x7000000000, sizes=(64, 40), strides=(256,), box=(32, 8), steps=(1, 1),
             interleave=0, swizzle=0, promotion=0, fill=0)


def encode(kernels, map_offset=0, **changes):
    """The code that cuTensorMapEncodeTiled returns for PLAIN with changes."""
    a = dict(PLAIN, **changes)
    memory = (ctypes.c_char * 320)()
    place = -(-ctypes.addressof(memory) // 64) * 64 + map_offset
    rank = len(a["sizes"])
    narrow = ctypes.c_uint32 * max(rank, 1)
    try:
        kernels.driver.call(
            "cuTensorMapEncodeTiled", ctypes.c_void_p(place), ctypes.c_int(a["kind"]), ctypes.c_uint32(a["rank"]),
            ctypes.c_void_p(a["address"]), (ctypes.c_uint64 * rank)(*a["sizes"]),
            (ctypes.c_uint64 * rank)(*a["strides"]), narrow(*a["box"]), narrow(*a["steps"]),
            *[ctypes.c_int(a[name]) for name in ("interleave", "swizzle", "promotion", "fill")])
    except cuda_driver.DriverError as error:
        return error.name
    return "CUDA_SUCCESS"


ALLOWED = [
    {}, dict(kind=0, box=(16, 1)), dict(swizzle=3), dict(swizzle=2, box=(16, 8)), dict(swizzle=1, box=(8, 8)),
    dict(fill=1), dict(sizes=(2**32, 2**32), strides=(2**40 - 16,)), dict(box=(256, 128)), dict(steps=(1, 8)),
    dict(promotion=3), dict(rank=1, sizes=(64,), strides=(), box=(32,), steps=(1,)),
    dict(rank=5, sizes=(64, 2, 3, 4, 5), strides=(256, 512, 1536, 6144), box=(32, 1, 1, 1, 1), steps=(1,) * 5),
]
REFUSED = [
    dict(map_offset=32), dict(kind=16), dict(rank=0), dict(rank=6, sizes=(64,) * 6, strides=(256,) * 5, box=(4,) * 6,
                                                          steps=(1,) * 6),
    dict(address=0x7000000008), dict(sizes=(64, 0)), dict(sizes=(64, 2**32 + 1)), dict(strides=(264,)),
    dict(strides=(2**40,)), dict(box=(32, 0)), dict(box=(32, 257)), dict(box=(3, 8)), dict(steps=(1, 0)),
    dict(steps=(1, 9)), dict(swizzle=1), dict(swizzle=2), dict(swizzle=7), dict(interleave=1), dict(interleave=3),
    dict(promotion=4), dict(fill=2), dict(kind=3, fill=1),
]


@on("tma")
@pytest.mark.parametrize("changes", ALLOWED, ids=str)
def test_maps(kernels, changes):
    assert encode(kernels, **changes) == "CUDA_SUCCESS"


@on("tma")
@pytest.mark.parametrize("changes", REFUSED, ids=str)
def test_maps_that_are_refused(kernels, changes):
    if kernels.is_gpu and "map_offset" in changes:
        pytest.skip("CUDA 13's driver takes maps at any multiple of 32, cuda.h asks for 64")
    assert encode(kernels, **changes) == "CUDA_ERROR_INVALID_VALUE"


@on("tma")
def test_another_address(kernels):
    x, y = (numpy.arange(40 * 64, dtype=numpy.int32).reshape(40, 64) + i * 10000 for i in range(2))
    tensor = kernels.tensor_map(kernels.upload(x), "int32", (64, 40), [256], (32, 8))
    other, out = kernels.upload(y), kernels.empty((8, 32), numpy.int32)
    kernels.driver.call("cuTensorMapReplaceAddress", ctypes.c_void_p(tensor.address),
                        ctypes.c_void_p(other.address.value))
    kernels("load_tile_2d", 1, 64, tensor, kernels.upload(numpy.array([32, 8], numpy.int32)), numpy.uint32(1024), out,
            shared=2048)
    assert (kernels.read(out) == y[8:16, 32:]).all()
    with pytest.raises(cuda_driver.DriverError, match="INVALID_VALUE"):
        kernels.driver.call("cuTensorMapReplaceAddress", ctypes.c_void_p(tensor.address), ctypes.c_void_p(8))
