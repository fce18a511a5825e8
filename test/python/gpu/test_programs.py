# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Complete programs on the emulator. Tests of values that were written for the CPU are run again with the same
expectations, but every program is compiled for sm_89. Training steps have the CPU's bits on every chip, where sums are in
the order of the program."""

import importlib
import os
import pathlib
import subprocess

import ml_dtypes
import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
from emulated_tools import CHIPS, tools  # noqa: E402, F401
from test_control_flow import form, test_current_scaling  # noqa: E402, F401
from test_dynamic_shapes import folder, mlp, mlp_inputs, run_steps, sequence, test_batch_and_sequence  # noqa: E402, F401
from test_experts import Cast, assert_same_step, compile_step, exported, test_forward, test_with_delayed_scaling, test_with_row_scaling  # noqa: E402, F401  # noqa: E402
from test_experts import step as expected_step  # noqa: E402
from test_indices import program, test_rows_of_a_table, test_slices, test_updates_in_a_loop  # noqa: E402, F401
from test_mixed_precision import STEP as MIXED_STEP  # noqa: E402
from test_program_state import test_the_two_functions_of_a_pair_share_it  # noqa: E402, F401
from test_stacks import test_an_amax_that_only_backward_records_is_kept  # noqa: E402, F401

from harness import F32, SEED, Program, assert_same_bits, load, random_generator  # noqa: E402
from net import initial_tensors  # noqa: E402


# The one of all tests would keep these tools for the rest of the session.
@pytest.fixture(scope="session")
def run(bin_dir):
    def call(tool, *arguments, stdin=None):
        command = [str(bin_dir / tool), *map(str, arguments)]
        return subprocess.run(command, input=stdin, text=True, capture_output=True)

    return call


# --- the CPU's bits ---


@pytest.fixture(scope="module")
def on_cpu(build_dir, tmp_path_factory):
    """`compute(bin_dir, folder, recipe, …)` with the CPU's tools, which the tests of all chips share."""
    made = {}

    def of(compute, recipe, *others):
        if (compute, recipe) not in made:
            made[compute, recipe] = compute(build_dir / "bin", tmp_path_factory.mktemp("cpu"), recipe, *others)
        return made[compute, recipe]

    return of


STEP = (ROOT / "test/python/inputs/net.mlir").read_text()

# Sums along rows, and, of a product, along columns, which kernels compute in parts unless the order is the program's.
SUMS = """
func.func @main(%x: tensor<300x160xf32>, %w: tensor<160x40xf32>) -> (tensor<300xf32>, tensor<300x40xf32>, tensor<40xf32>) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<300xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<300xf32>) -> tensor<300xf32>
  %rows = linalg.reduce ins(%x : tensor<300x160xf32>) outs(%f0 : tensor<300xf32>) dimensions = [1]
    (%a: f32, %b: f32) { %0 = arith.addf %b, %a : f32 linalg.yield %0 : f32 }
  %e1 = tensor.empty() : tensor<300x40xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<300x40xf32>) -> tensor<300x40xf32>
  %y = linalg.matmul ins(%x, %w : tensor<300x160xf32>, tensor<160x40xf32>) outs(%f1 : tensor<300x40xf32>) -> tensor<300x40xf32>
  %e2 = tensor.empty() : tensor<40xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<40xf32>) -> tensor<40xf32>
  %columns = linalg.reduce ins(%y : tensor<300x40xf32>) outs(%f2 : tensor<40xf32>) dimensions = [0]
    (%a: f32, %b: f32) { %0 = arith.addf %b, %a : f32 linalg.yield %0 : f32 }
  return %rows, %y, %columns : tensor<300xf32>, tensor<300x40xf32>, tensor<40xf32>
}
"""


