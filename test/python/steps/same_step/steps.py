# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One training step in JAX, in the ways in which people write one.

Two microbatches through an embedding with a bias, two layers whose weights are stacked, and
a head; f32 weights, bf16 products, plain gradient descent. Everything between the products is
elementwise, so that every number but the loss is fixed bit for bit. Two microbatches, because
loops add their gradients in one order and loops back in the other, and only of two is that the
same sum.
"""
import functools

import jax
import jax.numpy as jnp

MICROBATCHES, BATCH, TIME, WIDTH, HIDDEN, OUTPUTS, LAYERS = 2, 3, 4, 16, 24, 8, 2
LEARNING_RATE = 0.03125

PARAMETERS = {
    "bias": (WIDTH,),
    "down": (LAYERS, HIDDEN, WIDTH),
    "embed": (OUTPUTS, WIDTH),
    "head": (WIDTH, OUTPUTS),
    "up": (LAYERS, WIDTH, HIDDEN),
}
TRAINED = [name for name in PARAMETERS if name != "bias"]  # its gradient would be a sum in any order


def linear(name, w, x):
    with jax.named_scope(name):
        return jnp.einsum("bti,io->bto", x, w.astype(jnp.bfloat16))


def layer(weights, x):
    with jax.named_scope("layer"):
        return x + linear("down", weights["down"], jax.nn.relu(linear("up", weights["up"], x)))


def scanned(layer, weights, x):
    return jax.lax.scan(lambda x, one: (layer(one, x), None), x, weights)[0]


def one_after_the_other(layer, weights, x):
    for i in range(LAYERS):
        x = layer({name: stack[i] for name, stack in weights.items()}, x)
    return x


def loss(trained, bias, x, target, layers=scanned, layer=layer):
    """Sum of squares of one microbatch."""
    x = jax.nn.relu(linear("embed", trained["embed"], x) + bias.astype(jnp.bfloat16))
    x = layers(layer, {name: trained[name] for name in ("up", "down")}, x)
    error = linear("head", trained["head"], x).astype(jnp.float32) - target
    return jnp.sum(error * error)


# --- loops over microbatches: the loss and the gradients of all ---


def add(a, b):
    return jax.tree.map(jnp.add, a, b)


def zeros(trained):
    return 0.0, jax.tree.map(jnp.zeros_like, trained)


def unrolled(loss, trained, bias, xs, targets):
    total = zeros(trained)
    for i in range(MICROBATCHES):
        total = add(total, jax.value_and_grad(loss)(trained, bias, xs[i], targets[i]))
    return total


def in_a_scan(loss, trained, bias, xs, targets):
    def body(total, batch):
        return add(total, jax.value_and_grad(loss)(trained, bias, *batch)), None

    return jax.lax.scan(body, zeros(trained), (xs, targets))[0]


def in_a_fori_loop(loss, trained, bias, xs, targets):
    def body(i, total):
        return add(total, jax.value_and_grad(loss)(trained, bias, xs[i], targets[i]))

    return jax.lax.fori_loop(0, MICROBATCHES, body, zeros(trained))


def sum_of_losses(loss, trained, bias, xs, targets):
    def body(total, batch):
        return total + loss(trained, bias, *batch), None

    return jax.lax.scan(body, 0.0, (xs, targets))[0]


def loop_and_loop_back(loss, trained, bias, xs, targets):
    """The loop is differentiated: what its iterations save is stacked."""
    return jax.value_and_grad(functools.partial(sum_of_losses, loss))(trained, bias, xs, targets)


# --- whole steps ---


def make_step(gradients, loss):
    def main(trained, bias, xs, targets):
        total, slopes = gradients(loss, trained, bias, xs, targets)
        return jax.tree.map(lambda w, g: w - LEARNING_RATE * g, trained, slopes), total

    return main


def make_pair(total):
    """forward and backward; what forward saves is whatever JAX chooses."""
    tree = None

    def forward(trained, bias, xs, targets):
        nonlocal tree
        value, pull = jax.vjp(lambda trained: total(trained, bias, xs, targets), trained)
        saved, tree = jax.tree.flatten(pull)
        return value, saved

    def backward(saved, slope):
        return jax.tree.unflatten(tree, saved)(slope)[0]

    return forward, backward


def sum_unrolled(loss, trained, bias, xs, targets):
    return sum(loss(trained, bias, xs[i], targets[i]) for i in range(MICROBATCHES))


layers_unrolled = functools.partial(loss, layers=one_after_the_other)
checkpointed = functools.partial(loss, layer=jax.checkpoint(layer, prevent_cse=False))
jitted = jax.jit(functools.partial(loss, layer=jax.jit(layer)))

STEPS = {
    "scan": make_step(in_a_scan, loss),
    "unrolled": make_step(unrolled, layers_unrolled),
    "fori": make_step(in_a_fori_loop, loss),
    "loop_back": make_step(loop_and_loop_back, loss),
    "layers_unrolled": make_step(in_a_scan, layers_unrolled),
    "checkpoint": make_step(in_a_scan, checkpointed),
    "jitted": make_step(in_a_scan, jitted),
}
PAIRS = {
    "pair_unrolled": make_pair(functools.partial(sum_unrolled, layers_unrolled)),
    "pair_scan": make_pair(functools.partial(sum_of_losses, loss)),
    "pair_checkpoint": make_pair(functools.partial(sum_of_losses, checkpointed)),
}
