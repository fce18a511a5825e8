# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The GPU that this machine has, asked of the CUDA driver."""

import ctypes
import os

# By compute capability: what fp8-compile --target takes.
CHIPS = {(8, 9): "sm_89", (9, 0): "sm_90a", (10, 0): "sm_100a", (12, 0): "sm_120a"}
COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR = 75, 76  # attributes of a device


class NoGPU(Exception):
    """Why there is none, in a few words."""


def find_chip(number):
    """The chip of GPU `number`, as "sm_90a"."""
    try:
        driver = ctypes.CDLL(os.environ.get("FP8RT_CUDA_DRIVER") or "libcuda.so.1")
    except OSError as error:
        raise NoGPU(f"no CUDA driver was found ({error})") from None

    def call(name, *operands):
        code = getattr(driver, name)(*operands)
        if code:
            raise NoGPU(f"the CUDA driver finds no GPU {number} ({name}: error {code})")

    def read(attribute):
        value = ctypes.c_int()
        call("cuDeviceGetAttribute", ctypes.byref(value), attribute, device)
        return value.value

    call("cuInit", 0)
    device = ctypes.c_int()
    call("cuDeviceGet", ctypes.byref(device), number)
    capability = read(COMPUTE_CAPABILITY_MAJOR), read(COMPUTE_CAPABILITY_MINOR)
    if capability not in CHIPS:
        raise NoGPU(f"GPU {number} has compute capability %d.%d; kernels are for " % capability +
                    ", ".join("%d.%d" % known for known in CHIPS))
    return CHIPS[capability]
