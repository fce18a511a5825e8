# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8.torch.backend: training and inference through torch.compile, states, shapes, errors."""

import concurrent.futures
import copy
import gc
import io
import json

import fp8.torch
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


class MLP(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.up = nn.Linear(16, width)
        self.down = nn.Linear(width, 4)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class Broken(MLP):
    def forward(self, x):
        h = F.gelu(self.up(x))
        torch._dynamo.graph_break()
        return self.down(h)


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()


def batches(count, size=8, seed=1):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randn(16, 4, generator=generator)
    for _ in range(count):
        x = torch.randn(size, 16, generator=generator)
        yield x, (x @ labels).argmax(-1)


def train(model, forward, steps=5, autocast=False, scaler=None):
    """Losses of training steps."""
    optimizer, losses = torch.optim.AdamW(model.parameters(), 1e-2), []
    for x, y in batches(steps):
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            loss = F.cross_entropy(forward(x), y)
        optimizer.zero_grad()
        if scaler is None:
            loss.backward()
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        losses.append(loss.item())
    return losses


def new_model(kind=MLP):
    torch.manual_seed(0)
    return kind()


def compiled(kind=MLP, recipe="current", **options):
    model, backend = new_model(kind), fp8.torch.backend(recipe, **options)
    return model, torch.compile(model, backend=backend), backend


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


def test_no_grad_reads_the_state_and_leaves_it():
    model, forward, backend = compiled(recipe="delayed", amax_history_len=4)
    train(model, forward)
    before = copy.deepcopy(backend.state_dict())
    x, _ = next(batches(1, seed=2))
    with torch.no_grad():
        found, expected = forward(x), model(x)
    assert sorted(backend.graphs[-1].library.entries) == ["main"]
    # Two products whose operands are rounded to 1/16.
    torch.testing.assert_close(found, expected, rtol=0, atol=0.1)
    assert not torch.equal(found, expected)
    assert all(torch.equal(value, before[name]) for name, value in backend.state_dict().items())


@pytest.mark.parametrize("options", [{}, {"amax_history_len": 4, "margin": 1, "amax_compute_algo": "max", "init": "current"}])
def test_no_grad_before_training_uses_current_scaling(options):
    model, forward, backend = compiled(recipe="delayed", **options)
    x, _ = next(batches(1))
    with torch.no_grad(), pytest.warns(fp8.Warning, match="current scaling") as caught:
        found = forward(x)
    assert caught[0].filename == __file__
    current = torch.compile(model, backend=fp8.torch.backend("current"))
    torch._dynamo.reset()
    with torch.no_grad():
        assert torch.equal(found, current(x))


def test_other_batch_sizes_share_the_state():
    model, forward, backend = compiled(recipe="delayed")
    for size in (8, 5, 8, 12, 5):
        x, y = next(batches(1, size))
        F.cross_entropy(forward(x), y).backward()
    shapes = {g.library.manifest["entries"][0]["results"][0]["shape"][0] for g in backend.graphs}
    assert shapes == {8, 5, 12}
    assert sorted(name for name in backend.state_dict() if name.endswith("scale")) == ["0.scale"]


def test_a_report_of_several_graphs_tells_them_apart():
    model, forward, backend = compiled(recipe="delayed", amax_history_len=4)
    x, y = next(batches(1))
    F.cross_entropy(forward(x), y).backward()
    alone = backend.report()
    assert alone.memory == backend.graphs[0].library.report.memory and alone.options["recipe"] == "delayed"
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
    assert {site.place.file for site in backend.report().sites} == {__file__}


def test_modules_that_are_alike_have_a_state_each():
    backend = fp8.torch.backend("delayed", amax_history_len=4)
    models = [MLP(), MLP()]
    forwards = [torch.compile(model, backend=backend) for model in models]
    with torch.no_grad():
        models[1].up.weight.mul_(100)
    x, y = next(batches(1))
    for forward in forwards:
        F.cross_entropy(forward(x), y).backward()
        F.cross_entropy(forward(x), y).backward()
    states = backend.state_dict()
    assert sum(name.endswith("scale") for name in states) == 2
    assert not torch.equal(states["0.scale"], states["1.scale"])


@pytest.mark.parametrize("kept", [True, False])
def test_threads_with_models_that_are_alike(kept):
    """One graph, with one workspace and one place for casts, serves both models."""
    backend = fp8.torch.backend("current", fp8_parameters=kept)
    forwards = [torch.compile(MLP(512), backend=backend) for _ in range(2)]
    x = torch.randn(64, 16)

    def run(forward):
        with torch.no_grad():
            return forward(x)

    expected = [run(forward) for forward in forwards]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(run, forward) for _ in range(100) for forward in forwards]
    assert len(backend.graphs) == 1
    assert all(torch.equal(future.result(), expected[i % 2]) for i, future in enumerate(futures))


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


