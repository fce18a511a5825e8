# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8.te with the objects of fp8.torch: scales and histories of Transformer Engine's checkpoints in their states."""

import copy
import io
import os
import pickle
import sys
import types

import fp8.torch
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from fp8 import te
from torch import nn

pytestmark = pytest.mark.usefixtures("fresh_dynamo")

DELAYED = {"recipe": "delayed", "amax_history_len": 4}
BATCH = torch.linspace(-1, 1, 128).reshape(8, 16), torch.arange(8) % 4
NAMES = {"te.up": "up", "te.down": "down"}
#: Of the tensor of a site.
SCALES = {
    ("input", "up"): 2.0, ("weight", "up"): 4.0, ("grad_output", "up"): 8.0,
    ("input", "down"): 16.0, ("weight", "down"): 32.0, ("grad_output", "down"): 64.0,
}  # fmt: skip


class MLP(nn.Module):
    def __init__(self, broken=False):
        super().__init__()
        self.up, self.down, self.broken = nn.Linear(16, 32), nn.Linear(32, 4), broken

    def forward(self, x):
        x = F.gelu(self.up(x))
        if self.broken:
            torch._dynamo.graph_break()
        return self.down(x)


def amaxes(scale):
    """The history of a tensor with this scale: the step under way, then the oldest."""
    return [0.0, scale + 0.25, scale + 0.5, scale + 0.75]


def checkpoint():
    """The state that Transformer Engine saves of two modules of one product each."""
    result = {}
    for site in ("up", "down"):
        forward = [SCALES["input", site], SCALES["weight", site], 1.0]
        backward = [SCALES["grad_output", site], 1.0]
        record = {"recipe": None, "extra_fp8_variables": {}}
        for direction, scales in (("fwd", forward), ("bwd", backward)):
            record[f"scale_{direction}"] = np.array(scales, np.float32)
            record[f"amax_history_{direction}"] = np.array([amaxes(s) for s in scales], np.float32).T
        result[f"te.{site}._extra_state"] = torch.frombuffer(bytearray(pickle.dumps(record)), dtype=torch.uint8)
    return result


def check(target, tensors=("input", "weight", "grad_output")):
    """That every column has the values of its tensor, and that all of the checkpoint's are there."""
    found = {(column["tensor"], site): column["index"] for column in target.columns for site in column["sites"]}
    assert found.keys() == {key for key in SCALES if key[0] in tensors}
    for key, index in found.items():
        assert target.state["scale"][index] == SCALES[key]
        assert target.state["amax_history"][:, index].tolist() == amaxes(SCALES[key])


def new_step():
    torch.manual_seed(0)
    model = MLP()
    return fp8.torch.train_step(model, F.cross_entropy, torch.optim.SGD(model.parameters(), 0.1), **DELAYED)


def test_a_step():
    step = new_step()
    with pytest.raises(fp8.StateError, match="there is no FP8 state to fill: call the step"):
        te.load_extra_state(step, checkpoint(), NAMES)
    step(*BATCH)
    begin = copy.deepcopy(step.model.state_dict())
    te.load_extra_state(step, checkpoint(), NAMES)
    check(step)
    # The same arrays for a step that was never called: they wait for its first call.
    saved, other = {name: tensor.numpy().copy() for name, tensor in dict(step.state).items()}, new_step()
    other.model.load_state_dict(begin)
    other.state = saved
    assert [other(*BATCH).item() for _ in range(3)] == [step(*BATCH).item() for _ in range(3)]
    assert torch.equal(other.state.scale, step.state.scale)
    with pytest.raises(fp8.StateError, match="the saved FP8 state lacks amax_history"):
        step.state = {"scale": saved["scale"], "layout_hash": saved["layout_hash"]}


@pytest.mark.parametrize("broken", [False, True])
def test_a_backend(broken):
    torch.manual_seed(0)
    model, backend = MLP(broken), fp8.torch.backend(**DELAYED)
    forward = torch.compile(model, backend=backend)
    with pytest.raises(fp8.StateError, match="there is no FP8 state to fill: call the step or the model with gradients"):
        te.load_extra_state(backend, checkpoint(), NAMES)
    F.cross_entropy(forward(BATCH[0]), BATCH[1]).backward()
    assert len(backend.graphs) == 1 + broken
    te.load_extra_state(backend, checkpoint(), NAMES)
    check(backend)
    # The graphs read their scales from these states.
    scales = torch.cat([state.scale for state in backend.states.children()])
    assert sorted(scales.tolist()) == sorted(SCALES.values())
    if not broken:
        check(backend.graphs[0])
    with pytest.raises(fp8.StateError, match="is scale and amax_history of 6 columns"):
        backend.state = {"scale": np.ones(5, np.float32), "amax_history": np.ones((4, 6), np.float32)}


