# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A whole training step, compiled and run, against the same step written in numpy.

inputs/net.mlir is in f32 throughout, so that every operation outside of products rounds once and
must agree bit for bit, including weights and FP8 state after every step. Only
the loss is compared with a tolerance, because it is a sum, whose order is not specified.
"""
import json
import re
import subprocess

import numpy as np
import pytest

from harness import E4M3, F32, Program, assert_same_bits, load, random_generator
from net import FORWARD, GRADIENTS, Current, Delayed, forward, initial_tensors, multiply, train, transposed


@pytest.fixture(scope="module")
def text(source_dir):
    return (source_dir / "test/python/inputs/net.mlir").read_text()


@pytest.fixture(scope="module")
def make(bin_dir, tmp_path_factory, text):
    """make(options…): the step compiled with them, once."""
    programs = {}

    def compile(*options):
        if options not in programs:
            programs[options] = Program(bin_dir, tmp_path_factory.mktemp("net"), text, *options)
        return programs[options]

    return compile


RECIPES = {
    "max": (["--amax-history-len=3"], dict(rows=3)),
    "most_recent": (
        ["--amax-history-len=4", "--amax-compute-algo=most_recent", "--margin=1"],
        dict(rows=4, margin=1, algo="most_recent"),
    ),
    "one_row": (["--amax-history-len=1"], dict(rows=1)),
    "attribute": (
        ["--recipe=#fp8.delayed_scaling<format = e4m3, margin = -1, amax_history_len = 2>"],
        dict(rows=2, margin=-1, gradients=E4M3),
    ),
    "e4m3": (["--format=e4m3", "--amax-history-len=3"], dict(rows=3, gradients=E4M3)),
    "current": (["--recipe=current"], None),
    "current_e4m3": (["--recipe=current", "--format=e4m3"], None),
    "current_power": (["--recipe=#fp8.current_scaling<power_2_scale = true, eps = 8.0>"], None),
}


def make_recipe(name, program):
    options = RECIPES[name][1]
    if options is not None:
        return Delayed(program, **options)
    extra = {"gradients": E4M3} if name == "current_e4m3" else {}
    return Current(**extra, **({"power_2_scale": True, "eps": 8.0} if name == "current_power" else {}))


# One recipe with state and one without run every time, the others with the slow tests.
@pytest.mark.parametrize(
    "name", [name if name in ("max", "current") else pytest.param(name, marks=pytest.mark.slow) for name in RECIPES]
)
def test_training_bit_for_bit(make, name):
    program, tensors = make(*RECIPES[name][0]), initial_tensors()
    recipe = make_recipe(name, program)
    w1, w2, losses = tensors["w1"], tensors["w2"], []
    for steps in range(1, 6):
        w1, w2, loss = train(recipe, w1, w2, tensors["x"], tensors["t"])
        losses.append(loss)
        outputs, state = program.folder / "outputs", program.folder / "state"
        options = [f"--steps={steps}", f"--outputs={outputs}", "--print=2"]
        stateful = isinstance(recipe, Delayed)
        printed = program.run("main", tensors, *options, *([f"--save-state={state}"] if stateful else []))
        results = load(outputs)
        assert_same_bits(results["0"], w1)
        assert_same_bits(results["1"], w2)
        assert [int(line.split("\t")[0]) for line in printed.splitlines()] == list(range(steps))
        np.testing.assert_allclose([float(line.split("\t")[1]) for line in printed.splitlines()], losses, rtol=1e-5)
        if stateful:
            saved = load(state)
            assert_same_bits(saved["scale"], recipe.scale)
            assert_same_bits(saved["amax_history"], recipe.history)
    assert losses[-1] < losses[0]


def test_no_recipe_is_plain_f32(make):
    program, tensors = make("--recipe=none"), initial_tensors()
    w1, w2, loss = program.call("main", *tensors.values())
    x, t, v1, v2 = (tensors[name].astype(np.float64) for name in ("x", "t", "w1", "w2"))
    h = x @ v1
    a, d = np.maximum(h, 0), np.maximum(h, 0) @ v2 - t
    # Within f32 rounding of an exact evaluation: sums of up to 150 terms.
    np.testing.assert_allclose(w2, v2 - 0.001 * (a.T @ d), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(w1, v1 - 0.001 * (x.T @ np.where(h > 0, d @ v2.T, 0)), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(loss, (d**2).sum(), rtol=1e-5)
    assert program.manifest["state"]["columns"] == []


def trained_state(program, tensors, steps=3):
    state = program.folder / "trained"
    program.run("main", tensors, f"--steps={steps}", f"--save-state={state}")
    return state


def test_evaluation_reads_the_state_and_leaves_it(make):
    program, tensors = make("--amax-history-len=3"), initial_tensors()
    state, after, outputs = trained_state(program, tensors), program.folder / "after", program.folder / "outputs"
    inputs = {name: tensors[name] for name in ("w1", "w2", "x")}
    program.run("evaluate", inputs, f"--state={state}", "--steps=3", f"--save-state={after}", f"--outputs={outputs}")
    recipe = Delayed(program, rows=3)
    saved = load(state)
    recipe.scale, recipe.history = saved["scale"], saved["amax_history"]
    assert (recipe.scale != 1).all()
    assert_same_bits(load(outputs)["0"], forward(recipe, tensors["w1"], tensors["w2"], tensors["x"])[-1])
    assert after.read_bytes() == state.read_bytes()


def test_calibration_records_forward_columns_only(make):
    program, tensors = make("--amax-history-len=3", "--calibrate"), initial_tensors()
    state, after = trained_state(program, tensors), program.folder / "after"
    inputs = {"w1": tensors["w1"] * 3, "w2": tensors["w2"], "x": tensors["x"] * 5}
    program.run("evaluate", inputs, f"--state={state}", f"--save-state={after}")
    recipe = Delayed(program, rows=3)
    saved = load(state)
    recipe.scale, recipe.history = saved["scale"].copy(), saved["amax_history"].copy()
    forward(recipe, **inputs)
    assert sorted(recipe.recorded) == sorted(recipe.column(key) for key in FORWARD)
    recipe.finish_step()
    assert_same_bits(load(after)["scale"], recipe.scale)
    assert_same_bits(load(after)["amax_history"], recipe.history)
    for key in GRADIENTS:
        assert recipe.scale[recipe.column(key)] == saved["scale"][recipe.column(key)]


def test_ten_steps_are_four_and_six(make):
    program, tensors = make("--amax-history-len=3"), initial_tensors()
    rng = random_generator(31)
    batches = dict(tensors, xs=rng.standard_normal([7, 150, 140]).astype(F32))
    del batches["x"]
    path = lambda name: program.folder / name
    stream = ["--stream=x=xs", "--print=2", "--with-carry"]
    whole = program.run("main", batches, "--steps=10", f"--save-state={path('whole')}", f"--outputs={path('out')}", *stream)
    four = program.run("main", batches, "--steps=4", f"--save-state={path('four')}", *stream)
    # The carried weights come from the state file: what the inputs say does not count.
    later = dict(batches, w1=np.zeros([140, 20], F32))
    six = program.run(
        "main",
        later,
        "--steps=6",
        "--first-step=4",
        f"--state={path('four')}",
        f"--save-state={path('six')}",
        f"--outputs={path('out6')}",
        *stream,
    )
    assert four + six == whole
    assert path("six").read_bytes() == path("whole").read_bytes()
    assert path("out6").read_bytes() == path("out").read_bytes()
    assert {"carry.w1", "carry.w2", "scale", "amax_history"} <= set(load(path("whole")))


def test_carry_by_hand(bin_dir, tmp_path_factory, text, make):
    """--carry does what the attribute does, in the entry that it fits."""
    plain = re.sub(r" \{tf.aliasing_output = \d : i32\}", "", text)
    assert "aliasing" not in plain
    options = ["--amax-history-len=3"]
    program = Program(bin_dir, tmp_path_factory.mktemp("carry"), plain, *options, "--carry=w1:0,1:1")
    assert [a["carry"] for a in program.manifest["entries"][0]["arguments"]] == [0, 1, None, None, 3, 4]
    assert [a["carry"] for a in program.manifest["entries"][1]["arguments"]] == [None] * 5
    for each in (program, make(*options)):
        each.run("main", initial_tensors(), "--steps=3", f"--outputs={each.folder / 'carried'}")
    assert (program.folder / "carried").read_bytes() == (make(*options).folder / "carried").read_bytes()


# --- the choice of sites, the report, the manifest ---


def sites_of(program):
    return {(s["entry"], s["site"], s["role"]): s for s in program.manifest["sites"]}


def test_keep(make):
    program, tensors = make("--amax-history-len=3", "--keep=l1$"), initial_tensors()
    sites = sites_of(program)
    for key, site in sites.items():
        kept = key[1] == "net/l1"
        assert site["decision"] == ("high" if kept else "fp8")
        assert site["formats"] == (["f32", "f32"] if kept else site["formats"])
        assert ("--keep=l1$" in site["reason"]) == kept
    columns = program.manifest["state"]["columns"]
    assert [(c["sites"], c["tensor"]) for c in columns] == [
        (["net/l2"], kind) for kind in ("input", "weight", "grad_output")
    ]
    program.run("main", tensors, "--steps=2", f"--save-state={program.folder / 'state'}")
    assert load(program.folder / "state")["scale"].shape == (3,)


ATTENTION = """
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
func.func @main(%x: tensor<9x16xf32>, %w: tensor<16x24xf32>, %v: tensor<16x24xf32>) -> tensor<9x9xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<9x24xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<9x24xf32>) -> tensor<9x24xf32>
  %q = linalg.matmul ins(%x, %w : tensor<9x16xf32>, tensor<16x24xf32>) outs(%f : tensor<9x24xf32>) -> tensor<9x24xf32> loc("q/dot_general")
  %k = linalg.matmul ins(%x, %v : tensor<9x16xf32>, tensor<16x24xf32>) outs(%f : tensor<9x24xf32>) -> tensor<9x24xf32> loc("k/dot_general")
  %e1 = tensor.empty() : tensor<9x9xf32>
  %f1 = linalg.fill ins(%z : f32) outs(%e1 : tensor<9x9xf32>) -> tensor<9x9xf32>
  %s = linalg.generic {indexing_maps = [#mk, #nk, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<9x24xf32>, tensor<9x24xf32>) outs(%f1 : tensor<9x9xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %p = arith.mulf %a, %b : f32
      %r = arith.addf %c, %p : f32
      linalg.yield %r : f32
  } -> tensor<9x9xf32> loc("score/dot_general")
  return %s : tensor<9x9xf32>
}
"""


def test_sites_linear_all_and_regex(bin_dir, tmp_path_factory):
    def decide(*options):
        program = Program(bin_dir, tmp_path_factory.mktemp("attention"), ATTENTION, "--recipe=current", *options)
        return program, {s["site"]: s for s in program.manifest["sites"]}

    program, sites = decide()
    assert [sites[name]["decision"] for name in ("q", "k", "score")] == ["fp8", "fp8", "high"]
    assert (sites["score"]["role"], sites["score"]["reason"]) == ("other", "no weight operand")
    program, sites = decide("--sites=all")
    assert {s["decision"] for s in sites.values()} == {"fp8"}
    assert sites["score"]["formats"] == ["E4M3", "E4M3"]
    rng, recipe = random_generator(32), Current()
    x, w, v = (rng.standard_normal(shape).astype(F32) for shape in ([9, 16], [16, 24], [16, 24]))
    (result,) = program.call("main", x, w, v)
    qx, qw, qv = (recipe.quantize(value, ("", "")) for value in (x, w, v))
    q, k = multiply(qx, transposed(qw), False), multiply(qx, transposed(qv), False)
    assert_same_bits(result, multiply(recipe.quantize(q, ("", "")), recipe.quantize(k, ("", "")), False))
    _, sites = decide("--sites=^k$")
    assert [sites[name]["decision"] for name in ("q", "k", "score")] == ["high", "fp8", "high"]


def test_shared_input_has_one_column(bin_dir, tmp_path_factory):
    program = Program(bin_dir, tmp_path_factory.mktemp("shared"), ATTENTION)
    columns = [(c["sites"], c["tensor"]) for c in program.manifest["state"]["columns"]]
    assert columns == [(["k", "q"], "input"), (["k"], "weight"), (["q"], "weight")]

    # The order of the program is not the order of the state.
    swapped = ATTENTION.replace('"q/', '"?/').replace('"k/', '"q/').replace('"?/', '"k/')
    assert swapped != ATTENTION
    other = Program(bin_dir, tmp_path_factory.mktemp("swapped"), swapped)
    assert other.manifest["state"] == program.manifest["state"]


SITE_FIELDS = {"site", "role", "batch", "m", "n", "k", "decision", "reason", "recipe", "formats", "code", "location"}


def test_report_and_manifest(bin_dir, tmp_path, text):
    (tmp_path / "net.mlir").write_text(text)
    command = [bin_dir / "fp8-compile", "net.mlir", "-o", "net.so", "--report=json:report", "--report=json", "--manifest=m"]
    done = subprocess.run([*command, "--report=text:table"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads((tmp_path / "report").read_text())
    assert json.loads(done.stdout) == report
    assert {"sites", "memory"} <= set(report)
    mine = [s for s in report["sites"] if s["entry"] == "main"]
    assert [(s["site"], s["role"], s["batch"], s["m"], s["n"], s["k"], s["formats"]) for s in mine] == [
        ("net/l1", "fprop", 1, 150, 20, 140, ["E4M3", "E4M3"]),
        ("net/l2", "fprop", 1, 150, 5, 20, ["E4M3", "E4M3"]),
        ("net/l2", "wgrad", 1, 20, 5, 150, ["E4M3", "E5M2"]),
        ("net/l2", "dgrad", 1, 150, 20, 5, ["E5M2", "E4M3"]),
        ("net/l1", "wgrad", 1, 140, 20, 150, ["E4M3", "E5M2"]),
    ]
    for site in report["sites"]:
        assert SITE_FIELDS <= set(site)
        assert (site["decision"], site["recipe"]) == ("fp8", "delayed")
        assert "net.mlir:" in site["location"]
        split = "" if site["role"] == "fprop" else ", split sums"
        assert site["code"] == f"packed f32 products of decoded FP8{split} (CPU)"
    table = (tmp_path / "table").read_text()
    code = "code\n  4: packed f32 products of decoded FP8 (CPU)\n  3: packed f32 products of decoded FP8, split sums (CPU)\n"
    assert code in table
    # The code has as many calls of the kernel as the report has products.
    subprocess.run([bin_dir / "fp8-compile", "net.mlir", "-o", "net.kernels", "--emit=kernels"], cwd=tmp_path, check=True)
    calls = re.findall(r"call @(fp8_cpu_gemm\w*)\(", (tmp_path / "net.kernels").read_text())
    split = [name for name in calls if name.endswith("_split")]
    assert (len(calls), len(split)) == (7, 3)
    assert "7 contractions: 7 in FP8, 0 in high precision" in table
    assert re.search(r"^net/l1 +fprop +150 x 20 x 140 +E4M3 x E4M3 +23 KiB +FP8, delayed\n +wgrad +140 x 20 x 150 ", table, re.M)

    manifest = json.loads((tmp_path / "m").read_text())
    assert (manifest["version"], manifest["recipe"], manifest["target"]) == (1, "delayed", "cpu")
    assert manifest["sites"] == report["sites"]
    check_state(manifest["state"])
    entries = {entry["name"]: entry for entry in manifest["entries"]}
    assert set(entries) == {"main", "evaluate"}
    check_entry(entries["main"], ["w1", "w2", "x", "t"], [0, 1, None, None, 3, 4], [0, 1, None, 4, 5])
    check_entry(entries["evaluate"], ["w1", "w2", "x"], [None] * 5, [None])


def check_state(state):
    assert len(state["layout_hash"]) > 0
    columns = state["columns"]
    assert [c["index"] for c in columns] == list(range(6))
    assert {(site, c["tensor"]) for c in columns for site in c["sites"]} == set(FORWARD + GRADIENTS)
    for column in columns:
        fmt = "E5M2" if column["tensor"] == "grad_output" else "E4M3"
        assert (column["format"], column["fp8_max"]) == (fmt, {"E5M2": 57344, "E4M3": 448}[fmt])
    assert state["tensors"] == [
        {"name": "scale", "type": "f32", "shape": [6], "initial": 1},
        {"name": "amax_history", "type": "f32", "shape": [1024, 6], "initial": 0},
    ]


def check_entry(entry, user, carry, alias):
    arguments, results = entry["arguments"], entry["results"]
    assert [a["name"] for a in arguments] == [*user, "scale", "amax_history"]
    assert [a["kind"] for a in arguments] == ["user"] * len(user) + ["state"] * 2
    assert [a["carry"] for a in arguments] == carry
    assert [a["written"] for a in arguments] == [r is not None for r in carry]
    assert [r["alias"] for r in results] == alias
    for values in (arguments, results):
        assert [v["index"] for v in values] == list(range(len(values)))
        assert all(v["type"] == "f32" for v in values)
    assert arguments[0]["shape"] == [140, 20] and arguments[-1]["shape"] == [1024, 6]


def test_layout_hash_is_that_of_the_columns(make, text, bin_dir, tmp_path):
    hash_of = lambda program: program.manifest["state"]["layout_hash"]
    # An unrelated edit does not change it; another choice of sites does.
    edited = Program(bin_dir, tmp_path, text.replace("dense<0.001>", "dense<0.002>"), "--amax-history-len=3")
    assert hash_of(edited) == hash_of(make("--amax-history-len=3"))
    assert hash_of(edited) != hash_of(make("--amax-history-len=3", "--keep=l1$"))
    # A longer history is one of the same tensors: fp8-run --history takes it over.
    assert hash_of(edited) == hash_of(make("--amax-history-len=4"))


# --- what else can be emitted ---


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["ingest", "recipe", "fusion", "batching", "bufferize", "kernels"])
@pytest.mark.parametrize("recipe", ["delayed", "current", "none"])
def test_stages_print_ir_that_parses(run, source_dir, stage, recipe):
    model = source_dir / "test/python/inputs/net.mlir"
    done = run("fp8-compile", model, "-o", "-", f"--emit={stage}", f"--recipe={recipe}")
    assert (done.returncode, done.stderr) == (0, "")
    again = run("fp8-opt", "-", stdin=done.stdout)
    assert (again.returncode, again.stderr) == (0, "")
    if stage == "ingest" or recipe == "none" and stage != "kernels":
        assert done.stdout.count(" = fp8.matmul") + done.stdout.count("fp8.matmul site") >= 7
    elif stage != "kernels":
        assert done.stdout.count("fp8.scaled_matmul") == 7
        assert "net/l1" in done.stdout
    else:
        # Not fp8.matmuls, the attribute that tells what a call computes.
        assert not re.search(r"fp8\.(scaled_)?matmul\b", done.stdout)


def test_stages_go_on_from_one_another(run, source_dir, tmp_path):
    """The pipelines of fp8-opt take the IR of a stage to the next, as fp8-compile does."""
    model = source_dir / "test/python/inputs/net.mlir"
    emit = lambda stage: run("fp8-compile", model, "-o", "-", f"--emit={stage}").stdout
    pipelines = {"fusion": "recipe", "batching": "fusion", "bufferize": "batching"}
    for stage, before in pipelines.items():
        done = run("fp8-opt", "-", f"--fp8-{stage}-pipeline", stdin=emit(before))
        assert done.returncode == 0, done.stderr
        plain = run("fp8-opt", "-", stdin=emit(stage))
        assert done.stdout == plain.stdout


def test_object_and_llvm_ir(run, source_dir, tmp_path):
    model = source_dir / "test/python/inputs/net.mlir"
    assert run("fp8-compile", model, "-o", tmp_path / "net.o", "--emit=obj").returncode == 0
    head = (tmp_path / "net.o").read_bytes()[:18]
    assert head.startswith(b"\x7fELF") and head[16] == 1  # relocatable
    assert run("fp8-compile", model, "-o", tmp_path / "net.ll", "--emit=llvm").returncode == 0
    assembly = (tmp_path / "net.ll").read_text()
    for name in ("fp8_manifest", "fp8_call_main", "fp8_call_evaluate"):
        assert f"@{name}(" in assembly
