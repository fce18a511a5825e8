# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Forward and backward as two functions: --pair compiles them to the same step as one function.

The step is written once. As one function backward reads forward's values; as a pair it reads
residuals: an unchanged f32 weight, another weight transposed in bf16, bf16 activations, an i1 mask
and the f32 result. Sites, columns, results and state must be equal, bit for bit.
"""

import json
import re

import numpy as np
import pytest
from pair_programs import (
    FORWARD,
    KINDS,
    RECIPES,
    STEPS,
    TYPES,
    H,
    K,
    M,
    N,
    assert_equal_bits,
    backward_body,
    listed,
    make_pair,
    make_step,
    residuals,
    results,
    returned,
    run_steps,
    shape_of,
    sites,
)

from harness import F32, Program, load, random_generator


@pytest.fixture
def make(bin_dir, tmp_path):
    def compile(name, text, *options):
        folder = tmp_path / name
        folder.mkdir()
        program = Program(bin_dir, folder, text, f"--report=json:{folder / 'report.json'}", *options)
        program.report = json.loads((folder / "report.json").read_text())
        return program

    return compile


@pytest.mark.parametrize(
    "kind, recipe",
    [pytest.param(kind, recipe, marks=[] if recipe in ("delayed", "gradients", "stochastic") else pytest.mark.slow) for kind in KINDS for recipe in RECIPES],
)
def test_a_pair_computes_what_one_function_computes(make, kind, recipe):
    step = make("step", make_step(kind), *RECIPES[recipe])
    pair = make("pair", make_pair(kind), "--pair=forward:backward", *RECIPES[recipe])
    assert sites(pair) == sites(step)
    assert pair.manifest["state"] == step.manifest["state"]
    assert {(s["entry"], s["role"]) for s in pair.report["sites"]} == {
        ("forward", "fprop"),
        ("backward", "dgrad"),
        ("backward", "wgrad"),
    }
    for steps in [1, STEPS]:
        results, state = run_steps(step, "step", ["0", "1", "2", "3"], steps)
        keys = {"forward.0": "0", "backward.0": "1", "backward.1": "2", "backward.2": "3"}
        of_pair, state_of_pair = run_steps(pair, "forward,backward", ["forward.0", "w2", "forward.2", "backward.target"], steps)
        assert_equal_bits(of_pair, {key: results[other] for key, other in keys.items()})
        assert_equal_bits(state_of_pair, state)


W1, W2, X, A = [K, H], [N, H], [M, K], [M, H]
BYTES = {"f8E4M3FN": 1, "i1": 1, "bf16": 2, "f32": 4}
MASK, Y = ("i1", A), ("f32", [M, N])


@pytest.mark.parametrize(
    "kind, recipe, crossing",
    [
        # Every bf16 tensor that products alone read is FP8 bytes and a scale_inv.
        ("saved", "delayed", [("f8E4M3FN", X), ("f8E4M3FN", W1), MASK, ("f8E4M3FN", A), ("f8E4M3FN", W2), Y]),
        ("saved", "current", [("f8E4M3FN", X), ("f8E4M3FN", W1), MASK, ("f8E4M3FN", A), ("f8E4M3FN", W2), Y]),
        ("saved", "none", [("bf16", X), ("bf16", W1), MASK, ("bf16", A), ("bf16", W2), Y]),
        # The activation crosses once, in bf16, and is cast again: with the scale it had.
        # Nothing reads the gradient of x: the first weight does not cross.
        ("shared", "delayed", [("f8E4M3FN", X), MASK, ("bf16", A), ("f8E4M3FN", W2), Y]),
        ("shared", "current", [("f8E4M3FN", X), MASK, ("bf16", A), ("f8E4M3FN", W2), Y]),
        ("repeated", "delayed", [("f8E4M3FN", X), ("f8E4M3FN", W1), ("bf16", A), MASK, ("f8E4M3FN", W2), Y]),
    ],
)
def test_what_crosses(make, kind, recipe, crossing):
    program = make("pair", make_pair(kind), "--pair=forward:backward", *RECIPES[recipe])
    given = residuals(program, "forward", "results")
    assert given == residuals(program, "backward", "arguments")
    # A scale_inv for every cast, and the scale of a cast that is made again.
    casts = sum(element == "f8E4M3FN" for element, _ in crossing)
    again = recipe == "delayed" and kind != "saved"
    assert sorted(given, key=str) == sorted(crossing + [("f32", [])] * (casts + again), key=str)

    memory = program.report["memory"]
    assert memory["residual_bytes_after"] == sum(BYTES[element] * int(np.prod(shape)) for element, shape in given)
    saved = sum(BYTES[TYPES[name].split("x")[-1]] * np.prod(shape_of(name)) for name in ["w1", "t2", "x", *KINDS[kind][0], "mask", "y"])
    assert memory["residual_bytes_before"] == saved
    assert memory["residual_bytes_after"] < saved


def test_roles_without_a_way_from_forward_to_the_gradient(make):
    """Arguments as PyTorch hands them over: the gradient of the result comes from the caller."""
    outputs, arguments = ["y", "w1", "t2", "x", "a", "mask"], ["w1", "t2", "x", "a", "mask"]
    body = backward_body("saved").split("\n")
    body = "\n".join(line for line in body if "%difference" not in line)
    text = (
        f"func.func @forward({listed(['w1', 'w2', 'x'])}) -> {results(outputs)} {{\n{FORWARD}{returned(outputs)}}}\n"
        f"func.func @backward({listed(arguments, 'r_')}, %dy: tensor<{M}x{N}xbf16>) -> {results(['dw1', 'dw2'])} {{\n"
        f"{body}{returned(['dw1', 'dw2'])}}}\n"
    )
    pair = make("pair", text, "--pair=forward:backward", "--recipe=delayed")
    assert sites(pair) == sites(make("step", make_step("saved"), "--recipe=delayed"))


def test_residuals_begin_where_the_option_says(make):
    text = make_pair("saved", first_results=("y", "h"))
    program = make("pair", text, "--pair=forward:backward:2", "--recipe=current")
    forward = next(e for e in program.manifest["entries"] if e["name"] == "forward")
    assert [r["kind"] for r in forward["results"]][:3] == ["user", "user", "residual"]
    outputs, _ = run_steps(program, "forward,backward", ["w1", "w2", "x", "backward.0"], 1)
    assert sorted(outputs) == ["backward.0", "backward.1", "backward.2", "forward.0", "forward.1"]


def test_backward_alone_keeps_working(make):
    """Without --pair the two functions have nothing to do with one another."""
    program = make("alone", make_pair("saved"), "--recipe=delayed", "--amax-history-len=3")
    backward = next(e for e in program.manifest["entries"] if e["name"] == "backward")
    assert {a["kind"] for a in backward["arguments"]} == {"user", "state"}
    assert "residual_bytes_before" not in program.report["memory"]


@pytest.mark.parametrize("stage", ["ingest", "recipe", "fusion", "batching", "bufferize", "kernels"])
def test_every_stage_is_valid_and_has_the_users_names(run, tmp_path, stage):
    source = tmp_path / "pair.mlir"
    source.write_text(make_pair("shared"))
    done = run("fp8-compile", source, "-o", "-", f"--emit={stage}", "--pair=forward:backward")
    assert (done.returncode, done.stderr) == (0, "")
    again = run("fp8-opt", "-", stdin=done.stdout)
    assert again.returncode == 0, again.stderr
    for name in ["w1", "w2", "x", "target"]:
        assert f'loc("{name}"' in done.stdout
    assert "end_forward" not in done.stdout


def test_the_pipelines_take_pairs(run, tmp_path):
    """As fp8-compile does, from IR alone: the option, then the marks that it leaves."""
    pipeline = "builtin.module(fp8-ingest-pipeline{pair=forward:backward},fp8-recipe-pipeline,fp8-fusion-pipeline)"
    done = run("fp8-opt", f"--pass-pipeline={pipeline}", "-", stdin=make_pair("saved"))
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"f8E4M3FN> \{fp8.residual\}", done.stdout)) == 8
    forward, backward = done.stdout.split("func.func @backward")
    updates = [part.count("= fp8.update_amax_history") for part in (forward, backward)]
    assert updates == [4, 2]


def test_an_argument_that_crosses_is_not_copied(make, run):
    program = make("pair", make_pair("saved"), "--pair=forward:backward", "--recipe=none")
    forward = next(e for e in program.manifest["entries"] if e["name"] == "forward")
    crossing = {tuple(r["shape"]): r["alias"] for r in forward["results"] if r["kind"] == "residual"}
    assert crossing[M, K] == 2 and [alias for alias in crossing.values() if alias is not None] == [2]
    assert not forward["arguments"][2]["written"] and forward["arguments"][2]["carry"] is None
    ir = run("fp8-compile", program.source, "-o", "-", "--emit=bufferize", "--pair=forward:backward", "--recipe=none").stdout
    assert not re.search(rf"memref.copy .*{M}x{K}xbf16", ir)


# As PyTorch's AOT export orders them: the dynamic size is forward's last result and backward's
# first argument.
DYNAMIC_FORWARD = """
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %x, %c0 : tensor<?x16xf32>
  %size = arith.index_cast %m : index to i64
  %e = tensor.empty(%m) : tensor<?x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  %y = linalg.matmul ins(%x, %w : tensor<?x16xf32>, tensor<16x8xf32>) outs(%f : tensor<?x8xf32>) -> tensor<?x8xf32>
