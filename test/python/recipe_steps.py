# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Helpers of the tests of recipe parameters: the steps of net.py, and single updates of a history.

Whole steps are in f32, in which every FP8 product agrees with numpy bit for bit.
"""
import numpy as np
import pytest

import reference
from harness import E4M3, E5M2, F32, MLIR_NAMES, Program, assert_same_bits, load, random_generator, tensor_type
from net import Delayed, initial_tensors, train

INF, NAN, f32 = np.inf, np.nan, np.float32

@pytest.fixture(scope="module")
def text(source_dir):
    return (source_dir / "test/python/inputs/net.mlir").read_text()


@pytest.fixture
def make(bin_dir, tmp_path, text):
    def compile(*options, functions=""):
        return Program(bin_dir, tmp_path, text + functions, *options)

    return compile


def check_steps(program, recipe, tensors=None, steps=3):
    """Weights and state after each of some steps, bit for bit."""
    tensors = tensors or initial_tensors()
    w1, w2 = tensors["w1"], tensors["w2"]
    outputs, state = program.folder / "outputs", program.folder / "state"
    for count in range(1, steps + 1):
        w1, w2, _ = train(recipe, w1, w2, tensors["x"], tensors["t"])
        save = [f"--save-state={state}"] if isinstance(recipe, Delayed) else []
        program.run("main", tensors, f"--steps={count}", f"--outputs={outputs}", *save)
        results = load(outputs)
        assert_same_bits(results["0"], w1)
        assert_same_bits(results["1"], w2)
        if save:
            assert_same_bits(load(state)["scale"], recipe.scale)
            assert_same_bits(load(state)["amax_history"], recipe.history)


ROWS, COLUMNS = 4, [0, 1, 2, 3, 3, 4, 5, 5]
FORMATS = [[E4M3, E5M2][c % 2] for c in COLUMNS]


def update_entry(name, recipe, count=len(COLUMNS)):
    scale, history, amaxes = tensor_type([6], F32), tensor_type([ROWS, 6], F32), tensor_type([count], F32)
    names = ", ".join(MLIR_NAMES[fmt] for fmt in FORMATS)
    return f"""
func.func @{name}(%s: {scale}, %h: {history}, %a: {amaxes}) -> ({scale}, {history}) {{
  %s1, %h1 = fp8.update_amax_history recipe({recipe}) columns {COLUMNS} formats [{names}]
      ins(%a : {amaxes}) outs(%s, %h : {scale}, {history}) -> {scale}, {history}
  return %s1, %h1 : {scale}, {history}
}}"""


def random_amaxes(rng, shape):
    special = rng.choice([0, 0, INF, NAN, 1e-37, 3e38], shape)
    return np.where(rng.random(shape) < 0.4, special, np.exp(rng.uniform(-20, 20, shape))).astype(F32)


def check_updates(program, entry, **options):
    rng = random_generator(70)
    for _ in range(5):
        scale, history = np.exp(rng.uniform(-5, 5, 6)).astype(F32), random_amaxes(rng, [ROWS, 6])
        history[0] *= rng.random(6) < 0.3
        amaxes = random_amaxes(rng, len(COLUMNS))
        expected = reference.update(scale, history, COLUMNS, amaxes, FORMATS, **options)
        for actual, wanted in zip(program.call(entry, scale, history, amaxes), expected):
            assert_same_bits(actual, wanted)
