# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""States of other lengths and of Transformer Engine's checkpoints."""

import pickle
import subprocess

import fp8
import numpy as np
import pytest
from fp8 import te

COLUMNS = [
    {"index": 0, "tensor": "input", "sites": ["fc1"], "format": "E4M3"},
    {"index": 1, "tensor": "weight", "sites": ["fc1"], "format": "E4M3"},
    {"index": 2, "tensor": "input", "sites": ["fc2"], "format": "E4M3"},
    {"index": 3, "tensor": "weight", "sites": ["fc2"], "format": "E4M3"},
    {"index": 4, "tensor": "grad_output", "sites": ["fc1"], "format": "E5M2"},
    {"index": 5, "tensor": "grad_output", "sites": ["fc2"], "format": "E5M2"},
]


def empty_state(length):
    return {"scale": np.ones(6, np.float32), "amax_history": np.zeros((length, 6), np.float32), "layout_hash": np.zeros(8, np.uint8)}


def extra_state(products, length, start=1):
    """The state that a module of Transformer Engine saves: every number tells its place."""
    record = {"recipe": None, "extra_fp8_variables": {}}
    for direction, count in (("fwd", 3), ("bwd", 2)):
        n = count * products
        record[f"scale_{direction}"] = np.arange(start, start + n, dtype=np.float32) * (1 if count == 3 else 100)
        record[f"amax_history_{direction}"] = np.arange(length * n, dtype=np.float32).reshape(length, n) + (0 if count == 3 else 1000)
    return np.frombuffer(pickle.dumps(record), np.uint8)


def test_a_module_of_two_products():
    state = te.convert(empty_state(4), COLUMNS, {"mlp._extra_state": extra_state(2, 4)}, {"mlp": ["fc1", "fc2"]})
    # Columns of TE: input, weight, output of each product; grad_output, grad_input of each.
    assert state["scale"].tolist() == [1, 2, 4, 5, 100, 300]
    assert state["amax_history"][0].tolist() == [0, 1, 3, 4, 1000, 1002]
    assert state["amax_history"][3].tolist() == [18, 19, 21, 22, 1012, 1014]


def test_two_modules():
    checkpoint = {"a._extra_state": extra_state(1, 2), "b._extra_state": extra_state(1, 2, start=10), "a.weight": None}
    state = te.convert(empty_state(2), COLUMNS, checkpoint, {"a": "fc1", "b": "fc2"})
    assert state["scale"].tolist() == [1, 2, 10, 11, 100, 1000]


def test_histories_of_another_length():
    checkpoint, names = {"mlp._extra_state": extra_state(2, 4)}, {"mlp": ["fc1", "fc2"]}
    with pytest.raises(fp8.StateError, match="mlp has an amax history of 4 steps, the program one of 3: say history="):
        te.convert(empty_state(3), COLUMNS, checkpoint, names)
    assert te.convert(empty_state(3), COLUMNS, checkpoint, names, history="newest")["amax_history"][:, 0].tolist() == [0, 12, 18]
    assert te.convert(empty_state(3), COLUMNS, checkpoint, names, history="oldest")["amax_history"][:, 0].tolist() == [0, 6, 12]


def test_what_does_not_match_is_listed():
    checkpoint = {"a._extra_state": extra_state(1, 2), "b._extra_state": extra_state(1, 2)}
    with pytest.raises(fp8.StateError) as info:
        te.convert(empty_state(2), COLUMNS, checkpoint, {"a": "fc1"})
    assert str(info.value) == (
        "modules without a name: b; columns that no module fills: input of fc2, weight of fc2, grad_output of fc2 (strict=False allows it)"
    )
    state = te.convert(empty_state(2), COLUMNS, checkpoint, {"a": "fc1"}, strict=False)
    assert state["scale"].tolist() == [1, 2, 1, 1, 100, 1]
    with pytest.raises(fp8.StateError, match="modules that fill no column: a"):
        te.convert(empty_state(2), COLUMNS, checkpoint, {"a": "fc9", "b": "fc2"})
    with pytest.raises(fp8.StateError, match="the checkpoint has no c._extra_state"):
        te.convert(empty_state(2), COLUMNS, checkpoint, {"c": "fc1"})
    with pytest.raises(fp8.StateError, match="mlp has 1 products, names gives 2 sites for it"):
        te.convert(empty_state(2), COLUMNS, {"mlp._extra_state": extra_state(1, 2)}, {"mlp": ["fc1", "fc2"]})


def test_modules_that_share_a_column_must_agree():
    shared = [{"index": 0, "tensor": "input", "sites": ["q", "k"], "format": "E4M3"}]
    state = {"scale": np.ones(1, np.float32), "amax_history": np.zeros((2, 1), np.float32)}
    same = {"q._extra_state": extra_state(1, 2), "k._extra_state": extra_state(1, 2)}
    assert te.convert(state, shared, same, {"q": "q", "k": "k"})["scale"].tolist() == [1]
    with pytest.raises(fp8.StateError, match="q and k share the column input of k, with different values"):
        te.convert(state, shared, {**same, "k._extra_state": extra_state(1, 2, start=2)}, {"q": "q", "k": "k"})


