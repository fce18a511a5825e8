# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8.torch.backend: training through torch.compile, graphs, random numbers, reports, errors."""

import json

import fp8.torch
import pytest
import torch
import torch.nn.functional as F
import torch_backends
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch_backends import MLP, Broken, batches, compiled, layers, new_model, train

pytestmark = pytest.mark.usefixtures("fresh_dynamo")


def test_none_is_eager():
    model, forward, backend = compiled(recipe="none")
    eager = new_model()
    torch.testing.assert_close(train(model, forward), train(eager, eager), rtol=1e-5, atol=0)
    for name, parameter in eager.named_parameters():
        # AdamW divides by the root of a second moment: it amplifies roundings of gradients near 0.
        torch.testing.assert_close(model.get_parameter(name), parameter, rtol=1e-3, atol=1e-4)
    assert repr(backend.report()) == "<fp8.Report: 5 products, 0 in FP8, 5 kept>"


@pytest.mark.parametrize("recipe", ["current", "delayed"])
def test_recipes_train_in_fp8(recipe):
    model, forward, backend = compiled(recipe=recipe)
    eager = new_model()
    # FP8 rounds to 1/16 at most; losses of about 1.4 follow within a few hundredths.
    torch.testing.assert_close(train(model, forward, 10), train(eager, eager, 10), rtol=0, atol=0.05)
    assert {(s.site, s.role) for s in backend.report().fp8} == {
        ("up", "fprop"), ("up", "wgrad"), ("down", "fprop"), ("down", "dgrad"), ("down", "wgrad")}  # fmt: skip


def test_graph_breaks_have_a_pair_each():
    model, forward, backend = compiled(Broken, "delayed")
    eager = new_model(Broken)
    torch.testing.assert_close(train(model, forward), train(eager, eager), rtol=0, atol=0.05)
    assert [sorted(g.library.entries) for g in backend.graphs] == [["backward", "forward"]] * 2
    assert len(backend.states.state_dict()) == 2 * 4


def numbers(memory):
    """Without the tensors that are read again, whose places in the text of linalg the backend leaves out."""
    return {**memory, "traffic": [{name: value for name, value in t.items() if name != "read_again"} for t in memory["traffic"]]}


def test_a_report_of_several_graphs_tells_them_apart():
    model, forward, backend = compiled(recipe="delayed", amax_history_len=4)
    x, y = next(batches(1))
    F.cross_entropy(forward(x), y).backward()
    alone = backend.report()
    assert numbers(alone.memory) == numbers(backend.graphs[0].library.report.memory) and alone.options["recipe"] == "delayed"
    F.cross_entropy(forward(x[:5]), y[:5]).backward()
    with torch.no_grad():
        forward(x)
    report = backend.report()
    assert [(s.entry, s.site, s.m) for s in report.sites if s.role == "fprop"] == [
        ("graph 0: forward", "up", 8), ("graph 0: forward", "down", 8), ("graph 1: forward", "up", 5),
        ("graph 1: forward", "down", 5), ("graph 2", "up", 8), ("graph 2", "down", 8)]  # fmt: skip
    assert "graph 1: forward: up" in report._repr_html_() and "graph 2: up" in report._repr_html_()
    memories = [graph.library.report.memory for graph in backend.graphs]
    assert report.memory["workspace_bytes"] == sum(memory["workspace_bytes"] for memory in memories)
    # One state, of six scales and histories of four amaxes.
    assert report.memory["state_bytes"] == memories[0]["state_bytes"] == 6 * 5 * 4
    assert [t["entry"] for t in report.memory["traffic"]] == [f"graph {name}" for name in ("0: forward", "0: backward", "1: forward", "1: backward", "2")]
    assert report.options["recipe"] == "delayed" and "pair" not in report.options
    assert fp8.Report(json.loads(report.to_json())).sites == report.sites


