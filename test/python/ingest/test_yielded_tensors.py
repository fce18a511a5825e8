# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors that branches yield keep their values when what they came from is written over, before, within or after the branch.

A random program has some tensors, all read at the end, and operations that make one of earlier ones: an element written,
a loop that writes all elements, a branch by a number whose regions yield earlier tensors or what they write into them.
numpy computes the same, where no two names share memory.
"""
import numpy as np
import pytest

from harness import F32, SEED, Program, assert_same_bits

SIZE, NUMBERS = 4, 3
TYPE = f"tensor<{SIZE}xf32>"


class Writer:
    """The text of a program, and its values for each number."""

    def __init__(self, seed):
        self.rng = np.random.default_rng([20261129, seed])
        self.count = 0

    def fresh(self):
        self.count += 1
        return f"%v{self.count}"

    def insert(self, tensors):
        source, place = self.rng.choice(list(tensors)), int(self.rng.integers(SIZE))
        name, constant = self.fresh(), self.fresh()
        lines = [f"{constant} = arith.constant {self.count}.0 : f32", f"{name} = tensor.insert {constant} into {source}[%i{place}] : {TYPE}"]
        value, written = self.count, tensors[source].copy()
        written[:, place] = value
        return lines, name, written

    def loop(self, tensors):
        source, other = (self.rng.choice(list(tensors)) for _ in range(2))
        name, inner = self.fresh(), self.fresh()
        lines = [
            f"{name} = scf.for %j = %i0 to %size step %i1 iter_args({inner} = {source}) -> {TYPE} {{",
            f"  {inner}x = tensor.extract {other}[%j] : {TYPE}",
            f"  {inner}y = arith.addf {inner}x, %half : f32",
            f"  {inner}z = tensor.insert {inner}y into {inner}[%j] : {TYPE}",
            f"  scf.yield {inner}z : {TYPE}",
            "}",
        ]
        return lines, name, tensors[other] + np.float32(0.5)

    def region(self, tensors, depth):
        """Some operations, and what is yielded: one of them, or a tensor from outside."""
        lines, known = [], dict(tensors)
        for _ in range(self.rng.integers(3)):
            more, name, value = self.operation(known, depth - 1)
            lines += more
            known[name] = value
        chosen = self.rng.choice(list(known))
        return ["  " + line for line in [*lines, f"scf.yield {chosen} : {TYPE}"]], known[chosen]

    def branch(self, tensors, depth):
        name, is_if = self.fresh(), self.rng.random() < 0.3
        cases = [int(self.rng.integers(NUMBERS))] if is_if else [int(n) for n in self.rng.permutation(NUMBERS)[: self.rng.integers(1, NUMBERS + 1)]]
        regions = [self.region(tensors, depth) for _ in range(len(cases) + 1)]
        value = regions[-1][1].copy()
        for number, (_, yielded) in zip(cases, regions):
            value[number] = yielded[number]
        if is_if:
            head = [f"{name}c = arith.cmpi eq, %number, %i{cases[0]} : index", f"{name} = scf.if {name}c -> {TYPE} {{"]
            return [*head, *regions[0][0], "} else {", *regions[1][0], "}"], name, value
        lines = [f"{name} = scf.index_switch %number -> {TYPE}"]
        for number, (text, _) in zip([*cases, None], regions):
            lines += ["default {" if number is None else f"case {number} {{", *text, "}"]
        return lines, name, value

    def operation(self, tensors, depth):
        makers = [self.insert, self.loop] + [lambda known: self.branch(known, depth)] * (2 if depth > 0 else 0)
        return makers[self.rng.integers(len(makers))](tensors)

    def program(self):
        """The text, and the values of all results for each number."""
        x = np.arange(1, SIZE + 1, dtype=F32)
        tensors = {"%x": np.tile(x, (NUMBERS, 1)), "%zeros": np.zeros((NUMBERS, SIZE), F32)}
        body = []
        for _ in range(6):
            lines, name, value = self.operation(tensors, 2)
            body += lines
            tensors[name] = value
        results = list(tensors)[1:]
        head = [f"%i{i} = arith.constant {i} : index" for i in range(SIZE)]
        head += [f"%size = arith.constant {SIZE} : index", "%zero = arith.constant 0.0 : f32", "%half = arith.constant 0.5 : f32",
                 f"%empty = tensor.empty() : {TYPE}", f"%zeros = linalg.fill ins(%zero : f32) outs(%empty : {TYPE}) -> {TYPE}",
                 "%integer = tensor.extract %n[] : tensor<i32>", "%number = arith.index_cast %integer : i32 to index"]  # fmt: skip
        types = ", ".join([TYPE] * len(results))
        text = "\n  ".join([f"func.func @main(%n: tensor<i32>, %x: {TYPE}) -> ({types}) {{", *head, *body, f"return {', '.join(results)} : {types}"])
        return text + "\n}\n", x, [tensors[name] for name in results]


def check(bin_dir, folder, seed):
    text, x, expected = Writer(seed).program()
    program = Program(bin_dir, folder, text, "--recipe=none")
    for number in range(NUMBERS):
        for got, want in zip(program.call("main", np.array(number, np.int32), x), expected):
            assert_same_bits(got, want[number])


@pytest.mark.parametrize("seed", [*range(12), *range(SEED, SEED + 2)])
def test_some_programs(bin_dir, tmp_path, seed):
    check(bin_dir, tmp_path, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12, 150))
def test_many_programs(bin_dir, tmp_path, seed):
    check(bin_dir, tmp_path, seed)
