# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`fp8.te`: scales and amax histories of checkpoints that Transformer Engine wrote.

Its modules pickle them into a tensor of bytes, `<module>._extra_state`, for delayed scaling only:
scale_fwd [3 g], amax_history_fwd [H, 3 g] with the columns input, weight, output of each of g
products, and scale_bwd [2 g], amax_history_bwd [H, 2 g] with grad_output, grad_input. The rows of
its histories mean what ours mean: row 0 is the step under way, row 1 the oldest.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import state as _state
from ._errors import StateError

#: The tensors of a product whose columns we have: their position, and how many there are of that direction.
_COLUMNS = {"input": ("fwd", 0, 3), "weight": ("fwd", 1, 3), "grad_output": ("bwd", 0, 2)}

#: How files of torch.save begin: they are zip archives.
_ARCHIVE = b"PK\x03\x04"

#: The names that a pickle may have: the parts of tensors, and containers.
_ALLOWED = {
    ("collections", "OrderedDict"),
    ("_codecs", "encode"),
    ("torch._utils", "_rebuild_tensor_v2"),
    ("torch", "device"),
    ("torch", "float32"),
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    *((f"numpy.{core}.{module}", name) for core in ("core", "_core") for module, name in
      (("multiarray", "_reconstruct"), ("multiarray", "scalar"), ("numeric", "_frombuffer"))),
}  # fmt: skip


class _Record:
    """Stands for an object of Transformer Engine (a recipe): its fields, none of its code."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments

    def __setstate__(self, fields: Any) -> None:
        self.fields = fields


def _load_storage(data: bytes) -> Any:
    """torch.storage._load_from_bytes, but that the bytes may hold tensors only."""
    import torch

    return torch.load(io.BytesIO(data), weights_only=True)


class _Unpickler(pickle.Unpickler):
    """Reads tensors, containers and records; anything else that a pickle names is refused."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("torch.storage", "_load_from_bytes"):
            return _load_storage
        if module.partition(".")[0] == "transformer_engine":
            return _Record
        if (module, name) in _ALLOWED:
            return super().find_class(module, name)
        raise StateError(f"an _extra_state names {module}.{name}, which no checkpoint of Transformer Engine needs: it is not read")


class _Pickles:
    """The module that torch.load takes for `pickle`, to read a file of torch.save."""

    Unpickler = _Unpickler


def read_extra_state(value: Any) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays scale_fwd, amax_history_fwd, scale_bwd, amax_history_bwd of one `_extra_state`; empty if it holds nothing.

    `value` is bytes, a tensor or array of bytes, io.BytesIO with a pickle or with what torch.save
    wrote (read with torch), or None, which holds nothing. Raises StateError for anything else than
    tensors. No code of the pickle runs.
    """
    data = _bytes(value)
    if not data:
        return {}
    try:
        record = _load_saved(data) if data.startswith(_ARCHIVE) else _Unpickler(io.BytesIO(data)).load()
    except StateError:
        raise
    except Exception as error:
        raise StateError(f"an _extra_state cannot be read: {error}") from None
    if record is None:
        return {}
    names = [f"{kind}_{direction}" for direction in ("fwd", "bwd") for kind in ("scale", "amax_history")]
    if not isinstance(record, dict) or not all(name in record for name in names):
        raise StateError(f"an _extra_state lacks {', '.join(names)}: only delayed scaling has a state")
    arrays = {name: _numbers(name, record[name]) for name in names}
    for direction in ("fwd", "bwd"):
        scale, history = arrays[f"scale_{direction}"], arrays[f"amax_history_{direction}"]
        if scale.ndim != 1 or history.ndim != 2 or history.shape[1] != len(scale):
            raise StateError(f"scale_{direction} {scale.shape} and amax_history_{direction} {history.shape} do not fit together")
    return arrays


def _bytes(value: Any) -> bytes:
    if value is None or isinstance(value, (bytes, bytearray)):
        return bytes(value or b"")
    if isinstance(value, io.BytesIO):
        return value.getvalue()
    array = _array(value) if hasattr(value, "shape") else None
    if array is None or array.size and array.dtype != np.uint8:
        raise StateError(f"an _extra_state is bytes, a tensor of bytes or None, not of type {type(value).__name__}")
    return array.tobytes()


def _load_saved(data: bytes) -> Any:
    import torch

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if any(name.endswith("/constants.pkl") for name in archive.namelist()):  # torch.load would run its code.
            raise StateError("an _extra_state is a program of TorchScript, which no checkpoint of Transformer Engine needs: it is not read")
    return torch.load(io.BytesIO(data), map_location="cpu", pickle_module=_Pickles, weights_only=False)


def _numbers(name: str, value: Any) -> np.ndarray[Any, Any]:
    """The numbers of a tensor, of whatever type, as f32."""
    try:
        return _array(value.float() if hasattr(value, "float") else value).astype(np.float32)
    except (TypeError, ValueError):
        raise StateError(f"{name} of an _extra_state has no numbers: {value!r}") from None


def _array(value: Any) -> np.ndarray[Any, Any]:
    """An array of numpy, or a tensor wherever it lies."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    return np.asarray(value)


