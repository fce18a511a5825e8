# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Tensors of PyTorch on the device: made, copied, read. Its kernels are machine code alone, which the emulator does
# not run.

import sys

import torch

if torch.version.cuda is None:
    sys.exit(77)

x = torch.arange(12, dtype=torch.float32).reshape(3, 4)
on_device = x.cuda()
assert on_device.is_cuda and torch.equal(on_device.cpu(), x)
assert torch.equal(on_device[1].cpu(), x[1])
assert torch.equal(torch.zeros(5, device="cuda").cpu(), torch.zeros(5))
copied = torch.empty(3, 4, device="cuda").copy_(on_device)
assert torch.equal(copied.cpu(), x)

stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    pinned = x.pin_memory().to("cuda", non_blocking=True)
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
start.record()
end.record()
torch.cuda.synchronize()
assert torch.equal(pinned.cpu(), x) and start.elapsed_time(end) >= 0

assert torch.cuda.get_device_name(0).startswith("fp8emu")
assert torch.cuda.memory_allocated() > 0
print("ok")
