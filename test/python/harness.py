# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Helpers of the value tests: tensors in files, compiling MLIR, running the result.

Everything uses the tools as a user does: fp8-compile writes a library, fp8-run calls it on
safetensors files. FP8 tensors are ml_dtypes arrays.
"""
import json
import os
import struct
import subprocess

import ml_dtypes
import numpy as np

E4M3 = np.dtype(ml_dtypes.float8_e4m3fn)
E5M2 = np.dtype(ml_dtypes.float8_e5m2)
E8M0 = np.dtype(ml_dtypes.float8_e8m0fnu)
BF16 = np.dtype(ml_dtypes.bfloat16)
F16, F32 = np.dtype(np.float16), np.dtype(np.float32)

MLIR_NAMES = {E4M3: "f8E4M3FN", E5M2: "f8E5M2", E8M0: "f8E8M0FNU", BF16: "bf16", F16: "f16", F32: "f32", np.dtype(np.float64): "f64", np.dtype(np.int32): "i32", np.dtype(np.bool_): "i1"}
FILE_NAMES = {E4M3: "F8_E4M3", E5M2: "F8_E5M2", E8M0: "F8_E8M0", BF16: "BF16", F16: "F16", F32: "F32", np.dtype(np.float64): "F64"}
FILE_NAMES |= {np.dtype(f"int{bits}"): f"I{bits}" for bits in (8, 32, 64)} | {np.dtype(np.bool_): "BOOL"}
DTYPES = {name: dtype for dtype, name in FILE_NAMES.items()}

# Every random test prints what it started from; set the variable to repeat a failure.
SEED = int(os.environ.get("FP8_TEST_SEED", "20260807"))


def random_generator(*salt):
    print(f"FP8_TEST_SEED={SEED}")
    return np.random.default_rng([SEED, *salt])


def tensor_type(shape, dtype):
    return f"tensor<{''.join(f'{size}x' for size in shape)}{MLIR_NAMES[np.dtype(dtype)]}>"


def save(path, tensors, metadata=None):
    header, blobs, offset = ({"__metadata__": metadata} if metadata else {}), [], 0
    for name, array in tensors.items():
        blob = np.ascontiguousarray(array).tobytes()
        header[name] = {
            "dtype": FILE_NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + len(blob)],
        }
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def load(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header, data = json.loads(data[8 : 8 + length]), data[8 + length :]
    header.pop("__metadata__", None)
    return {
        name: np.frombuffer(data[slice(*t["data_offsets"])], DTYPES[t["dtype"]]).reshape(t["shape"]).copy()
        for name, t in header.items()
    }


class Program:
    """A compiled library in a folder of its own."""

    def __init__(self, bin_dir, folder, text, *options):
        self.bin_dir, self.folder = bin_dir, folder
        self.source, self.library = folder / "program.mlir", folder / "program.so"
        # Libraries for a GPU run on the emulator, which reads PTX: an assembler would take a third of the time. The tests in
        # test/python/gpu ask it about every family of kernels.
        self.device = []
        if any(str(option).startswith("--target=sm_") for option in options):
            self.device = ["--device=emulator"]
            options = ("--ptxas=none", *(option for option in options if option != "--ptxas=none"))
        self.source.write_text(text)
        done = subprocess.run(
            [bin_dir / "fp8-compile", self.source, "-o", self.library, f"--manifest={folder / 'manifest.json'}", *options],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        self.manifest = json.loads((folder / "manifest.json").read_text())

    def run(self, entry, inputs, *options):
        """Calls fp8-run; `inputs` is a list in the order of the arguments, or a dict."""
        if not isinstance(inputs, dict):
            inputs = {str(i): np.asarray(value) for i, value in enumerate(inputs)}
        save(self.folder / "inputs", inputs)
        command = [self.bin_dir / "fp8-run", self.library, f"--inputs={self.folder / 'inputs'}", f"--entry={entry}"]
        done = subprocess.run([*command, *self.device, *options], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def call(self, entry, *inputs):
        """One step of `entry`; its results in order."""
        self.run(entry, inputs, f"--outputs={self.folder / 'outputs'}")
        results = load(self.folder / "outputs")
        return [results[str(i)] for i in range(len(results))]


def assert_same_bits(actual, expected, inputs=None):
    """Equal bit for bit, but that any NaN equals any NaN in the wider types."""
    expected = np.asarray(expected)
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    unsigned = np.dtype(f"u{actual.dtype.itemsize}")
    differ = actual.view(unsigned) != expected.view(unsigned)
    if actual.dtype.itemsize > 1:
        differ &= ~(np.isnan(actual) & np.isnan(expected))
    where = np.argwhere(differ)
    detail = [(tuple(map(int, i)), actual[tuple(i)], expected[tuple(i)]) for i in where[:5]]
    if inputs is not None:
        detail = [(*d, inputs[d[0]]) for d in detail]
    assert not where.size, f"{len(where)} differ (place, actual, expected): {detail}"
