# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of PyTorch on CUDA tensors, with a stand-in for torch.cuda: kernels run on the emulator, on tensors in its memory."""

import types

import fp8
import fp8.torch
import pytest
import torch
import torch.nn.functional as F
import torch_backends
import torch_standin
import torch_steps
from fp8.torch import _capture, _cuda
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

pytestmark = pytest.mark.usefixtures("fresh_dynamo")
CPU, GPU = torch.device("cpu"), torch.device("cuda:0")


@pytest.fixture
def cuda(monkeypatch):
    return torch_standin.install(monkeypatch)


class WithLoss(nn.Module):
    """A model and its loss: one scalar leaves the compiled program."""

    def __init__(self):
        super().__init__()
        self.model = torch_backends.layers()

    def forward(self, x, y):
        return F.mse_loss(self.model(x), y)


def batches(count):
    return [(x, F.one_hot(y, 4).float()) for x, y in torch_backends.batches(count)]


BATCH = torch_steps.BATCH[0], F.one_hot(torch_steps.BATCH[1], 4).float()


class Training:
    """A model on a device of the stand-in, or on the CPU, with torch.compile and AdamW."""

    def __init__(self, cuda, place=None, recipe="delayed", **options):
        torch._dynamo.reset()
        torch.manual_seed(0)
        self.cuda, self.place, self.model = cuda, place, WithLoss()
        if place:
            cuda.move(self.model, place)
        self.backend = fp8.torch.backend(recipe, **options)
        self.forward = torch.compile(self.model, backend=self.backend)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-2)

    def put(self, tensor):
        return self.cuda.put(tensor, self.place) if self.place else tensor

    def step(self, x, y):
        self.cuda.traced = self.place or CPU
        loss = self.forward(self.put(x), self.put(y))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def steps(self, count=3):
        return [self.step(x, y) for x, y in batches(count)]


def test_training_through_torch_compile(cuda):
    """The bits of the emulator with copies, by calls on tensors in its memory."""
    copied, placed = Training(cuda, device="emulator"), Training(cuda, GPU)
    assert copied.steps() == placed.steps()
    library = placed.backend.graphs[0].library
    assert (library.device, library.target) == ("cuda:0", "sm_90a")
    assert all(cuda.device_of(p.grad) == GPU for p in placed.model.parameters())
    state, there = copied.backend.state, placed.backend.graphs[0].state
    assert cuda.device_of(there["scale"]) == GPU and cuda.device_of(there["layout_hash"]) == CPU
    assert torch.equal(there["amax_history"], state["amax_history"])
    with torch.no_grad():
        x, y = batches(1)[0]
        found, cuda.traced = placed.forward(placed.put(x), placed.put(y)).item(), CPU
        assert found == copied.forward(x, y).item()


def test_steps_neither_wait_nor_allocate(cuda):
    training = Training(cuda, GPU)
    training.steps(2)
    x, y = map(training.put, batches(1)[0])
    training.step(x, y)
    asked = cuda.allocations
    cuda.forget()
    for _ in range(20):
        training.step(x, y)
    assert cuda.allocations == asked
    assert cuda.reached() == ["cuLaunchKernelEx"]


def test_the_current_stream(cuda):
    training = Training(cuda, GPU)
    first = training.steps(1)
    launched = []
    enqueue = fp8.Prepared.enqueue
    training_stream = cuda.streams[GPU] = cuda.new_stream(GPU)

    def noted(self, arguments, results, stream, workspace=0):
        launched.append((stream, workspace % 256, cuda.device_of_address(workspace)))
        enqueue(self, arguments, results, stream, workspace)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fp8.Prepared, "enqueue", noted)
        training.steps(2)
    assert launched == [(training_stream, 0, GPU)] * 4  # forward and backward of two steps
    assert first == Training(cuda, GPU).steps(1)
    # The state was made on the default stream: its memory is kept for the other stream's work, once.
    state = training.backend.graphs[0].state
    assert sorted(cuda.recorded) == sorted(tensor.data_ptr() for tensor in state.tensors())


def test_devices_in_one_process(cuda):
    """Each graph runs on the device of its tensors, with the code for its chip; a model that is moved takes its scales along."""
    other = torch.device("cuda:1")
    first, second = Training(cuda, GPU), Training(cuda, other)
    losses = [training.steps(2) for training in (first, second)]
    targets = [training.backend.graphs[0].library.target for training in (first, second)]
    assert targets == ["sm_90a", fp8._device.chip_of("cuda:1")] and targets[0] != targets[1]
    # As in test_torch_device: chips add in their own ways.
    assert losses[0] == pytest.approx(losses[1], rel=2e-3)
    assert cuda.device_of(second.backend.graphs[0].state["scale"]) == other
    state = second.backend.graphs[0].state
    state.move_to(_cuda.CudaMemory(GPU, {}))
    assert cuda.device_of(state["scale"]) == GPU
    x, y = batches(1)[0]
    second.step(x, y)
    assert cuda.device_of(state["scale"]) == other


