# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Registers: what the driver says of a kernel's, how many of its blocks are resident, and
# which launches are refused for them. On a chip the numbers are those of its compiler, so
# only what follows from them is compared.

import ctypes

import pytest

from cuda_driver import DriverError, Module
from programs import on

NUM_REGISTERS, MAX_REGISTERS = 4, 0
integer, ref = ctypes.c_int, ctypes.byref


def text(values, directives="", target="sm_89"):
    """k(x): `values` loads, all of which come before the stores."""
    loads = "".join("ld.volatile.global.f32 %%f%d, [%%rd0+%d];\n" % (i, 4 * i) for i in range(values))
    stores = "".join("st.volatile.global.f32 [%%rd0+%d], %%f%d;\n" % (4 * i, i) for i in range(values))
    return (".version 8.7\n.target %s\n.address_size 64\n.visible .entry k(.param .u64 x) %s {\n"
            ".reg .f32 %%f<256>; .reg .b64 %%rd<4>;\nld.param.u64 %%rd0, [x];\n%s%sret;\n}\n" %
            (target, directives, loads, stores))


def registers(driver, kernel):
    value = integer()
    driver.call("cuFuncGetAttribute", ref(value), integer(NUM_REGISTERS), kernel)
    return value.value


def resident(driver, kernel, threads):
    value = integer()
    driver.call("cuOccupancyMaxActiveBlocksPerMultiprocessor", ref(value), kernel, integer(threads), ctypes.c_size_t(0))
    return value.value


def of_registers(count, threads):
    """Blocks that a multiprocessor's registers are enough for, as the CUDA occupancy calculator counts them."""
    warp, warps = -(-count * 32 // 256) * 256, threads // 32
    return 0 if warp * (-(-warps // 4) * 4) > 65536 else 65536 // 4 // warp * 4 // warps


@on("reductions")
@pytest.mark.parametrize("values", [40, 100, 180])
def test_registers_limit_occupancy_and_launches(kernels, values):
    module = Module(kernels.driver, text(values))
    kernel = module.kernel("k")
    count = registers(kernels.driver, kernel)
    assert values < count <= 255
    for threads in (256, 512, 1024):
        assert resident(kernels.driver, kernel, threads) <= of_registers(count, threads)
    assert resident(kernels.driver, kernel, 256) == of_registers(count, 256)
    x = kernels.zeros(values, "float32")
    fits = [threads for threads in (128, 256, 512, 1024) if of_registers(count, threads)]
    module.launch("k", 1, fits[-1], x)
    assert (x.read() == 0).all()
    if fits[-1] < 1024:
        with pytest.raises(DriverError) as error:
            module.launch("k", 1, 1024, x)
        assert error.value.name == "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"


@on("reductions")
@pytest.mark.parametrize("directives, most", [(".maxntid 1024", 64), (".maxntid 512 .minnctapersm 2", 64), (".maxnreg 60", 60)])
def test_directives_limit_registers(kernels, directives, most):
    module = Module(kernels.driver, text(100, directives))
    assert registers(kernels.driver, module.kernel("k")) == most


@on("reductions")
def test_an_option_limits_registers(kernels):
    options, values = (integer * 1)(MAX_REGISTERS), (ctypes.c_void_p * 1)(48)
    handle, kernel = ctypes.c_void_p(), ctypes.c_void_p()
    kernels.driver.call("cuModuleLoadDataEx", ref(handle), ctypes.c_char_p(text(100).encode()), ctypes.c_uint(1), options,
                        values)
    kernels.driver.call("cuModuleGetFunction", ref(kernel), handle, b"k")
    assert registers(kernels.driver, kernel) == 48


@on("reductions")
def test_what_the_target_lacks_is_refused_with_its_line(kernels):
    body = text(1).replace("ret;", "griddepcontrol.wait;\nret;")
    with pytest.raises(DriverError) as error:
        Module(kernels.driver, body)
    assert error.value.name == "CUDA_ERROR_INVALID_PTX"
    assert "sm_90" in error.value.log