def test_a_graph():
    model, backend = MLP(), fp8.torch.backend(**DELAYED)
    F.cross_entropy(torch.compile(model, backend=backend)(BATCH[0]), BATCH[1]).backward()
    te.load_extra_state(backend.graphs[0], checkpoint(), NAMES)
    check(backend.graphs[0])
    assert repr(backend.graphs[0]) == "<fp8.torch.Graph forward, backward: 5 products, 5 in FP8, 0 kept>"
    assert repr(backend.graphs[0].state) == "<fp8.torch.State: scale [6], amax_history [4, 6]>"
    torch._dynamo.reset()
    stateless = fp8.torch.backend("current")
    torch.compile(model, backend=stateless)(BATCH[0])
    with pytest.raises(fp8.StateError, match="there is no FP8 state to fill"):
        te.load_extra_state(stateless.graphs[0], checkpoint(), NAMES)
    with pytest.raises(fp8.StateError, match="this graph has no FP8 state"):
        stateless.graphs[0].state = {}


def test_an_exported_program():
    torch.manual_seed(0)
    model = MLP().eval()
    run = fp8.torch.compile_exported(torch.export.export(model, BATCH[:1]), recipe="delayed", amax_history_len=4)
    assert repr(run) == "<fp8.torch.Exported: 2 products, 2 in FP8, 0 kept, scales not calibrated>"
    te.load_extra_state(run, checkpoint(), NAMES)
    check(run, ("input", "weight"))
    assert repr(run) == "<fp8.torch.Exported: 2 products, 2 in FP8, 0 kept>"
    again = fp8.torch.compile_exported(torch.export.export(model, BATCH[:1]), recipe="delayed", amax_history_len=4)
    again.load_state_dict(run.state_dict())
    assert torch.equal(run(BATCH[0]), again(BATCH[0]))


class Recipe:
    """Pickled as an object of Transformer Engine, which is not installed here."""

    def __reduce__(self):
        return Recipe, ()


Recipe.__module__ = "transformer_engine.common.recipe"


@pytest.fixture
def with_recipes(monkeypatch):
    """Classes are pickled by the names of modules that can be imported."""
    for name in ("transformer_engine", "transformer_engine.common", "transformer_engine.common.recipe"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules[Recipe.__module__].Recipe = Recipe


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("save", [torch.save, pickle.dump])
def test_what_torch_saved_in_memory(save, dtype, with_recipes, monkeypatch):
    """Modules of Transformer Engine return io.BytesIO of torch.save; others may be pickles of tensors."""
    record = {"recipe": Recipe(), "extra_fp8_variables": {}}
    for direction, count in (("fwd", 3), ("bwd", 2)):
        record[f"scale_{direction}"] = torch.arange(1.0, count + 1).to(dtype)
        record[f"amax_history_{direction}"] = torch.arange(2.0 * count).reshape(2, count).to(dtype)
    save(record, file := io.BytesIO())
    monkeypatch.delitem(sys.modules, "transformer_engine")
    read = te.read_extra_state(file)
    assert {name: values.tolist() for name, values in read.items()} == {
        "scale_fwd": [1, 2, 3], "amax_history_fwd": [[0, 1, 2], [3, 4, 5]], "scale_bwd": [1, 2], "amax_history_bwd": [[0, 1], [2, 3]],
    }  # fmt: skip
    assert {values.dtype for values in read.values()} == {np.dtype(np.float32)}


class Command:
    """Makes a folder when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_what_torch_saved_runs_nothing(tmp_path):
    torch.save({"recipe": Command(tmp_path / "made")}, file := io.BytesIO())
    with pytest.raises(fp8.StateError, match="names posix.mkdir, which no checkpoint of Transformer Engine needs"):
        te.read_extra_state(file)
    assert not (tmp_path / "made").exists()


def test_programs_of_torchscript_are_not_loaded(monkeypatch):
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), file := io.BytesIO())
    monkeypatch.setattr(torch.jit, "load", lambda *_, **__: pytest.fail("its code may run"))
    with pytest.raises(fp8.StateError, match="is a program of TorchScript"):
        te.read_extra_state(file)
