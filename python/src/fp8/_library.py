# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`fp8.Library`: a compiled program, its report and state, and calls of its entry points."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import pathlib
import shutil
import struct
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _cache, _dlpack, _dtypes, _runtime
from . import state as _state
from ._buffer import Buffer
from ._errors import Error, StateError, hiding_frames
from ._report import Report

#: The stages of which `Library.ir` has the IR, in their order.
STAGES = ("ingest", "recipe", "fusion", "batching", "bufferize", "kernels")


class Library:
    """A compiled library.

    Attributes: `path` (the shared library), `hash` (hexadecimal; the same program compiled in the
    same way has the same one), `manifest` (dict), `report`, `entries` (Entry by name).
    """

    def __init__(self, path: pathlib.Path, hash: str, manifest: dict[str, Any], report: Report) -> None:
        self.path = path
        self.hash = hash
        self.manifest = manifest
        self.report = report
        self.entries = {entry["name"]: Entry(self, entry) for entry in manifest["entries"]}
        self._arguments: Sequence[str] = ()
        self._source: pathlib.Path | None = None
        self._handle: _runtime.Handle | None = None
        self._lock = threading.Lock()

    @staticmethod
    def from_entry(entry: _cache.Entry, arguments: Sequence[str]) -> Library:
        """The library of an entry of the cache, compiled with these arguments."""
        manifest = json.loads(entry.read("manifest.json"))
        report = Report(json.loads(entry.read("report.json")), entry.read("report.txt"))
        library = Library(entry.path / "step.so", entry.key.hash, manifest, report)
        library._arguments, library._source = arguments, entry.path / "source.mlir"
        return library

    def state(self) -> _state.State:
        """A new state with the initial values: a dict of numpy arrays; empty if the program has none."""
        return _state.initial(self.manifest)

    @hiding_frames
    def ir(self, stage: str) -> str:
        """The IR after a stage (STAGES). Raises ValueError for another stage, Error where the source is not known."""
        from . import _compile

        if stage not in STAGES:
            raise ValueError(f"stage={stage!r} is none of {', '.join(STAGES)}")
        if self._source is None:
            raise Error(f"the source of {self.path} is not known: compile it with fp8.compile to see its IR")
        return _compile.emit_stage(self._source, self._arguments, stage)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Copies the shared library, which contains its manifest, to a file; `fp8.load` reads it."""
        target = pathlib.Path(path)
        unfinished = target.with_name(f".{target.name}.{os.getpid()}")
        shutil.copyfile(self.path, unfinished)
        unfinished.chmod(0o755)
        unfinished.replace(target)

    def prepare(self, entry: str, shapes: Mapping[str, Sequence[Sequence[int]]] | None = None) -> Prepared:
        """Checks an entry point once, for calls with pointers only.

        `shapes` has the lists "arguments" and "results" for an entry with dynamic sizes.
        """
        return Prepared(self, self.entries[entry].description, shapes)

    @property
    def handle(self) -> ctypes.c_void_p:
        """libfp8rt's handle; loads the library, and raises RunError where this machine cannot run it."""
        with self._lock:
            if self._handle is None:
                self._handle = _runtime.Handle("fp8rt_library_load", "fp8rt_library_destroy", os.fsencode(self.path))
        assert self._handle.value is not None
        return self._handle.value

    def __repr__(self) -> str:
        return f"<fp8.Library {self.hash[:12]}: {', '.join(self.entries)}; {self.report.summary()}>"


@hiding_frames
def load(path: str | os.PathLike[str]) -> Library:
    """A library that fp8-compile or Library.save wrote. Raises RunError for another file.

    Its report has no text, and of memory the state and the workspace.
    """
    path = pathlib.Path(path).absolute()
    handle = _runtime.Handle("fp8rt_library_load", "fp8rt_library_destroy", os.fsencode(path))
    manifest = json.loads(_runtime.load().fp8rt_library_manifest(handle.value))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    library = Library(path, digest, manifest, Report({**manifest, "memory": _memory_of(manifest)}))
    library._handle = handle
    return library


def _memory_of(manifest: Mapping[str, Any]) -> dict[str, int]:
    """The memory for scales, histories and temporaries, as in the compiler's report."""
    arrays = _state.initial(manifest)
    state = sum(arrays[name].nbytes for name in ("scale", _state.HISTORY) if name in arrays)
    return {"state_bytes": state, "workspace_bytes": max(entry["workspace_bytes"] for entry in manifest["entries"])}


class Entry:
    """An entry point that is called like a function; `arguments` and `results` are the manifest's descriptions.

    A call takes the tensors of all arguments but the state (residuals of a pair first, then the
    user's) as numpy arrays or anything with __dlpack__, and returns Buffers of all results but the
    state (the user's first, then residuals). It changes no tensor that it is given. A program with
    state takes it by keyword, in numpy arrays, which get the new values:

        loss, = library.entries["main"](weights, batch, state=state)
    """

    def __init__(self, library: Library, description: Mapping[str, Any]) -> None:
        self._library = library
        self.description = description
        self.name: str = description["name"]
        self.arguments = [a for a in description["arguments"] if a["kind"] != "state"]
        self.results = [r for r in description["results"] if r["kind"] != "state"]
        own = _state.tensors(library.manifest)
        self._has_state = any(a["kind"] == "state" and a["name"] in own for a in description["arguments"])
        self._session: _Session | None = None
        self._lock = threading.Lock()

    @hiding_frames
    def __call__(self, *tensors: Any, state: _state.State | None = None) -> list[Buffer]:
        """Raises TypeError for the number of tensors, StateError for state, shapes and types, RunError for the call."""
        if len(tensors) != len(self.arguments):
            raise TypeError(f"{self.name} takes {len(self.arguments)} tensors ({', '.join(a['name'] for a in self.arguments)}), not {len(tensors)}")
        if self._has_state and state is None:
            raise StateError(f"{self.name} has FP8 state: pass state=library.state(), a dict that every call updates")
        if state:
            _state.check(state, self._library.manifest)
        with self._lock:
            if self._session is None:
                self._session = _Session(self._library, self.name)
            return self._session.run(self, tensors, state or {})

    def __repr__(self) -> str:
        values = [f"{v['name']}: {v['type']}{v['shape']}" for v in self.arguments]
        return f"<fp8 entry {self.name}({', '.join(values)})>"


