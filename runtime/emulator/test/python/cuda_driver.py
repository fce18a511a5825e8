# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The CUDA driver API by ctypes, as much of it as the tests need: of libcuda.so.1 or of
# the emulator, whichever path is given. Nothing here knows which of them it speaks to.

import ctypes
import ctypes.util
import pathlib
import re

import numpy

COOPERATIVE, CLUSTER_DIMENSION, PROGRAMMATIC_SERIALIZATION = 2, 4, 6
CAPABILITY_MAJOR, CAPABILITY_MINOR = 75, 76
MAX_DYNAMIC_SHARED, NON_PORTABLE_CLUSTER = 8, 14
ERROR_LOG, ERROR_LOG_BYTES = 5, 6

TENSOR_TYPES = {"uint8": 0, "uint16": 1, "uint32": 2, "int32": 3, "uint64": 4, "int64": 5, "float16": 6, "float32": 7,
                "float64": 8, "bfloat16": 9, "tfloat32": 11}
SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute: an identifier and a union of 64 bytes."""

    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_char * 4), ("value", ctypes.c_uint32 * 16)]


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint),
                ("stream", ctypes.c_void_p), ("attributes", ctypes.POINTER(LaunchAttribute)), ("count", ctypes.c_uint)]


class DriverError(Exception):
    """A call of the driver failed: `name` as in CUDA_ERROR_INVALID_VALUE, `log` what it said besides."""

    def __init__(self, call, code, name, text, log=""):
        super().__init__("%s: %s (%d): %s%s" % (call, name, code, text, "\n" + log if log else ""))
        self.call, self.code, self.name, self.log = call, code, name, log


class Driver:
    """A library that exports the driver API, initialised, with its devices."""

    def __init__(self, path):
        self.path, self.library = path, ctypes.CDLL(str(path))
        self.call("cuInit", ctypes.c_uint(0))
        count = ctypes.c_int()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        self.contexts = {}
        self.capabilities = [(self.attribute(i, CAPABILITY_MAJOR), self.attribute(i, CAPABILITY_MINOR))
                             for i in range(count.value)]

    def call(self, name, *arguments, log=None):
        code = getattr(self.library, name)(*arguments)
        if code:
            raise DriverError(name, code, self.text("cuGetErrorName", code), self.text("cuGetErrorString", code),
                              log.value.decode(errors="replace") if log else "")

    def text(self, function, code):
        where = ctypes.c_char_p()
        getattr(self.library, function)(ctypes.c_int(code), ctypes.byref(where))
        return (where.value or b"unknown error").decode()

    def attribute(self, device, which):
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), ctypes.c_int(which), ctypes.c_int(device))
        return value.value

    def device_for(self, arch):
        """The first device that runs PTX for `arch`, None without one: "sm_90a" needs
        exactly 9.0, "sm_89" 8.9 or anything later."""
        digits, suffix = re.fullmatch(r"sm_(\d+)([af]?)", arch).groups()
        wanted = divmod(int(digits), 10)
        fits = [i for i, has in enumerate(self.capabilities) if has == wanted or (not suffix and has > wanted)]
        return min(fits, key=lambda i: self.capabilities[i], default=None)

    def context(self, device):
        """Makes the device's primary context current."""
        if device not in self.contexts:
            handle = ctypes.c_void_p()
            self.call("cuDevicePrimaryCtxRetain", ctypes.byref(handle), ctypes.c_int(device))
            self.contexts[device] = handle
        self.call("cuCtxSetCurrent", self.contexts[device])

    def reset(self, device):
        """Forgets a context that an error has made useless."""
        self.contexts.pop(device, None)
        self.call("cuDevicePrimaryCtxReset_v2", ctypes.c_int(device))


class Buffer:
    """Memory of the device with the shape and type of a numpy array."""

    def __init__(self, driver, shape, dtype):
        self.driver, self.shape, self.dtype = driver, shape, numpy.dtype(dtype)
        self.bytes = int(numpy.prod(shape, dtype=numpy.int64)) * self.dtype.itemsize
        self.address = ctypes.c_uint64()
        driver.call("cuMemAlloc_v2", ctypes.byref(self.address), ctypes.c_size_t(max(self.bytes, 1)))

    def write(self, array):
        array = numpy.ascontiguousarray(array)
        assert array.nbytes == self.bytes
        self.driver.call("cuMemcpyHtoD_v2", self.address, ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(self.bytes))
        return self

    def read(self):
        array = numpy.empty(self.shape, self.dtype)
        self.driver.call("cuMemcpyDtoH_v2", ctypes.c_void_p(array.ctypes.data), self.address, ctypes.c_size_t(self.bytes))
        return array

    def free(self):
        self.driver.call("cuMemFree_v2", self.address)


