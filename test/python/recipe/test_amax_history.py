# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Delayed scaling by value: fp8.update_amax_history through compiled code.

First one column and its corner cases with every number written out, then random histories
against reference.py.
"""
import numpy as np
import pytest

import reference
from harness import E4M3, E5M2, F32, MLIR_NAMES, Program, assert_same_bits, load, random_generator, tensor_type

INF, NAN, F32_MAX = np.inf, np.nan, np.finfo(np.float32).max
COUNT = 12
# Columns 3 and 5 are recorded several times; 10 and 11 are not named at all.
COLUMNS = [7, 0, 1, 2, 3, 4, 5, 6, 8, 9, 3, 3, 5]
FORMATS = [[E4M3, E5M2][column % 2] for column in COLUMNS]
VARIANTS = [(rows, algo, margin) for rows in (1, 2, 3, 4, 9) for algo in ("max", "most_recent") for margin in (0, 2)]
VARIANTS.append((4, "max", -1))


def name_of(rows, algo, margin):
    return f"h{rows}_{algo}_{margin}".replace("-", "minus")


def update_entry(name, rows, algo, margin, columns, formats, carried=False, count=COUNT):
    scale, history = tensor_type([count], F32), tensor_type([rows, count], F32)
    amaxes, names = tensor_type([len(columns)], F32), ", ".join(MLIR_NAMES[fmt] for fmt in formats)
    alias = ["{tf.aliasing_output = %d : i32}" % i if carried else "" for i in (0, 1)]
    return f"""
