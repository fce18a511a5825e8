# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8.torch.train_step: whole steps with the user's optimizer and scheduler, beside eager PyTorch."""

import concurrent.futures
import contextlib
import copy
import pickle
import warnings

import fp8.torch
import pytest
import torch
import torch.nn.functional as F
from fp8.torch import _model
from torch import nn

OPTIMIZERS = {
    "AdamW": lambda p: torch.optim.AdamW(p, 1e-2),
    "Adam, amsgrad": lambda p: torch.optim.Adam(p, 1e-2, amsgrad=True),
    "NAdam": lambda p: torch.optim.NAdam(p, 1e-2),
    "SGD, momentum": lambda p: torch.optim.SGD(p, 1e-1, momentum=0.9, weight_decay=0.01),
    "RMSprop": lambda p: torch.optim.RMSprop(p, 1e-2),
    "Adagrad": lambda p: torch.optim.Adagrad(p, 1e-2),
}


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.norm, self.down = nn.Linear(16, 32), nn.BatchNorm1d(32), nn.Linear(32, 4)

    def forward(self, x):
        return self.down(F.gelu(self.norm(self.up(x))))


class Tied(nn.Module):
    """An output layer whose weight is that of the first one, and dropout."""

    def __init__(self):
        super().__init__()
        self.up, self.head, self.down = nn.Linear(16, 16, bias=False), nn.Linear(16, 16, bias=False), nn.Linear(16, 4)
        self.head.weight = self.up.weight

    def forward(self, x):
        return self.down(F.dropout(self.head(F.gelu(self.up(x))), 0.5))


def train(optimizer, recipe=None, steps=5, kind=MLP):
    """Losses with a scheduler; the model, the optimizer and the step."""
    torch.manual_seed(0)
    model = kind()
    optimizer = OPTIMIZERS[optimizer](model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    step = fp8.torch.train_step(model, F.cross_entropy, optimizer, recipe) if recipe else None
    generator, losses = torch.Generator().manual_seed(1), []
    labels = torch.randn(16, 4, generator=generator)
    for _ in range(steps):
        x = torch.randn(8, 16, generator=generator)
        y = (x @ labels).argmax(-1)
        if step:
            loss = step(x, y)
        else:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return losses, model, optimizer, step


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_none_is_eager(name):
    expected, eager, eager_optimizer, _ = train(name)
    found, model, optimizer, step = train(name, "none")
    # Sums in another order, amplified by divisions by the root of a second moment.
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=0)
    torch.testing.assert_close(model.norm.running_var, eager.norm.running_var, rtol=1e-3, atol=0)
    states, eager_states = optimizer.state_dict()["state"], eager_optimizer.state_dict()["state"]
    assert {i: set(s) for i, s in states.items()} == {i: set(s) for i, s in eager_states.items()}
    assert len(step.report().sites) == 5


def test_tied_weights_and_dropout():
    expected, eager, *_ = train("SGD, momentum", kind=Tied)
    found, model, _, step = train("SGD, momentum", "none", kind=Tied)
    # Sums in another order.
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=0)
    torch.testing.assert_close(model.up.weight, eager.up.weight, rtol=1e-5, atol=1e-6)
    assert model.up.weight is model.head.weight
    assert [a["name"] for a in step.library.manifest["entries"][0]["arguments"]].count("head.weight") == 0


class Shifted(nn.Module):
    """A tensor that is a plain attribute of a module."""

    def __init__(self):
        super().__init__()
        self.down, self.shift = nn.Linear(16, 4), torch.linspace(-1, 1, 16)

    def forward(self, x):
        return self.down(x + self.shift)


def test_tensors_that_are_attributes_are_read():
    expected, *_ = train("SGD, momentum", kind=Shifted)
    found, model, _, step = train("SGD, momentum", "none", kind=Shifted)
    # Sums in another order.
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=0)
    assert "shift" in [a["name"] for a in step.library.manifest["entries"][0]["arguments"]]
    assert "shift" not in model.state_dict() and not list(model.buffers())


