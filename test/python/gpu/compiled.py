# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Kernels that the compiler builds, run on the emulator: stage 6 makes launches of a function on memrefs, stage 7 makes PTX of
# them; Function launches the kernels as the function's host code would. Shapes are static.

import copy
import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import tempfile

import ml_dtypes
import numpy

import cuda_driver
from programs import difference

CHIPS = ["sm_89", "sm_90a", "sm_100a", "sm_120a"]
TYPES = {"f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2, "bf16": ml_dtypes.bfloat16, "f16": numpy.float16,
         "f8E8M0FNU": numpy.uint8, "f32": numpy.float32, "i8": numpy.int8, "i32": numpy.int32}
# Types that a driver takes: those of ml_dtypes as their bits.
BITS = {1: numpy.uint8, 2: numpy.uint16}

LAUNCH = re.compile(r"gpu\.launch_func\s+@kernels::@(\w+) blocks in \((.*?)\) threads in \((.*?)\)\s+args\((.*)\)(?: \{|$)", re.M)
KERNEL = re.compile(r"func\.func @(\w+)\(.*\) attributes \{(.*)\}")
CONSTANT = re.compile(r"(%[\w-]+) = arith\.constant (-?\d+|true|false)(?: : (\w+))?")
TENSOR_MAP = re.compile(r"%arg(\d+): !llvm\.ptr \{fp8\.tensor_map = \{box = array<i64: (.*?)>, swizzle = (\d+) : i32\}\}")
CHIP = re.compile(r'#fp8\.chip<"(\w+)">')
PTX = re.compile(r'fp8\.ptx = "(.*?)"[,}]')
ALLOCATION = re.compile(r"(%\w+) = memref\.alloc\(\).*: memref<(.*)>")
VIEW = re.compile(r"(%\w+) = memref\.\w+ (%\w+)\b.*(?: to|into) memref<(.*)>")
OPERAND = re.compile(r"(%[\w-]+) : (?:memref<([^>]*(?:<[^>]*>)?)>|\w+)")


