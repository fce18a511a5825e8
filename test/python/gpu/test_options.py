# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random training steps with random options have the same bits, or the same error, on the CPU and on the emulator."""

import pytest
from options import Drawn, check

from harness import SEED

QUICK, ALL = 3, 100


def compare(seed, build_dir, folder):
    drawn = Drawn(seed)
    print(drawn)
    try:
        check(drawn, build_dir / "bin", folder)
    finally:
        print("compiled with", *drawn.options)  # those that the compiler advised to drop are gone


@pytest.mark.parametrize("seed", range(SEED, SEED + QUICK))
def test_some_options(seed, build_dir, tmp_path):
    compare(seed, build_dir, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEED + QUICK, SEED + ALL))
def test_many_options(seed, build_dir, tmp_path):
    compare(seed, build_dir, tmp_path)
