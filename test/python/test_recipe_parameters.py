# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a user may change about a recipe, by value: a precision per role, non-finite amaxes, the
first scale, functions of his own for amax and scale; and that all of it is written down.

Whole steps are those of net.py, in f32, where every product in FP8 agrees bit for bit.
"""
import json
import re
import subprocess

import numpy as np
import pytest

import reference
from harness import E4M3, E5M2, F32, MLIR_NAMES, Program, assert_same_bits, load, random_generator, save, tensor_type
from net import NAMES, Current, Delayed, forward, initial_tensors, train

INF, NAN, f32 = np.inf, np.nan, np.float32


@pytest.fixture(scope="module")
def text(source_dir):
    return (source_dir / "test/python/inputs/net.mlir").read_text()


@pytest.fixture
def make(bin_dir, tmp_path, text):
    def compile(*options, functions=""):
        return Program(bin_dir, tmp_path, text + functions, *options)

    return compile


def check_steps(program, recipe, tensors=None, steps=3):
    """Weights and state after each of some steps, bit for bit."""
    tensors = tensors or initial_tensors()
    w1, w2 = tensors["w1"], tensors["w2"]
    outputs, state = program.folder / "outputs", program.folder / "state"
    for count in range(1, steps + 1):
        w1, w2, _ = train(recipe, w1, w2, tensors["x"], tensors["t"])
        save = [f"--save-state={state}"] if isinstance(recipe, Delayed) else []
        program.run("main", tensors, f"--steps={count}", f"--outputs={outputs}", *save)
        results = load(outputs)
        assert_same_bits(results["0"], w1)
        assert_same_bits(results["1"], w2)
        if save:
            assert_same_bits(load(state)["scale"], recipe.scale)
            assert_same_bits(load(state)["amax_history"], recipe.history)


def columns_of(program):
    return {(site, c["tensor"], c["format"]) for c in program.manifest["state"]["columns"] for site in c["sites"]}


def formats_of(program, entry="main"):
    return {(s["site"], s["role"]): s["formats"] for s in program.manifest["sites"] if s["entry"] == entry}


# --- a precision per role ---


def test_two_roles_read_a_gradient_in_two_formats(make):
    """Two casts and two columns of one tensor, one update."""
    program = make("--amax-history-len=3", "--dgrad=e4m3")
    formats = formats_of(program)
    assert formats["net/l2", "dgrad"] == ["E4M3", "E4M3"] and "E5M2" in formats["net/l2", "wgrad"]
    gradients = {c for c in columns_of(program) if c[1] == "grad_output"}
    # Only the second layer has a dgrad: the first one's input is no activation.
    assert gradients == {("net/l1", "grad_output", "E5M2"), ("net/l2", "grad_output", "E5M2"), ("net/l2", "grad_output", "E4M3")}
    check_steps(program, Delayed(program, rows=3, roles={"dgrad": {"grad_output": E4M3}}))


@pytest.mark.slow
def test_forward_in_e5m2_means_both_operands(make):
    """Backward products read activations and weights as before, so those are cast twice."""
    program = make("--amax-history-len=3", "--fprop=e5m2")
    formats = formats_of(program)
    assert formats["net/l1", "fprop"] == ["E5M2", "E5M2"]
    assert sorted(formats["net/l2", "dgrad"]) == sorted(formats["net/l1", "wgrad"]) == ["E4M3", "E5M2"]
    assert {("net/l2", "weight", "E4M3"), ("net/l2", "weight", "E5M2"), ("net/l2", "input", "E5M2")} <= columns_of(program)
    check_steps(program, Delayed(program, rows=3, roles={"fprop": {"input": E5M2, "weight": E5M2}}))


@pytest.mark.slow
def test_formats_of_roles_go_with_any_recipe(make):
    program = make("--recipe=current", "--format=e4m3", "--wgrad=e5m2", "--eps=0.5", "--power-2-scale=true")
    roles = {"wgrad": {"grad_output": E5M2}}
    check_steps(program, Current(gradients=E4M3, roles=roles, eps=0.5, power_2_scale=True))


@pytest.mark.slow
def test_a_role_in_high_precision(make):
    program = make("--amax-history-len=3", "--wgrad=f32")
    for site in program.manifest["sites"]:
        kept = site["role"] == "wgrad"
        assert (site["decision"], site["reason"]) == (("high", "--wgrad=f32") if kept else ("fp8", ""))
        assert not kept or site["formats"] == ["f32", "f32"]
    assert ("net/l1", "grad_output", "E5M2") not in columns_of(program)
    recipe, tensors = Delayed(program, rows=3, roles={"wgrad": None}), initial_tensors()
    w1, w2, _ = train(recipe, *tensors.values())
    state = program.folder / "state"
    program.run("main", tensors, f"--outputs={program.folder / 'outputs'}", f"--save-state={state}")
    # Sums of 150 f32 products, whose order and fusing are not promised.
    for index, expected in (("0", w1), ("1", w2)):
        np.testing.assert_allclose(load(program.folder / "outputs")[index], expected, rtol=1e-4, atol=1e-5)
    assert_same_bits(load(state)["scale"], recipe.scale)
    assert_same_bits(load(state)["amax_history"], recipe.history)


@pytest.mark.slow
def test_a_recipe_of_its_own_for_a_role(make):
    """Weight gradients with scales of this step, everything else with those of the last."""
    program = make("--recipe=#fp8.custom<base = #fp8.delayed_scaling<amax_history_len = 3>, wgrad = #fp8.current_scaling<eps = 4.0>>")
    assert {(s["role"], s["recipe"]) for s in program.manifest["sites"]} == {("fprop", "delayed"), ("dgrad", "delayed"), ("wgrad", "current")}
    current = Current(eps=4.0)

    class Mixed(Delayed):
        def quantize(self, value, key, role="fprop"):
            return current.quantize(value, key, role) if role == "wgrad" else super().quantize(value, key, role)

    check_steps(program, Mixed(program, rows=3))


@pytest.mark.slow
def test_the_word_fp8_is_what_happens_anyway(make):
    assert make("--fprop=fp8", "--dgrad=e5m2", "--wgrad=fp8").manifest["options"]["recipe_attribute"] == "#fp8.delayed_scaling"
    assert make("--fprop=e4m3", "--dgrad=e4m3", "--format=e4m3").manifest["options"]["recipe_attribute"] == "#fp8.delayed_scaling<format = e4m3>"


def random_options(rng):
    """Options of the command line, and the Recipe of net.py that they mean."""
    pick = lambda *values: values[rng.integers(len(values))]
    gradients, roles, options, means = E5M2, {}, [], {}
    if rng.random() < 0.3:
        gradients, options = E4M3, ["--format=e4m3"]
    for role in ("fprop", "dgrad", "wgrad"):
        word = pick("fp8", "e4m3", "e5m2")
        options.append(f"--{role}={word}")
        kinds = ("input", "weight") if role == "fprop" else ("grad_output",)
        if word != "fp8":
            roles[role] = {kind: NAMES[word.upper()] for kind in kinds}

    def choose(option, parameter, *values):
        value = pick(*values)
        options.append(f"--{option}={str(value).lower()}")
        means[parameter] = value

    if rng.random() < 0.4:
        options.append("--recipe=current")
        choose("eps", "eps", 0.0, 0.5, 100.0)
        choose("power-2-scale", "power_2_scale", True, False)
        return options, lambda program: Current(gradients, roles, **means)
    choose("amax-history-len", "rows", 2, 3, 5)
    choose("margin", "margin", -1, 0, 3)
    choose("amax-compute-algo", "algo", "max", "most_recent")
    choose("ignore-non-finite", "ignore_non_finite", True, False)
    choose("init", "init", "one", "current")
    return options, lambda program: Delayed(program, gradients=gradients, roles=roles, **means)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_random_options(make, seed):
    rng = random_generator(71, seed)
    options, recipe_of = random_options(rng)
    print(*options)
    tensors, program = initial_tensors(), make(*options)
    if rng.random() < 0.3:
        tensors["x"][rng.integers(150), rng.integers(140)] = INF
    check_steps(program, recipe_of(program), tensors)


# --- amaxes that are not finite, and the first step ---


def test_ignored_amaxes_by_hand(make):
    update = lambda history, *amaxes, **options: reference.update_column(
        f32(5), np.array(history, F32), amaxes, E4M3, ignore_non_finite=True, **options
    )
    # Not entered: the column is as if its site had not run.
    scale, history = update([0, 8, 2, 1], INF)
    assert scale == 5 and history.tolist() == [0, 8, 2, 1]
    # Of several the finite ones count; what the history holds already does not.
    scale, history = update([0, INF, 2, 1], INF, 4, NAN)
    assert scale == 112 and history.tolist() == [0, 2, 1, 4]


ROWS, COLUMNS = 4, [0, 1, 2, 3, 3, 4, 5, 5]
FORMATS = [[E4M3, E5M2][c % 2] for c in COLUMNS]


def update_entry(name, recipe, count=len(COLUMNS)):
    scale, history, amaxes = tensor_type([6], F32), tensor_type([ROWS, 6], F32), tensor_type([count], F32)
    names = ", ".join(MLIR_NAMES[fmt] for fmt in FORMATS)
    return f"""