class _Session:
    """An entry point with buffers of its own, of libfp8rt, which also allocates results of dynamic size."""

    def __init__(self, library: Library, entry: str) -> None:
        self._state = _runtime.Handle("fp8rt_state_create", "fp8rt_state_destroy", library.handle)
        self._session = _runtime.Handle("fp8rt_session_create", "fp8rt_session_destroy", library.handle, entry.encode(), self._state.value)

    def run(self, entry: Entry, tensors: Sequence[Any], state: _state.State) -> list[Buffer]:
        runtime, session = _runtime.load(), self._session.value
        views = [_dlpack.View(tensor) for tensor in tensors]
        for argument, view in zip(entry.arguments, views):
            # Carried arguments are updated, so the session has copies of them.
            copied = argument["carry"] is not None or argument["written"]
            name = "fp8rt_session_set_argument" if copied else "fp8rt_session_bind_argument"
            try:
                _runtime.call(name, session, argument["index"], ctypes.byref(view.tensor))
            except Error as error:
                raise type(error)(f"{entry.name}, argument {argument['name']}: {error}") from None
        own = {name: self._tensor(name) for name in state if name != _state.HASH}
        for name, memory in own.items():
            memory[...] = np.asarray(state[name])
        _runtime.call("fp8rt_session_step", session)
        for name, memory in own.items():
            state[name][...] = memory
        return [_copy(runtime.fp8rt_session_result(session, result["index"]).contents) for result in entry.results]

    def _tensor(self, name: str) -> np.ndarray[Any, Any]:
        """The memory of one of the state's tensors."""
        tensor = _runtime.load().fp8rt_state_tensor(self._state.value, name.encode()).contents
        return _memory(tensor).view(_dtypes.to_numpy(_type(tensor))).reshape(tensor.shape[: tensor.ndim])


def _type(tensor: _dlpack.DLTensor) -> str:
    return _dtypes.MLIR[tensor.dtype.code, tensor.dtype.bits]


def _memory(tensor: _dlpack.DLTensor) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The bytes of a tensor of libfp8rt, in place."""
    size = int(np.prod(tensor.shape[: tensor.ndim], dtype=np.int64)) * tensor.dtype.bits // 8
    if not size:
        return np.empty(0, np.uint8)
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(tensor.data + tensor.byte_offset))


def _copy(tensor: _dlpack.DLTensor) -> Buffer:
    buffer = Buffer(_type(tensor), tuple(tensor.shape[: tensor.ndim]))
    buffer.bytes[: buffer.nbytes] = _memory(tensor)
    return buffer


class Prepared:
    """An entry point that was checked once and is called with pointers only: one call of fp8rt_prepared_call.

    `arguments` and `results` are the manifest's lists, with state; the pointers of a call are in
    their order: row-major memory of the CPU, aligned to the element, that the caller keeps alive.
    0 as the pointer of a result that aliases an argument ("alias") means that argument's memory.
    One thread at a time may use it; it has a workspace of its own.
    """

    def __init__(self, library: Library, description: Mapping[str, Any], shapes: Mapping[str, Sequence[Sequence[int]]] | None) -> None:
        self.arguments: list[dict[str, Any]] = description["arguments"]
        self.results: list[dict[str, Any]] = description["results"]
        arguments = _descriptions(self.arguments, shapes.get("arguments") if shapes else None)
        results = _descriptions(self.results, shapes.get("results") if shapes else None)
        self._library = library
        self._handle = _runtime.Handle(
            "fp8rt_prepare", "fp8rt_prepared_destroy", library.handle, description["name"].encode(), None,
            arguments, len(self.arguments), results, len(self.results),
        )  # fmt: skip
        self._prepared, self._call = self._handle.value, _runtime.load().fp8rt_prepared_call
        # All pointers of a call, in memory of its own: quicker than an array for each call.
        self._frame = (ctypes.c_void_p * (len(self.arguments) + len(self.results)))()
        self._frame_arguments = ctypes.addressof(self._frame)
        self._frame_results = self._frame_arguments + len(self.arguments) * ctypes.sizeof(ctypes.c_void_p)
        self._pack = struct.Struct(f"{len(self._frame)}P").pack_into

    def call(self, arguments: Sequence[int], results: Sequence[int]) -> None:
        """Calls the entry point on these addresses. Raises RunError."""
        self._pack(self._frame, 0, *arguments, *results)
        if status := self._call(self._prepared, self._frame_arguments, self._frame_results):
            _runtime.check(status)


def _descriptions(values: Sequence[Mapping[str, Any]], shapes: Sequence[Sequence[int]] | None) -> Any:
    """An array of pointers to descriptions of tensors, for fp8rt_prepare; None for the manifest's own shapes."""
    if shapes is None:
        return None
    if len(shapes) != len(values):
        raise ValueError(f"{len(shapes)} shapes are given for {len(values)} tensors")
    tensors = [_dlpack.describe(value["type"], shape, 0) for value, shape in zip(values, shapes)]
    pointers = [ctypes.pointer(tensor) for tensor in tensors]
    return (ctypes.POINTER(_dlpack.DLTensor) * len(pointers))(*pointers)