def load_extra_state(
    target: Any, state_dict: Mapping[str, Any], names: Mapping[str, str | Sequence[str]], *, history: str | None = None, strict: bool = True
) -> None:
    """Puts the scales and histories of a checkpoint into `target.state`, whose columns `target.columns` says.

    `target` is a Step of fp8.jax, or a Backend, Graph, TrainStep or Exported of fp8.torch; a backend's or step's state is
    there after its first call. See `convert`, which takes and returns a state.
    """
    state = target.state
    target.state = convert(dict(state) if state is not None else {}, target.columns, state_dict, names, history=history, strict=strict)


def convert(
    state: _state.State,
    columns: Sequence[Mapping[str, Any]],
    state_dict: Mapping[str, Any],
    names: Mapping[str, str | Sequence[str]],
    *,
    history: str | None = None,
    strict: bool = True,
) -> _state.State:
    """The state with the scales and histories of a checkpoint.

    `columns` are the manifest's (`library.manifest["state"]["columns"]`). `names` says which site a
    module of the checkpoint is, or which sites, for a module of several products:
    {"layers.0.mlp": ["h0/fc1", "h0/fc2"]}. `history` ("newest" or "oldest") says which steps to take
    over where the lengths of the histories differ, otherwise an error.

    Columns that no module fills, and modules that fill none, are an error unless strict is False.
    Columns of outputs and of gradients of inputs have no counterpart and are left out.
    Raises StateError.
    """
    if not state:
        raise StateError("there is no FP8 state to fill: call the step or the model with gradients once; recipes as 'current' keep none")
    result = {**state, "scale": _array(state["scale"]).copy(), _state.HISTORY: _array(state[_state.HISTORY]).copy()}
    filled: dict[int, str] = {}
    idle = []
    for module, sites in names.items():
        arrays = _find(state_dict, module)
        products = [sites] if isinstance(sites, str) else list(sites)
        if arrays and len(arrays["scale_fwd"]) != 3 * len(products):
            raise StateError(f"{module} has {len(arrays['scale_fwd']) // 3} products, names gives {len(products)} sites for it")
        found = [_fill(result, columns, arrays, i, site, module, filled, history) for i, site in enumerate(products) if arrays]
        if not any(found):
            idle.append(module)
    missing = [f"{c['tensor']} of {', '.join(c['sites'])}" for c in columns if c["index"] not in filled]
    unread = [key.removesuffix("._extra_state") for key, value in state_dict.items()
              if key.endswith("._extra_state") and key.removesuffix("._extra_state") not in names and read_extra_state(value)]  # fmt: skip
    problems = {"modules that fill no column": idle, "modules without a name": unread, "columns that no module fills": missing}
    if strict and any(problems.values()):
        raise StateError("; ".join(f"{what}: {', '.join(which)}" for what, which in problems.items() if which) + " (strict=False allows it)")
    return result


def _find(state_dict: Mapping[str, Any], module: str) -> dict[str, np.ndarray[Any, Any]]:
    key = f"{module}._extra_state"
    if key not in state_dict:
        raise StateError(f"the checkpoint has no {key}")
    return read_extra_state(state_dict[key])


def _fill(
    state: _state.State, columns: Sequence[Mapping[str, Any]], arrays: Mapping[str, np.ndarray[Any, Any]],
    product: int, site: str, module: str, filled: dict[int, str], history: str | None,
) -> bool:  # fmt: skip
    """Fills the columns of one product; whether there was one."""
    found = False
    for column in columns:
        if site not in column["sites"] or column["tensor"] not in _COLUMNS:
            continue
        direction, position, count = _COLUMNS[column["tensor"]]
        source, index = count * product + position, column["index"]
        scale = arrays[f"scale_{direction}"][source]
        rows = _rows(arrays[f"amax_history_{direction}"][:, source], len(state[_state.HISTORY]), module, history)
        if index in filled and (state["scale"][index] != scale or not np.array_equal(state[_state.HISTORY][:, index], rows)):
            raise StateError(f"{filled[index]} and {module} share the column {column['tensor']} of {site}, with different values")
        state["scale"][index], state[_state.HISTORY][:, index] = scale, rows
        filled[index], found = module, True
    return found


def _rows(rows: np.ndarray[Any, Any], length: int, module: str, history: str | None) -> np.ndarray[Any, Any]:
    if len(rows) == length:
        return rows
    if history is None:
        raise StateError(f"{module} has an amax history of {len(rows)} steps, the program one of {length}: say history='newest' or 'oldest'")
    resized: np.ndarray[Any, Any] = _state.resize({_state.HISTORY: rows[:, None]}, length, history=history)[_state.HISTORY][:, 0]
    return resized
