# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Graphs of work: captured from streams, made by hand, changed and updated.

import ctypes

import pytest
from driver_bench import Bench, Fill, KernelNode, integer, pointer, ref, size, u32, u64

from cuda_driver import DriverError
from programs import on


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
    bench.call("cuStreamEndCapture", bench.stream, ref(graph))
    count = size()
    bench.call("cuGraphGetNodes", graph, None, ref(count))
    assert count.value == 3
    ready = bench.instantiate(graph)
    assert bench.run(ready) == [23] * 8 and bench.run(ready) == [23] * 8


@on("reductions")
def test_waiting_for_a_stream_ends_its_capture(bench):
    graph = pointer()
    bench.call("cuStreamBeginCapture_v2", bench.stream, integer(0))
    bench.step(bench.stream)
    for name, arguments in (("cuStreamSynchronize", [bench.stream]), ("cuStreamEndCapture", [bench.stream, ref(graph)])):
        with pytest.raises(DriverError) as error:
            bench.call(name, *arguments)
        ending = "UNSUPPORTED" if name == "cuStreamSynchronize" else "INVALIDATED"
        assert error.value.name == "CUDA_ERROR_STREAM_CAPTURE_" + ending and not graph.value


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


def nodes_of(bench, name, *arguments):
    """The nodes that a call hands out."""
    count = size()
    bench.call(name, *arguments, None, ref(count))
    nodes = (pointer * count.value)()
    bench.call(name, *arguments, nodes, ref(count))
    return list(nodes)


class Chain:
    """A graph that fills x with 1 and runs the kernel twice."""

    def __init__(self, bench, value=1):
        self.bench, self.graph, context = bench, pointer(), pointer()
        self.fill, self.first, self.second = pointer(), pointer(), pointer()
        self.kernel = KernelNode(bench.module.kernel("step"), (u32 * 3)(1, 1, 1), (u32 * 3)(8, 1, 1), 0,
                                 ctypes.addressof(bench.parameters))
        bench.call("cuCtxGetCurrent", ref(context))
        bench.call("cuGraphCreate", ref(self.graph), u32(0))
        fill = Fill(bench.address.value, 0, value, 4, 8, 1)
        bench.call("cuGraphAddMemsetNode", ref(self.fill), self.graph, None, size(0), ref(fill), context)
        self.add_kernel(self.first, self.fill)
        self.add_kernel(self.second, self.first)

    def add_kernel(self, node, after):
        # The structure of CUDA 11 is the beginning of today's.
        self.bench.call("cuGraphAddKernelNode", ref(node), self.graph, (pointer * 1)(after), size(1), ref(self.kernel))


@on("reductions")
def test_nodes_say_what_they_do(bench):
    chain = Chain(bench)
    kernel, fill = KernelNode(), Fill()
    bench.call("cuGraphKernelNodeGetParams_v2", chain.first, ref(kernel))
    bench.call("cuGraphMemsetNodeGetParams", chain.fill, ref(fill))
    parameters = ctypes.cast(kernel.parameters, ctypes.POINTER(ctypes.POINTER(u64)))
    assert (kernel.function, list(kernel.block)) == (chain.kernel.function, [8, 1, 1])
    assert parameters[0][0] == bench.address.value and (fill.value, fill.width) == (1, 8)
    with pytest.raises(DriverError) as error:
        bench.call("cuGraphMemsetNodeGetParams", chain.first, ref(fill))
    assert error.value.name == "CUDA_ERROR_INVALID_VALUE"


