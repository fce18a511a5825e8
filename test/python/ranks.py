# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Several ranks of a compiled program as threads of this process: each has tensors and a communicator of its
own (fp8rt/communicator.h), and collectives are numpy on the tensors of all. Slow, short and plain, as a
reference of what every collective does.
"""

import ctypes
import json
import threading

import ml_dtypes
import numpy as np
from c_abi import DLTensor, integers

from harness import BF16, E4M3, E5M2, F16, F32

U32, I32, U64, PTR = ctypes.c_uint32, ctypes.c_int32, ctypes.c_uint64, ctypes.c_void_p
KINDS = ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "shift", "all_to_all"]
REDUCTIONS = ["sum", "max", "min", "mean", "product"]
TYPES = [np.dtype(np.uint8), np.dtype(np.int8), np.dtype(np.int32), np.dtype(np.int64), F16, BF16, F32, np.dtype(np.float64)]
CODES = {
    F32: (2, 32),
    np.dtype(np.float64): (2, 64),
    F16: (2, 16),
    BF16: (4, 16),
    E4M3: (10, 8),
    E5M2: (12, 8),
    np.dtype(ml_dtypes.float8_e8m0fnu): (14, 8),
    np.dtype(np.int32): (0, 32),
    np.dtype(np.int64): (0, 64),
    np.dtype(np.int8): (0, 8),
    np.dtype(np.bool_): (6, 8),
}


class Group(ctypes.Structure):
    _fields_ = [("grid", ctypes.POINTER(ctypes.c_int64)), ("rank", U32), ("axes", U32)]


class Collective(ctypes.Structure):
    _fields_ = [
        ("kind", U32),
        ("reduction", U32),
        ("type", U32),
        ("root", I32),
        ("group", ctypes.POINTER(Group)),
        ("send", PTR),
        ("receive", PTR),
        ("count", U64),
        ("name", ctypes.c_char_p),
    ]


START = ctypes.CFUNCTYPE(ctypes.c_int, PTR, ctypes.POINTER(Collective), PTR, ctypes.POINTER(U64))
WAIT = ctypes.CFUNCTYPE(ctypes.c_int, PTR, U64, PTR)
ERROR = ctypes.CFUNCTYPE(PTR, PTR)


class Communicator(ctypes.Structure):
    _fields_ = [("version", U32), ("rank", U32), ("size", U32), ("reserved", U32), ("context", PTR), ("start", START), ("wait", WAIT), ("error", ERROR)]


class RankCall(ctypes.Structure):
    _fields_ = [
        ("version", U32),
        ("num_arguments", U32),
        ("num_results", U32),
        ("flags", U32),
        ("arguments", PTR),
        ("results", PTR),
        ("workspace", PTR),
        ("workspace_bytes", U64),
        ("stream", PTR),
        ("allocate", PTR),
        ("allocate_context", PTR),
        ("error", PTR),
        ("error_capacity", U64),
        ("profile", PTR),
        ("device", PTR),
        ("communicator", PTR),
    ]


def combine(parts, reduction):
    """The reduction in the order of ranks: f32 for narrower types, rounded once."""
    kind = parts[0].dtype
    wide = [part.astype(F32) if kind in (F16, BF16) else part for part in parts]
    total = wide[0].copy()
    for part in wide[1:]:
        total = {"sum": np.add, "mean": np.add, "max": np.maximum, "min": np.minimum, "product": np.multiply}[reduction](total, part)
    if reduction == "mean":
        total = total * total.dtype.type(1 / len(parts))
    return total.astype(kind)


def members(grid, axes, rank):
    """The ranks that differ from `rank` in coordinates of `axes` only, in order."""
    places = np.array(np.unravel_index(np.arange(np.prod(grid)), grid)).T
    kept = [d for d in range(len(grid)) if not axes >> d & 1]
    return [r for r, place in enumerate(places) if all(place[d] == places[rank][d] for d in kept)]


def perform(kind, reduction, root, sent, position):
    """The elements that the group's rank number `position` receives of those that each rank has sent."""
    size = len(sent)
    if kind == "all_reduce":
        return combine(sent, reduction)
    if kind == "all_gather":
        return np.concatenate(sent)
    if kind == "reduce_scatter":
        return np.split(combine(sent, reduction), size)[position]
    if kind == "broadcast":
        return sent[root]
    if kind == "shift":
        return sent[(position - root) % size]
    return np.concatenate([np.split(part, size)[position] for part in sent])


