# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`fp8.Entry`: an entry point of a library, called like a function on tensors of the CPU or of the library's device."""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _device, _dlpack, _dtypes, _runtime
from . import state as _state
from ._buffer import Buffer
from ._device import Device, DeviceBuffer
from ._errors import Error, StateError, UnsupportedError, hiding_frames
from ._loaded import Loaded
from ._prepared import Prepared


class Entry:
    """An entry point that is called like a function; `arguments` and `results` are the manifest's descriptions.

    A call takes the tensors of all arguments but the state (residuals of a pair first, then the
    user's) as numpy arrays or anything with __dlpack__, and returns Buffers of all results but the
    state (the user's first, then residuals). It changes no tensor that it is given. A program with
    state takes it by keyword, in numpy arrays, which get the new values:

        loss, = library.entries["main"](weights, batch, state=state)

    A library for a GPU takes tensors that lie there, from any package with __dlpack__ or __cuda_array_interface__, in
    place, and returns DeviceBuffers. The work is enqueued on `stream`, a CUstream (torch.cuda.current_stream().cuda_stream;
    0 is the default stream), and not waited for; the tensors of the state are written there. The emulator also takes the
    CPU's tensors, as a GPU does within `Library.profile`: they are copied there, the call is waited for, and the results are
    copied back.
    """

    def __init__(self, library: Loaded, description: Mapping[str, Any]) -> None:
        self._library = library
        self.description = description
        self.name: str = description["name"]
        self.arguments = [a for a in description["arguments"] if a["kind"] != "state"]
        self.results = [r for r in description["results"] if r["kind"] != "state"]
        own = _state.tensors(library.manifest)
        self._has_state = any(a["kind"] == "state" and a["name"] in own for a in description["arguments"])
        self._session: Session | None = None
        self._in_place: _InPlace | None = None
        #: The profiler of calls, while `Library.profile` measures.
        self.profiler: _runtime.Handle | None = None
        self._lock = threading.Lock()

    @hiding_frames
    def __call__(self, *tensors: Any, state: _state.State | None = None, stream: int = 0) -> list[Any]:
        """Raises TypeError for the number of tensors, StateError for state, shapes and types, ValueError for a tensor on
        another device, RunError for the call.
        """
        if len(tensors) != len(self.arguments):
            raise TypeError(f"{self.name} takes {len(self.arguments)} tensors ({', '.join(a['name'] for a in self.arguments)}), not {len(tensors)}")
        if self._has_state and state is None:
            raise StateError(f"{self.name} has FP8 state: pass state=library.state(), a dict that every call updates")
        if state:
            _state.check(state, self._library.manifest)
        device = self._library.opened()
        in_place = device is not None and self._lies_on(device, tensors, state or {})
        with self._lock, contextlib.nullcontext() if device is None else device.lock:
            if device is not None and in_place:
                if self.profiler is not None:
                    raise ValueError(f"{self.name}: its tensors lie on {device.title}, and Library.profile measures calls on tensors of the CPU: pass those")
                if self._in_place is None:
                    self._in_place = _InPlace(self._library, self, device)
                return self._in_place.run(tensors, state or {}, stream)
            # A session is of no use after a step that failed: its tensors have any values.
            session, self._session = self._session or Session(self._library, self.name, device), None
            results = session.run(self, tensors, state or {})
            self._session = session
            return results

    def _lies_on(self, device: Device, tensors: Sequence[Any], state: Mapping[str, Any]) -> bool:
        """Whether all tensors lie on the device; False where all lie on the CPU and may. Raises ValueError for any that lies elsewhere."""
        named = [(f"argument {a['name']}", tensor) for a, tensor in zip(self.arguments, tensors)]
        named += [(f"{name} of the state", tensor) for name, tensor in state.items() if name != _state.HASH]
        places = [(_dlpack.place_of(tensor) or device.place) for _, tensor in named]
        takes_host_memory = device.takes_host_memory or self.profiler is not None
        wanted = _dlpack.CPU if takes_host_memory and (not places or places[0] != device.place) else device.place
        for (name, _), place in zip(named, places):
            if place != wanted:
                where = device.title if wanted == device.place else "the CPU, as the first one does"
                raise ValueError(
                    f"{self.name}, {name}: it lies on {_device.name_of(place)}, and all tensors of a call lie on {where}: move it there "
                    f"(library.put copies arrays of the CPU)"
                )
        return wanted == device.place

    def __repr__(self) -> str:
        values = [f"{v['name']}: {v['type']}{v['shape']}" for v in self.arguments]
        return f"<fp8 entry {self.name}({', '.join(values)})>"


