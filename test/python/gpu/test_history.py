# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The kernel of fp8.update_amax_history bit for bit against a model in numpy. Any NaN is as good as another.

import numpy
import pytest
from compiled import CHIPS

FORMATS = {"f8E4M3FN": 448.0, "f8E5M2": 57344.0}
F32 = numpy.float32


def finite(x, otherwise, ignore):
    return x if not ignore or x < numpy.inf else F32(otherwise)


def update(amaxes, scale, history, columns, formats, algorithm="max", margin=0, ignore=False, mask=False):
    """One update, column by column; changes scale and history."""
    none = F32(-1 if mask else 0)
    for c in set(columns):
        entries = [i for i, column in enumerate(columns) if column == c]
        recorded = none
        for i in entries:
            recorded = numpy.maximum(recorded, amaxes[i])
        staged = history[0, c] if history[0, c] != 0 else none
        current = numpy.maximum(finite(staged, none, ignore), finite(recorded, none, ignore))
        if current == none:
            continue
        amax = current
        if algorithm == "max":
            for past in history[1:, c]:
                amax = numpy.fmax(amax, finite(past, 0, ignore))
        if 0 < amax < numpy.inf:
            with numpy.errstate(over="ignore"):
                quotient = F32(FORMATS[formats[entries[0]]] * 2.0**-margin) / amax
            scale[c] = min(quotient, numpy.finfo(F32).max)
        if len(history) > 1:
            history[1:-1, c] = history[2:, c]
            history[-1, c] = current
        history[0, c] = 0


def source(arch, recipe, rows, columns, formats, n):
    return """module attributes {fp8.target = #fp8.chip<"%s">} {
  func.func @f(%%a: memref<%dxf32>, %%s: memref<%dxf32>, %%h: memref<%dx%dxf32>) {
    fp8.update_amax_history recipe(#fp8.delayed_scaling<amax_history_len = %d%s>) columns %s formats [%s]
        ins(%%a : memref<%dxf32>) outs(%%s, %%h : memref<%dxf32>, memref<%dx%dxf32>)
    return
  }
}""" % (arch, len(columns), n, rows, n, rows, recipe, list(columns), ", ".join(formats), len(columns), n, rows, n)


RECIPES = {
    "": {},
    ", amax_compute_algo = most_recent": {"algorithm": "most_recent"},
    ", margin = 3": {"margin": 3},
    ", ignore_non_finite = true": {"ignore": True},
    ", executed_mask = true": {"mask": True},
    ", ignore_non_finite = true, executed_mask = true": {"ignore": True, "mask": True},
}
SPECIAL = [0.0, numpy.inf, numpy.nan, 1e-37, 1e-42, 3e38]


def numbers(rng, shape):
    x = numpy.abs(rng.standard_normal(shape)).astype(F32)
    chosen = rng.random(shape) < 0.15
    x[chosen] = rng.choice(SPECIAL, shape)[chosen]
    return x


def check(compile, arch, recipe, rows, n, seed):
    print("seed", seed)
    rng = numpy.random.default_rng(seed)
    columns = [int(c) for c in rng.integers(0, n, max(1, n - n // 4))]
    chosen = rng.choice(list(FORMATS), n)
    formats = [chosen[c] for c in columns]
    function = compile(source(arch, recipe, rows, columns, formats, n), arch)
    amaxes, scale, history = numbers(rng, len(columns)), numbers(rng, n), numbers(rng, (rows, n))
    history[0] = numpy.where(rng.random(n) < 0.2, history[0], F32(0))
    amaxes[rng.random(len(columns)) < 0.1] = -1 if "mask" in recipe else 0
    scale[numpy.isnan(scale)] = 1
    _, got_scale, got_history = function(amaxes, scale, history)
    update(amaxes, scale, history, columns, formats, **RECIPES[recipe])
    assert (got_scale.view(numpy.uint32) == scale.view(numpy.uint32)).all()
    both_nan = numpy.isnan(got_history) & numpy.isnan(history)
    differ = (got_history.view(numpy.uint32) != history.view(numpy.uint32)) & ~both_nan
    assert not differ.any(), numpy.argwhere(differ)[:5]


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("rows, n", [(1, 3), (2, 1), (4, 40), (17, 33), (300, 5)])
def test_update(compile, recipe, rows, n):
    check(compile, "sm_89", recipe, rows, n, rows * 100 + n)


@pytest.mark.parametrize("arch", CHIPS[1:])
def test_other_chips(compile, arch):
    check(compile, arch, "", 130, 70, 5)


def test_worked_column(compile):
    """The examples of the dialect's documentation: [current, oldest … newest] = [3, 8, 2, 1]."""
    function = compile(source("sm_89", "", 4, [0], ["f8E4M3FN"], 1), "sm_89")
    history, scale = F32([[0], [8], [2], [1]]), F32([1])
    _, scale, history = function(F32([3]), scale, history)
    assert scale[0] == 56 and history[:, 0].tolist() == [0, 2, 1, 3]
    _, scale, history = function(F32([1]), scale, history)
    assert scale[0] == F32(448) / F32(3) and history[:, 0].tolist() == [0, 1, 3, 1]
    _, scale, history = function(F32([0]), scale, history)
    assert scale[0] == F32(448) / F32(3) and history[:, 0].tolist() == [0, 1, 3, 1]