@pytest.mark.parametrize("recipe", ["none", "current"])
def test_sums_are_in_the_order_of_the_program(recipe, bin_dir, build_dir, tmp_path):
    rng, results = random_generator(91), []
    x, w = rng.standard_normal((300, 160)).astype(F32), rng.standard_normal((160, 40)).astype(F32)
    for name, folder_of_tools in {"cpu": build_dir / "bin", "gpu": bin_dir}.items():
        (tmp_path / name).mkdir()
        results.append(Program(folder_of_tools, tmp_path / name, SUMS, f"--recipe={recipe}").call("main", x, w))
    for cpu, gpu in zip(*results, strict=True):
        assert_same_bits(gpu, cpu)


def three_steps(bin_dir, folder, recipe):
    step = Program(bin_dir, folder, STEP, f"--recipe={recipe}")
    files = [f"--outputs={step.folder / 'outputs'}", f"--save-state={step.folder / 'state'}"]
    step.run("main", initial_tensors(), "--steps=3", *files)
    return load(step.folder / "outputs") | load(step.folder / "state")


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("recipe", ["none", "current", "delayed", "#fp8.block_scaling<block = 32>"])
def test_a_step_has_the_bits_of_the_cpu(chip, recipe, tools, on_cpu, tmp_path):
    cpu, gpu = on_cpu(three_steps, recipe), three_steps(tools(chip), tmp_path, recipe)
    assert cpu.keys() == gpu.keys()
    for name, value in cpu.items():
        assert value.tobytes() == gpu[name].tobytes(), name


@pytest.mark.parametrize("recipe", ["delayed", "row"])
def test_no_temporary_is_read_before_it_is_written(recipe, tools, tmp_path):
    """Where temporaries share memory, the emulator takes what another one has left for written."""
    results = []
    for name, options in {"shared": [], "separate": ["--separate-temporaries"]}.items():
        (tmp_path / name).mkdir()
        step = Program(tools(CHIPS[SEED % 4]), tmp_path / name, STEP, f"--recipe={recipe}", *options)
        step.run("main", initial_tensors(), f"--outputs={tmp_path / name / 'outputs'}")
        results.append(load(tmp_path / name / "outputs"))
    shared, separate = results
    assert shared.keys() == separate.keys()
    for name, value in shared.items():
        assert_same_bits(separate[name], value)


GPT = ROOT / "python/examples/gpt"


@pytest.mark.slow(one_of=24)  # half a minute each, of twelve
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("recipe", ["none", "current", "delayed"])
def test_two_steps_of_the_example_gpt_have_the_bits_of_the_cpu(chip, recipe, tools, build_dir, tmp_path, monkeypatch):
    """Loss, parameters, moments, and the scales and histories."""
    monkeypatch.syspath_prepend(GPT)
    monkeypatch.setenv("FP8EMU_CHECKS", "0")  # which compute nothing
    initial = importlib.import_module("parameters").initial()
    inputs = {f"params['{name}']": np.reshape(values, shape).astype(F32) for name, (shape, values) in initial.items()}
    inputs["tokens"] = random_generator(93).integers(0, 256, (16, 65), np.int32)
    results = []
    for name, bin_dir in {"cpu": build_dir / "bin", "gpu": tools(chip)}.items():
        (tmp_path / name).mkdir()
        step = Program(bin_dir, tmp_path / name, (GPT / "gpt.mlir").read_text(), f"--recipe={recipe}")
        files = [f"--outputs={step.folder / 'outputs'}", f"--save-state={step.folder / 'state'}"]
        step.run("main", inputs, "--steps=2", "--zero-missing", "--with-carry", *files)
        results.append(load(step.folder / "outputs") | load(step.folder / "state"))
    cpu, gpu = results
    assert cpu.keys() == gpu.keys()
    differ = {name: np.mean(value != gpu[name]) for name, value in cpu.items() if value.tobytes() != gpu[name].tobytes()}
    assert not differ


