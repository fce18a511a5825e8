# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The driver API beside kernels: graphs and their capture, copies of boxes, libraries,
# pools, pointers, entry points by name.

import ctypes

import numpy
import pytest

from cuda_driver import DriverError, Module
from programs import on

u32, u64, size, pointer, integer = ctypes.c_uint, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int
ref = ctypes.byref
HOST, DEVICE = 1, 2


class Side(ctypes.Structure):
    """One side of a CUDA_MEMCPY3D."""

    _fields_ = [("x", size), ("y", size), ("z", size), ("lod", size), ("type", integer), ("host", pointer), ("device", u64),
                ("array", pointer), ("reserved", pointer), ("pitch", size), ("height", size)]


class Box(ctypes.Structure):
    """CUDA_MEMCPY3D."""

    _fields_ = [("source", Side), ("target", Side), ("width", size), ("height", size), ("depth", size)]


class KernelNode(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS."""

    _fields_ = [("function", pointer), ("grid", u32 * 3), ("block", u32 * 3), ("shared", u32), ("parameters", pointer),
                ("extra", pointer), ("kernel", pointer), ("context", pointer)]


class Fill(ctypes.Structure):
    """CUDA_MEMSET_NODE_PARAMS."""

    _fields_ = [("to", u64), ("pitch", size), ("value", u32), ("element", u32), ("width", size), ("height", size)]


# x[i] = 2 x[i] + 1
PTX = """.version 8.0
.target sm_89
.address_size 64
.visible .global .align 4 .u32 number = 42;
.visible .entry step(.param .u64 x) {
  .reg .b32 %r<4>; .reg .b64 %rd<4>;
  ld.param.u64 %rd0, [x]; mov.u32 %r0, %tid.x; mul.wide.u32 %rd1, %r0, 4; add.u64 %rd0, %rd0, %rd1;
  ld.global.u32 %r1, [%rd0]; mad.lo.u32 %r1, %r1, 2, 1; st.global.u32 [%rd0], %r1;
  ret;
}
"""


class Bench:
    """A stream, an array of eight numbers and the kernel that changes it."""

    def __init__(self, kernels):
        self.driver, self.x = kernels.driver, kernels.zeros(8, numpy.uint32)
        self.module, self.stream = Module(self.driver, PTX), pointer()
        self.call = self.driver.call
        self.call("cuStreamCreate", ref(self.stream), u32(1))
        self.address = u64(self.x.address.value)
        self.parameters = (pointer * 1)(ctypes.addressof(self.address))

    def step(self, stream):
        ones = [u32(n) for n in (1, 1, 1, 8, 1, 1, 0)]
        self.call("cuLaunchKernel", self.module.kernel("step"), *ones, stream, self.parameters, None)

    def instantiate(self, graph):
        ready = pointer()
        self.call("cuGraphInstantiateWithFlags", ref(ready), graph, u64(0))
        return ready

    def run(self, ready):
        self.call("cuGraphLaunch", ready, self.stream)
        self.call("cuStreamSynchronize", self.stream)
        return self.x.read().tolist()


@pytest.fixture
def bench(kernels):
    return Bench(kernels)


@on("reductions")
def test_a_captured_stream_runs_when_its_graph_is_launched(bench):
    graph, status = pointer(), integer()
    bench.call("cuStreamBeginCapture_v2", bench.stream, integer(0))
    bench.call("cuMemsetD32Async", bench.address, u32(5), size(8), bench.stream)
    bench.step(bench.stream)
    bench.step(bench.stream)
    bench.call("cuStreamIsCapturing", bench.stream, ref(status))
    assert status.value == 1 and bench.x.read().tolist() == [0] * 8
    with pytest.raises(DriverError) as error:
        bench.call("cuStreamSynchronize", bench.stream)
    assert error.value.name == "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED" or error.value.name.endswith("INVALIDATED")
    if error.value.code == 900:
        bench.call("cuStreamEndCapture", bench.stream, ref(graph))
        count = size()
        bench.call("cuGraphGetNodes", graph, None, ref(count))
        assert count.value == 3
        ready = bench.instantiate(graph)
        assert bench.run(ready) == [23] * 8 and bench.run(ready) == [23] * 8


@on("reductions")
def test_streams_join_a_capture_by_events(bench):
    other, fork, join, graph = pointer(), pointer(), pointer(), pointer()
    bench.call("cuStreamCreate", ref(other), u32(1))
    bench.call("cuEventCreate", ref(fork), u32(2))
    bench.call("cuEventCreate", ref(join), u32(2))
    bench.call("cuStreamBeginCapture_v2", bench.stream, integer(0))
    bench.step(bench.stream)
    bench.call("cuEventRecord", fork, bench.stream)
    bench.call("cuStreamWaitEvent", other, fork, u32(0))
    bench.step(other)
    bench.call("cuEventRecord", join, other)
    bench.call("cuStreamWaitEvent", bench.stream, join, u32(0))
    bench.step(bench.stream)
    bench.call("cuStreamEndCapture", bench.stream, ref(graph))
    assert bench.run(bench.instantiate(graph)) == [7] * 8


@on("reductions")
def test_a_stream_that_does_not_come_back_is_an_error(bench):
    other, fork, graph = pointer(), pointer(), pointer()
    bench.call("cuStreamCreate", ref(other), u32(1))
    bench.call("cuEventCreate", ref(fork), u32(2))
    bench.call("cuStreamBeginCapture_v2", bench.stream, integer(0))
    bench.step(bench.stream)
    bench.call("cuEventRecord", fork, bench.stream)
    bench.call("cuStreamWaitEvent", other, fork, u32(0))
    bench.step(other)
    with pytest.raises(DriverError) as error:
        bench.call("cuStreamEndCapture", bench.stream, ref(graph))
    assert error.value.name == "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"


@on("reductions")
def test_graphs_made_by_hand_run_in_their_order(bench):
    graph, fill, first, second = pointer(), pointer(), pointer(), pointer()
    kernel = KernelNode(bench.module.kernel("step"), (u32 * 3)(1, 1, 1), (u32 * 3)(8, 1, 1), 0,
                        ctypes.addressof(bench.parameters))
    bench.call("cuGraphCreate", ref(graph), u32(0))
    bench.call("cuGraphAddKernelNode_v2", ref(second), graph, None, size(0), ref(kernel))
    bench.call("cuGraphAddKernelNode_v2", ref(first), graph, None, size(0), ref(kernel))
    context = pointer()
    bench.call("cuCtxGetCurrent", ref(context))
    bench.call("cuGraphAddMemsetNode", ref(fill), graph, None, size(0), ref(Fill(bench.address.value, 0, 1, 4, 8, 1)), context)
    # Added last, it comes first.
    before, after = (pointer * 2)(fill, first), (pointer * 2)(first, second)
    bench.call("cuGraphAddDependencies_v2", graph, before, after, None, size(2))
    ready = bench.instantiate(graph)
    assert bench.run(ready) == [7] * 8
    kernel.block[0] = 4
    bench.call("cuGraphExecKernelNodeSetParams_v2", ready, second, ref(kernel))
    assert bench.run(ready) == [7] * 4 + [3] * 4


@on("reductions")
def test_boxes_are_copied_with_their_pitches(bench, kernels):
    source = numpy.arange(4 * 6 * 8, dtype=numpy.uint8).reshape(4, 6, 8)
    device, out = kernels.upload(source), numpy.zeros((3, 5), numpy.uint8)
    box = Box(Side(x=2, y=1, type=DEVICE, device=device.address.value, pitch=8, height=6),
              Side(x=1, type=HOST, host=out.ctypes.data, pitch=5, height=3), 4, 3, 1)
    box.source.z = 2
    bench.call("cuMemcpy3D_v2", ref(box))
    assert numpy.array_equal(out[:, 1:], source[2, 1:4, 2:6]) and not out[:, 0].any()


@on("reductions")
def test_libraries_have_kernels_and_variables(bench):
    library, kernel, name, address, bytes_ = pointer(), pointer(), ctypes.c_char_p(), u64(), size()
    bench.call("cuLibraryLoadData", ref(library), ctypes.c_char_p(PTX.encode()), None, None, u32(0), None, None, u32(0))
    bench.call("cuLibraryGetKernel", ref(kernel), library, b"step")
    bench.call("cuKernelGetName", ref(name), kernel)
    bench.call("cuLibraryGetGlobal", ref(address), ref(bytes_), library, b"number")
    value = u32()
    bench.call("cuMemcpyDtoH_v2", ref(value), address, size(4))
    assert name.value == b"step" and bytes_.value == 4 and value.value == 42
    ones = [u32(n) for n in (1, 1, 1, 8, 1, 1, 0)]
    bench.call("cuLaunchKernel", kernel, *ones, None, bench.parameters, None)
    assert bench.x.read().tolist() == [1] * 8
    bench.call("cuLibraryUnload", library)


@on("reductions")
def test_pointers_know_what_they_belong_to(bench):
    kind, start, bytes_ = u32(), u64(), size()
    inside = u64(bench.address.value + 12)
    bench.call("cuPointerGetAttribute", ref(kind), integer(2), inside)
    bench.call("cuPointerGetAttribute", ref(start), integer(11), inside)
    bench.call("cuPointerGetAttribute", ref(bytes_), integer(12), inside)
    assert kind.value == DEVICE and start.value == bench.address.value and bytes_.value == 32
    host = (ctypes.c_char * 64)()
    with pytest.raises(DriverError):
        bench.call("cuPointerGetAttribute", ref(kind), integer(2), u64(ctypes.addressof(host)))


@on("reductions")
def test_pools_give_memory(bench):
    pool, address, threshold = pointer(), u64(), u64(1 << 20)
    bench.call("cuDeviceGetDefaultMemPool", ref(pool), integer(0))
    bench.call("cuMemPoolSetAttribute", pool, integer(4), ref(threshold))
    threshold.value = 0
    bench.call("cuMemPoolGetAttribute", pool, integer(4), ref(threshold))
    assert threshold.value == 1 << 20
    bench.call("cuMemAllocFromPoolAsync", ref(address), size(256), pool, bench.stream)
    bench.call("cuMemsetD8Async", address, ctypes.c_ubyte(7), size(256), bench.stream)
    bench.call("cuStreamSynchronize", bench.stream)
    out = (ctypes.c_ubyte * 256)()
    bench.call("cuMemcpyDtoH_v2", out, address, size(256))
    assert set(out) == {7}
    bench.call("cuMemFreeAsync", address, bench.stream)


@on("reductions")
def test_entry_points_are_found_in_the_version_asked_for(bench):
    found, status = pointer(), integer()
    for name in (b"cuMemAlloc", b"cuGraphLaunch", b"cuStreamBeginCapture", b"cuLaunchKernelEx", b"cuGraphInstantiate"):
        bench.call("cuGetProcAddress_v2", name, ref(found), integer(12080), u64(0), ref(status))
        assert found.value and status.value == 0
    assert bench.driver.library.cuGetProcAddress_v2(b"cuNoSuchThing", ref(found), integer(12080), u64(0), ref(status)) == 500
    assert not found.value and status.value == 1
