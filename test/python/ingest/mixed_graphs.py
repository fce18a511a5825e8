# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random f32 graphs, as MLIR and as the op policy of mixed precision says that they are computed.

A value is an f32 array and the type that the policy gives it: "f32", "bf16", "f16", or "" for a constant, which adapts
to the others. Operations are (text, run): run(values, precision) computes in `precision`, that of what is around it.
"""
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from harness import BF16, F16, F32

LOW = {"bf16": BF16, "f16": F16}
SIZES = (6, 10)


class Typed(NamedTuple):
    array: np.ndarray
    type: str
    own: str = ""  # the type of which the program itself widened it; products read that


def rounded(array, kind):
    with np.errstate(all="ignore"):
        return np.asarray(array, F32).astype(LOW[kind]).astype(F32) if kind in LOW else np.asarray(array, F32)


def widest(values):
    types = {value.type for value in values} - {""}
    return types.pop() if len(types) == 1 else "f32" if types else ""


def tensor(shape, kind="f32"):
    return f"tensor<{''.join(f'{n}x' for n in shape)}{kind}>"


BINARY = {"addf": np.add, "subf": np.subtract, "mulf": np.multiply, "divf": np.divide, "maximumf": np.maximum, "minimumf": np.minimum}
UNARY = {"arith.negf": np.negative, "math.absf": np.abs, "math.sqrt": np.sqrt}
IDENTITY = "affine_map<(i, j) -> (i, j)>"


class Graph:
    """`multiply(a, b, p, q)` is a · bᵀ as an f32 sum, of operands in the precisions p and q."""

    def __init__(self, rng, multiply):
        self.rng, self.multiply, self.count = rng, multiply, 0
        self.arguments, self.functions, self.inputs = [], [], {}
        self.ops, self.indent, self.known, self.calls, self.in_function = [], "  ", [], 0, False
        self.foldable = set()  # products, and views of them

    def chance(self, p):
        return self.rng.random() < p

    def pick(self, choices):
        return choices[self.rng.integers(len(choices))]

    def fresh(self):
        self.count += 1
        return f"%v{self.count}"

    def attribute(self, p=0.2):
        return self.pick(["off", "bf16", "f16", "tf32"]) if self.chance(p) else None

    @staticmethod
    def clause(own, before="", braces=True):
        text = f'fp8.mixed_precision = "{own}"' if own else ""
        return f" {before}{{{text}}}" if text and braces else f"{text}, " if text else ""

    def argument(self, shape, kind="f32"):
        name = f"%a{len(self.arguments)}"
        self.arguments.append(f"{name}: {tensor(shape, kind)}")
        data = self.rng.integers(-9, 9, shape).astype(np.int32) if kind == "i32" else self.rng.standard_normal(shape).astype(F32)
        self.inputs[name] = data.astype(LOW[kind]) if kind in LOW else data
        return name

    def number(self):
        return float(np.float32(self.rng.standard_normal()))

    def emit(self, lines, result, shape, run, own=None):
        """run(values, precision) returns the Typed result. Off and TF32 leave all but products in f32."""
        def step(values, outer):
            values[result] = run(values, own or outer)
        self.ops.append(([self.indent + line for line in lines], step))
        self.known.append((result, shape))
        return result

    @contextmanager
    def inside(self, known):
        ops, indent, before = self.ops, self.indent, self.known
        self.ops, self.indent, self.known = [], self.indent + "  ", list(known)
        yield self.ops
        self.ops, self.indent, self.known = ops, indent, before

    def value(self, shape=None):
        fitting = [name for name, own in self.known if own and shape in (None, own)]
        # The newest are read most.
        if not fitting:
            return self.constant(shape)
        return fitting[-1 - min(int(self.rng.exponential(2)), len(fitting) - 1)]

    def shape_of(self, name):
        return next(shape for known, shape in reversed(self.known) if known == name)

    # --- operations ---

    def constant(self, shape):
        number, name = self.number(), self.fresh()
        if self.chance(0.5):
            lines = [f"{name} = arith.constant dense<{number!r}> : {tensor(shape)}"]
        else:
            lines = [f"{name}c = arith.constant {number!r} : f32", f"{name}e = tensor.empty() : {tensor(shape)}",
                     f"{name} = linalg.fill ins({name}c : f32) outs({name}e : {tensor(shape)}) -> {tensor(shape)}"]
        return self.emit(lines, name, shape, lambda values, precision: Typed(np.full(shape, number, F32), ""))

    def table(self):
        shape, name = self.shape(), self.fresh()
        data = self.rng.standard_normal(shape).astype(F32)
        text = "[" + ", ".join("[" + ", ".join(repr(float(x)) for x in row) + "]" for row in data) + "]"
        return self.emit([f"{name} = arith.constant dense<{text}> : {tensor(shape)}"], name, shape,
                         lambda values, precision: Typed(data, "f32"))

    def shape(self):
        return (self.pick(SIZES), self.pick(SIZES))

    def pointwise(self, compute, *operands):
        """Of values: the policy's type, the result rounded once."""
        def run(values, precision):
            read = [values[name] for name in operands]
            kind = widest(read)
            if precision not in LOW and kind:
                kind = "f32"
            with np.errstate(all="ignore"):
                return Typed(rounded(compute(*(v.array for v in read)), kind), kind)
        return run

    def binary(self):
        word, own, name = self.pick([*BINARY]), self.attribute(), self.fresh()
        a = self.value()
        shape = self.shape_of(a)
        b = self.value(shape)
        line = f"{name} = arith.{word} {a}, {b}{self.clause(own)} : {tensor(shape)}"
        return self.emit([line], name, shape, self.pointwise(BINARY[word], a, b), own)

    def unary(self):
        word, own, name, a = self.pick([*UNARY]), self.attribute(), self.fresh(), self.value()
        shape = self.shape_of(a)
        return self.emit([f"{name} = {word} {a}{self.clause(own)} : {tensor(shape)}"], name, shape, self.pointwise(UNARY[word], a), own)

    def select(self):
        own, name, a = self.attribute(), self.fresh(), self.value()
        shape = self.shape_of(a)
        b, c = self.value(shape), self.value(shape)
        lines = [f"{name}p = arith.cmpf ogt, {a}, {c} : {tensor(shape)}",
                 f"{name} = arith.select {name}p, {a}, {b}{self.clause(own)} : {tensor(shape, 'i1')}, {tensor(shape)}"]
        choose = self.pointwise(lambda x, y, mask: np.where(mask, x, y), a, b, name + "p")

        def run(values, precision):
            values[name + "p"] = Typed(values[a].array > values[c].array, "")
            return choose(values, precision)
        return self.emit(lines, name, shape, run, own)

    def body(self):
        """Two operations in one linalg.generic, the second of a vector or a constant."""
        first, second, own, name, a = self.pick([*BINARY]), self.pick([*BINARY]), self.attribute(), self.fresh(), self.value()
        shape, spread = self.shape_of(a), self.pick([(0,), (1,)])
        b = self.sums(a, spread[0]) if self.chance(0.5) else None
        number = self.number()
        vector = f", affine_map<(i, j) -> ({'ij'[spread[0]]})>" if b else ""
        kind = tensor([shape[spread[0]]])
        lines = [f"{name}e = tensor.empty() : {tensor(shape)}",
                 f"{name}k = arith.constant {number!r} : f32",
                 f"{name} = linalg.generic {{{self.clause(own, braces=False)}indexing_maps = [{IDENTITY}{vector}, {IDENTITY}], iterator_types = [\"parallel\", \"parallel\"]}}"
                 f" ins({a}{', ' + b if b else ''} : {tensor(shape)}{', ' + kind if b else ''}) outs({name}e : {tensor(shape)}) {{",
                 f"^bb0(%x: f32{', %y: f32' if b else ''}, %o: f32):",
                 f"  %s = arith.{first} %x, {name}k : f32", f"  %t = arith.{second} {'%y, %s' if b else '%s, %x'} : f32",
                 "  linalg.yield %t : f32", f"}} -> {tensor(shape)}"]
        inner = self.pointwise(lambda x: BINARY[first](x, np.float32(number)), a)

        def run(values, precision):
            s = inner(values, precision)
            y = values[b] if b else None
            y = Typed(y.array[:, None] if spread[0] == 0 else y.array[None, :], y.type) if b else values[a]
            pair = {"s": s, "y": y}
            return self.pointwise(BINARY[second], *(("y", "s") if b else ("s", "y")))(pair, precision)
        return self.emit(lines, name, shape, run, own)

    def sums(self, a, kept):
        """Sums along one dimension, in its order, in f32."""
        shape, own, name = self.shape_of(a), self.attribute(), self.fresh()
        kind = tensor([shape[kept]])
        lines = [f"{name}z = arith.constant 0.0 : f32", f"{name}e = tensor.empty() : {kind}",
                 f"{name}f = linalg.fill ins({name}z : f32) outs({name}e : {kind}) -> {kind}",
                 f"{name} = linalg.reduce ins({a} : {tensor(shape)}) outs({name}f : {kind}) dimensions = [{1 - kept}]{self.clause(own)}",
                 "  (%x: f32, %o: f32) {", "    %s = arith.addf %o, %x : f32", "    linalg.yield %s : f32", "  }"]

        def run(values, precision):
            total = np.zeros(shape[kept], F32)
            for i in range(shape[1 - kept]):
                total = total + values[a].array.take(i, 1 - kept)
            return Typed(total, "f32")
        self.emit(lines, name, None, run, own)
        return name

    def transpose(self):
        own, name, a = self.attribute(), self.fresh(), self.value()
        shape = self.shape_of(a)[::-1]
        lines = [f"{name}e = tensor.empty() : {tensor(shape)}",
                 f"{name} = linalg.transpose ins({a} : {tensor(shape[::-1])}) outs({name}e : {tensor(shape)}) permutation = [1, 0]{self.clause(own)}"]
        turn = self.pointwise(np.transpose, a)
        if a in self.foldable:
            self.foldable.add(name)
        return self.emit(lines, name, shape, lambda values, precision: turn(values, precision)._replace(own=values[a].own), own)

    def concat(self):
        own, name, a = self.attribute(), self.fresh(), self.value()
        shape = self.shape_of(a)
        b, half = self.value(shape), shape[0] // 2
        part = tensor((half, shape[1]))
        lines = [f"{name}p = tensor.extract_slice {a}[0, 0] [{half}, {shape[1]}] [1, 1]{self.clause(own)} : {tensor(shape)} to {part}",
                 f"{name}q = tensor.extract_slice {b}[{half}, 0] [{half}, {shape[1]}] [1, 1]{self.clause(own)} : {tensor(shape)} to {part}",
                 f"{name} = tensor.concat dim(0) {name}p, {name}q{self.clause(own)} : ({part}, {part}) -> {tensor(shape)}"]
        return self.emit(lines, name, shape, self.pointwise(lambda x, y: np.concatenate([x[:half], y[half:]]), a, b), own)

    def insert(self):
        own, name, a = self.attribute(), self.fresh(), self.value()
        shape = self.shape_of(a)
        b, half = self.value(shape), shape[1] // 2
        part = tensor((shape[0], half))
        lines = [f"{name}p = tensor.extract_slice {a}[0, 0] [{shape[0]}, {half}] [1, 1]{self.clause(own)} : {tensor(shape)} to {part}",
                 f"{name} = tensor.insert_slice {name}p into {b}[0, {half}] [{shape[0]}, {half}] [1, 1]{self.clause(own)} : {part} into {tensor(shape)}"]
        return self.emit(lines, name, shape, self.pointwise(lambda x, y: np.concatenate([y[:, :half], x[:, :half]], 1), a, b), own)

    def pad(self):
        own, name, a = self.attribute(), self.fresh(), self.value()
        shape = self.shape_of(a)
        cut, number = shape[0] - 2, self.number()
        part = tensor((cut, shape[1]))
        lines = [f"{name}c = arith.constant {number!r} : f32",
                 f"{name}p = tensor.extract_slice {a}[0, 0] [{cut}, {shape[1]}] [1, 1]{self.clause(own)} : {tensor(shape)} to {part}",
                 f"{name} = tensor.pad {name}p low[1, 0] high[1, 0] {{", "^bb0(%row: index, %col: index):", f"  tensor.yield {name}c : f32",
                 f"}}{self.clause(own)} : {part} to {tensor(shape)}"]
        edge = np.full((1, shape[1]), number, F32)
        return self.emit(lines, name, shape, self.pointwise(lambda x: np.concatenate([edge, x[:cut], edge]), a), own)

    def cast(self):
        """The program's own rounding stays; what it widens again is f32."""
        kind, name, a = self.pick([*LOW]), self.fresh(), self.value()
        if a in self.foldable:  # a product that nothing else reads would be rounded to that type at once
            return self.binary()
        shape = self.shape_of(a)
        lines = [f"{name}n = arith.truncf {a} : {tensor(shape)} to {tensor(shape, kind)}",
                 f"{name} = arith.extf {name}n : {tensor(shape, kind)} to {tensor(shape)}"]
        return self.emit(lines, name, shape, lambda values, precision: Typed(rounded(values[a].array, kind), "f32", kind))

    def product(self):
        own, name, form = self.attribute(), self.fresh(), self.pick(["matmul", "turned", "batch", "wgrad"])
        a = self.value()
        m, k = self.shape_of(a)
        b = self.value((k, self.pick(SIZES)))
        n = self.shape_of(b)[1]
        role = 'fp8.role = "wgrad", ' if form == "wgrad" else 'fp8.role = "other", '
        attributes = "{" + (role + self.clause(own, braces=False)).rstrip(", ") + "}"
        fill = lambda kind: [f"{name}z = arith.constant 0.0 : f32", f"{name}e = tensor.empty() : {kind}",
                             f"{name}f = linalg.fill ins({name}z : f32) outs({name}e : {kind}) -> {kind}"]
        if form == "batch":
            kinds = [tensor(s) for s in ((2, m // 2, k), (2, k, n), (2, m // 2, n))]
            lines = [*fill(kinds[2]), f"{name}a = tensor.expand_shape {a} [[0, 1], [2]] output_shape [2, {m // 2}, {k}] : {tensor((m, k))} into {kinds[0]}",
                     f"{name}i = tensor.empty() : {kinds[1]}",
                     f"{name}b = linalg.broadcast ins({b} : {tensor((k, n))}) outs({name}i : {kinds[1]}) dimensions = [0]",
                     f"{name}y = linalg.batch_matmul {attributes} ins({name}a, {name}b : {kinds[0]}, {kinds[1]}) outs({name}f : {kinds[2]}) -> {kinds[2]}",
                     f"{name} = tensor.collapse_shape {name}y [[0, 1], [2]] : {kinds[2]} into {tensor((m, n))}"]
        elif form == "turned":
            maps = ", ".join(f"affine_map<(m, n, k) -> ({d})>" for d in ("m, k", "k, n", "m, n"))
            lines = [*fill(tensor((m, n))), f"{name} = linalg.generic {{{role}{self.clause(own, braces=False)}indexing_maps = [{maps}], iterator_types = [\"parallel\", \"parallel\", \"reduction\"]}}"
                     f" ins({a}, {b} : {tensor((m, k))}, {tensor((k, n))}) outs({name}f : {tensor((m, n))}) {{",
                     "^bb0(%x: f32, %y: f32, %o: f32):", "  %p = arith.mulf %x, %y : f32", "  %s = arith.addf %o, %p : f32", "  linalg.yield %s : f32",
                     f"}} -> {tensor((m, n))}"]
        else:
            lines = [*fill(tensor((m, n))), f"{name} = linalg.matmul {attributes} ins({a}, {b} : {tensor((m, k))}, {tensor((k, n))})"
                     f" outs({name}f : {tensor((m, n))}) -> {tensor((m, n))}"]

        def run(values, precision):
            x, y = values[a], values[b]
            total = self.multiply(x.array, y.array.T, *(v.own or precision for v in (x, y)))
            kind = precision if precision in LOW and not (x.own and y.own) else "f32"
            return Typed(rounded(total, kind), "f32" if form == "wgrad" else kind)
        self.foldable.add(name)
        return self.emit(lines, name, (m, n), run, own)

    # --- control flow ---

    def several(self, least, most):
        for _ in range(self.rng.integers(least, most + 1)):
            self.step()

    def loop(self):
        own, name, start = self.attribute(0.4), self.fresh(), self.value()
        shape, trips = self.shape_of(start), int(self.rng.integers(0, 4))
        with self.inside([*self.known, (name + "s", shape)]) as ops:
            self.several(1, 3)
            end = self.value(shape)
        kind = tensor(shape)
        lines = [f"{name}lo = arith.constant 0 : index", f"{name}one = arith.constant 1 : index", f"{name}t = arith.constant {trips} : index",
                 f"{name} = scf.for {name}i = {name}lo to {name}t step {name}one iter_args({name}s = {start}) -> {kind} {{",
                 *(line.removeprefix(self.indent) for text, _ in ops for line in text), f"  scf.yield {end} : {kind}", f"}}{self.clause(own)}"]

        def run(values, precision):
            value = Typed(values[start].array, "f32")
            for _ in range(trips):
                inner = dict(values) | {name + "s": value}
                for _, step in ops:
                    step(inner, precision)
                value = Typed(inner[end].array, "f32")
            return value
        return self.emit(lines, name, shape, run, own)

    def branch(self):
        own, name, like, sides = self.attribute(0.4), self.fresh(), self.value(), []
        shape = self.shape_of(like)
        flag = self.argument((), "i32")
        for _ in range(2):
            with self.inside(self.known) as ops:
                self.several(1, 2)
                sides.append((ops, self.value(shape)))
        texts = [[*(line.removeprefix(self.indent) for text, _ in ops for line in text), f"  scf.yield {end} : {tensor(shape)}"] for ops, end in sides]
        lines = [f"{name}k = arith.constant 0 : i32", f"{name}x = tensor.extract {flag}[] : tensor<i32>", f"{name}c = arith.cmpi sgt, {name}x, {name}k : i32",
                 f"{name} = scf.if {name}c -> {tensor(shape)} {{", *texts[0], "} else {", *texts[1], f"}}{self.clause(own)}"]

        def run(values, precision):
            ops, end = sides[0 if self.inputs[flag] > 0 else 1]
            inner = dict(values)
            for _, step in ops:
                step(inner, precision)
            return Typed(inner[end].array, "f32")
        return self.emit(lines, name, shape, run, own)

    def call(self):
        """A function of two tensors, called once or twice; its attribute is inside that of a call."""
        own, a = self.attribute(0.3), self.value()
        shape = self.shape_of(a)
        b, self.calls = self.value(shape), self.calls + 1
        function = f"@f{self.calls}"
        outer, self.indent, self.in_function = (self.indent, self.in_function), "", True
        with self.inside([("%left", shape), ("%right", shape)]) as ops:
            self.several(1, 3)
            end = self.value(shape)
        self.indent, self.in_function = outer
        kind = tensor(shape)
        self.functions.append([f"func.func private {function}(%left: {kind}, %right: {kind}) -> {kind}{self.clause(own, 'attributes ')} {{",
                               *(line for text, _ in ops for line in text), f"  return {end} : {kind}", "}"])
        for _ in range(self.rng.integers(1, 3)):
            name, of_call = self.fresh(), self.attribute(0.4)
            line = f"{name} = func.call {function}({a}, {b}){self.clause(of_call)} : ({kind}, {kind}) -> {kind}"

            def run(values, precision, a=a, b=b):
                inner = {**values, "%left": values[a], "%right": values[b]}
                for _, step in ops:
                    step(inner, own or precision)
                return inner[end]
            self.emit([line], name, shape, run, of_call)
            a, b = name, a
        return name

    def step(self):
        deep = len(self.indent) > 4
        words = ["product"] * 5 + ["binary"] * 4 + ["unary", "select", "body", "body", "transpose", "concat", "insert", "pad", "cast", "table"]
        getattr(self, self.pick(words if deep else [*words, "loop", "call", "loop" if self.in_function else "branch"]))()

    # --- whole programs ---

    def build(self, steps):
        for shape in [(m, n) for m in SIZES for n in SIZES]:
            self.known.append((self.argument(shape), shape))
        name = self.argument((6, 10), "bf16")
        self.emit([f"%wide = arith.extf {name} : {tensor((6, 10), 'bf16')} to {tensor((6, 10))}"], "%wide", (6, 10),
                  lambda values, precision: Typed(values[name].array, "f32", "bf16"))
        whole = self.argument((10, 6), "i32")
        self.emit([f"%whole = arith.sitofp {whole} : {tensor((10, 6), 'i32')} to {tensor((10, 6))}"], "%whole", (10, 6),
                  lambda values, precision: Typed(values[whole].array, "f32"))
        self.several(steps, steps)
        self.results = [name for name, shape in self.known if shape and name.startswith("%v")]
        return self

    def text(self):
        kinds = ", ".join(tensor(self.shape_of(name)) for name in self.results)
        lines = [line for function in self.functions for line in function]
        lines += [f"func.func @main({', '.join(self.arguments)}) -> ({kinds}) {{", *(line for text, _ in self.ops for line in text)]
        return "\n".join([*lines, f"  return {', '.join(self.results)} : {kinds}", "}", ""])

    def evaluate(self, precision):
        values = {name: Typed(np.asarray(data, F32), "f32") for name, data in self.inputs.items()}
        for _, step in self.ops:
            step(values, precision)
        return [values[name].array for name in self.results]
