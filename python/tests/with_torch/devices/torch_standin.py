# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A stand-in for torch.cuda whose tensors lie in the emulator's memory, by way of a driver that records what it is asked.

An address of the emulator is one of this process, so that such a tensor is one of the CPU to PyTorch: its own operations read
and write it. Only fp8's layer over torch.cuda sees it on "cuda:0".
"""

import bisect
import contextlib
import ctypes
import os
import pathlib
import types

import fp8
import torch
from fp8 import _device, _runtime
from fp8.torch import _cuda
from torch._subclasses.fake_tensor import FakeTensor

#: A program whose library opens a device, for memory there.
ANY = """
func.func @main(%x: tensor<16xf32>) -> tensor<16xf32> {
  %y = arith.addf %x, %x : tensor<16xf32>
  return %y : tensor<16xf32>
}
"""


class Block:
    """Memory of the device, which the stand-in's allocator gets back for the next tensor of its size."""

    def __init__(self, free, buffer):
        self.free, self.buffer = free, buffer

    def __del__(self):
        self.free.append(self.buffer)


class StandIn(_cuda.Cuda):
    """`allocations` counts what the allocator asked the driver for, `recorded` has the
    addresses of tensors that were noted as used on another stream.
    """

    def __init__(self, driver):
        self.driver = ctypes.CDLL(str(driver))
        self.driver.recordingCalls.restype = ctypes.c_int64
        self.devices, self.free = {}, {}
        self.starts, self.ranges = [], []
        self.allocations, self.recorded, self.streams = 0, [], {}
        self.traced, self.capturing = torch.device("cuda:0"), False

    def device(self, place):
        if place not in self.devices:
            self.devices[place] = fp8.compile(ANY, recipe="none", device=str(place), target=_device.chip_of(str(place))).opened()
        return self.devices[place]

    # Questions of the layer over torch.cuda.

    def device_of(self, tensor):
        if tensor.is_meta and not isinstance(tensor, FakeTensor):
            return tensor.device
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            return self.traced  # While PyTorch compiles, tensors have no memory.
        return self.device_of_address(tensor.data_ptr()) if tensor.numel() else self.traced

    def device_of_address(self, address):
        i = bisect.bisect_right(self.starts, address) - 1
        return self.ranges[i][1] if i >= 0 and address < self.ranges[i][0] else torch.device("cpu")

    def capability(self, device):
        major, minor = ctypes.c_int32(), ctypes.c_int32()
        _runtime.call("fp8rt_gpu_capability", str(device).encode(), ctypes.byref(major), ctypes.byref(minor))
        return major.value, minor.value

    def stream(self, device):
        return self.streams.get(device, 0)

    def is_capturing(self):
        return self.capturing

    def new(self, shape, strides, dtype, device):
        nbytes = max(1, -(-torch.Size(shape).numel() * dtype.itemsize // 512)) * 512
        free = self.free.setdefault((device, nbytes), [])
        if not free:
            self.allocations += 1
            buffer = self.device(device).new("i8", (nbytes,))
            # The emulator finds what nobody wrote; PyTorch's own operations write without its knowledge.
            zeros = (ctypes.c_uint8 * nbytes)()
            self.device(device).write(buffer.pointer, ctypes.addressof(zeros), nbytes)
            place = bisect.bisect(self.starts, buffer.pointer)
            self.starts.insert(place, buffer.pointer)
            self.ranges.insert(place, (buffer.pointer + nbytes, device))
            free.append(buffer)
        buffer = free.pop()
        memory = (ctypes.c_uint8 * nbytes).from_address(buffer.pointer)
        memory.block = Block(free, buffer)
        storage = torch.frombuffer(memory, dtype=torch.uint8).untyped_storage()
        return torch.empty(0, dtype=dtype).set_(storage, 0, tuple(shape), tuple(strides))

    def put(self, tensor, device):
        if self.device_of(tensor) == device:
            return tensor
        values = tensor.detach().contiguous()
        return self.new(values.shape, values.stride(), values.dtype, device).copy_(values)

    def full(self, value, dtype, device):
        return self.new((), (), dtype, device).fill_(value)

    def note_use(self, tensor, device):
        self.recorded.append(tensor.data_ptr())

    # Means of the tests.

    def move(self, module, device):
        """`module.to(device)`."""
        for tensors in (m._parameters for m in module.modules()):
            for parameter in tensors.values():
                if parameter is not None:
                    parameter.data = self.put(parameter.data, device)
        for m in module.modules():
            m._buffers.update({name: self.put(buffer, device) for name, buffer in m._buffers.items()})
        return module

    def within(self, device, name, *arguments):
        """Calls the driver with a device's context."""
        number, context = ctypes.c_int(), ctypes.c_void_p()
        self.check("cuDeviceGet", ctypes.byref(number), device.index)
        self.check("cuDevicePrimaryCtxRetain", ctypes.byref(context), number)
        self.check("cuCtxPushCurrent_v2", context)
        self.check(name, *arguments)
        self.check("cuCtxPopCurrent_v2", ctypes.byref(context))
        self.check("cuDevicePrimaryCtxRelease_v2", number)

    def check(self, name, *arguments):
        assert getattr(self.driver, name)(*arguments) == 0, name

    def new_stream(self, device):
        stream = ctypes.c_void_p()
        self.within(device, "cuStreamCreateWithPriority", ctypes.byref(stream), 1, 0)
        return stream.value

    @contextlib.contextmanager
    def captured(self, device, stream):
        """Within the block the work of a stream is captured in a graph, which `launch` launches afterwards."""
        graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
        stream = ctypes.c_void_p(stream)
        launcher = types.SimpleNamespace(launch=lambda: self.within(device, "cuGraphLaunch", executable, stream))
        self.within(device, "cuStreamBeginCapture_v2", stream, 1)
        self.capturing = True
        yield launcher
        self.capturing = False
        self.within(device, "cuStreamEndCapture", stream, ctypes.byref(graph))
        self.within(device, "cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_uint64(0))

    def reached(self):
        """The driver's functions that were called since `forget`, of those that wait or allocate."""
        names = ["cuCtxSynchronize", "cuStreamSynchronize", "cuMemAlloc_v2", "cuMemHostAlloc", "cuMemcpyDtoHAsync_v2", "cuModuleLoadDataEx", "cuLaunchKernelEx"]
        return [name for name in names if self.driver.recordingReached(name.encode()) & 0xFF]

    def forget(self):
        self.driver.recordingFailAt(ctypes.c_int64(0), 0)


def install(monkeypatch):
    """A stand-in that fp8.torch asks in place of torch.cuda."""
    driver = pathlib.Path(os.environ["FP8_TOOLS"], "lib", "libfp8rt_test_recording_driver.so")
    monkeypatch.setenv("FP8RT_CUDA_DRIVER", str(driver))
    standin = StandIn(driver)
    monkeypatch.setattr(_cuda, "cuda", standin)
    return standin
