# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8.torch.train_step: whole steps with the user's optimizer and scheduler, beside eager PyTorch; states, copies, threads."""

import concurrent.futures
import copy
import pickle

import fp8.torch
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch_steps import BATCH, MLP, OPTIMIZERS, step_of, train


class Tied(nn.Module):
    """An output layer whose weight is that of the first one, and dropout."""

    def __init__(self):
        super().__init__()
        self.up, self.head, self.down = nn.Linear(16, 16, bias=False), nn.Linear(16, 16, bias=False), nn.Linear(16, 4)
        self.head.weight = self.up.weight

    def forward(self, x):
        return self.down(F.dropout(self.head(F.gelu(self.up(x))), 0.5))


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


def test_delayed_scaling():
    expected, found = train("AdamW")[0], train("AdamW", "delayed")
    # FP8 rounds to 1/16 at most; losses are about 1.4.
    torch.testing.assert_close(found[0], expected, rtol=0, atol=0.05)
    step = found[3]
    assert repr(step) == "<fp8.torch.TrainStep MLP: 1 compiled>"
    assert repr(step.report()) == "<fp8.Report: 5 products, 5 in FP8, 0 kept>"
    assert {s.site for s in step.report().sites} == {"up", "down"}
    assert (step.state.amax_history[-1] > 0).all()


def test_loss_scaling_of_a_recipe_without_scales():
    """A step whose gradients overflow changes nothing but the loss scale; the others are those without, as it is a power of two."""
    losses, models, steps = [], [], []
    for options in ({"loss_scaling": True}, {}):
        torch.manual_seed(0)
        models.append(MLP())
        steps.append(step_of(models[-1], **options))
        losses.append([steps[-1](*BATCH).item() for _ in range(2)])
    assert losses[0] == losses[1]
    before = [p.clone() for p in models[0].parameters()]
    steps[0](BATCH[0] * float("inf"), BATCH[1])
    assert all(torch.equal(p, old) for p, old in zip(models[0].parameters(), before))
    assert steps[0].state["loss_scale"].tolist() == [32768.0] and steps[1].state is None


@pytest.mark.parametrize("recipe", ["current", "row"])
def test_stochastic_rounding_of_a_recipe_without_scales(recipe):
    step = step_of(MLP(), recipe=recipe, stochastic_rounding=True)
    step(*BATCH)
    step(*BATCH)
    assert step.state["rounding"].tolist() == [0, 2]


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
    with pytest.warns(fp8.Warning, match="the FP8 state of another backend or step"):
        again.attach(model)
    assert model.fp8_state is again.states


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


def test_profiles():
    _, _, _, step = train("AdamW", "delayed", steps=1)
    with step.library.profile() as profile:
        step(*BATCH)
        step(*BATCH)
    calls = {site: 0 for site in ("up", "down")}
    for kernel in profile.kernels:
        for site in set(kernel.sites) & set(calls) if kernel.kind == "products" else ():
            calls[site] += kernel.calls
    # Each has its product and the weight's gradient, the second layer that of its input too.
    assert calls == {"up": 4, "down": 6}, str(profile)
