# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stock training steps on the ranks of fp8-run: data-parallel beside single runs, bit for bit."""

import os
import pathlib
import shutil
import subprocess

import numpy as np
import pytest
from networks import make_gpt, make_mlp
from ranks import combine
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from test_fp8_run_nccl import free_address

import reference
from harness import E4M3, E5M2, F32, Program, assert_same_bits, load, random_generator

RANKS = 4
RECIPES = {
    "none": ["--recipe=none"],
    "delayed": ["--recipe=delayed", "--amax-history-len=3"],
    "current": ["--recipe=current"],
    "mxfp8": ["--recipe=mxfp8"],
}
NETWORKS = {"mlp": make_mlp, "gpt": make_gpt}


class Pair:
    """A step for one rank, and the same data-parallel."""

    def __init__(self, network, recipe, bin_dir, folder, *options):
        self.network, self.folder = network, folder
        (folder / "single").mkdir()
        axis = "--data-parallel=dp:" + ",".join(network.batch(1, np.random.default_rng(0)))
        self.single = Program(bin_dir, folder / "single", network.text, *RECIPES[recipe], *options)
        self.parallel = Program(bin_dir, folder, network.text, *RECIPES[recipe], *options, axis)

    def step(self, program, inputs, state=None, ranks=(), save="state"):
        """One step, from a state file if there is one: the results, and the state with all carried tensors."""
        where = [] if state is None else [f"--state={state}"]
        path = program.folder / save
        program.run("main", inputs, *ranks, "--zero-missing", "--with-carry", f"--save-state={path}", f"--outputs={program.folder / 'outputs'}", *where)
        return load(program.folder / "outputs")


@pytest.fixture(scope="module", params=[
    ("mlp", "none"), ("mlp", "delayed"), ("mlp", "current"), pytest.param(("mlp", "mxfp8"), marks=pytest.mark.slow),
    ("gpt", "none"), *(pytest.param(("gpt", recipe), marks=pytest.mark.slow) for recipe in ("delayed", "current")),
], ids="-".join)  # fmt: skip
def pair(request, bin_dir, source_dir, tmp_path_factory):
    name, recipe = request.param
    return Pair(NETWORKS[name](source_dir), recipe, bin_dir, tmp_path_factory.mktemp(f"{name}-{recipe}"))


def test_equal_rows_give_the_single_run(pair):
    """With the same rows on every rank: losses, weights, moments and state of several steps."""
    parameters = pair.network.make_parameters(200)
    batch = pair.network.batch(3, random_generator(201))
    streams = {name: value.reshape(3, -1, *value.shape[1:]) for name, value in batch.items()}  # 3 steps
    options = ["--steps=3", "--zero-missing", "--with-carry", f"--print={pair.network.loss}", *(f"--stream={name}={name}" for name in streams)]
    expected = pair.single.run("main", {**parameters, **streams}, *options, f"--save-state={pair.folder / 'one'}")
    tiled = {name: np.concatenate([value] * RANKS, axis=1) for name, value in streams.items()}
    printed = pair.parallel.run("main", {**parameters, **tiled}, *options, f"--ranks={RANKS}", f"--save-state={pair.folder / 'many'}")
    assert printed == expected and len(printed.splitlines()) == 3
    one, many = load(pair.folder / "one"), load(pair.folder / "many")
    assert one.keys() == many.keys()
    for name, value in one.items():
        assert_same_bits(many[name], value)


def without_moments(path, moments):
    """Sets the moments of a state file to 0, so that those of the next step are gradients."""
    with safe_open(path, "np") as file:
        metadata = file.metadata()
    del metadata["fp8_checksum"]
    tensors = {name: value * 0 if name.startswith(f"carry.{moments}") else value for name, value in load_file(path).items()}
    save_file(tensors, path, metadata)


def check_state(manifest, before, after, alone):
    """The state after a step is that of the largest amaxes of all ranks."""
    for column in manifest["state"]["columns"]:
        i, fmt = column["index"], {"E4M3": E4M3, "E5M2": E5M2}[column["format"]]
        newest = max(state["amax_history"][-1, i] for state in alone)
        assert_same_bits(after["amax_history"][-1, i], newest)
        largest = max(newest, *before["amax_history"][1:, i])
        assert_same_bits(after["scale"][i], reference.delayed_scale(largest, fmt, old=before["scale"][i]))


