# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs for the CPU, compiled and run by the command-line tools."""

import pytest
from safetensors.numpy import load_file, save_file


@pytest.fixture
def execute(run, tmp_path):
    """execute(program, inputs, steps): the results of the last step, by index."""

    def call(program, inputs, steps=1):
        library, source, target = tmp_path / "main.so", tmp_path / "in.safetensors", tmp_path / "out.safetensors"
        done = run("fp8-compile", "-", "-o", library, "--recipe=none", stdin=program)
        assert done.returncode == 0, done.stderr
        save_file({str(index): array for index, array in enumerate(inputs)}, source)
        done = run("fp8-run", library, f"--inputs={source}", f"--outputs={target}", f"--steps={steps}")
        assert done.returncode == 0, done.stderr
        return load_file(target)

    return call
