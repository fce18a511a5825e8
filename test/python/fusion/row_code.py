# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Norms and softmaxes, forward and backward, as exporters write them.

Each is MLIR text that computes tensors [B, T, C] by rows of C, with statistics in between. Kept
dimensions, reductions over dimensions of size 1, and reshapes are written as JAX exports them.
"""
from harness import BF16, tensor_type

ALL, STAT, KEPT, COLUMN = "(b, t, c) -> (b, t, c)", "(b, t, c) -> (b, t)", "(b, t, c) -> (b, t, 0)", "(b, t, c) -> (c)"
PARALLEL, ROWS = '"parallel", "parallel", "parallel"', '"parallel", "parallel", "reduction"'


class RowCode:
    def __init__(self, shape):
        self.shape, self.text, self.count = shape, "", 0
        self.types = {}
        b, t, c = shape
        self.full, self.stat, self.kept = (f"tensor<{b}x{t}x{c}xf32>", f"tensor<{b}x{t}xf32>", f"tensor<{b}x{t}x1xf32>")
        self.row = f"tensor<{c}xf32>"
        self.line("%zero = arith.constant 0.0 : f32")
        self.line("%lowest = arith.constant 0xFF800000 : f32")
        self.line(f"%size = arith.constant {float(c)} : f32")

    def line(self, text):
        self.text += f"\n  {text}"

    def name(self):
        self.count += 1
        return f"%r{self.count}"

    def argument(self, name, type):
        self.types[name] = type
        return name

    def generic(self, out, body, *inputs, iterators=PARALLEL, out_map=ALL, init=None):
        """`inputs` are (value, map); the body names them %a0, %a1, …, and the result %v."""
        name = self.name()
        values = [value for value, _ in inputs]
        self.line(f"{name}e = tensor.empty() : {out}")
        if init:
            self.line(f"{name}f = linalg.fill ins({init} : f32) outs({name}e : {out}) -> {out}")
        maps = ", ".join(f"affine_map<{m}>" for m in [*(m for _, m in inputs), out_map])
        element = lambda type: type.split("x")[-1].rstrip(">")
        blocks = ", ".join(f"%a{i}: {element(self.types[v])}" for i, v in enumerate(values))
        self.line(f"{name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}} "
                  f"ins({', '.join(values)} : {', '.join(self.types[v] for v in values)}) "
                  f"outs({name}{'f' if init else 'e'} : {out}) {{")
        self.line(f"^bb0({blocks}, %out: {element(out)}):")
        for step in body:
            self.line("  " + step)
        self.line(f"  linalg.yield %v : {element(out)}")
        self.line(f"}} -> {out}")
        return self.argument(name, out)

    def elements(self, body, *inputs, out=None):
        return self.generic(out or self.full, body, *inputs)

    def sum(self, body, *inputs):
        return self.generic(self.stat, [*body, "%v = arith.addf %out, %w : f32"], *inputs, iterators=ROWS, out_map=STAT, init="%zero")

    def dot(self, x, y):
        """Of a row of each: a product, and its sum."""
        product = self.elements(["%v = arith.mulf %a0, %a1 : f32"], (x, ALL), (y, ALL))
        return self.sum(["%w = arith.addf %a0, %zero : f32"], (product, ALL))

    def keep(self, body, *stats):
        """Elementwise on statistics, with the dimension kept."""
        return self.generic(self.kept, body, *((s, STAT if self.types[s] == self.stat else KEPT) for s in stats))

    def expand(self, stat):
        name = self.name()
        b, t, _ = self.shape
        self.line(f"{name} = tensor.expand_shape {stat} [[0], [1, 2]] output_shape [{b}, {t}, 1] : {self.stat} into {self.kept}")
        return self.argument(name, self.kept)

    def sum_of_one(self, kept, body):
        """A reduction over the kept dimension of one element."""
        return self.generic(self.stat, [*body, "%v = arith.addf %out, %w : f32"], *((k, ALL) for k in kept), iterators=ROWS, out_map=STAT, init="%zero")

    def column_sum(self, value):
        widen = ["%w = arith.extf %a0 : bf16 to f32", "%v = arith.addf %out, %w : f32"]
        add = widen if "bf16" in self.types[value] else ["%v = arith.addf %out, %a0 : f32"]
        return self.generic(self.row, add, (value, ALL), iterators='"reduction", "reduction", "parallel"', out_map=COLUMN, init="%zero")

    def widen(self, x):
        return self.elements(["%v = arith.extf %a0 : bf16 to f32"], (x, ALL)) if "bf16" in self.types[x] else x

    def narrow(self, x, dtype):
        if dtype != BF16:
            return x
        return self.elements(["%v = arith.truncf %a0 : f32 to bf16"], (x, ALL), out=tensor_type(self.shape, BF16))


def layer_norm(code, x, gain, bias, dtype):
    """Returns the normalized tensor, then x - mean, the mean and 1 / deviation."""
    x = code.widen(x)
    mean = code.keep(["%v = arith.divf %a0, %size : f32"], code.sum(["%w = arith.addf %a0, %zero : f32"], (x, ALL)))
    centred = code.elements(["%v = arith.subf %a0, %a1 : f32"], (x, ALL), (mean, KEPT))
    squares = code.sum(["%w = arith.mulf %a0, %a0 : f32"], (centred, ALL))
    variance = code.keep(["%eps = arith.constant 1.0e-5 : f32", "%m = arith.divf %a0, %size : f32", "%v = arith.addf %m, %eps : f32"], squares)
    rstd = code.keep(["%one = arith.constant 1.0 : f32", "%d = math.sqrt %a0 : f32", "%v = arith.divf %one, %d : f32"], variance)
    y = code.elements(["%n = arith.mulf %a0, %a1 : f32", "%g = arith.mulf %n, %a2 : f32", "%v = arith.addf %g, %a3 : f32"],
                      (centred, ALL), (rstd, KEPT), (gain, COLUMN), (bias, COLUMN))
    return code.narrow(y, dtype), centred, mean, rstd


def rms_norm(code, x, gain, dtype):
    """PyTorch's way: the statistics lose their dimension. Returns the tensor and 1 / rms."""
    x = code.widen(x)
    squares = code.sum(["%w = arith.mulf %a0, %a0 : f32"], (x, ALL))
    rms = code.generic(code.stat, ["%eps = arith.constant 1.0e-6 : f32", "%m = arith.divf %a0, %size : f32", "%e = arith.addf %m, %eps : f32",
                                   "%v = math.rsqrt %e : f32"], (squares, "(b, t) -> (b, t)"), iterators='"parallel", "parallel"', out_map="(b, t) -> (b, t)")
    y = code.elements(["%n = arith.mulf %a0, %a1 : f32", "%v = arith.mulf %n, %a2 : f32"], (x, ALL), (rms, STAT), (gain, COLUMN))
    return code.narrow(y, dtype), rms


