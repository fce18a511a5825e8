# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One process of a group, as torchrun starts them: `torch_ranks.py FOLDER CASE…` saves what each case returns as FOLDER/CASE.RANK."""

import datetime
import os
import pathlib
import signal
import sys
import time

import fp8
import fp8.torch
import torch
import torch.distributed as dist
import torch.nn.functional as F
import torch_divided
from fp8 import _ranks
from torch import nn
from torch_steps import MLP, Shifted, error_of

STEPS = 3
RATE = 0.1


def batches(rank, steps=STEPS):
    generator = torch.Generator().manual_seed(7 + rank)
    return [(torch.randn(8, 16, generator=generator), torch.randint(0, 4, (8,), generator=generator)) for _ in range(steps)]


def rank():
    return dist.get_rank()


def make(group=None, kind=Shifted, optimizer=torch.optim.AdamW, seed=0, **options):
    torch.manual_seed(seed)
    model = kind()
    return model, fp8.torch.train_step(model, F.cross_entropy, optimizer(model.parameters(), RATE), data_parallel=group, **options)


def result(model, step, losses):
    found = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    return {"losses": losses, **found, **{f"state.{name}": t for name, t in step.state_dict().items()}, "library": str(step.library.path)}


def trained(given, group=None, **options):
    model, step = make(group, **options)
    return result(model, step, [step(*batch).item() for batch in given])


def own_batches(**options):
    return trained(batches(rank()), dist.group.WORLD, **options)


def equal_batches(recipe, **options):
    return [trained(batches(0), group, recipe=recipe, kind=MLP, **options) for group in (dist.group.WORLD, None)]


def own_and_whole():
    """One step of SGD on a part of the batch on each rank, and on the whole one."""
    parts = [batches(r, 1)[0] for r in range(2)]
    whole = [tuple(map(torch.cat, zip(*parts)))]
    options = dict(kind=MLP, optimizer=torch.optim.SGD, recipe="none")
    return [trained([parts[rank()]], dist.group.WORLD, **options), *(trained([part], **options) for part in parts), trained(whole, **options)]


class Dropped(nn.Module):
    """Names of modules that begin as those of arguments do."""

    def __init__(self):
        super().__init__()
        self.up, self.batch_norm, self.random_drop, self.down = nn.Linear(16, 32), nn.BatchNorm1d(32), nn.Dropout(0.5), nn.Linear(32, 4)

    def forward(self, x):
        return self.down(self.random_drop(self.batch_norm(self.up(x))))


def draws_and_statistics():
    """Each rank draws its own elements; running statistics become the means."""
    model, step = make(dist.group.WORLD, Dropped)
    torch.manual_seed(rank())
    return result(model, step, [step(*batch).item() for batch in batches(rank())])


def across_machines():
    _ranks.machine = lambda: f"machine {rank()}"
    return own_batches()


def step_twice(step, second):
    step(*batches(rank(), 1)[0])
    return error_of(lambda: step(*second)), error_of(lambda: step(*batches(rank(), 1)[0]))


def rank_1_fails():
    x, y = batches(rank(), 1)[0]
    return step_twice(make(dist.group.WORLD)[1], (x, y if rank() == 0 else "labels"))


def other_sizes():
    """Where the last batch of a rank is smaller, the ranks do not have the same program."""
    x, y = batches(rank(), 1)[0]
    return step_twice(make(dist.group.WORLD)[1], (x[: 8 - rank()], y[: 8 - rank()]))


def other_options():
    _, step = make(dist.group.WORLD, recipe="delayed", margin=rank())
    return error_of(lambda: step(*batches(rank(), 1)[0]))


def other_weights():
    _, step = make(dist.group.WORLD, seed=rank())
    return error_of(lambda: step(*batches(rank(), 1)[0]))


def other_programs():
    """Each rank has a model that cannot be compiled there."""

    class Inverse(nn.Linear):
        def forward(self, x):
            y = super().forward(x)
            return y + torch.linalg.inv(y[:4]).sum()

    _, step = make(dist.group.WORLD, (lambda: Inverse(16, 4)) if rank() else Shifted)
    return error_of(lambda: step(*batches(rank(), 1)[0]))


def while_rank_0_waits(act):
    """One step on both ranks, then rank 1 does something else, and rank 0 the next step."""
    _, step = make(dist.group.WORLD)
    step(*batches(rank(), 1)[0])
    if rank() == 1:
        act()
    start = time.monotonic()
    return error_of(lambda: step(*batches(rank(), 1)[0])), time.monotonic() - start


def rank_1_is_killed():
    """torchrun ends the other processes then, which rank 0 must outlive to say what it saw."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return while_rank_0_waits(lambda: os.kill(os.getpid(), signal.SIGKILL))


def rank_1_is_late():
    return while_rank_0_waits(lambda: time.sleep(10))


def rank_1_never_comes():
    return error_of(lambda: make(dist.group.WORLD)[1](*batches(0, 1)[0])) if rank() == 0 else None


def on_emulator():
    return own_batches(kind=MLP, recipe="none", device="emulator", target="sm_90a")


def subgroup():
    """A group of one of the two processes."""
    groups = [dist.new_group([r]) for r in range(2)]
    options = dict(recipe="current")
    return [trained(batches(rank()), group, **options) for group in (groups[rank()], None)]


CASES = {
    "delayed": own_batches, "mlp": lambda: own_batches(kind=MLP), "across_machines": across_machines,
    **{f"equal_{r}": (lambda r=r: equal_batches(r)) for r in ("none", "current", "delayed")},
    "equal_casts": lambda: equal_batches("delayed", fp8_parameters=True),
    **{f.__name__: f for f in (own_and_whole, draws_and_statistics, rank_1_fails, other_sizes, other_options, other_weights, other_programs)},
    **{f.__name__: f for f in (rank_1_is_killed, rank_1_is_late, rank_1_never_comes, on_emulator, subgroup)},
}  # fmt: skip

if __name__ == "__main__":
    folder, seconds, *cases = sys.argv[1:]
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=float(seconds)))
    known = {**CASES, **torch_divided.CASES}
    for case in cases:
        torch.save(known[case](), pathlib.Path(folder, f"{case}.{rank()}"))
