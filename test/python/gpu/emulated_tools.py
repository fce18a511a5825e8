# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tools for tests that call fp8-compile and fp8-run: for a chip, on the emulator, with sums in the order of the program."""

import stat

import pytest

CHIPS = ["sm_89", "sm_90a", "sm_100a", "sm_120a"]

# Remarks of the compiler, on copies that kernels need, are none of the errors that tests look for.
COMPILE = """#!/bin/sh
errors=$(mktemp)
"{bin}/fp8-compile" "$@" --target={chip} --ptxas=none --order=program --strict-accumulation 2>"$errors"
status=$?
[ $status = 0 ] || cat "$errors" >&2
rm "$errors"
exit $status
"""
RUN = """#!/bin/sh
FP8EMU_SUMS=korder exec "{bin}/fp8-run" "$@" --device=emulator
"""


def write_tools(build_dir, folder, chip):
    """A folder of tools whose target is `chip` and whose device is the emulator."""
    (folder / "fp8-opt").symlink_to(build_dir / "bin/fp8-opt")
    for name, text in {"fp8-compile": COMPILE, "fp8-run": RUN}.items():
        (folder / name).write_text(text.format(bin=build_dir / "bin", chip=chip))
        (folder / name).chmod(stat.S_IRWXU)
    return folder


@pytest.fixture(scope="session")
def tools(build_dir, tmp_path_factory):
    made = {}

    def of(chip):
        if chip not in made:
            made[chip] = write_tools(build_dir, tmp_path_factory.mktemp("tools"), chip)
        return made[chip]

    return of


@pytest.fixture(scope="session")
def bin_dir(tools):
    return tools("sm_89")
