# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An entry point of a compiled library as a function of JAX arrays: one custom call of XLA.

XLA does donation, asynchronous dispatch and memory; libfp8_jax.so passes its buffers on.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from .. import _device, _dtypes, _runtime, _tools
from .. import state as _state
from .._errors import MissingToolError
from .._library import Library
from . import _devices, _ranks
from .lowering import _complex

_TARGET = "fp8_call"
#: The same on GPUs, for entry points that may be parts of graphs (XLA's command buffers).
_CAPTURABLE = "fp8_call_in_graphs"


class Call:
    """Calls entry point `entry` of `library`; for use while JAX traces.

    `dtypes` are JAX's types of the first results, which the manifest does not know all (unsigned
    integers); the others have the manifest's. `is_shared` says that all devices of a shard_map take
    the call together, and have one state.
    """

    def __init__(self, library: Library, entry: str, dtypes: Sequence[Any] = (), is_shared: bool = False) -> None:
        description = library.entries[entry].description
        is_emulated = library.device == _device.EMULATOR
        self._name = f"{library.hash}/{entry}{'@emulator' if is_emulated else ''}{'@devices' if is_shared else ''}"
        # The emulator's is in its own memory.
        workspace = 0 if is_emulated else int(description.get("workspace_bytes") or 0)
        _register(self._name, library, entry, workspace)
        if is_shared:
            _ranks.join(library, self._name, _ffi_library(), _functions())
        self._target = _CAPTURABLE if library.device.startswith("cuda") and description.get("capturable") else _TARGET
        self._arguments, results = description["arguments"], description["results"]
        types = [*dtypes, *(_dtypes.to_numpy(r["type"]) for r in results[len(dtypes) :])]
        self._results = [jax.ShapeDtypeStruct(tuple(r["shape"]), type) for r, type in zip(results, types)]
        if workspace and library.target != "cpu":
            # Memory of XLA's; libfp8_jax has that of calls on the CPU.
            self._results.append(jax.ShapeDtypeStruct((workspace,), jnp.int8))
        self._names = [r["name"] if r["kind"] == "state" else None for r in results]
        common = _state.tensors(library.manifest) if is_shared else {}
        self._shared = {i for i, name in enumerate(self._names) if name in common}
        aliases = [(r.get("alias"), i) for i, r in enumerate(results)]
        self._aliases = {a: i for a, i in aliases if a is not None and a >= 0}

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        """The entry point's results; arrays and results are in the manifest's order."""
        arrays = _devices.on_one_device(_devices.varying_alike(arrays))
        results = _devices.results_varying_as(arrays, self._results, self._shared)
        call = jax.ffi.ffi_call(self._target, results, input_output_aliases=self._aliases, vmap_method="sequential")
        return list(call(*arrays, entry=self._name))[: len(self._names)]

    def with_state(self, arrays: Sequence[Any], state: Mapping[str, Any], reason: str) -> tuple[list[Any], dict[str, Any]]:
        """The results and the new tensors of the state, from the arguments and the state's tensors by name.

        Not transformable, as `untransformable`.
        """
        given = iter(arrays)
        all_arrays = [state[a["name"]] if a["kind"] == "state" else next(given) for a in self._arguments]
        values = list(zip(self._names, self.untransformable(all_arrays, reason)))
        return [v for name, v in values if name is None], {name: v for name, v in values if name is not None}

    def untransformable(self, arrays: Sequence[Any], reason: str) -> list[Any]:
        """As a call, but jax.grad, jax.jvp and jax.vmap of it raise NotImplementedError with the reason."""

        def refuse(*_: Any) -> Any:
            raise NotImplementedError(reason)

        function = jax.custom_batching.custom_vmap(lambda *arrays: self(arrays))
        function.def_vmap(refuse)
        differentiable = jax.custom_jvp(lambda *arrays: function(*arrays))
        differentiable.defjvp(refuse)
        return list(differentiable(*arrays))


def physical(array: Any) -> Any:
    """An array as the compiled library takes it: a typed PRNG key as its numbers, complex numbers as pairs."""
    if is_key(array):
        return jax.random.key_data(array)
    array = jnp.asarray(array)
    return _complex.as_pairs(array) if _complex.is_complex(array) else array


def logical(array: Any, type: Any) -> Any:
    """A result of the compiled library with the type (shape, dtype, weak_type) that JAX's result has."""
    if is_key(type):
        return jax.random.wrap_key_data(array, impl=type.dtype._impl)
    if _complex.is_complex(type):
        array = _complex.from_pairs(array)
    return _weakly_typed(array) if getattr(type, "weak_type", False) else array


