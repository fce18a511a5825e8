# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds programs: one method per operation, in a style that is drawn at random.

Every random choice is drawn from `rng`; what a program computes depends on its calls only,
but for the order in which `contract` sums over several dimensions.
"""
import math
from contextlib import contextmanager

from .program import Block, Dynamic, Function, Op, Value

# Letters of the operands and the result of linalg's named operations.
NAMED = {
    ("mk", "kn", "mn"): "matmul",
    ("bmk", "bkn", "bmn"): "batch_matmul",
    ("mk", "k", "m"): "matvec",
    ("k", "kn", "n"): "vecmat",
    ("k", "k", ""): "dot",
}


class Builder:
    def __init__(self, name, rng):
        self.function, self.rng = Function(name), rng
        self.block = self.function.body

    def argument(self, name, shape, dtype):
        value = Value(shape, dtype)
        self.function.names.append(name)
        self.function.body.arguments.append(value)
        return value

    def finish(self, results, carried, approximate):
        self.function.body.results = list(results)
        self.function.carried, self.function.approximate = carried, set(approximate)
        return self.function

    def add(self, kind, inputs, shape, dtype, style="", **attrs):
        op = Op(kind, inputs, [(shape, dtype)], style, **attrs)
        self.block.ops.append(op)
        return op.results[0]

    def chance(self, probability):
        return self.rng.random() < probability

    def choose(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def drawn_so_far(self):
        return self.rng.bit_generator.state

    @contextmanager
    def drawing_again(self, drawn):
        """The same choices as after `drawn`; then new ones."""
        now, self.rng.bit_generator.state = self.rng.bit_generator.state, drawn
        yield
        self.rng.bit_generator.state = now

    # --- moving elements about ---

    def fill(self, value, shape, dtype):
        return self.add("fill", [], shape, dtype, self.choose("constant", "fill"), value=value)

    def cast(self, value, dtype):
        if value.dtype == dtype:
            return value
        return self.add("cast", [value], value.shape, dtype, self.choose("arith", "generic"))

    def transpose(self, value, permutation):
        permutation = tuple(permutation)
        if permutation == tuple(range(len(permutation))):
            return value
        shape = [value.shape[i] for i in permutation]
        return self.add("transpose", [value], shape, value.dtype, self.choose("named", "generic"), permutation=permutation)

    def reshape(self, value, shape, groups):
        """`groups`: of the dimensions of the larger shape, which make up those of the smaller."""
        if tuple(shape) == value.shape:
            return value
        return self.add("reshape", [value], shape, value.dtype, groups=tuple(map(tuple, groups)))

    def broadcast(self, value, leading):
        return self.add("broadcast", [value], (*leading, *value.shape), value.dtype, self.choose("named", "generic"))

    def slice(self, value, index):
        return self.add("slice", [value, *dynamic(index)], value.shape[1:], value.dtype, index=constant(index))

    def insert(self, target, value, index):
        inputs = [target, value, *dynamic(index)]
        return self.add("insert", inputs, target.shape, target.dtype, index=constant(index))

    # --- arithmetic ---

    def elementwise(self, expression, *inputs, dims=None):
        """Expressions are trees: ("add", 0, ("mul", 1, 0.5)) is input 0 + input 1 · 0.5."""
        shape = inputs[0].shape
        dims = dims or [tuple(range(len(shape)))] * len(inputs)
        style = "generic" if any(len(d) < len(shape) for d in dims) else self.choose("arith", "generic")
        return self.add("elementwise", inputs, shape, inputs[0].dtype, style, expression=expression, dims=tuple(dims))

    def sum(self, value, keep=(), square=False):
        keep = tuple(keep)
        return self.add("sum", [value], [value.shape[i] for i in keep], "f32", keep=keep, square=square)

    # --- products ---

    def contract(self, letters, a, b, dtype, init=None, form="generic", **tags):
        """letters: dimensions of a, b and the result, as in ("mk", "kn", "mn"). tags: role, kinds, site, …"""
        return ContractForm(self, letters, a, b, dtype, init, {**tags, "einsum": letters}).build(form)

    # --- control flow ---

    def backwards(self, index, last):
        return self.add("backwards", [index], (), "index", last=last)

    @contextmanager
    def loop(self, trips, inits):
        """with loop(3, [x]) as (index, [y], op): …; op.blocks[0].results = [z]; then op.results."""
        op = Op("for", inits, [(v.shape, v.dtype) for v in inits], trips=trips)
        inner = Block([Value((), "index"), *(Value(v.shape, v.dtype) for v in inits)])
        op.blocks.append(inner)
        with self.inside(inner):
            yield inner.arguments[0], inner.arguments[1:], op
        self.block.ops.append(op)

    @contextmanager
    def inside(self, block):
        outer, self.block = self.block, block
        yield block
        self.block = outer

    def branch(self, condition, then, otherwise):
        """then() and otherwise() build the two sides and return their results."""
        blocks = [Block(), Block()]
        for block, build in zip(blocks, (then, otherwise)):
            with self.inside(block):
                block.results = list(build())
        types = [(v.shape, v.dtype) for v in blocks[0].results]
        op = Op("if", [condition], types, blocks=blocks)
        self.block.ops.append(op)
        return op.results


def dynamic(index):
    return [index] if isinstance(index, Value) else []


def constant(index):
    return None if isinstance(index, Value) else index


class ContractForm:
    """One contraction in one of the forms that exporters write."""

    def __init__(self, builder, letters, a, b, dtype, init, tags):
        self.builder, self.letters, self.values = builder, list(letters), [a, b]
        self.dtype, self.init, self.tags = dtype, init, tags
        self.sizes = {l: n for text, value in zip(letters, (a, b)) for l, n in zip(text, value.shape)}

    def build(self, form):
        """form: words joined by "+", each a change of form before the operation is written."""
        style = "generic"
        undo = []
        for word in form.split("+"):
            if word in ("generic", "contract", "named"):
                style = word
            else:
                undo.append(getattr(self, word)())
        result = self.named() if style == "named" else self.emit(self.letters, self.values, style)
        for step in reversed(undo):
            result = step(result) if step else result
        return result

    def swap(self):
        """The operands change places."""
        self.letters[0:2] = self.letters[1::-1]
        self.values.reverse()
        self.tags["kinds"] = self.tags["kinds"][::-1]

    def extend(self):
        """bf16 operands are widened first; the result is f32 and narrowed afterwards."""
        if self.values[0].dtype == "f32" or self.init:
            return None
        self.values = [self.builder.cast(v, "f32") for v in self.values]
        final, self.dtype = self.dtype, "f32"
        return lambda result: self.builder.cast(result, final)

    def narrow(self):
        """The result is f32 and narrowed afterwards."""
        if self.init:
            return None
        final, self.dtype = self.dtype, "f32"
        return lambda result: self.builder.cast(result, final)

    def arrange(self):
        """Operands are transposed, and the result as well, by operations of their own."""
        for i in (0, 1):
            permutation = self.builder.rng.permutation(len(self.letters[i]))
            self.values[i] = self.builder.transpose(self.values[i], map(int, permutation))
            self.letters[i] = "".join(self.letters[i][p] for p in permutation)
        if self.init:
            return None
        wanted = self.letters[2]
        self.letters[2] = "".join(self.builder.rng.permutation(list(wanted)))
        return lambda result: self.builder.transpose(result, [self.letters[2].index(l) for l in wanted])

    def spread(self):
        """A matrix is repeated over the other operand's leading dimension, which becomes a batch."""
        for i in (0, 1):
            extra = self.letters[1 - i][0]
            if len(self.letters[i]) == 2 and len(self.letters[1 - i]) == 3 and self.letters[2][0] == extra:
                self.values[i] = self.builder.broadcast(self.values[i], [self.sizes[extra]])
                self.letters[i] = extra + self.letters[i]
                break
        return None

    def squeeze(self):
        """Every operand and the result lose a dimension of size 1."""
        kept = set(self.letters[0]) & set(self.letters[1]) - set(self.letters[2])
        units = [l for l, n in self.sizes.items() if n == 1 and not isinstance(n, Dynamic) and kept != {l}]
        if not units or self.init:
            return None
        unit, wanted = units[0], self.letters[2]
        for i in (0, 1):
            self.values[i] = self.without_unit(self.values[i], self.letters[i].find(unit))
        self.letters = [text.replace(unit, "") for text in self.letters]
        position = wanted.find(unit)
        if position < 0:
            return None
        shape = [self.sizes[l] for l in wanted]
        return lambda result: self.builder.reshape(result, shape, unit_groups(len(shape), position))

    def without_unit(self, value, position):
        if position < 0:
            return value
        shape = value.shape[:position] + value.shape[position + 1 :]
        return self.builder.reshape(value, shape, unit_groups(len(value.shape), position))

    # --- the named operations have at most one batch, M, N and K dimension each ---

    def named(self):
        a, b, out = map(set, self.letters)
        roles = {"b": a & b & out, "m": (a & out) - b, "n": (b & out) - a, "k": (a & b) - out}
        wanted = tuple("".join(r for r in text if roles[r]) for text in ("bmk", "bkn", "bmn"))
        if wanted not in NAMED or len(roles["b"]) > 1:
            return self.emit(self.letters, self.values, "contract")
        # The order of the dimensions that are collapsed into one must be the same everywhere.
        order = {r: "".join(l for l in self.letters[2 if r in "bmn" else 0] if l in roles[r]) for r in "bmnk"}
        turns = [len(wanted[2]) > 1 and self.builder.chance(0.4) for _ in wanted]
        flat = [self.flatten(v, t, w, order, turn) for v, t, w, turn in zip(self.values, self.letters, wanted, turns)]
        init = self.init and self.flatten(self.init, self.letters[2], wanted[2], order, False)[0]
        result = self.emit([flat[0][1], flat[1][1], wanted[2]], [flat[0][0], flat[1][0]], "named", init)
        return self.unflatten(result, wanted[2], order)

    def flatten(self, value, text, target, order, turn):
        """`value` with the dimensions of `target`; with `turn`, its matrices transposed."""
        if turn:
            target = target[:-2] + target[:-3:-1]
        value = self.builder.transpose(value, [text.index(l) for r in target for l in order[r]])
        groups = self.groups(target, order)
        shape = [math.prod(value.shape[i] for i in group) for group in groups]
        return self.builder.reshape(value, shape, groups), target

    def groups(self, target, order):
        groups, position = [], 0
        for r in target:
            groups.append(range(position, position + len(order[r])))
            position += len(order[r])
        return groups

    def unflatten(self, value, target, order):
        full = "".join(order[r] for r in target)
        value = self.builder.reshape(value, [self.sizes[l] for l in full], self.groups(target, order))
        return self.builder.transpose(value, [full.index(l) for l in self.letters[2]])

    def emit(self, letters, values, style, init="own"):
        init = self.init if init == "own" else init
        sizes = {l: n for text, value in zip(letters, values) for l, n in zip(text, value.shape)}
        loops = sorted(sizes, key="bmnk".find) if style == "named" else [*self.builder.rng.permutation(sorted(sizes))]
        shape = [sizes[l] for l in letters[2]]
        body = (self.builder.chance(0.3), self.builder.chance(0.3)) if style == "generic" else (False, False)
        return self.builder.add(
            "contract",
            [*values, *([init] if init else [])],
            shape,
            self.dtype,
            style,
            letters=tuple(letters),
            loops="".join(loops),
            flipped=body,
            **self.tags,
        )


def unit_groups(rank, position):
    """Groups that put the dimension at `position`, of size 1, together with a neighbour."""
    if rank == 1:
        return []
    first = max(position - 1, 0)
    return [[d] for d in range(first)] + [[first, first + 1]] + [[d] for d in range(first + 2, rank)]
