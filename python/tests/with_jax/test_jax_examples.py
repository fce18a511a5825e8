# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models as the examples of Flax, Equinox and Haiku have them, small: convolutions, recurrence, attention, a VAE."""

import functools

import pytest

jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")
import fp8  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax_training import STEPS, check  # noqa: E402

CLASSES, VOCABULARY = 4, 32
cross_entropy = optax.softmax_cross_entropy_with_integer_labels


def images():
    """Patterns of 8 x 8 pixels with noise, and which pattern it is."""
    rng = np.random.default_rng(0)
    patterns = rng.normal(size=(CLASSES, 8, 8, 1))
    for _ in range(STEPS):
        labels = rng.integers(0, CLASSES, 16)
        x = patterns[labels] + 0.5 * rng.normal(size=(16, 8, 8, 1))
        yield jnp.asarray(x, jnp.float32), jnp.asarray(labels, jnp.int32)


def sentences(length=12):
    """Tokens that count up, and the token that follows each."""
    rng = np.random.default_rng(0)
    for _ in range(STEPS):
        tokens = (rng.integers(0, VOCABULARY, (8, 1)) + np.arange(length + 1)) % VOCABULARY
        yield jnp.asarray(tokens[:, :-1], jnp.int32), jnp.asarray(tokens[:, 1:], jnp.int32)


def train_linen(model, data, jit, rngs=(), **call):
    """A TrainState of Flax, as its examples write the step."""
    from flax.training.train_state import TrainState

    (first, _), data = next(iter(data())), data()
    params = model.init({"params": jax.random.key(0), **{name: jax.random.key(1) for name in rngs}}, first, **call)["params"]
    state = TrainState.create(apply_fn=model.apply, params=params, tx=optax.adamw(3e-3))

    def train_step(state, x, labels, key):
        def loss(params):
            keys = dict(zip(rngs, jax.random.split(key, max(1, len(rngs)))))
            return cross_entropy(state.apply_fn({"params": params}, x, rngs=keys, **call), labels).mean()

        value, gradients = jax.value_and_grad(loss)(state.params)
        return state.apply_gradients(grads=gradients), value

    step = jit(train_step, donate_argnums=0)
    for i, (x, labels) in enumerate(data):
        state, value = step(state, x, labels, jax.random.fold_in(jax.random.key(2), i))
        yield value


def test_flax_mnist():
    """flax/examples/mnist: two convolutions with pooling, two dense layers, metrics; objects change in place."""
    nnx = pytest.importorskip("flax.nnx")

    class CNN(nnx.Module):
        def __init__(self, *, rngs):
            self.conv1 = nnx.Conv(1, 8, kernel_size=(3, 3), rngs=rngs)
            self.conv2 = nnx.Conv(8, 16, kernel_size=(3, 3), rngs=rngs)
            self.avg_pool = functools.partial(nnx.avg_pool, window_shape=(2, 2), strides=(2, 2))
            self.linear1 = nnx.Linear(64, 32, rngs=rngs)
            self.linear2 = nnx.Linear(32, CLASSES, rngs=rngs)

        def __call__(self, x):
            x = self.avg_pool(nnx.relu(self.conv1(x)))
            x = self.avg_pool(nnx.relu(self.conv2(x)))
            return self.linear2(nnx.relu(self.linear1(x.reshape(x.shape[0], -1))))

    def loss_fn(model, x, labels):
        logits = model(x)
        return cross_entropy(logits, labels).mean(), logits

    def train_step(model, optimizer, metrics, x, labels):
        (value, logits), gradients = nnx.value_and_grad(loss_fn, has_aux=True)(model, x, labels)
        metrics.update(loss=value, logits=logits, labels=labels)
        optimizer.update(model, gradients)

    def run(jit, **options):
        model = CNN(rngs=nnx.Rngs(0))
        optimizer = nnx.Optimizer(model, optax.adamw(5e-3, 0.9), wrt=nnx.Param)
        metrics = nnx.MultiMetric(accuracy=nnx.metrics.Accuracy(), loss=nnx.metrics.Average("loss"))
        step, losses = jit(train_step, **options), []
        for x, labels in images():
            step(model, optimizer, metrics, x, labels)
            losses.append(float(metrics.compute()["loss"]))
        return losses, step

    wanted, _ = run(nnx.jit)
    np.testing.assert_allclose(run(fp8.jax.nnx_jit, recipe="none")[0], wanted, rtol=1e-5)
    for recipe in ("current", "delayed"):
        losses, step = run(fp8.jax.nnx_jit, recipe=recipe, donate=True)
        np.testing.assert_allclose(losses, wanted, rtol=0.05)
        sites = {s.site for s in step.report().sites if s.decision == "fp8"}
        assert {"model/linear1", "model/linear2"} <= sites


@pytest.mark.slow
def test_linen_lstm():
    """flax/examples/seq2seq: an LSTM over the sequence, as one scan."""
    nn = pytest.importorskip("flax.linen")

    class Model(nn.Module):
        @nn.compact
        def __call__(self, tokens):
            x = nn.Embed(VOCABULARY, 16)(tokens)
            return nn.Dense(VOCABULARY)(nn.RNN(nn.OptimizedLSTMCell(16))(x))

    check(lambda jit: train_linen(Model(), sentences, jit), products=9, fp8_products=9)


