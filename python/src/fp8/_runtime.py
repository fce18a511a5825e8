# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""libfp8rt by ctypes: the functions of runtime/include/fp8rt that this package calls."""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any

from . import _dlpack, _options, _tools
from ._errors import Error, MissingToolError, RunError, StateError

_TENSORS = ctypes.POINTER(ctypes.POINTER(_dlpack.DLTensor))
_HANDLE, _OUT = ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)
_NAME, _INDEX = ctypes.c_char_p, ctypes.c_uint32
_TENSOR = ctypes.POINTER(_dlpack.DLTensor)
_ADDRESS = _POINTERS = ctypes.c_void_p
_MANAGED_OUT = ctypes.POINTER(ctypes.POINTER(_dlpack.DLManagedTensor))

#: Functions that return a status.
_CHECKED: dict[str, list[Any]] = {
    "fp8rt_library_load": [_NAME, _OUT],
    "fp8rt_state_create": [_HANDLE, _OUT],
    "fp8rt_session_create": [_HANDLE, _NAME, _HANDLE, _OUT],
    "fp8rt_session_set_argument": [_HANDLE, _INDEX, _TENSOR],
    "fp8rt_session_bind_argument": [_HANDLE, _INDEX, _TENSOR],
    "fp8rt_session_step": [_HANDLE],
    "fp8rt_prepare": [_HANDLE, _NAME, _HANDLE, _TENSORS, _INDEX, _TENSORS, _INDEX, _OUT],
    "fp8rt_prepared_call": [_HANDLE, _POINTERS, _POINTERS],
    "fp8rt_gpu_capability": [_NAME, ctypes.POINTER(ctypes.c_int32), ctypes.POINTER(ctypes.c_int32)],
    "fp8rt_gpu_open": [_NAME, _HANDLE, _OUT],
    "fp8rt_gpu_tensor_create": [_HANDLE, _dlpack.DLDataType, ctypes.POINTER(ctypes.c_int64), ctypes.c_int32, _MANAGED_OUT],
    "fp8rt_gpu_write": [_HANDLE, _ADDRESS, _ADDRESS, ctypes.c_uint64, _ADDRESS],
    "fp8rt_gpu_read": [_HANDLE, _ADDRESS, _ADDRESS, ctypes.c_uint64, _ADDRESS],
    "fp8rt_gpu_copy": [_HANDLE, _ADDRESS, _ADDRESS, ctypes.c_uint64, _ADDRESS],
    "fp8rt_gpu_wait": [_HANDLE, _ADDRESS],
    "fp8rt_state_create_on": [_HANDLE, _OUT],
    "fp8rt_session_create_on": [_HANDLE, _NAME, _HANDLE, _OUT],
    "fp8rt_prepare_on": [_HANDLE, _NAME, _HANDLE, _TENSORS, _INDEX, _TENSORS, _INDEX, _OUT],
    "fp8rt_prepared_enqueue": [_HANDLE, _POINTERS, _POINTERS, _ADDRESS],
    "fp8rt_prepared_enqueue_in": [_HANDLE, _POINTERS, _POINTERS, _ADDRESS, _ADDRESS],
    "fp8rt_prepared_call_from_host": [_HANDLE, _POINTERS, _POINTERS],
    "fp8rt_local_memory_create": [_INDEX, ctypes.POINTER(ctypes.c_int)],
    "fp8rt_communicator_create_local": [ctypes.c_int, _INDEX, ctypes.c_double, _OUT],
    "fp8rt_communicator_create_tcp": [_NAME, _INDEX, _INDEX, ctypes.c_double, _OUT],
    "fp8rt_communicator_create_nccl": [_HANDLE, _OUT],
    "fp8rt_communicator_fail": [_HANDLE, _NAME],
    "fp8rt_communicator_compare": [_HANDLE, _NAME, ctypes.POINTER(_NAME), ctypes.c_uint64],
    "fp8rt_communicator_compare_libraries": [_HANDLE, _HANDLE],
    "fp8rt_prepared_profile": [_HANDLE, _HANDLE],
    "fp8rt_prepared_set_communicator": [_HANDLE, _HANDLE],
    "fp8rt_profiler_create": [_HANDLE, _OUT],
    "fp8rt_session_profile": [_HANDLE, _HANDLE],
    "fp8rt_profiler_kernel": [_HANDLE, _INDEX, ctypes.c_void_p],
}
_DESTROY = [
    *("fp8rt_library_destroy", "fp8rt_state_destroy", "fp8rt_session_destroy", "fp8rt_prepared_destroy"),
    *("fp8rt_gpu_close", "fp8rt_profiler_destroy", "fp8rt_communicator_destroy"),
]
#: The statuses (status.h) that are errors of other classes than RunError.
_MISMATCH, _OUT_OF_MEMORY = 5, 7


