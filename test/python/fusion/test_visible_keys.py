# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Keys that a mask hides from all rows of a block are left out, and every result has the bits of the program."""
import re
import subprocess

import numpy as np
import pytest
from attention import Attention, widen

from harness import F32, Program, assert_same_bits, random_generator

TOKENS = 320
HIDDEN = ["%hidden = arith.cmpi ugt, %jx, %ix : index"]


def added(number, hidden=HIDDEN):
    """The mask as an addend of the scores."""
    return [*hidden, f"%number = arith.constant {number} : f32", "%m = arith.select %hidden, %number, %zero : f32", "%v = arith.addf %t, %m : f32"]


def chosen(number, hidden=HIDDEN):
    """The mask as a choice between the scores and a number."""
    return [*hidden, f"%number = arith.constant {number} : f32", "%v = arith.select %hidden, %number, %t : f32"]


IN_I32 = ["%i32 = arith.index_cast %ix : index to i32", "%j32 = arith.index_cast %jx : index to i32"]
WINDOW = ["%later = arith.cmpi ugt, %jx, %ix : index", "%c40 = arith.constant 40 : index", "%end = arith.addi %jx, %c40 : index",
          "%old = arith.cmpi ult, %end, %ix : index", "%hidden = arith.ori %later, %old : i1"]
LOWEST = "0xFF7FFFFF"
INFINITE = "0xFF800000"
#: Lines from the scaled score %t to the masked one %v; and which keys row i sees: from i + the first number on, and before
#: i + the second one; None where there is no first or no end.
MASKS = {
    "chosen": (chosen(INFINITE), (None, 1)),
    "chosen lowest": (chosen(LOWEST), (None, 1)),
    "chosen -1e9": (chosen("-1.0e9"), (None, 1)),
    "added": (added(INFINITE), (None, 1)),
    "added lowest": (added(LOWEST), (None, 1)),
    "added -1e9": (added("-1.0e9"), (None, 1)),
    # Scores beyond -1e4 are possible: keys of such a mask may be seen.
    "added -1e4": (added("-1.0e4"), (None, None)),
    "in i32": (chosen(INFINITE, ["%i32 = arith.index_cast %ix : index to i32", "%j32 = arith.index_cast %jx : index to i32",
                                 "%seen = arith.cmpi sge, %i32, %j32 : i32", "%true = arith.constant true", "%hidden = arith.xori %seen, %true : i1"]), (None, 1)),
    "ahead": (chosen(INFINITE, ["%c17 = arith.constant 17 : index", "%last = arith.addi %ix, %c17 : index", "%hidden = arith.cmpi ugt, %jx, %last : index"]), (None, 18)),
    # Row 0 sees no key: its maximum is the mask, and nothing is proved.
    "before": (chosen(INFINITE, ["%hidden = arith.cmpi uge, %jx, %ix : index"]), (None, None)),
    "window": (chosen(INFINITE, ["%later = arith.cmpi ugt, %jx, %ix : index", "%c40 = arith.constant 40 : index", "%end = arith.addi %jx, %c40 : index",
                                 "%old = arith.cmpi ult, %end, %ix : index", "%hidden = arith.ori %later, %old : i1"]), (-40, 1)),
    "only old ones": (chosen(INFINITE, ["%c40 = arith.constant 40 : index", "%end = arith.addi %jx, %c40 : index", "%hidden = arith.cmpi ult, %end, %ix : index"]), (-40, None)),
    # As JAX and PyTorch write windows: by differences, of two's complement.
    "window of differences": (chosen(LOWEST, [*IN_I32, "%far = arith.subi %i32, %j32 : i32", "%c100 = arith.constant 100 : i32", "%zero32 = arith.constant 0 : i32",
                                              "%early = arith.cmpi slt, %far, %zero32 : i32", "%old = arith.cmpi sge, %far, %c100 : i32", "%hidden = arith.ori %early, %old : i1"]), (-99, 1)),
    "window on both sides": (added("-1.0e9", [*IN_I32, "%far = arith.subi %i32, %j32 : i32", "%behind = arith.subi %j32, %i32 : i32", "%distance = arith.maxsi %far, %behind : i32",
                                              "%c24 = arith.constant 24 : i32", "%hidden = arith.cmpi sgt, %distance, %c24 : i32"]), (-24, 25)),
    "window added": (added(INFINITE, WINDOW), (-40, 1)),
    "window added -1e4": (added("-1.0e4", WINDOW), (None, None)),
    "distance": (chosen(INFINITE, [*IN_I32, "%far = arith.subi %i32, %j32 : i32", "%distance = math.absi %far : i32", "%c2 = arith.constant 2 : i32",
                                   "%hidden = arith.cmpi sgt, %distance, %c2 : i32"]), (-2, 3)),
    "all but the first key of the last row": (chosen(INFINITE, ["%c318 = arith.constant 318 : index", "%end = arith.addi %jx, %c318 : index", "%hidden = arith.cmpi ult, %end, %ix : index"]), (-318, None)),
    # Row 0 sees no key: its maximum is the mask.
    "window before": (chosen(INFINITE, ["%later = arith.cmpi uge, %jx, %ix : index", "%c40 = arith.constant 40 : index", "%end = arith.addi %jx, %c40 : index",
                                        "%old = arith.cmpi ult, %end, %ix : index", "%hidden = arith.ori %later, %old : i1"]), (None, None)),
    "every other key": (chosen(INFINITE, ["%c2 = arith.constant 2 : index", "%odd = arith.remui %jx, %c2 : index", "%c0 = arith.constant 0 : index", "%hidden = arith.cmpi ne, %odd, %c0 : index"]), (None, None)),
    "softcap": (["%c50 = arith.constant 50.0 : f32", "%part = arith.divf %t, %c50 : f32", "%bent = math.tanh %part : f32", "%capped = arith.mulf %bent, %c50 : f32",
                 *HIDDEN, "%v = arith.select %hidden, %lowest, %capped : f32"], (None, 1)),
    "slopes": (["%i32 = arith.index_cast %ix : index to i32", "%j32 = arith.index_cast %jx : index to i32", "%far = arith.subi %j32, %i32 : i32",
                "%distance = arith.sitofp %far : i32 to f32", "%slope = arith.constant 0.25 : f32", "%slanted = arith.mulf %distance, %slope : f32",
                "%sum = arith.addf %t, %slanted : f32", *HIDDEN, "%v = arith.select %hidden, %lowest, %sum : f32"], (None, 1)),
    # Integers that wrap: keys from 128 on are before key 0 in i8, those of late rows in i32.
    "in i8": (chosen(INFINITE, ["%i8 = arith.index_cast %ix : index to i8", "%j8 = arith.index_cast %jx : index to i8", "%seen = arith.cmpi sge, %i8, %j8 : i8",
                                "%true = arith.constant true", "%hidden = arith.xori %seen, %true : i1"]), (None, None)),
    "wraps in i32": (chosen(INFINITE, ["%i32 = arith.index_cast %ix : index to i32", "%j32 = arith.index_cast %jx : index to i32", "%most = arith.constant 2147483400 : i32",
                                       "%i = arith.addi %i32, %most : i32", "%j = arith.addi %j32, %most : i32", "%hidden = arith.cmpi slt, %i, %j : i32"]), (None, None)),
    # -inf becomes the lowest FP8 number, which the scale behind it brings near the scores.
    "cast to FP8": ([*HIDDEN, "%c9 = arith.constant 9.0 : f32", "%bent = math.tanh %t : f32", "%capped = arith.mulf %bent, %c9 : f32",
                     "%masked8 = arith.select %hidden, %lowest, %capped : f32", "%narrow = arith.truncf %masked8 : f32 to f8E4M3FN",
                     "%back = arith.extf %narrow : f8E4M3FN to f32", "%small = arith.constant 0.01 : f32", "%v = arith.mulf %back, %small : f32"], (None, None)),
    "not of this key": (chosen(INFINITE, ["%c300 = arith.constant 300 : index", "%later = arith.cmpi ugt, %jx, %ix : index", "%other = arith.cmpi ne, %jx, %c300 : index",
                                          "%hidden = arith.andi %later, %other : i1"]), (None, 301)),
}


