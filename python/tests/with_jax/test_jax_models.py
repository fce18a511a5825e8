# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training steps as users of Flax, Equinox, Haiku and Optax write them; fp8.jax.jit stands where jax.jit stood."""

import pytest

jax = pytest.importorskip("jax")
import fp8  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402
from jax_training import STEPS, batches, check  # noqa: E402


@pytest.fixture(params=["cpu", *(pytest.param(chip, marks=pytest.mark.slow) for chip in ("sm_90a", "sm_89"))])
def device(request, monkeypatch):
    """Where programs run that do not say it, as FP8_DEVICE and FP8_TARGET set it: the CPU, or a chip that the emulator is."""
    monkeypatch.setattr(fp8.config, "device", "cpu" if request.param == "cpu" else "emulator")
    monkeypatch.setattr(fp8.config, "target", request.param)


@pytest.mark.usefixtures("device")
def test_flax_linen_with_a_train_state():
    linen, optax = pytest.importorskip("flax.linen"), pytest.importorskip("optax")
    from flax.training.train_state import TrainState

    class Net(linen.Module):
        @linen.compact
        def __call__(self, x):
            x = linen.LayerNorm()(linen.Dense(32)(x))
            return linen.Dense(8)(linen.gelu(x))

    def train(jit):
        def train_step(state, x, labels):
            def loss(params):
                logits = state.apply_fn({"params": params}, x)
                return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

            value, gradients = jax.value_and_grad(loss)(state.params)
            return state.apply_gradients(grads=gradients), value

        step = jit(train_step, donate_argnums=0)
        net = Net()
        params = net.init(jax.random.key(0), jnp.ones((1, 16)))["params"]
        state = TrainState.create(apply_fn=net.apply, params=params, tx=optax.adamw(3e-3))
        for x, labels in batches():
            state, value = step(state, x, labels)
            yield value

    check(train, products=5, fp8_products=5)


@pytest.mark.usefixtures("device")
def test_flax_nnx_with_batch_norm_and_dropout():
    nnx, optax = pytest.importorskip("flax.nnx"), pytest.importorskip("optax")

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.up = nnx.Linear(16, 32, rngs=rngs)
            self.norm = nnx.BatchNorm(32, rngs=rngs)
            self.drop = nnx.Dropout(0.1, rngs=rngs)
            self.down = nnx.Linear(32, 8, rngs=rngs)

        def __call__(self, x):
            return self.down(nnx.gelu(self.drop(self.norm(self.up(x)))))

    def train(jit):
        model = Net(nnx.Rngs(0))
        optimizer = nnx.Optimizer(model, optax.adam(3e-3), wrt=nnx.Param)
        graph, state = nnx.split((model, optimizer))

        def train_step(state, x, labels):
            model, optimizer = nnx.merge(graph, state)

            def loss(model):
                return optax.softmax_cross_entropy_with_integer_labels(model(x), labels).mean()

            value, gradients = nnx.value_and_grad(loss)(model)
            optimizer.update(model, gradients)
            return nnx.state((model, optimizer)), value

        step = jit(train_step, donate_argnums=0)
        for x, labels in batches():
            state, value = step(state, x, labels)
            yield value

    check(train, products=5, fp8_products=5)


def test_flax_nnx_with_objects_that_change_in_place():
    nnx, optax = pytest.importorskip("flax.nnx"), pytest.importorskip("optax")

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.up = nnx.Linear(16, 32, rngs=rngs)
            self.norm = nnx.BatchNorm(32, rngs=rngs)
            self.drop = nnx.Dropout(0.1, rngs=rngs)
            self.down = nnx.Linear(32, 8, rngs=rngs)

        def __call__(self, x):
            return self.down(nnx.gelu(self.drop(self.norm(self.up(x)))))

    def run(jit, **options):
        def train_step(model, optimizer, metrics, x, labels):
            def loss(model):
                return optax.softmax_cross_entropy_with_integer_labels(model(x), labels).mean()

            value, gradients = nnx.value_and_grad(loss)(model)
            optimizer.update(model, gradients)
            metrics.update(loss=value)
            return value

        model = Net(nnx.Rngs(0))
        optimizer, metrics = nnx.Optimizer(model, optax.adam(3e-3), wrt=nnx.Param), nnx.MultiMetric(loss=nnx.metrics.Average("loss"))
        step = jit(train_step, **options)
        losses = [float(step(model, optimizer, metrics, x, labels)) for x, labels in batches()]
        np.testing.assert_allclose(float(metrics.compute()["loss"]), np.mean(losses), rtol=1e-6)
        # Not the mean, which has the bias before it: its gradient is 0 but for rounding, which Adam magnifies.
        return losses, np.array(model.norm.var[...]), step

    wanted, variance, _ = run(nnx.jit)
    got, ours, _ = run(fp8.jax.nnx_jit, recipe="none")
    np.testing.assert_allclose(got, wanted, rtol=1e-5)
    np.testing.assert_allclose(ours, variance, rtol=1e-5)
    assert run(fp8.jax.nnx_jit, recipe="none", donate=True)[0] == got
    for recipe in ("current", "delayed"):
        got, _, step = run(fp8.jax.nnx_jit, recipe=recipe)
        np.testing.assert_allclose(got, wanted, rtol=0.05)
        assert [s.decision for s in step.report().sites] == ["fp8"] * 5
        assert {s.site for s in step.report().sites} == {"model/up", "model/down"}