def test_numbers_of_the_cpu(cuda):
    """A tensor without dimensions may lie on the CPU, as in eager PyTorch."""
    forward = torch.compile(lambda x, scale: x * scale, backend=fp8.torch.backend("none"))
    x = cuda.put(torch.arange(32.0).reshape(2, 16), GPU)
    result = forward(x, torch.tensor(0.5))
    assert cuda.device_of(result) == GPU and torch.equal(result, x / 2)


def test_tensors_that_are_not_aligned(cuda):
    forward = torch.compile(lambda x: x * 2, backend=fp8.torch.backend("none"))
    x = cuda.put(torch.arange(36.0), GPU)
    assert torch.equal(forward(x[1:33]), x[1:33] * 2)


def whole_steps(cuda, place, count=3, **options):
    torch.manual_seed(0)
    model = torch_steps.MLP()
    batch, cuda.traced = BATCH, place or CPU
    if place:
        cuda.move(model, place)
        batch = [cuda.put(t, place) for t in batch]
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    step = fp8.torch.train_step(model, F.mse_loss, optimizer, **options)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    losses = []
    for _ in range(count):
        losses.append(step(*batch).item())
        scheduler.step()
    return losses, step, batch


@pytest.mark.parametrize("options", [{}, {"fp8_parameters": True}], ids=str)
def test_whole_steps(cuda, options):
    expected, _, _ = whole_steps(cuda, None, device="emulator", **options)
    found, step, batch = whole_steps(cuda, GPU, **options)
    assert found == expected
    kept = [value for tensors in step.optimizer.state.values() for value in tensors.values()]
    assert len(kept) == 18 and all(cuda.device_of(value) == GPU for value in [*kept, *step.model.buffers(), *step.model.parameters()])
    asked = cuda.allocations
    cuda.forget()
    for _ in range(20):
        step(*batch)
    assert cuda.allocations == asked and cuda.reached() == ["cuLaunchKernelEx"]
    # As eager PyTorch loads it: the number of steps on the CPU.
    for tensors in step.optimizer.state.values():
        tensors["step"] = torch.tensor(float(tensors["step"]))
    step(*batch)
    assert {tensors["step"].item() for tensors in step.optimizer.state.values()} == {24.0}


def test_states_go_to_the_cpu(cuda):
    _, step, batch = whole_steps(cuda, GPU)
    saved = {name: tensor.clone() for name, tensor in step.state_dict().items()}
    weights = {name: tensor.clone() for name, tensor in step.model.state_dict().items()}
    other = whole_steps(cuda, None, 0)[1]
    other.model.load_state_dict(weights)
    other.load_state_dict(saved)
    expected = other(*BATCH).item()
    assert other.library.target == "cpu" and cuda.device_of(other.state["scale"]) == CPU
    # As in test_torch_device.
    assert step(*batch).item() == pytest.approx(expected, rel=2e-3)


def test_exported_programs(cuda):
    torch.manual_seed(0)
    model, x = torch_backends.layers().eval(), torch.randn(8, 16)
    program, cuda.traced = torch.export.export(model, (x,)), CPU
    expected = fp8.torch.compile_exported(program, "delayed", [(x,)], device="emulator")(x)
    there, cuda.traced = cuda.put(x, GPU), GPU
    run = fp8.torch.compile_exported(program, "delayed", [(there,)])
    assert run.library.device == "cuda:0" and torch.equal(run(there), expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "emulator"}, "device='emulator' takes the CPU's tensors, and .* lies on cuda:0: move model and inputs, or leave out device="),
        ({"device": "cpu"}, "device='cpu' takes the CPU's tensors"),
        ({"device": "cuda:1"}, "device='cuda:1' takes its tensors, and .* lies on cuda:0"),
        ({"target": "cpu"}, "target='cpu' is code for the CPU, and .* lies on cuda:0: leave it out"),
    ],
)
def test_options_for_another_device(cuda, options, message):
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=message):
        Training(cuda, GPU, **options).steps(1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "cuda"}, "device='cuda', and .* lies on the CPU: move model and inputs by .to"),
        ({"target": "sm_89"}, "target='sm_89' is code for a GPU, and .* lies on the CPU: .*, or choose device='emulator'"),
    ],
)
def test_tensors_of_the_cpu_for_a_gpu(cuda, options, message):
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=message):
        Training(cuda, **options).steps(1)