def test_load_into_a_step():
    class Step:
        state, columns = empty_state(2), COLUMNS

    step = Step()
    te.load_extra_state(step, {"mlp._extra_state": extra_state(2, 2)}, {"mlp": ["fc1", "fc2"]})
    assert step.state["scale"][3] == 5


@pytest.mark.parametrize("state", [None, {}])
def test_a_target_without_state_is_named(state):
    class Step:
        columns = []

    step = Step()
    step.state = state
    with pytest.raises(fp8.StateError, match="there is no FP8 state to fill: call the step"):
        te.load_extra_state(step, {"mlp._extra_state": extra_state(2, 2)}, {"mlp": ["fc1", "fc2"]})


class Command:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return subprocess.check_call, (["touch", str(self.path)],)


def test_a_pickle_runs_nothing(tmp_path):
    with pytest.raises(fp8.StateError, match="names subprocess.check_call, which no checkpoint of Transformer Engine needs"):
        te.read_extra_state(pickle.dumps({"recipe": Command(tmp_path / "made")}))
    assert not (tmp_path / "made").exists()
    for module, name in (("os", "system"), ("builtins", "eval"), ("torch", "load"), ("numpy", "load")):
        with pytest.raises(fp8.StateError, match=f"names {module}.{name}"):
            te.read_extra_state(b"c" + f"{module}\n{name}\n".encode() + b".")


def test_what_is_no_state_of_delayed_scaling():
    assert te.read_extra_state(b"") == {} and te.read_extra_state(pickle.dumps(None)) == {}
    for data in (b"nonsense", pickle.dumps([1]), pickle.dumps({"scale_fwd": 1})):
        with pytest.raises(fp8.StateError, match="an _extra_state (cannot be read|lacks scale_fwd)"):
            te.read_extra_state(data)
    with pytest.raises(fp8.StateError, match="do not fit together"):
        record = pickle.loads(extra_state(1, 2).tobytes())
        te.read_extra_state(pickle.dumps({**record, "scale_fwd": np.ones(4, np.float32)}))


@pytest.mark.parametrize("value", ["text", 7, [1, 2], np.ones(3, np.float32)], ids=lambda value: type(value).__name__)
def test_an_extra_state_is_bytes(value):
    kind = type(value).__name__
    with pytest.raises(fp8.StateError, match=f"^an _extra_state is bytes, a tensor of bytes or None, not of type {kind}$"):
        te.read_extra_state(value)


@pytest.mark.parametrize("value", [{}, "text"])
def test_scales_are_numbers(value):
    record = {**pickle.loads(extra_state(1, 2).tobytes()), "scale_fwd": value}
    with pytest.raises(fp8.StateError, match=f"^scale_fwd of an _extra_state has no numbers: {value!r}$"):
        te.read_extra_state(pickle.dumps(record))


def test_none_holds_nothing():
    """As modules that ran without FP8 save it."""
    assert te.read_extra_state(None) == {}
    checkpoint = {"mlp._extra_state": extra_state(2, 2), "norm._extra_state": None}
    assert te.convert(empty_state(2), COLUMNS, checkpoint, {"mlp": ["fc1", "fc2"]})["scale"][3] == 5
    with pytest.raises(fp8.StateError, match=r"^modules that fill no column: norm \(strict=False allows it\)$"):
        te.convert(empty_state(2), COLUMNS, checkpoint, {"mlp": ["fc1", "fc2"], "norm": "fc3"})


def test_a_recipe_in_a_checkpoint_is_a_record():
    # A class of Transformer Engine, which is not installed here.
    data = pickle.dumps({**pickle.loads(extra_state(1, 2).tobytes()), "recipe": 7}, protocol=2)
    with_class = data.replace(b"K\x07", b"ctransformer_engine.common.recipe\nDelayedScaling\n)R")
    assert with_class != data
    assert te.read_extra_state(with_class)["scale_fwd"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("history", ["newest", "oldest"])
@pytest.mark.parametrize("length", [1, 2, 5, 9])
def test_resize_keeps_the_rows_of_fp8_run(history, length):
    """The rows that `fp8-run --history` keeps when it loads a file."""
    rows = np.arange(1, 6, dtype=np.float32)[:, None]
    kept = min(length, 5) - 1
    expected = np.zeros(length, np.float32)
    expected[0] = 1
    if kept and history == "newest":
        expected[-kept:] = rows[-kept:, 0]
    elif kept:
        expected[1 : 1 + kept] = rows[1 : 1 + kept, 0]
    assert fp8.state.resize({"amax_history": rows}, length, history=history)["amax_history"][:, 0].tolist() == expected.tolist()


def test_resize_refuses():
    with pytest.raises(ValueError, match="history='middle'"):
        fp8.state.resize({"amax_history": np.ones((2, 1))}, 3, history="middle")
    with pytest.raises(ValueError, match="length=0"):
        fp8.state.resize({"amax_history": np.ones((2, 1))}, 0)
    with pytest.raises(fp8.StateError, match="the state has no amax_history"):
        fp8.state.resize({}, 3)
