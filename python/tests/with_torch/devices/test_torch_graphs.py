# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Work on CUDA tensors in graphs, as torch.cuda.graph captures it, with a stand-in for torch.cuda."""

import fp8
import fp8.torch
import pytest
import torch
import torch.nn.functional as F
import torch_backends
import torch_standin
import torch_steps
from fp8.torch import _cuda
from test_torch_cuda import GPU, Training, batches

pytestmark = pytest.mark.usefixtures("fresh_dynamo")


@pytest.fixture
def cuda(monkeypatch):
    return torch_standin.install(monkeypatch)


def test_work_is_captured(cuda):
    """As under torch.cuda.graph: after a first call, the graph that is launched does what the call would."""
    training = Training(cuda, GPU, "current")
    x, y = map(training.put, batches(1)[0])
    with torch.no_grad():
        wanted = training.forward(x, y).item()
    stream = cuda.streams[GPU] = cuda.new_stream(GPU)
    with cuda.captured(GPU, stream) as graph, torch.no_grad():
        result = training.forward(x, y)
    result.fill_(0)
    graph.launch()
    assert result.item() == wanted
    x.mul_(2)
    graph.launch()
    with torch.no_grad():
        assert result.item() == training.forward(x, y).item() != wanted


def test_checks_of_indices_are_captured(cuda):
    """Labels are checked: a call waits, and in a graph a kernel does it."""
    torch.manual_seed(0)
    model = cuda.move(torch_backends.layers(), GPU)
    forward = torch.compile(lambda x, y: F.cross_entropy(model(x), y), backend=fp8.torch.backend("none"))
    x, y = (cuda.put(t, GPU) for t in torch_steps.BATCH)
    with torch.no_grad():
        loss = forward(x, y)
        # Sums in f32 in another order.
        assert loss.item() == pytest.approx(F.cross_entropy(model(x), y).item(), rel=1e-5)
        with pytest.raises(fp8.RunError, match="entry .main. failed: index must be smaller than dim size"):
            forward(x, cuda.put(torch.full_like(y, 99), GPU))
        stream = cuda.streams[GPU] = cuda.new_stream(GPU)
        with cuda.captured(GPU, stream) as graph:
            result = forward(x, y)
        y.copy_(y.flip(0))
        graph.launch()
        assert result.item() == forward(x, y).item() != loss.item()


#: A value decides which of two programs runs.
DECIDES = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %first = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %value = tensor.extract %x[%first] : tensor<4xf32>
  %positive = arith.cmpf ogt, %value, %zero : f32
  %y = scf.if %positive -> tensor<4xf32> {
    %exp = math.exp %x : tensor<4xf32>
    scf.yield %exp : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}
"""


def test_what_decides_by_values_is_not_captured(cuda):
    library = fp8.compile(DECIDES, recipe="none", device=str(GPU), target="sm_90a")
    call = _cuda.CudaMemory(GPU, {}).prepare(library, "main")
    x, y = (cuda.put(torch.linspace(1, 2, 4), GPU) for _ in range(2))
    call.call([x.data_ptr()], [y.data_ptr()])
    torch.testing.assert_close(y, x.exp())
    cuda.capturing = True
    with pytest.raises(fp8.UnsupportedError, match="'main' reads values of the device between its kernels, so that no graph can capture it"):
        call.call([x.data_ptr()], [y.data_ptr()])
