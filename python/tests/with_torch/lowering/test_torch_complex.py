# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Complex tensors through torch.compile: rotary embeddings as Llama's code has them, complex arguments, results and constants."""

import fp8.torch
import pytest
import torch
from torch_compare import check, normal

TURNS = torch.polar(torch.ones(3, 4), normal(3, 4))


def rotate(x, turns):
    """Pairs of elements, turned by an angle."""
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns).flatten(-2).type_as(x)


def test_rotary_embeddings():
    def angles(x, position, given):
        made = torch.polar(torch.ones(3, 4), torch.outer(position.detach(), torch.arange(4) / 4))
        return rotate(x, made), rotate(x, given), rotate(x.bfloat16(), TURNS)

    check(angles, normal(2, 3, 8), normal(3), TURNS)


def test_complex_arguments_and_results():
    def parts(x, z):
        made = torch.view_as_complex(x.reshape(2, 3, 4, 2))
        return (made * z.conj()).abs(), torch.exp(1j * x).real, torch.complex(x, x + 1).imag * 2, (made / z).detach(), z.conj()

    torch._dynamo.reset()
    x = normal(2, 3, 8)
    found = torch.compile(parts, backend=fp8.torch.backend("none"), fullgraph=True)(x, TURNS.conj())
    # Quotients by other formulas.
    torch.testing.assert_close(found, parts(x, TURNS.conj()), rtol=1e-5, atol=1e-6)


def test_complex_operations_without_a_form_are_named():
    def determinant(x, y):
        return torch.linalg.det(torch.complex(x, y)).real  # the line

    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed) as raised:
        torch.compile(determinant, backend=fp8.torch.backend("none"))(normal(3, 3), torch.eye(3))
    error = raised.value.inner_exception
    assert isinstance(error, fp8.UnsupportedError) and "of complex numbers has no form in linalg" in error.message
    assert error.location.file == __file__ and "# the line" in open(__file__).readlines()[error.location.line - 1]
