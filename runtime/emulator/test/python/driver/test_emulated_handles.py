# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Handles that are not what they should be, things that have ended, and calls from several
# threads: an error each, or the right result, never a crash.

import ctypes
import threading

import pytest
from driver_bench import PTX, Bench, KernelNode, integer, pointer, ref, size, u32, u64

from cuda_driver import DriverError, Module
from programs import on

LAUNCH = [u32(n) for n in (1, 1, 1, 8, 1, 1, 0)]


@pytest.fixture
def bench(kernels):
    name = ctypes.create_string_buffer(64)
    kernels.driver.call("cuDeviceGetName", name, integer(64), integer(kernels.device))
    if not name.value.startswith(b"fp8emu"):
        pytest.skip("CUDA leaves open what wrong handles do")
    return Bench(kernels)


def refused(bench, name, *arguments):
    with pytest.raises(DriverError) as error:
        bench.call(name, *arguments)
    return error.value.name.replace("CUDA_ERROR_", "")


def graph_of(bench):
    """A graph with the kernel as its node, and the node's parameters."""
    graph, node = pointer(), pointer()
    kernel = KernelNode(bench.module.kernel("step"), (u32 * 3)(1, 1, 1), (u32 * 3)(8, 1, 1), 0, ctypes.addressof(bench.parameters))
    bench.call("cuGraphCreate", ref(graph), u32(0))
    bench.call("cuGraphAddKernelNode_v2", ref(node), graph, None, size(0), ref(kernel))
    return graph, node, kernel


@on("reductions")
def test_nodes_that_are_none(bench):
    graph, node, kernel = graph_of(bench)
    kind, count = integer(), size()
    bench.call("cuGraphNodeGetType", node, ref(kind))
    assert kind.value == 0
    bench.call("cuGraphDestroyNode", node)
    for wrong in (node, graph, pointer(8), None):
        assert refused(bench, "cuGraphNodeGetType", wrong, ref(kind)) == "INVALID_VALUE"
        assert refused(bench, "cuGraphDestroyNode", wrong) == "INVALID_VALUE"
        assert refused(bench, "cuGraphKernelNodeSetParams_v2", wrong, ref(kernel)) == "INVALID_VALUE"
        assert refused(bench, "cuGraphKernelNodeGetParams_v2", wrong, ref(kernel)) == "INVALID_VALUE"
        assert refused(bench, "cuGraphNodeGetDependencies", wrong, None, ref(count)) == "INVALID_VALUE"
        assert refused(bench, "cuGraphNodeGetDependentNodes", wrong, None, ref(count)) == "INVALID_VALUE"


@on("reductions")
def test_a_graph_takes_its_nodes_with_it(bench):
    graph, node, _ = graph_of(bench)
    bench.call("cuGraphDestroy", graph)
    assert refused(bench, "cuGraphNodeGetType", node, ref(integer())) == "INVALID_VALUE"


@on("reductions")
def test_a_handle_of_another_type_is_refused(bench):
    event, milliseconds = pointer(), ctypes.c_float()
    bench.call("cuEventCreate", ref(event), u32(0))
    assert refused(bench, "cuStreamSynchronize", event) == "INVALID_HANDLE"
    assert refused(bench, "cuEventQuery", bench.stream) == "INVALID_HANDLE"
    assert refused(bench, "cuLaunchKernel", bench.module.handle, *LAUNCH, bench.stream, bench.parameters, None) == "INVALID_HANDLE"
    assert refused(bench, "cuCtxSetCurrent", bench.stream) == "INVALID_CONTEXT"
    assert refused(bench, "cuCtxPushCurrent_v2", pointer(8)) == "INVALID_CONTEXT"
    bench.call("cuEventDestroy_v2", event)
    assert refused(bench, "cuEventElapsedTime", ref(milliseconds), event, event) == "INVALID_HANDLE"


@on("reductions")
def test_kernels_end_with_their_module(bench):
    graph, node, _ = graph_of(bench)
    ready, kernel, name = bench.instantiate(graph), bench.module.kernel("step"), ctypes.c_char_p()
    assert bench.run(ready) == [1] * 8
    bench.module.unload()
    assert refused(bench, "cuLaunchKernel", kernel, *LAUNCH, bench.stream, bench.parameters, None) == "INVALID_HANDLE"
    assert refused(bench, "cuFuncGetName", ref(name), kernel) == "INVALID_HANDLE"
    assert refused(bench, "cuGraphLaunch", ready, bench.stream) == "INVALID_HANDLE"
    assert refused(bench, "cuGraphKernelNodeGetParams_v2", node, ref(KernelNode())) == "INVALID_HANDLE"
    bench.call("cuCtxSynchronize")