def test_different_rows_give_the_mean_of_single_runs(pair):
    """Two steps, each from the state of the ranks: scales are common then, and FP8 is no exception."""
    network, state = pair.network, None
    inputs = network.make_parameters(202)
    names = [f"rank{rank}" for rank in range(RANKS)]
    for step in range(2):
        batch = network.batch(RANKS, random_generator(203, step))
        parts = [{name: np.split(value, RANKS)[rank] for name, value in batch.items()} for rank in range(RANKS)]
        singles = [pair.step(pair.single, {**inputs, **part}, state, save=name) for name, part in zip(names, parts)]
        outputs = pair.step(pair.parallel, {**inputs, **batch}, state, [f"--ranks={RANKS}"], save="rank{rank}")
        for index in [network.loss, *network.gradients]:
            assert_same_bits(outputs[str(index)], combine([single[str(index)] for single in singles], "mean"))
        assert len({(pair.folder / name).read_bytes() for name in names}) == 1  # every rank has the same
        after = load(pair.folder / "rank0")
        if "scale" in after:
            before = load(state) if state else {"scale": np.ones_like(after["scale"]), "amax_history": np.zeros_like(after["amax_history"])}
            check_state(pair.parallel.manifest, before, after, [load(pair.single.folder / name) for name in names])
        state, inputs = pair.folder / "state", {}
        shutil.copy(pair.folder / "rank0", state)
        without_moments(state, network.moments)


@pytest.mark.parametrize("name, recipe", [("mlp", "delayed"), pytest.param("gpt", "none", marks=pytest.mark.slow)])
def test_mpi_computes_what_local_ranks_do(bin_dir, source_dir, tmp_path, name, recipe):
    if not shutil.which("mpirun"):
        pytest.skip("Open MPI is not installed")
    pair = Pair(NETWORKS[name](source_dir), recipe, bin_dir, tmp_path)
    inputs = {**pair.network.make_parameters(204), **pair.network.batch(RANKS, random_generator(205))}
    options = ["--steps=2", "--zero-missing", "--with-carry", f"--print={pair.network.loss}"]
    printed = pair.parallel.run("main", inputs, *options, f"--ranks={RANKS}", f"--save-state={tmp_path / 'local'}")
    command = [bin_dir / "fp8-run", pair.parallel.library, f"--inputs={tmp_path / 'inputs'}", "--comm=mpi", f"--save-state={tmp_path / 'mpi'}", *options]
    launcher = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(RANKS)]
    done = subprocess.run([*launcher, *command], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, printed), done.stderr
    assert (tmp_path / "mpi").read_bytes() == (tmp_path / "local").read_bytes()


def test_a_site_that_runs_on_some_ranks(bin_dir, tmp_path):
    """Its columns have the largest amaxes of the ranks on which it ran, on all ranks alike; they rest where it ran on none."""
    text = (pathlib.Path(__file__).parents[1] / "inputs" / "gated_step.mlir").read_text()
    program = Program(bin_dir, tmp_path, text, "--recipe=delayed", "--amax-history-len=3", "--data-parallel=dp:x,gate")
    columns = {(c["sites"][0], c["tensor"]): c["index"] for c in program.manifest["state"]["columns"]}
    rng = random_generator(212)
    inputs = {name: rng.standard_normal([16, 32]).astype(F32) for name in "wu"}
    inputs["xs"] = rng.standard_normal([3, 8 * RANKS, 16]).astype(F32)
    inputs["gates"] = np.array([[1, -1, -1, 1], [-1, -1, -1, -1], [-1, 1, -1, -1]], F32)
    states = [{"carry.u": inputs["u"], "scale": np.ones(5, F32), "amax_history": np.zeros([3, 5], F32)}]
    for steps in (1, 2, 3):
        options = [f"--steps={steps}", "--stream=x=xs", "--stream=gate=gates", f"--ranks={RANKS}"]
        program.run("main", inputs, *options, "--with-carry", f"--save-state={tmp_path / 'state{rank}'}")
        assert len({(tmp_path / f"state{rank}").read_bytes() for rank in range(RANKS)}) == 1
        states.append(load(tmp_path / "state0"))
    for i, (before, after) in enumerate(zip(states, states[1:])):
        ran = [rank for rank in range(RANKS) if inputs["gates"][i, rank] > 0]
        parts = np.split(inputs["xs"][i], RANKS)
        assert_same_bits(after["amax_history"][-1, columns["base", "input"]], np.abs(inputs["xs"][i]).max())
        weight, gradient = columns["expert", "weight"], columns["expert", "grad_output"]
        if not ran:
            for name in ("scale", "amax_history"):
                assert_same_bits(after[name][..., [weight, gradient]], before[name][..., [weight, gradient]])
            continue
        scales = before["scale"][[columns["base", "input"], weight]]
        u = cast(before["carry.u"], scales[1])
        outputs = [np.abs(cast(parts[rank], scales[0]) @ u).max() for rank in ran]
        assert_same_bits(after["amax_history"][-1, weight], np.abs(before["carry.u"]).max())
        np.testing.assert_allclose(after["amax_history"][-1, gradient], max(outputs), rtol=1e-5)  # sums in another order


def cast(values, scale):
    """The values that the program sees after a cast to E4M3."""
    return np.clip(values * scale, -448, 448).astype(E4M3).astype(F32) * (F32.type(1) / scale)


