# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiled function as autograd sees it, beside eager PyTorch: aliases, changes in place, hooks, graphs
that are kept."""

import fp8.torch
import pytest
import torch
from torch import nn
from torch.autograd.graph import save_on_cpu
from torch.utils.checkpoint import checkpoint


def inputs(*shapes):
    """Leaves, the same in every call."""
    return [torch.linspace(-1, 1.5, torch.Size(shape).numel()).reshape(shape).requires_grad_() for shape in shapes]


def tanh_of_product(x, w):
    return torch.tanh(x @ w)


# Each takes what compiles a function, and returns tensors and other values.


def simple(compile):
    x, w = inputs((3, 4), (4, 5))
    y = compile(tanh_of_product)(x, w)
    y.backward(torch.linspace(0, 1, 15).reshape(5, 3).t())
    return y, y.requires_grad, y.is_leaf, x.grad, w.grad


def outputs_that_are_no_floats(compile):
    x, w = inputs((3, 4), (4, 5))
    y, where, positive, fixed, *others = compile(lambda x, w: (x @ w, (x @ w).argmax(1), x > 0, (x @ w).detach(), 3, None))(x, w)
    y.sum().backward()
    return y, where, positive, fixed, others, fixed.requires_grad, x.grad, w.grad


def outputs_that_the_loss_does_not_use(compile):
    """One of them after the other; the gradients add up."""
    x, w = inputs((3, 4), (4, 5))
    function = compile(lambda x, w: (x @ w, (x * 2).bfloat16(), x.sum(), (x @ w).tanh()))
    gradients = []
    for used in range(4):
        y = function(x, w)[used].float()
        y.backward(torch.linspace(0, 1, y.numel()).reshape(y.shape))
        gradients += [x.grad.clone(), w.grad.clone() if w.grad is not None else torch.zeros(4, 5)]
    return gradients


def an_input_returned(compile):
    x, w = inputs((3, 4), (4, 5))
    same, y = compile(lambda x, w: (x, x @ w))(x, w)
    (same.sum() + y.sum()).backward()
    return same is x, y, x.grad


def an_output_twice_and_its_view(compile):
    def function(x, w):
        y = x @ w
        return y, y, y.t()

    x, w = inputs((3, 4), (4, 5))
    a, b, c = compile(function)(x, w)
    (a.sum() + 2 * b.sum() + 3 * c.sum()).backward()
    return a is b, c.data_ptr() == a.data_ptr(), c, x.grad


def outputs_changed_in_place(compile):
    x, w = inputs((3, 4), (4, 5))
    a, b = compile(lambda x, w: (x @ w, x * 3))(x, w)
    a.mul_(2)
    b.add_(1)
    (a.sum() + (b * b).sum()).backward()
    return a, b, x.grad, w.grad


def an_input_changed_in_place(compile):
    def function(x, w):
        x.add_(1)
        return x @ w

    (w,), x = inputs((4, 5)), torch.ones(3, 4)
    y = compile(function)(x, w)
    y.sum().backward()
    return x, y, w.grad


def one_tensor_for_two_arguments(compile):
    a, b = inputs((4, 4), (4, 4))
    function = compile(tanh_of_product)
    (function(a, a).sum() + function(a, b * 2).sum()).backward()
    return a.grad, b.grad


def views_as_arguments(compile):
    base, row, w = inputs((6, 8), (1, 4), (5, 4))
    function = compile(lambda x, y, w: torch.tanh((x + y) @ w))
    function(base[::2, ::2], row.expand(3, 4), w.t()).sum().backward()
    return base.grad, row.grad, w.grad


def no_dimensions_and_no_elements(compile):
    x, s, none, w = inputs((3, 4), (), (0, 4), (4, 5))
    y, z = compile(lambda x, s, none, w: ((x * s).sum() * s, none @ w))(x, s, none, w)
    (y + z.sum()).backward()
    return y, z, x.grad, s.grad, none.grad, w.grad


def signs_that_are_not_in_memory(compile):
    (w,), function = inputs((1,)), compile(lambda x, w: x * w)
    flipped = torch.tensor([1 + 2j]).conj().imag  # Views memory that has the other sign.
    y = function(flipped, w)
    y.backward(flipped)
    return y, w.grad


def a_graph_that_is_kept(compile):
    x, w = inputs((3, 4), (4, 5))
    function = compile(tanh_of_product)
    first, second = function(x, w).sum(), function(2 * x, w).sum()
    first.backward(retain_graph=True)
    first.backward()
    second.backward()
    with pytest.raises(RuntimeError, match="second time"):
        first.backward()
    return x.grad, w.grad


def parts_without_gradients(compile):
    def function(x, w):
        with torch.no_grad():
            largest = (x @ w).abs().max()
        return x @ w / largest, largest

    x, w = inputs((3, 4), (4, 5))
    y, largest = compile(function)(x, w)
    y.sum().backward()
    return y, largest.requires_grad, x.grad


def a_part_with_gradients(compile):
    def function(x, w):
        with torch.enable_grad():
            return x @ w

    x, w = inputs((3, 4), (4, 5))
    with torch.no_grad():
        y = compile(function)(x, w)
    y.sum().backward()
    return y, x.grad, w.grad


def gradients_turned_off_by_the_function(compile):
    def function(x, w):
        y = x @ w
        torch.set_grad_enabled(False)
        return y

    (x, w), enabled = inputs((3, 4), (4, 5)), []
    y = compile(function)(x, w)
    enabled.append(torch.is_grad_enabled())
    torch.set_grad_enabled(True)
    y.sum().backward()
    return enabled, x.grad


def arguments_whose_gradients_go_nowhere(compile):
    x, w, unused, detached = inputs((3, 4), (4, 5), (2,), (5,))
    y = compile(lambda x, w, unused, detached: x @ w + detached.detach())(x, w, unused, detached)
    y.sum().backward()
    return y, x.grad, w.grad, unused.grad, detached.grad


def gradients_without_common_memory(compile):
    a, b = inputs((3,), (3,))
    compile(torch.add)(a, b).sum().backward()
    a.grad.mul_(5)
    return a.grad, b.grad


def hooks(compile):
    (x, w), seen = inputs((3, 4), (4, 5)), []
    x.register_hook(lambda gradient: gradient * 3)
    w.register_post_accumulate_grad_hook(lambda parameter: seen.append(parameter.grad.clone()))
    y = compile(tanh_of_product)(x, w)
    y.register_hook(lambda gradient: gradient * 2)
    y.sum().backward()
    return x.grad, w.grad, seen


def saved_tensors_elsewhere(compile):
    x, w = inputs((3, 4), (4, 5))
    with save_on_cpu():
        y = compile(tanh_of_product)(x, w)
    y.sum().backward()
    return y, x.grad, w.grad


def checkpoints(compile):
    x, w = inputs((3, 4), (4, 5))
    function = compile(tanh_of_product)
    sum(checkpoint(function, x, w, use_reentrant=reentrant).sum() for reentrant in (False, True)).backward()
    return x.grad, w.grad


def another_default_dtype(compile):
    x, w = inputs((3, 4), (4, 5))
    function = compile(tanh_of_product)
    function(x, w)
    torch.set_default_dtype(torch.float64)
    try:
        y = function(x, w)
        y.sum().backward()
    finally:
        torch.set_default_dtype(torch.float32)
    return y, x.grad, w.grad


def a_compiled_training_step(compile):
    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        optimizer.step()
        return loss

    function = compile(step)
    return [function(torch.ones(2, 4)).detach().clone() for _ in range(3)], list(model.parameters())


CASES = [
    simple, outputs_that_are_no_floats, outputs_that_the_loss_does_not_use, an_input_returned, an_output_twice_and_its_view, outputs_changed_in_place,
    an_input_changed_in_place, one_tensor_for_two_arguments, views_as_arguments, no_dimensions_and_no_elements, signs_that_are_not_in_memory,
    a_graph_that_is_kept, parts_without_gradients, a_part_with_gradients, gradients_turned_off_by_the_function, arguments_whose_gradients_go_nowhere,
    gradients_without_common_memory, hooks, saved_tensors_elsewhere, checkpoints, another_default_dtype, a_compiled_training_step,
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_as_eager(case):
    torch._dynamo.reset()
    expected = case(lambda function: function)
    found = case(lambda function: torch.compile(function, backend=fp8.torch.backend("none")))
    torch.testing.assert_close(flat(found), flat(expected), rtol=1e-5, atol=1e-6)


def flat(values):
    """Nested results as one list of tensors, numbers and None as text, which are compared like this."""
    if isinstance(values, (tuple, list)):
        return [leaf for value in values for leaf in flat(value)]
    return [values if isinstance(values, torch.Tensor) else torch.tensor([*repr(values).encode()])]


def compiled():
    torch._dynamo.reset()
    return torch.compile(lambda x, w: torch.tanh(x @ w).sum(), backend=fp8.torch.backend("none"))


def test_calls_do_without_pytorchs_function_where_it_has_nothing_to_do():
    x, w = inputs((3, 4), (4, 5))
    assert type(compiled()(x, w).grad_fn).__name__ == "_DirectBackward"
    function = torch.compile(lambda x, w: (x.t(), x @ w), backend=fp8.torch.backend("none"))
    assert type(function(x, w)[1].grad_fn).__name__ == "CompiledFunctionBackward"


@pytest.mark.parametrize("of", ["all", "argument", "leaf before"])
def test_second_derivatives_are_refused(of):
    x, w, before = inputs((3, 4), (4, 5), (4, 4))
    loss = compiled()(x @ before, w)
    (gradient,) = torch.autograd.grad(loss, x, create_graph=True)
    penalized = loss + gradient.square().sum()
    with pytest.raises(RuntimeError, match="first derivatives only"):
        # Without the penalty's part these would be other gradients than eager PyTorch's.
        penalized.backward() if of == "all" else torch.autograd.grad(penalized, w if of == "argument" else before)


def test_create_graph_alone_is_no_error():
    x, w = inputs((3, 4), (4, 5))
    found = torch.autograd.grad(compiled()(x, w), (x, w), create_graph=True)
    torch.testing.assert_close(found, torch.autograd.grad(torch.tanh(x @ w).sum(), (x, w)))
    assert all(gradient.requires_grad for gradient in found)


def test_mapped_gradients_are_refused():
    x, w = inputs((3, 4), (4, 5))
    y = torch.compile(tanh_of_product, backend=fp8.torch.backend("none"))(x, w)
    with pytest.raises(RuntimeError, match="data pointer"):
        torch.autograd.grad(y, x, torch.eye(15).reshape(15, 3, 5), is_grads_batched=True)