class _InPlace:
    """Calls on tensors in the memory of a device."""

    def __init__(self, library: Loaded, entry: Entry, device: Device) -> None:
        self._library, self._entry, self._device = library, entry, device
        self._prepared: dict[tuple[tuple[int, ...], ...], Prepared] = {}

    def run(self, tensors: Sequence[Any], state: _state.State, stream: int) -> list[DeviceBuffer]:
        entry, device = self._entry, self._device
        views = {a["index"]: self._view(f"argument {a['name']}", tensor, stream) for a, tensor in zip(entry.arguments, tensors)}
        for argument in entry.description["arguments"]:
            if argument["kind"] == "state":
                views[argument["index"]] = self._view(f"{argument['name']} of the state", state[argument["name"]], stream)
        given = [views[i] for i in range(len(views))]
        prepared = self._prepare([view.shape for view in given])
        pointers = [view.pointer for view in given]
        kept = []
        for argument in entry.arguments:
            if argument["carry"] is not None or argument["written"]:  # The caller's own stays as it is.
                view = given[argument["index"]]
                kept.append(device.new(view.type, view.shape, stream))
                device.copy(kept[-1].pointer, view.pointer, kept[-1].nbytes, stream)
                pointers[argument["index"]] = kept[-1].pointer
        results: list[DeviceBuffer | None] = []
        for result in entry.description["results"]:
            alias = result.get("alias")
            if alias is None or alias < 0:
                results.append(device.new(result["type"], result["shape"], stream))
                continue
            results.append(next((buffer for buffer in kept if buffer.pointer == pointers[alias]), None))
        prepared.enqueue(pointers, [buffer.pointer if buffer else 0 for buffer in results], stream)
        return [buffer for r in entry.results if (buffer := results[r["index"]]) is not None]

    def _view(self, name: str, tensor: Any, stream: int) -> _dlpack.DeviceView | DeviceBuffer:
        if isinstance(tensor, DeviceBuffer):
            tensor.use_on(stream)
            return tensor
        try:
            view = _dlpack.DeviceView(tensor, stream)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{self._entry.name}, {name}: {error}") from None
        if view.wait_for not in (None, stream):
            self._device.wait(view.wait_for or 0)
        return view

    def _prepare(self, shapes: Sequence[tuple[int, ...]]) -> Prepared:
        """Prepared for these shapes of all arguments, which are kept: a program with dynamic sizes has few of them."""
        if (key := tuple(shapes)) not in self._prepared:
            for result in self._entry.results:
                if None in result["shape"]:
                    raise UnsupportedError(
                        f"{self._entry.name}, result {result['name'] or result['index']}: its size is known only after the call, so that it cannot be "
                        "made in the memory of a device before: compile the program with static sizes"
                    )
            own: list[tuple[int, ...] | None] = [None] * len(self._entry.description["results"])
            self._prepared[key] = Prepared(self._library, self._entry.description, {"arguments": shapes, "results": own})
        return self._prepared[key]


class Session:
    """An entry point with buffers of its own, of libfp8rt, which also allocates results of dynamic size.

    On a device the tensors are copied there and back.
    """

    def __init__(self, library: Loaded, entry: str, device: Device | None) -> None:
        self._device = device
        if device is None:
            self._state = _runtime.Handle("fp8rt_state_create", "fp8rt_state_destroy", library.handle)
            self._session = _runtime.Handle("fp8rt_session_create", "fp8rt_session_destroy", library.handle, entry.encode(), self._state.value)
        else:
            self._state = _runtime.Handle("fp8rt_state_create_on", "fp8rt_state_destroy", device.handle)
            self._session = _runtime.Handle("fp8rt_session_create_on", "fp8rt_session_destroy", device.handle, entry.encode(), self._state.value)

    def run(self, entry: Entry, tensors: Sequence[Any], state: _state.State) -> list[Buffer]:
        runtime, session = _runtime.load(), self._session.value
        views = [_dlpack.View(tensor) for tensor in tensors]
        for argument, view in zip(entry.arguments, views):
            # Carried arguments are updated, and a device has memory of its own: the session has copies.
            copied = argument["carry"] is not None or argument["written"] or self._device is not None
            name = "fp8rt_session_set_argument" if copied else "fp8rt_session_bind_argument"
            try:
                _runtime.call(name, session, argument["index"], ctypes.byref(view.tensor))
            except Error as error:
                raise type(error)(f"{entry.name}, argument {argument['name']}: {error}") from None
        own = {name: array for name, array in state.items() if name != _state.HASH}
        for name, array in own.items():
            self._write(name, array)
        _runtime.call("fp8rt_session_profile", session, entry.profiler.value if entry.profiler else None)
        _runtime.call("fp8rt_session_step", session)
        for name, array in own.items():
            self._read(name, array)
        return [_copy(runtime.fp8rt_session_result(session, result["index"]).contents) for result in entry.results]

    def _write(self, name: str, array: Any) -> None:
        """Gives a tensor of the state its value."""
        tensor = self._tensor(name)
        value = np.ascontiguousarray(np.asarray(array), _dtypes.to_numpy(_type(tensor)))
        if self._device is None:
            _memory(tensor)[...] = value.reshape(-1).view(np.uint8)
        else:
            self._device.write(tensor.data, value.ctypes.data, value.nbytes)

    def _read(self, name: str, array: Any) -> None:
        """Puts the value of a tensor of the state into an array."""
        tensor = self._tensor(name)
        value = np.empty(tensor.shape[: tensor.ndim], _dtypes.to_numpy(_type(tensor)))
        if self._device is None:
            value.reshape(-1).view(np.uint8)[...] = _memory(tensor)
        else:
            self._device.read(value.ctypes.data, tensor.data, value.nbytes)
        array[...] = value

    def _tensor(self, name: str) -> _dlpack.DLTensor:
        """One of the state's tensors, in the memory of the session."""
        tensor: _dlpack.DLTensor = _runtime.load().fp8rt_state_tensor(self._state.value, name.encode()).contents
        return tensor


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