@pytest.mark.usefixtures("device")
def test_equinox_with_functions_among_the_leaves():
    eqx, optax = pytest.importorskip("equinox"), pytest.importorskip("optax")

    def train(jit):
        model = eqx.nn.MLP(16, 8, 32, 2, activation=jax.nn.gelu, key=jax.random.key(0))
        tx = optax.lion(1e-3)
        opt = tx.init(eqx.filter(model, eqx.is_array))

        def train_step(model, opt, x, labels):
            def loss(model):
                return optax.softmax_cross_entropy_with_integer_labels(jax.vmap(model)(x), labels).mean()

            value, gradients = eqx.filter_value_and_grad(loss)(model)
            updates, opt = tx.update(gradients, opt, eqx.filter(model, eqx.is_array))
            return eqx.apply_updates(model, updates), opt, value

        step = jit(train_step)
        for x, labels in batches():
            model, opt, value = step(model, opt, x, labels)
            yield value

    check(train, products=8, fp8_products=8, reference=eqx.filter_jit)


def test_numbers_in_modules_of_equinox_are_static():
    """As with eqx.filter_jit: the probability of a Dropout and the momentum of a BatchNorm are no parameters."""
    eqx = pytest.importorskip("equinox")
    import optax

    class Net(eqx.Module):
        first: eqx.nn.Linear
        norm: eqx.nn.BatchNorm
        dropout: eqx.nn.Dropout
        last: eqx.nn.Linear
        slope: float

        def __init__(self, key):
            first, last = jax.random.split(key)
            self.first, self.last = eqx.nn.Linear(16, 32, key=first), eqx.nn.Linear(32, 8, key=last)
            self.norm, self.dropout, self.slope = eqx.nn.BatchNorm(32, "batch", mode="batch"), eqx.nn.Dropout(0.2), 0.1

        def __call__(self, x, state, key):
            x, state = self.norm(self.first(x), state)
            return self.last(self.dropout(jnp.where(x > 0, x, self.slope * x), key=key)), state

    @eqx.filter_value_and_grad(has_aux=True)
    def loss(model, state, x, labels, keys):
        logits, state = jax.vmap(model, axis_name="batch", in_axes=(0, None, 0), out_axes=(0, None))(x, state, keys)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean(), state

    models = []

    def train(jit):
        model, state = eqx.nn.make_with_state(Net)(jax.random.key(0))
        tx = optax.sgd(0.1, momentum=0.9)
        opt = tx.init(eqx.filter(model, eqx.is_inexact_array))

        def train_step(model, state, opt, x, labels, key):
            (value, state), gradients = loss(model, state, x, labels, jax.random.split(key, len(x)))
            updates, opt = tx.update(gradients, opt)
            return eqx.apply_updates(model, updates), state, opt, value

        step = jit(train_step)
        for i, (x, labels) in enumerate(batches()):
            model, state, opt, value = step(model, state, opt, x, labels, jax.random.key(i))
            yield value
        models.append(model)

    check(train, products=5, fp8_products=5, reference=eqx.filter_jit)
    assert [(model.slope, model.dropout.p) for model in models] == [(0.1, 0.2)] * 4


@pytest.mark.usefixtures("device")
def test_haiku_with_its_own_state():
    hk, optax = pytest.importorskip("haiku"), pytest.importorskip("optax")

    def train(jit):
        def forward(x):
            x = hk.BatchNorm(True, True, 0.9)(hk.Linear(32)(x), is_training=True)
            return hk.Linear(8)(jax.nn.relu(x))

        net = hk.transform_with_state(forward)
        params, state = net.init(jax.random.key(0), jnp.ones((4, 16)))
        tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(3e-3))
        opt = tx.init(params)

        def train_step(params, state, opt, x, labels):
            def loss(params):
                logits, new = net.apply(params, state, None, x)
                return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean(), new

            (value, state), gradients = jax.value_and_grad(loss, has_aux=True)(params)
            updates, opt = tx.update(gradients, opt, params)
            return optax.apply_updates(params, updates), state, opt, value

        step = jit(train_step, donate_argnums=(0, 1, 2))
        for x, labels in batches():
            params, state, opt, value = step(params, state, opt, x, labels)
            yield value

    check(train, products=5, fp8_products=5)


