# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Data parallelism of fp8.torch.train_step: two processes that torchrun starts, beside one process, and beside fp8-run's ranks."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
import torch
import torch_ranks
from conftest import HERE, ROOT
from torch_steps import MLP

sys.path.append(str(ROOT / "test" / "python"))
from harness import assert_same_bits, load, save  # noqa: E402

RANKS = 2
WORKER = HERE / "with_torch" / "devices" / "torch_ranks.py"


def run_ranks(folder, *cases, seconds=60):
    """Starts both ranks, and returns their exit codes and what they wrote; what the cases returned is in the folder."""
    paths = [str(ROOT / "python" / "src"), str(HERE / "with_torch")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={RANKS}", WORKER, folder, str(seconds), *cases]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500)
    return done.returncode, done.stdout + done.stderr


def results(folder, case):
    return [torch.load(folder / f"{case}.{rank}") if (folder / f"{case}.{rank}").exists() else None for rank in range(RANKS)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of the results of all cases that both ranks survive, one after the other in one pair of processes."""
    path = tmp_path_factory.mktemp("ranks")
    status, output = run_ranks(path, *(case for case in torch_ranks.CASES if not re.match("rank_1_(is|never)", case)))
    assert status == 0, output
    return path


def assert_same(found, expected, but=("library",)):
    assert found.keys() == expected.keys()
    for name in found.keys() - {*but}:
        if isinstance(found[name], torch.Tensor):
            assert_same_bits(found[name].numpy(), expected[name].numpy())
        else:
            assert found[name] == expected[name], name


@pytest.mark.parametrize("case", ["delayed", "mlp", "draws_and_statistics", "on_emulator"])
def test_models_losses_and_scales_stay_equal(folder, case):
    assert_same(*results(folder, case))


@pytest.mark.parametrize("recipe", ["none", "current", "delayed", "casts"])
def test_equal_batches_give_the_single_run(folder, recipe):
    for many, one in results(folder, f"equal_{recipe}"):
        assert_same(many, one)


def test_the_means_are_those_of_the_ranks_bit_for_bit_and_nearly_those_of_the_whole_batch(folder):
    torch.manual_seed(0)
    initial = dict(MLP().named_parameters())
    (found, first, second, whole), _ = results(folder, "own_and_whole")
    assert found["losses"] == [np.float32(first["losses"][0] + second["losses"][0]) * np.float32(0.5)]
    for name in initial:
        if name.startswith("down"):  # Batch norm behind it takes statistics of each rank's part.
            begin = initial[name].detach()
            single = [(begin - run[name]) / torch_ranks.RATE for run in (first, second)]
            torch.testing.assert_close((begin - found[name]) / torch_ranks.RATE, (single[0] + single[1]) / 2, rtol=1e-5, atol=1e-5)
    for name in ("norm.running_mean", "norm.running_var"):
        torch.testing.assert_close(found[name], (first[name] + second[name]) * 0.5, rtol=0, atol=0)
    torch.testing.assert_close(found["norm.running_mean"], whole["norm.running_mean"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case, kind", [("delayed", torch_ranks.Shifted), ("mlp", MLP)])
def test_the_bits_are_those_of_fp8_run(folder, tmp_path, case, kind):
    """fp8-run cuts whole batches for its ranks, and goes on from the tensors that the model begins with."""
    found, _ = results(folder, case)
    steps = [torch_ranks.batches(rank) for rank in range(RANKS)]
    whole = [[torch.cat([steps[rank][i][part] for rank in range(RANKS)]).numpy() for i in range(torch_ranks.STEPS)] for part in (0, 1)]
    torch.manual_seed(0)
    model = kind()
    inputs = {name: t.detach().numpy() for name, t in [*model.named_parameters(), *model.named_buffers()]}
    inputs |= {"shift": model.shift.numpy()} if kind is torch_ranks.Shifted else {}
    inputs |= {"lr0": np.float32(torch_ranks.RATE), "batch0": np.stack(whole[0]), "batch1": np.stack(whole[1])}
    save(tmp_path / "inputs", inputs)
    command = [f"{os.environ['FP8_TOOLS']}/bin/fp8-run", found["library"], f"--inputs={tmp_path / 'inputs'}", f"--steps={torch_ranks.STEPS}", "--zero-missing"]
    command += ["--stream=batch0=batch0", "--stream=batch1=batch1", f"--ranks={RANKS}", f"--save-state={tmp_path / 'state'}", "--with-carry"]
    done = subprocess.run([*command, f"--outputs={tmp_path / 'outputs'}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    saved, outputs = load(tmp_path / "state"), load(tmp_path / "outputs")
    names = [name for name in inputs if f"carry.{name}" in saved]
    assert len(names) >= 2
    for name in names:
        assert_same_bits(found[name].numpy(), saved[f"carry.{name}"])
    for name in ("scale", "amax_history"):
        assert_same_bits(found[f"state.0.{name}"].numpy(), saved[name])
    assert_same_bits(outputs[max(outputs, key=int)], np.float32(found["losses"][-1]))


def test_machines_communicate_by_tcp_with_the_same_bits(folder):
    assert_same(results(folder, "across_machines")[0], results(folder, "delayed")[0])


def test_a_group_of_one_process_is_a_step_without_others(folder):
    for alone, single in results(folder, "subgroup"):
        assert_same(alone, single)


def test_a_rank_that_fails_is_an_error_of_all(folder):
    first, second = results(folder, "rank_1_fails")
    assert second[0] == "TypeError: input 1 of the step is of type str, not a tensor"
    assert first[0] == "RunError: entry 'main' failed: rank 1 failed: " + second[0]
    assert all("rank 1 failed: TypeError: input 1 of the step" in later for later in (first[1], second[1]))


@pytest.mark.parametrize("case, reason", [
    ("other_options", "RunError: the ranks run different programs: .*on rank 0, .*on rank 1"),
    ("other_weights", "RunError: the ranks begin with different values .*: down.weight .float32.4, 16., hash .* on rank 0, down.weight .* on rank 1"),
])  # fmt: skip
def test_ranks_that_disagree_are_errors_that_name_the_difference(folder, case, reason):
    for error in results(folder, case):
        assert re.match(reason, error), error


def test_other_sizes_are_an_error(folder):
    for errors in results(folder, "other_sizes"):
        assert re.match("RunError: .*different", errors[0]), errors[0]


def test_a_rank_that_cannot_compile_tells_the_others(folder):
    first, second = results(folder, "other_programs")
    assert second.startswith("UnsupportedError: ") and "inv" in second
    assert first.startswith("RunError: ") and "rank 1 failed: UnsupportedError: " in first and "inv" in first


def test_a_rank_that_is_late_or_missing_is_named(tmp_path):
    run_ranks(tmp_path, "rank_1_is_late", "rank_1_never_comes", seconds=6)  # enough for both to begin on a busy machine
    (error, seconds), _ = results(tmp_path, "rank_1_is_late")
    assert re.match("RunError: entry 'main' failed: rank 1 did not arrive at all_reduce .* within 6 s", error) and 5.5 < seconds < 9
    assert results(tmp_path, "rank_1_never_comes")[0].startswith("RunError: rank 1 did not come within 6 s: ")


def test_a_rank_that_is_killed_ends_the_wait_of_the_others(tmp_path):
    status, output = run_ranks(tmp_path, "rank_1_is_killed", seconds=60)
    assert status != 0 and "Signal 9" in output
    (error, seconds), _ = results(tmp_path, "rank_1_is_killed")
    assert re.match("RunError: entry 'main' failed: rank 1 did not arrive at all_reduce .*: the process is gone", error) and seconds < 10


def test_the_group_is_one_of_torch_distributed():
    with pytest.raises(TypeError, match="data_parallel takes a process group of torch.distributed, as .* after init_process_group.., not True"):
        torch_ranks.make(True)