def test_a_chip_without_code(cuda, monkeypatch):
    monkeypatch.setattr(type(cuda), "capability", lambda self, device: (8, 0))
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="cuda:0 has the compute capability 8.0; there is code for 8.9, 9.0, 10.0, 12.0"):
        Training(cuda, GPU).steps(1)


def test_tensors_on_two_devices(cuda):
    _, step, batch = whole_steps(cuda, GPU, 1)
    with pytest.raises(fp8.UnsupportedError, match="input 0 of the step lies on the CPU, and model.up.weight|up.weight on cuda:0: all tensors") as caught:
        step(BATCH[0][:4], batch[1][:4])
    assert caught.traceback[-1].path.name == "test_torch_cuda.py"


def test_out_of_memory(cuda, monkeypatch):
    """PyTorch's own error, which trainers catch."""
    _, step, batch = whole_steps(cuda, GPU, 1)

    def new(*_):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(type(cuda), "new", new)
    with pytest.raises(torch.OutOfMemoryError) as caught:
        step(*batch)
    monkeypatch.undo()
    assert caught.traceback[-1].path.name == "test_torch_cuda.py"


class Chip(_cuda.Cuda):
    """torch.cuda as it is without a driver, and the capability of an H100."""

    def capability(self, device):
        return 9, 0


class Called(Exception):
    """Raised where a compiled program would be called."""


@pytest.fixture
def compiled_only(monkeypatch):
    """Programs for a GPU are compiled; a call of one raises Called."""

    def taken(*_):
        raise Called

    monkeypatch.setattr(_cuda, "cuda", Chip())
    monkeypatch.setattr(_cuda.CudaMemory, "prepare", lambda *_: types.SimpleNamespace(arguments=[], results=[]))
    monkeypatch.setattr(_cuda.CudaMemory, "taken", taken)


class Net(nn.Module):
    """Operations that PyTorch captures differently on a GPU, or that make tensors."""

    def __init__(self):
        super().__init__()
        self.embed, self.qkv, self.norm = nn.Embedding(24, 32), nn.Linear(32, 96), nn.LayerNorm(32)
        self.conv, self.batch_norm = nn.Conv1d(32, 32, 3, padding=1), nn.BatchNorm1d(32)

    def forward(self, ids):
        x = self.embed(ids) + torch.arange(ids.shape[1], device=ids.device)[:, None] * 0.01
        q, k, v = (part.unflatten(-1, (2, -1)).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, -1))
        x = x + F.dropout(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2), 0.1)
        x = x + F.max_pool1d(self.batch_norm(self.conv(x.transpose(1, 2))), 3, 1, 1).transpose(1, 2)
        x = x.masked_fill(torch.ones(16, 32, device=ids.device).tril() == 0, -1.0)
        return F.cross_entropy((x @ self.embed.weight.T)[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


def test_graphs_of_cuda_tensors_are_compiled(monkeypatch, compiled_only):
    """With PyTorch's own CUDA tensors, which have no values here. Its autograd asks for a driver, so that there is no gradient."""
    draws = []
    draw_outside = _capture.draw_outside
    monkeypatch.setattr(_capture, "draw_outside", lambda module: draws.extend(_capture.random_nodes(module)) or draw_outside(module))
    with FakeTensorMode():
        with torch.device("cuda"):
            model, ids = Net(), torch.zeros(4, 16, dtype=torch.int64)
        backend = fp8.torch.backend("current")
        with torch.no_grad(), pytest.raises(Called):
            torch.compile(model, backend=backend)(ids)
    library = backend.graphs[0].library
    assert (library.device, library.target) == ("cuda:0", "sm_90a")
    # The linear layer, the convolution and the output have FP8 matmuls; attention's are kept.
    assert len(backend.report().fp8) >= 2
    # Eager PyTorch's kernel draws the mask, whose numbers are others than bernoulli_'s.
    assert [node.target for node in draws] == [torch.ops.aten.native_dropout.default]


def test_tensors_that_decompositions_make_lie_on_the_gpu(compiled_only):
    def resized(x):
        images = F.interpolate(x, size=7, mode="bicubic", antialias=True)
        return images + torch.empty_strided((7, 7), (1, 7), device=x.device) * 0 + x.new_empty_strided((7, 7), (7, 1)) * 0

    with FakeTensorMode():
        images = torch.zeros(2, 3, 16, 12, device="cuda")
        with torch.no_grad(), pytest.raises(Called):
            torch.compile(resized, backend=fp8.torch.backend("none"))(images)