class TensorMap:
    """A CUtensorMap: 128 bytes on a multiple of 64."""

    def __init__(self, driver, buffer, kind, sizes, strides, box, element_strides=None, swizzle=0, fill_nan=False):
        """`sizes`, `box` and `element_strides` in elements, fastest first; `strides` in
        bytes, of all dimensions but the fastest."""
        rank = len(sizes)
        self.memory = (ctypes.c_char * 192)()
        self.address = -(-ctypes.addressof(self.memory) // 64) * 64
        wide, narrow = ctypes.c_uint64 * rank, ctypes.c_uint32 * rank
        driver.call("cuTensorMapEncodeTiled", ctypes.c_void_p(self.address), ctypes.c_int(TENSOR_TYPES[kind]),
                    ctypes.c_uint32(rank), ctypes.c_void_p(buffer.address.value), wide(*sizes),
                    wide(*strides, *[0] * (rank - len(strides))), narrow(*box),
                    narrow(*(element_strides or [1] * rank)), ctypes.c_int(0), ctypes.c_int(SWIZZLES[swizzle]),
                    ctypes.c_int(0), ctypes.c_int(int(fill_nan)))

    def bytes(self):
        return ctypes.string_at(self.address, 128)


def argument(value):
    """The value that a kernel's parameter points to, kept alive by the caller."""
    if isinstance(value, Buffer):
        return ctypes.c_uint64(value.address.value)
    if isinstance(value, TensorMap):
        return value
    if isinstance(value, (bytes, numpy.generic)):
        return ctypes.create_string_buffer(bytes(value) if isinstance(value, bytes) else value.tobytes())
    if isinstance(value, float):
        return ctypes.c_float(value)
    return ctypes.c_int32(value - (1 << 32) if value >= 1 << 31 else value)


def three(size):
    size = (size,) if isinstance(size, int) else tuple(size)
    return (ctypes.c_uint * 3)(*size, *(1,) * (3 - len(size)))


class Module:
    """A loaded module: kernels and variables by their names."""

    def __init__(self, driver, ptx):
        self.driver, self.handle, self.kernels = driver, ctypes.c_void_p(), {}
        text = ptx.read_bytes() if isinstance(ptx, pathlib.Path) else ptx.encode()
        log = ctypes.create_string_buffer(8192)
        options = (ctypes.c_int * 2)(ERROR_LOG, ERROR_LOG_BYTES)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), len(log))
        driver.call("cuModuleLoadDataEx", ctypes.byref(self.handle), ctypes.c_char_p(text), ctypes.c_uint(2), options,
                    values, log=log)

    def kernel(self, name):
        if name not in self.kernels:
            handle = ctypes.c_void_p()
            self.driver.call("cuModuleGetFunction", ctypes.byref(handle), self.handle, name.encode())
            self.kernels[name] = handle
        return self.kernels[name]

    def variable(self, name, dtype):
        """The variable as an array; write() changes it. It is not to be freed."""
        address, size = ctypes.c_uint64(), ctypes.c_size_t()
        self.driver.call("cuModuleGetGlobal_v2", ctypes.byref(address), ctypes.byref(size), self.handle, name.encode())
        buffer = Buffer.__new__(Buffer)
        buffer.driver, buffer.dtype, buffer.bytes, buffer.address = self.driver, numpy.dtype(dtype), size.value, address
        buffer.shape = (size.value // buffer.dtype.itemsize,)
        return buffer

    def launch(self, name, grid, block, *arguments, shared=0, cluster=None, cooperative=False, programmatic=False):
        """Starts the kernel; does not wait for it. Numbers are passed as i32 and f32,
        others as numpy scalars or bytes."""
        function = self.kernel(name)
        if shared > 32 * 1024:
            self.driver.call("cuFuncSetAttribute", function, ctypes.c_int(MAX_DYNAMIC_SHARED), ctypes.c_int(shared))
        kept = [argument(value) for value in arguments]
        addresses = [one.address if isinstance(one, TensorMap) else ctypes.addressof(one) for one in kept]
        parameters = (ctypes.c_void_p * max(len(kept), 1))(*addresses)
        attributes = []
        if cluster:
            attributes.append(LaunchAttribute(CLUSTER_DIMENSION, b"", (ctypes.c_uint32 * 16)(*three(cluster))))
        if cooperative:
            attributes.append(LaunchAttribute(COOPERATIVE, b"", (ctypes.c_uint32 * 16)(1)))
        if programmatic:
            attributes.append(LaunchAttribute(PROGRAMMATIC_SERIALIZATION, b"", (ctypes.c_uint32 * 16)(1)))
        if attributes:
            listed = (LaunchAttribute * len(attributes))(*attributes)
            config = LaunchConfig(three(grid), three(block), shared, None, listed, len(attributes))
            self.driver.call("cuLaunchKernelEx", ctypes.byref(config), function, parameters, None)
        else:
            sizes = [ctypes.c_uint(size) for size in (*three(grid), *three(block), shared)]
            self.driver.call("cuLaunchKernel", function, *sizes, None, parameters, None)

    def unload(self):
        self.driver.call("cuModuleUnload", self.handle)


def synchronize(driver):
    driver.call("cuCtxSynchronize")


def flush_messages():
    """Flushes C's buffers, through which the output of kernels goes."""
    ctypes.CDLL(None).fflush(None)
