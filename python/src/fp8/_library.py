# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`fp8.Library`: a compiled program, its report and state."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import shutil
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _cache, _compiler, _device, _runtime
from . import state as _state
from ._config import config
from ._entry import Entry
from ._errors import Error, hiding_frames
from ._loaded import Loaded
from ._prepared import Prepared
from ._profile import Profile
from ._report import Report

#: The stages of which `Library.ir` has the IR, in their order.
STAGES = ("ingest", "recipe", "fusion", "batching", "bufferize", "kernels")


class Library(Loaded):
    """A compiled library.

    Attributes: `path` (the shared library), `hash` (hexadecimal; the same program compiled in the
    same way has the same one), `manifest` (dict), `report`, `entries` (Entry by name).
    """

    def __init__(self, path: pathlib.Path, hash: str, manifest: dict[str, Any], report: Report) -> None:
        super().__init__(path, manifest)
        self.hash = hash
        self.report = report
        self.entries = {entry["name"]: Entry(self, entry) for entry in manifest["entries"]}
        self._arguments: Sequence[str] = ()
        self._prepared: weakref.WeakSet[Prepared] = weakref.WeakSet()
        #: Functions that choose the profiler of calls that others make, as XLA does, by names of the calls.
        self._measuring: dict[str, Callable[[_runtime.Handle | None], None]] = {}
        self._profiler: _runtime.Handle | None = None
        self._source: pathlib.Path | None = None

    @staticmethod
    def from_entry(entry: _cache.Entry, arguments: Sequence[str]) -> Library:
        """The library of an entry of the cache, compiled with these arguments."""
        manifest = json.loads(entry.read("manifest.json"))
        report = Report(json.loads(entry.read("report.json")), entry.read("report.txt"))
        library = Library(entry.path / "step.so", entry.key.hash, manifest, report)
        library._arguments, library._source = arguments, entry.path / "source.mlir"
        return library

    def state(self) -> _state.State:
        """A new state with the initial values, a dict of arrays; empty if the program has none.

        They are numpy arrays; on a GPU (not the emulator) DeviceBuffers, all but the layout's hash.
        """
        initial = _state.initial(self.manifest)
        device = self.opened() if self.device.startswith("cuda") and initial else None
        return initial if device is None else _device.put(device, initial)

    def put(self, value: Any) -> Any:
        """Copies of an array of the CPU, or of a dict of them such as a state, in the memory of the device. Raises ValueError on the CPU."""
        if (device := self.opened()) is None:
            raise ValueError("the library runs on the CPU, which takes numpy's arrays")
        return _device.put(device, value)

    def profile(self) -> Profile:
        """Measures the kernels of the calls within a `with` block, on tensors of the CPU: those of `entries` and, of a library for
        the CPU, those of fp8.torch's modules and steps and of fp8.jax. XLA makes calls when it comes to them:
        jax.block_until_ready within the block waits for their results. Calls that several devices of one process take
        together are not measured. One profile of a program at a time counts.

        with library.profile() as profile:
            library.entries["main"](x, w)
        print(profile)
        """
        return Profile(self._measure, self.handle)

    def _measure(self, profiler: _runtime.Handle | None) -> None:
        """Measures all following calls; None measures none."""
        self._profiler = profiler
        for entry in self.entries.values():
            entry.profiler = profiler
        for prepared in list(self._prepared):
            prepared.measure(profiler)
        for measure in self._measuring.values():
            measure(profiler)

    def measure_by(self, name: str, measure: Callable[[_runtime.Handle | None], None]) -> None:
        """Lets a function, one for each name, choose the profiler of calls that others make."""
        self._measuring[name] = measure
        if self._profiler is not None:
            measure(self._profiler)

    @hiding_frames
    def ir(self, stage: str) -> str:
        """The IR after a stage (STAGES). Raises ValueError for another stage, Error where the source is not known."""
        if stage not in STAGES:
            raise ValueError(f"stage={stage!r} is none of {', '.join(STAGES)}")
        if self._source is None:
            raise Error(f"the source of {self.path} is not known: compile it with fp8.compile to see its IR")
        return _compiler.emit_stage(self._source, self._arguments, stage)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Copies the shared library, which contains its manifest, to a file; `fp8.load` reads it."""
        target = pathlib.Path(path)
        unfinished = target.with_name(f".{target.name}.{os.getpid()}")
        shutil.copyfile(self.path, unfinished)
        unfinished.chmod(0o755)
        unfinished.replace(target)

    def prepare(self, entry: str, shapes: Mapping[str, Sequence[Sequence[int] | None]] | None = None) -> Prepared:
        """Checks an entry point once, for calls with pointers only; on the library's device.

        `shapes` has the lists "arguments" and "results" for an entry with dynamic sizes; None in them is the manifest's shape.
        """
        self._prepared.add(prepared := Prepared(self, self.entries[entry].description, shapes))
        if self._profiler is not None:
            prepared.measure(self._profiler)
        return prepared

    def __repr__(self) -> str:
        return f"<fp8.Library {self.hash[:12]}: {', '.join(self.entries)}; {self.report.summary()}>"


@hiding_frames
def load(path: str | os.PathLike[str], device: str | None = None) -> Library:
    """A library that fp8-compile or Library.save wrote. Raises RunError for another file.

    `device` is where it runs: "cpu", "cuda" (the first GPU), "cuda:N" or "emulator"; None is what `fp8.config` says, else
    the CPU or the first GPU, as it was compiled for. Raises ValueError for a device that cannot run it.

    Its report has no text, and of memory the state and the workspace.
    """
    path = pathlib.Path(path).absolute()
    handle = _runtime.Handle("fp8rt_library_load", "fp8rt_library_destroy", os.fsencode(path))
    manifest = json.loads(_runtime.load().fp8rt_library_manifest(handle.value))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    library = Library(path, digest, manifest, Report({**manifest, "memory": _memory_of(manifest)}))
    library._handle = handle
    library.run_on(device if device or library.target == "cpu" else config.device)
    return library


def _memory_of(manifest: Mapping[str, Any]) -> dict[str, int]:
    """The memory for scales, histories and temporaries, as in the compiler's report."""
    arrays = _state.initial(manifest)
    state = sum(arrays[name].nbytes for name in ("scale", _state.HISTORY) if name in arrays)
    return {"state_bytes": state, "workspace_bytes": max(entry["workspace_bytes"] for entry in manifest["entries"])}