def run(command, text):
    done = subprocess.run(list(map(str, command)), input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def shape_and_type(memref):
    *sizes, element = memref.split(",")[0].split("x")
    return tuple(map(int, sizes)), TYPES[element]


def offset_of(memref):
    """The offset in bytes of a memref's first element."""
    found = re.search(r"offset: (\d+)", memref)
    return int(found[1]) * numpy.dtype(shape_and_type(memref)[1]).itemsize if found else 0


def split(lowered):
    """The host code of a printed module, and its kernels."""
    start = lowered.index("  gpu.module @kernels")
    end = lowered.index("\n  }\n", start) + len("\n  }\n")
    return lowered[:start] + lowered[end:], lowered[start:end]


def bits(array):
    return array.view(BITS[array.dtype.itemsize]) if array.dtype.itemsize in BITS and array.dtype.kind not in "iu" else array


PTXAS = shutil.which("ptxas")


def assemble(ptx, arch):
    """The kernels by ptxas: registers, spills, warnings."""
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(ptx)
        file.flush()
        done = subprocess.run([PTXAS, "-v", "-arch=" + arch, file.name, "-o", os.devnull], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr


class Compiler:
    """Compiles to PTX, and keeps what it has compiled: the shapes of products are arguments of their kernels."""

    def __init__(self, fp8_opt):
        self.fp8_opt, self.kept = fp8_opt, {}

    def launches(self, source):
        """The IR with launches, after constants are folded."""
        return run([self.fp8_opt, "--fp8-gpu-kernels-pipeline=batch-launches=0", "--canonicalize", "--cse"], source)

    def ptx(self, lowered):
        _, kernels = split(lowered)
        key = hashlib.sha256((CHIP.search(lowered)[1] + kernels).encode()).hexdigest()
        if key not in self.kept:
            text = PTX.search(run([self.fp8_opt, "--fp8-ptx-pipeline"], lowered))[1]
            self.kept[key] = re.sub(r"\\(\\|[0-9A-F]{2})", lambda code: "\\" if code[1] == "\\" else chr(int(code[1], 16)), text)
        return self.kept[key]


class Function:
    """A function, compiled, on one device."""

    def __init__(self, compiler, driver, source, arch):
        self.driver, self.device, self.lowered = driver, driver.device_for(arch), compiler.launches(source)
        self.ptx = compiler.ptx(self.lowered)
        host, _ = split(self.lowered)
        self.constants = {name: (int(value == "true") if value in ("true", "false") else int(value), kind)
                          for name, value, kind in CONSTANT.findall(host)}
        self.allocations, self.views = ALLOCATION.findall(host), VIEW.findall(host)
        self.calls = LAUNCH.findall(host)
        self.attributes = dict(KERNEL.findall(self.lowered))
        self.tensor_maps = {line.group(1): {int(i): (tuple(map(int, box.split(","))), int(swizzle))
                                            for i, box, swizzle in TENSOR_MAP.findall(line.group(0))}
                            for line in KERNEL.finditer(self.lowered)}
        known = r".*(gpu\.launch_func|arith\.constant|memref\.|func\.func|return|module|^\s*})[^\n]*"
        rest = re.sub(known, "", host, flags=re.M)
        assert not rest.strip(), "the host does more than launches: " + rest

    def shared(self, kernel):
        found = re.search(r"fp8\.shared_bytes = (\d+)", self.attributes[kernel])
        return int(found[1]) if found else 0

    def __call__(self, *arrays):
        """Runs it on copies of the arrays; returns what they are afterwards."""
        self.driver.context(self.device)
        buffers = {"%%arg%d" % i: self.upload(a) for i, a in enumerate(arrays)}
        for name, memref in self.allocations:
            shape, dtype = shape_and_type(memref)
            buffers[name] = cuda_driver.Buffer(self.driver, shape, BITS.get(numpy.dtype(dtype).itemsize, dtype))
        starts = {name: (name, 0) for name in buffers}
        for name, source, memref in self.views:
            base, offset = starts[source]
            starts[name] = base, offset_of(memref)  # a type's offset counts from the buffer's start
        module = cuda_driver.Module(self.driver, self.ptx)
        for kernel, grid, block, arguments in self.calls:
            sizes = [[self.constants[name.strip()][0] for name in part.split(",")] for part in (grid, block)]
            operands = [self.operand(name, memref, buffers, starts, self.tensor_maps[kernel].get(i))
                        for i, (name, memref) in enumerate(OPERAND.findall(arguments))]
            module.launch(kernel, *sizes, *operands, shared=self.shared(kernel))
        cuda_driver.synchronize(self.driver)
        results = [buffers["%%arg%d" % i].read().view(a.dtype) for i, a in enumerate(arrays)]
        for buffer in buffers.values():
            buffer.free()
        module.unload()
        return results

    def upload(self, array):
        """An array of NaN alone is a result: its memory is left unwritten, so that reading it is an error."""
        plain = bits(array)
        buffer = cuda_driver.Buffer(self.driver, plain.shape, plain.dtype)
        unwritten = array.dtype.kind not in "iu" and array.size and numpy.isnan(array.astype(numpy.float32)).all()
        return buffer if unwritten else buffer.write(plain)

    def operand(self, name, memref, buffers, starts, tensor_map):
        if memref:
            base, offset = starts[name]
            if tensor_map:
                return self.tensor_map(buffers[base], offset, memref, *tensor_map)
            return numpy.uint64(buffers[base].address.value + offset)
        value, kind = self.constants[name]
        return numpy.int64(value) if kind in ("i64", "index") else value

    def tensor_map(self, buffer, offset, memref, box, swizzle):
        """As stage 7 makes it of a view's sizes and strides, the innermost first: an FP8 element is a byte."""
        shape, dtype = shape_and_type(memref)
        bytes = numpy.dtype(dtype).itemsize
        strides = [int(stride) * bytes for stride in re.search(r"strided<\[(.*?)\]", memref)[1].split(",")]
        element = {"float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}.get(numpy.dtype(dtype).name, numpy.dtype(dtype).name)
        start = copy.copy(buffer)
        start.address = ctypes.c_uint64(buffer.address.value + offset)
        return cuda_driver.TensorMap(self.driver, start, element, shape[::-1], strides[-2::-1], box, swizzle=swizzle)


class AlsoOnGPU:
    """A function that must have, on a GPU, the bits of an emulator of that GPU; its results are those of the first device."""

    def __init__(self, function, gpu, emulator):
        self.function, self.pair = function, []
        for driver in (emulator, gpu):
            other = copy.copy(function)
            other.driver, other.device = driver, self.like(driver, gpu)
            self.pair.append(other)

    @staticmethod
    def like(driver, gpu):
        """The device of `driver` with the capability of the GPU."""
        return driver.capabilities.index(gpu.capabilities[0])

    def __getattr__(self, name):
        return getattr(self.function, name)

    def __call__(self, *arrays):
        emulated, computed = (function(*arrays) for function in self.pair)
        for i, (a, b) in enumerate(zip(emulated, computed)):
            assert a.tobytes() == b.tobytes(), "argument %d on the GPU: %s" % (i, difference(a, b))
        return self.function(*arrays)