func.func @{name}(%s: {scale}, %h: {history}, %a: {amaxes}) -> ({scale}, {history}) {{
  %s1, %h1 = fp8.update_amax_history recipe({recipe}) columns {COLUMNS} formats [{names}]
      ins(%a : {amaxes}) outs(%s, %h : {scale}, {history}) -> {scale}, {history}
  return %s1, %h1 : {scale}, {history}
}}"""


def random_amaxes(rng, shape):
    special = rng.choice([0, 0, INF, NAN, 1e-37, 3e38], shape)
    return np.where(rng.random(shape) < 0.4, special, np.exp(rng.uniform(-20, 20, shape))).astype(F32)


def check_updates(program, entry, **options):
    rng = random_generator(70)
    for _ in range(5):
        scale, history = np.exp(rng.uniform(-5, 5, 6)).astype(F32), random_amaxes(rng, [ROWS, 6])
        history[0] *= rng.random(6) < 0.3
        amaxes = random_amaxes(rng, len(COLUMNS))
        expected = reference.update(scale, history, COLUMNS, amaxes, FORMATS, **options)
        for actual, wanted in zip(program.call(entry, scale, history, amaxes), expected):
            assert_same_bits(actual, wanted)


def test_ignored_amaxes(bin_dir, tmp_path):
    recipe = f"amax_history_len = {ROWS}, ignore_non_finite = true"
    text = update_entry("largest", f"#fp8.delayed_scaling<{recipe}>")
    text += update_entry("newest", f"#fp8.delayed_scaling<{recipe}, amax_compute_algo = most_recent>")
    program = Program(bin_dir, tmp_path, text, "--recipe=none")
    check_updates(program, "largest", ignore_non_finite=True)
    check_updates(program, "newest", ignore_non_finite=True, algo="most_recent")


@pytest.mark.slow
def test_an_inf_leaves_no_trace_in_a_step(make):
    program = make("--amax-history-len=3", "--ignore-non-finite=true")
    tensors = initial_tensors()
    tensors["x"][3, 5] = INF
    recipe = Delayed(program, rows=3, ignore_non_finite=True)
    check_steps(program, recipe, tensors)
    assert np.isfinite(recipe.history).all()
    assert recipe.scale[recipe.column(("net/l1", "input"))] == 1
    assert recipe.scale[recipe.column(("net/l1", "weight"))] != 1


@pytest.mark.parametrize("margin", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_the_first_step_from_the_tensors(make, margin):
    program = make("--amax-history-len=3", "--init=current", f"--margin={margin}")
    check_steps(program, Delayed(program, rows=3, init="current", margin=margin), steps=4)


@pytest.mark.slow
def test_small_gradients_survive_the_first_step(make):
    """What the option is for: with scale 1 they are below the smallest E5M2 number."""
    tensors = initial_tensors()
    tensors["t"], tensors["w2"] = tensors["t"] * f32(1e-6), tensors["w2"] * f32(1e-6)
    moved = {}
    for init in ("one", "current"):
        program = make("--amax-history-len=3", f"--init={init}")
        check_steps(program, Delayed(program, rows=3, init=init), tensors, steps=1)
        moved[init] = (load(program.folder / "outputs")["1"] != tensors["w2"]).any()
    assert moved == {"one": False, "current": True}


@pytest.mark.slow
def test_evaluation_of_an_untrained_state_starts_from_the_tensors(make):
    program, tensors = make("--amax-history-len=3", "--init=current"), initial_tensors()
    inputs = {name: tensors[name] for name in ("w1", "w2", "x")}
    program.run("evaluate", inputs, f"--outputs={program.folder / 'outputs'}", f"--save-state={program.folder / 'state'}")
    recipe = Delayed(program, rows=3, init="current")
    assert_same_bits(load(program.folder / "outputs")["0"], forward(recipe, **inputs)[-1])
    assert (load(program.folder / "state")["amax_history"] == 0).all()


@pytest.mark.slow
def test_a_state_with_another_history_length(bin_dir, tmp_path_factory, text):
    long, short = (
        Program(bin_dir, tmp_path_factory.mktemp("rows"), text, f"--amax-history-len={rows}") for rows in (5, 3)
    )
    tensors, outputs, state = initial_tensors(), short.folder / "outputs", short.folder / "state"
    for saver, reader in ((long, short), (short, long)):
        saved, rows = saver.folder / "saved", reader.manifest["state"]["tensors"][1]["shape"][0]
        saver.run("main", tensors, "--steps=4", f"--save-state={saved}")
        before = load(saved)
        past = before["amax_history"]
        for history in ("newest", "oldest"):
            recipe = Delayed(reader, rows=rows)
            recipe.scale, kept = before["scale"].copy(), min(rows, len(past)) - 1
            if history == "newest":
                recipe.history[rows - kept :] = past[len(past) - kept :]
            else:
                recipe.history[1 : kept + 1] = past[1 : kept + 1]
            train(recipe, *tensors.values())
            reader.run("main", tensors, f"--state={saved}", f"--history={history}", f"--save-state={state}")
            assert_same_bits(load(state)["scale"], recipe.scale)
            assert_same_bits(load(state)["amax_history"], recipe.history)


# --- functions of the module ---

FUNCTIONS = """
// As often with user code: it calls a helper, which ingest inlines.
func.func private @half(%x: f32) -> f32 {
  %half = arith.constant 0.5 : f32
  %y = arith.mulf %x, %half : f32
  return %y : f32
}
func.func private @careful(%amax: f32, %max: f32, %old: f32) -> f32 {
  %one = arith.constant 1.0 : f32
  %larger = arith.maximumf %amax, %one : f32
  %quotient = arith.divf %max, %larger : f32
  %sum = arith.addf %quotient, %old : f32
  %mean = call @half(%sum) : (f32) -> f32
  return %mean : f32
}
func.func private @average(%column: tensor<?xf32>) -> f32 {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %none = arith.constant 0.0 : f32
  %rows = tensor.dim %column, %zero : tensor<?xf32>
  %sum = scf.for %i = %zero to %rows step %one iter_args(%s = %none) -> f32 {
    %x = tensor.extract %column[%i] : tensor<?xf32>
    %t = arith.addf %s, %x : f32
    scf.yield %t : f32
  }
  %count = arith.index_cast %rows : index to i32
  %divisor = arith.sitofp %count : i32 to f32
  %mean = arith.divf %sum, %divisor : f32
  return %mean : f32
}
// Tensors of its own: squares, their largest, and the root of it.
func.func private @largest(%column: tensor<?xf32>) -> f32 {
  %zero = arith.constant 0 : index
  %none = arith.constant 0.0 : f32
  %rows = tensor.dim %column, %zero : tensor<?xf32>
  %e = tensor.empty(%rows) : tensor<?xf32>
  %squares = linalg.square ins(%column : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %i = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%none : f32) outs(%i : tensor<f32>) -> tensor<f32>
  %max = linalg.reduce { arith.maximumf } ins(%squares : tensor<?xf32>) outs(%f : tensor<f32>) dimensions = [0]
  %x = tensor.extract %max[] : tensor<f32>
  %root = math.sqrt %x : f32
  return %root : f32
}
"""


def careful(amax, fp8_max, old):
    larger = amax if np.isnan(amax) else max(amax, f32(1))
    return (fp8_max / larger + old) * f32(0.5)


def average(column):
    total = f32(0)
    for x in column:
        total = total + x
    return total / f32(len(column))


def largest(column):
    return np.sqrt(np.max(column * column))


CUSTOM = {
    "scale": ("scale = @careful", dict(scale_function=careful)),
    "amax": ("amax = @average", dict(amax_function=average)),
    "both": ("scale = @careful, amax = @largest", dict(scale_function=careful, amax_function=largest)),
}


def test_functions_by_value(bin_dir, tmp_path):
    base = f"#fp8.delayed_scaling<amax_history_len = {ROWS}>"
    text = FUNCTIONS + "".join(update_entry(n, f"#fp8.custom<base = {base}, {p}>") for n, (p, _) in CUSTOM.items())
    ignoring = base.replace(">", ", ignore_non_finite = true>")
    text += update_entry("ignoring", f"#fp8.custom<base = {ignoring}, amax = @average>")
    text = text.replace("private @average", "@average")
    program = Program(bin_dir, tmp_path, text, "--recipe=none")
    for name, (_, options) in CUSTOM.items():
        check_updates(program, name, **options)
    check_updates(program, "ignoring", amax_function=average, ignore_non_finite=True)
    # What a recipe names is no entry of the program.
    assert {e["name"] for e in program.manifest["entries"]} == {*CUSTOM, "ignoring"}


def test_a_function_that_reads_outside_of_its_column(bin_dir, tmp_path):
    """What is checked in a program is checked in its functions: the call fails and says where."""
    text = """
