# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Images that programs load: cubins that carry their PTX, fat binaries, and what cannot be run, with its reason.

import ctypes
import os
import shutil
import subprocess

import images
import pytest
from driver_bench import PTX, Bench, integer, pointer, ref, size, u32, u64

from cuda_driver import DriverError
from programs import on

PATH = os.environ.get("PATH", "") + ":/usr/local/cuda/bin"
KERNELS = {"step": 8}


def numbered(number, target="sm_89"):
    """The kernel with a variable of that value."""
    return PTX.replace("= 42", "= %d" % number).replace(".target sm_89", ".target " + target)


@pytest.fixture
def bench(kernels):
    name = ctypes.create_string_buffer(64)
    kernels.driver.call("cuDeviceGetName", name, integer(64), integer(kernels.device))
    if not name.value.startswith(b"fp8emu"):
        pytest.skip("a GPU runs the machine code of images, and there is none in these")
    return Bench(kernels)


def number_of(bench, image, load="cuModuleLoadData"):
    """The value of the variable in the image."""
    module, address, bytes_, value = pointer(), u64(), size(), u32()
    bench.call(load, ref(module), image)
    bench.call("cuModuleGetGlobal_v2", ref(address), ref(bytes_), module, b"number")
    bench.call("cuMemcpyDtoH_v2", ref(value), address, size(4))
    bench.call("cuModuleUnload", module)
    return value.value


def reason(bench, image):
    """Why the image is refused: what the log says."""
    log, module = ctypes.create_string_buffer(4096), pointer()
    options, values = (integer * 2)(5, 6), (pointer * 2)(ctypes.addressof(log), len(log))
    with pytest.raises(DriverError) as error:
        bench.call("cuModuleLoadDataEx", ref(module), image, u32(2), options, values)
    assert error.value.name == "CUDA_ERROR_NO_BINARY_FOR_GPU"
    return log.value.decode()


@on("reductions")
def test_a_cubin_with_its_ptx(bench):
    assert number_of(bench, images.cubin([numbered(7)], KERNELS)) == 7


@on("reductions")
def test_a_cubin_that_was_linked(bench):
    other = ".version 8.0\n.target sm_89\n.address_size 64\n.visible .entry other() { ret; }\n"
    assert number_of(bench, images.cubin([other, numbered(8)], {"step": 8, "other": 0})) == 8


@on("reductions")
def test_ptx_that_is_not_that_of_the_machine_code(bench):
    missing = reason(bench, images.cubin([PTX], {"step": 8, "gone": 4}))
    assert "the PTX has no kernel gone" in missing and "ptxas -lineinfo" in missing
    assert "step has 8 bytes of parameters in the PTX, and 12 in the machine code" in reason(bench, images.cubin([PTX], {"step": 12}))


@on("reductions")
def test_parameters_that_machine_code_aligns(bench):
    text = PTX + "\n.visible .entry map(.param .align 128 .b8 m[128], .param .u64 x) { ret; }\n"
    assert number_of(bench, images.cubin([text], {"step": 8, "map": 136 + 112})) == 42
    assert "map has 136 bytes of parameters in the PTX" in reason(bench, images.cubin([text], {"step": 8, "map": 136 + 128}))


@on("reductions")
def test_machine_code_alone(bench, capfd):
    for image in (images.cubin([], KERNELS), images.fat_binary(images.entry(images.ELF, 90, images.cubin([], KERNELS)))):
        text = reason(bench, image)
        assert "machine code" in text and "give it PTX" in text and "ptxas -lineinfo" in text
        assert not capfd.readouterr().err
        # Without a log the reason goes to standard error.
        with pytest.raises(DriverError):
            bench.call("cuModuleLoadData", ref(pointer()), image)
        assert text in capfd.readouterr().err
    assert "no cubin" in reason(bench, b"\x7fELF" + bytes(60))


