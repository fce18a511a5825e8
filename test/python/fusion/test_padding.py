# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Masks of padding beside a causal one: keys are left out where the call finds that all rows see the first key, and every
result has the bits of the program, wherever the padding is."""
import numpy as np
import pytest
from attention import I32
from test_visible_keys import INFINITE, LOWEST, TOKENS, Masked, compare, programs, visible_keys

from harness import F32, random_generator

BOOL = np.dtype(np.bool_)
LATER = ["%later = arith.cmpi ugt, %jx, %ix : index"]
AT = ["%at = arith.index_cast %jx : index to i32"]


def chosen(lines, number=LOWEST):
    return [*LATER, *lines, "%hidden = arith.ori %later, %gone : i1", f"%number = arith.constant {number} : f32", "%v = arith.select %hidden, %number, %t : f32"]


#: Lines from the scaled score %t to the masked one %v; inputs %a1 and following: their types, their dimensions, what makes
#: them from the tokens that are there [b, j]; and the keys that row i sees, from i + the first number on and before i + the
#: second one, where the call finds that it may leave out others.
PADDINGS = {
    "tokens": (chosen(["%true = arith.constant true", "%gone = arith.xori %a1, %true : i1"]), [(BOOL, "bj", lambda t: t)], (None, 1)),
    "padding": (chosen(["%gone = arith.andi %a1, %a1 : i1"], INFINITE), [(BOOL, "jb", lambda t: ~t.T)], (None, 1)),
    "integers": (chosen(["%c0 = arith.constant 0 : i32", "%gone = arith.cmpi eq, %a1, %c0 : i32"]), [(I32, "bj", lambda t: t)], (None, 1)),
    "floats": (chosen(["%half = arith.constant 0.5 : f32", "%gone = arith.cmpf olt, %a1, %half : f32"]), [(F32, "bj", lambda t: t)], (None, 1)),
    "lengths": (chosen([*AT, "%gone = arith.cmpi sge, %at, %a1 : i32"]), [(I32, "b", lambda t: t.sum(1))], (None, 1)),
    "of each head": (chosen([*AT, "%gone = arith.cmpi sge, %at, %a1 : i32"]), [(I32, "bh", lambda t: np.stack([t.sum(1), t.sum(1)], 1))], (None, 1)),
    "tokens and lengths": (chosen([*AT, "%true = arith.constant true", "%behind = arith.cmpi sge, %at, %a2 : i32", "%no = arith.xori %a1, %true : i1",
                                   "%unseen = arith.ori %later, %no : i1", "%gone = arith.ori %unseen, %behind : i1"]),
                           [(BOOL, "bj", lambda t: t), (I32, "b", lambda t: t.sum(1))], (None, 1)),
    # Rows of padding see nothing: a softmax over equal numbers has all keys. Without padding there are none.
    "rows, too": (chosen(["%true = arith.constant true", "%both = arith.andi %a1, %a2 : i1", "%gone = arith.xori %both, %true : i1"]),
                  [(BOOL, "bj", lambda t: t), (BOOL, "bi", lambda t: t)], (None, 1)),
    # Late rows do not see the first key, and no other one if all those of their window are padding.
    "window": (chosen(["%c40 = arith.constant 40 : index", "%end = arith.addi %jx, %c40 : index", "%old = arith.cmpi ult, %end, %ix : index",
                       "%true = arith.constant true", "%no = arith.xori %a1, %true : i1", "%gone = arith.ori %old, %no : i1"]),
               [(BOOL, "bj", lambda t: t)], (-40, 1)),
    "window of lengths": (chosen(["%c40 = arith.constant 40 : index", "%end = arith.addi %jx, %c40 : index", "%old = arith.cmpi ult, %end, %ix : index",
                                  *AT, "%behind = arith.cmpi sge, %at, %a1 : i32", "%gone = arith.ori %old, %behind : i1"]),
                          [(I32, "b", lambda t: t.sum(1))], (-40, 1)),
    "window of all": (chosen([f"%all = arith.constant {TOKENS} : index", "%end = arith.addi %jx, %all : index", "%old = arith.cmpi ult, %end, %ix : index",
                              "%true = arith.constant true", "%no = arith.xori %a1, %true : i1", "%gone = arith.ori %old, %no : i1"]),
                      [(BOOL, "bj", lambda t: t)], (None, 1)),
    # A token that is there and not the first one is nothing that the call could ask for.
    "before tokens": (chosen(["%true = arith.constant true", "%c1 = arith.constant 1 : index", "%other = arith.cmpi ult, %jx, %c1 : index",
                              "%no = arith.xori %a1, %true : i1", "%gone = arith.ori %no, %other : i1"]), [(BOOL, "bj", lambda t: t)], None),
}  # fmt: skip


class Padded(Masked):
    """Two sequences and two heads."""

    def __init__(self, rng, lines, kinds):
        super().__init__(rng, lines)
        self.sizes["b"], self.kinds = 2, kinds

    def inputs(self):
        return [(f"%padding{n}", dtype, dims) for n, (dtype, dims, _) in enumerate(self.kinds)]

    def write_scores(self, code):
        return code.elements("%masked", F32, ["%t = arith.mulf %a0, %scale : f32", *self.lines], "%s", *(x[0] for x in self.inputs()))

    def arrays(self, rng, tokens):
        arrays = super().arrays(rng, grad=True)
        names = [name for name, _, _ in self.operands(grad=True) if name not in ("%max", "%sum")]
        for name, (dtype, _, make) in zip((x[0] for x in self.inputs()), self.kinds, strict=True):
            arrays[names.index(name)] = np.ascontiguousarray(make(tokens).astype(dtype))
        return arrays


def tokens_of(lengths, left=False):
    numbers = np.arange(TOKENS)[::-1] if left else np.arange(TOKENS)
    return np.array([numbers < length for length in lengths])


#: The tokens that are there [b, j].
TOKENS_THERE = {
    "all": tokens_of([TOKENS, TOKENS]),
    "padded on the right": tokens_of([200, 17]),
    "padded on the left": tokens_of([TOKENS, 100], left=True),
    "one": tokens_of([1, TOKENS]),
    "none": tokens_of([TOKENS, 0]),
    "every third": np.arange(2 * TOKENS).reshape(2, TOKENS) % 3 == 0,
}


@pytest.mark.parametrize("name", PADDINGS)
def test_padding(bin_dir, tmp_path, name):
    rng = random_generator(53, list(PADDINGS).index(name))
    lines, kinds, seen = PADDINGS[name]
    program = Padded(rng, lines, kinds)
    (tmp_path / "program.mlir").write_text(program.step())
    assert visible_keys(bin_dir, tmp_path / "program.mlir") == ([seen, seen] if seen else [])
    made = programs(bin_dir, tmp_path, program)
    for tokens in TOKENS_THERE.values():
        compare(made, *program.arrays(rng, tokens))