VOCABULARY, WIDTH, HEADS, LAYERS, LENGTH = 64, 32, 2, 2, 16


def gpt_parameters():
    keys = jax.random.split(jax.random.key(0), 7)
    shapes = {"qkv": (WIDTH, 3 * WIDTH), "proj": (WIDTH, WIDTH), "up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}
    layers = {n: jax.random.normal(k, (LAYERS, *s)) * s[0] ** -0.5 for k, (n, s) in zip(keys, shapes.items())}
    embed, position, head = ((VOCABULARY, WIDTH), (LENGTH, WIDTH), (WIDTH, VOCABULARY))
    top = {n: jax.random.normal(k, s) * 0.1 for k, (n, s) in zip(keys[4:], {"embed": embed, "position": position, "head": head}.items())}
    return {**top, "layers": layers}


def linear(name, x, w):
    with jax.named_scope(name):
        return (x.astype(jnp.bfloat16) @ w.astype(jnp.bfloat16)).astype(jnp.float32)


def norm(x):
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5)


def dropout(key, x):
    return jnp.where(jax.random.bernoulli(key, 0.9, x.shape), x / 0.9, 0)


@jax.checkpoint
def block(x, layer):
    w, key = layer
    first, second = jax.random.split(key)
    q, k, v = (a.reshape(*x.shape[:2], HEADS, -1) for a in jnp.split(linear("qkv", norm(x), w["qkv"]), 3, -1))
    attended = jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape)
    x = x + dropout(first, linear("proj", attended, w["proj"]))
    return x + dropout(second, linear("down", jax.nn.gelu(linear("up", norm(x), w["up"])), w["down"])), None


def gpt_loss(params, tokens, key):
    import optax

    x = params["embed"][tokens[:, :-1]] + params["position"]
    with jax.named_scope("layers"):
        x, _ = lax.scan(block, x, (params["layers"], jax.random.split(key, LAYERS)))
    logits = linear("head", norm(x), params["head"])
    return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()


def gpt_optimizer():
    import optax

    return optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(optax.warmup_cosine_decay_schedule(0, 3e-3, 4, 100)))


def gpt_step(state, tokens):
    import optax

    params, opt, key = state
    key, now = jax.random.split(key)
    value, gradients = jax.value_and_grad(gpt_loss)(params, tokens, now)
    updates, opt = gpt_optimizer().update(gradients, opt, params)
    return (optax.apply_updates(params, updates), opt, key), value


def gpt_state():
    params = gpt_parameters()
    return params, gpt_optimizer().init(params), jax.random.key(7)


def tokens(step):
    rng = np.random.default_rng(step)
    return jnp.asarray(np.cumsum(rng.integers(0, 3, (4, LENGTH + 1)), 1) % VOCABULARY, jnp.int32)


def test_gpt_with_scan_remat_dropout_and_adamw():
    pytest.importorskip("optax")

    def train(jit):
        step, state = jit(gpt_step, donate_argnums=0), gpt_state()
        for i in range(STEPS):
            state, value = step(state, tokens(i))
            yield value

    # bf16 products: an ulp of 2^-8 in another place when sums are taken in another order.
    check(train, products=26, fp8_products=18, tolerance=2e-3)


def test_gpt_saved_by_orbax_resumes_bit_for_bit(tmp_path):
    pytest.importorskip("optax")
    checkpoint = pytest.importorskip("orbax.checkpoint")

    def run(step, state, steps):
        losses = []
        for i in steps:
            state, value = step(state, tokens(i))
            losses.append(float(value))
        return state, losses

    step = fp8.jax.jit(gpt_step, donate_argnums=0, amax_history_len=8)
    state, _ = run(step, gpt_state(), range(3))
    params, opt, key = state
    tree = {"params": params, "opt": opt, "key": jax.random.key_data(key), "fp8": step.state}
    saver = checkpoint.StandardCheckpointer()
    saver.save(tmp_path / "saved", jax.tree.map(jnp.asarray, tree))
    saver.wait_until_finished()
    _, wanted = run(step, jax.tree.map(jnp.copy, state), range(3, 6))

    loaded = saver.restore(tmp_path / "saved", jax.tree.map(jnp.asarray, {**tree, "params": params}))
    resumed = fp8.jax.jit(gpt_step, donate_argnums=0, amax_history_len=8)
    resumed.state = loaded["fp8"]
    again = (loaded["params"], loaded["opt"], jax.random.wrap_key_data(loaded["key"]))
    assert run(resumed, again, range(3, 6))[1] == wanted