func.func private @ninth(%column: tensor<?xf32>) -> f32 {
  %nine = arith.constant 9 : index
  %amax = tensor.extract %column[%nine] : tensor<?xf32>
  return %amax : f32
}""" + update_entry("main", f"#fp8.custom<base = #fp8.delayed_scaling<amax_history_len = {ROWS}>, amax = @ninth>")
    program = Program(bin_dir, tmp_path, text, "--recipe=none")
    values = [np.ones(6, F32), np.ones([ROWS, 6], F32), np.ones(len(COLUMNS), F32)]
    save(tmp_path / "in", {str(i): value for i, value in enumerate(values)})
    done = subprocess.run([bin_dir / "fp8-run", program.library, f"--inputs={tmp_path / 'in'}"], capture_output=True, text=True)
    assert done.returncode == 1 and re.search(r"an index is outside of dimension 0 of argument 0 .* \(.*:4:11\)", done.stderr)


@pytest.mark.parametrize("name", ["both", *(pytest.param(name, marks=pytest.mark.slow) for name in ("scale", "amax"))])
def test_steps_with_functions(make, name):
    parameters, options = CUSTOM[name]
    program = make(f"--recipe=#fp8.custom<base = #fp8.delayed_scaling<amax_history_len = 3>, {parameters}>", functions=FUNCTIONS)
    assert {e["name"] for e in program.manifest["entries"]} == {"main", "evaluate"}
    assert {s["recipe"] for s in program.manifest["sites"]} == {"custom delayed"}
    check_steps(program, Delayed(program, rows=3, **options))


@pytest.mark.slow
def test_current_scaling_with_a_function(make, tmp_path):
    program = make("--recipe=#fp8.custom<base = #fp8.current_scaling, scale = @careful>", functions=FUNCTIONS)

    class Careful(Current):
        def scale_of(self, value, key, fmt):
            return careful(reference.amax(value), reference.FP8_MAX[fmt], f32(1))

    assert {s["recipe"] for s in program.manifest["sites"]} == {"custom current"}
    check_steps(program, Careful(), steps=2)


@pytest.mark.slow
def test_functions_and_formats_of_roles(make):
    """One history: the recipes differ in format only."""
    base = "#fp8.delayed_scaling<amax_history_len = 3, init = current>"
    dgrad = base.replace("<", "<format = e4m3, ")
    program = make(f"--recipe=#fp8.custom<base = {base}, dgrad = {dgrad}, scale = @careful>", functions=FUNCTIONS)

    class Careful(Delayed):
        def scale_of(self, value, key, fmt):
            empty = (self.history[:, self.index[(*key, fmt)]] == 0).all()
            scale = super().scale_of(value, key, fmt)
            return careful(reference.amax(value), reference.FP8_MAX[fmt], f32(1)) if empty else scale

    check_steps(program, Careful(program, rows=3, roles={"dgrad": {"grad_output": E4M3}}, scale_function=careful))


@pytest.mark.slow
def test_products_in_functions_are_not_for_fp8(bin_dir, tmp_path, text):
    function = """