def physical_dtype(type: Any) -> Any:
    """The dtype of `physical(array)` for an array of this type."""
    if _complex.is_complex(type):
        return jnp.finfo(type.dtype).dtype
    return jnp.uint32 if is_key(type) else type.dtype


def is_key(value: Any) -> bool:
    dtype = getattr(value, "dtype", None)
    return dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)


def _weakly_typed(array: Any) -> Any:
    """The array with a weak type, as results of Python numbers have; else the next call would compile again."""
    from jax._src.lax import lax

    return lax._convert_element_type(array, array.dtype, weak_type=True)


def _register(name: str, library: Library, entry: str, workspace: int) -> None:
    _runtime.load()  # And with it libomp.
    handle = library.handle  # Raises where this machine cannot run the library.
    if library.target != "cpu":
        description = library.entries[entry].description
        _kept.append(library)
        counts = len(description["arguments"]), len(description["results"])
        is_emulated = library.device == _device.EMULATOR
        _ffi_library().fp8_jax_register_on_device(name.encode(), ctypes.byref(_functions()), handle, entry.encode(), is_emulated, *counts, workspace)
        return
    function = getattr(_loaded(str(library.path)), f"fp8_call_{entry}")
    version = int(library.manifest.get("call") or 1)
    _ffi_library().fp8_jax_register(name.encode(), ctypes.cast(function, ctypes.c_void_p), workspace, version)
    library.measure_by(name, functools.partial(_measure, name))


def _measure(name: str, profiler: _runtime.Handle | None) -> None:
    """Measures all following calls of an entry point; None measures none."""
    begin, end = (ctypes.cast(getattr(_runtime.load(), f"fp8rt_profiler_{when}"), ctypes.c_void_p) for when in ("begin", "end"))
    _ffi_library().fp8_jax_profile(name.encode(), begin, end, profiler.value if profiler else None)


#: Libraries for GPUs, which XLA may call as long as the process lives.
_kept: list[Library] = []


class _Runtime(ctypes.Structure):
    """fp8_jax::Runtime."""

    names = (
        *("fp8rt_gpu_open", "fp8rt_prepare_on", "fp8rt_prepared_enqueue_in", "fp8rt_prepared_call_from_host", "fp8rt_last_error"),
        *("fp8rt_prepared_set_communicator", "fp8rt_communicator_gather", "fp8rt_communicator_fail"),
    )
    _fields_ = [(name, ctypes.c_void_p) for name in names]


@functools.cache
def _functions() -> _Runtime:
    runtime = _runtime.load()
    return _Runtime(*(ctypes.cast(getattr(runtime, name), ctypes.c_void_p) for name in _Runtime.names))


@functools.cache
def _loaded(path: str) -> ctypes.CDLL:
    """A compiled library; XLA may call it as long as the process lives, so it stays loaded."""
    return ctypes.CDLL(path)


@functools.cache
def _ffi_library() -> ctypes.CDLL:
    """libfp8_jax.so, with its custom call made known to JAX."""
    path = _tools.find("libfp8_jax.so")
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise MissingToolError(f"{path} cannot be loaded: {error}") from None
    library.fp8_jax_register.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32]
    library.fp8_jax_register.restype = None
    library.fp8_jax_register_on_device.argtypes = [
        *(ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_bool),
        *(ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint64),
    ]
    library.fp8_jax_register_on_device.restype = None
    library.fp8_jax_profile.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    library.fp8_jax_profile.restype = None
    library.fp8_jax_set_ranks.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32]
    library.fp8_jax_set_ranks.restype = None
    instance = {"type_id": _capsule_from(library.fp8_jax_type_id), "type_info": _capsule_from(library.fp8_jax_type_info)}
    jax.ffi.register_ffi_type(_TARGET, instance, platform="cpu")
    stages = {"instantiate": jax.ffi.pycapsule(library.fp8_instantiate), "execute": jax.ffi.pycapsule(library.fp8_call)}
    for name in (_TARGET, _CAPTURABLE):
        jax.ffi.register_ffi_target(name, stages, platform="cpu")
    jax.ffi.register_ffi_type(_TARGET, instance, platform="CUDA")
    for name, function in ((_TARGET, library.fp8_call_gpu), (_CAPTURABLE, library.fp8_call_gpu_capturable)):
        stages = {"instantiate": library.fp8_instantiate, "initialize": library.fp8_open_gpu, "execute": function}
        jax.ffi.register_ffi_target(name, {stage: jax.ffi.pycapsule(call) for stage, call in stages.items()}, platform="CUDA")
    return library


def _capsule_from(function: Any) -> Any:
    """Calls a function of C and returns the address that it returns in the form that JAX takes."""
    function.restype = ctypes.c_void_p
    return jax.ffi.pycapsule(function())
