# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions whose windows do not overlap, 1 × 1 and patches, are matrix products: sites, with both gradients."""

import json

import pytest

jax = pytest.importorskip("jax")
import fp8  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402

LAST, FIRST = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")

# Shapes of x and w, strides, layout.
PRODUCTS = {
    "1x1": ((2, 4, 5, 3), (1, 1, 3, 8), (1, 1), LAST),
    "1x1 at strides": ((2, 5, 4, 3), (1, 1, 3, 8), (2, 3), LAST),
    "patches": ((2, 4, 6, 3), (2, 3, 3, 8), (2, 3), LAST),
    "patches that leave elements": ((2, 5, 7, 3), (2, 2, 3, 8), (2, 2), LAST),
    "the whole image": ((2, 4, 5, 3), (4, 5, 3, 8), (1, 1), LAST),
    "channels first": ((2, 3, 4, 6), (8, 3, 2, 3), (2, 3), FIRST),
    "channels first, 1x1": ((2, 3, 4, 4), (8, 3, 1, 1), (1, 1), FIRST),
    "one dimension": ((2, 8, 3), (4, 3, 8), (4,), ("NWC", "WIO", "NWC")),
    "one image of one channel": ((1, 4, 4, 1), (2, 2, 1, 1), (2, 2), LAST),
}


def convolution(strides, layout):
    return lambda x, w: lax.conv_general_dilated(x, w, strides, "VALID", dimension_numbers=layout)


def others(report):
    """The operations that resemble a product."""
    return json.loads(report.to_json())["others"]


def exact(rng, shape):
    """Numbers that no cast changes, of either format with its scale for 7, and whose sums are exact."""
    values = rng.choice([0, 1, 2, 4, 7], shape) * rng.choice([-1, 1], shape)
    values.flat[0] = 7
    return jnp.asarray(values, jnp.float32)


@pytest.mark.parametrize("form", PRODUCTS)
@pytest.mark.parametrize("recipe", ["none", "current"])
def test_a_convolution_that_is_a_product(form, recipe):
    x_shape, w_shape, strides, layout = PRODUCTS[form]
    rng, apply = np.random.default_rng(len(form)), convolution(strides, layout)
    x, w = exact(rng, x_shape), exact(rng, w_shape)
    dy = exact(rng, jax.eval_shape(apply, x, w).shape)

    def step(w, x, dy):
        y, pull = jax.vjp(apply, x, w)
        return y, pull(dy)

    ours = fp8.jax.jit(step, recipe=recipe)
    jax.tree.map(np.testing.assert_array_equal, ours(w, x, dy), jax.jit(step)(w, x, dy))
    report = ours.report()
    assert not others(report)
    decision = "fp8" if recipe == "current" else "high"
    assert {(s.role, s.decision) for s in report.sites} == {(role, decision) for role in ("fprop", "dgrad", "wgrad")}
    assert len({s.site for s in report.sites}) == 1 and len(report.sites) == 3


def test_windows_that_overlap_stay_a_convolution():
    x, w = jnp.ones((1, 5, 5, 2)), jnp.ones((3, 3, 2, 4))
    step = fp8.jax.jit(convolution((2, 2), LAST), recipe="current", unused_options="report")
    np.testing.assert_array_equal(step(x, w), convolution((2, 2), LAST)(x, w))
    report = step.report()
    assert not report.sites and [one["reason"] for one in others(report)] == ["convolution"]
