# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8.torch.compile_exported: programs of torch.export beside eager PyTorch, calibration, saved state, errors."""

import pickle

import fp8.torch
import pytest
import torch
import torch.nn.functional as F
from torch import nn


class MLP(nn.Module):
    """Two products of weights, a buffer that no state_dict has, and a dropout, which evaluation leaves out."""

    def __init__(self):
        super().__init__()
        self.norm, self.up, self.drop, self.down = nn.BatchNorm1d(16), nn.Linear(16, 32), nn.Dropout(0.5), nn.Linear(32, 4)
        self.register_buffer("shift", torch.full((4,), 0.25), persistent=False)

    def forward(self, x, factor=1.0, *, bias=None):
        y = self.down(self.drop(F.gelu(self.up(self.norm(x))))) * factor + self.shift
        return {"y": y if bias is None else y + bias, "x": x, "bias": None}


def new_model():
    torch.manual_seed(0)
    return MLP().eval()


def inputs(seed=0, size=1.0):
    return size * torch.randn(8, 16, generator=torch.Generator().manual_seed(seed))


BATCHES = [(inputs(seed),) for seed in range(1, 5)]


def exported(model=None):
    return torch.export.export(model or new_model(), (inputs(),))


def line_of(error):
    return open(error.location.file).readlines()[error.location.line - 1]


def test_none_is_eager():
    model, bias = new_model(), inputs(9)[:, :4]
    program = torch.export.export(model, (inputs(), 2.0), {"bias": bias})
    run = fp8.torch.compile_exported(program, "none")
    found, expected = run(inputs(1), 2.0, bias=bias), model(inputs(1), 2.0, bias=bias)
    # Sums of 32 terms in another order.
    torch.testing.assert_close(found["y"], expected["y"], rtol=1e-5, atol=1e-6)
    assert torch.equal(found["x"], inputs(1)) and found["bias"] is None
    assert repr(run.report()) == "<fp8.Report: 2 products, 0 in FP8, 2 kept>"
    assert run.state is None and run.state_dict() == {}


@pytest.mark.parametrize(("recipe", "calibration"), [("current", None), ("row", None), ("block", None), ("mxfp8", None), ("delayed", BATCHES)])
def test_recipes(recipe, calibration):
    run = fp8.torch.compile_exported(exported(), recipe, calibration)
    found, expected = run(inputs(1))["y"], new_model()(inputs(1))["y"]
    # Operands of both products are rounded to 1/16 of themselves at most.
    torch.testing.assert_close(found, expected, rtol=0, atol=0.1)
    assert not torch.equal(found, expected)
    assert {(site.site, site.decision) for site in run.report().sites} == {("up", "fp8"), ("down", "fp8")}


def test_scales_are_those_of_the_largest_calibration_input():
    model = new_model()
    run = fp8.torch.compile_exported(exported(model), "delayed", [(inputs(1),), (inputs(2, size=8.0),), (inputs(3),)])
    amax = max(model.norm(x).abs().max() for x in (inputs(1), inputs(2, size=8.0), inputs(3)))
    columns = run.library.manifest["state"]["columns"]
    column = next(c["index"] for c in columns if c["tensor"] == "input" and "up" in c["sites"])
    torch.testing.assert_close(run.state.scale[column], 448 / amax, rtol=1e-6, atol=0)
    before = {name: tensor.clone() for name, tensor in run.state_dict().items()}
    run(inputs(4, size=100.0))
    assert all(torch.equal(tensor, before[name]) for name, tensor in run.state_dict().items())


DELAYED = fp8.recipe.DelayedScaling


@pytest.mark.parametrize(
    ("recipe", "options"),
    [
        (DELAYED(amax_history_len=3), {}),
        (DELAYED(amax_history_len=1, margin=1), {}),
        (DELAYED(amax_compute_algo="most_recent"), {}),
        ("delayed", {"amax_history_len": 2, "amax_compute_algo": "most_recent"}),
        ("none", {"site_recipe": {"up": "delayed"}, "amax_history_len": 1}),
        (fp8.recipe.Custom("current", fprop=DELAYED(amax_history_len=2)), {}),
    ],
)
def test_calibration_forgets_no_input(recipe, options):
    """The largest of five inputs comes first, whatever the history that training would have."""
    batches = [inputs(1, size=8.0), *[inputs(1)] * 4]
    run = fp8.torch.compile_exported(exported(), recipe, batches, **options)
    largest = fp8.torch.compile_exported(exported(), "delayed", batches[:1])
    column = [next(c["index"] for c in r.columns if c["tensor"] == "input" and "up" in c["sites"]) for r in (run, largest)]
    factor = 2 if recipe == DELAYED(amax_history_len=1, margin=1) else 1
    assert run.state.scale[column[0]] * factor == largest.state.scale[column[1]]
    assert run.state.amax_history[1:].isfinite().all()


def test_calibration_with_the_inputs_that_are_called_is_current_scaling():
    x = inputs(5)
    recipe = fp8.recipe.DelayedScaling(amax_history_len=16)
    run = fp8.torch.compile_exported(exported(), recipe, calibration=[x], fp8_parameters=True)
    assert run.state.amax_history.shape[0] == 16
    assert torch.equal(run(x)["y"], fp8.torch.compile_exported(exported(), "current")(x)["y"])


