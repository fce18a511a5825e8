# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory of calls on the CPU for what lies between the kernels: it stays from call to call, and goes with the programs."""

import concurrent.futures
import gc
import mmap
import os
import pathlib
import resource
import subprocess
import sys

import pytest

jax = pytest.importorskip("jax")
import fp8  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

WIDE = jnp.asarray(np.random.default_rng(0).normal(size=(8, 4096)) * 0.1, jnp.float32)


def through_a_wide_layer(x):
    """Its hidden layer has 64 MB for 4,096 rows."""
    return (jnp.tanh(x @ WIDE) @ WIDE.T).sum(0)


def rows(count, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=(count, 8)), jnp.float32)


def compiled(count):
    """The step for so many rows, and the bytes of its workspace."""
    step = fp8.jax.jit(through_a_wide_layer, recipe="none")
    description = step.lower(rows(count)).compile().library.entries["main"].description
    return step, description["workspace_bytes"]


def resident_bytes():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


def test_memory_stays_from_call_to_call():
    step, workspace = compiled(4096)
    x = rows(4096)
    wanted = np.asarray(step(x))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    results = [np.asarray(step(x)) for _ in range(4)]
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    assert all(np.array_equal(result, wanted) for result in results)
    # New memory is a fault for each page, in every call.
    assert workspace >= 2**25 and faults * mmap.PAGESIZE < workspace / 4


def share_and_free():
    sizes = (2048, 4096, 3072)
    programs = [compiled(size) for size in sizes]
    wanted = [np.asarray(jax.jit(through_a_wide_layer)(rows(size))) for size in sizes]
    largest = max(workspace for _, workspace in programs)
    before = resident_bytes()
    for size, (step, _), want in zip(sizes, programs, wanted):
        np.testing.assert_allclose(step(rows(size)), want, rtol=1e-4, atol=1e-3)
    assert largest / 2 < resident_bytes() - before < 1.5 * largest
    # The programs that are left need less.
    del step, programs[1]
    jax.clear_caches()
    gc.collect()
    assert resident_bytes() - before < 0.9 * largest
    del programs
    jax.clear_caches()
    gc.collect()
    assert resident_bytes() - before < largest / 4


def test_programs_share_it_and_free_it():
    """In a process of its own, which has no other programs."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, __file__], env=environment, check=True)


def test_calls_of_several_threads_have_their_own():
    step, _ = compiled(1024)
    inputs = [rows(1024, seed) for seed in range(6)]
    wanted = [np.asarray(step(x)) for x in inputs]
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        for want, got in zip(wanted * 5, threads.map(step, inputs * 5)):
            np.testing.assert_array_equal(got, want)


if __name__ == "__main__":
    share_and_free()
