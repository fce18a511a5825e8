# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8-bench checkpoint: how fast the runtime saves and loads a checkpoint, beside a copy of the file.

A save ends when the file is on the disk under its name (fsync of file and folder), and so does the copy beside
it. A load reads the file and checks its checksum; beside it the file is read and written to memory
(tmpfs, /dev/shm). The wait is what a step pays for a save that goes on behind it.
"""

import argparse
import ctypes
import json
import os
import pathlib
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable

import results
from failure import Failure


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--mib", type=int, default=512, metavar="N", help="size of the checkpoint in MiB (default: 512)")
    parser.add_argument("--tensors", type=int, default=64, metavar="N", help="tensors of the same size in it (default: 64)")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="rounds; the median counts (default: 5)")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("."), metavar="DIR", help="on the disk to measure (default: .)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="also write everything to FILE")
    parser.add_argument(
        "--bin",
        type=pathlib.Path,
        default=pathlib.Path("build/bin"),
        metavar="DIR",
        help="folder of fp8-run, beside which libfp8rt.so is (default: that of fp8-bench)",
    )
    parser.add_argument("--host", default="", help=argparse.SUPPRESS)


class Runtime:
    """The functions of libfp8rt.so that checkpoints need."""

    def __init__(self, tools: pathlib.Path):
        path = tools.parent / "lib/libfp8rt.so"
        try:
            self.library = ctypes.CDLL(str(path))
        except OSError as error:
            raise Failure(f"cannot load {path}: {error}") from None
        self.library.fp8rt_last_error.restype = ctypes.c_char_p
        self.library.fp8rt_tensors_destroy.restype = None
        self.library.fp8rt_checkpoints_destroy.restype = None

    def call(self, name: str, *arguments: object) -> None:
        if getattr(self.library, name)(*arguments):
            raise Failure(self.library.fp8rt_last_error().decode())

    def make(self, name: str, *arguments: object) -> ctypes.c_void_p:
        handle = ctypes.c_void_p()
        self.call(name, *arguments, ctypes.byref(handle))
        return handle


def make_tensors(runtime: Runtime, count: int, size: int) -> tuple[ctypes.c_void_p, list[object]]:
    """A set of f32 tensors with values that no disk compresses, and what must live as long."""
    tensors, alive = runtime.make("fp8rt_tensors_create"), []
    shape = (ctypes.c_int64 * 1)(size // 4)
    for i in range(count):
        data = ctypes.create_string_buffer(os.urandom(1 << 16) * (size >> 16), size)
        tensor = DLTensor(ctypes.addressof(data), 1, 0, 1, 2, 32, 1, shape, None, 0)
        runtime.call("fp8rt_tensors_add", tensors, f"weight{i}".encode(), ctypes.byref(tensor))
        alive += [data, shape]
    runtime.call("fp8rt_tensors_set_metadata", tensors, b"fp8_checksum", b"")
    return tensors, alive


def copy_to_disk(source: pathlib.Path, target: pathlib.Path) -> None:
    temporary = target.with_suffix(".tmp")
    shutil.copyfile(source, temporary)
    with open(temporary, "rb+") as file:
        os.fsync(file.fileno())
    temporary.rename(target)
    folder = os.open(target.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def seconds(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure(options: argparse.Namespace, examples: pathlib.Path) -> list[str]:
    if options.mib < 1 or options.tensors < 1 or options.rounds < 1 or options.mib << 20 < options.tensors << 16:
        raise Failure("--mib, --tensors and --rounds are at least 1, and a tensor has at least 64 KiB")
    if not options.folder.is_dir():
        raise Failure(f"--folder: there is no folder {options.folder}")
    runtime = Runtime(options.bin)
    tensors, alive = make_tensors(runtime, options.tensors, (options.mib << 20) // options.tensors >> 16 << 16)
    times: dict[str, list[float]] = {name: [] for name in ("save", "copy to disk", "load", "copy to memory", "wait of a step")}
    with tempfile.TemporaryDirectory(dir=options.folder) as disk, tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        saved, copied = pathlib.Path(disk) / "saved", pathlib.Path(disk) / "copied"
        checkpoints = runtime.make("fp8rt_checkpoints_create", str(saved).encode(), ctypes.c_uint32(1), ctypes.c_int64(-1))

        def save() -> None:
            runtime.call("fp8rt_tensors_write", tensors, str(saved).encode())

        def load() -> None:
            runtime.library.fp8rt_tensors_destroy(runtime.make("fp8rt_tensors_read", str(saved).encode()))

        def wait() -> None:
            runtime.call("fp8rt_checkpoints_save", checkpoints, tensors, ctypes.c_uint64(1))

        save()
        wait()  # the first allocates the copy
        runtime.call("fp8rt_checkpoints_finish", checkpoints)
        for _ in range(options.rounds):
            times["save"].append(seconds(save))
            times["copy to disk"].append(seconds(lambda: copy_to_disk(saved, copied)))
            times["load"].append(seconds(load))
            times["copy to memory"].append(seconds(lambda: shutil.copyfile(saved, pathlib.Path(memory) / "copy") and None))
            times["wait of a step"].append(seconds(wait))
            runtime.call("fp8rt_checkpoints_finish", checkpoints)
        runtime.library.fp8rt_checkpoints_destroy(checkpoints)
    runtime.library.fp8rt_tensors_destroy(tensors)
    del alive
    found = {name: statistics.median(values) for name, values in times.items()}
    rows = {name: {"seconds": value, "MiB/s": options.mib / value} for name, value in found.items()}
    if options.json:
        options.json.write_text(json.dumps({"mib": options.mib, "tensors": options.tensors, "seconds": times}, indent=1) + "\n")
    save_ratio, load_ratio = found["copy to disk"] / found["save"], found["copy to memory"] / found["load"]
    return [
        f"A checkpoint of {options.mib} MiB in {options.tensors} tensors, median of {options.rounds} rounds",
        "",
        *results.table("", rows, 3),
        "",
        f"save {save_ratio:.2f}x, load {load_ratio:.2f}x as fast as the copy",
    ]
