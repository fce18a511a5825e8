# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The driver API beside kernels: copies of boxes, libraries, pools, pointers, entry points
# by name.

import ctypes
import os
import shutil
import subprocess

import numpy
import pytest
from driver_bench import DEVICE, HOST, PTX, Bench, Box, Side, integer, pointer, ref, size, u32, u64

from cuda_driver import DriverError
from programs import on


@pytest.fixture
def bench(kernels):
    return Bench(kernels)


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
    bench.call("cuGetProcAddress_v2", b"cuNoSuchThing", ref(found), integer(12080), u64(0), ref(status))
    assert not found.value and status.value == 1


@on("reductions")
def test_memory_of_a_page_begins_at_one(bench):
    addresses = [u64() for _ in range(3)]
    for address in addresses:
        bench.call("cuMemAlloc_v2", ref(address), size(5000))
    assert [address.value % 4096 for address in addresses] == [0, 0, 0]


@on("reductions")
def test_pools_are_announced(bench):
    value = integer()
    bench.call("cuDeviceGetAttribute", ref(value), integer(115), integer(0))
    assert value.value == 1


@on("reductions")
def test_names_of_old_are_there_and_a_table_is_refused(bench):
    names = ["cuEventDestroy", "cuStreamDestroy", "cuCtxDestroy", "cuMemAlloc", "cuMemFree", "cuCtxPushCurrent", "cuModuleGetGlobal"]
    assert [name for name in names if not hasattr(bench.driver.library, name)] == []
    event = pointer()
    bench.call("cuEventCreate", ref(event), u32(0))
    bench.call("cuEventDestroy", event)
    table = pointer(1)
    assert bench.driver.library.cuGetExportTable(ref(table), bytes(16)) != 0


@on("reductions")
def test_the_ptx_in_a_cubin_runs(bench, tmp_path):
    ptxas = shutil.which("ptxas", path=os.environ.get("PATH", "") + ":/usr/local/cuda/bin")
    if not ptxas:
        pytest.skip("there is no ptxas")
    source, cubin = tmp_path / "k.ptx", tmp_path / "k.cubin"
    source.write_text(PTX + '.file 1 "k.py"\n.section .debug_macinfo { }\n')
    target = PTX.split(".target ")[1].split()[0]
    subprocess.run([ptxas, "-lineinfo", "-arch=" + target, source, "-o", cubin], check=True, timeout=100)
    module, address, bytes_, value = pointer(), u64(), size(), u32()
    bench.call("cuModuleLoadData", ref(module), cubin.read_bytes())
    bench.call("cuModuleGetGlobal_v2", ref(address), ref(bytes_), module, b"number")
    bench.call("cuMemcpyDtoH_v2", ref(value), address, size(4))
    assert value.value == 42
