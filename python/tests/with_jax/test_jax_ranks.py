# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of fp8.jax within shard_map over two processes of jax.distributed (jax_ranks.py), beside two devices of one process."""

import os
import pathlib
import re
import socket
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("jax")

SCRIPT = pathlib.Path(__file__).with_name("jax_ranks.py")
CASES = ["shard_map_of_processes", "across_machines", "other_options"]
IN_ONE_PROCESS = """
import sys
import jax
import jax_ranks as ranks
import numpy as np
np.savez(sys.argv[1], **ranks.trained(ranks.make(), jax.make_mesh((2,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))))
"""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("ranks")
    port = free_port()
    processes = [
        subprocess.Popen([sys.executable, SCRIPT, str(port), str(rank), path, *CASES], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for rank in range(2)
    ]
    try:
        for process in processes:
            output, _ = process.communicate(timeout=200)
            assert process.returncode == 0, output
    finally:
        for process in processes:
            process.kill()
    return path


def results(folder, case):
    return [dict(np.load(folder / f"{case}.{rank}.npz")) for rank in range(2)]


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def test_states_and_weights_are_those_of_two_devices_of_one_process(folder, tmp_path):
    # XLA's own code, and with it its roundings, depends on its flags.
    environment = {**os.environ, "XLA_FLAGS": os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"}
    subprocess.run([sys.executable, "-c", IN_ONE_PROCESS, tmp_path / "one.npz"], cwd=SCRIPT.parent, check=True, env=environment)
    first, second = results(folder, "shard_map_of_processes")
    assert_same(second, first)
    assert_same(first, dict(np.load(tmp_path / "one.npz")))
    assert first["losses"][-1] < first["losses"][0] and not np.all(first["scale"] == 1)


def test_machines_communicate_by_tcp_with_the_same_bits(folder):
    assert_same(results(folder, "across_machines")[0], results(folder, "shard_map_of_processes")[0])


def test_processes_that_disagree_are_an_error_that_names_the_difference(folder):
    for found in results(folder, "other_options"):
        assert re.match("RunError: the ranks run different programs: .* on rank 0, .* on rank 1", str(found["error"])), found["error"]