def softmax(code, x, dtype):
    """With a causal mask, by positions. Returns the tensor, the maximum and the sum."""
    x = code.widen(x)
    masked = code.elements(["%row = linalg.index 1 : index", "%column = linalg.index 2 : index", "%past = arith.cmpi ule, %column, %row : index",
                            "%v = arith.select %past, %a0, %lowest : f32"], (x, ALL))
    top = code.generic(code.stat, ["%v = arith.maximumf %out, %a0 : f32"], (masked, ALL), iterators=ROWS, out_map=STAT, init="%lowest")
    power = code.elements(["%d = arith.subf %a0, %a1 : f32", "%v = math.exp %d : f32"], (masked, ALL), (top, STAT))
    total = code.sum(["%w = arith.addf %a0, %zero : f32"], (power, ALL))
    y = code.elements(["%v = arith.divf %a0, %a1 : f32"], (power, ALL), (total, STAT))
    return code.narrow(y, dtype), top, total


def layer_norm_backward(code, dy, centred, rstd, gain, residual, dtype):
    """Returns the gradient to cast and the one in f32 that goes on, and the bias gradient."""
    dn = code.elements(["%v = arith.mulf %a0, %a1 : f32"], (code.widen(dy), ALL), (gain, COLUMN))
    dot = code.expand(code.dot(centred, dn))
    factor = code.sum_of_one([dot, rstd], ["%c = arith.mulf %a1, %a1 : f32", "%d = arith.mulf %a1, %c : f32", "%e = arith.mulf %a0, %d : f32",
                                           "%f = arith.divf %e, %size : f32", "%w = arith.negf %f : f32"])
    dx = code.elements(["%t = arith.mulf %a0, %a1 : f32", "%p = arith.mulf %a2, %a3 : f32", "%v = arith.addf %t, %p : f32"],
                       (dn, ALL), (rstd, KEPT), (factor, STAT), (centred, ALL))
    total = code.expand(code.sum(["%w = arith.negf %a0 : f32"], (dx, ALL)))
    mean = code.sum_of_one([total], ["%w = arith.divf %a0, %size : f32"])
    both = code.elements(["%t = arith.addf %a0, %a1 : f32", "%v = arith.addf %t, %a2 : f32"], (residual, ALL), (dx, ALL), (mean, STAT))
    cast = code.narrow(both, dtype)
    return cast, both, code.column_sum(cast)


def softmax_backward(code, dy, y, dtype):
    """y * (dy - sum(y * dy)). Returns the gradient and the sum."""
    dot = code.expand(code.dot(code.widen(dy), y))
    dx = code.elements(["%t = arith.subf %a0, %a1 : f32", "%v = arith.mulf %t, %a2 : f32"], (code.widen(dy), ALL), (dot, KEPT), (y, ALL))
    return code.narrow(dx, dtype), dot
