# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The quick comparison of a training step's model with that of the last call: it misses no change."""

from __future__ import annotations

import collections
import enum

import numpy as np
import pytest
import torch
from fp8.torch._model import Loss
from fp8.torch._snapshot import Snapshot
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4)
        self.number, self.text, self.pair = 1, "gelu", (1, 0.5)
        self.settings = {"depth": [1, {"width": 2}], "other": collections.OrderedDict(a=1, b=2)}
        self.array, self.table = np.arange(4), torch.arange(4)
        self.tables = [torch.zeros(1), torch.ones(1)]
        self.parts = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
        self.weights = nn.ParameterDict({"a": torch.ones(2), "b": torch.zeros(2)})
        self.names, self.size = {1: "one", 2: "two"}, torch.Size([1, 2])
        self.empty = []
        self.function = torch.relu

    def forward(self, x):
        return self.norm(self.layer(x)).sum()


class Text(enum.StrEnum):
    GELU = "gelu"


class Equal:
    """Equal to anything."""

    def __eq__(self, other):
        return True

    __hash__ = None


def parts():
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters())
    return model, optimizer, [torch.zeros(2, 4)]


def set_(name, value):
    return lambda model, optimizer, batch: setattr(model.get_submodule(name.rpartition(".")[0]), name.rpartition(".")[2], value)


def do(function):
    return lambda model, optimizer, batch: function(model)


CHANGES = {
    "a number": set_("number", 2),
    "a number of another type": set_("number", True),
    "a number as a float": set_("number", 1.0),
    "a text": set_("text", "relu"),
    "a number in a tuple": set_("pair", (1, 0.25)),
    "a type in a tuple": set_("pair", (True, 0.5)),
    "a list for a tuple": set_("pair", [1, 0.5]),
    "a number in a list in a dict": do(lambda m: m.settings["depth"].__setitem__(0, 3)),
    "a number deep within": do(lambda m: m.settings["depth"][1].update(width=True)),
    "one more item": do(lambda m: m.settings["depth"].append(1)),
    "a name in a dict": do(lambda m: m.settings.update(more=1)),
    "a number in an ordered dict": do(lambda m: m.settings["other"].update(a=True)),
    "an equal array": set_("array", np.arange(4)),
    "an equal tensor": set_("table", torch.arange(4)),
    "an equal tensor of one element": do(lambda m: m.tables.__setitem__(1, torch.ones(1))),
    "an object equal to all": set_("number", Equal()),
    "the order of a dict": do(lambda m: m.names.update({1: m.names.pop(1)})),
    "the order of an ordered dict": do(lambda m: m.settings["other"].move_to_end("a")),
    "the order of modules": do(lambda m: m.parts.update({"a": m.parts.pop("a")})),
    "the order of parameters": do(lambda m: m.weights.update({"a": m.weights.pop("a")})),
    "the order of a list": do(lambda m: m.tables.reverse()),
    "the type of a key": do(lambda m: (m.names.pop(1), m.names.pop(2), m.names.update({True: "one", 2: "two"}))),
    "the type of a text": set_("text", Text("gelu")),
    "the type of a tuple": set_("size", (1, 2)),
    "an item of an empty list": do(lambda m: m.empty.append(1)),
    "a function": set_("function", torch.nn.functional.relu),
    "an attribute that is gone": do(lambda m: delattr(m, "text")),
    "an attribute under another name": do(lambda m: (delattr(m, "function"), setattr(m, "action", torch.relu))),
    "a number of a module within": set_("norm.eps", 1e-3),
    "the mode": do(nn.Module.eval),
    "the mode of a module within": do(lambda m: m.norm.eval()),
    "a hook": do(lambda m: m.layer.register_forward_hook(lambda *_: None)),
    "a hook before": do(lambda m: m.norm.register_forward_pre_hook(lambda *_: None)),
    "a frozen parameter": do(lambda m: m.layer.weight.requires_grad_(False)),
    "another type": do(nn.Module.double),
    "another shape of the same memory": do(lambda m: setattr(m.layer.weight, "data", m.layer.weight.data.view(2, 8))),
    "another shape of a buffer": do(lambda m: m.norm.running_mean.resize_(2, 2)),
    "another parameter": do(lambda m: setattr(m.layer, "bias", nn.Parameter(m.layer.bias.detach().clone()))),
    "no parameter": do(lambda m: m.layer.register_parameter("bias", None)),
    "another buffer": do(lambda m: m.norm.register_buffer("running_mean", torch.zeros(4))),
    "another module": do(lambda m: setattr(m, "layer", nn.Linear(4, 4))),
    "one more module": do(lambda m: m.add_module("more", nn.ReLU())),
    "an option of the optimizer": lambda m, optimizer, b: optimizer.param_groups[0].update(weight_decay=0.5),
    "an option that is gone": lambda m, optimizer, b: optimizer.param_groups[0].pop("eps"),
    "a parameter of the optimizer": lambda m, optimizer, b: optimizer.param_groups[0]["params"].pop(),
    "a group of the optimizer": lambda m, optimizer, b: optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(1))]}),
    "the shape of the batch": lambda m, o, batch: batch.__setitem__(0, torch.zeros(3, 4)),
    "the type of the batch": lambda m, o, batch: batch.__setitem__(0, torch.zeros(2, 4, dtype=torch.bfloat16)),
    "a gradient of the batch": lambda m, o, batch: batch.__setitem__(0, torch.zeros(2, 4, requires_grad=True)),
    "one more tensor of the batch": lambda m, o, batch: batch.append(torch.zeros(2)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen(change):
    model, optimizer, batch = parts()
    snapshot = Snapshot(Loss(model, None, None), optimizer, batch)
    assert snapshot.holds(batch)
    CHANGES[change](model, optimizer, batch)
    assert not snapshot.holds(batch)


def test_values_are_no_change():
    model, optimizer, batch = parts()
    snapshot = Snapshot(Loss(model, None, None), optimizer, batch)
    model(batch[0]).backward()
    optimizer.step()
    optimizer.param_groups[0]["lr"] = 1e-5
    with torch.no_grad():
        model.table += 1
    model.array += 1
    assert snapshot.holds([torch.ones(2, 4)])
