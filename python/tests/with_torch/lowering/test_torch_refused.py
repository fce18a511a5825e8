# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that fp8.torch refuses: the error names the operation and the user's line; options at the call
that has them."""

import fp8.torch
import pytest
import torch
from torch import nn
from torch_compare import normal

NAMES = {
    "aten.view.dtype": lambda x: x.view(torch.int16),
    "aten.linalg_matrix_exp": torch.matrix_exp,
    "aten._linalg_svd": lambda x: torch.linalg.svdvals(x.detach()),
    "linalg.inv": torch.linalg.inv,
    "linalg.cholesky": torch.linalg.cholesky,
    "torch.linalg.solve": lambda x: torch.linalg.solve(x, x),
}


@pytest.mark.parametrize("name", NAMES)
def test_an_operation_without_a_form_is_named_with_its_line(name):
    def function(x):
        return (NAMES[name](x * 2) + 1).sum()  # the line

    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as raised:
        torch.compile(function, backend=fp8.torch.backend("none"))(torch.eye(4))
    error = raised.value.inner_exception
    assert isinstance(error, fp8.UnsupportedError), error
    assert error.message.startswith(f"'{name}' has no form in linalg")
    assert error.location.file == __file__


BY_VALUES = {
    "the size of the result of 'aten.nonzero' depends on the values of a tensor": torch.nonzero,
    "the size of the result of 'aten._unique2' depends on the values of a tensor": torch.unique,
}


@pytest.mark.parametrize("words", BY_VALUES)
def test_sizes_that_depend_on_values(words):
    def function(x):
        return BY_VALUES[words](x * 2) + 1

    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
        with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as raised:
            torch.compile(function, backend=fp8.torch.backend("none"), fullgraph=True)(torch.eye(4))
    error = raised.value.inner_exception
    assert isinstance(error, fp8.UnsupportedError), error
    assert error.message.startswith(words) and "torch.compiler.disable" in error.message
    assert error.location.file == __file__


def test_numbers_that_are_read_from_a_tensor():
    def function(x):
        return x + x.sum().item()

    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        compiled = torch.compile(function, backend=fp8.torch.backend("none"), fullgraph=True)
        for x in (torch.eye(4), torch.full((4, 4), 0.25)):
            torch.testing.assert_close(compiled(x), function(x), rtol=0, atol=0)


def test_a_type_that_linalg_has_not():
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="'hash_tensor' is a tensor of torch.uint64, which has no form in linalg"):
        torch.compile(torch.hash_tensor, backend=fp8.torch.backend("none"), fullgraph=True)(torch.ones(3))


def test_products_of_users_own_fp8():
    def product(x, y, scale):
        eight = torch.float8_e4m3fn
        x, y = x.to(eight), y.to(eight).t()
        rows = scale.expand(16, 1).contiguous(), scale.expand(1, 16).contiguous()
        return torch._scaled_mm(x, y, scale, scale, out_dtype=torch.bfloat16), torch._scaled_mm(x, y, *rows, out_dtype=torch.bfloat16)

    torch._dynamo.reset()
    x, y, scale = normal(16, 32), normal(16, 32, seed=1), torch.tensor(0.5)
    found = torch.compile(product, backend=fp8.torch.backend("none"), fullgraph=True)(x, y, scale)
    # One unit in the last place of bf16.
    torch.testing.assert_close(found, product(x, y, scale), rtol=2**-7, atol=2**-7)


def exported(**options):
    return fp8.torch.compile_exported(torch.export.export(nn.Linear(4, 4).eval(), (torch.ones(2, 4),)), **options)


def step(**options):
    model = nn.Linear(4, 4)
    return fp8.torch.train_step(model, nn.functional.mse_loss, torch.optim.SGD(model.parameters(), 0.1), **options)


@pytest.mark.parametrize("make", [fp8.torch.backend, step, exported])
def test_unknown_options_are_errors_of_the_call(make):
    with pytest.raises(ValueError, match="there is no option amax_histroy_len. Did you mean 'amax_history_len=4'?"):
        make(recipe="delayed", amax_histroy_len=4)
    with pytest.raises(ValueError, match="recipe=fast is none of delayed, current"):
        make(recipe="fast")
    with pytest.raises(TypeError, match="keep=3: a regular expression is text"):
        make(keep=3)


def test_a_state_of_another_program_names_the_users_line():
    torch._dynamo.reset()
    first, second = fp8.torch.backend("delayed"), fp8.torch.backend("delayed")
    torch.compile(nn.Linear(4, 4), backend=first)(torch.ones(2, 4)).sum().backward()
    second.load_state_dict(first.state_dict())
    torch._dynamo.reset()

    def two(x, v, w):
        return (x @ v).relu() @ w  # the line

    compiled = torch.compile(two, backend=second)
    with pytest.raises(fp8.StateError, match=r"test_torch_refused.py:\d+: the saved FP8 state"):
        compiled(torch.ones(2, 4), nn.Parameter(torch.ones(4, 4)), nn.Parameter(torch.ones(4, 4)))
