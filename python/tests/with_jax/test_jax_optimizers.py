# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Optimizers of optax and steps around them as users write them: muon, accumulation, loss scaling by jmp, steps in a loop, layers in a scan."""

import pytest

jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")
import fp8  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402
from jax_training import batches, check  # noqa: E402

cross_entropy = optax.softmax_cross_entropy_with_integer_labels


def network(**options):
    linen = pytest.importorskip("flax.linen")

    class Net(linen.Module):
        dropout: float = 0.0

        @linen.compact
        def __call__(self, x):
            x = linen.Dense(32)(x)
            if self.dropout:
                x = linen.Dropout(self.dropout, deterministic=False)(linen.BatchNorm(use_running_average=False)(x))
            return linen.Dense(8)(linen.gelu(x))

    return Net(**options)


def train_with(tx):
    def train(jit):
        net = network()
        params = net.init(jax.random.key(0), jnp.ones((1, 16)))["params"]

        def step(params, opt, x, labels):
            value, gradients = jax.value_and_grad(lambda p: cross_entropy(net.apply({"params": p}, x), labels).mean())(params)
            updates, opt = optax.with_extra_args_support(tx).update(gradients, opt, params, value=value)
            return optax.apply_updates(params, updates), opt, value

        # Copied: the state of some is the parameters themselves, and no buffer can be donated twice.
        step, opt = jit(step, donate_argnums=(0, 1)), jax.tree.map(jnp.array, tx.init(params))
        for x, labels in batches():
            params, opt, value = step(params, opt, x, labels)
            yield value

    return train


