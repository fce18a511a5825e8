# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Third-party models with one changed line: values and losses beside eager PyTorch, and the report's counts."""

import fp8.torch
import pytest
import torch
import torch_models

# Model: the number of products, and how many of them are of weights and run in FP8; the others are of attention.
COUNTS = {
    "gpt2": (39, 27),
    "llama": (57, 45),
    "bert": (54, 42),
    "t5": (135, 99),
    "mixtral": (30, 24),
    "vit": (53, 41),
    "mixer": (29, 29),
    "convnext": (41, 41),
}
FAST = ("gpt2", "mixer")
QUICK_AND_SLOW = [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in COUNTS]
EAGER = {}


def check_attention(name, report):
    """All attention is fused, also T5's, whose bias has a gradient."""
    assert not [site for site in report.attention if not site.is_fused]
    assert bool(report.attention) == (name not in ("mixer", "convnext"))


def new_model(name):
    torch.manual_seed(0)
    torch._dynamo.reset()
    return getattr(torch_models, name)()


def train(name, recipe=None, steps=4, autocast=True, **options):
    """Losses of steps with AdamW, the gradients of the first step, and the backend."""
    model, new_batch = new_model(name)
    model.train()
    forward, backend = model, None
    if recipe:
        backend = fp8.torch.backend(recipe, **options)
        forward = torch.compile(model, backend=backend)
    optimizer, losses, gradients = torch.optim.AdamW(model.parameters(), 3e-3), [], {}
    generator = torch.Generator().manual_seed(1)
    torch.manual_seed(2)  # dropout
    for _ in range(steps):
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            loss = forward(**new_batch(generator)).loss
        optimizer.zero_grad()
        loss.backward()
        gradients = gradients or {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
        optimizer.step()
        losses.append(loss.item())
    return losses, gradients, backend


def eager(name, autocast):
    if (name, autocast) not in EAGER:
        EAGER[name, autocast] = train(name, autocast=autocast)
    return EAGER[name, autocast]


@pytest.mark.parametrize("name", QUICK_AND_SLOW)
def test_none_is_eager(name):
    losses, gradients, backend = train(name, "none", autocast=False)
    expected, expected_gradients, _ = eager(name, False)
    assert gradients.keys() == expected_gradients.keys()
    largest = max(gradient.abs().max().item() for gradient in expected_gradients.values())
    for parameter, gradient in expected_gradients.items():
        # Sums in f32 in another order: some roundings of 2^-24 each, relative to the largest element, as small ones are
        # differences of large ones. That of a key's bias in attention is nothing but such differences.
        size = max(gradient.abs().max().item(), 1e-3 * largest)
        torch.testing.assert_close(gradients[parameter], gradient, rtol=0, atol=1e-5 * size, msg=lambda text, p=parameter: f"{p}: {text}")
    # As above; AdamW amplifies roundings of gradients near 0.
    assert losses == pytest.approx(expected, rel=2e-6)
    assert len(backend.graphs[0].report.sites) == COUNTS[name][0]
    check_attention(name, backend.graphs[0].report)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["current", "delayed"])
@pytest.mark.parametrize("name", COUNTS)
def test_recipes(name, recipe):
    losses, _, backend = train(name, recipe)
    # FP8 rounds to 1/16 at most, bf16 under autocast to 1/256; losses are 2 to 6. AdamW's first steps move each weight by
    # the learning rate whatever the size of its gradient, so that also the smallest ones, which FP8 rounds most, count:
    # in ConvNeXt, whose gradients are all of FP8, losses of the first six steps differ by up to 1.5 % (none: 0.04 %).
    assert losses == pytest.approx(eager(name, True)[0], rel=0.02)
    report = backend.graphs[0].report
    assert (len(report.sites), len(report.fp8)) == COUNTS[name]
    check_attention(name, report)
    assert {site.reason for site in report.kept} <= {"no weight operand"}


