# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Amaxes that are not finite, the scale of the first step, histories of another length, by value."""
import numpy as np
import pytest

import reference
from harness import E4M3, F32, Program, assert_same_bits, load
from net import Delayed, forward, initial_tensors, train
from recipe_steps import INF, NAN, ROWS, check_steps, check_updates, f32, make, text, update_entry  # noqa: F401 (fixtures)


def test_ignored_amaxes_by_hand(make):
    update = lambda history, *amaxes, **options: reference.update_column(
        f32(5), np.array(history, F32), amaxes, E4M3, ignore_non_finite=True, **options
    )
    # Not entered: the column is as if its site had not run.
    scale, history = update([0, 8, 2, 1], INF)
    assert scale == 5 and history.tolist() == [0, 8, 2, 1]
    # Several are one, their maximum: the finite ones of them do not count either.
    for amaxes in ([INF, 4], [4, INF], [4, NAN, 4]):
        scale, history = update([0, 8, 2, 1], *amaxes)
        assert scale == 5 and history.tolist() == [0, 8, 2, 1]
    # An Inf that the state holds already counts as 0, in row 0 (staged for this step) as in the others.
    for staged in (0, INF):
        scale, history = update([staged, INF, 2, 1], 4)
        assert scale == 112 and history.tolist() == [0, 2, 1, 4]
    scale, history = update([3, INF, 2, 1], INF)
    assert scale == f32(448) / f32(3) and history.tolist() == [0, 2, 1, 3]


def test_ignored_amaxes(bin_dir, tmp_path):
    recipe = f"amax_history_len = {ROWS}, ignore_non_finite = true"
    text = update_entry("largest", f"#fp8.delayed_scaling<{recipe}>")
    text += update_entry("newest", f"#fp8.delayed_scaling<{recipe}, amax_compute_algo = most_recent>")
    program = Program(bin_dir, tmp_path, text, "--recipe=none")
    check_updates(program, "largest", ignore_non_finite=True)
    check_updates(program, "newest", ignore_non_finite=True, algo="most_recent")


@pytest.mark.slow
def test_an_inf_leaves_no_trace_in_a_step(make):
    program = make("--amax-history-len=3", "--ignore-non-finite=true")
    tensors = initial_tensors()
    tensors["x"][3, 5] = INF
    recipe = Delayed(program, rows=3, ignore_non_finite=True)
    check_steps(program, recipe, tensors)
    assert np.isfinite(recipe.history).all()
    assert recipe.scale[recipe.column(("net/l1", "input"))] == 1
    assert recipe.scale[recipe.column(("net/l1", "weight"))] != 1


@pytest.mark.parametrize("margin", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_the_first_step_from_the_tensors(make, margin):
    program = make("--amax-history-len=3", "--init=current", f"--margin={margin}")
    check_steps(program, Delayed(program, rows=3, init="current", margin=margin), steps=4)


@pytest.mark.slow
def test_small_gradients_survive_the_first_step(make):
    """The purpose of the option: with scale 1 the gradients are below the smallest E5M2 number."""
    tensors = initial_tensors()
    tensors["t"], tensors["w2"] = tensors["t"] * f32(1e-6), tensors["w2"] * f32(1e-6)
    moved = {}
    for init in ("one", "current"):
        program = make("--amax-history-len=3", f"--init={init}")
        check_steps(program, Delayed(program, rows=3, init=init), tensors, steps=1)
        moved[init] = (load(program.folder / "outputs")["1"] != tensors["w2"]).any()
    assert moved == {"one": False, "current": True}


@pytest.mark.slow
def test_evaluation_of_an_untrained_state_starts_from_the_tensors(make):
    program, tensors = make("--amax-history-len=3", "--init=current"), initial_tensors()
    inputs = {name: tensors[name] for name in ("w1", "w2", "x")}
    program.run("evaluate", inputs, f"--outputs={program.folder / 'outputs'}", f"--save-state={program.folder / 'state'}")
    recipe = Delayed(program, rows=3, init="current")
    assert_same_bits(load(program.folder / "outputs")["0"], forward(recipe, **inputs)[-1])
    assert (load(program.folder / "state")["amax_history"] == 0).all()


@pytest.mark.slow
def test_a_state_with_another_history_length(bin_dir, tmp_path_factory, text):
    long, short = (
        Program(bin_dir, tmp_path_factory.mktemp("rows"), text, f"--amax-history-len={rows}") for rows in (5, 3)
    )
    tensors, state = initial_tensors(), short.folder / "state"
    for saver, reader in ((long, short), (short, long)):
        saved, rows = saver.folder / "saved", reader.manifest["state"]["tensors"][1]["shape"][0]
        saver.run("main", tensors, "--steps=4", f"--save-state={saved}")
        before = load(saved)
        past = before["amax_history"]
        for history in ("newest", "oldest"):
            recipe = Delayed(reader, rows=rows)
            recipe.scale, kept = before["scale"].copy(), min(rows, len(past)) - 1
            if history == "newest":
                recipe.history[rows - kept :] = past[len(past) - kept :]
            else:
                recipe.history[1 : kept + 1] = past[1 : kept + 1]
            train(recipe, *tensors.values())
            reader.run("main", tensors, f"--state={saved}", f"--history={history}", f"--save-state={state}")
            assert_same_bits(load(state)["scale"], recipe.scale)
            assert_same_bits(load(state)["amax_history"], recipe.history)