@functools.cache
def load() -> ctypes.CDLL:
    """libfp8rt, with the types of its functions declared. Raises MissingToolError."""
    _load_openmp()
    path = _tools.find("libfp8rt.so")
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise MissingToolError(f"{path} cannot be loaded: {error}") from None
    for name, arguments in _CHECKED.items():
        getattr(library, name).argtypes = arguments
    for name in _DESTROY:
        getattr(library, name).argtypes, getattr(library, name).restype = [_HANDLE], None
    library.fp8rt_last_error.restype = ctypes.c_char_p
    library.fp8rt_library_manifest.argtypes = [_HANDLE]
    library.fp8rt_library_manifest.restype = ctypes.c_char_p
    library.fp8rt_state_tensor.argtypes, library.fp8rt_state_tensor.restype = [_HANDLE, _NAME], _TENSOR
    library.fp8rt_session_result.argtypes, library.fp8rt_session_result.restype = [_HANDLE, _INDEX], _TENSOR
    library.fp8rt_gpu_place.argtypes, library.fp8rt_gpu_place.restype = [_HANDLE], _dlpack.DLDevice
    library.fp8rt_gpu_name.argtypes, library.fp8rt_gpu_name.restype = [_HANDLE], ctypes.c_char_p
    library.fp8rt_profiler_num_kernels.argtypes, library.fp8rt_profiler_num_kernels.restype = [_HANDLE], _INDEX
    library.fp8rt_profiler_outside_seconds.argtypes, library.fp8rt_profiler_outside_seconds.restype = [_HANDLE], ctypes.c_double
    return library


def _load_openmp() -> None:
    """Loads libomp, which compiled libraries need by its name, for the whole process."""
    # Milliseconds that idle threads of libomp look for work before they sleep. They would take the processor from the
    # framework's own threads for 200 otherwise; with 0 a step of the example GPT takes twice its time, as threads are
    # woken for each kernel.
    os.environ.setdefault("KMP_BLOCKTIME", "1")
    try:
        path = str(_tools.find("libomp.so.5"))
    except MissingToolError:
        path = "libomp.so.5"
    try:
        ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
    except OSError:
        # The dynamic linker says so when a library that needs it is loaded.
        return


def call(name: str, *arguments: Any) -> None:
    """Calls a function of libfp8rt that returns a status; raises RunError, StateError or MemoryError with its text."""
    library = load()
    check(getattr(library, name)(*arguments))


def check(status: int) -> None:
    """Raises what a status means, with the text of this thread's last error."""
    if status == 0:
        return
    text = _options.python_names(load().fp8rt_last_error().decode())
    if status == _OUT_OF_MEMORY:
        raise MemoryError(text)
    kind: type[Error] = StateError if status == _MISMATCH else RunError
    raise kind(text)


class Handle:
    """An object of libfp8rt, destroyed with this one."""

    def __init__(self, create: str, destroy: str, *arguments: Any) -> None:
        self.value: ctypes.c_void_p | None = None
        out = ctypes.c_void_p()
        call(create, *arguments, ctypes.byref(out))
        self.value = out
        self._destroy = getattr(load(), destroy)

    def __del__(self) -> None:
        if self.value is not None:
            self._destroy(self.value)
