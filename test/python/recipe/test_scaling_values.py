# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Delayed and current scaling by value on every target, against numerics/reference.py: random histories with
every option, scales from hostile amaxes, casts of hostile tensors."""
import itertools

import numpy as np
import pytest
from numerics import casts, reference
from numerics.conversions import DTYPES
from numerics.formats import BF16, F16, FP8, SINGLE

from harness import F32, Program, assert_same_bits, random_generator, tensor_type

TARGETS = {"cpu": ["--target=cpu"], **{chip: [f"--target={chip}"] for chip in ("sm_89", "sm_90a", "sm_100a", "sm_120a")}}
COUNT = 40
# Every column once, some again; the last two are not named at all.
COLUMNS = [*range(COUNT - 2), *range(0, COUNT - 2, 3), *range(12)]
HISTORIES = list(itertools.product([1, 2, 5], ["max", "most_recent"], [0, 3], [False, True], [False, True]))


def format_of(column):
    return FP8[column % 2]


def history_entry(index, rows, algo, margin, finite, mask):
    scale, history = tensor_type([COUNT], F32), tensor_type([rows, COUNT], F32)
    amaxes, names = tensor_type([len(COLUMNS)], F32), ", ".join(format_of(c).name for c in COLUMNS)
    options = f"margin = {margin}, amax_history_len = {rows}, amax_compute_algo = {algo}"
    options += ", ignore_non_finite = true" * finite + ", executed_mask = true" * mask
    return f"""
func.func @history{index}(%s: {scale}, %h: {history}, %a: {amaxes}) -> ({scale}, {history}) {{
  %s1, %h1 = fp8.update_amax_history recipe(#fp8.delayed_scaling<{options}>)
      columns {COLUMNS} formats [{names}] ins(%a : {amaxes}) outs(%s, %h : {scale}, {history}) -> {scale}, {history}
  return %s1, %h1 : {scale}, {history}
}}"""


CURRENT = {"plain": {}, "power": {"power_2_scale": True}, "eps": {"eps": 1e-3}, "both": {"eps": 0.25, "power_2_scale": True}}
SHAPES = [(1, 1), (37, 65), (130, 257)]


def current_entry(name, options, fmt, source, shape):
    """amax, scale, cast in both layouts, from one tensor."""
    x, q, t = (tensor_type(s, DTYPES[f]) for s, f in ((shape, source), (shape, fmt), (shape[::-1], fmt)))
    text = ", ".join(f"{key} = {str(value).lower()}" for key, value in options.items())
    recipe = f"#fp8.current_scaling<{text}>" if text else "#fp8.current_scaling"
    return f"""
func.func @{name}(%x: {x}) -> ({q}, {t}, tensor<f32>, tensor<f32>, tensor<f32>) {{
  %e = tensor.empty() : tensor<f32>
  %d = tensor.empty() : {q}
  %dt = tensor.empty() : {t}
  %a = fp8.amax ins(%x : {x}) outs(%e : tensor<f32>) -> tensor<f32>
  %s = fp8.compute_scale recipe({recipe}) format({fmt.name}) ins(%a : tensor<f32>) outs(%e : tensor<f32>) -> tensor<f32>
  %q, %qt, %i, %r = fp8.quantize record_amax ins(%x : {x}) scale(%s : tensor<f32>)
      outs(%d, %dt, %e, %e : {q}, {t}, tensor<f32>, tensor<f32>) {{transposition = array<i64: 1, 0>}} -> {q}, {t}, tensor<f32>, tensor<f32>
  return %q, %qt, %i, %a, %r : {q}, {t}, tensor<f32>, tensor<f32>, tensor<f32>
}}"""


def current_cases():
    """(options, format, source, shape): every pair of neighbours, not the whole product."""
    cycle = zip(itertools.cycle(FP8), itertools.cycle([SINGLE, BF16, F16]), itertools.cycle(SHAPES))
    return [(options, *rest) for options, rest in zip([*CURRENT] * 3, itertools.islice(cycle, 1, None))]


def shared_out(count):
    """(target, index): everything on the CPU, and each on one of the chips."""
    chips = list(TARGETS)[1:]
    return [("cpu", i) for i in range(count)] + [(chips[i % len(chips)], i) for i in range(count)]


@pytest.fixture(scope="module")
def programs(bin_dir, tmp_path_factory):
    compiled = {}

    def program(target):
        if target not in compiled:
            text = [history_entry(i, *HISTORIES[i]) for of, i in shared_out(len(HISTORIES)) if of == target]
            cases = enumerate(current_cases())
            text += [current_entry(f"current{i}", CURRENT[options], *rest) for i, (options, *rest) in cases]
            folder = tmp_path_factory.mktemp("scaling")
            compiled[target] = Program(bin_dir, folder, "\n".join(text), "--recipe=none", *TARGETS[target])
        return compiled[target]

    return program


def amaxes(rng, count, mask=False):
    """Amaxes of all magnitudes, with zeros, Inf, NaN, and with a mask sites that did not run."""
    values = 10.0 ** rng.uniform(-46, 39, count)
    values = np.where(rng.random(count) < 0.5, 10.0 ** rng.uniform(-3, 3, count), values)
    special = rng.choice([0, 0, np.inf, np.nan, 1e-45, -1 if mask else 0], count)
    return np.where(rng.random(count) < 0.4, special, values).astype(np.float32)


@pytest.mark.parametrize("target, index", shared_out(len(HISTORIES)))
def test_history(programs, target, index):
    rows, algo, margin, finite, mask = HISTORIES[index]
    rng = random_generator(80, index)
    scale, history = np.abs(amaxes(rng, COUNT)), amaxes(rng, rows * COUNT).reshape(rows, COUNT)
    scale = np.where(np.isfinite(scale), scale, 1).astype(np.float32)
    history[0, rng.random(COUNT) < 0.7] = 0
    recorded = amaxes(rng, len(COLUMNS), mask)
    new_scale, new_history = scale.copy(), history.copy()
    for column in set(COLUMNS):
        of_column = recorded[[i for i, c in enumerate(COLUMNS) if c == column]]
        new_scale[column], new_history[:, column] = reference.update_column(
            scale[column], history[:, column], of_column, format_of(column), margin, algo, finite, mask)
    got_scale, got_history = programs(target).call(f"history{index}", scale, history, recorded)
    assert_same_bits(got_scale, new_scale)
    assert_same_bits(got_history, new_history)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("index", range(len(current_cases())))
def test_current_scaling(programs, target, index):
    options, fmt, source, shape = current_cases()[index]
    rng = random_generator(81, index)
    hostile = casts.hostile(rng, shape, DTYPES[source])
    finite = np.where(np.isfinite(hostile), hostile, np.zeros(shape, DTYPES[source]))
    for x in (hostile, finite, finite * DTYPES[source].type(0.001)):
        got = programs(target).call(f"current{index}", x)
        data, inverse, amax = reference.quantize_current(x, fmt, **CURRENT[options])
        expected = [data.view(DTYPES[fmt]), data.T.view(DTYPES[fmt]), inverse, amax, amax]
        for result, wanted in zip(got, expected):
            assert_same_bits(result, wanted)
