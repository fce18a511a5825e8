# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One training step, written in several ways, has the same sites, roles and state.

Three microbatches in a loop or unrolled, forward and backward as one function or two; names as
JAX writes them, in call sites, in attributes, or no names at all.
"""
import json

import numpy as np
import pytest
from graphs.check import check_model
from graphs.model import Activation, Branch, Linear, Model, Options, Residual

from harness import load

LAYERS = [
    Activation("scale"),
    Linear(8, "embed/fc", bias=True),
    Residual([Linear(12, "h0/up", turned=True), Activation("leaky"), Linear(8, "h0/down", forms=("named",) * 3)]),
    Branch([Linear(6, "h1/gate"), Linear(6, "h1/up", forms=("swap+contract",) * 3)], combine="mul"),
    Linear(5, "head", frozen=True),
]


@pytest.fixture(scope="module")
def compile_step(bin_dir, tmp_path_factory):
    """Sites with their roles, columns, and the state after three steps; checked on the way."""

    def call(**options):
        folder = tmp_path_factory.mktemp("step")
        model = Model(seed=8, layers=LAYERS, lead=(6,), features=7, microbatches=3, options=Options(), **options)
        check_model(model, bin_dir, folder)
        manifest, state = json.loads((folder / "manifest.json").read_text()), load(folder / "state")
        columns = [(tuple(c["sites"]), c["tensor"], c["format"]) for c in manifest["state"]["columns"]]
        history = dict(zip(columns, state["amax_history"].T.tolist()))
        assert len(history) == len(columns)
        return [(site["site"], site["role"]) for site in manifest["sites"]], history

    return call


@pytest.fixture(scope="module")
def looped(compile_step):
    return compile_step(looped=True)


def test_the_step_is_what_it_is_meant_to_be(looped):
    sites, history = looped
    names = ["embed/fc", "h0/up", "h0/down", "h1/gate", "h1/up", "head"]
    assert [name for name, role in sites if role == "fprop"] == names
    assert sorted(name for name, role in sites if role == "wgrad") == sorted(names[:-1])
    assert sorted(name for name, role in sites if role == "dgrad") == sorted(names[1:])
    assert all(np.count_nonzero(rows) == 3 for rows in history.values())


def test_microbatches_one_after_the_other(looped, compile_step):
    sites, history = compile_step(looped=False)
    assert set(sites) == set(looped[0])
    assert len(sites) == 3 * len(looped[0])
    assert history == looped[1]


@pytest.mark.slow
@pytest.mark.parametrize("pair", ["loss", "result"])
def test_forward_and_backward_as_two_functions(compile_step, pair):
    """The gradients are results: a pair does not update its weights."""
    sites, history = compile_step(looped=True, update="gradients")
    of_pair, history_of_pair = compile_step(pair=pair, update="gradients")
    assert set(of_pair) == set(sites)
    assert len(of_pair) == 3 * len(sites)
    assert history_of_pair == history


@pytest.mark.slow
@pytest.mark.parametrize("names", ["calls", "attributes", "none"])
def test_names_change_no_role(looped, compile_step, names):
    sites, history = compile_step(looped=True, names=names)
    forward = [name for name, role in looped[0] if role == "fprop"]
    if names == "none":  # sites have the names of their weights, in the order of the products
        own = [name for name, role in sites if role == "fprop"]
        assert len(set(own)) == len(set(forward))
        rename = dict(zip(own, forward)).__getitem__
        sites = [(rename(name), role) for name, role in sites]
        history = {(tuple(sorted(map(rename, s))), *rest): rows for (s, *rest), rows in history.items()}
    assert sites == looped[0]
    assert history == {(tuple(sorted(s)), *rest): rows for (s, *rest), rows in looped[1].items()}