@on("reductions")
def test_a_context_takes_what_was_made_in_it(bench, kernels):
    outer, own, stream, event, x = pointer(), pointer(), pointer(), pointer(), u64()
    bench.call("cuCtxGetCurrent", ref(outer))
    bench.call("cuCtxCreate_v2", ref(own), u32(0), integer(kernels.device))
    module = Module(bench.driver, PTX)
    kernel = module.kernel("step")
    bench.call("cuStreamCreate", ref(stream), u32(0))
    bench.call("cuEventCreate", ref(event), u32(0))
    bench.call("cuMemAlloc_v2", ref(x), size(64))
    found = pointer()
    bench.call("cuPointerGetAttribute", ref(found), integer(1), x)
    assert found.value == own.value
    # Its kernels and streams are not the other context's, and the other way round.
    assert refused(bench, "cuLaunchKernel", kernel, *LAUNCH, bench.stream, bench.parameters, None) == "INVALID_HANDLE"
    assert refused(bench, "cuEventRecord", event, bench.stream) == "INVALID_HANDLE"
    bench.call("cuEventRecord", event, stream)
    bench.call("cuLaunchKernel", kernel, *LAUNCH, stream, bench.parameters, None)
    bench.call("cuCtxSetCurrent", outer)
    assert refused(bench, "cuLaunchKernel", kernel, *LAUNCH, bench.stream, bench.parameters, None) == "INVALID_HANDLE"
    bench.call("cuCtxDestroy_v2", own)
    assert refused(bench, "cuStreamQuery", stream) == "INVALID_HANDLE"
    assert refused(bench, "cuEventQuery", event) == "INVALID_HANDLE"
    assert refused(bench, "cuModuleUnload", module.handle) == "INVALID_HANDLE"
    assert refused(bench, "cuMemFree_v2", x) == "INVALID_VALUE"
    assert refused(bench, "cuCtxSetCurrent", own) == "INVALID_CONTEXT"
    bench.step(bench.stream)
    assert bench.x.read().tolist() == [3] * 8


@on("reductions")
def test_a_context_destroyed_by_another_thread(bench, kernels):
    own, device, codes = pointer(), integer(), []
    bench.call("cuCtxCreate_v2", ref(own), u32(0), integer(kernels.device))
    library = bench.driver.library
    thread = threading.Thread(target=lambda: codes.append(library.cuCtxDestroy_v2(own)))
    thread.start()
    thread.join()
    assert codes == [0] and refused(bench, "cuCtxSynchronize") == "CONTEXT_IS_DESTROYED"
    assert refused(bench, "cuCtxGetDevice", ref(device)) == "CONTEXT_IS_DESTROYED"
    bench.call("cuCtxPopCurrent_v2", None)
    bench.call("cuCtxSynchronize")


@on("reductions")
def test_host_functions_of_an_inner_graph_may_wait_for_other_threads(bench):
    library, done = bench.driver.library, []

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def function(_):
        count = integer()
        thread = threading.Thread(target=lambda: done.append(library.cuDeviceGetCount(ref(count))), daemon=True)
        thread.start()
        thread.join(10)
        done.append(thread.is_alive())

    inner, outer, node = pointer(), pointer(), pointer()
    bench.call("cuGraphCreate", ref(inner), u32(0))
    bench.call("cuGraphCreate", ref(outer), u32(0))
    params = (pointer * 2)(ctypes.cast(function, pointer), None)
    bench.call("cuGraphAddHostNode", ref(node), inner, None, size(0), params)
    bench.call("cuGraphAddChildGraphNode", ref(node), outer, None, size(0), inner)
    bench.run(bench.instantiate(outer))
    assert done == [0, False]


@on("reductions")
def test_a_ready_graph_keeps_its_inner_graph(bench):
    graph, node, kernel = graph_of(bench)
    outer, child = pointer(), pointer()
    bench.call("cuGraphCreate", ref(outer), u32(0))
    bench.call("cuGraphAddChildGraphNode", ref(node), outer, None, size(0), graph)
    ready = bench.instantiate(outer)
    bench.call("cuGraphChildGraphNodeGetGraph", node, ref(child))
    bench.call("cuGraphGetNodes", child, ref(node), ref(size(1)))
    kernel.block[0] = 4
    bench.call("cuGraphKernelNodeSetParams_v2", node, ref(kernel))
    assert bench.run(ready) == [1] * 8 and bench.run(bench.instantiate(outer)) == [3] * 4 + [1] * 4


@on("reductions")
def test_lists_of_nodes_end_in_null(bench):
    graph, node, _ = graph_of(bench)
    nodes, count = (pointer * 3)(1, 1, 1), size(3)
    bench.call("cuGraphGetNodes", graph, nodes, ref(count))
    assert count.value == 1 and list(nodes) == [node.value, None, None]


