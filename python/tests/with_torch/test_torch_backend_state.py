# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8.torch.backend: FP8 states, of models that are alike, saved, copied and loaded, in training and inference."""

import concurrent.futures
import copy
import gc
import io
import warnings

import fp8.torch
import numpy as np
import pytest
import torch
import torch.nn.functional as F
import torch_backends
from torch import nn
from torch_backends import MLP, batches, compiled, layers, train

pytestmark = pytest.mark.usefixtures("fresh_dynamo")


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
    assert caught[0].filename == torch_backends.__file__
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


def test_what_is_no_saved_state_is_refused_before_the_first_call():
    model, _, backend = compiled(layers, "delayed")
    attached, _, other = compiled(layers, "delayed")
    other.attach(attached)
    step = fp8.torch.train_step(model, F.cross_entropy, torch.optim.SGD(model.parameters(), 0.1))
    for target in (backend, step):
        with pytest.raises(fp8.StateError, match="lacks '0.layout_hash'"):
            target.load_state_dict(model.state_dict())
        with pytest.raises(fp8.StateError, match="lacks '0.layout_hash'"):
            target.load_state_dict({"0.scale": torch.ones(1)})
        with pytest.raises(fp8.StateError, match="has 'down', and its keys are as '0.scale'"):
            target.load_state_dict(MLP().state_dict())
        with pytest.raises(fp8.StateError, match="has 'fp8_state', and its keys"):
            target.load_state_dict({"fp8_state.0.scale": torch.ones(1), "fp8_state.0.layout_hash": torch.ones(8, dtype=torch.uint8)})
        with pytest.raises(fp8.StateError, match="'0.layout_hash' of the saved FP8 state is of type list, not a tensor"):
            target.load_state_dict({"0.layout_hash": [1]})
        target.load_state_dict({})
        assert target.state_dict() == {}
    with pytest.raises(fp8.StateError, match="lacks '0.layout_hash'"):
        step.state = {"scale": np.ones(1)}


def test_a_history_of_another_length_is_resized(tmp_path):
    """As the error says: by fp8.state.resize on a graph's state, and on what state_dict gave."""
    model, forward, backend = compiled(recipe="delayed", amax_history_len=3)
    backend.attach(model)
    resume(model, forward, 4, 1)
    rows = backend.graphs[0].state.amax_history.clone()
    longer = torch.zeros(5, rows.shape[1])
    longer[0], longer[3:] = rows[0], rows[1:]
    assert np.array_equal(fp8.state.resize(backend.graphs[0].state, 5)["amax_history"], longer)

    again, forward, backend5 = compiled(recipe="delayed", amax_history_len=5)
    backend5.attach(again)
    saved = model.state_dict()
    with pytest.raises(fp8.StateError, match="fp8.state.resize changes the length"):
        resume(again, forward, 1, 1)
        again.load_state_dict(saved)
    again.load_state_dict(fp8.state.resize(saved, 5))
    assert torch.equal(backend5.graphs[0].state.amax_history, longer)
    backend.load_state_dict(fp8.state.resize(backend5.state_dict(), 3))
    assert torch.equal(backend.graphs[0].state.amax_history, rows)
    state = backend.graphs[0].state
    assert len(state) == 4 and list(state) == list(state.keys()) and "scale" in state and "weight" not in state and state


def test_a_cell_that_attaches_runs_again():
    model = layers()
    for new in (lambda: fp8.torch.backend("delayed"), lambda: fp8.torch.train_step(model, F.cross_entropy, torch.optim.SGD(model.parameters(), 0.1))):
        first = new()
        vars(model).pop("fp8_state", None)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            first.attach(*[model] * hasattr(first, "graphs"))
            first.attach(*[model] * hasattr(first, "graphs"))
        second = new()
        with pytest.warns(fp8.Warning, match="from now on its state_dict has this one's") as caught:
            second.attach(*[model] * hasattr(second, "graphs"))
        assert caught[0].filename == __file__
        assert model.fp8_state is second.states