class Rank:
    """One rank: what it sends, and what it has to receive once all have arrived."""

    def __init__(self, ranks, number):
        self.ranks, self.number, self.sent, self.log, self.open = ranks, number, None, [], {}
        self.reason = ctypes.create_string_buffer(b"rank 1 is gone")
        self.functions = START(self.start), WAIT(self.wait), ERROR(lambda _: ctypes.addressof(self.reason))
        self.communicator = Communicator(1, number, ranks.size, 0, None, *self.functions)

    def start(self, _, pointer, stream, out_ticket):
        what = pointer.contents
        if what.name.decode() == self.ranks.failing:
            return 1
        kind, dtype = KINDS[what.kind], TYPES[what.type]
        grid = [what.group.contents.grid[d] for d in range(what.group.contents.rank)]
        grid = [size or self.ranks.size // max(1, int(np.prod([s for s in grid if s]))) for size in grid]
        self.log.append((kind, REDUCTIONS[what.reduction], what.name.decode(), what.group.contents.axes, what.count))
        buffer = (ctypes.c_uint8 * (what.count * dtype.itemsize)).from_address(what.send or 1) if what.count else b""
        self.sent = np.frombuffer(buffer, dtype).copy()
        self.ranks.barrier.wait()
        group = members(grid, what.group.contents.axes, self.number)
        received = perform(kind, REDUCTIONS[what.reduction], what.root, [self.ranks.all[r].sent for r in group], group.index(self.number))
        self.ranks.barrier.wait()
        # The data arrives at the wait, so that code in between that needs it already is found out.
        ticket = len(self.log)
        self.open[ticket] = what.receive, received
        out_ticket[0] = ticket
        return 0

    def wait(self, _, ticket, stream):
        receive, received = self.open.pop(ticket)
        if received.size:
            ctypes.memmove(receive, received.ctypes.data, received.nbytes)
        return 0


def aligned(array):
    raw = np.zeros(array.nbytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    copy = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def describe(array):
    code, bits = CODES[array.dtype]
    tensor = DLTensor(array.ctypes.data, 1, 0, array.ndim, code, bits, 1, integers(array.shape), None, 0)
    tensor.keep = array
    return tensor


NAMES = {
    "f32": F32,
    "f64": np.dtype(np.float64),
    "f16": F16,
    "bf16": BF16,
    "f8E4M3FN": E4M3,
    "f8E5M2": E5M2,
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "i8": np.dtype(np.int8),
    "i1": np.dtype(np.bool_),
    "f8E8M0FNU": np.dtype(ml_dtypes.float8_e8m0fnu),
}


class Ranks:
    """`size` ranks of a library. `failing` names a collective that fails."""

    def __init__(self, library, size, failing=None):
        self.library, self.size, self.failing = ctypes.CDLL(str(library)), size, failing
        self.library.fp8_manifest.restype = ctypes.c_char_p
        self.manifest = json.loads(self.library.fp8_manifest())
        self.barrier = threading.Barrier(size)
        self.all = [Rank(self, number) for number in range(size)]

    def tensors(self, entry, inputs):
        """The arguments of one rank: `inputs` by name or index, the state's initial values."""
        state = {t["name"]: t for t in self.manifest["state"]["tensors"]}
        arguments = []
        for a in entry["arguments"]:
            if a["kind"] == "state" and a["name"] not in inputs:
                value = np.full(a["shape"], state[a["name"]]["initial"], NAMES[a["type"]])
            else:
                value = np.asarray(inputs[a["name"] if a["name"] in inputs else str(a["index"])])
            arguments.append(aligned(value.astype(NAMES[a["type"]])))
        return arguments

    def step(self, inputs, entry="main", alone=False):
        """Calls the entry once on every rank with its inputs; returns the results of each, and the errors."""
        described = next(e for e in self.manifest["entries"] if e["name"] == entry)
        outcomes = [None] * self.size

        def run(number):
            arguments = self.tensors(described, inputs[number])
            results = [arguments[r["alias"]] if r["alias"] is not None else aligned(np.zeros(r["shape"], NAMES[r["type"]])) for r in described["results"]]
            lists = [(ctypes.POINTER(DLTensor) * max(1, len(list_)))(*(ctypes.pointer(describe(a)) for a in list_)) for list_ in (arguments, results)]
            workspace, error = aligned(np.zeros(described["workspace_bytes"], np.uint8)), ctypes.create_string_buffer(300)
            call = RankCall(self.manifest["call"], len(arguments), len(results), 0, *map(ctypes.addressof, lists), workspace.ctypes.data, workspace.nbytes)
            call.error, call.error_capacity = ctypes.addressof(error), 300
            if not alone:
                call.communicator = ctypes.addressof(self.all[number].communicator)
            status = getattr(self.library, f"fp8_call_{entry}")(ctypes.byref(call))
            if status:
                self.barrier.abort()
            outcomes[number] = (results, error.value.decode() if status else "")

        threads = [threading.Thread(target=run, args=(number,)) for number in range(self.size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [outcome[0] for outcome in outcomes], [outcome[1] for outcome in outcomes]