@pytest.mark.parametrize("chip", CHIPS)
def test_experts(chip, tools, exported, tmp_path):
    """Products of groups of rows, forward and backward: one launch each, which finds the groups itself."""
    program, sites = compile_step(tools(chip), tmp_path, "--recipe=current")
    # Sums in parts, which --strict-accumulation asks for, are taken by mma.sync on sm_100a.
    codes = {"sm_90a": ["wgmma"], "sm_100a": ["tcgen05", "mma.sync"]}.get(chip, ["mma.sync"])
    assert all(any(code in site["code"] for code in codes) for site in sites), [site["code"] for site in sites]
    assert_same_step(program.call("main", *exported[0]), expected_step(exported[0], Cast()))


def experts_step(bin_dir, folder, recipe, inputs):
    program, sites = compile_step(bin_dir, folder, f"--recipe={recipe}")
    return program.call("main", *inputs), sites


@pytest.mark.slow(one_of=3)
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("recipe", ["row", "block", "mxfp8", "#fp8.block_scaling<block = 64>"])
def test_experts_with_scales_of_rows_and_blocks(chip, recipe, tools, on_cpu, exported, tmp_path):
    """The bits of the CPU, also in weight gradients of masked rows."""
    if recipe == "mxfp8" and chip in ("sm_89", "sm_90a"):
        pytest.skip("no MX tensor cores")
    results, sites = experts_step(tools(chip), tmp_path, recipe, exported[0])
    assert not [site["code"] for site in sites if "GPU threads" in site["code"]]
    for gpu, cpu in zip(results[1:], on_cpu(experts_step, recipe, exported[0])[0][1:], strict=True):
        assert_same_bits(gpu, cpu)


@pytest.mark.parametrize("chip", CHIPS)
def test_tf32_has_the_bits_of_the_cpu(chip, tools, build_dir, tmp_path):
    rng, results = random_generator(92), []
    values = [rng.standard_normal(shape).astype(F32) for shape in ([13, 37], [37, 29], [29], [29, 17])]
    for name, bin_dir in {"cpu": build_dir / "bin", "gpu": tools(chip)}.items():
        (tmp_path / name).mkdir()
        step = Program(bin_dir, tmp_path / name, MIXED_STEP, "--recipe=none", "--mixed-precision=tf32")
        results.append(step.call("main", *values))
    assert all("tf32·tf32" in site["code"] for site in step.manifest["sites"]), step.manifest["sites"]
    for cpu, gpu in zip(*results, strict=True):
        assert_same_bits(gpu, cpu)


DYNAMIC = """
func.func @main(%x: tensor<?x?xbf16>, %w: tensor<?x?xbf16>) -> tensor<?x?xbf16> {
  %zero = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c0 : tensor<?x?xbf16>
  %n = tensor.dim %w, %c1 : tensor<?x?xbf16>
  %e = tensor.empty(%m, %n) : tensor<?x?xbf16>
  %f = linalg.fill ins(%zero : bf16) outs(%e : tensor<?x?xbf16>) -> tensor<?x?xbf16>
  %y = linalg.matmul ins(%x, %w : tensor<?x?xbf16>, tensor<?x?xbf16>) outs(%f : tensor<?x?xbf16>) -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}
"""


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("recipe", ["none", "current", "row"])
def test_products_whose_sizes_may_be_zero_at_run_time(chip, recipe, tools, tmp_path):
    """Powers of two, which every recipe keeps. A tensor map has no empty dimension."""
    options = [f"--recipe={recipe}", *(["--power-2-scale=true"] if recipe != "none" else [])]
    program, rng = Program(tools(chip), tmp_path, DYNAMIC, *options, "--sites=all"), random_generator(94)
    for m, n, k in [(7, 24, 48), (0, 24, 48), (7, 0, 48), (7, 24, 0), (0, 0, 0), (130, 17, 33)]:
        x, w = (2.0 ** rng.integers(0, 3, shape).astype(F32) * (rng.random(shape) < 0.5) for shape in ((m, k), (k, n)))
        bf16 = ml_dtypes.bfloat16
        (y,) = program.call("main", x.astype(bf16), w.astype(bf16))
        assert_same_bits(y, (x.astype(F32) @ w.astype(F32)).astype(bf16))