class Masked(Attention):
    """Attention in f32 with one of MASKS."""

    def __init__(self, rng, lines, heads=2, sink=None):
        super().__init__(rng, "small")
        self.lines, self.sink_dims = lines, sink
        self.mask, self.scale, self.divides, self.guards, self.inverts = "none", 0.25, False, False, False
        self.sizes = {"b": 1, "h": heads, "g": 1, "i": TOKENS, "j": TOKENS, "d": 16, "e": 8}
        self.operand = self.score = self.probability = self.result = F32

    def write_scores(self, code):
        lines, x = widen("%a0", "%w", self.score)
        return code.elements("%masked", F32, [*lines, f"%t = arith.mulf {x}, %scale : f32", *self.lines], "%s")


def visible_keys(bin_dir, source):
    """The keys that the operations of the compiled program state, as in MASKS."""
    done = subprocess.run([bin_dir / "fp8-compile", source, "--recipe=none", "--emit=fusion", "-o", "-"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    aliases = dict(re.findall(r"^(#\w+) = affine_map<.*-> \((.*)\)>$", done.stdout, re.MULTILINE))
    found = [aliases[name].split(", ") for name in re.findall(r"visible_keys = (#\w+)", done.stdout)]
    distance = lambda text: int(text.removeprefix("d3").replace(" ", "") or 0) if text.startswith("d3") else None
    assert all(text.startswith("d3") or text == ("0", str(TOKENS))[place] for limits in found for place, text in enumerate(limits))
    return [(distance(first), distance(end)) for first, end in found]


def programs(bin_dir, tmp_path, program):
    made = {}
    for form in ("written", "fused"):
        (tmp_path / form).mkdir()
        required = ["--require-attention=.*"] if form == "fused" else []
        made[form] = Program(bin_dir, tmp_path / form, program.step(), "--recipe=none", f"--attention={form}", *required)
    return made


def compare(made, *arrays):
    expected, actual = made["written"].call("main", *arrays), made["fused"].call("main", *arrays)
    for one, other in zip(expected, actual, strict=True):
        assert_same_bits(other, one)
    return expected


@pytest.mark.parametrize("name", MASKS)
def test_masks(bin_dir, tmp_path, name):
    rng = random_generator(46, list(MASKS).index(name))
    lines, seen = MASKS[name]
    program = Masked(rng, lines)
    (tmp_path / "program.mlir").write_text(program.step())
    assert visible_keys(bin_dir, tmp_path / "program.mlir") == ([] if seen == (None, None) else [seen, seen])
    made = programs(bin_dir, tmp_path, program)
    results = compare(made, *program.arrays(rng, grad=True))
    assert "before" in name or all(np.isfinite(result).all() for result in results)


@pytest.mark.parametrize("number", [0.0, 1e7, 1e30, np.inf, -np.inf, np.nan], ids=str)
def test_sinks(bin_dir, tmp_path, number):
    """With a sink also a row that sees no key has a maximum, if the sink is within the bounds that the call checks."""
    rng = random_generator(52)
    program = Masked(rng, MASKS["before"][0], sink="h")
    (tmp_path / "program.mlir").write_text(program.step())
    assert visible_keys(bin_dir, tmp_path / "program.mlir") == [(None, 1)] * 2
    made = programs(bin_dir, tmp_path, program)
    arrays = program.arrays(rng, grad=True)
    assert arrays[4].shape == (2,)
    arrays[4][1] = number
    results = compare(made, *arrays)
    assert all(np.isfinite(result).all() for result in results) == np.isfinite(number)


class FromZero(Masked):
    """The maximum begins at zero: exponentials are of numbers that may all be far below it, and their sum may be zero."""

    def write_softmax(self, code, masked):
        top = code.reduce("%top", ["%v = arith.maximumf %out, %a0 : f32"], "%zero", masked)
        exps = code.elements("%exps", F32, ["%t = arith.subf %a0, %a1 : f32", "%v = math.exp %t : f32"], masked, top)
        return exps, top, code.reduce("%total", ["%v = arith.addf %out, %a0 : f32"], "%zero", exps)


def test_a_maximum_that_is_of_no_key(bin_dir, tmp_path):
    """Rows whose sum is zero divide by zero, also at hidden keys: all of them are NaN."""
    rng = random_generator(50)
    program = FromZero(rng, MASKS["chosen"][0])
    (tmp_path / "program.mlir").write_text(program.step())
    assert visible_keys(bin_dir, tmp_path / "program.mlir") == []
    made = programs(bin_dir, tmp_path, program)
    arrays = program.arrays(rng, grad=True)
    arrays[0], arrays[1] = np.abs(arrays[0]) * -30, np.abs(arrays[1]) * 30
    assert np.isnan(compare(made, *arrays)[0]).any()


@pytest.mark.parametrize("place", [0, TOKENS - 1])
@pytest.mark.parametrize("number", [np.nan, np.inf, 1e30, 0.0])
@pytest.mark.parametrize("argument", ["query", "key", "value", "weights"])
def test_numbers_beyond_the_proof(bin_dir, tmp_path, argument, number, place):
    """A NaN, an infinity or a number whose products are large reaches all rows of the program: then all keys count."""
    rng = random_generator(47)
    program = Masked(rng, MASKS["added"][0], heads=1)
    made = programs(bin_dir, tmp_path, program)
    arrays = program.arrays(rng, grad=True)
    position = ["query", "key", "value", "weights"].index(argument)
    dims = program.maps["output" if argument == "weights" else argument]
    index = tuple(place if d in "ij" else 0 for d in dims)
    arrays[position][index] = number
    results = compare(made, *arrays)
    if np.isnan(number) and argument == "value" and place == TOKENS - 1:
        assert np.isnan(results[0]).any(axis=None)


@pytest.mark.parametrize("number", [3e5, 60000.0])
def test_gradients_beyond_f16(bin_dir, tmp_path, number):
    """Products of gradients and values that are rounded to f16 are infinite from 65,520 on."""
    rng = random_generator(51)
    program = Masked(rng, MASKS["chosen"][0])
    program.score = np.dtype(np.float16)
    made = programs(bin_dir, tmp_path, program)
    arrays = program.arrays(rng, grad=True)
    arrays[2][tuple(TOKENS - 1 if d == "j" else 0 for d in program.maps["value"])] = number
    compare(made, *arrays)


def test_small_numbers(bin_dir, tmp_path):
    """Rows whose sums underflow have the same numbers."""
    rng = random_generator(48)
    program = Masked(rng, MASKS["chosen"][0])
    made = programs(bin_dir, tmp_path, program)
    arrays = [array * np.float32(1e-30) for array in program.arrays(rng, grad=True)]
    expected, actual = made["written"].call("main", *arrays), made["fused"].call("main", *arrays)
    for one, other in zip(expected, actual, strict=True):
        np.testing.assert_array_equal(other, one)  # zeros of both signs are equal
