# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights kept in FP8 from step to step (fp8_parameters=True): the bits of the programs that cast each time."""

import copy

import fp8.torch
import pytest
import torch
import torch.nn.functional as F
from torch import nn

pytestmark = pytest.mark.usefixtures("fresh_dynamo")

DELAYED = {"recipe": "delayed", "amax_history_len": 4}
STATELESS = ["current", "row", "block", "mxfp8"]


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


def batch(seed, rows=32):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, 32, generator=generator), torch.randn(rows, 32, generator=generator)


class Training:
    """A model with its optimizer, trained by train_step or by the backend."""

    def __init__(self, kept, whole=True, autocast=None, **options):
        torch.manual_seed(0)
        self.model, self.autocast, self.losses = MLP(), autocast, []
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-2)
        if whole:
            self.step = fp8.torch.train_step(self.model, F.mse_loss, self.optimizer, autocast=autocast, fp8_parameters=kept, **options)
        else:
            self.backend = fp8.torch.backend(fp8_parameters=kept, **options)
            self.forward = torch.compile(self.model, backend=self.backend)

    def train(self, seeds, rows=32):
        for seed in seeds:
            self.losses.append(self.step(*batch(seed, rows)).item())

    def accumulate(self, seeds):
        """A step of the optimizer from the gradients of several batches."""
        self.optimizer.zero_grad()
        for seed in seeds:
            x, y = batch(seed)
            with torch.autocast("cpu", torch.bfloat16, enabled=self.autocast is not None):
                loss = F.mse_loss(self.forward(x), y)
            loss.backward()
            self.losses.append(loss.item())
        self.optimizer.step()


def both(action, **options):
    """The trainings with and without kept weights, after the same actions: all values are the same bit for bit."""
    kept, plain = Training(True, **options), Training(False, **options)
    for training in (kept, plain):
        action(training)
    assert kept.losses == plain.losses
    for name, value in plain.model.state_dict().items():
        assert torch.equal(kept.model.state_dict()[name], value), name
    for name, value in (plain.step if hasattr(plain, "step") else plain.backend).state_dict().items():
        # Words of another layout: the casts are described there.
        assert torch.equal((kept.step if hasattr(kept, "step") else kept.backend).state_dict()[name], value), name
    return kept


def spoil(casts):
    """Makes the casts NaN, so that a call which reads them gives NaN."""
    for tensor in casts.bytes.values():
        tensor.fill_(0x7F)


@pytest.mark.slow(one_of=2)
@pytest.mark.parametrize("options", [DELAYED, {**DELAYED, "init": "current"}, *({"recipe": word} for word in STATELESS)], ids=str)
def test_every_step_has_the_bits_of_the_step_that_casts_each_time(options):
    kept = both(lambda training: training.train(range(5)), **options)
    assert kept.step.report().memory["fp8_parameter_bytes"] >= 32 * 64 * 2


def test_bf16_by_autocast():
    both(lambda training: training.train(range(3)), autocast=torch.bfloat16, **DELAYED)


def test_a_step_reads_the_casts_that_the_last_one_made():
    training = Training(True, **DELAYED)
    training.train(range(2))
    spoil(training.step._last[0]._casts)
    training.train([2])
    assert training.losses[-1] != training.losses[-1]


def test_weights_that_the_user_changes_are_cast_again():
    def action(training):
        training.train(range(2))
        saved = copy.deepcopy([training.model.state_dict(), training.optimizer.state_dict(), training.step.state_dict()])
        training.train(range(2, 4))
        with torch.no_grad():
            training.model.up.weight.mul_(2)
        training.train([4])
        training.model.load_state_dict(saved[0])
        training.optimizer.load_state_dict(saved[1])
        training.train([5])
        # Scales alone.
        training.step.load_state_dict(saved[2])
        training.train([6])
        training.model.down.weight.data = training.model.down.weight.data * 3
        training.train([7])

    both(action, **DELAYED)


def test_two_shapes_of_batches():
    def action(training):
        training.train(range(2))
        training.train(range(2, 4), rows=16)
        training.train(range(4, 6))

    both(action, **DELAYED)
    both(action, recipe="current")


@pytest.mark.parametrize("recipe", STATELESS)
def test_the_backend_casts_once_for_all_batches_of_a_step(recipe):
    def action(training):
        for step in range(3):
            training.accumulate([2 * step, 2 * step + 1])

    kept = both(action, whole=False, recipe=recipe)
    assert {a["name"].split("/")[1] for a in kept.backend.graphs[0].library.manifest["entries"][0]["arguments"] if a["kind"] == "state"} == {"up", "down"}


def test_the_backend_reads_the_casts_of_weights_that_are_as_they_were(monkeypatch):
    made = []
    make = fp8.torch._casts.Casts.make
    monkeypatch.setattr(fp8.torch._casts.Casts, "make", lambda self, *arguments: made.append(self) or make(self, *arguments))
    training = Training(True, whole=False, recipe="current", autocast=torch.bfloat16)
    for step in range(3):
        training.accumulate([2 * step, 2 * step + 1])
        assert len(made) == step + 1
    training.accumulate([6])
    spoil(made[0])
    training.optimizer.zero_grad()
    training.accumulate([7])
    # The optimizer changed the weights: the spoilt casts were made again.
    assert training.losses[-1] == training.losses[-1] and len(made) == 5
    x, y = batch(8)
    F.mse_loss(training.forward(x), y)
    spoil(made[-1])
    assert training.forward(x).isnan().all()


def test_fused_optimizers_change_weights_too():
    """PyTorch does not count their changes."""

    def action(training):
        training.optimizer = torch.optim.AdamW(training.model.parameters(), 1e-2, fused=True)
        for step in range(3):
            training.accumulate([step])

    both(action, whole=False, recipe="current")


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_inference(mode):
    results = []
    for kept in (True, False):
        training = Training(kept, whole=False, recipe="current")
        with mode():
            results.append([training.forward(batch(0)[0])])
            with torch.no_grad():
                training.model.up.weight.mul_(2)
            results[-1] += [training.forward(batch(seed)[0]) for seed in (0, 1)]
    assert all(torch.equal(a, b) for a, b in zip(*results))


def test_models_that_share_a_graph_keep_their_own_weights():
    results = []
    for kept in (True, False):
        torch._dynamo.reset()
        torch.manual_seed(0)
        backend = fp8.torch.backend("current", fp8_parameters=kept)
        models = [MLP(), MLP()]
        forwards = [torch.compile(model, backend=backend) for model in models]
        values = [forward(batch(0)[0]) for forward in (*forwards, *forwards)]
        sum(value.square().sum() for value in values).backward()
        results.append([*values, *(p.grad for model in models for p in model.parameters())])
    assert all(torch.equal(a, b) for a, b in zip(*results))


def test_delayed_scaling_needs_the_whole_step():
    training = Training(True, whole=False, **DELAYED)
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="keeps no weight in FP8.*fp8.torch.train_step computes them"):
        training.accumulate([0])