func.func @{name}(%s: {scale} {alias[0]}, %h: {history} {alias[1]}, %a: {amaxes}) -> ({scale}, {history}) {{
  %s1, %h1 = fp8.update_amax_history
      recipe(#fp8.delayed_scaling<margin = {margin}, amax_history_len = {rows}, amax_compute_algo = {algo}>)
      columns {columns} formats [{names}] ins(%a : {amaxes}) outs(%s, %h : {scale}, {history}) -> {scale}, {history}
  return %s1, %h1 : {scale}, {history}
}}"""


@pytest.fixture(scope="module")
def program(bin_dir, tmp_path_factory):
    text = [update_entry(name_of(*variant), *variant, COLUMNS, FORMATS) for variant in VARIANTS]
    every = list(range(COUNT))
    for rows, algo, margin in [(1, "max", 0), (2, "max", 0), (4, "max", 0), (4, "most_recent", 0), (4, "max", 2)]:
        for fmt in (E4M3, E5M2):
            name = f"every_{MLIR_NAMES[fmt]}_" + name_of(rows, algo, margin)
            text.append(update_entry(name, rows, algo, margin, every, [fmt] * COUNT))
    text.append(update_entry("carried", 4, "max", 0, COLUMNS, FORMATS, carried=True))
    return Program(bin_dir, tmp_path_factory.mktemp("history"), "\n".join(text), "--recipe=none")


def update_columns(program, algo, margin, cases, fmt=E4M3):
    """Runs one update on columns given as (old scale, history, amax): (scale, history) of each."""
    rows = len(cases[0][1])
    scale, history, amaxes = np.ones(COUNT, F32), np.zeros((rows, COUNT), F32), np.zeros(COUNT, F32)
    for c, (old, column, amax) in enumerate(cases):
        scale[c], history[:, c], amaxes[c] = old, column, amax
    name = f"every_{MLIR_NAMES[fmt]}_" + name_of(rows, algo, margin)
    scale, history = program.call(name, scale, history, amaxes)
    return [(scale[c], history[:, c].tolist()) for c in range(len(cases))]


def f32(value):
    return np.float32(value)


def test_worked_column(program):
    (step,) = update_columns(program, "max", 0, [(1, [0, 8, 2, 1], 3)])
    assert step == (56, [0, 2, 1, 3])
    (step,) = update_columns(program, "max", 0, [(step[0], step[1], 1)])
    assert step == (f32(448) / f32(3), [0, 1, 3, 1])


def test_worked_column_counts_the_staged_amax(program):
    # Row 0 holds what an earlier cast of this step recorded: the larger of the two is current.
    staged, smaller, none = update_columns(program, "max", 0, [(1, [3, 8, 2, 1], 2), (1, [1, 8, 2, 1], 3), (1, [3, 8, 2, 1], 0)])
    assert staged == smaller == none == (56, [0, 2, 1, 3])


def test_worked_column_most_recent_and_margin(program):
    (step,) = update_columns(program, "most_recent", 0, [(1, [0, 8, 2, 1], 3)])
    assert step == (f32(448) / f32(3), [0, 2, 1, 3])
    (step,) = update_columns(program, "max", 2, [(1, [0, 8, 2, 1], 3)])
    assert step == (14, [0, 2, 1, 3])


def test_a_mask_tells_zero_from_nothing(bin_dir, tmp_path):
    """With an executed mask 0 is an amax; what did not run is negative."""
    recipe = lambda rest: f"#fp8.delayed_scaling<amax_history_len = 4, executed_mask = true{rest}>"
    texts = {name: update_entry(name, 4, "max", 0, [0, 1, 2, 3, 4, 5], [E4M3] * 6) for name in ("max", "most_recent", "finite")}
    plain = "#fp8.delayed_scaling<margin = 0, amax_history_len = 4, amax_compute_algo = max>"
    texts["max"] = texts["max"].replace(plain, recipe(""))
    texts["most_recent"] = texts["most_recent"].replace(plain, recipe(", amax_compute_algo = most_recent"))
    texts["finite"] = texts["finite"].replace(plain, recipe(", ignore_non_finite = true"))
    program = Program(bin_dir, tmp_path, "\n".join(texts.values()), "--recipe=none")
    scale, history = np.full(COUNT, 7, F32), np.zeros([4, COUNT], F32)
    history[:] = np.array([[0], [8], [2], [1]])
    history[0, 3] = 3  # staged by an earlier cast of the step
    amaxes = np.array([0, -1, 4, -1, INF, NAN], F32)
    rolled, kept = [0, 2, 1, 0], [0, 8, 2, 1]
    scales, histories = program.call("max", scale, history, amaxes)
    assert histories[:, :5].T.tolist() == [rolled, kept, [0, 2, 1, 4], [0, 2, 1, 3], [0, 2, 1, INF]]
    assert scales[:5].tolist() == [56, 7, 56, 56, 7] and np.isnan(histories[3, 5])
    scales, histories = program.call("most_recent", scale, history, amaxes)
    assert histories[:, :4].T.tolist() == [rolled, kept, [0, 2, 1, 4], [0, 2, 1, 3]]
    assert scales[:4].tolist() == [7, 7, 112, f32(448) / f32(3)]  # 0: the old scale is kept
    scales, histories = program.call("finite", scale, history, amaxes)
    assert histories[:, :6].T.tolist() == [rolled, kept, [0, 2, 1, 4], [0, 2, 1, 3], kept, kept]


def test_zero_leaves_a_column_untouched(program):
    for algo in ("max", "most_recent"):
        (step,) = update_columns(program, algo, 0, [(7, [0, 8, 2, 1], 0)])
        assert step == (7, [0, 8, 2, 1])


def test_inf_is_rotated_in_and_freezes_the_scale_until_it_leaves(program):
    scale, history = 5, [0, 8, 2, 1]
    seen = []
    for amax in [INF, 1, 1, 1]:
        ((scale, history),) = update_columns(program, "max", 0, [(scale, history, amax)])
        seen.append((float(scale), history))
    assert seen == [(5, [0, 2, 1, INF]), (5, [0, 1, INF, 1]), (5, [0, INF, 1, 1]), (5, [0, 1, 1, 1])]
    ((scale, history),) = update_columns(program, "max", 0, [(scale, history, 1)])
    assert (scale, history) == (448, [0, 1, 1, 1])
    (step,) = update_columns(program, "most_recent", 0, [(5, [0, 8, 2, 1], INF)])
    assert step == (5, [0, 2, 1, INF])


def test_nan_is_rotated_in_but_not_counted(program):
    ((scale, history),) = update_columns(program, "max", 0, [(1, [0, 8, 2, 1], NAN)])
    assert scale == 56 and history[:3] == [0, 2, 1] and np.isnan(history[3])
    # In later steps, too.
    ((scale, history),) = update_columns(program, "max", 0, [(1, [0, 2, NAN, 1], 4)])
    assert scale == 112 and np.isnan(history[1]) and history[2:] == [1, 4]
    ((scale, history),) = update_columns(program, "most_recent", 0, [(9, [0, 8, 2, 1], NAN)])
    assert scale == 9 and history[:3] == [0, 2, 1] and np.isnan(history[3])
    # Nothing but NaN: there is no amax to take a scale from.
    ((scale, history),) = update_columns(program, "max", 0, [(9, [0, 0, 0, 0], NAN)])
    assert scale == 9 and np.isnan(history[3])


def test_overflowing_quotient(program):
    ((scale, history),) = update_columns(program, "max", 0, [(1, [0, 0, 0, 0], 1e-37)])
    assert scale == F32_MAX and history == [0, 0, 0, f32(1e-37)]
    assert 0 < reference.scale_inv(scale) < np.finfo(np.float32).tiny


def test_history_of_one_row(program):
    steps = update_columns(program, "max", 0, [(1, [0], 7), (3, [0], 0), (3, [0], INF), (1, [14], 7)])
    assert steps == [(64, [0]), (3, [0]), (3, [0]), (32, [0])]
    ((scale, history),) = update_columns(program, "max", 0, [(3, [0], NAN)])
    assert (scale, history) == (3, [0])


def test_history_of_two_rows(program):
    steps = update_columns(program, "max", 0, [(1, [0, 14], 7), (1, [0, 3.5], 7), (2, [0, 14], 0)])
    assert steps == [(32, [0, 7]), (64, [0, 7]), (2, [0, 14])]


def test_format_decides_the_numerator(program):
    (step,) = update_columns(program, "max", 0, [(1, [0, 8, 2, 1], 3)], fmt=E5M2)
    assert step == (7168, [0, 2, 1, 3])


def random_amaxes(rng, count):
    values = np.exp(rng.uniform(-30, 30, count))
    special = rng.choice([0, 0, 0, INF, NAN, 1e-37, 1e-45, 3e38], count)
    return np.where(rng.random(count) < 0.3, special, values).astype(F32)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: name_of(*variant))
def test_random_histories(program, variant):
    rows, algo, margin = variant
    rng = random_generator(10, rows, margin + 1)
    for _ in range(3):
        scale = np.exp(rng.uniform(-5, 5, COUNT)).astype(F32)
        history = np.stack([random_amaxes(rng, COUNT) for _ in range(rows)])
        history[0] *= rng.random(COUNT) < 0.3
        amaxes = random_amaxes(rng, len(COLUMNS))
        expected = reference.update(scale, history, COLUMNS, amaxes, FORMATS, margin, algo)
        actual = program.call(name_of(*variant), scale, history, amaxes)
        assert_same_bits(actual[0], expected[0])
        assert_same_bits(actual[1], expected[1])


# Histories that the CPU walks by groups of rows: whole groups and rows left over, one group, less than one.
LONG = [(1024, 10), (1024, 1), (1023, 3), (600, 7), (515, 1), (514, 1), (131, 1), (130, 1), (67, 33), (66, 16), (65, 127), (70, 128)]


def test_long_histories_of_few_columns(bin_dir, tmp_path):
    names = {shape: "h{}x{}".format(*shape) for shape in LONG}
    entries = []
    for rows, count in LONG:
        columns = list(range(0, count, 2)) + [0]  # every other column stays as it is
        entries.append(update_entry(names[rows, count], rows, "max", 0, columns, [E4M3] * len(columns), count=count))
    program = Program(bin_dir, tmp_path, "\n".join(entries), "--recipe=none")
    for rows, count in LONG:
        columns = list(range(0, count, 2)) + [0]
        rng = random_generator(13, rows, count)
        scale = np.exp(rng.uniform(-5, 5, count)).astype(F32)
        history = np.stack([random_amaxes(rng, count) for _ in range(rows)])
        history[0] *= rng.random(count) < 0.3
        amaxes = random_amaxes(rng, len(columns))
        for is_finite in (False, True):  # an infinite amax hides all others
            old = np.where(np.isfinite(history) | (not is_finite), history, np.float32(1))
            expected = reference.update(scale, old, columns, amaxes, [E4M3] * len(columns), 0, "max")
            actual = program.call(names[rows, count], scale, old, amaxes)
            assert_same_bits(actual[0], expected[0])
            assert_same_bits(actual[1], expected[1])


def test_columns_without_a_record_stay(program):
    rng = random_generator(11)
    scale, history = np.full(COUNT, 3, F32), rng.random((4, COUNT)).astype(F32)
    history[0] = 0
    after_scale, after_history = program.call(name_of(4, "max", 0), scale, history, np.zeros(len(COLUMNS), F32))
    assert_same_bits(after_scale, scale)
    assert_same_bits(after_history, history)


def test_twenty_steps_in_place(program):
    """The state as a user carries it: 20 updates in one run, in the caller's memory."""
    rng = random_generator(12)
    steps = np.stack([random_amaxes(rng, len(COLUMNS)) for _ in range(20)])
    scale, history = np.ones(COUNT, F32), np.zeros((4, COUNT), F32)
    outputs = program.folder / "outputs"
    program.run(
        "carried",
        {"0": scale, "1": history, "amaxes": steps},
        "--steps=20",
        "--stream=2=amaxes",
        f"--outputs={outputs}",
    )
    for amaxes in steps:
        scale, history = reference.update(scale, history, COLUMNS, amaxes, FORMATS)
    results = load(outputs)
    assert_same_bits(results["0"], scale)
    assert_same_bits(results["1"], history)
