# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of jax.numpy, jax.lax and jax.nn with arguments, shapes and types that are drawn (test_jax_operators.py).

An operator is a function of a `Draw` that returns a function of JAX and the arrays to call it with.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

FLOATS = ("float32", "bfloat16", "float16", "float64")
INTEGERS = ("int32", "int8", "uint8", "int64")
#: The types that an operator is tried with.
TYPES = {"f": FLOATS, "i": INTEGERS, "n": (*FLOATS, *INTEGERS), "a": (*FLOATS, *INTEGERS, "bool"), "b": ("bool", *INTEGERS), "c": (*FLOATS, "complex64")}


class Draw:
    """Arguments for one call, drawn from a seed."""

    def __init__(self, seed, dtype, special):
        self._random = np.random.default_rng(seed)
        self.dtype = jnp.dtype(dtype)
        #: Whether arrays have NaN, infinities, both zeros and the largest numbers.
        self.special = special and jnp.issubdtype(self.dtype, jnp.floating)

    def int(self, low, high):
        """A number from low to high, both included."""
        return int(self._random.integers(low, high + 1))

    def choice(self, *values):
        return values[self.int(0, len(values) - 1)]

    def shape(self, rank=None, low=1, high=5):
        return tuple(self.int(low, high) for _ in range(self.int(0, 3) if rank is None else rank))

    def array(self, shape=None, dtype=None):
        shape = self.shape() if shape is None else shape
        dtype = self.dtype if dtype is None else jnp.dtype(dtype)
        if dtype.kind == "b":
            return jnp.asarray(self._random.integers(0, 2, shape), bool)
        if jnp.issubdtype(dtype, jnp.integer):
            low = 0 if jnp.issubdtype(dtype, jnp.unsignedinteger) else -9
            return jnp.asarray(self._random.integers(low, 10, shape), dtype)
        if dtype == jnp.complex64:
            return jnp.asarray(self._random.normal(size=shape) + 1j * self._random.normal(size=shape), dtype)
        values = self._random.normal(size=shape) * self.choice(0.3, 1, 3)
        if self.special and dtype == self.dtype:
            marks = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, float(jnp.finfo(dtype).max), float(jnp.finfo(dtype).tiny), 0.5])
            values = np.where(self._random.random(shape) < 0.6, self._random.choice(marks, shape), values)
        return jnp.asarray(values, dtype)

    def indices(self, size, shape):
        """Also before the first and after the last."""
        return jnp.asarray(self._random.integers(-size - 1, size + 2, shape), jnp.int32)

    def axis(self, rank):
        return self.int(-rank, rank - 1)

    def pair(self):
        """Two arrays that broadcast."""
        shape = self.shape()
        other = tuple(1 if self.int(0, 3) == 0 else n for n in shape)[self.int(0, len(shape)) :]
        pair = [self.array(shape), self.array(other)]
        return pair if self.int(0, 1) else pair[::-1]


OPERATORS = {}


def operator(types, name=None):
    def add(function):
        OPERATORS[name or function.__name__] = (TYPES[types], function)
        return function

    return add


def _each(module, types, names, arguments):
    for name in names.split():
        function, prefix = getattr(module, name), "" if module is jnp else f"{module.__name__.rpartition('.')[2]}."
        OPERATORS[prefix + name] = TYPES[types], lambda d, function=function: (function, arguments(d))


one, two = lambda d: [d.array()], lambda d: d.pair()
_each(jnp, "c", "exp log sin cos tan tanh sinh cosh sqrt square reciprocal abs negative log1p expm1", one)
_each(jnp, "f", "arcsin arccos arctan arcsinh arccosh arctanh log2 log10 exp2 cbrt floor ceil rint trunc deg2rad sinc i0 nan_to_num spacing frexp modf", one)
_each(jnp, "n", "sign signbit isnan isinf isfinite ravel positive angle real iscomplex conj", one)
_each(jnp, "b", "invert bitwise_count logical_not", one)
_each(jnp, "n", "add subtract multiply divide floor_divide mod fmod maximum minimum fmax fmin power float_power hypot arctan2 copysign heaviside divmod", two)
_each(jnp, "f", "logaddexp logaddexp2 nextafter true_divide", two)
_each(jnp, "n", "equal not_equal less less_equal greater greater_equal isclose", two)
_each(jnp, "b", "bitwise_and bitwise_or bitwise_xor logical_and logical_or logical_xor", two)
_each(jnp, "i", "gcd lcm left_shift right_shift", lambda d: [abs(a) % 8 for a in d.pair()])
_each(lax, "f", "erf erfc erf_inv lgamma digamma rsqrt logistic bessel_i0e bessel_i1e is_finite round", one)
_each(lax, "i", "population_count clz", one)
_each(jax.nn, "f", "relu relu6 sigmoid softplus silu gelu elu selu celu leaky_relu hard_tanh hard_sigmoid hard_silu soft_sign log_sigmoid mish squareplus", one)
matrix = lambda d: [d.array(d.shape(d.int(1, 3)))]
_each(jax.nn, "f", "softmax log_softmax logsumexp standardize glu", lambda d: [d.array((*d.shape(d.int(0, 2)), 2 * d.int(1, 3)))])


def reduction(name, types):
    def draw(d):
        x = d.array(d.shape(d.int(1, 3)))
        axis = d.choice(None, d.axis(x.ndim), (d.int(0, x.ndim - 1),))
        return functools.partial(getattr(jnp, name), axis=axis, keepdims=d.choice(True, False)), [x]

    operator(types, name)(draw)


for _name in "sum prod max min mean any all".split():
    reduction(_name, "a" if _name in ("any", "all") else "n")
for _name in "var std nansum nanmax nanmin nanmean nanprod median ptp count_nonzero".split():
    reduction(_name, "f")