# A vector that a loop carries: its strides are dynamic, and blocks of a vector in such memory have no kernel of their own.
CARRIED_VECTOR = """
func.func @main(%x: tensor<31xf16>, %w: tensor<3x31x31xf16>) -> tensor<31xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<31xf16>
  %y = scf.for %i = %c0 to %c3 step %c1 iter_args(%h = %x) -> tensor<31xf16> {
    %v = tensor.extract_slice %w[%i, 0, 0] [1, 31, 31] [1, 1, 1] : tensor<3x31x31xf16> to tensor<31x31xf16>
    %f = linalg.fill ins(%zero : f16) outs(%e : tensor<31xf16>) -> tensor<31xf16>
    %n = linalg.vecmat ins(%h, %v : tensor<31xf16>, tensor<31x31xf16>) outs(%f : tensor<31xf16>) -> tensor<31xf16>
    scf.yield %n : tensor<31xf16>
  }
  return %y : tensor<31xf16>
}
"""

# A query for each of three heads: the first operand has no rows.
ONE_QUERY = """
func.func @main(%q: tensor<3x40xbf16>, %k: tensor<3x5x40xbf16>) -> (tensor<3x5xf32>, tensor<5x3xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x5xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x5xf32>) -> tensor<3x5xf32>
  %y = linalg.contract indexing_maps = [affine_map<(b, n, k) -> (b, k)>, affine_map<(b, n, k) -> (b, n, k)>, affine_map<(b, n, k) -> (b, n)>]
    ins(%q, %k : tensor<3x40xbf16>, tensor<3x5x40xbf16>) outs(%f : tensor<3x5xf32>) -> tensor<3x5xf32>
  %e1 = tensor.empty() : tensor<5x3xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<5x3xf32>) -> tensor<5x3xf32>
  %z = linalg.contract indexing_maps = [affine_map<(b, n, k) -> (b, n, k)>, affine_map<(b, n, k) -> (b, k)>, affine_map<(b, n, k) -> (n, b)>]
    ins(%k, %q : tensor<3x5x40xbf16>, tensor<3x40xbf16>) outs(%f1 : tensor<5x3xf32>) -> tensor<5x3xf32>
  return %y, %z : tensor<3x5xf32>, tensor<5x3xf32>
}
"""


def both_have_the_same_bits(text, options, chip, tools, build_dir, folder, *values):
    """Returns the program of the GPU."""
    results = []
    for name, bin_dir in {"cpu": build_dir / "bin", "gpu": tools(chip)}.items():
        (folder / name).mkdir()
        program = Program(bin_dir, folder / name, text, *options)
        results.append(program.call("main", *values))
    for cpu, gpu in zip(*results, strict=True):
        assert_same_bits(gpu, cpu)
    return program


@pytest.mark.parametrize("chip", CHIPS)
def test_blocks_of_a_vector_that_a_loop_carries(chip, tools, build_dir, tmp_path):
    rng = random_generator(95)
    x, w = rng.standard_normal(31).astype(np.float16), (rng.standard_normal((3, 31, 31)) / 4).astype(np.float16)
    both_have_the_same_bits(CARRIED_VECTOR, ["--recipe=#fp8.block_scaling<block = 64>", "--sites=all"], chip, tools, build_dir, tmp_path, x, w)


@pytest.mark.parametrize("chip, recipe", [*((chip, "mxfp8") for chip in ("sm_100a", "sm_120a")), *((chip, "block") for chip in CHIPS)])
def test_batches_of_products_without_rows(chip, recipe, tools, build_dir, tmp_path):
    rng = random_generator(96)
    q, k = (rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((3, 40), (3, 5, 40)))
    both_have_the_same_bits(ONE_QUERY, [f"--recipe={recipe}", "--sites=all"], chip, tools, build_dir, tmp_path, q, k)


