# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Memory of the host's own that is registered: kernels reach it at its own addresses, and not beyond.

import ctypes
import mmap

import numpy
import pytest
from driver_bench import Bench, integer, pointer, ref, size, u32, u64

from cuda_driver import DriverError
from programs import on

ONES = [u32(n) for n in (1, 1, 1, 8, 1, 1, 0)]


@pytest.fixture
def bench(kernels):
    return Bench(kernels)


@pytest.fixture
def host(bench):
    """A page of the host's, as numbers, that is unregistered at the end."""
    page = mmap.mmap(-1, mmap.PAGESIZE)
    numbers = numpy.frombuffer(page, numpy.uint32)
    yield numbers
    bench.driver.library.cuMemHostUnregister(pointer(numbers.ctypes.data))


def register(bench, host):
    bench.call("cuMemHostRegister_v2", pointer(host.ctypes.data), size(host.nbytes), u32(2))
    address = u64()
    bench.call("cuMemHostGetDevicePointer_v2", ref(address), pointer(host.ctypes.data), u32(0))
    return address


def refused(bench, name, *arguments):
    with pytest.raises(DriverError) as error:
        bench.call(name, *arguments)
    return error.value.name.replace("CUDA_ERROR_", "")


@on("reductions")
def test_kernels_reach_it(bench, host):
    host[:8] = range(8)
    address = register(bench, host)
    parameters = (pointer * 1)(ctypes.addressof(address))
    bench.call("cuLaunchKernel", bench.module.kernel("step"), *ONES, bench.stream, parameters, None)
    bench.call("cuStreamSynchronize", bench.stream)
    assert host[:8].tolist() == [2 * i + 1 for i in range(8)]


@on("reductions")
def test_copies_and_fills_reach_it(bench, host):
    address = register(bench, host)
    bench.call("cuMemsetD32_v2", address, u32(7), size(8))
    bench.call("cuMemcpyDtoD_v2", bench.x.address, address, size(32))
    assert bench.x.read().tolist() == [7] * 8 and host[:9].tolist() == [7] * 8 + [0]
    assert refused(bench, "cuMemsetD32_v2", address, u32(7), size(host.size + 1)) == "INVALID_VALUE"


@on("reductions")
def test_it_is_known_as_the_hosts(bench, host):
    address, kind = register(bench, host), u32()
    bench.call("cuPointerGetAttribute", ref(kind), integer(2), address)
    assert kind.value == 1


@on("reductions")
def test_it_is_registered_once(bench, host):
    whole, bytes_ = pointer(host.ctypes.data), size(host.nbytes)
    register(bench, host)
    assert refused(bench, "cuMemHostRegister_v2", whole, bytes_, u32(0)) == "HOST_MEMORY_ALREADY_REGISTERED"
    bench.call("cuMemHostUnregister", whole)
    assert refused(bench, "cuMemHostUnregister", whole) == "HOST_MEMORY_NOT_REGISTERED"
    register(bench, host)
    assert refused(bench, "cuMemHostRegister_v2", None, bytes_, u32(0)) == "INVALID_VALUE"
    assert refused(bench, "cuMemHostRegister_v2", whole, size(0), u32(0)) == "INVALID_VALUE"


@on("reductions")
def test_kernels_do_not_reach_what_is_not_registered(bench, host, kernels):
    name = ctypes.create_string_buffer(64)
    bench.call("cuDeviceGetName", name, integer(64), integer(kernels.device))
    if not name.value.startswith(b"fp8emu"):
        pytest.skip("a fault leaves a GPU's context without use")
    address = u64(register(bench, host).value + host.nbytes - 16)
    parameters = (pointer * 1)(ctypes.addressof(address))
    bench.call("cuLaunchKernel", bench.module.kernel("step"), *ONES, bench.stream, parameters, None)
    assert refused(bench, "cuStreamSynchronize", bench.stream) == "ILLEGAL_ADDRESS"
    bench.driver.reset(kernels.device)
    kernels.buffers, kernels.module = [], None
