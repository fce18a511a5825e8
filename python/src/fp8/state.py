# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`fp8.state`: the FP8 state of a program, a plain dict of arrays.

The keys are the tensors that the manifest lists (`scale` f32 [N], `amax_history` f32 [H, N] and
others) and `layout_hash` (u8), which says what the columns mean. Because it is a plain dict,
checkpoints of any framework hold it, and `jax.tree.map` walks it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from . import _dtypes
from ._errors import StateError

State: TypeAlias = dict[str, Any]

HASH = "layout_hash"
HISTORY = "amax_history"
#: The beginning of the names of weights kept in FP8.
CASTS = "weight/"


def tensors(manifest: Mapping[str, Any], *, derived: bool = False) -> dict[str, Mapping[str, Any]]:
    """The descriptions of the state's tensors by name, or of the derived ones: weights in FP8, which are computed from arguments."""
    description = manifest.get("state") or {}
    return {tensor["name"]: tensor for tensor in description.get("tensors", []) if bool(tensor.get("derived")) == derived}


def initial(manifest: Mapping[str, Any], *, derived: bool = False) -> State:
    """The state that a program starts with, in numpy arrays, or its derived tensors; empty for a program without any."""
    state: State = {}
    for name, tensor in tensors(manifest, derived=derived).items():
        state[name] = _initial_tensor(tensor)
    if state and not derived:
        state[HASH] = layout_hash(manifest)
    return state


def _initial_tensor(tensor: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    """One number for all elements, or a list in row-major order; "-0.0" and the like are text."""
    initial, shape, dtype = tensor["initial"], tensor["shape"], _dtypes.to_numpy(tensor["type"])
    if isinstance(initial, list):
        return np.array([_number(value) for value in initial]).astype(dtype).reshape(shape)
    return np.full(shape, _number(initial), dtype)


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, str) else value


def saved(state: Mapping[str, Any]) -> State:
    """The state without casts of weights (fp8_parameters=True), which are made again from the weights.

    >>> saved({"scale": 1, "weight/fc/data": 2})
    {'scale': 1}
    """
    return {name: value for name, value in state.items() if not name.startswith(CASTS)}


def layout_hash(manifest: Mapping[str, Any]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The manifest's hash of the state's layout, as bytes."""
    return np.frombuffer(bytes.fromhex(manifest["state"][HASH]), np.uint8).copy()


def check_mapping(state: Any) -> None:
    """Raises TypeError unless `state` is a dict, or another mapping."""
    if not isinstance(state, Mapping):
        raise TypeError(f"a state is a dict of arrays, not of type {type(state).__name__}")


def check(state: Mapping[str, Any], manifest: Mapping[str, Any]) -> None:
    """Raises StateError unless `state` is one of the manifest's program: its tensors, their shapes and types, its layout.

    Raises TypeError for anything but a dict of arrays.
    """
    check_mapping(state)
    description, known = manifest.get("state") or {}, tensors(manifest)
    expected = {*known, HASH} if known else set()
    if missing := sorted(expected - set(state)):
        raise StateError(f"the state lacks {', '.join(missing)}")
    if unknown := sorted(set(state) - expected):
        raise StateError(f"the state has {', '.join(unknown)}, which this program's state has not")
    if not known:
        return
    if bytes(np.asarray(state[HASH]).astype(np.uint8)).hex() != description[HASH]:
        columns = "; ".join(f"{c['index']}: {c['tensor']} of {', '.join(c['sites'])} in {c['format']}" for c in description["columns"])
        raise StateError(f"the state has another layout than this program, whose columns are {columns}")
    for name, tensor in known.items():
        _check_tensor(name, state[name], tensor)


def _check_tensor(name: str, value: Any, tensor: Mapping[str, Any]) -> None:
    if not hasattr(value, "shape") or not hasattr(value, "dtype"):
        raise TypeError(f"{name} of the state is of type {type(value).__name__}, and no array")
    if tuple(value.shape) != tuple(tensor["shape"]):
        hint = "; fp8.state.resize changes the length of a history" if name == HISTORY else ""
        raise StateError(f"{name} of the state has the shape {tuple(value.shape)}, not {tuple(tensor['shape'])}{hint}")
    # torch's types are not numpy's: compare names without a package before the dot.
    given, wanted = str(value.dtype).rsplit(".", 1)[-1], _dtypes.to_numpy(tensor["type"]).name
    if given != wanted and given.removeprefix("u") != wanted:
        raise StateError(f"{name} of the state has the type {given}, not {wanted}")


def resize(state: Mapping[str, Any], length: int, *, history: str = "newest") -> State:
    """The state with an amax history of `length` rows, for a program compiled with that length.

    Row 0, the amaxes of the step under way, is always kept. Of the finished steps, "newest" keeps
    the newest and "oldest" the oldest that fit. Missing rows are 0: with "newest" those of the
    oldest steps, with "oldest" those of the newest. Raises ValueError for a length below 1.

    `state` may also be what `state_dict` of fp8.torch or of a module gave: all histories in it are
    changed, `0.amax_history` and the like. Tensors of PyTorch stay tensors.

    >>> rows = np.array([[9.0], [1.0], [2.0], [3.0]], np.float32)  # row 1 is the oldest
    >>> resize({"amax_history": rows}, 3)["amax_history"].ravel().tolist()
    [9.0, 2.0, 3.0]
    >>> resize({"amax_history": rows}, 3, history="oldest")["amax_history"].ravel().tolist()
    [9.0, 1.0, 2.0]
    >>> resize({"amax_history": rows}, 5)["amax_history"].ravel().tolist()
    [9.0, 0.0, 1.0, 2.0, 3.0]
    """
    if history not in ("newest", "oldest"):
        raise ValueError(f"history={history!r} is neither 'newest' nor 'oldest'")
    if length < 1:
        raise ValueError(f"length={length}: a history has at least one row")
    if not (names := [name for name in state if name.rpartition(".")[2] == HISTORY]):
        raise StateError("the state has no amax_history: its recipe needs none")
    return {**state, **{name: _resized(state[name], length, history) for name in names}}


def _resized(rows: Any, length: int, history: str) -> Any:
    old = np.asarray(rows)
    new = np.zeros((length, *old.shape[1:]), old.dtype)
    new[0] = old[0]
    kept = min(length, len(old)) - 1
    if history == "newest":
        new[length - kept :] = old[len(old) - kept :]
    else:
        new[1 : 1 + kept] = old[1 : 1 + kept]
    return rows.new_tensor(new) if hasattr(rows, "new_tensor") else new