def test_operations_without_a_line_of_the_users_have_no_place():
    """nn.Sequential calls the layers: the line would be one of the compiler's input."""
    model, forward, backend = compiled(layers)
    x, y = next(batches(1))
    F.cross_entropy(forward(x), y).backward()
    report = backend.report()
    assert [site.place for site in report.sites] == [None] * 5 and report.sites[0].location == "0/mm"
    assert not any("stdin" in text for text in (str(report), report.to_json(), report._repr_html_()))
    _, forward, backend = compiled()
    F.cross_entropy(forward(x), y).backward()
    assert {site.place.file for site in backend.report().sites} == {torch_backends.__file__}


def test_autocast():
    model, forward, backend = compiled(recipe="none")
    eager = new_model()
    # bf16 keeps 8 bits.
    torch.testing.assert_close(train(model, forward, autocast=True), train(eager, eager, autocast=True), rtol=0, atol=0.02)
    assert {s.formats for s in backend.report().sites} == {("bf16", "bf16")}


def test_threads_of_our_openmp_beside_pytorchs():
    """PyTorch brings GNU's OpenMP, compiled code uses LLVM's: what threads have of their own must not depend on the first."""
    x = torch.randn(1024, 128, generator=torch.Generator().manual_seed(3))
    model = nn.Sequential(nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 128))
    forward = torch.compile(model, backend=fp8.torch.backend("none"))

    def gradient():
        model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            forward(x).square().sum().backward()
        return [p.grad.clone() for p in model.parameters()]

    first = gradient()
    for _ in range(20):
        assert all(map(torch.equal, gradient(), first))


def test_grad_scaler():
    model, forward, _ = compiled(recipe="none")
    eager = new_model()
    scalers = [torch.amp.GradScaler("cpu", init_scale=1024.0) for _ in range(2)]
    found, expected = train(model, forward, scaler=scalers[0]), train(eager, eager, scaler=scalers[1])
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=0)


class Noisy(MLP):
    """Random numbers of all kinds, drawn in this order."""

    def forward(self, x):
        x = F.dropout(x, 0.2) + 0.1 * torch.randn_like(x) + 0.1 * torch.rand(16)
        return self.down(F.dropout(F.gelu(self.up(x)), 0.5)) + torch.randint(0, 2, (4,))


def test_random_numbers_are_those_of_eager():
    model, forward, _ = compiled(Noisy, "none")
    eager = new_model(Noisy)
    torch.manual_seed(7)
    found, state = train(model, forward), torch.get_rng_state()
    torch.manual_seed(7)
    torch.testing.assert_close(found, train(eager, eager), rtol=1e-5, atol=0)
    assert torch.equal(state, torch.get_rng_state())
    with torch.no_grad():
        torch.manual_seed(7)
        found = forward(torch.ones(8, 16))
        torch.manual_seed(7)
        # AdamW has amplified roundings of gradients near 0.
        torch.testing.assert_close(found, eager(torch.ones(8, 16)), rtol=0, atol=1e-3)


def test_random_numbers_are_drawn_in_the_order_of_memory():
    results = []
    for compile in (lambda m: m, lambda m: torch.compile(m, backend=fp8.torch.backend("none"))):
        torch.manual_seed(0)
        # Its attention returns a transposed tensor to dropout.
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        results.append(compile(layer)(torch.randn(2, 5, 16)))
    # Sums in another order.
    torch.testing.assert_close(*results, rtol=1e-5, atol=1e-5)


def test_backward_is_outside_of_autocast():
    """The gradient of a product that is kept out of autocast: AOT autograd would round its operands to bf16."""

    def protected(x, w):
        with torch.autocast("cpu", enabled=False):
            return x @ w

    gradients = []
    for function in (protected, torch.compile(protected, backend=fp8.torch.backend("none"))):
        torch.manual_seed(0)
        x, w = torch.randn(8, 32, requires_grad=True), torch.randn(32, 16)
        with torch.autocast("cpu", torch.bfloat16):
            y = function(x, w)
        y.backward(torch.randn(8, 16))
        gradients.append(x.grad)
    # Sums of 16 products in another order; bf16 has an error of 2^-9.
    torch.testing.assert_close(*gradients, rtol=0, atol=16 * 2**-24 * gradients[0].abs().max().item())