"""
DYNAMIC_BACKWARD = """
  %none = arith.constant 0.0 : f32
  %n = arith.index_cast %r_size : i64 to index
  %ex = tensor.empty(%n) : tensor<?x16xf32>
  %fx = linalg.fill ins(%none : f32) outs(%ex : tensor<?x16xf32>) -> tensor<?x16xf32>
  %dx = linalg.matmul indexing_maps = [affine_map<(m, k, n) -> (m, n)>, affine_map<(m, k, n) -> (k, n)>, affine_map<(m, k, n) -> (m, k)>]
      ins(%dy, %r_w : tensor<?x8xf32>, tensor<16x8xf32>) outs(%fx : tensor<?x16xf32>) -> tensor<?x16xf32>
  %ew = tensor.empty() : tensor<16x8xf32>
  %fw = linalg.fill ins(%none : f32) outs(%ew : tensor<16x8xf32>) -> tensor<16x8xf32>
  %dw = linalg.matmul indexing_maps = [affine_map<(k, n, m) -> (m, k)>, affine_map<(k, n, m) -> (m, n)>, affine_map<(k, n, m) -> (k, n)>]
      ins(%r_x, %dy : tensor<?x16xf32>, tensor<?x8xf32>) outs(%fw : tensor<16x8xf32>) -> tensor<16x8xf32>
