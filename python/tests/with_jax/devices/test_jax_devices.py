# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Several devices: what runs within shard_map and pmap, and what is refused (checks of jax_two_devices.py)."""

import json
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("jax")

SCRIPT = pathlib.Path(__file__).with_name("jax_two_devices.py")
NAMES = [
    "arguments_over_several_devices_are_refused",
    "one_device_of_two",
    "shard_map_of_apply",
    "amaxes_of_parts_are_combined",
    "amaxes_are_combined_by_the_emulator_too",
    "calls_that_devices_take_together_are_not_measured",
    "gradients_of_a_step_are_those_of_the_device",
    "scans_and_independent_calls",
    "amaxes_of_some_devices_are_refused",
    "shard_map_of_a_function",
    "results_vary_over_the_devices",
    "pmap_of_apply",
    "devices_inside_of_a_step_are_errors_at_the_line",
]


@pytest.fixture(scope="module")
def failures():
    done = subprocess.run([sys.executable, SCRIPT, *NAMES], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", NAMES)
def test_with_two_devices(failures, name):
    assert name not in failures, failures[name]
