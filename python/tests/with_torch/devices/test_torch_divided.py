# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parameters that torch.distributed.fsdp.fully_shard divides over two processes, beside whole ones: the same bits."""

import re

import pytest
import torch
import torch_divided
from test_torch_ranks import assert_same, results, run_ranks


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of the results of all cases, one after the other in one pair of processes."""
    path = tmp_path_factory.mktemp("divided")
    status, output = run_ranks(path, *torch_divided.CASES, seconds=120)
    assert status == 0, output
    return path


@pytest.mark.parametrize("case", [name for name in torch_divided.CASES if name.startswith("divided_")])
def test_all_values_have_the_bits_of_whole_parameters(folder, case):
    first, second = results(folder, case)
    assert_same(*first)
    assert_same(first[0], second[0])
    assert len(set(first[0]["losses"])) == torch_divided.STEPS


def test_a_rank_has_half_of_parameters_and_state(folder):
    for (part, report), (whole, _) in results(folder, "bytes_of_a_rank"):
        steps = 4 * 4  # of AdamW, a number for each parameter
        assert part - steps == (whole - steps) / 2
        assert re.search(r"all_gather of f8E4M3FN: 2, .* less than before the cast", report), report
        assert re.search(r"reduce_scatter mean of f32: 4,", report), report


def test_losses_are_those_of_fully_shard_itself(folder):
    for ours, theirs, shown in results(folder, "beside_eager"):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
        # An evaluation leaves the parameters whole, which is no other program.
        assert shown == "<fp8.torch.TrainStep FSDPPlain: 1 compiled>"


def test_training_goes_on_from_a_checkpoint(folder):
    for wanted, found in results(folder, "resumes"):
        assert found == wanted


REFUSED = {
    "no group": r"ValueError: '0.weight' is divided over a mesh of ranks: pass data_parallel=mesh.get_group\(\) to train_step",
    "another group": r"ValueError: '0.weight' is divided over other ranks than those of data_parallel: pass data_parallel=mesh.get_group\(\)",
    "a grid": r"UnsupportedError: '0.weight' is divided over a mesh of 2 dimensions: train_step takes parameters on one of one",
    "uneven": r"UnsupportedError: dimension 0 of '0.weight' is 63, which 2 ranks cannot divide evenly: leave its module out of fully_shard, or",
    "an optimizer": r"UnsupportedError: Adafactor computes with whole parameters, and '2.bias' is divided: use another optimizer, or fp8.torch.backend",
    "a list": r"UnsupportedError: fully_shard was given '0' in a list with other modules: call it for each of them, or for the module that has them",
    "a policy": r"UnsupportedError: fully_shard of '' has an mp_policy: leave it out, and pass autocast=torch.bfloat16 to train_step",
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(folder, case):
    for errors in results(folder, "refused"):
        assert re.search(REFUSED[case], errors[case]), errors[case]