"""
DYNAMIC_STEP = f"""
func.func @step(%w: tensor<16x8xf32>, %x: tensor<?x16xf32>, %dy: tensor<?x8xf32>)
    -> (tensor<?x8xf32>, tensor<16x8xf32>, tensor<?x16xf32>) {{
{(DYNAMIC_FORWARD + DYNAMIC_BACKWARD).replace("%r_", "%")}
  return %y, %dw, %dx : tensor<?x8xf32>, tensor<16x8xf32>, tensor<?x16xf32>
}}
"""
DYNAMIC_PAIR = f"""
func.func @forward(%w: tensor<16x8xf32>, %x: tensor<?x16xf32>) -> (tensor<?x8xf32>, tensor<16x8xf32>, tensor<?x16xf32>, i64) {{
{DYNAMIC_FORWARD}
  return %y, %w, %x, %size : tensor<?x8xf32>, tensor<16x8xf32>, tensor<?x16xf32>, i64
}}
func.func @backward(%r_size: i64, %r_w: tensor<16x8xf32>, %r_x: tensor<?x16xf32>, %dy: tensor<?x8xf32>)
    -> (tensor<16x8xf32>, tensor<?x16xf32>) {{
{DYNAMIC_BACKWARD}
  return %dw, %dx : tensor<16x8xf32>, tensor<?x16xf32>
}}
"""


@pytest.mark.parametrize("recipe", ["none", "current", "delayed"])
def test_sizes_cross_in_the_order_of_aot(make, recipe):
    step = make("step", DYNAMIC_STEP, *RECIPES[recipe])
    pair = make("pair", DYNAMIC_PAIR, "--pair=forward:backward", *RECIPES[recipe])
    assert sites(pair) == sites(step)
    for rows in (5, 12):
        rng = random_generator(92, rows)
        w, x, dy = (rng.standard_normal(shape).astype(F32) for shape in ([16, 8], [rows, 16], [rows, 8]))
        of_pair, of_step = pair.folder / "outputs", step.folder / "outputs"
        pair.run("forward,backward", {"0": w, "1": x, "backward.0": dy}, f"--outputs={of_pair}", "--steps=2")
        step.run("step", [w, x, dy], f"--outputs={of_step}", "--steps=2")
        results = load(of_step)
        keys = {"forward.0": "0", "backward.0": "1", "backward.1": "2"}
        assert_equal_bits(load(of_pair), {key: results[other] for key, other in keys.items()})
        if recipe == "none":
            np.testing.assert_allclose(results["1"], x.T @ dy, rtol=1e-5, atol=1e-5)  # sums of 12 in f32


def take_measures(program, outputs, *entries):
    """Takes the results of casts out of `outputs`: names, entries and bits, in the order of names; a tensor that is cast in
    two directions has a name twice."""
    found = []
    for entry in entries:
        results = next(e for e in program.manifest["entries"] if e["name"] == entry)["results"]
        prefix = f"{entry}." if len(entries) > 1 else ""
        for number, value in enumerate([r for r in results if r["kind"] == "user"]):
            if value["name"].split(".")[0] in ("error", "underflow", "overflow", "amax"):
                found.append((value["name"], outputs.pop(prefix + str(number)), entry))
    return sorted(found, key=lambda one: (one[0], one[1].tobytes()))


@pytest.mark.parametrize("kind, recipe", [("saved", "delayed"), ("shared", "current"), ("repeated", "row"), ("saved", "stochastic")])
def test_errors_of_casts(make, kind, recipe):
    """Casts are measured in the function that makes them: the values are those of one function."""
    options = [*RECIPES.get(recipe, [f"--recipe={recipe}"]), "--measure-errors"]
    step = make("step", make_step(kind), *options)
    pair = make("pair", make_pair(kind), "--pair=forward:backward", *options)
    of_step, state = run_steps(step, "step", ["0", "1", "2", "3"], STEPS)
    log = pair.folder / "log"
    of_pair, state_of_pair = run_steps(pair, "forward,backward", ["forward.0", "w2", "forward.2", "backward.target"], STEPS, f"--monitor={log}")
    expected, actual = take_measures(step, of_step, "step"), take_measures(pair, of_pair, "forward", "backward")
    assert len(expected) >= 4 * 6
    assert [(name, value.tobytes()) for name, value, _ in actual] == [(name, value.tobytes()) for name, value, _ in expected]
    assert all(value > 0 for name, value, _ in actual if name.startswith(("error.", "amax.")))
    places = {(name.split(".")[-1], entry) for name, _, entry in actual}
    last = [line for line in map(json.loads, log.read_text().splitlines()) if line["step"] == STEPS - 1]
    assert sorted(line["mse"] for line in last) == pytest.approx(sorted(float(value) ** 2 for name, value, _ in actual if name.startswith("error.")))
    # Where backward has an activation that it computes again, it casts that.
    assert places - {("input", "backward")} == {("input", "forward"), ("weight", "forward"), ("grad_output", "backward")}
    keys = {"forward.0": "0", "backward.0": "1", "backward.1": "2", "backward.2": "3"}
    assert_equal_bits(of_pair, {key: of_step[other] for key, other in keys.items()})
    assert_equal_bits(state_of_pair, state)