@pytest.mark.parametrize("options, differences", [
    (["--recipe=row"], ["recipe current", "recipe row"]),
    (["--recipe=current", "--keep=fc1"], ["site fc1 fprop in entry main (fp8, recipe current,", "site fc1 fprop in entry main (high, recipe none,"]),
    (["--recipe=current", "--power-2-scale=true"], ["option power_2_scale false", "option power_2_scale true"]),
])  # fmt: skip
def test_other_programs_are_found_by_site_and_option(bin_dir, source_dir, tmp_path, options, differences):
    """Recipes without state have no columns to compare."""
    network = make_mlp(source_dir)
    programs = []
    for name, more in (("ours", ["--recipe=current"]), ("theirs", options)):
        (tmp_path / name).mkdir()
        programs.append(Program(bin_dir, tmp_path / name, network.text, "--data-parallel=dp:inputs,labels", *more))
    save_file({**network.make_parameters(210), **network.batch(2, random_generator(211))}, tmp_path / "inputs")
    meeting = ["--comm=tcp", f"--rendezvous={free_address()}", f"--inputs={tmp_path / 'inputs'}", "--zero-missing"]
    processes = [
        subprocess.Popen(
            [bin_dir / "fp8-run", program.library, *meeting], stderr=subprocess.PIPE, text=True, env={**os.environ, "FP8RT_RANK": str(rank), "FP8RT_SIZE": "2"}
        )
        for rank, program in enumerate(programs)
    ]
    for rank, process in enumerate(processes):
        error = process.communicate(timeout=60)[1]
        assert process.returncode == 1 and error.startswith(f"fp8-run: error: rank {rank}: "), error
        assert f"the ranks run different programs: {differences[0]}" in error and differences[1] in error, error


@pytest.mark.parametrize("name, ranks, comm", [
    ("mlp", 2, "local"), ("mlp", 2, "nccl"), pytest.param("gpt", 4, "nccl", marks=pytest.mark.slow(one_of=16)),
])  # fmt: skip
def test_ranks_on_the_emulator(bin_dir, build_dir, source_dir, tmp_path, monkeypatch, name, ranks, comm):
    """Kernels of a GPU on ranks with equal rows: the single run, bit for bit."""
    monkeypatch.setenv("FP8RT_NCCL", str(build_dir / "lib" / "libfp8rt_test_standin_nccl.so"))
    monkeypatch.setenv("FP8EMU_CHECKS", "0" if name == "gpt" else "1")  # accesses are checked in tests of one rank
    # The kernels of both programs sum in one order, whatever is fused beside the reductions among ranks.
    order = ["--order=program", "--strict-accumulation"]
    pair = Pair(NETWORKS[name](source_dir), "delayed", bin_dir, tmp_path, "--target=sm_89", "--ptxas=none", *order)
    parameters, batch = pair.network.make_parameters(206), pair.network.batch(1, random_generator(207))
    options = ["--steps=2", "--zero-missing", "--with-carry", f"--print={pair.network.loss}"]
    expected = pair.single.run("main", {**parameters, **batch}, *options, f"--save-state={tmp_path / 'one'}")
    tiled = {key: np.concatenate([value] * ranks) for key, value in batch.items()}
    together = [f"--ranks={ranks}", f"--comm={comm}", "--deadline=300", f"--save-state={tmp_path / 'all'}"]
    printed = pair.parallel.run("main", {**parameters, **tiled}, *options, *together)
    assert printed == expected and len(printed.splitlines()) == 2
    states = load(tmp_path / "one"), load(tmp_path / "all")
    assert states[0].keys() == states[1].keys() >= {"scale", "amax_history"}
    for key, value in states[0].items():
        assert_same_bits(states[1][key], value)


def test_different_rows_on_the_emulator(bin_dir, build_dir, source_dir, tmp_path, monkeypatch):
    """Kernels of a GPU on two ranks through NCCL's stand-in: loss and gradients are the mean of two runs of one rank."""
    monkeypatch.setenv("FP8RT_NCCL", str(build_dir / "lib" / "libfp8rt_test_standin_nccl.so"))
    pair = Pair(make_mlp(source_dir), "none", bin_dir, tmp_path, "--target=sm_89", "--ptxas=none")
    parameters, batch = pair.network.make_parameters(208), pair.network.batch(2, random_generator(209))
    parts = [{name: np.split(value, 2)[rank] for name, value in batch.items()} for rank in range(2)]
    singles = [pair.step(pair.single, {**parameters, **part}) for part in parts]
    outputs = pair.step(pair.parallel, {**parameters, **batch}, ranks=["--ranks=2", "--comm=nccl"], save="rank{rank}")
    for index in map(str, [pair.network.loss, *pair.network.gradients]):
        alone = [single[index] for single in singles]
        assert (alone[0] != alone[1]).any()
        assert_same_bits(outputs[index], combine(alone, "mean"))
    states = [load(tmp_path / f"rank{rank}") for rank in range(2)]
    assert states[0].keys() == states[1].keys() and any(name.startswith("carry.params") for name in states[0])
    for name, value in states[0].items():
        assert_same_bits(states[1][name], value)
