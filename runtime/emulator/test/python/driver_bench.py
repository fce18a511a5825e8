# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The parts that tests of the driver API beside kernels share: types, structures, a stream with an array and a
# kernel.

import ctypes

import numpy

from cuda_driver import Module

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