def test_weights_are_frozen_and_kept_in_fp8():
    model = new_model()
    run = fp8.torch.compile_exported(exported(model), "delayed", BATCHES)
    before = run(inputs(1))["y"]
    with torch.no_grad():
        model.up.weight.mul_(2)
        model.down.bias.add_(1)
    assert torch.equal(run(inputs(1))["y"], before)
    kept = [tensor["name"] for tensor in run.library.manifest["state"]["tensors"] if tensor.get("derived")]
    assert {name.split("/")[1] for name in kept} == {"up", "down"}
    # The same values as with weights that are cast in every call.
    casting = fp8.torch.compile_exported(exported(), "delayed", BATCHES, fp8_parameters=False)
    assert torch.equal(casting(inputs(1))["y"], before)


def test_a_saved_state_stands_for_calibration(tmp_path):
    run = fp8.torch.compile_exported(exported(), "delayed", BATCHES, amax_history_len=8)
    torch.save(run.state_dict(), tmp_path / "scales.pt")
    again = fp8.torch.compile_exported(exported(), "delayed", amax_history_len=8)
    with pytest.raises(fp8.StateError, match=r"not calibrated: give compile_exported calibration=\[inputs, …\], or load_state_dict"):
        again(inputs(1))
    again.load_state_dict(torch.load(tmp_path / "scales.pt"))
    assert torch.equal(again(inputs(1))["y"], run(inputs(1))["y"])
    assert set(run.state_dict()) == {"scale", "amax_history", "layout_hash", "columns"}
    other = fp8.torch.compile_exported(exported(), "delayed", keep="down", amax_history_len=8)
    with pytest.raises(fp8.StateError, match="of another program: it has the .* of down"):
        other.load_state_dict(run.state_dict())
    with pytest.raises(fp8.StateError, match="'current' has no state to load"):
        fp8.torch.compile_exported(exported(), "current").load_state_dict(run.state_dict())


def test_pickling_says_what_to_save():
    with pytest.raises(TypeError, match="torch.export.save and state_dict"):
        pickle.dumps(fp8.torch.compile_exported(exported()))


def test_options_and_inputs_that_do_not_fit():
    with pytest.raises(TypeError, match="of type MLP: torch.export.export"):
        fp8.torch.compile_exported(MLP())
    with pytest.raises(ValueError, match="carry has no use"):
        fp8.torch.compile_exported(exported(), carry={0: 0})
    with pytest.raises(ValueError, match="'current' has no scales to keep in this program: leave out calibration"):
        fp8.torch.compile_exported(exported(), "current", BATCHES)
    with pytest.raises(ValueError, match="calibration has no inputs"):
        fp8.torch.compile_exported(exported(), "delayed", [])
    run = fp8.torch.compile_exported(exported(), "none")
    with pytest.raises(ValueError, match=r"input 0 is torch.float32 of shape \(4, 16\); the program was exported for torch.float32 of shape \(8, 16\)"):
        run(inputs()[:4])
    with pytest.raises(TypeError, match="input 0 is of type float, not a tensor"):
        run(1.0)
    with pytest.raises(TypeError, match="exported for inputs"):
        run(inputs(), 2.0)


def test_tied_weights_are_one():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.head = nn.Embedding(10, 16), nn.Linear(16, 10, bias=False)
            self.head.weight = self.table.weight

        def forward(self, ids):
            return self.head(self.table(ids))

    model, ids = Tied().eval(), torch.tensor([[1, 2, 3]])
    found = fp8.torch.compile_exported(torch.export.export(model, (ids,)), "none")(ids)
    torch.testing.assert_close(found, model(ids), rtol=1e-5, atol=1e-6)


class Counter(MLP):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count.add_(1)  # the counter
        return super().forward(x)


class Writer(MLP):
    def forward(self, x):
        x.mul_(2)  # the change
        return super().forward(x)


@pytest.mark.parametrize(
    ("model", "message", "line"),
    [
        (Counter().eval(), "changes the buffer 'count'", "# the counter"),
        (Writer().eval(), "changes the input 'x': let it return the new value", "# the change"),
        (MLP(), r"changes the buffer 'norm.*': call model.eval\(\) before torch.export.export", "self.norm(x)"),
        (nn.Sequential(nn.Dropout()), r"draws random numbers: call model.eval\(\)", None),
    ],
)
def test_programs_that_are_no_inference(model, message, line):
    with pytest.raises(fp8.UnsupportedError, match=message) as raised:
        fp8.torch.compile_exported(torch.export.export(model, (inputs(),)))
    assert line is None or line in line_of(raised.value)


def test_dynamic_sizes_are_named_at_the_users_line():
    program = torch.export.export(new_model(), (inputs(),), dynamic_shapes={"x": {0: torch.export.Dim("batch")}})
    with pytest.raises(fp8.UnsupportedError, match="has dynamic sizes: export it without dynamic_shapes") as raised:
        fp8.torch.compile_exported(program)
    assert "self.norm(x)" in line_of(raised.value)


def test_training_graphs_are_refused():
    from torch.export.experimental import _export_forward_backward

    class Loss(nn.Linear):
        def forward(self, x):
            return super().forward(x).square().sum()

    program = _export_forward_backward(torch.export.export(Loss(16, 4), (inputs(),)))
    with pytest.raises(fp8.UnsupportedError, match="computes gradients: fp8.torch.train_step"):
        fp8.torch.compile_exported(program)