def resume(model, forward, steps, seed):
    optimizer = torch.optim.SGD(model.parameters(), 1e-2)
    for x, y in batches(steps, seed=seed):
        optimizer.zero_grad()
        loss = F.cross_entropy(forward(x), y)
        loss.backward()
        optimizer.step()
    return loss.item()


def test_state_in_the_state_dict_of_the_module(tmp_path):
    model, forward, backend = compiled(recipe="delayed", amax_history_len=4)
    backend.attach(model)
    resume(model, forward, 6, 1)
    torch.save(model.state_dict(), tmp_path / "model.pt")
    expected = resume(model, forward, 3, 2)

    again, forward, backend = compiled(recipe="delayed", amax_history_len=4)
    backend.attach(again)
    again.load_state_dict(torch.load(tmp_path / "model.pt"))
    assert resume(again, forward, 3, 2) == expected
    assert {name for name in again.state_dict() if name.startswith("fp8_state")} == {
        f"fp8_state.0.{name}" for name in ("scale", "amax_history", "layout_hash", "columns")}  # fmt: skip


def layers():
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4))


def test_attaching_leaves_a_sequence_of_layers_as_it_is():
    """Its layers, buffers and results; a checkpoint without FP8 state may be loaded where strict is False."""
    (model, forward, backend), (unattached, other, _) = compiled(layers, "delayed", amax_history_len=4), compiled(layers, "delayed", amax_history_len=4)
    plain = model.state_dict()
    backend.attach(model)
    backend.attach(model)
    averaged = torch.optim.swa_utils.AveragedModel(model, use_buffers=True)
    torch.testing.assert_close(train(model, forward), train(unattached, other), rtol=0, atol=0)
    averaged.update_parameters(model)
    assert torch.equal(averaged.module[0].weight, model[0].weight)
    assert [type(layer) for layer in model] == [nn.Linear, nn.GELU, nn.Linear] and not list(model.buffers())
    x, _ = next(batches(1))
    assert torch.equal(model(x), model[2](model[1](model[0](x))))

    (outer := nn.Module()).inner = model
    saved = copy.deepcopy(outer.state_dict())
    assert torch.equal(saved["inner.fp8_state.0.scale"], scales_of(backend)[0])
    train(model, forward)
    assert not torch.equal(saved["inner.fp8_state.0.scale"], scales_of(backend)[0])
    outer.load_state_dict(saved)
    assert torch.equal(saved["inner.fp8_state.0.scale"], scales_of(backend)[0])
    with pytest.raises(RuntimeError, match='Missing key.*"fp8_state.0.scale"'):
        model.load_state_dict(plain)
    assert model.load_state_dict(plain, strict=False).unexpected_keys == []
    assert torch.equal(saved["inner.fp8_state.0.scale"], scales_of(backend)[0])


