# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cases of torch_ranks.py: parameters that fully_shard divides over the ranks, beside whole ones on every rank."""

import fp8
import fp8.torch
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import distribute_tensor
from torch_steps import error_of

STEPS = 3


class Block(nn.Module):
    """Sizes that two ranks divide, a statistic, a frozen layer and a tied weight."""

    def __init__(self):
        super().__init__()
        self.up, self.norm, self.drop, self.down = nn.Linear(64, 128), nn.BatchNorm1d(128), nn.Dropout(0.25), nn.Linear(128, 64)
        self.frozen, self.head = nn.Linear(64, 64).requires_grad_(False), nn.Linear(64, 64)
        self.again = self.down.weight

    def forward(self, x):
        y = self.drop(F.gelu(self.norm(self.up(x))))
        return self.head(torch.tanh(self.frozen(F.linear(y, self.again))) + self.down(y))


def batches():
    generator = torch.Generator().manual_seed(10 + dist.get_rank())
    return [(torch.randn(32, 64, generator=generator), torch.randint(0, 64, (32,), generator=generator)) for _ in range(STEPS)]


def mesh():
    return init_device_mesh("cpu", (dist.get_world_size(),))


def make(is_divided, kind=Block, optimizer=torch.optim.AdamW, **options):
    torch.manual_seed(0)
    model = kind()
    if is_divided:
        fully_shard(next(model.children()), mesh=mesh())
        fully_shard(model, mesh=mesh())
    return model, fp8.torch.train_step(model, F.cross_entropy, optimizer(model.parameters(), 1e-2), data_parallel=dist.group.WORLD, **options)


def full(tensor):
    return (tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor).detach().clone()


def tensors(model, step):
    found = {name: full(t) for name, t in [*model.named_parameters(), *model.named_buffers()]}
    for name, parameter in model.named_parameters():
        found |= {f"{key}.{name}": full(t) for key, t in step.optimizer.state.get(parameter, {}).items()}
    return found | {f"state.{name}": t.clone() for name, t in step.state_dict().items()}


def trained(is_divided, **options):
    model, step = make(is_divided, **options)
    torch.manual_seed(dist.get_rank())
    losses = [step(*batch).item() for batch in batches()]
    return {"losses": losses, **tensors(model, step)}


def both(**options):
    return [trained(is_divided, **options) for is_divided in (True, False)]


def bytes_of_a_rank():
    """Of parameters and optimizer's state, divided and whole; with the collectives of the step."""
    found = []
    for is_divided in (True, False):
        model, step = make(is_divided, kind=Plain)
        step(*batches()[0])
        states = [t for state in step.optimizer.state.values() for t in state.values()]
        local = [t.to_local() if is_divided and hasattr(t, "to_local") else t for t in (*model.parameters(), *states)]
        found.append((sum(t.nbytes for t in local), str(step.report())))
    return found


class Plain(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64))


def beside_eager():
    """Losses of fully_shard's own training, and of ours; between its steps the model is evaluated."""
    model, step = make(True, kind=Plain, recipe="none")
    ours = []
    for batch in batches():
        with torch.no_grad():
            evaluated = F.cross_entropy(model(batch[0]), batch[1])
        ours.append((step(*batch).item(), evaluated.item()))
    shown = str(step)
    model, step = make(True, kind=Plain, recipe="none")
    theirs = []
    for x, y in batches():
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        step.optimizer.step()
        step.optimizer.zero_grad()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        theirs.append((mean.item() / dist.get_world_size(), loss.item()))
    return ours, theirs, shown


def resumes():
    """Goes on from a checkpoint of whole tensors in another model, whose parameters are divided too."""
    model, step = make(True, kind=Plain)
    step(*batches()[0])
    saved = {name: full(p) for name, p in model.named_parameters()}
    moments = {name: {key: full(t) for key, t in step.optimizer.state[p].items()} for name, p in model.named_parameters()}
    state = {name: t.clone() for name, t in step.state_dict().items()}
    wanted = [step(*batch).item() for batch in batches()[1:]]
    model, step = make(True, kind=Plain)
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(distribute_tensor(saved[name], p.device_mesh, p.placements))
            step.optimizer.state[p] = {key: distribute_tensor(t, p.device_mesh, p.placements) if t.dim() else t.clone() for key, t in moments[name].items()}
    step.load_state_dict(state)
    return wanted, [step(*batch).item() for batch in batches()[1:]]


class Named(nn.Module):
    """A parameter whose name is that of another one's state, and a buffer with the name of a learning rate."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(64, 64, bias=False)
        self.weight, self.exp_avg = nn.Parameter(torch.ones(64)), nn.Linear(64, 64, bias=False)
        self.register_buffer("lr0", torch.zeros(()))

    def forward(self, x):
        self.lr0.add_(1)
        return self.exp_avg(self.first(x) * self.weight) + self.lr0


class Odd(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(64, 63), nn.Linear(63, 64))


def refused():
    """The errors for what is not divided as a step takes it."""

    def step_of(model, group=dist.group.WORLD, optimizer=torch.optim.AdamW):
        return fp8.torch.train_step(model, F.cross_entropy, optimizer(model.parameters(), 1e-2), data_parallel=group)

    def sharded(kind=Plain, over=None, **options):
        return fully_shard(kind(), mesh=over or mesh(), **options)

    def in_a_list():
        model = Plain()
        fully_shard([model[0], model[2]], mesh=mesh())
        return fully_shard(model, mesh=mesh())

    x, y = batches()[0]
    alone = [dist.new_group([rank]) for rank in range(dist.get_world_size())][dist.get_rank()]
    grid = init_device_mesh("cpu", (dist.get_world_size(), 1), mesh_dim_names=("a", "b"))
    return {
        "no group": error_of(lambda: step_of(sharded(), None)(x, y)),
        "another group": error_of(lambda: step_of(sharded(), alone)(x, y)),
        "a grid": error_of(lambda: step_of(sharded(over=grid))(x, y)),
        "uneven": error_of(lambda: step_of(sharded(Odd))(x, y)),
        "an optimizer": error_of(lambda: step_of(sharded(), optimizer=torch.optim.Adafactor)(x, y)),
        "a list": error_of(lambda: step_of(in_a_list())(x, y)),
        "a policy": error_of(lambda: step_of(sharded(mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16)))(x, y)),
    }


CASES = {
    **{f"divided_{recipe}": (lambda recipe=recipe: both(recipe=recipe)) for recipe in ("none", "delayed", "row", "mxfp8")},
    "divided_sgd": lambda: both(optimizer=lambda p, rate: torch.optim.SGD(p, rate, momentum=0.9), autocast=torch.bfloat16),
    "divided_without_state": lambda: both(optimizer=torch.optim.SGD),
    "divided_names": lambda: both(kind=Named, recipe="none"),
    "divided_casts": lambda: both(fp8_parameters=True, kind=Plain),
    "divided_on_emulator": lambda: both(recipe="delayed", kind=Plain, device="emulator", target="sm_90a"),
    **{f.__name__: f for f in (bytes_of_a_rank, beside_eager, resumes, refused)},
}