@pytest.mark.slow(one_of=4)
@pytest.mark.parametrize("chip", ["sm_90a", "sm_89"])
@pytest.mark.parametrize("name", ["gpt2", "llama", "mixtral", "t5", "vit"])
def test_on_the_emulator(name, chip):
    """The GPU's kernels, with all checks of the emulator."""
    losses, gradients, backend = train(name, "none", 2, autocast=False, device="emulator", target=chip)
    expected, wanted, _ = eager(name, False)
    # As in test_none_is_eager, with sums in the order of the chip's kernels.
    assert losses == pytest.approx(expected[:2], rel=1e-5)
    largest = max(gradient.abs().max().item() for gradient in wanted.values())
    for parameter, gradient in wanted.items():
        size = max(gradient.abs().max().item(), 1e-3 * largest)
        torch.testing.assert_close(gradients[parameter], gradient, rtol=0, atol=1e-4 * size, msg=lambda text, p=parameter: f"{p}: {text}")
    found, _, backend = train(name, "delayed", 2, device="emulator", target=chip)
    library = backend.graphs[0].library
    assert (library.target, library.device, len(library.report.fp8)) == (chip, "emulator", COUNTS[name][1])
    check_attention(name, library.report)
    # As in test_recipes.
    assert found == pytest.approx(eager(name, True)[0][:2], rel=0.02)


def test_a_loop_as_trainers_write_it():
    """Checkpointed layers with dropout, gradients of two batches, clipping and a scheduler."""
    results = []
    for compiled in (False, True):
        model, new_batch = new_model("gpt2")
        model.train()
        model.activation_checkpointing_enable()
        forward = torch.compile(model, backend=fp8.torch.backend("none")) if compiled else model
        optimizer, generator = torch.optim.AdamW(model.parameters(), 3e-3), torch.Generator().manual_seed(1)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: 1 / (i + 1))
        torch.manual_seed(2)
        results.append([])
        for _ in range(3):
            for _ in range(2):
                loss = forward(**new_batch(generator)).loss / 2
                loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            results[-1] += [loss.item(), norm.item()]
    # Sums in another order, and AdamW's divisions by the root of a second moment.
    assert results[1] == pytest.approx(results[0], rel=2e-5)


class Loss(torch.nn.Module):
    """A language model as train_step takes it: tokens in, loss out."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids):
        return self.model(input_ids=ids, labels=ids).loss


def test_whole_steps():
    """GPT-2's tied table, its dropout and its loss in one library with AdamW."""
    losses = []
    for compiled in (False, True):
        model, new_batch = new_model("gpt2")
        model = Loss(model).train()
        optimizer, generator = torch.optim.AdamW(model.parameters(), 3e-3), torch.Generator().manual_seed(1)
        step = fp8.torch.train_step(model, None, optimizer, "none") if compiled else None
        torch.manual_seed(2)
        losses.append([])
        for _ in range(4):
            ids = new_batch(generator)["input_ids"]
            loss = step(ids) if step else model(ids)
            if not step:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            losses[-1].append(loss.item())
    # As in test_none_is_eager.
    assert losses[1] == pytest.approx(losses[0], rel=2e-6)
    assert len(step.report().sites) == COUNTS["gpt2"][0]


class Logits(torch.nn.Module):
    """The tensor of a model's output that evaluation reads, from inputs without labels."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, **inputs):
        result = self.model(**inputs)
        return result if isinstance(result, torch.Tensor) else result.logits


def evaluation(name):
    model, new_batch = new_model(name)
    generator = torch.Generator().manual_seed(1)
    batch = new_batch(generator)
    for parameter in model.parameters():  # timm's last layer is zero before training
        if parameter.dim() > 1 and not parameter.any():
            torch.nn.init.normal_(parameter, std=0.1, generator=generator)
    if isinstance(model, torch_models.Classifier):
        return model.net.eval(), (batch["x"],), {}
    if name == "t5":
        batch["decoder_input_ids"] = batch["labels"]
    return Logits(model).eval(), (), {key: value for key, value in batch.items() if key != "labels"}


def root_mean_square(values):
    return values.square().mean().sqrt().item()


@pytest.mark.parametrize("name", QUICK_AND_SLOW)
def test_exported_programs(name):
    model, arguments, named = evaluation(name)
    with torch.no_grad():
        expected = model(*arguments, **named)
    size = expected.abs().max().item()
    program = torch.export.export(model, arguments, named)
    found = fp8.torch.compile_exported(program, "none")(*arguments, **named)
    # Sums in f32 in another order.
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5 * size)
    for recipe, calibration in (("current", None), ("delayed", [arguments or named])):
        run = fp8.torch.compile_exported(program, recipe, calibration)
        error = root_mean_square(run(*arguments, **named) - expected) / root_mean_square(expected)
        products = len(run.report().fp8)
        assert products >= COUNTS[name][1] // 3
        # A cast to E4M3 has 2.6 % of its tensor as root mean square error, the two casts of a product together
        # sqrt(2) times that; errors of different products are independent.
        assert 0 < error < 0.026 * (2 * products) ** 0.5