def test_safetensors_hold_an_attached_state(tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    model, forward, backend = compiled(recipe="delayed", amax_history_len=4)
    backend.attach(model)
    resume(model, forward, 6, 1)
    safetensors.save_model(model, tmp_path / "model.safetensors")
    expected = resume(model, forward, 3, 2)
    again, forward, backend = compiled(recipe="delayed", amax_history_len=4)
    backend.attach(again)
    safetensors.load_model(again, tmp_path / "model.safetensors")
    assert resume(again, forward, 3, 2) == expected
    # The state alone.
    safetensors.save_file(backend.state_dict(), tmp_path / "state.safetensors")
    saved = copy.deepcopy(backend.state_dict())
    resume(again, forward, 3, 1)
    backend.load_state_dict(safetensors.load_file(tmp_path / "state.safetensors"))
    assert all(torch.equal(tensor, saved[name]) for name, tensor in backend.state_dict().items())


def test_loading_into_a_running_backend():
    model, forward, backend = compiled(recipe="delayed", amax_history_len=4)
    resume(model, forward, 3, 1)
    saved = copy.deepcopy(backend.state_dict())
    resume(model, forward, 3, 2)
    assert not torch.equal(saved["0.scale"], backend.state_dict()["0.scale"])
    backend.load_state_dict(saved)
    assert torch.equal(saved["0.scale"], backend.state_dict()["0.scale"])


def test_inference_reads_the_state_that_was_loaded_last():
    model, forward, backend = compiled(recipe="delayed")
    saved = []
    for factor in (1, 100):
        for x, y in batches(3):
            F.cross_entropy(forward(factor * x), y).backward()
        saved.append(copy.deepcopy(backend.state_dict()))
    x, _ = next(batches(1))

    def infer(*states):
        torch._dynamo.reset()
        backend = fp8.torch.backend("delayed")
        forward = torch.compile(model, backend=backend)
        with torch.no_grad():
            for state in states:
                backend.load_state_dict(state)
                result = forward(x)
        return forward, result

    expected = [infer(state)[1] for state in saved]
    assert not torch.equal(*expected)
    forward, result = infer(*saved)
    assert torch.equal(result, expected[1])
    # Training goes on with the state that inference read while it waited for its graph.
    forward, _ = infer(saved[0])
    F.cross_entropy(forward(100 * x), torch.arange(8) % 4)
    with torch.no_grad():
        assert not torch.equal(forward(x), expected[0])


def test_a_state_of_another_program_is_refused():
    model, forward, backend = compiled(recipe="delayed")
    resume(model, forward, 1, 1)
    torch._dynamo.reset()
    other, forward, kept = compiled(recipe="delayed", keep="down")
    kept.load_state_dict(backend.state_dict())
    with pytest.raises(fp8.StateError, match="of another program: it has the .* of down"):
        resume(other, forward, 1, 1)


def test_half_leaves_scales_in_f32():
    model, forward, backend = compiled(recipe="delayed")
    backend.attach(model)
    resume(model, forward, 1, 1)
    model.bfloat16()
    assert backend.state_dict()["0.scale"].dtype == torch.float32


def test_the_error_of_an_option_reaches_the_user():
    with pytest.raises(ValueError, match="pair is set by the backend"):
        fp8.torch.backend("current", pair=("a", "b"))
    _, forward, backend = compiled(recipe="current", require="nothing like it")
    assert repr(backend) == "<fp8.torch.Backend current: 0 compiled>"
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as raised:
        forward(next(batches(1))[0])
    assert isinstance(raised.value.inner_exception, (fp8.CompileError, ValueError))


def test_locations_are_the_users_lines():
    _, forward, backend = compiled()
    forward(next(batches(1))[0]).sum().backward()
    for site in backend.report().sites:
        assert site.place.file == __file__
        assert "self.down(F.gelu(self.up(x)))" in open(__file__).readlines()[site.place.line - 1]


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


def scales_of(backend):
    return [state.scale.clone() for state in backend.states.children()]


def test_a_new_model_at_a_freed_address_has_a_state_of_its_own():
    backend = fp8.torch.backend(recipe="delayed", amax_history_len=4)
    addresses, reused = set(), 0
    for count in range(1, 13):
        torch.manual_seed(count)
        model = MLP()
        reused += model.up.weight.data_ptr() in addresses
        addresses.add(model.up.weight.data_ptr())
        train(model, torch.compile(model, backend=backend), steps=3)
        assert len(backend.states._modules) == count
        del model
        gc.collect()
    assert reused, "no address was used again: this test showed nothing"
    assert len(backend.graphs) == 1


def test_weights_that_load_state_dict_assigns_keep_the_scales_of_an_attached_module():
    backend = fp8.torch.backend(recipe="delayed", amax_history_len=4)
    model = MLP()
    backend.attach(model)
    compiled = torch.compile(model, backend=backend)
    train(model, compiled, steps=3)
    (trained,) = scales_of(backend)
    saved = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    train(model, compiled, steps=2)
    model.load_state_dict(saved, assign=True)
    assert torch.equal(backend.states._modules["0"].scale, trained)
    x, y = next(batches(1))
    with torch.no_grad():
        evaluated = compiled(x)
    F.cross_entropy(compiled(x), y).backward()
    assert len(backend.states._modules) == 1 and backend.states._modules["0"].amax_history[:, 0].count_nonzero() > 1
    # A second backend that never saw the first weights, with the same state, is the reference.
    torch._dynamo.reset()
    again = fp8.torch.backend(recipe="delayed", amax_history_len=4)
    other = MLP()
    again.attach(other)
    other.load_state_dict(saved)
    reference = torch.compile(other, backend=again)
    F.cross_entropy(reference(x), y).backward()
    assert torch.equal(model.up.weight.grad, other.up.weight.grad)
    assert torch.equal(scales_of(backend)[0], scales_of(again)[0])
    assert torch.allclose(evaluated, model.down(F.gelu(model.up(x))), atol=0.2)  # FP8's error


def test_weights_that_are_new_tensors_in_every_call_have_one_state():
    backend = fp8.torch.backend(recipe="delayed", amax_history_len=4)
    model = MLP()
    forward = torch.compile(lambda parameters, x: torch.func.functional_call(model, parameters, (x,)), backend=backend)
    parameters = {name: p.detach().clone().requires_grad_() for name, p in model.named_parameters()}
    for x, y in batches(4):
        loss = F.cross_entropy(forward(parameters, x), y)
        gradients = torch.autograd.grad(loss, list(parameters.values()))
        parameters = {name: (p - 0.1 * g).detach().requires_grad_() for (name, p), g in zip(parameters.items(), gradients)}
    assert len(backend.states._modules) == 1 and (scales_of(backend)[0] != 1).all()


def test_a_model_with_an_attached_state_can_be_copied_and_pickled():
    backend = fp8.torch.backend(recipe="delayed", amax_history_len=4)
    model = MLP()
    backend.attach(model)
    train(model, torch.compile(model, backend=backend), steps=2)
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    for other in (copy.deepcopy(model), torch.load(file, weights_only=False)):
        assert torch.equal(other.state_dict()["fp8_state.0.scale"], model.state_dict()["fp8_state.0.scale"])


def test_a_copy_of_a_compiled_model_has_the_same_backend_and_scales_of_its_own():
    model, forward, backend = compiled(recipe="delayed", amax_history_len=4)
    train(model, forward, steps=2)
    other = copy.deepcopy(forward)
    with torch.no_grad():
        other.up.weight.mul_(100)
    train(other, other, steps=2)
    first, second = scales_of(backend)
    assert len(backend.graphs) == 1 and not torch.equal(first, second)


def test_a_pickled_compiled_model_keeps_its_scales():
    model, forward, backend = compiled(recipe="delayed", amax_history_len=4)
    backend.attach(model)
    resume(model, forward, 3, 1)
    file = io.BytesIO()
    torch.save((forward, backend), file)
    file.seek(0)
    expected = resume(model, forward, 3, 2)
    other, unpickled = torch.load(file, weights_only=False)
    torch._dynamo.reset()
    assert resume(other, other, 3, 2) == expected
    assert torch.equal(other.state_dict()["_orig_mod.fp8_state.0.scale"], backend.state_dict()["0.scale"])
    assert torch.equal(unpickled.state_dict()["0.scale"], backend.state_dict()["0.scale"])


def test_complex_arguments_are_named_at_the_users_line():
    def function(z):
        return z.abs()  # the argument

    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as raised:
        torch.compile(function, backend=fp8.torch.backend())(torch.ones(3, dtype=torch.complex64))
    error = raised.value.inner_exception
    assert isinstance(error, fp8.UnsupportedError) and "is complex" in error.message and "torch.view_as_real" in error.message
    assert "# the argument" in open(__file__).readlines()[error.location.line - 1]


def test_control_flow_that_has_no_form_is_named_at_the_users_line():
    def function(x):
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))  # the choice

    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as raised:
        torch.compile(function, backend=fp8.torch.backend())(torch.ones(3))
    error = raised.value.inner_exception
    assert isinstance(error, fp8.UnsupportedError) and "'cond' has no form in linalg" in error.message
    assert "# the choice" in open(__file__).readlines()[error.location.line - 1]