func.func @norm(%column: tensor<?xf32>) -> f32 {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %d = linalg.dot ins(%column, %column : tensor<?xf32>, tensor<?xf32>) outs(%f : tensor<f32>) -> tensor<f32>
  %x = tensor.extract %d[] : tensor<f32>
  return %x : f32
}
"""
    recipe = "--recipe=#fp8.custom<base = #fp8.delayed_scaling<amax_history_len = 3>, amax = @norm>"
    program = Program(bin_dir, tmp_path, text + function, recipe, "--sites=all", "--require=all")
    (site,) = [s for s in program.manifest["sites"] if s["entry"] == "norm"]
    assert (site["decision"], site["reason"]) == ("high", "in a function that the recipe names")
    # Three products in one order or another, fused or not: the last bits of the sums differ.
    recipe, tensors = Delayed(program, rows=3, amax_function=lambda column: np.sum(column * column)), initial_tensors()
    train(recipe, *tensors.values())
    program.run("main", tensors, f"--save-state={tmp_path / 'state'}")
    np.testing.assert_allclose(load(tmp_path / "state")["scale"], recipe.scale, rtol=1e-6)
    assert_same_bits(load(tmp_path / "state")["amax_history"], recipe.history)


# --- all of it written down ---

DEFAULTS = {
    "recipe": "delayed",
    "recipe_attribute": "#fp8.delayed_scaling",
    "format": "hybrid",
    "margin": 0,
    "amax_history_len": 1024,
    "amax_compute_algo": "max",
    "reduce_amax": True,
    "ignore_non_finite": False,
    "init": "one",
    "fprop": "fp8",
    "dgrad": "fp8",
    "wgrad": "fp8",
    "sites": "linear",
    "keep": None,
    "first": 0,
    "last": 0,
    "require": None,
    "calibrate": False,
    "target": "cpu",
    "carry": [],
    "pair": None,
}


def options_of(bin_dir, source, *options):
    """The options in the report, which are those in the manifest."""
    command = [bin_dir / "fp8-compile", source, "-o", source.with_suffix(".so"), *options]
    report, manifest = source.with_suffix(".json"), source.with_suffix(".manifest")
    done = subprocess.run([*command, f"--report=json:{report}", f"--manifest={manifest}"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    values = json.loads(report.read_text())["options"]
    assert values == json.loads(manifest.read_text())["options"]
    done = subprocess.run([*command, "--report=text"], capture_output=True, text=True)
    printed = " ".join(done.stdout.split("options:")[1].split())
    for name, value in values.items():
        assert f"{name}={'-' if value is None else value if isinstance(value, str) else json.dumps(value, separators=(',', ':'))}" in printed
    return values


@pytest.fixture
def source(tmp_path, text):
    (tmp_path / "net.mlir").write_text(text)
    return tmp_path / "net.mlir"


def test_every_option_is_in_report_and_manifest(bin_dir, source):
    assert options_of(bin_dir, source) == DEFAULTS
    given = ["--margin=1", "--amax-history-len=8", "--amax-compute-algo=most_recent", "--reduce-amax=false", "--format=e4m3"]
    given += ["--ignore-non-finite=true", "--init=current", "--dgrad=bf16", "--sites=net", "--keep=l1$", "--require=l2.*x|l2$"]
    given += ["--calibrate", "--carry=x:0"]
    expected = dict(DEFAULTS, margin=1, amax_history_len=8, amax_compute_algo="most_recent", reduce_amax=False, format="e4m3")
    expected.update(ignore_non_finite=True, init="current", wgrad="e5m2", sites="net", keep="l1$", calibrate=True)
    del expected["recipe_attribute"]
    options = [o for o in given if o[2:7] not in ("dgrad", "carry", "requi")] + ["--wgrad=e5m2"]
    values = options_of(bin_dir, source, *options)
    base = "margin = 1, amax_history_len = 8, amax_compute_algo = most_recent, reduce_amax = false, ignore_non_finite = true, init = current>"
    assert values.pop("recipe_attribute") == (
        f"#fp8.custom<base = #fp8.delayed_scaling<format = e4m3, {base}, wgrad = #fp8.delayed_scaling<{base}>"
    )
    assert values == expected


def test_an_attribute_says_its_parameters(bin_dir, source):
    recipe = "#fp8.current_scaling<eps = 0.25, power_2_scale = true>"
    values = options_of(bin_dir, source, f"--recipe={recipe}")
    assert (values["recipe"], values["eps"], values["power_2_scale"], values["format"]) == (recipe, 0.25, True, "hybrid")
    assert "margin" not in values
    values = options_of(bin_dir, source, "--recipe=none")
    assert values["recipe_attribute"] is None and "format" not in values


def test_auto_says_what_it_became(bin_dir, source):
    values = options_of(bin_dir, source, "--recipe=auto", "--eps=0.5")
    assert (values["recipe"], values["recipe_attribute"]) == ("auto", "#fp8.current_scaling<eps = 5.000000e-01>")
    manifest = json.loads(source.with_suffix(".manifest").read_text())
    assert manifest["recipe"] == "current" and {s["recipe"] for s in manifest["sites"]} == {"current"}


@pytest.mark.parametrize("target, recipe", [("cpu", "current"), ("sm_89", "current"), ("sm_90a", "current"), ("sm_100a", "mx"), ("sm_120a", "mx")])
def test_auto_by_target(run, source, target, recipe):
    pipeline = f"builtin.module(fp8-ingest-pipeline,fp8-recipe-pipeline{{recipe=auto target={target}}})"
    done = run("fp8-opt", source, f"--pass-pipeline={pipeline}")
    assert done.returncode == 0, done.stderr
    assert f"recipe(#fp8.{recipe}_scaling)" in done.stdout