@pytest.mark.slow(one_of=4)  # four seconds each
@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("recipe", ["current", "delayed", "row", "block"])
def test_steps_on_any_batch_have_the_bits_of_the_cpu(chip, recipe, tools, build_dir, tmp_path):
    """One library for all batches, whose casts have kernels for any number of rows."""
    programs = {}
    for name, bin_dir in {"cpu": build_dir / "bin", "gpu": tools(chip)}.items():
        (tmp_path / name).mkdir()
        programs[name] = Program(bin_dir, tmp_path / name, mlp("?"), f"--recipe={recipe}")
    for rows in (37, 0, 128, 1, 300):
        cpu, gpu = (run_steps(program, mlp_inputs(rows)) for program in programs.values())
        assert cpu.keys() == gpu.keys()
        for name, value in cpu.items():
            assert_same_bits(gpu[name], value)


# A vector times a matrix, and a matrix times a vector.
VECTORS = """
func.func @main(%x: tensor<200xbf16>, %w: tensor<200x24xbf16>) -> (tensor<24xf32>, tensor<200xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<24xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<24xf32>) -> tensor<24xf32>
  %y = linalg.vecmat ins(%x, %w : tensor<200xbf16>, tensor<200x24xbf16>) outs(%f : tensor<24xf32>) -> tensor<24xf32>
  %h = arith.truncf %y : tensor<24xf32> to tensor<24xbf16>
  %e1 = tensor.empty() : tensor<200xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<200xf32>) -> tensor<200xf32>
  %z = linalg.matvec ins(%w, %h : tensor<200x24xbf16>, tensor<24xbf16>) outs(%f1 : tensor<200xf32>) -> tensor<200xf32>
  return %y, %z : tensor<24xf32>, tensor<200xf32>
}
"""


@pytest.mark.parametrize("chip", ["sm_100a", "sm_120a"])
def test_vectors_with_mx_scales(chip, tools, build_dir, tmp_path):
    rng, bf16 = random_generator(97), ml_dtypes.bfloat16
    x, w = rng.standard_normal(200).astype(bf16), rng.standard_normal((200, 24)).astype(bf16)
    gpu = both_have_the_same_bits(VECTORS, ["--recipe=mxfp8", "--sites=all"], chip, tools, build_dir, tmp_path, x, w)
    codes = [site["code"] for site in gpu.manifest["sites"]]
    assert len(codes) == 2 and all("tcgen05" in code or "mma.sync" in code for code in codes), codes


def test_a_state_goes_from_device_to_device(bin_dir, build_dir, tmp_path):
    """Two steps on one device and two on the other leave what four on the CPU leave."""
    places = {"cpu": build_dir / "bin", "gpu": bin_dir}
    for name in places:
        (tmp_path / name).mkdir()
    steps = {name: Program(tools, tmp_path / name, STEP) for name, tools in places.items()}

    def run(where, count, first, *options):
        steps[where].run("main", initial_tensors(), f"--steps={count}", f"--first-step={first}", "--with-carry", *options)

    run("cpu", 4, 0, f"--save-state={tmp_path / 'all'}")
    for first, second in (("cpu", "gpu"), ("gpu", "cpu")):
        run(first, 2, 0, f"--save-state={tmp_path / 'half'}")
        run(second, 2, 2, f"--state={tmp_path / 'half'}", f"--save-state={tmp_path / 'both'}")
        assert (tmp_path / "both").read_bytes() == (tmp_path / "all").read_bytes()


def test_an_unknown_order_is_an_error(build_dir):
    done = subprocess.run([build_dir / "bin/fp8-compile", "-", "-o", os.devnull, "--order=fast"], input="", capture_output=True, text=True)
    assert done.returncode == 2 and "--order=fast must be kernel or program" in done.stderr