def test_other_tensors_are_refused_at_the_line_that_uses_them():
    table = torch.ones(16)
    model = nn.Linear(16, 4)
    step = fp8.torch.train_step(model, lambda y, label: ((y @ table[:4].clone()) - label).sum(), torch.optim.SGD(model.parameters(), 0.1))
    with pytest.raises(fp8.UnsupportedError, match=r"test_torch_train_step.py:\d+: .*call register_buffer") as error:
        step(torch.ones(8, 16), torch.ones(8))
    assert error.value.location.line == test_other_tensors_are_refused_at_the_line_that_uses_them.__code__.co_firstlineno + 3


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


class Counting(nn.Linear):
    def __init__(self):
        super().__init__(16, 4)
        self.count = torch.zeros(())

    def forward(self, x):
        self.count = self.count + 1
        return super().forward(x) * self.count


def test_a_tensor_that_forward_reads_and_replaces_is_refused():
    model = Counting()
    step = fp8.torch.train_step(model, F.cross_entropy, torch.optim.SGD(model.parameters(), 0.1), "none")
    with pytest.raises(fp8.UnsupportedError, match="reads 'count' and puts another tensor in its place: change it in place") as error:
        step(torch.randn(8, 16), torch.arange(8) % 4)
    assert error.value.location.line == Counting.forward.__code__.co_firstlineno
    assert model.count == 0


def test_a_loss_is_one_number():
    model = nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with pytest.raises(ValueError, match=r"the loss has the shape \(8, 4\): return a scalar"):
        fp8.torch.train_step(model, lambda y, _: y, optimizer)(torch.ones(8, 16), torch.ones(8))
    with pytest.raises(TypeError, match="the loss is of type tuple: return one tensor"):
        fp8.torch.train_step(model, lambda y, _: (y.sum(), y), optimizer)(torch.ones(8, 16), torch.ones(8))


def test_delayed_scaling():
    expected, found = train("AdamW")[0], train("AdamW", "delayed")
    # FP8 rounds to 1/16 at most; losses are about 1.4.
    torch.testing.assert_close(found[0], expected, rtol=0, atol=0.05)
    step = found[3]
    assert repr(step) == "<fp8.torch.TrainStep MLP: 1 compiled>"
    assert repr(step.report()) == "<fp8.Report: 5 products, 5 in FP8, 0 kept>"
    assert {s.site for s in step.report().sites} == {"up", "down"}
    assert (step.state.amax_history[-1] > 0).all()


def test_maximize_and_hooks_are_refused():
    model = MLP()
    with pytest.raises(fp8.UnsupportedError, match="negate the loss"):
        fp8.torch.train_step(model, F.cross_entropy, torch.optim.SGD(model.parameters(), 0.1, maximize=True))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    handle = optimizer.register_step_post_hook(lambda *_: None)
    with pytest.raises(fp8.UnsupportedError, match="the optimizer has hooks"):
        fp8.torch.train_step(model, F.cross_entropy, optimizer)
    handle.remove()
    next(model.parameters()).register_hook(lambda gradient: 2 * gradient)
    with pytest.raises(fp8.UnsupportedError, match="hooks on its gradient"):
        fp8.torch.train_step(model, F.cross_entropy, optimizer)


class Whitening(torch.optim.Optimizer):
    """A descent along gradients that are multiplied by a matrix made from the weight."""

    def __init__(self, parameters, lr=0.1):
        super().__init__(parameters, {"lr": lr})

    def _init_group(self, group, parameters):
        parameters += [p for p in group["params"] if p.grad is not None]

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            parameters = []
            self._init_group(group, parameters)
            for p in parameters:
                p.sub_((p @ p.T + torch.eye(p.shape[0])) @ p.grad * group["lr"])


