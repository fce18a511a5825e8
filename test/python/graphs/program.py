# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs: functions of operations on tensors, from which both MLIR text and values are made.

emit.py writes a program as linalg on tensors; evaluate.py computes it with numpy; expect.py
says what the compiler has to report about it. None of them knows the compiler.

Operations, by kind (`attrs` in brackets; `style` says how emit.py writes an operation and has no
say in its meaning):

    fill         a tensor of one constant [value]
    cast         to another float type
    transpose    [permutation]: result[i] = input[permutation applied to i], as linalg.transpose
    reshape      collapses or expands neighbouring dimensions [groups]
    broadcast    repeats along new leading dimensions [shape]
    slice        of the first dimension, which goes [index]: a constant, or None: the second input
    insert       the first input with a slice of its first dimension replaced by the second [index]
    elementwise  [expression, dims]: dims lists, per input, the result's dimensions that it has
    sum          over all dimensions but `keep`, squared first if `square`; no order is promised
    contract     [letters, loops, einsum, site, role, kinds, again, loop]: sums of products, plus a third input if any
    backwards    an index from the other end [last]
    for          [trips]: a block of (index, carried…) that yields what is carried on
    if           an input above 0 chooses the first of two blocks without arguments
"""
from dataclasses import dataclass, field


class Dynamic(int):
    """A size that is known when the program runs: `factor` times that of the model's dynamic dimension."""

    def __new__(cls, value, factor=1):
        size = super().__new__(cls, value)
        size.factor = factor
        return size

    def __mul__(self, other):
        return Dynamic(int(self) * int(other), self.factor * int(other))

    __rmul__ = __mul__


def is_dynamic(shape):
    return any(isinstance(size, Dynamic) for size in shape)


class Value:
    """A tensor (or an index, where dtype is "index"); known by identity."""

    def __init__(self, shape, dtype, op=None):
        self.shape, self.dtype, self.op = tuple(shape), dtype, op


class Op:
    def __init__(self, kind, inputs, types, style="", blocks=(), **attrs):
        self.kind, self.inputs, self.style, self.attrs, self.blocks = kind, list(inputs), style, attrs, list(blocks)
        self.results = [Value(shape, dtype, self) for shape, dtype in types]

    def __getitem__(self, name):
        return self.attrs[name]


@dataclass
class Block:
    arguments: list = field(default_factory=list)
    ops: list = field(default_factory=list)
    results: list = field(default_factory=list)


@dataclass
class Function:
    """Results in `approximate` are sums whose order is not promised. `parts`: forward and backward, if
    it is written as two functions; its results are those of the first, without residuals, then the second."""

    name: str
    names: list = field(default_factory=list)  # of the arguments
    body: Block = field(default_factory=Block)
    carried: dict = field(default_factory=dict)  # argument: result
    approximate: set = field(default_factory=set)
    parts: list = field(default_factory=list)

    def written(self):
        """The functions that it is in the program."""
        return self.parts or [self]


@dataclass(eq=False)
class Site:
    """The products that are to have one name: a forward product and its gradients, in whatever microbatch."""

    scope: str
    weight: object  # the name of the argument, or None
    orientation: str  # how the product reads the weight
    name: str = ""


VIEWS = {"transpose", "reshape", "broadcast"}


def behind_views(value):
    """The tensor that `value` shows in another layout, or widened."""
    while value.op and (value.op.kind in VIEWS or is_widening(value.op)):
        value = value.op.inputs[0]
    return value


def is_widening(op):
    return op.kind == "cast" and op.results[0].dtype == "f32"


def contractions(block):
    """All contractions of a block, in program order."""
    for op in block.ops:
        if op.kind == "contract":
            yield op
        for inner in op.blocks:
            yield from contractions(inner)



def is_forward(op):
    """True for a contraction that is no gradient."""
    return all(kind != "grad_output" for kind, _ in op["kinds"])


def split(function, cut, results, own):
    """Forward and backward of a function: its operations from `cut` on, results from `results` on and
    the arguments `own` are backward's, which is handed what it reads of forward."""
    body = function.body
    first, second = body.ops[:cut], body.ops[cut:]
    made = {*body.arguments, *(v for op in first for v in op.results)} - set(own)
    residuals = [v for v in dict.fromkeys([*read_values(second), *body.results[results:]]) if v in made]
    if not residuals:
        return []
    names = dict(zip(body.arguments, function.names))
    arguments = [v for v in body.arguments if v not in own]
    forward = Function("forward", [names[v] for v in arguments])
    forward.body = Block(arguments, first, [*body.results[:results], *residuals])
    backward = Function("backward", [*(f"r{i}" for i in range(len(residuals))), *(names[v] for v in own)])
    backward.body = Block([*residuals, *own], second, body.results[results:])
    return [forward, backward]


def read_values(ops):
    """The values that operations read, inner ones as well."""
    for op in ops:
        yield from op.inputs
        for block in op.blocks:
            yield from read_values(block.ops)
            yield from block.results
