# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls an entry of a compiled library as a host program would: library, entry, file of arguments, file for results.

The files are safetensors with keys "0", "1", ... fp8-run would refuse a library for AMX on a processor without it.
"""

import ctypes
import json
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from c_abi import Call, DLTensor, describe, library_of

from harness import load, save

TYPES = {"f32": np.float32}


def pointers(tensors):
    return (ctypes.POINTER(DLTensor) * max(len(tensors), 1))(*map(ctypes.pointer, tensors))


def main():
    path, name, source, target = sys.argv[1:]
    library = library_of(path)
    entry = next(e for e in json.loads(library.fp8_manifest())["entries"] if e["name"] == name)
    given = load(pathlib.Path(source))
    outputs = [np.zeros(r["shape"], TYPES[r["type"]]) for r in entry["results"]]
    arguments, results = [describe(given[str(i)]) for i in range(len(given))], [describe(a) for a in outputs]
    memory = np.zeros(entry["workspace_bytes"] + 64, np.uint8)
    error = ctypes.create_string_buffer(1000)
    call = Call(
        1,
        len(arguments),
        len(results),
        0,
        pointers(arguments),
        pointers(results),
        memory.ctypes.data + -memory.ctypes.data % 64,
        entry["workspace_bytes"],
        None,
        None,
        None,
        ctypes.cast(error, ctypes.c_char_p),
        len(error),
    )
    status = library[f"fp8_call_{name}"](ctypes.byref(call))
    if status:
        sys.exit(f"{status}: {error.value.decode()}")
    save(pathlib.Path(target), {str(i): array for i, array in enumerate(outputs)})


main()