@pytest.mark.parametrize("sites", ["linear", "all"])
def test_products_of_the_optimizer_stay_as_they_are(sites):
    def layers():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(16, 32, bias=False), nn.Tanh(), nn.Linear(32, 4, bias=False))

    model, eager = layers(), layers()
    optimizer = Whitening(model.parameters())
    step = fp8.torch.train_step(model, F.cross_entropy, optimizer, "current", sites=sites)
    step(*BATCH)
    report = step.report()
    assert sorted((s.site, s.role) for s in report.fp8) == [("0", "fprop"), ("0", "wgrad"), ("2", "dgrad"), ("2", "fprop"), ("2", "wgrad")]
    assert {(s.site.partition("#")[0], s.role, s.reason) for s in report.kept} == {("update(Whitening)", "other", "part of the optimizer's update")}
    assert len(report.kept) == 4
    # The update in f32 of a gradient of FP8: that gradient, found by descent from equal weights.
    descent = torch.optim.SGD(eager.parameters(), 1.0)
    before = [p.detach().clone() for p in eager.parameters()]
    fp8.torch.train_step(eager, F.cross_entropy, descent, "current", sites=sites)(*BATCH)
    for p, after, weight in zip(model.parameters(), eager.parameters(), before):
        gradient = weight - after.detach()
        torch.testing.assert_close(p.detach(), weight - (weight @ weight.T + torch.eye(len(weight))) @ gradient * 0.1, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_muon():
    """Without values: Newton-Schulz iterations make what rounding left of a gradient of low rank as large as the gradient."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32, bias=False), nn.Tanh(), nn.Linear(32, 4, bias=False))
    step = fp8.torch.train_step(model, F.cross_entropy, torch.optim.Muon(model.parameters(), 0.02), "current", sites="all")
    losses = [step(*BATCH).item() for _ in range(4)]
    assert losses == sorted(losses, reverse=True)
    report = step.report()
    assert {s.site for s in report.fp8} == {"0", "2"}
    # Two weights, five iterations of three products each.
    assert [s.reason for s in report.kept] == ["part of the optimizer's update"] * 30


def test_a_step_goes_on_from_what_the_error_of_pickling_says_to_save(tmp_path):
    model, _, step = train("AdamW", "delayed", steps=2)[1:]
    for save in (pickle.dumps, copy.copy, copy.deepcopy, lambda step: torch.save(step, tmp_path / "step.pt")):
        with pytest.raises(TypeError, match=r"save or copy the model, the optimizer's state_dict\(\) and the step's state_dict\(\)"):
            save(step)
    torch.save((model, step.optimizer.state_dict(), step.state_dict()), tmp_path / "all.pt")
    other, of_optimizer, of_step = torch.load(tmp_path / "all.pt", weights_only=False)
    optimizer = OPTIMIZERS["AdamW"](other.parameters())
    optimizer.load_state_dict(of_optimizer)
    again = fp8.torch.train_step(other, F.cross_entropy, optimizer, "delayed")
    again.load_state_dict(of_step)
    assert [again(*BATCH).item() for _ in range(2)] == [step(*BATCH).item() for _ in range(2)]


def test_steps_are_compiled_and_called_in_several_threads():
    def losses(_):
        torch.manual_seed(0)
        model = MLP()
        step = fp8.torch.train_step(model, F.cross_entropy, OPTIMIZERS["AdamW"](model.parameters()), "current")
        return [step(*BATCH).item() for _ in range(4)]

    def by_turns(step):
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            return sorted((loss.item() for loss in pool.map(lambda _: step(*BATCH), range(40))), reverse=True)

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        # One generator draws the weights of all three: they differ from run to run.
        found = list(pool.map(losses, range(3)))
    assert all(losses[0] > losses[-1] for losses in found)
    torch.manual_seed(0)
    model = nn.Linear(16, 4)
    alone = copy.deepcopy(model)
    expected = step_of(alone)
    assert by_turns(step_of(model)) == [expected(*BATCH).item() for _ in range(40)]
    assert all(map(torch.equal, model.parameters(), alone.parameters()))


def test_a_function_is_no_model():
    with pytest.raises(TypeError, match="of type function: train_step takes a torch.nn.Module"):
        fp8.torch.train_step(lambda x: x, F.cross_entropy, torch.optim.SGD(MLP().parameters(), 0.1))


def test_an_optimizer_of_ones_own_is_refused():
    class Own(torch.optim.Optimizer):
        def __init__(self, parameters):
            super().__init__(parameters, {})

    model = MLP()
    with pytest.raises(fp8.UnsupportedError, match="Own has no _init_group"):
        fp8.torch.train_step(model, F.cross_entropy, Own(model.parameters()))


@pytest.mark.parametrize("name", ["AdamW", "SGD, momentum"])
def test_a_state_from_before_the_first_step_is_loaded(name):
    torch.manual_seed(0)
    model = MLP()
    optimizer = OPTIMIZERS[name](model.parameters())
    step = fp8.torch.train_step(model, F.cross_entropy, optimizer, "none")
    x, y = torch.randn(8, 16), torch.randint(0, 4, (8,))
    begin = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    losses = [step(x, y).item() for _ in range(3)]
    model.load_state_dict(begin[0])
    optimizer.load_state_dict(begin[1])
    assert losses[0] != losses[1] and [step(x, y).item() for _ in range(3)] == losses


def step_of(model, optimizer=None, loss=F.cross_entropy, **options):
    return fp8.torch.train_step(model, loss, optimizer or torch.optim.SGD(model.parameters(), 0.1), "none", **options)


BATCH = torch.linspace(-1, 1, 128).reshape(8, 16), torch.arange(8) % 4


def test_hooks_that_come_later_are_refused():
    model = nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    step = step_of(model, optimizer)
    step(*BATCH)
    handle = optimizer.register_step_pre_hook(lambda *_: None)
    with pytest.raises(fp8.UnsupportedError, match="the optimizer has hooks"):
        step(*BATCH)
    handle.remove()
    model.weight.register_hook(lambda gradient: 2 * gradient)
    with pytest.raises(fp8.UnsupportedError, match="hooks on its gradient"):
        step(*BATCH)


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


class Branching(nn.Linear):
    def forward(self, x):
        return super().forward(x if x.sum() > 0 else -x)  # the value


def test_a_value_that_python_reads_is_named_at_its_line():
    with pytest.raises(fp8.UnsupportedError, match="reads the value of a tensor.*use fp8.torch.backend") as error:
        step_of(Branching(16, 4))(*BATCH)
    assert "# the value" in open(__file__).readlines()[error.value.location.line - 1]


@pytest.mark.parametrize("name", ["LBFGS", "SparseAdam"])
def test_optimizers_of_another_kind_are_refused(name):
    model = nn.Linear(16, 4)
    with pytest.raises(fp8.UnsupportedError, match=f"{name} has no _init_group: use fp8.torch.backend"):
        step_of(model, getattr(torch.optim, name)(model.parameters()))


def test_an_optimizer_whose_update_cannot_be_traced_is_named():
    model = nn.Linear(16, 4)
    with pytest.raises(fp8.UnsupportedError, match="the update of Adafactor reads values of tensors"):
        step_of(model, torch.optim.Adafactor(model.parameters()))(*BATCH)


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.recurrent, self.down = kind(4, 8, batch_first=True), nn.Linear(8, 4)

    def forward(self, x):
        return self.down(self.recurrent(x.reshape(8, 4, 4))[0][:, -1])


@pytest.mark.parametrize("kind", [nn.LSTM, pytest.param(nn.GRU, marks=pytest.mark.slow)])
def test_recurrent_layers_train_as_in_eager(kind, recwarn):
    torch.manual_seed(0)
    model, eager = Recurrent(kind), Recurrent(kind)
    eager.load_state_dict(model.state_dict())
    optimizer = torch.optim.SGD(eager.parameters(), 0.1)
    step, losses, expected = step_of(model), [], []
    for _ in range(3):
        losses.append(step(*BATCH).item())
        loss = F.cross_entropy(eager(BATCH[0]), BATCH[1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        expected.append(loss.item())
    # Sums in another order.
    assert losses == pytest.approx(expected, rel=1e-5)
    for p, of_eager in zip(model.parameters(), eager.parameters()):
        torch.testing.assert_close(p, of_eager, rtol=1e-4, atol=1e-5)
    assert not [w for w in recwarn if w.category is fp8.Warning]
    assert repr(step) == "<fp8.torch.TrainStep Recurrent: 1 compiled>"


def groups_of(model):
    """Two groups with rates, momenta and decays of their own; the bias of `down` is in none."""
    return torch.optim.SGD(
        [
            {"params": [model.up.weight, model.down.weight], "lr": 0.1, "momentum": 0.9},
            {"params": [model.up.bias, *model.norm.parameters()], "lr": 0.03, "weight_decay": 0.1},
        ]
    )


def test_groups_of_parameters_have_options_and_rates_of_their_own():
    torch.manual_seed(0)
    models = [MLP(), MLP()]
    models[1].load_state_dict(models[0].state_dict())
    optimizers = [groups_of(model) for model in models]
    schedulers = [torch.optim.lr_scheduler.LambdaLR(o, [lambda i: 1 / (i + 1), lambda i: 2**i]) for o in optimizers]
    step, losses, expected = step_of(models[0], optimizers[0]), [], []
    begin = models[0].down.bias.detach().clone()
    for _ in range(4):
        losses.append(step(*BATCH).item())
        loss = F.cross_entropy(models[1](BATCH[0]), BATCH[1])
        optimizers[1].zero_grad()
        loss.backward()
        optimizers[1].step()
        expected.append(loss.item())
        for scheduler in schedulers:
            scheduler.step()
    # Sums in another order.
    assert losses == pytest.approx(expected, rel=1e-5) and torch.equal(models[0].down.bias, begin)
    for (name, p), of_eager in zip(models[0].named_parameters(), models[1].parameters()):
        torch.testing.assert_close(p, of_eager, rtol=1e-4, atol=1e-5, msg=lambda text, n=name: f"{n}: {text}")
    for p, of_eager in zip(models[0].parameters(), models[1].parameters()):
        states = optimizers[0].state[p], optimizers[1].state[of_eager]
        assert ("momentum_buffer" in states[0]) == (states[1].get("momentum_buffer") is not None)
    assert repr(step) == "<fp8.torch.TrainStep MLP: 1 compiled>"


def test_a_graph_of_autograd_from_before_a_step_is_an_error():
    """The step changes weights in place: gradients at the old ones would be those of the new."""
    model = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 4))
    step, old = step_of(model), F.cross_entropy(model(BATCH[0]), BATCH[1])
    step(*BATCH)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        old.backward()
    F.cross_entropy(model(BATCH[0]), BATCH[1]).backward()


class Embedded(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.down = nn.Embedding(4, 16, sparse=True), nn.Linear(16, 4)

    def forward(self, x):
        return self.down(self.table((x > 0).long()[:, 0]))


@pytest.mark.parametrize("whole", [True, False])
def test_sparse_gradients_are_refused_by_the_name_of_the_embedding(whole):
    model = Embedded()
    message = "the gradient of the embedding 'table' is sparse: make it with sparse=False"
    with pytest.raises(fp8.UnsupportedError if whole else torch._dynamo.exc.BackendCompilerFailed, match=message):
        (step_of(model) if whole else lambda x, _: torch.compile(model, backend=fp8.torch.backend())(x))(*BATCH)


def on(device):
    """A tensor like the batch's; those on cuda have no data, so that none is needed here."""
    with torch._subclasses.FakeTensorMode() if device == "cuda" else contextlib.nullcontext():
        return torch.ones(8, 16, device=device)


@pytest.mark.parametrize("device", ["meta", "cuda"])
def test_tensors_on_other_devices_are_refused(device):
    model = nn.Linear(16, 4)
    step = step_of(model)
    expected = pytest.raises(fp8.UnsupportedError, match=f"fp8.torch runs on the CPU; a tensor is on {device}")
    with expected:
        step(on(device), BATCH[1])
    # Also where the same shapes are compiled already.
    step(*BATCH)
    with expected:
        step(on(device), BATCH[1])
    run = fp8.torch.compile_exported(torch.export.export(model.eval(), BATCH[:1]))
    with expected:
        run(on(device))
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=f"a tensor is on {device}"):
        torch.compile(lambda x: x @ x.T, backend=fp8.torch.backend())(on(device))
    model.register_buffer("scale", on(device))
    with expected:
        step(*BATCH)


