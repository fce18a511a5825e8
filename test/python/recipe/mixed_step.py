# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A training step with attention, microbatches and two layers, as a list of operations that is printed as MLIR and
evaluated in numpy. All tensors are f32 matrices; everything between the products is elementwise.

    q, k, v = x·wq, x·wk, x·wv;   o = relu(q·kᵀ)·v;   y = relu(o·wo)·wf;   gradients of y − t;   w − rate·gradient
"""
from typing import NamedTuple

import numpy as np

from harness import F32, tensor_type

RATE = 2.0**-16
SITES = {"wq": "h0/q", "wk": "h0/k", "wv": "h0/v", "wo": "h0/o", "wf": "h1/o"}
SCORES, VALUES = "h0/s", "h0/pv"

# Names of what an elementwise operation does: its code, and the same in numpy.
ELEMENTWISE = {
    "relu": ("%r = arith.maximumf %in0, %zero : f32", lambda x: np.maximum(x, F32.type(0))),
    "mask": ("%b = arith.cmpf ogt, %in0, %zero : f32\n    %r = arith.select %b, %in1, %zero : f32", lambda x, g: np.where(x > 0, g, F32.type(0))),
    "subtract": ("%r = arith.subf %in0, %in1 : f32", lambda a, b: a - b),
    "add": ("%r = arith.addf %in0, %in1 : f32", lambda a, b: a + b),
    "update": ("%s = arith.mulf %in1, %rate : f32\n    %r = arith.subf %in0, %s : f32", lambda w, g: w - g * F32.type(RATE)),
}


class Product(NamedTuple):
    """result = a · b, of their transposes where `turned` says so. A name of a gradient starts with d, of a weight with w."""

    result: str
    operands: tuple
    turned: tuple
    site: str
    role: str

    @property
    def kinds(self):
        return tuple({"d": "grad_output", "w": "weight"}.get(name[0], "input") for name in self.operands)


class Elementwise(NamedTuple):
    result: str
    operands: tuple
    word: str


class Step:
    """`sizes` are those of the batch, the input, the heads of q and v, and the output."""

    def __init__(self, sizes, microbatches):
        rows, width, scores, values, outputs = sizes
        self.shapes = {"wq": (width, scores), "wk": (width, scores), "wv": (width, values), "wo": (values, width), "wf": (width, outputs)}
        self.operations, self.gradients = [], {}
        for m in map(str, range(microbatches)):
            self.shapes |= {"x" + m: (rows, width), "t" + m: (rows, outputs)}
        self.arguments = list(self.shapes)
        for m in map(str, range(microbatches)):
            self.add_microbatch(m)
        self.results = [self.apply("new_" + w, "update", w, self.gradients[w]) for w in SITES]

    def multiply(self, result, a, b, site, role, turned=(False, False)):
        (m, k), (other, n) = (self.shapes[name][:: -1 if turn else 1] for name, turn in zip((a, b), turned))
        assert k == other
        self.shapes[result] = (m, n)
        self.operations.append(Product(result, (a, b), turned, site, role))
        return result

    def apply(self, result, word, *operands):
        self.shapes[result] = self.shapes[operands[0]]
        self.operations.append(Elementwise(result, operands, word))
        return result

    def forward(self, result, x, w):
        return self.multiply(result, x, w, SITES[w], "fprop")

    def backward(self, result, d, w):
        return self.multiply(result, d, w, SITES[w], "dgrad", (False, True))

    def weight_gradient(self, m, w, x, d):
        own = self.multiply(f"g_{w}{m}", x, d, SITES[w], "wgrad", (True, False))
        self.gradients[w] = self.apply(f"sum_{w}{m}", "add", self.gradients[w], own) if w in self.gradients else own

    def add_microbatch(self, m):
        x = "x" + m
        q, k, v = (self.forward(name + m, x, "w" + name) for name in "qkv")
        scores = self.multiply("s" + m, q, k, SCORES, "other", (False, True))
        p = self.apply("p" + m, "relu", scores)
        o = self.multiply("o" + m, p, v, VALUES, "other")
        hidden = self.forward("h" + m, o, "wo")
        a = self.apply("a" + m, "relu", hidden)
        y = self.forward("y" + m, a, "wf")
        d = self.apply("dy" + m, "subtract", y, "t" + m)
        self.weight_gradient(m, "wf", a, d)
        d = self.apply("dh" + m, "mask", hidden, self.backward("da" + m, d, "wf"))
        self.weight_gradient(m, "wo", o, d)
        d = self.backward("do" + m, d, "wo")
        dv = self.multiply("dv" + m, p, d, VALUES, "other", (True, False))
        ds = self.apply("ds" + m, "mask", scores, self.multiply("dp" + m, d, v, VALUES, "other", (False, True)))
        dq = self.multiply("dq" + m, ds, k, SCORES, "other")
        dk = self.multiply("dk" + m, ds, q, SCORES, "other", (True, False))
        for w, d in (("wq", dq), ("wk", dk), ("wv", dv)):
            self.weight_gradient(m, w, x, d)

    # --- as MLIR ---

    def type(self, name):
        return tensor_type(self.shapes[name], F32)

    def list_with_types(self, names):
        return f"{', '.join('%' + name for name in names)} : {', '.join(map(self.type, names))}"

    def text(self):
        carried = {name: f" {{tf.aliasing_output = {i} : i32}}" for i, name in enumerate(SITES)}
        arguments = ", ".join(f'%{name}: {self.type(name)}{carried.get(name, "")} loc("{name}")' for name in self.arguments)
        lines = [f"func.func @main({arguments}) -> ({', '.join(map(self.type, self.results))}) {{",
                 f"  %zero = arith.constant 0.0 : f32\n  %rate = arith.constant {RATE:.20f} : f32"]
        for operation in self.operations:
            lines += self.print_product(operation) if isinstance(operation, Product) else self.print_elementwise(operation)
        return "\n".join([*lines, f"  return {self.list_with_types(self.results)}", "}", ""])

    def print_product(self, op):
        kind = self.type(op.result)
        maps = zip((("m", "k"), ("k", "n"), ("m", "n")), (*op.turned, False))
        maps = ", ".join(f"affine_map<(m, n, k) -> ({', '.join(dims[::-1] if turn else dims)})>" for dims, turn in maps)
        scope = f"jvp({op.site})" if self.is_forward(op) else f"transpose(jvp({op.site}))"
        return [f"  %{op.result}_e = tensor.empty() : {kind}",
                f"  %{op.result}_z = linalg.fill ins(%zero : f32) outs(%{op.result}_e : {kind}) -> {kind}",
                f"  %{op.result} = linalg.matmul indexing_maps = [{maps}] ins({self.list_with_types(op.operands)})"
                f' outs(%{op.result}_z : {kind}) -> {kind} loc("{scope}/dot_general")']

    @staticmethod
    def is_forward(op):
        return "grad_output" not in op.kinds

    def print_elementwise(self, op):
        kind, same = self.type(op.result), ["affine_map<(i, j) -> (i, j)>"] * (len(op.operands) + 1)
        inputs = ", ".join(f"%in{i}: f32" for i in range(len(op.operands)))
        return [f"  %{op.result}_e = tensor.empty() : {kind}",
                f'  %{op.result} = linalg.generic {{indexing_maps = [{", ".join(same)}], iterator_types = ["parallel", "parallel"]}}'
                f" ins({self.list_with_types(op.operands)}) outs(%{op.result}_e : {kind}) {{",
                f"  ^bb0({inputs}, %out: f32):\n    {ELEMENTWISE[op.word][0]}\n    linalg.yield %r : f32\n  }} -> {kind}"]

    # --- in numpy ---

    def evaluate(self, inputs, multiply):
        """The results; `multiply(operation, a, b)` computes a product of a [M, K] and b [N, K]."""
        values = dict(inputs)
        for op in self.operations:
            operands = [values[name] for name in op.operands]
            if isinstance(op, Elementwise):
                values[op.result] = ELEMENTWISE[op.word][1](*operands)
            else:
                a, b = operands
                values[op.result] = multiply(op, a.T if op.turned[0] else a, b if op.turned[1] else b.T)
        return [values[name] for name in self.results]