@pytest.mark.slow
def test_linen_transformer():
    """flax/examples/lm1b: layers by nn.scan and nn.remat, attention with a causal mask, dropout."""
    nn = pytest.importorskip("flax.linen")

    class Block(nn.Module):
        @nn.compact
        def __call__(self, x, mask):
            y = nn.MultiHeadDotProductAttention(num_heads=2, dropout_rate=0.1, deterministic=False)(nn.LayerNorm()(x), mask=mask)
            x = x + nn.Dropout(0.1, deterministic=False)(y)
            return x + nn.Dense(32)(nn.gelu(nn.Dense(64)(nn.LayerNorm()(x)))), None

    class Model(nn.Module):
        @nn.compact
        def __call__(self, tokens):
            x = nn.Embed(VOCABULARY, 32)(tokens) + self.param("position", nn.initializers.normal(0.02), (tokens.shape[1], 32))
            layers = nn.scan(nn.remat(Block), variable_axes={"params": 0}, split_rngs={"params": True, "dropout": True}, in_axes=nn.broadcast, length=2)
            x, _ = layers()(x, nn.make_causal_mask(tokens))
            return nn.Dense(VOCABULARY)(nn.LayerNorm()(x))

    check(lambda jit: train_linen(Model(), sentences, jit, rngs=("dropout",)), products=34, fp8_products=26)


@pytest.mark.slow
def test_linen_vae():
    """flax/examples/vae: a sample of the latent variables, and a loss of two parts."""
    nn = pytest.importorskip("flax.linen")

    class VAE(nn.Module):
        @nn.compact
        def __call__(self, x, key):
            h = nn.relu(nn.Dense(32, name="fc1")(x))
            mean, logvar = nn.Dense(8, name="fc2_mean")(h), nn.Dense(8, name="fc2_logvar")(h)
            z = mean + jax.random.normal(key, logvar.shape) * jnp.exp(0.5 * logvar)
            return nn.Dense(64, name="fc4")(nn.relu(nn.Dense(32, name="fc3")(z))), mean, logvar

    def train(jit):
        model = VAE()
        params = model.init(jax.random.key(0), jnp.ones((1, 64)), jax.random.key(1))["params"]
        tx = optax.adam(1e-3)

        def train_step(params, opt, x, key):
            def loss(params):
                logits, mean, logvar = model.apply({"params": params}, x, key)
                bce = optax.sigmoid_binary_cross_entropy(logits, x).sum(-1).mean()
                return bce - 0.5 * jnp.sum(1 + logvar - mean**2 - jnp.exp(logvar), -1).mean()

            value, gradients = jax.value_and_grad(loss)(params)
            updates, opt = tx.update(gradients, opt, params)
            return optax.apply_updates(params, updates), opt, value

        step, opt = jit(train_step, donate_argnums=(0, 1)), tx.init(params)
        for i, (x, _) in enumerate(images()):
            params, opt, value = step(params, opt, jax.nn.sigmoid(x.reshape(16, 64)), jax.random.key(i))
            yield value

    # Five layers: forward and both gradients of each, but for that of the input.
    check(train, products=14, fp8_products=14)


def test_equinox_cnn_with_state():
    """Equinox's examples: a convolutional network under vmap, batch norm with a State."""
    eqx = pytest.importorskip("equinox")

    class CNN(eqx.Module):
        conv: eqx.nn.Conv2d
        norm: eqx.nn.BatchNorm
        dense: eqx.nn.Linear

        def __init__(self, key):
            first, second = jax.random.split(key)
            self.conv = eqx.nn.Conv2d(1, 8, 3, key=first)
            self.norm = eqx.nn.BatchNorm(8, axis_name="batch", mode="batch")
            self.dense = eqx.nn.Linear(72, CLASSES, key=second)

        def __call__(self, x, state):
            x, state = self.norm(self.conv(x), state)
            return self.dense(eqx.nn.MaxPool2d(2, 2)(jax.nn.relu(x)).ravel()), state

    def train(jit):
        model, state = eqx.nn.make_with_state(CNN)(jax.random.key(0))
        tx = optax.adam(3e-3)
        opt = tx.init(eqx.filter(model, eqx.is_inexact_array))

        def loss(model, state, x, labels):
            apply = jax.vmap(model, axis_name="batch", in_axes=(0, None), out_axes=(0, None))
            logits, state = apply(x, state)
            return cross_entropy(logits, labels).mean(), state

        def train_step(model, state, opt, x, labels):
            (value, state), gradients = eqx.filter_value_and_grad(loss, has_aux=True)(model, state, x, labels)
            updates, opt = tx.update(gradients, opt)
            return eqx.apply_updates(model, updates), state, opt, value

        step = jit(train_step)
        for x, labels in images():
            model, state, opt, value = step(model, state, opt, x.transpose(0, 3, 1, 2), labels)
            yield value

    check(train, products=3, fp8_products=3, reference=eqx.filter_jit)


def test_haiku_lstm():
    """Haiku's examples/rnn: embeddings, an LSTM by dynamic_unroll, a dense layer at each step."""
    hk = pytest.importorskip("haiku")

    def train(jit):
        def forward(tokens):
            core = hk.LSTM(16)
            x = hk.Embed(VOCABULARY, 16)(tokens)
            y, _ = hk.dynamic_unroll(core, x.swapaxes(0, 1), core.initial_state(x.shape[0]))
            return hk.BatchApply(hk.Linear(VOCABULARY))(y).swapaxes(0, 1)

        net = hk.without_apply_rng(hk.transform(forward))
        params = net.init(jax.random.key(0), next(sentences())[0])
        tx = optax.adam(1e-2)

        def update(params, opt, tokens, labels):
            value, gradients = jax.value_and_grad(lambda p: cross_entropy(net.apply(p, tokens), labels).mean())(params)
            updates, opt = tx.update(gradients, opt)
            return optax.apply_updates(params, updates), opt, value

        step, opt = jit(update, donate_argnums=(0, 1)), tx.init(params)
        for tokens, labels in sentences():
            params, opt, value = step(params, opt, tokens, labels)
            yield value

    check(train, products=6, fp8_products=6)