def test_models_in_parallel_are_refused():
    with pytest.raises(fp8.UnsupportedError, match="exchanges no gradients"):
        step_of(nn.DataParallel(nn.Linear(16, 4)))


def test_inputs_are_tensors():
    with pytest.raises(TypeError, match="input 0 of the step is of type dict, not a tensor"):
        step_of(nn.Linear(16, 4))({"x": BATCH[0]}, BATCH[1])


def test_a_scheduler_that_changes_other_options_than_the_rate_is_a_warning(monkeypatch):
    monkeypatch.setattr(_model, "_MANY", 2)
    model = nn.Linear(16, 4)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=20)
    step = step_of(model, optimizer)
    with pytest.warns(fp8.Warning, match="compiled 2 times because 'betas' of the optimizer changed: .*cycle_momentum=False") as caught:
        for _ in range(3):
            step(*BATCH)
            scheduler.step()
    assert caught[0].filename == __file__


def test_a_copied_model_brings_its_state_to_another_step():
    model = nn.Linear(16, 4)
    step = fp8.torch.train_step(model, F.cross_entropy, torch.optim.SGD(model.parameters(), 0.1), amax_history_len=4)
    step.attach()
    for _ in range(3):
        step(*BATCH)
    copied = copy.deepcopy(model)
    again = fp8.torch.train_step(copied, F.cross_entropy, torch.optim.SGD(copied.parameters(), 0.1), amax_history_len=4)
    again.attach()
    assert torch.equal(step(*BATCH), again(*BATCH)) and torch.equal(step.state.amax_history, again.state.amax_history)
    with pytest.raises(ValueError, match="already has the FP8 state of another"):
        again.attach(model)


def test_a_sequence_of_layers_with_an_attached_state():
    losses = []
    for attached in (False, True):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4))
        step = fp8.torch.train_step(model, F.cross_entropy, torch.optim.SGD(model.parameters(), 0.1), amax_history_len=4)
        losses.append([step(*BATCH).item()])
        if attached:
            step.attach()
        losses[-1] += [step(*BATCH).item() for _ in range(3)]
    assert losses[0] == losses[1] and len(model) == 3 and model(BATCH[0]).shape == (8, 4)
    # The state is no number of the model's that a step is compiled for.
    assert repr(step) == "<fp8.torch.TrainStep Sequential: 1 compiled>"
    assert torch.equal(model.state_dict()["fp8_state.0.scale"], step.state.scale)


def test_a_traceback_ends_with_the_users_call():
    model = nn.Linear(16, 4)
    step = step_of(model, torch.optim.SGD(model.parameters(), 0.1))
    for call in (lambda: step(1), lambda: step(*BATCH[:1]), lambda: step.report(), lambda: fp8.torch.train_step(1, None, None)):
        with pytest.raises((TypeError, RuntimeError)) as raised:
            call()
        assert not [frame.path for frame in raised.traceback if "/src/fp8/" in str(frame.path)]