OPTIMIZERS = {
    "accumulation": lambda: optax.MultiSteps(optax.adamw(1e-2), 2),
    "schedule_free": lambda: optax.contrib.schedule_free_sgd(0.1),
    "multi_transform": lambda: optax.multi_transform({"adam": optax.adamw(1e-2), "sgd": optax.sgd(0.1, momentum=0.9)}, {"Dense_0": "adam", "Dense_1": "sgd"}),
    "dog": lambda: optax.contrib.dog(1.0),
    "apply_if_finite": lambda: optax.apply_if_finite(optax.rmsprop(1e-2), 2),
    "chain": lambda: optax.chain(
        optax.clip_by_global_norm(0.5), optax.adaptive_grad_clip(0.1), optax.scale_by_lion(), optax.add_decayed_weights(0.01),
        optax.scale_by_schedule(optax.warmup_cosine_decay_schedule(0, 0.01, 2, 5)), optax.scale(-1),
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optax(name):
    check(train_with(OPTIMIZERS[name]()), products=5, fp8_products=5)


def test_reduce_on_plateau():
    """Branches that yield donated arguments, and one that yields a constant."""
    check(train_with(optax.chain(optax.adam(1e-2), optax.contrib.reduce_on_plateau(patience=1))), products=5, fp8_products=5)


def test_muon():
    """The products of its orthogonalization are none of a layer, and stay as they are."""
    check(train_with(optax.contrib.muon(1e-2)), products=35, fp8_products=5)


@pytest.mark.parametrize("sites", ["linear", "all"])
def test_products_of_an_update_that_is_named_stay_as_they_are(sites):
    """As those of fp8.torch.train_step's optimizers: the new weights are those of the gradient's in f32."""
    rng = np.random.default_rng(0)
    w, x, y = (jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in ((16, 8), (32, 16), (32, 8)))

    def whitened(w, x, y):
        gradient = jax.grad(lambda w: ((x @ w - y) ** 2).mean())(w)
        with jax.named_scope("update(adam)"):
            return w - 0.1 * (w @ w.T + jnp.eye(16)) @ gradient, gradient

    step = fp8.jax.jit(whitened, recipe="current", sites=sites)
    new, gradient = step(w, x, y)
    report = step.report()
    assert [(s.role, s.in_fp8) for s in report.sites if not s.site.startswith("update(adam)")] == [("fprop", True), ("wgrad", True)]
    assert {(s.site.partition("#")[0], s.role, s.reason) for s in report.kept} == {("update(adam)", "other", "part of the optimizer's update")}
    assert len(report.kept) == 2
    np.testing.assert_allclose(new, w - 0.1 * (w @ w.T + jnp.eye(16)) @ gradient, rtol=1e-5, atol=1e-6)
    assert np.abs(gradient - whitened(w, x, y)[1]).max() > 0


def test_linen_with_batch_norm_and_dropout():
    def train(jit):
        net = network(dropout=0.1)
        variables = net.init({"params": jax.random.key(0), "dropout": jax.random.key(1)}, jnp.ones((2, 16)))
        tx = optax.adam(1e-2)

        def step(variables, opt, x, labels, key):
            def loss(params):
                rest = {"batch_stats": variables["batch_stats"]}
                logits, changed = net.apply({"params": params, **rest}, x, mutable=["batch_stats"], rngs={"dropout": key})
                return cross_entropy(logits, labels).mean(), changed

            (value, changed), gradients = jax.value_and_grad(loss, has_aux=True)(variables["params"])
            updates, opt = tx.update(gradients, opt)
            return {"params": optax.apply_updates(variables["params"], updates), **changed}, opt, value

        step, opt = jit(step, donate_argnums=(0, 1)), tx.init(variables["params"])
        for i, (x, labels) in enumerate(batches()):
            variables, opt, value = step(variables, opt, x, labels, jax.random.fold_in(jax.random.key(7), i))
            yield value

    check(train, products=5, fp8_products=5)


def test_haiku_in_bf16_with_loss_scaling_by_jmp():
    hk, jmp = pytest.importorskip("haiku"), pytest.importorskip("jmp")
    policy = jmp.get_policy("params=float32,compute=bfloat16,output=float32")

    def train(jit):
        net = hk.without_apply_rng(hk.transform(lambda x: hk.Linear(8)(jax.nn.relu(hk.Linear(32)(x)))))
        params, tx = net.init(jax.random.key(0), jnp.ones((1, 16))), optax.adam(1e-2)

        def step(params, opt, scale, x, labels):
            def loss(params):
                half, inputs = policy.cast_to_compute((params, x))
                return scale.scale(cross_entropy(policy.cast_to_output(net.apply(half, inputs)), labels).mean())

            value, gradients = jax.value_and_grad(loss)(params)
            gradients = scale.unscale(gradients)
            finite = jmp.all_finite(gradients)
            updates, new = tx.update(gradients, opt)
            params, opt = jmp.select_tree(finite, (optax.apply_updates(params, updates), new), (params, opt))
            return params, opt, scale.adjust(finite), scale.unscale(value)

        step, opt, scale = jit(step, donate_argnums=(0, 1)), tx.init(params), jmp.DynamicLossScale(jnp.float32(2**10), period=2)
        for x, labels in batches():
            params, opt, scale, value = step(params, opt, scale, x, labels)
            yield value

    # Activations are rounded to 8 bits, of which XLA's sums in another order change the last.
    check(train, products=5, fp8_products=5, tolerance=2e-3)


def test_steps_in_a_while_loop():
    def train(jit):
        net, tx = network(), optax.sgd(0.1, momentum=0.9)
        params = net.init(jax.random.key(0), jnp.ones((1, 16)))["params"]

        def steps(params, opt, x, labels):
            def body(carry):
                params, opt, n, _ = carry
                value, gradients = jax.value_and_grad(lambda p: cross_entropy(net.apply({"params": p}, x), labels).mean())(params)
                updates, opt = tx.update(gradients, opt)
                return optax.apply_updates(params, updates), opt, n + 1, value

            return lax.while_loop(lambda c: (c[2] < 3) & (c[3] > 0.01), body, (params, opt, 0, jnp.float32(9)))

        steps, opt = jit(steps), tx.init(params)
        for x, labels in batches():
            params, opt, _, value = steps(params, opt, x, labels)
            yield value

    check(train, products=5, fp8_products=2)


@pytest.mark.slow
def test_equinox_with_layers_in_a_scan():
    eqx = pytest.importorskip("equinox")

    class Layer(eqx.Module):
        linear: eqx.nn.Linear
        norm: eqx.nn.LayerNorm

        def __init__(self, key):
            self.linear, self.norm = eqx.nn.Linear(16, 16, key=key), eqx.nn.LayerNorm(16)

        def __call__(self, x):
            return x + jax.nn.silu(self.linear(self.norm(x)))

    def train(jit):
        model = eqx.filter_vmap(Layer)(jax.random.split(jax.random.key(0), 3)), eqx.nn.Linear(16, 8, key=jax.random.key(1))
        tx = optax.contrib.schedule_free_adamw(1e-2, warmup_steps=2)

        def step(model, opt, x, labels):
            def loss(model):
                arrays, static = eqx.partition(model[0], eqx.is_array)
                layers = lambda x: lax.scan(jax.checkpoint(lambda h, layer: (eqx.combine(layer, static)(h), None)), x, arrays)[0]
                return cross_entropy(jax.vmap(lambda x: model[1](layers(x)))(x), labels).mean()

            value, gradients = eqx.filter_value_and_grad(loss)(model)
            updates, opt = tx.update(gradients, opt, eqx.filter(model, eqx.is_array))
            return eqx.apply_updates(model, updates), opt, value

        step, opt = jit(step), tx.init(eqx.filter(model, eqx.is_array))
        for x, labels in batches():
            model, opt, value = step(model, opt, x, labels)
            yield value

    check(train, products=7, fp8_products=7, reference=eqx.filter_jit)
