# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8.torch.train_step: what changes in a model between steps, its modes and its hooks, as in eager PyTorch."""

import warnings

import fp8.torch
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch_steps import BATCH, Shifted, step_of, train


def test_tensors_that_are_attributes_are_read():
    expected, *_ = train("SGD, momentum", kind=Shifted)
    found, model, _, step = train("SGD, momentum", "none", kind=Shifted)
    # Sums in another order.
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=0)
    assert "shift" in [a["name"] for a in step.library.manifest["entries"][0]["arguments"]]
    assert "shift" not in model.state_dict() and not list(model.buffers())


def train_four(model, rate, whole, change):
    """Losses and parameters of four steps, each after change(model, number), by train_step if `whole`, else eagerly; and that step."""
    optimizer, losses = torch.optim.SGD(model.parameters(), rate), []
    step = fp8.torch.train_step(model, F.cross_entropy, optimizer, "none")
    for i in range(4):
        change(model, i)
        x, y = torch.randn(8, 16, dtype=model.down.weight.dtype) / 4, torch.arange(8) % 4
        if whole:
            losses.append(step(x, y).item())
        else:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return [losses, list(model.parameters())], step


class Changing(nn.Module):
    """Tensors and modes that users change between steps."""

    mask = None

    def __init__(self):
        super().__init__()
        self.up, self.down, self.drop = nn.Linear(16, 16), nn.Linear(16, 4), nn.Dropout(0.9)
        self.register_buffer("table", torch.randn(16, 8).t())  # Not contiguous.
        self.shift = torch.zeros(16)
        self.last = None

    def forward(self, x):
        self.last = self.up(x) * self.table + self.shift
        return self.down(self.drop(self.last))


def freeze(model):
    model.up.requires_grad_(False)


def replace_buffer(model):
    model.table = torch.ones(8, 16)


def replace_attribute(model):
    model.shift = torch.ones(16)


@pytest.mark.parametrize("change", [freeze, replace_buffer, replace_attribute, torch.nn.Module.double], ids=lambda f: f.__name__)
def test_what_changes_between_steps_counts(change):
    results = []
    for whole in (False, True):
        torch.manual_seed(0)
        model = Changing()
        model.drop.eval()
        result, _ = train_four(model, 0.1, whole, lambda model, i: change(model) if i == 2 else None)
        results.append(result)
        if whole:
            assert model.last is None
    # Sums in another order.
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-5)


class Numbered(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.scale, self.extra, self.calls = nn.Linear(16, 4), 0.5, {"powers": [1, 2]}, 0

    def forward(self, x):
        return self.down(sum(x**power for power in self.extra["powers"])) * self.scale


def set_scale(model, i):
    model.scale = [0.5, 0.25, 0.5, 1][i]


def change_list(model, i):
    model.extra["powers"].append(i + 1)


def set_type(model, i):
    model.scale = [1.0, True, 1, 2][i]


@pytest.mark.parametrize("change", [set_scale, change_list, set_type])
def test_numbers_of_the_model_count(change):
    results = []
    for whole in (False, True):
        torch.manual_seed(0)
        model = Numbered()
        result, step = train_four(model, 0.01, whole, change)
        results.append(result)
    # Sums in another order.
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-5)
    assert repr(step) == f"<fp8.torch.TrainStep Numbered: {3 if change is set_scale else 4} compiled>"


def test_a_number_that_changes_in_every_step_is_a_warning():
    model = Numbered()
    step = fp8.torch.train_step(model, F.cross_entropy, torch.optim.SGD(model.parameters(), 0.1), "none")
    x, y = torch.randn(8, 16), torch.arange(8) % 4
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for model.calls in range(12):
            step(x, y)
    (warning,) = [w for w in caught if w.category is fp8.Warning]
    assert "compiled 8 times because 'calls' of the model changed" in str(warning.message)
    assert warning.filename == __file__


class CallCounter(nn.Linear):
    calls = 0

    def __init__(self):
        super().__init__(16, 4)
        self.calls = 3

    def forward(self, x):
        self.calls += 1
        return super().forward(x)


def test_a_number_that_forward_changes_is_a_warning():
    model = nn.Sequential(CallCounter())
    step = fp8.torch.train_step(model, F.cross_entropy, torch.optim.SGD(model.parameters(), 0.1), "none")
    with pytest.warns(fp8.Warning, match="forward changes '0.calls' of the model, which the compiled step leaves as it is") as caught:
        step(torch.randn(8, 16), torch.arange(8) % 4)
    step(torch.randn(8, 16), torch.arange(8) % 4)
    assert caught[0].filename == __file__ and model[0].calls == 3 and repr(step) == "<fp8.torch.TrainStep Sequential: 1 compiled>"


def test_modes_of_modules_count():
    model = Changing()
    step = fp8.torch.train_step(model, F.cross_entropy, torch.optim.SGD(model.parameters(), 0.0), "none")
    x, y = torch.randn(8, 16), torch.arange(8) % 4
    assert step(x, y) != step(x, y)
    model.drop.eval()
    torch.testing.assert_close(step(x, y), F.cross_entropy(model(x), y))


def test_attributes_that_hide_those_of_the_class_stay():
    model = Changing()
    model.mask = torch.ones(16)
    model.up.forward = own = lambda x: 3 * x
    step = fp8.torch.train_step(model, F.cross_entropy, torch.optim.SGD(model.parameters(), 0.1), "none")
    step(torch.randn(8, 16), torch.arange(8) % 4)
    assert torch.equal(model.mask, torch.ones(16)) and model.up.forward is own


def double(module, arguments, result=None):
    return (2 * arguments[0],) if result is None else 2 * result


def double_gradient(module, gradients, outputs=None):
    return (2 * gradients[0],)


REGISTER = {
    "forward": lambda m: m.register_forward_hook(double),
    "before forward": lambda m: m.register_forward_pre_hook(double),
    "backward": lambda m: m.register_full_backward_hook(double_gradient),
    "before backward": lambda m: m.register_full_backward_pre_hook(double_gradient),
}


@pytest.mark.parametrize("name", [name if name in ("forward", "backward") else pytest.param(name, marks=pytest.mark.slow) for name in REGISTER])
def test_hooks_of_modules_run_also_those_that_come_later(name):
    results = []
    for whole in (False, True):
        torch.manual_seed(0)
        model = Changing()
        model.drop.eval()
        results.append(train_four(model, 0.1, whole, lambda model, i: REGISTER[name](model.down) if i == 2 else None)[0])
    # Sums in another order.
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_a_step_trains_where_gradients_are_turned_off(mode):
    models = [nn.Linear(16, 4), nn.Linear(16, 4)]
    models[1].load_state_dict(models[0].state_dict())
    with mode():
        step_of(models[0])(*BATCH)
    step_of(models[1])(*BATCH)
    assert torch.equal(models[0].weight, models[1].weight) and models[0].weight.requires_grad


def test_autocast_around_the_call_counts():
    model = nn.Linear(16, 4)
    step = step_of(model)
    formats = []
    for enabled in (False, True, False):
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            step(*BATCH)
        formats.append({site.formats for site in step.report().sites})
    assert formats == [{("f32", "f32")}, {("bf16", "bf16")}, {("f32", "f32")}]
    assert repr(step) == "<fp8.torch.TrainStep Linear: 2 compiled>"