class Checkpointed(MLP):
    def forward(self, x):
        return self.down(checkpoint(lambda x: F.dropout(F.gelu(self.up(x)), 0.5), x, use_reentrant=False))


def test_a_checkpoint_within_a_graph_drops_the_same_elements_in_backward():
    model, forward, _ = compiled(Checkpointed, "none")
    eager = new_model(Checkpointed)
    torch.manual_seed(7)
    found = train(model, forward)
    torch.manual_seed(7)
    torch.testing.assert_close(found, train(eager, eager), rtol=1e-5, atol=0)


def test_random_numbers_that_depend_on_a_tensor_are_refused():
    def sample(x):
        return torch.multinomial(x, 2)  # the draw

    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as raised:
        torch.compile(sample, backend=fp8.torch.backend())(torch.rand(8))
    error = raised.value.inner_exception
    assert isinstance(error, fp8.UnsupportedError) and "depend on a tensor" in error.message
    assert "# the draw" in open(__file__).readlines()[error.location.line - 1]


class Tied(nn.Module):
    """An embedding whose table is the output layer too."""

    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(4, 16), nn.Linear(16, 4, bias=False)
        self.head.weight = self.table.weight

    def forward(self, x):
        return self.head(self.table((x > 0).long()[:, 0]) + x)


def test_tied_weights_are_one():
    model, forward, backend = compiled(Tied, "none")
    eager = new_model(Tied)
    torch.testing.assert_close(train(model, forward), train(eager, eager), rtol=1e-5, atol=0)
    assert len(backend.graphs[0].library.manifest["entries"][0]["arguments"]) == 2


def test_buffers_that_forward_changes():
    class Norm(MLP):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(16)

        def forward(self, x):
            return super().forward(self.norm(x))

    model, forward, _ = compiled(Norm, "none")
    eager = new_model(Norm)
    torch.testing.assert_close(train(model, forward), train(eager, eager), rtol=1e-5, atol=0)
    torch.testing.assert_close(model.norm.running_var, eager.norm.running_var)
    assert model.norm.num_batches_tracked == 5


def test_the_error_of_an_option_reaches_the_user():
    with pytest.raises(ValueError, match="pair is set by the backend"):
        fp8.torch.backend("current", pair=("a", "b"))
    with pytest.raises(ValueError, match="eps=nothing like it is not a finite number"):
        fp8.torch.backend("current", eps="nothing like it")


def test_locations_are_the_users_lines():
    _, forward, backend = compiled()
    forward(next(batches(1))[0]).sum().backward()
    for site in backend.report().sites:
        assert site.place.file == torch_backends.__file__
        assert "self.down(F.gelu(self.up(x)))" in open(torch_backends.__file__).readlines()[site.place.line - 1]


def test_names_of_arguments_are_those_of_parameters():
    _, forward, backend = compiled()
    forward(next(batches(1))[0])
    names = [a["name"] for a in backend.graphs[0].library.manifest["entries"][0]["arguments"]]
    assert names == ["up.weight", "up.bias", "x", "down.weight", "down.bias"]


def test_fewer_bytes_are_saved_for_backward():
    _, forward, backend = compiled(recipe="current")
    forward(next(batches(1))[0])
    arguments = backend.graphs[0].library.manifest["entries"][1]["arguments"]
    assert "f8E4M3FN" in {a["type"] for a in arguments if a["kind"] == "residual"}


def test_complex_arguments():
    z = torch.tensor([3 + 4j, -1j, 0])
    torch.testing.assert_close(torch.compile(lambda z: z.abs(), backend=fp8.torch.backend("none"))(z), z.abs())


def test_control_flow_that_has_no_form_is_named_at_the_users_line():
    def function(x):
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))  # the choice

    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as raised:
        torch.compile(function, backend=fp8.torch.backend())(torch.ones(3))
    error = raised.value.inner_exception
    assert isinstance(error, fp8.UnsupportedError) and "'cond' has no form in linalg" in error.message
    assert "# the choice" in open(__file__).readlines()[error.location.line - 1]
