# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors in and out of safetensors files, with the standard library alone.

A file is the length of a JSON header (64 bits, little-endian), the header (of every
tensor its type, shape and place), and the data.
"""

import json
import struct


def write(path, tensors):
    """tensors: name -> (type such as "F32", shape, bytes or array of values)."""
    header, offset = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        size = memoryview(data).nbytes
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # so that the data is aligned
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, _, data in tensors.values():
            file.write(data)


def read(path):
    """name -> (type, shape, bytes), in the form that `write` takes."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    header.pop("__metadata__", None)
    return {name: (t["dtype"], t["shape"], data[slice(*t["data_offsets"])]) for name, t in header.items()}