@on("reductions")
@pytest.mark.parametrize("compression", [0, images.LZ4, images.ZSTD], ids=["plain", "lz4", "zstd"])
def test_fat_binaries(bench, compression):
    if compression and images.compressed(b"", compression) is None:
        pytest.skip(f"there is no {images.LIBRARIES[compression][0]}")
    code = images.entry(images.ELF, 89, images.cubin([], KERNELS), compression)
    entries = [images.entry(images.PTX, 80, numbered(1, "sm_80").encode(), compression),
               images.entry(images.PTX, 89, numbered(2).encode(), compression), code]
    image = images.fat_binary(*entries)
    # The latest that the device runs, in any order.
    assert number_of(bench, image) == 2
    assert number_of(bench, images.fat_binary(*reversed(entries)), "cuModuleLoadFatBinary") == 2
    outer, kept = images.wrapped(image)
    assert number_of(bench, outer, "cuModuleLoadFatBinary") == 2
    assert kept
    carried = images.entry(images.ELF, 89, images.cubin([numbered(3)], KERNELS), compression)
    assert number_of(bench, images.fat_binary(carried)) == 3


@on("reductions")
def test_a_fat_binary_for_other_chips(bench):
    image = images.fat_binary(images.entry(images.PTX, 300, numbered(1, "sm_300").encode()))
    assert "PTX for sm_300, which the device does not run" in reason(bench, image)


@on("reductions")
@pytest.mark.parametrize("compression", [0, images.LZ4, images.ZSTD], ids=["plain", "lz4", "zstd"])
def test_damaged_fat_binaries(bench, compression):
    if compression and images.compressed(b"", compression) is None:
        pytest.skip(f"there is no {images.LIBRARIES[compression][0]}")
    whole = images.fat_binary(images.entry(images.PTX, 89, numbered(2).encode(), compression))
    # The sizes of the entry: its header's, its content's, and those of compression.
    for at, value in ((20, 0xFFFFFF), (24, 1 << 20), (32, 1 << 20), (72, 1 << 20)):
        image = bytearray(whole)
        image[at:at + 4] = value.to_bytes(4, "little")
        if compression or at < 32:
            assert "damaged" in reason(bench, bytes(image)), at
    if compression:
        image = bytearray(whole)
        image[80:120] = b"\xff" * 40
        assert "damaged" in reason(bench, bytes(image))


@on("reductions")
def test_cubins_and_fat_binaries_are_linked(bench):
    declaring = """.version 8.0
.target sm_89
.address_size 64
.extern .global .align 4 .u32 number;
.visible .entry get(.param .u64 x) {
  .reg .b32 %r<2>; .reg .b64 %rd<2>;
  ld.param.u64 %rd0, [x]; ld.global.u32 %r0, [number]; st.global.u32 [%rd0], %r0; ret;
}
"""
    cubin, fat = images.cubin([declaring], {"get": 8}), images.fat_binary(images.entry(images.PTX, 89, numbered(9).encode(), images.LZ4))
    state, image, bytes_ = pointer(), pointer(), size()
    bench.call("cuLinkCreate_v2", u32(0), None, None, ref(state))
    for kind, data in ((0, cubin), (2, fat)):
        bench.call("cuLinkAddData_v2", state, integer(kind), data, size(len(data)), b"input", u32(0), None, None)
    bench.call("cuLinkComplete", state, ref(image), ref(bytes_))
    assert number_of(bench, image) == 9
    with pytest.raises(DriverError):
        bench.call("cuLinkAddData_v2", state, integer(3), b"\x7fELF", size(4), b"object", u32(0), None, None)


@on("reductions")
@pytest.mark.parametrize("mode", ["none", "speed", "balance", "size"])
def test_fat_binaries_of_nvcc(bench, tmp_path, mode):
    nvcc = shutil.which("nvcc", path=PATH)
    if not nvcc:
        pytest.skip("there is no nvcc")
    source, image = tmp_path / "k.cu", tmp_path / "k.fatbin"
    source.write_text('__device__ int number = 5;\nextern "C" __global__ void step(int *x) { *x = atomicAdd(&number, 1); }\n')
    codes = ["-gencode=arch=compute_80,code=sm_80", "-gencode=arch=compute_89,code=compute_89"]
    done = subprocess.run([nvcc, "-fatbin", *codes, "-compress-mode=" + mode, source, "-o", image], timeout=100)
    if done.returncode:
        pytest.skip("nvcc does not know -compress-mode=" + mode)
    assert number_of(bench, image.read_bytes()) == 5
