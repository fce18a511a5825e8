# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training by fp8.jax beside training by jax.jit: losses and the report's counts."""

import fp8
import jax
import jax.numpy as jnp
import numpy as np

STEPS = 5


def batches(rows=32, features=16, classes=8):
    rng = np.random.default_rng(0)
    teacher = rng.normal(size=(features, classes))
    for _ in range(STEPS):
        x = rng.normal(size=(rows, features))
        yield jnp.asarray(x, jnp.float32), jnp.asarray((x @ teacher).argmax(-1), jnp.int32)


def losses_of(jit, train):
    """The losses of `train(jit)`, and the step that it made."""
    made = []

    def remember(fun, **options):
        made.append(jit(fun, **options))
        return made[-1]

    return np.array([float(loss) for loss in train(remember)]), made[0]


def check(train, products, fp8_products, bound=0.05, tolerance=1e-5, reference=jax.jit):
    """Without FP8 the losses are jax.jit's, but for sums in another order; in FP8 they are close; the report counts."""
    wanted, _ = losses_of(reference, train)
    assert wanted[-1] != wanted[0]
    got, _ = losses_of(lambda f, **o: fp8.jax.jit(f, recipe="none", **o), train)
    np.testing.assert_allclose(got, wanted, rtol=tolerance)
    for recipe in ("current", "delayed"):
        got, step = losses_of(lambda f, **o: fp8.jax.jit(f, recipe=recipe, **o), train)  # noqa: B023
        # 3 bits of mantissa for each operand; a loss is a mean over the batch.
        np.testing.assert_allclose(got, wanted, rtol=bound)
        assert not np.array_equal(got, wanted)
        decisions = [site.decision for site in step.report().sites]
        assert (len(decisions), decisions.count("fp8")) == (products, fp8_products)