@on("reductions")
def test_edges_are_listed_and_removed(bench, kernels, tmp_path):
    chain, count = Chain(bench), size(2)
    sources, targets = (pointer * 2)(), (pointer * 2)()
    bench.call("cuGraphGetEdges_v2", chain.graph, sources, targets, None, ref(count))
    edges = {(chain.fill.value, chain.first.value), (chain.first.value, chain.second.value)}
    assert count.value == 2 and set(zip(sources, targets)) == edges
    picture = tmp_path / "graph.dot"
    bench.call("cuGraphDebugDotPrint", chain.graph, str(picture).encode(), u32(0))
    assert picture.read_text().count("step") == 2 and picture.read_text().count(" -> ") == 2
    if not kernels.is_gpu:  # NVIDIA's driver writes more, and other names
        assert "step <<<(1,1,1), (8,1,1)>>>" in picture.read_text() and "n0 -> n1" in picture.read_text()
    bench.call("cuGraphRemoveDependencies_v2", chain.graph, (pointer * 1)(chain.first), (pointer * 1)(chain.second), None, size(1))
    assert set(nodes_of(bench, "cuGraphGetRootNodes", chain.graph)) == {chain.fill.value, chain.second.value}


@on("reductions")
def test_a_ready_graph_is_updated_from_one_like_it(bench):
    class Result(ctypes.Structure):
        _fields_ = [("result", integer), ("node", pointer), ("source", pointer)]

    chain, other, result = Chain(bench), Chain(bench, value=10), Result()
    ready = bench.instantiate(chain.graph)
    assert bench.run(ready) == [7] * 8
    bench.call("cuGraphExecUpdate_v2", ready, other.graph, ref(result))
    assert result.result == 0 and bench.run(ready) == [43] * 8
    other.add_kernel(pointer(), other.second)
    with pytest.raises(DriverError) as error:
        bench.call("cuGraphExecUpdate_v2", ready, other.graph, ref(result))
    # CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED; the graph stays what it was.
    assert error.value.name == "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE" and result.result == 2
    assert bench.run(ready) == [43] * 8


@on("reductions")
def test_a_node_that_is_switched_off_does_nothing(bench):
    chain, on_or_off = Chain(bench), u32()
    ready = bench.instantiate(chain.graph)
    bench.call("cuGraphNodeSetEnabled", ready, chain.first, u32(0))
    bench.call("cuGraphNodeGetEnabled", ready, chain.first, ref(on_or_off))
    assert on_or_off.value == 0 and bench.run(ready) == [3] * 8
    bench.call("cuGraphNodeSetEnabled", ready, chain.first, u32(1))
    assert bench.run(ready) == [7] * 8


@on("reductions")
def test_nodes_of_any_kind_are_added_by_one_call(bench):
    class Params(ctypes.Structure):
        """CUgraphNodeParams."""

        _fields_ = [("type", integer), ("reserved", integer * 3), ("of", ctypes.c_ubyte * 232), ("end", ctypes.c_longlong)]

    chain, node, child = Chain(bench), pointer(), pointer()

    def add(graph, kind, params, after):
        whole = Params(kind)
        ctypes.memmove(whole.of, ref(params), ctypes.sizeof(params))
        bench.call("cuGraphAddNode_v2", ref(node), graph, (pointer * len(after))(*after), None, size(len(after)), ref(whole))

    kernel, graph_kind, kernel_kind = chain.kernel, 4, 0
    add(chain.graph, kernel_kind, kernel, [chain.second])
    assert bench.run(bench.instantiate(chain.graph)) == [15] * 8
    outer = pointer()
    bench.call("cuGraphCreate", ref(outer), u32(0))
    add(outer, graph_kind, pointer(chain.graph.value), [])
    add(outer, kernel_kind, kernel, [node])
    assert bench.run(bench.instantiate(outer)) == [31] * 8
    (root,) = nodes_of(bench, "cuGraphGetRootNodes", outer)
    bench.call("cuGraphChildGraphNodeGetGraph", pointer(root), ref(child))
    assert len(nodes_of(bench, "cuGraphGetNodes", child)) == 4


@on("reductions")
def test_clones_know_their_originals(bench):
    chain, copy, twin = Chain(bench), pointer(), pointer()
    bench.call("cuGraphClone", ref(copy), chain.graph)
    bench.call("cuGraphNodeFindInClone", ref(twin), chain.second, copy)
    assert twin.value in nodes_of(bench, "cuGraphGetNodes", copy) and twin.value != chain.second.value
