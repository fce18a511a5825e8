# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8.torch.train_step: what it refuses or warns of, by name and at the user's line."""

import contextlib
import warnings

import fp8.torch
import pytest
import torch
import torch.nn.functional as F
import torch_steps
from fp8.torch import _model
from torch import nn
from torch_steps import BATCH, MLP, Shifted, step_of


def test_other_tensors_are_refused_at_the_line_that_uses_them():
    table = torch.ones(16)
    model = nn.Linear(16, 4)
    step = fp8.torch.train_step(model, lambda y, label: ((y @ table[:4].clone()) - label).sum(), torch.optim.SGD(model.parameters(), 0.1))
    with pytest.raises(fp8.UnsupportedError, match=r"test_torch_step_errors.py:\d+: .*call register_buffer") as error:
        step(torch.ones(8, 16), torch.ones(8))
    assert error.value.location.line == test_other_tensors_are_refused_at_the_line_that_uses_them.__code__.co_firstlineno + 3


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
    class Careful(torch.optim.SGD):
        def step(self):
            if self.param_groups[0]["params"][0].grad.norm() < 1:
                super().step()

    model = nn.Linear(16, 4)
    with pytest.raises(fp8.UnsupportedError, match="the update of Careful reads values of tensors"):
        step_of(model, Careful(model.parameters(), 0.1))(*BATCH)


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
    words = {"meta": "input 0 of the step lies on 'meta', where there are no values", "cuda": "input 0 of the step lies on cuda:0, and weight on the CPU"}
    expected = pytest.raises(fp8.UnsupportedError, match=words[device])
    with expected:
        step(on(device), BATCH[1])
    # Also where the same shapes are compiled already.
    step(*BATCH)
    with expected:
        step(on(device), BATCH[1])
    run = fp8.torch.compile_exported(torch.export.export(model.eval(), BATCH[:1]))
    with pytest.raises(ValueError, match=f"input 0 lies on {device}(:0)?; the program was exported for cpu: move it there"):
        run(on(device))
    if device == "meta":  # PyTorch itself refuses operations on two devices.
        with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="lies on 'meta', where there are no values"):
            torch.compile(lambda x: x @ x.T, backend=fp8.torch.backend())(on(device))
    model.register_buffer("scale", on(device))
    with pytest.raises(fp8.UnsupportedError, match=f"scale lies on {words[device].partition('lies on ')[2]}"):
        step(*BATCH)


def test_models_in_parallel_are_refused():
    with pytest.raises(fp8.UnsupportedError, match="give train_step the model itself and data_parallel=group"):
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


def test_a_step_that_trains_nothing_is_a_warning():
    model = nn.Linear(16, 4).requires_grad_(False)
    step = step_of(model, torch.optim.SGD(model.parameters(), 0.1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        losses = [step(*BATCH) for _ in range(2)]
    assert losses[0] == losses[1]
    assert [(str(w.message), w.category, w.filename) for w in caught] == [(
        "the step trains nothing: the optimizer's parameters are frozen (requires_grad=False), or the loss does not depend on them",
        fp8.Warning, __file__,
    )]  # fmt: skip


def test_a_traceback_ends_with_the_users_call():
    model = nn.Linear(16, 4)
    step = step_of(model, torch.optim.SGD(model.parameters(), 0.1))
    for call in (lambda: step(1), lambda: step(*BATCH[:1]), lambda: step.report(), lambda: fp8.torch.train_step(1, None, None)):
        with pytest.raises((TypeError, RuntimeError)) as raised:
            call()
        assert not [frame.path for frame in raised.traceback if "/src/fp8/" in str(frame.path)]


def test_an_error_or_warning_of_the_whole_program_has_a_line_of_the_users(fresh_cache):
    model = Shifted()
    line = Shifted.forward.__code__.co_firstlineno
    with pytest.raises(fp8.CompileError, match="no site matches sites=nope") as raised:
        step_of(model, recipe="current", sites="nope")(*BATCH)
    assert raised.value.location == (torch_steps.__file__, line, 1)
    with pytest.warns(fp8.Warning, match=rf"torch_steps.py:{line}: no site matches keep=nope"):
        step_of(model, recipe="current", keep="nope")(*BATCH)
    line += 1
    with pytest.raises(fp8.CompileError, match="no site matches sites=nope") as raised:
        fp8.torch.compile_exported(torch.export.export(model.eval(), BATCH[:1]), sites="nope")
    assert raised.value.location == (torch_steps.__file__, line, 1)
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as raised:
        torch.compile(model, backend=fp8.torch.backend(first=1, recipe="#fp8.current_scaling<format = e5m2>"))(*BATCH[:1])
    assert raised.value.inner_exception.location == (torch_steps.__file__, line, 1)


class Twice(nn.Module):
    """Products of a module and of an operator, each on a line of its own; the second with annotations of the user's."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(16, 32), nn.Parameter(torch.randn(32, 8))

    def forward(self, x):
        h = self.up(x)  # up
        with torch.fx.traceback.annotate({"module": "mine", "line": 3}):
            return h @ self.down  # down


def test_the_report_has_the_users_line_of_every_product():
    """Of gradients, too: the line of the product that they are of."""
    model = Twice()
    step = fp8.torch.train_step(model, nn.functional.mse_loss, torch.optim.SGD(model.parameters(), 0.1), recipe="current")
    step(torch.randn(16, 16), torch.randn(16, 8))
    lines = open(__file__).readlines()
    found = [(site.site, site.role, site.place) for site in step.report().sites]
    assert sorted(role for _, role, _ in found) == ["dgrad", "fprop", "fprop", "wgrad", "wgrad"]
    for site, _, place in found:
        assert place.file == __file__ and f"# {site}" in lines[place.line - 1]


def test_a_model_of_pytorchs_modules_alone_has_the_line_of_the_call():
    model = nn.Sequential(nn.Linear(16, 32), nn.Linear(32, 8))
    step = fp8.torch.train_step(model, nn.functional.mse_loss, torch.optim.SGD(model.parameters(), 0.1), recipe="current")
    step(torch.randn(16, 16), torch.randn(16, 8))  # the call
    lines = open(__file__).readlines()
    for site in step.report().sites:
        assert site.place.file == __file__ and "# the call" in lines[site.place.line - 1]
