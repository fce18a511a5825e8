# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running StableHLO text: compiled by this package, and by StableHLO's own interpreter, which is its specification's reference."""

import fp8
import ml_dtypes
import numpy as np
from jax._src.interpreters import mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo


def run(text, *arrays):
    """The results of @main, compiled without FP8."""
    return [np.asarray(r) for r in fp8.compile(text, recipe="none").entries["main"](*arrays)]


def interpret(text, *arrays):
    """The same by the interpreter."""
    with mlir.make_ir_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        results = stablehlo.eval_module(module, [_attribute(np.asarray(a)) for a in arrays])
        return [np.array(r) for r in results]


def _attribute(array):
    type = ir.RankedTensorType.get(array.shape, mlir.dtype_to_ir_type(array.dtype))
    if array.dtype == ml_dtypes.bfloat16:  # The bindings take it by its bits.
        array = array.view(np.uint16)
    return ir.DenseElementsAttr.get(np.ascontiguousarray(array), type=type.element_type, shape=array.shape)


def assert_interpreted(text, *arrays):
    """Exactly the interpreter's results."""
    got, wanted = run(text, *arrays), interpret(text, *arrays)
    assert len(got) == len(wanted)
    for ours, right in zip(got, wanted):
        np.testing.assert_array_equal(ours, right)