def along(name, types, **more):
    def draw(d):
        x = d.array(d.shape(d.int(1, 3)))
        return functools.partial(getattr(jnp, name), axis=d.axis(x.ndim), **more), [x]

    operator(types, name)(draw)


for _name in "argmax argmin cumsum cumprod sort argsort flip".split():
    along(_name, "n")
for _name in "cumlogsumexp cummax cummin".split():

    def cumulative(d, name=_name):
        x = d.array(d.shape(d.int(1, 3)))
        return functools.partial(getattr(lax, name), axis=d.int(0, x.ndim - 1)), [x]

    operator("f" if "log" in _name else "n", f"lax.{_name}")(cumulative)
for _name in "diff gradient unwrap nanargmax nancumsum".split():
    operator("f", _name)(lambda d, name=_name: (functools.partial(getattr(jnp, name), axis=-1), [d.array((*d.shape(d.int(0, 2)), d.int(3, 6)))]))


@operator("n")
def clip(d):
    return (lambda x: jnp.clip(x, 2 if d.dtype.kind == "u" else -1, 5)), [d.array()]


@operator("n")
def where(d):
    x, y = d.pair()
    return jnp.where, [d.array(jnp.broadcast_shapes(x.shape, y.shape), bool), x, y]


@operator("n")
def reshape(d):
    x = d.array(d.shape(d.int(1, 3)))
    new = d.choice((-1,), (x.shape[-1], -1), (*x.shape, 1))
    return (lambda x: x.reshape(new)), [x]


@operator("n")
def transpose(d):
    x = d.array(d.shape(3))
    order = d.choice((0, 2, 1), (2, 0, 1), (1, 2, 0), (2, 1, 0))
    return (lambda x: (x.transpose(order), jnp.swapaxes(x, 0, -1), jnp.moveaxis(x, 0, 1))), [x]


@operator("n")
def concatenate(d):
    shape, axis = list(d.shape(d.int(1, 3))), 0
    arrays = [d.array((d.int(0, 3), *shape[1:])) for _ in range(d.int(1, 4))]
    return (lambda *arrays: jnp.concatenate(arrays, axis)), arrays


@operator("n")
def stack(d):
    shape = d.shape(d.int(0, 2))
    axis = d.int(0, len(shape))
    return (lambda *arrays: jnp.stack(arrays, axis)), [d.array(shape) for _ in range(d.int(1, 3))]


@operator("n")
def pad(d):
    x = d.array(d.shape(d.int(1, 3), low=2))
    widths = [(d.int(0, 2), d.int(0, 1)) for _ in x.shape]
    mode = d.choice("constant", "edge", "reflect", "wrap", "symmetric", "maximum")
    return (lambda x: jnp.pad(x, widths, mode)), [x]


@operator("n", "lax.pad")
def lax_pad(d):
    x = d.array(d.shape(2))
    config = [(d.int(-1, 2), d.int(-1, 2), d.int(0, 2)) for _ in x.shape]
    return (lambda x, value: lax.pad(x, value, config)), [x, d.array(())]


@operator("n")
def slices(d):
    x = d.array(d.shape(3))
    start, step = d.int(-3, 3), d.choice(1, 2, -1, -2)
    return (lambda x: (x[start::step], x[..., ::step], x[:, None, -1], x[0, ..., :start])), [x]


@operator("n")
def take(d):
    x = d.array(d.shape(d.int(1, 3)))
    axis, mode = d.axis(x.ndim), d.choice("clip", "fill", "wrap")
    return (lambda x, i: jnp.take(x, i, axis=axis, mode=mode)), [x, d.indices(x.shape[axis], d.shape(d.int(0, 2)))]


@operator("n")
def take_along_axis(d):
    x = d.array(d.shape(2))
    return (lambda x, i: jnp.take_along_axis(x, i, axis=1)), [x, d.indices(x.shape[1], (x.shape[0], d.int(1, 4)))]


@operator("n")
def index(d):
    x = d.array(d.shape(3))
    i, j = d.indices(x.shape[0], (2, 1)), d.indices(x.shape[2], (3,))
    return (lambda x, i, j: (x[i, :, j], x[i[:, 0]], x[:, 0, j])), [x, i, j]


@operator("n")
def at(d):
    x = d.array(d.shape(2))
    how, mode = d.choice("add", "set", "min", "max", "multiply", "subtract"), d.choice("clip", "drop")
    i = d.indices(x.shape[0], (d.int(0, 4),))
    if how == "set":  # Of several updates of one place any may win.
        i = jnp.arange(d.int(0, x.shape[0]), dtype=jnp.int32)
    return (lambda x, i, u: getattr(x.at[i], how)(u, mode=mode)), [x, i, d.array((i.shape[0], x.shape[1]))]


@operator("n")
def segment_sum(d):
    x = d.array(d.shape(2))
    return (lambda x, s: jax.ops.segment_sum(x, s, 4)), [x, d.indices(4, x.shape[:1])]


@operator("n")
def top_k(d):
    x = d.array(d.shape(2, low=2))
    k = d.int(1, x.shape[-1])
    return (lambda x: lax.top_k(x, k)), [x]


@operator("n")
def searchsorted(d):
    side = d.choice("left", "right")
    return (lambda x, v: jnp.searchsorted(jnp.sort(x), v, side=side)), [d.array((d.int(1, 6),)), d.array((4,))]


@operator("n")
def tile_repeat_roll(d):
    x = d.array(d.shape(2))
    n = d.int(1, 3)
    return (lambda x: (jnp.tile(x, (n, 2)), jnp.repeat(x, n, axis=1), jnp.roll(x, n, axis=0), jnp.rot90(x), jnp.tril(x, n - 2), jnp.triu(x))), [x]