@on("reductions")
def test_addresses_of_nobody_are_refused(bench):
    out = (ctypes.c_char * 16)()
    host = u64(ctypes.addressof(out))
    for wrong in (u64(0), u64(4096), host):
        assert refused(bench, "cuMemsetD8_v2", wrong, ctypes.c_ubyte(1), size(16)) == "INVALID_VALUE"
        assert refused(bench, "cuMemcpyHtoD_v2", wrong, out, size(16)) == "INVALID_VALUE"
        assert refused(bench, "cuMemcpyDtoH_v2", out, wrong, size(16)) == "INVALID_VALUE"
        assert refused(bench, "cuMemcpyDtoD_v2", bench.address, wrong, size(16)) == "INVALID_VALUE"
        assert refused(bench, "cuMemFree_v2", u64(wrong.value + 8)) == "INVALID_VALUE"
    # Where either may be meant, the host's is.
    bench.call("cuMemcpy", host, bench.address, size(16))
    variable, bytes_, pitch = u64(), size(), size()
    bench.call("cuModuleGetGlobal_v2", ref(variable), ref(bytes_), bench.module.handle, b"number")
    assert refused(bench, "cuMemFree_v2", variable) == "INVALID_VALUE"
    assert refused(bench, "cuMemFreeHost", bench.address) == "INVALID_VALUE"
    huge = size(1 << 62)
    assert refused(bench, "cuMemAllocPitch_v2", ref(variable), ref(pitch), huge, huge, u32(4)) == "OUT_OF_MEMORY"


@on("reductions")
def test_libraries_need_no_context(bench, kernels):
    library, kernel, context, blocks = pointer(), pointer(), pointer(), integer()
    bench.call("cuCtxGetCurrent", ref(context))
    bench.call("cuCtxSetCurrent", None)
    bench.call("cuLibraryLoadData", ref(library), ctypes.c_char_p(PTX.encode()), None, None, u32(0), None, None, u32(0))
    bench.call("cuLibraryGetKernel", ref(kernel), library, b"step")
    bench.call("cuKernelSetAttribute", integer(8), integer(1024), kernel, integer(kernels.device))
    bench.call("cuCtxSetCurrent", context)
    bench.call("cuFuncSetAttribute", kernel, integer(8), integer(2048))
    bench.call("cuOccupancyMaxActiveBlocksPerMultiprocessor", ref(blocks), kernel, integer(64), size(0))
    assert blocks.value >= 1
    # The sizes of clusters are the launch's, and what a kernel takes is what it is.
    assert refused(bench, "cuFuncSetAttribute", kernel, integer(11), integer(2)) == "NOT_SUPPORTED"
    assert refused(bench, "cuFuncSetAttribute", kernel, integer(4), integer(2)) == "INVALID_VALUE"
    bench.call("cuLibraryUnload", library)
    assert refused(bench, "cuKernelGetFunction", ref(pointer()), kernel) == "INVALID_HANDLE"


@on("reductions")
def test_what_a_capture_does_not_allow_ends_it(bench):
    graph, status, address = pointer(1), integer(), u64()
    bench.call("cuStreamBeginCapture_v2", bench.stream, integer(0))
    bench.step(bench.stream)
    assert refused(bench, "cuMemAllocAsync", ref(address), size(64), bench.stream) == "STREAM_CAPTURE_UNSUPPORTED"
    bench.call("cuStreamIsCapturing", bench.stream, ref(status))
    assert status.value == 2
    with pytest.raises(DriverError) as error:
        bench.step(bench.stream)
    assert error.value.name == "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"
    assert refused(bench, "cuStreamEndCapture", bench.stream, ref(graph)) == "STREAM_CAPTURE_INVALIDATED"
    assert not graph.value
    bench.step(bench.stream)
    assert bench.x.read().tolist() == [1] * 8


@on("reductions")
def test_the_entry_point_of_an_older_version(bench):
    library, found, status = bench.driver.library, pointer(), integer()
    old, new = (ctypes.cast(getattr(library, name), pointer).value for name in ("cuMemPrefetchAsync", "cuMemPrefetchAsync_v2"))
    for version, function in ((12000, old), (12020, new)):
        bench.call("cuGetProcAddress_v2", b"cuMemPrefetchAsync", ref(found), integer(version), u64(0), ref(status))
        assert found.value == function and status.value == 0
    # CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
    bench.call("cuGetProcAddress_v2", b"cuStreamGetCaptureInfo", ref(found), integer(10010), u64(0), ref(status))
    assert not found.value and status.value == 2
    assert refused(bench, "cuGetProcAddress_v2", b"cuInit", ref(found), integer(99000), u64(0), ref(status)) == "INVALID_VALUE"
