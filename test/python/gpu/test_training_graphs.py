# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random training steps on the emulator, for every chip, compared with numpy."""

import pytest
from emulated_tools import CHIPS, tools  # noqa: F401
from graphs.check import check_model
from graphs.generate import generate
from graphs.model import to_text

from harness import SEED

QUICK, ALL = 4, 100


def check_graph(seed, tools, folder):
    chip = CHIPS[seed % len(CHIPS)]
    model = generate(seed)
    if model.options.recipe == "mxfp8" and chip in ("sm_89", "sm_90a"):  # these have no MX tensor cores
        chip = "sm_120a"
    print(f"FP8_TEST_SEED={SEED}, model {seed} on {chip}\n{to_text(model)}")
    check_model(model, tools(chip), folder)


@pytest.mark.parametrize("seed", range(SEED, SEED + QUICK))
def test_some_graphs(seed, tools, tmp_path):
    check_graph(seed, tools, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEED + QUICK, SEED + ALL))
def test_many_graphs(seed, tools, tmp_path):
    check_graph(seed, tools, tmp_path)
